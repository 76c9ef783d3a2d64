//! Counters and gauges, as text for Prometheus on a separate address.
//!
//! What belongs here: names, labels and the page. Labels come from closed lists, never
//! from input, so that a sender cannot fill the memory with them.

pub(crate) mod memory;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{Request, StatusCode, header};
use hyper::body::Incoming;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use weir_export::engine::EngineCounts;
use weir_ingest::Outcome;
use weir_model::exports::Status;
use weir_model::limits::{LimitAction, LimitName};
use weir_model::outcomes::{DropReason, Warning};
use weir_plugins::{Children, Effect, Ending};
use weir_service::limits::Admission;
use weir_service::questions;
use weir_store::disk::DiskMarks;

use crate::backup::LastBackup;
use crate::dispatcher::Surface;
use crate::listener::RequestHandler;

/// Media type of the text format.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Statuses of answers that begin at zero, because alerts read them. Other statuses begin
/// with their first answer.
const FAULTS: [u16; 2] = [500, 503];

/// Values of [`CacheLabel`].
const CACHE_HIT: &str = "hit";
const CACHE_MISS: &str = "miss";

/// All metrics. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    /// Requests by surface and status.
    pub requests: Family<RequestLabels, Counter>,
    /// Time to the answer, by surface.
    pub request_seconds: Family<SurfaceLabel, Histogram, fn() -> Histogram>,
    /// Acknowledged events. Duplicates are included, because they are found only later.
    pub events_accepted: Counter,
    /// Events that were not stored although the request was answered with 200.
    pub events_dropped: Family<ReasonLabel, Counter>,
    /// Events beyond a limit of their organization.
    pub events_over_limit: Family<OverLimitLabels, Counter>,
    /// Events that were stored with changes or with a warning.
    pub events_altered: Family<WarningLabel, Counter>,
    /// Time of the durable append of a request's events.
    pub append_seconds: Histogram,
    /// Bytes of accepted events that are not applied yet.
    pub apply_lag_bytes: Gauge<i64>,
    /// Damaged or unreadable parts of the ingest log.
    pub log_damaged_places: Gauge<i64>,
    /// Bytes of these parts, and of the missing end of the log.
    pub log_damaged_bytes: Gauge<i64>,
    /// Bytes at the end of the ingest log that the start cut off.
    pub log_torn_bytes: Gauge<i64>,
    /// How often a file of sealed events was found damaged.
    pub segment_damage: Counter,
    /// Memory of the filters and indexes for the uuids of sealed events, bytes.
    pub segment_filter_bytes: Gauge<i64>,
    /// Bytes of the local copies of event files in a bucket.
    pub segment_cache_bytes: Gauge<i64>,
    /// How often the bucket of event files could not be used.
    pub segment_bucket_failures: Counter,
    /// Failures of the store that were answered to callers.
    pub store_errors: Counter,
    /// Free bytes on the disk of the data directory.
    pub disk_free_bytes: Gauge<f64, AtomicU64>,
    /// Free bytes below which the service reports itself not ready.
    pub disk_high_bytes: Gauge<f64, AtomicU64>,
    /// Free bytes below which nothing is written.
    pub disk_low_bytes: Gauge<f64, AtomicU64>,
    /// Seconds between two backups that the server makes; 0 if it makes none.
    pub backup_interval_seconds: Gauge<f64, AtomicU64>,
    /// When the last backup began, in seconds since 1970; 0 without one.
    pub backup_last_success_seconds: Gauge<f64, AtomicU64>,
    /// Seconds that it took.
    pub backup_duration_seconds: Gauge<f64, AtomicU64>,
    /// Bytes of all of its files.
    pub backup_bytes: Gauge<i64>,
    /// Bytes of it that no earlier backup in the directory had.
    pub backup_new_bytes: Gauge<i64>,
    /// Backups of the server that failed.
    pub backup_failures: Counter,
    /// Attempts to sign in that were refused.
    pub sign_ins_refused: Counter,
    /// When this process started, in seconds since 1970.
    pub process_start_seconds: Gauge<f64, AtomicU64>,
    /// Resident memory of this process.
    pub process_resident_bytes: Gauge<i64>,
    /// Open connections.
    pub connections: Gauge<i64>,
    /// Connections closed immediately because there were too many.
    pub connections_refused: Counter,
    /// Connections whose header of a proxy was missing or wrong.
    pub proxy_headers_refused: Counter,
    /// Handshakes of TLS that failed or took too long.
    pub tls_handshakes_failed: Counter,
    /// When the certificate expires, in seconds since 1970; 0 without a certificate.
    pub tls_certificate_expiry_seconds: Gauge<f64, AtomicU64>,
    /// How often a certificate was not renewed, or changed files were not usable.
    pub tls_certificate_failures: Counter,
    /// Spans of traces that the collector has taken.
    pub trace_spans_exported: Counter,
    /// Spans of traces that found no room or that the collector did not take.
    pub trace_spans_lost: Counter,
    /// Runs of exports that ended.
    pub export_runs: Family<StatusLabel, Counter>,
    /// Failed attempts of runs.
    pub export_attempts_failed: Counter,
    /// Rows sent to destinations.
    pub export_rows: Counter,
    /// Bytes of the sent events.
    pub export_bytes: Counter,
    /// Runs that have begun and not ended.
    pub export_runs_active: Gauge<i64>,
    /// Calls of plugins and their outcomes.
    pub plugin_calls: Family<PluginLabels, Counter>,
    /// Processes that run scripts of plugins.
    pub plugin_children: Gauge<i64>,
    /// Processes that replaced one that had ended.
    pub plugin_children_replaced: Counter,
    /// Questions that ended, by kind and outcome.
    pub queries: Family<QueryLabels, Counter>,
    /// Time of questions with the wait for a permit, by kind.
    pub query_seconds: Family<KindLabel, Histogram, fn() -> Histogram>,
    /// Answers, by whether they were computed before.
    pub query_answers: Family<CacheLabel, Counter>,
    /// Questions that wait for a permit.
    pub query_waiting: Gauge<i64>,
    /// Bytes of memory that questions use.
    pub query_memory_bytes: Gauge<i64>,
    registry: Arc<Registry>,
}

/// Labels of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// The surface that answered.
    pub surface: Surface,
    /// Status of the answer.
    pub status: u16,
}

/// Label of a surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct SurfaceLabel {
    /// The surface that answered.
    pub surface: Surface,
}

/// Label of a drop reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ReasonLabel {
    /// The drop reason.
    pub reason: Reason,
}

/// Labels of events beyond a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OverLimitLabels {
    /// The limit.
    pub limit: OfEvents,
    /// What happened to the events.
    pub action: BeyondLimit,
}

/// Label of an ingestion warning.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WarningLabel {
    /// The warning.
    pub warning: Altered,
}

/// Label of the status of an ended run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct StatusLabel {
    /// The status.
    pub status: Ended,
}

/// Labels of a call of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PluginLabels {
    /// The effect of the call.
    pub effect: PluginEffect,
    /// The outcome of the call.
    pub outcome: PluginEnding,
}

/// Labels of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct QueryLabels {
    /// The word of its kind.
    pub kind: &'static str,
    /// How it ended.
    pub outcome: QueryOutcome,
}

/// Label of the kind of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct KindLabel {
    /// The word of the kind.
    pub kind: &'static str,
}

/// Label of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CacheLabel {
    /// `hit`: it was computed before. `miss`: it was not.
    pub cache: &'static str,
}

/// The outcome of a question as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QueryOutcome(pub questions::Outcome);

impl EncodeLabelValue for QueryOutcome {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.0.text(), encoder)
    }
}

/// The effect of a plugin as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PluginEffect(pub Effect);

impl EncodeLabelValue for PluginEffect {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.0.text(), encoder)
    }
}

/// The outcome of a call as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PluginEnding(pub Ending);

impl EncodeLabelValue for PluginEnding {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.0.text(), encoder)
    }
}

/// A status as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ended(pub Status);

impl EncodeLabelValue for Ended {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.0.text(), encoder)
    }
}

/// A drop reason as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reason(pub DropReason);

impl EncodeLabelValue for Reason {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.0.code(), encoder)
    }
}

/// A warning as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Altered(pub Warning);

impl EncodeLabelValue for Altered {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.0.code(), encoder)
    }
}

/// A limit as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OfEvents(pub LimitName);

impl EncodeLabelValue for OfEvents {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.0.code(), encoder)
    }
}

/// What happens beyond a limit, as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BeyondLimit(pub LimitAction);

impl EncodeLabelValue for BeyondLimit {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.0.word(), encoder)
    }
}

impl EncodeLabelValue for Surface {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.text(), encoder)
    }
}

impl Metrics {
    /// All metrics at zero.
    pub fn new() -> Self {
        let requests = Family::default();
        let request_seconds = Family::new_with_constructor(seconds as fn() -> Histogram);
        let events_accepted = Counter::default();
        let events_dropped = Family::default();
        let events_over_limit = Family::default();
        let events_altered = Family::default();
        let append_seconds = seconds();
        let apply_lag_bytes = Gauge::default();
        let log_damaged_places = Gauge::default();
        let log_damaged_bytes = Gauge::default();
        let log_torn_bytes = Gauge::default();
        let segment_damage = Counter::default();
        let segment_filter_bytes = Gauge::default();
        let segment_cache_bytes = Gauge::default();
        let segment_bucket_failures = Counter::default();
        let store_errors = Counter::default();
        let disk_free_bytes = Gauge::default();
        let disk_high_bytes = Gauge::default();
        let disk_low_bytes = Gauge::default();
        let backup_interval_seconds = Gauge::default();
        let backup_last_success_seconds = Gauge::default();
        let backup_duration_seconds = Gauge::default();
        let backup_bytes = Gauge::default();
        let backup_new_bytes = Gauge::default();
        let backup_failures = Counter::default();
        let sign_ins_refused = Counter::default();
        let process_start_seconds = Gauge::default();
        let process_resident_bytes = Gauge::default();
        let connections = Gauge::default();
        let connections_refused = Counter::default();
        let proxy_headers_refused = Counter::default();
        let tls_handshakes_failed = Counter::default();
        let tls_certificate_expiry_seconds = Gauge::default();
        let tls_certificate_failures = Counter::default();
        let trace_spans_exported = Counter::default();
        let trace_spans_lost = Counter::default();
        let export_runs = Family::default();
        let export_attempts_failed = Counter::default();
        let export_rows = Counter::default();
        let export_bytes = Counter::default();
        let export_runs_active = Gauge::default();
        let plugin_calls = Family::default();
        let plugin_children = Gauge::default();
        let plugin_children_replaced = Counter::default();
        let queries = Family::default();
        let query_seconds = Family::new_with_constructor(seconds as fn() -> Histogram);
        let query_answers = Family::default();
        let query_waiting = Gauge::default();
        let query_memory_bytes = Gauge::default();

        let mut root = Registry::default();
        // Names that Prometheus uses for every process. They have no prefix.
        root.register(
            "process_start_time_seconds",
            "When the process started, in seconds since 1970",
            process_start_seconds.clone(),
        );
        root.register(
            "process_resident_memory_bytes",
            "Resident memory of the process, without the processes of plugins",
            process_resident_bytes.clone(),
        );
        let registry = root.sub_registry_with_prefix("weir");
        registry.register(
            "http_requests",
            "Requests by surface and status",
            Family::clone(&requests),
        );
        registry.register("http_request_seconds", "Time to the answer", request_seconds.clone());
        registry.register(
            "capture_events_accepted",
            "Events acknowledged, to be stored",
            events_accepted.clone(),
        );
        registry.register(
            "capture_events_dropped",
            "Events not stored although the request was answered with 200",
            Family::clone(&events_dropped),
        );
        registry.register(
            "capture_events_over_limit",
            "Events beyond a limit of their organization, by what happened to them",
            Family::clone(&events_over_limit),
        );
        registry.register(
            "ingest_events_altered",
            "Events stored altered, or for which not all was done",
            Family::clone(&events_altered),
        );
        registry.register(
            "ingest_append_seconds",
            "Time of the durable append",
            append_seconds.clone(),
        );
        registry.register(
            "ingest_apply_lag_bytes",
            "Bytes of accepted events that cannot be read back yet",
            apply_lag_bytes.clone(),
        );
        registry.register(
            "ingest_log_damaged_places",
            "Copies in quarantine of damaged or unreadable log records",
            log_damaged_places.clone(),
        );
        registry.register(
            "ingest_log_damaged_bytes",
            "Bytes of them, and of what is missing of the ingest log",
            log_damaged_bytes.clone(),
        );
        registry.register(
            "ingest_log_torn_bytes",
            "Bytes of the last write that the start cut off the ingest log",
            log_torn_bytes.clone(),
        );
        registry.register(
            "segment_damage",
            "How often a file of sealed events or of their uuids was found damaged",
            segment_damage.clone(),
        );
        registry.register(
            "segment_filter_bytes",
            "Memory of the filters and indexes for the uuids of sealed events",
            segment_filter_bytes.clone(),
        );
        registry.register(
            "segment_cache_bytes",
            "Bytes of the local copies of files of events, if these are in a bucket",
            segment_cache_bytes.clone(),
        );
        registry.register(
            "segment_bucket_failures",
            "How often the bucket of the files of events could not be used",
            segment_bucket_failures.clone(),
        );
        registry.register(
            "store_errors",
            "Failures of the store that callers saw",
            store_errors.clone(),
        );
        registry.register("disk_free_bytes", "Free disk space", disk_free_bytes.clone());
        registry.register(
            "disk_high_bytes",
            "Free disk space below which the service is not ready",
            disk_high_bytes.clone(),
        );
        registry.register(
            "disk_low_bytes",
            "Free disk space below which nothing is written",
            disk_low_bytes.clone(),
        );
        registry.register(
            "backup_interval_seconds",
            "Seconds between two backups that the server makes; 0 if it makes none",
            backup_interval_seconds.clone(),
        );
        registry.register(
            "backup_last_success_seconds",
            "When the last backup began, in seconds since 1970; 0 without one",
            backup_last_success_seconds.clone(),
        );
        registry.register(
            "backup_duration_seconds",
            "Seconds that the last backup took",
            backup_duration_seconds.clone(),
        );
        registry.register(
            "backup_bytes",
            "Bytes of all files of the last backup",
            backup_bytes.clone(),
        );
        registry.register(
            "backup_new_bytes",
            "Bytes of the last backup that no earlier backup in its directory had",
            backup_new_bytes.clone(),
        );
        registry.register(
            "backup_failures",
            "Backups of the server that failed",
            backup_failures.clone(),
        );
        registry.register(
            "sign_ins_refused",
            "Attempts to sign in that were refused",
            sign_ins_refused.clone(),
        );
        registry.register("http_connections", "Open connections", connections.clone());
        registry.register(
            "http_connections_refused",
            "Connections closed immediately because there were too many",
            connections_refused.clone(),
        );
        registry.register(
            "proxy_headers_refused",
            "Connections whose header of the PROXY protocol was missing or wrong",
            proxy_headers_refused.clone(),
        );
        registry.register(
            "tls_handshakes_failed",
            "Handshakes of TLS that failed or took too long",
            tls_handshakes_failed.clone(),
        );
        registry.register(
            "tls_certificate_expiry_seconds",
            "When the certificate expires, in seconds since 1970; 0 without a certificate",
            tls_certificate_expiry_seconds.clone(),
        );
        registry.register(
            "tls_certificate_failures",
            "How often a certificate was not renewed, or changed files were not usable",
            tls_certificate_failures.clone(),
        );
        registry.register(
            "trace_spans_exported",
            "Spans of traces that the collector has taken",
            trace_spans_exported.clone(),
        );
        registry.register(
            "trace_spans_lost",
            "Spans of traces that found no room or that the collector did not take",
            trace_spans_lost.clone(),
        );
        registry.register(
            "export_runs",
            "Runs of exports that ended, by status",
            Family::clone(&export_runs),
        );
        registry.register(
            "export_attempts_failed",
            "Tries of runs that failed",
            export_attempts_failed.clone(),
        );
        registry.register("export_rows", "Rows handed to destinations", export_rows.clone());
        registry.register("export_bytes", "Bytes of exported events", export_bytes.clone());
        registry.register(
            "export_runs_active",
            "Runs that have begun or wait, and have not ended",
            export_runs_active.clone(),
        );
        registry.register(
            "plugin_calls",
            "Events, tasks and jobs that plugins were called for, by effect and outcome",
            Family::clone(&plugin_calls),
        );
        registry.register(
            "plugin_children",
            "Processes that run scripts of plugins",
            plugin_children.clone(),
        );
        registry.register(
            "plugin_children_replaced",
            "Processes for scripts that took the place of one that was killed or had ended",
            plugin_children_replaced.clone(),
        );
        registry.register(
            "queries",
            "Questions about events, by how they ended",
            Family::clone(&queries),
        );
        registry.register(
            "query_seconds",
            "Time of questions about events with the wait for a permit",
            query_seconds.clone(),
        );
        registry.register(
            "query_answers",
            "Answers to questions, by whether they were computed before",
            Family::clone(&query_answers),
        );
        registry.register(
            "query_waiting",
            "Questions that wait for a permit",
            query_waiting.clone(),
        );
        registry.register(
            "query_memory_bytes",
            "Memory that questions use to compute their answers",
            query_memory_bytes.clone(),
        );
        let metrics = Self {
            requests,
            request_seconds,
            events_accepted,
            events_dropped,
            events_over_limit,
            events_altered,
            append_seconds,
            apply_lag_bytes,
            log_damaged_places,
            log_damaged_bytes,
            log_torn_bytes,
            segment_damage,
            segment_filter_bytes,
            segment_cache_bytes,
            segment_bucket_failures,
            store_errors,
            disk_free_bytes,
            disk_high_bytes,
            disk_low_bytes,
            backup_interval_seconds,
            backup_last_success_seconds,
            backup_duration_seconds,
            backup_bytes,
            backup_new_bytes,
            backup_failures,
            sign_ins_refused,
            process_start_seconds,
            process_resident_bytes,
            connections,
            connections_refused,
            proxy_headers_refused,
            tls_handshakes_failed,
            tls_certificate_expiry_seconds,
            tls_certificate_failures,
            trace_spans_exported,
            trace_spans_lost,
            export_runs,
            export_attempts_failed,
            export_rows,
            export_bytes,
            export_runs_active,
            plugin_calls,
            plugin_children,
            plugin_children_replaced,
            queries,
            query_seconds,
            query_answers,
            query_waiting,
            query_memory_bytes,
            registry: Arc::new(root),
        };
        metrics.begin_at_zero();
        metrics
    }

    /// Adds the series of all known labels. Without that, a series appears with its first
    /// event, and Prometheus does not see that increase.
    fn begin_at_zero(&self) {
        for surface in Surface::ALL {
            drop(self.request_seconds.get_or_create(&SurfaceLabel { surface }));
            for status in FAULTS {
                drop(self.requests.get_or_create(&RequestLabels { surface, status }));
            }
        }
        for reason in DropReason::ALL {
            self.count_drops(*reason, 0);
        }
        for limit in LimitName::OF_EVENTS {
            for action in limit.actions() {
                self.count_over_limit(limit, *action, 0);
            }
        }
        self.count_outcomes(Warning::ALL.iter().map(|warning| (Outcome::Altered(*warning), 0)));
        let ended = Status::ALL.into_iter().filter(|status| !status.is_active());
        let ended = ended.map(|status| (status, 0)).collect();
        self.count_exports(EngineCounts { ended, ..EngineCounts::default() });
        for effect in Effect::ALL {
            self.count_plugins(Ending::ALL.map(|ending| ((effect, ending), 0)));
        }
        for kind in questions::KINDS {
            drop(self.query_seconds.get_or_create(&KindLabel { kind }));
            for outcome in questions::Outcome::ALL {
                let labels = QueryLabels { kind, outcome: QueryOutcome(outcome) };
                drop(self.queries.get_or_create(&labels));
            }
        }
        for cache in [CACHE_HIT, CACHE_MISS] {
            drop(self.query_answers.get_or_create(&CacheLabel { cache }));
        }
    }

    /// Counts a question that has ended.
    pub fn count_question(&self, ended: questions::Ended) {
        let labels = QueryLabels { kind: ended.kind, outcome: QueryOutcome(ended.outcome) };
        self.queries.get_or_create(&labels).inc();
        let seconds = ended.took.as_secs_f64();
        self.query_seconds.get_or_create(&KindLabel { kind: ended.kind }).observe(seconds);
        if let Some(is_cached) = ended.is_cached {
            let cache = if is_cached { CACHE_HIT } else { CACHE_MISS };
            self.query_answers.get_or_create(&CacheLabel { cache }).inc();
        }
    }

    /// Counts an answer.
    pub fn count_request(&self, surface: Surface, status: u16, took: Duration) {
        self.requests.get_or_create(&RequestLabels { surface, status }).inc();
        self.request_seconds.get_or_create(&SurfaceLabel { surface }).observe(took.as_secs_f64());
    }

    /// Counts a dropped event.
    pub fn count_drops(&self, reason: DropReason, count: u64) {
        self.events_dropped.get_or_create(&ReasonLabel { reason: Reason(reason) }).inc_by(count);
    }

    /// Counts events that were decided on, if they are beyond a limit.
    pub fn count_admission(&self, admission: Admission, count: u64) {
        let (limit, action) = match admission {
            Admission::Take => return,
            Admission::Warn(limit) => (limit, LimitAction::Warn),
            Admission::Drop(limit) => (limit, LimitAction::Drop),
            Admission::Reject(over) => (over.limit, LimitAction::Reject),
        };
        self.count_over_limit(limit, action, count);
    }

    fn count_over_limit(&self, limit: LimitName, action: LimitAction, count: u64) {
        let labels = OverLimitLabels { limit: OfEvents(limit), action: BeyondLimit(action) };
        self.events_over_limit.get_or_create(&labels).inc_by(count);
    }

    /// Counts what processing did in addition to storing events.
    pub fn count_outcomes(&self, outcomes: impl IntoIterator<Item = (Outcome, u64)>) {
        for (outcome, count) in outcomes {
            match outcome {
                Outcome::Dropped(reason) => self.count_drops(reason, count),
                Outcome::Altered(warning) => {
                    let label = WarningLabel { warning: Altered(warning) };
                    self.events_altered.get_or_create(&label).inc_by(count);
                }
            }
        }
    }

    /// Counts what exports have done since the previous call.
    pub fn count_exports(&self, taken: EngineCounts) {
        for (status, count) in taken.ended {
            self.export_runs.get_or_create(&StatusLabel { status: Ended(status) }).inc_by(count);
        }
        self.export_attempts_failed.inc_by(taken.attempts_failed);
        self.export_rows.inc_by(taken.rows);
        self.export_bytes.inc_by(taken.bytes);
        self.export_runs_active.set(i64::try_from(taken.active).unwrap_or(i64::MAX));
    }

    /// Counts what plugins have done since the previous call.
    pub fn count_plugins(&self, taken: impl IntoIterator<Item = ((Effect, Ending), u64)>) {
        for ((effect, ending), count) in taken {
            let labels =
                PluginLabels { effect: PluginEffect(effect), outcome: PluginEnding(ending) };
            self.plugin_calls.get_or_create(&labels).inc_by(count);
        }
    }

    /// Shows how much space the disk has, and the thresholds.
    pub fn show_disk(&self, free: u64, marks: DiskMarks) {
        self.disk_free_bytes.set(free as f64);
        self.disk_high_bytes.set(marks.high as f64);
        self.disk_low_bytes.set(marks.low as f64);
    }

    /// Shows the last backup.
    pub fn show_backup(&self, last: &LastBackup) {
        self.backup_last_success_seconds.set(last.began_at.micros() as f64 / 1e6);
        self.backup_duration_seconds.set(Duration::from_millis(last.took_ms).as_secs_f64());
        self.backup_bytes.set(i64::try_from(last.bytes).unwrap_or(i64::MAX));
        self.backup_new_bytes.set(i64::try_from(last.new_bytes).unwrap_or(i64::MAX));
    }

    /// Counts the processes that run scripts of plugins.
    pub fn count_children(&self, children: Children) {
        self.plugin_children.set(i64::try_from(children.alive).unwrap_or(i64::MAX));
        self.plugin_children_replaced.inc_by(children.replaced);
    }

    /// The page that Prometheus reads.
    ///
    /// # Errors
    /// Never in practice: writing into a string does not fail.
    pub fn page(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// The service at the metrics address: one page.
#[derive(Clone)]
pub struct MetricsPage(pub Metrics);

impl RequestHandler for MetricsPage {
    async fn answer(&self, _peer: SocketAddr, request: Request<Incoming>) -> Response {
        if request.uri().path() != "/metrics" {
            return (StatusCode::NOT_FOUND, "The page is at /metrics.").into_response();
        }
        match self.0.page() {
            Ok(page) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], page).into_response(),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}

/// Buckets from 1 ms to 15 s.
fn seconds() -> Histogram {
    Histogram::new([0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0])
}

#[cfg(test)]
mod tests {

    use std::time::Duration;

    use weir_ingest::Outcome;
    use weir_model::Timestamp;
    use weir_model::outcomes::{DropReason, Warning};

    use super::Metrics;
    use crate::backup::LastBackup;
    use crate::dispatcher::Surface;

    #[test]
    fn the_page_names_everything() {
        let metrics = Metrics::new();
        metrics.count_request(Surface::Capture, 200, Duration::from_millis(3));
        metrics.count_drops(DropReason::InvalidUuid, 1);
        metrics.count_outcomes([(Outcome::Altered(Warning::MergeRefused), 2)]);
        let ended = [(weir_model::exports::Status::TimedOut, 4)].into();
        metrics.count_exports(weir_export::engine::EngineCounts {
            ended,
            rows: 5,
            ..Default::default()
        });
        metrics.count_plugins([((super::Effect::Transformed, super::Ending::Dropped), 3)]);
        metrics.count_children(super::Children { alive: 6, replaced: 2 });
        let page = metrics.page().unwrap();
        for line in [
            "weir_export_runs_total{status=\"TimedOut\"} 4",
            "weir_export_rows_total 5",
            "weir_plugin_calls_total{effect=\"transformed\",outcome=\"dropped\"} 3",
            "weir_plugin_children 6",
            "weir_plugin_children_replaced_total 2",
            "weir_http_requests_total{surface=\"capture\",status=\"200\"} 1",
            "weir_capture_events_dropped_total{reason=\"invalid_uuid\"} 1",
            "weir_ingest_events_altered_total{warning=\"cannot_merge_already_identified\"} 2",
            "weir_http_connections 0",
            "weir_segment_damage_total 0",
            "weir_segment_bucket_failures_total 0",
        ] {
            assert!(page.contains(line), "{page}");
        }
    }

    #[test]
    fn the_page_has_the_last_backup() {
        let metrics = Metrics::new();
        let last = LastBackup {
            directory: "/mnt/backups".into(),
            name: "20260601T100000.000Z-0123456789abcdef".to_owned(),
            began_at: Timestamp::from_micros(1_780_308_000_000_000),
            took_ms: 1_500,
            bytes: 7_000,
            new_bytes: 300,
        };
        metrics.show_backup(&last);
        let page = metrics.page().unwrap();
        for line in [
            "weir_backup_last_success_seconds 1780308000.0",
            "weir_backup_duration_seconds 1.5",
            "weir_backup_bytes 7000",
            "weir_backup_new_bytes 300",
        ] {
            assert!(page.lines().any(|shown| shown == line), "{line} in {page}");
        }
    }

    #[test]
    fn every_known_label_has_a_series_from_the_start() {
        let page = Metrics::new().page().unwrap();
        for line in [
            "process_start_time_seconds 0.0",
            "weir_http_request_seconds_count{surface=\"web\"} 0",
            "weir_http_requests_total{surface=\"capture\",status=\"500\"} 0",
            "weir_http_requests_total{surface=\"capture\",status=\"503\"} 0",
            "weir_capture_events_dropped_total{reason=\"not_processed\"} 0",
            "weir_ingest_events_altered_total{warning=\"event_name_cut\"} 0",
            "weir_capture_events_over_limit_total{limit=\"disk_bytes\",action=\"reject\"} 0",
            "weir_export_runs_total{status=\"FailedRetryable\"} 0",
            "weir_plugin_calls_total{effect=\"ran\",outcome=\"failed\"} 0",
            "weir_sign_ins_refused_total 0",
            "weir_backup_failures_total 0",
            "weir_backup_interval_seconds 0.0",
            "weir_backup_last_success_seconds 0.0",
            "weir_tls_certificate_failures_total 0",
            "weir_tls_certificate_expiry_seconds 0.0",
            "weir_trace_spans_lost_total 0",
        ] {
            assert!(page.lines().any(|shown| shown == line), "{line} in {page}");
        }
        assert!(!page.contains("status=\"Running\""), "{page}");
    }
}
