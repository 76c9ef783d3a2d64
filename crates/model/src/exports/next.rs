//! When an export runs next, as far as its schedule says (batch-exports 3).

use super::BatchExport;
use crate::time::Timestamp;

impl BatchExport {
    /// When the schedule starts the next run, if nothing is changed until then;
    /// none: it starts no more.
    #[must_use]
    pub fn next_run(&self, now: Timestamp) -> Option<Timestamp> {
        if self.paused {
            return None;
        }
        let mut next = self.interval.boundary_after(now);
        if let Some(from) = self.start_at.filter(|from| next < *from) {
            // The first interval that does not end before the start.
            let before = Timestamp::from_micros(from.micros().saturating_sub(1));
            next = self.interval.boundary_after(before);
        }
        self.end_at.is_none_or(|until| next <= until).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::exports::{Destination, ExportModel, Interval};
    use crate::ids::{BatchExportId, ProjectId};

    fn time(text: &str) -> Timestamp {
        Timestamp::parse_lenient(&format!("2026-08-{text}")).unwrap()
    }

    fn export() -> BatchExport {
        BatchExport {
            id: BatchExportId(uuid::Uuid::nil()),
            team_id: ProjectId(1),
            name: "Nightly".to_owned(),
            destination: Destination { kind: "NoOp".to_owned(), config: Map::new() },
            model: ExportModel::Events,
            interval: Interval::Hour,
            paused: false,
            created_at: time("01T00:00"),
            last_updated_at: time("01T00:00"),
            last_paused_at: None,
            start_at: None,
            end_at: None,
            latest_runs: Vec::new(),
            hogql_query: None,
            schema: None,
            backfill_id: None,
        }
    }

    #[test]
    fn the_next_run_is_at_the_end_of_an_interval_within_the_window() {
        let next = |export: &BatchExport| {
            export.next_run(time("21T14:20")).map(|next| next.to_string()[8..16].to_owned())
        };
        let plain = export();
        assert_eq!(next(&plain).as_deref(), Some("21T15:00"));
        assert_eq!(next(&BatchExport { paused: true, ..plain.clone() }), None);
        for (start, expected) in [("21T14:30", "21T15:00"), ("21T17:00", "21T17:00")] {
            let later = BatchExport { start_at: Some(time(start)), ..plain.clone() };
            assert_eq!(next(&later).as_deref(), Some(expected), "{start}");
        }
        for (end, expected) in [("21T15:00", Some("21T15:00")), ("21T14:59", None)] {
            let ended = BatchExport { end_at: Some(time(end)), ..plain.clone() };
            assert_eq!(next(&ended).as_deref(), expected, "{end}");
        }
    }
}
