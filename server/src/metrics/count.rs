//! Counting, and showing what is measured elsewhere.

use std::time::Duration;

use weir_export::engine::EngineCounts;
use weir_ingest::Outcome;
use weir_model::exports::Status;
use weir_model::limits::{LimitAction, LimitName};
use weir_model::outcomes::{DropReason, Warning};
use weir_plugins::{Children, Effect, Ending};
use weir_service::alerts::CheckOutcome;
use weir_service::limits::Admission;
use weir_service::questions;
use weir_service::subscriptions::DeliveryOutcome;
use weir_store::disk::DiskMarks;

use super::Metrics;
use super::labels::{
    Altered, BeyondLimit, CacheLabel, CheckLabel, DeliveryLabel, Ended, KindLabel, OfEvents,
    OverLimitLabels, PluginEffect, PluginEnding, PluginLabels, QueryLabels, QueryOutcome, Reason,
    ReasonLabel, RequestLabels, StatusLabel, SurfaceLabel, WarningLabel,
};
use crate::backup::LastBackup;
use crate::dispatcher::Surface;

/// Statuses of answers that begin at zero, because alerts read them. Other statuses begin
/// with their first answer.
const FAULTS: [u16; 2] = [500, 503];

/// Values of [`CacheLabel`].
const CACHE_HIT: &str = "hit";
const CACHE_MISS: &str = "miss";

impl Metrics {
    /// Adds the series of all known labels. Without that, a series appears with its first
    /// event, and Prometheus does not see that increase.
    pub(super) fn begin_at_zero(&self) {
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
        self.count_alert_checks(CheckOutcome::ALL.map(|outcome| (outcome, 0)));
        self.count_deliveries(DeliveryOutcome::ALL.map(|outcome| (outcome, 0)));
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

    /// Counts the checks of alerts since the previous call.
    pub fn count_alert_checks(&self, taken: impl IntoIterator<Item = (CheckOutcome, u64)>) {
        for (outcome, count) in taken {
            let label = CheckLabel { outcome: outcome.text() };
            self.alert_checks.get_or_create(&label).inc_by(count);
        }
    }

    /// Counts the subscriptions that were due since the previous call.
    pub fn count_deliveries(&self, taken: impl IntoIterator<Item = (DeliveryOutcome, u64)>) {
        for (outcome, count) in taken {
            let label = DeliveryLabel { outcome: outcome.text() };
            self.subscription_deliveries.get_or_create(&label).inc_by(count);
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
}
