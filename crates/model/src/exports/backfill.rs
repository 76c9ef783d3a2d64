//! Backfills as the API shows them (EXP-10).

use serde::{Deserialize, Serialize};

use super::Status;
use crate::ids::{BackfillId, BatchExportId, ProjectId};
use crate::time::Timestamp;

/// A stretch of time that is exported anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Backfill {
    /// Id.
    pub id: BackfillId,
    /// The project.
    pub team: ProjectId,
    /// The export.
    pub batch_export: BatchExportId,
    /// The first instant; null: from the first event.
    pub start_at: Option<Timestamp>,
    /// The instant after the last one.
    pub end_at: Timestamp,
    /// How far it is.
    pub status: Status,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// When it last changed.
    pub last_updated_at: Timestamp,
    /// How many of its runs are done; null when that is not known or not of use.
    pub progress: Option<BackfillProgress>,
    /// Events that its runs delivered so far; null before the first run ended.
    pub total_records_count: Option<i64>,
    /// Where it begins in fact, when there is nothing before.
    pub adjusted_start_at: Option<Timestamp>,
}

/// How far a backfill is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BackfillProgress {
    /// Runs that it takes.
    pub total_runs: u64,
    /// Runs that ended.
    pub finished_runs: u64,
    /// Their part of all, from 0 to 1, with one decimal.
    pub progress: f64,
}

impl BackfillProgress {
    /// The progress of a backfill of this status; none where it says nothing.
    #[must_use]
    pub fn of(status: Status, total_runs: Option<u64>, finished_runs: u64) -> Option<Self> {
        let total_runs = total_runs?;
        let progress = match status {
            Status::Completed => 1.0,
            Status::Starting | Status::Running => {
                let tenths = finished_runs.saturating_mul(10).checked_div(total_runs).unwrap_or(0);
                u8::try_from(tenths.min(10)).map_or(0.0, |tenths| f64::from(tenths) / 10.0)
            }
            _ => return None,
        };
        Some(Self { total_runs, finished_runs, progress })
    }
}

#[cfg(test)]
mod tests {
    use super::{BackfillProgress, Status};

    #[test]
    fn progress_has_one_decimal_and_ends_at_one() {
        let of = |status, total, finished| {
            BackfillProgress::of(status, total, finished).map(|progress| progress.progress)
        };
        assert_eq!(of(Status::Running, Some(3), 1), Some(0.3));
        assert_eq!(of(Status::Running, Some(3), 9), Some(1.0));
        assert_eq!(of(Status::Starting, Some(0), 0), Some(0.0));
        assert_eq!(of(Status::Completed, Some(0), 0), Some(1.0));
        assert_eq!(of(Status::Failed, Some(3), 1), None);
        assert_eq!(of(Status::Running, None, 1), None);
    }
}
