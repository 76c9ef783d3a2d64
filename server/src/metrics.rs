//! Counters and gauges, as text for Prometheus on a separate address.
//!
//! What belongs here: names, labels (`labels`), counting (`count`) and the page.

mod count;
mod labels;
pub(crate) mod memory;
mod page;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

pub use labels::{
    Altered, BeyondLimit, CacheLabel, CheckLabel, DeliveryLabel, Ended, KindLabel, OfEvents,
    OverLimitLabels, PluginEffect, PluginEnding, PluginLabels, QueryLabels, QueryOutcome, Reason,
    ReasonLabel, RequestLabels, StatusLabel, SurfaceLabel, WarningLabel,
};
pub use page::MetricsPage;

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
    /// Checks of alerts by outcome.
    pub alert_checks: Family<CheckLabel, Counter>,
    /// Subscriptions that were due by outcome.
    pub subscription_deliveries: Family<DeliveryLabel, Counter>,
    registry: Arc<Registry>,
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
        let alert_checks = Family::default();
        let subscription_deliveries = Family::default();

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
        registry.register(
            "alert_checks",
            "Checks of alerts on insights, by outcome",
            Family::clone(&alert_checks),
        );
        registry.register(
            "subscription_deliveries",
            "Subscriptions that were due, by outcome",
            Family::clone(&subscription_deliveries),
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
            alert_checks,
            subscription_deliveries,
            registry: Arc::new(root),
        };
        metrics.begin_at_zero();
        metrics
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

/// Buckets from 1 ms to 15 s.
fn seconds() -> Histogram {
    Histogram::new([0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0])
}

#[cfg(test)]
mod tests;
