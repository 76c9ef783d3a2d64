//! The page, and the series that are on it from the start.

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
    metrics
        .count_plugins([((weir_plugins::Effect::Transformed, weir_plugins::Ending::Dropped), 3)]);
    metrics.count_alert_checks([(weir_service::alerts::CheckOutcome::Firing, 2)]);
    metrics.count_deliveries([(weir_service::subscriptions::DeliveryOutcome::Sent, 7)]);
    metrics.count_children(weir_plugins::Children { alive: 6, replaced: 2 });
    let page = metrics.page().unwrap();
    for line in [
        "weir_export_runs_total{status=\"TimedOut\"} 4",
        "weir_export_rows_total 5",
        "weir_plugin_calls_total{effect=\"transformed\",outcome=\"dropped\"} 3",
        "weir_alert_checks_total{outcome=\"firing\"} 2",
        "weir_subscription_deliveries_total{outcome=\"sent\"} 7",
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
        "weir_alert_checks_total{outcome=\"not_firing\"} 0",
        "weir_subscription_deliveries_total{outcome=\"skipped\"} 0",
    ] {
        assert!(page.lines().any(|shown| shown == line), "{line} in {page}");
    }
    assert!(!page.contains("status=\"Running\""), "{page}");
}
