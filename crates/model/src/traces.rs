//! Spans of traces: what marks a span of `tracing` as one that can be exported.
//!
//! What belongs here: the agreement between the crates that open such spans and the server
//! that exports them (`weir_server::traces`). What does not: recording and exporting.

/// The target of every exported span. The log never shows these spans, and without the
/// setting `traces_endpoint` opening one costs no more than a comparison.
///
/// A span belongs to the trace of the span that it is opened in. Without one it is not
/// exported, unless it has the field `trace.id`: then it begins a trace. The field may hold
/// the id, as a UUID, or be empty.
///
/// The fields `otel.name`, `otel.kind` and `otel.status_code` are those of OpenTelemetry, and
/// the others are attributes. Attributes hold ids, counts and names of the code, and never
/// what a caller has sent (SEC-41).
pub const TARGET: &str = "weir::trace";
