//! Log lines of a run, as members see them.
//!
//! What belongs here: numbering and storing lines. What does not: their texts (`attempt`,
//! `run`).

use weir_model::exports::{LogLevel, LogLine};
use weir_model::{BatchExportId, RunId, Timestamp};
use weir_store::Store;
use weir_store::exports::logs;

/// Line numbers that one attempt can use. Two attempts never use the same number.
const OF_A_TRY: u32 = 1_000;

/// Writes the lines of a run.
pub(super) struct RunLog {
    store: Store,
    export: BatchExportId,
    run: RunId,
    next: u32,
}

impl RunLog {
    pub(super) fn new(store: Store, export: BatchExportId, run: RunId, attempt: u32) -> Self {
        let next = attempt.saturating_mul(OF_A_TRY);
        Self { store, export, run, next }
    }

    /// Adds a line. A line that cannot be written does not stop the run.
    pub(super) async fn add(&mut self, now: Timestamp, level: LogLevel, message: String) {
        let line = LogLine {
            log_source_id: self.export,
            instance_id: self.run,
            timestamp: now,
            level,
            message: message.replace('\0', ""),
        };
        self.next = self.next.saturating_add(1);
        if let Err(error) = logs::add(&self.store, &line, self.next).await {
            tracing::warn!(run = %self.run, %error, "a line of an export's run was not kept");
        }
    }
}
