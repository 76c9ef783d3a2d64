//! Reports about configs: counts, faults, log lines.
//!
//! What belongs here: collecting reports, and writing them once a second. What does not:
//! which results count as faults.

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use weir_model::plugin_configs::{LogLevel, LogSource};
use weir_model::{PluginConfigId, ProjectId, Timestamp};
use weir_store::Store;
use weir_store::plugin_configs::ConfigRow;
use weir_store::plugin_runtime::health::{self, Fault, Note};
use weir_store::plugin_runtime::logs::{self, Line};

/// Log lines of one config per write. Further lines are only counted.
const LINES: usize = 200;
/// Maximum bytes of a log line.
const LINE: usize = 4_000;
/// Maximum metrics of one config.
const METRICS: usize = 50;
/// Maximum bytes of a metric name.
const METRIC: usize = 200;
/// Microseconds of an hour.
const HOUR: i64 = 3_600_000_000;

/// What a config did in a period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) dropped: u64,
}

/// How a value is combined with earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joined {
    Sum,
    Least,
    Most,
}

/// Reports that are not written yet.
#[derive(Debug, Default)]
pub(crate) struct Report {
    waiting: Mutex<Waiting>,
    metrics: Mutex<HashMap<PluginConfigId, BTreeMap<String, f64>>>,
}

#[derive(Debug, Default)]
struct Waiting {
    notes: HashMap<(PluginConfigId, i64), Note>,
    lines: HashMap<PluginConfigId, Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    lines: Vec<Line>,
    omitted: usize,
}

impl Report {
    /// Counts events.
    pub(crate) fn count(
        &self,
        project: ProjectId,
        config: PluginConfigId,
        tally: Tally,
        now: Timestamp,
    ) {
        if tally != Tally::default() {
            add(self.waiting.lock().note(project, config, now), tally);
        }
    }

    /// Records a fault of a config as it ran, with the event that caused it. The fault is
    /// shown with the config, unless the config was changed since, and is added to its
    /// log.
    pub(crate) fn fault(
        &self,
        config: &ConfigRow,
        message: &str,
        sample: Option<&str>,
        now: Timestamp,
    ) {
        let fault =
            Fault { message: message.to_owned(), at: now, sample: sample.map(str::to_owned) };
        let revision = config.revision;
        self.waiting.lock().note(config.project, config.id, now).fault = Some((revision, fault));
        self.line(config.id, LogSource::System, LogLevel::Error, message, now);
    }

    /// Adds a log line.
    pub(crate) fn line(
        &self,
        config: PluginConfigId,
        source: LogSource,
        level: LogLevel,
        message: &str,
        now: Timestamp,
    ) {
        let mut waiting = self.waiting.lock();
        let of = waiting.lines.entry(config).or_default();
        // A repeated line is written once.
        let repeats = of.lines.last().is_some_and(|last| {
            last.source == source && last.level == level && last.message == message
        });
        if repeats && source == LogSource::System {
            return;
        }
        if of.lines.len() >= LINES {
            of.omitted += 1;
            return;
        }
        let message = message.get(..message.floor_char_boundary(LINE)).unwrap_or_default();
        of.lines.push(Line { config, at: now, source, level, message: message.to_owned() });
    }

    /// Changes a metric. Metrics are written into the log periodically.
    pub(crate) fn metric(&self, config: PluginConfigId, name: &str, joined: Joined, value: f64) {
        if name.len() > METRIC {
            return;
        }
        let mut metrics = self.metrics.lock();
        let of = metrics.entry(config).or_default();
        if of.len() >= METRICS && !of.contains_key(name) {
            return;
        }
        of.entry(name.to_owned())
            .and_modify(|present| {
                *present = match joined {
                    Joined::Sum => *present + value,
                    Joined::Least => (*present).min(value),
                    Joined::Most => (*present).max(value),
                }
            })
            .or_insert(value);
    }

    /// Adds a log line for each config with its metrics since the last call.
    pub(crate) fn update_metrics(&self, now: Timestamp) {
        let metrics = std::mem::take(&mut *self.metrics.lock());
        for (config, values) in metrics {
            let values: Vec<String> =
                values.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let message = format!("metrics: {}", values.join(", "));
            self.line(config, LogSource::Plugin, LogLevel::Info, &message, now);
        }
    }

    /// Writes pending reports. Reports that cannot be written stay pending.
    pub(crate) async fn flush(&self, store: &Store, now: Timestamp) {
        let Waiting { notes, lines } = std::mem::take(&mut *self.waiting.lock());
        if !notes.is_empty() {
            let list: Vec<Note> = notes.values().cloned().collect();
            if let Err(error) = health::note(store, &list).await {
                tracing::error!(%error, "plugin health was not written yet");
                self.put_back(notes);
            }
        }
        let mut list = Vec::new();
        for (config, Lines { lines, omitted }) in lines {
            list.extend(lines);
            if omitted > 0 {
                let message = format!("{omitted} further lines were omitted");
                let (source, level) = (LogSource::System, LogLevel::Info);
                list.push(Line { config, at: now, source, level, message });
            }
        }
        if !list.is_empty()
            && let Err(error) = logs::append(store, &list).await
        {
            tracing::error!(%error, lines = list.len(), "lines of plugins were not written");
        }
    }

    fn put_back(&self, notes: HashMap<(PluginConfigId, i64), Note>) {
        let mut waiting = self.waiting.lock();
        for (key, note) in notes {
            match waiting.notes.get_mut(&key) {
                Some(newer) => {
                    let Note { succeeded, failed, dropped, fault, .. } = note;
                    add(newer, Tally { succeeded, failed, dropped });
                    newer.fault = newer.fault.take().or(fault);
                }
                None => {
                    waiting.notes.insert(key, note);
                }
            }
        }
    }
}

fn add(note: &mut Note, tally: Tally) {
    note.succeeded += tally.succeeded;
    note.failed += tally.failed;
    note.dropped += tally.dropped;
}

impl Waiting {
    fn note(&mut self, project: ProjectId, config: PluginConfigId, now: Timestamp) -> &mut Note {
        let hour = now.micros().div_euclid(HOUR);
        self.notes.entry((config, hour)).or_insert_with(|| Note {
            config,
            project,
            hour,
            succeeded: 0,
            failed: 0,
            dropped: 0,
            fault: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_few_and_their_names_short() {
        let report = Report::default();
        let config = PluginConfigId(1);
        report.metric(config, &"x".repeat(METRIC + 1), Joined::Sum, 1.0);
        for number in 0..METRICS + 10 {
            report.metric(config, &format!("n{number}"), Joined::Sum, 1.0);
        }
        assert_eq!(report.metrics.lock()[&config].len(), METRICS);
        report.update_metrics(Timestamp::from_micros(0));
        assert!(report.metrics.lock().is_empty());
        assert_eq!(report.waiting.lock().lines[&config].lines.len(), 1);
    }
}
