//! Backfills as the API returns them (EXP-10).

use serde::{Deserialize, Serialize};

use super::Status;
use crate::ids::{BackfillId, BatchExportId, ProjectId};
use crate::time::Timestamp;

/// A past range of time that is exported again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Backfill {
    /// Unique id of the backfill.
    pub id: BackfillId,
    /// The project.
    pub team: ProjectId,
    /// The export.
    pub batch_export: BatchExportId,
    /// Start of the range (inclusive); null: the first event.
    pub start_at: Option<Timestamp>,
    /// End of the range (exclusive).
    pub end_at: Timestamp,
    /// Status of the backfill.
    pub status: Status,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time at which it finished.
    pub finished_at: Option<Timestamp>,
    /// Time of the last change.
    pub last_updated_at: Timestamp,
    /// Finished and total runs; null if the total is unknown, or if the backfill failed or
    /// was cancelled.
    pub progress: Option<BackfillProgress>,
    /// Events that its runs have delivered; null before the first run has finished.
    pub total_records_count: Option<i64>,
    /// Start of the first interval with events, if it is later than `start_at`.
    pub adjusted_start_at: Option<Timestamp>,
}

/// Progress of a backfill.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BackfillProgress {
    /// Total number of runs.
    pub total_runs: u64,
    /// Number of finished runs.
    pub finished_runs: u64,
    /// Fraction of finished runs, from 0 to 1, with one decimal.
    pub progress: f64,
}

impl BackfillProgress {
    /// The progress of a backfill with this status; `None` if the total is
    /// unknown, or if the backfill failed or was cancelled.
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
