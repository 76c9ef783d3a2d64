//! `weir import`: sends events from files to a host that accepts them like Weir (ING-60).
//!
//! ```text
//! files -source-> lines -format-> Draft -event-> Event -batch-> Batch -deliver-> host
//!                                   │                              │
//!                                 report                         cursor
//! ```
//!
//! What belongs here: reading and checking files, the formats of other tools, and
//! delivering the events completely and once. What does not: storing them
//! (`weir-ingest`). This crate knows only the address of the host, so the host can be a
//! remote machine.
//!
//! All files are checked before anything is sent. Every event has a uuid that is computed
//! from its line, and a host stores a uuid once: sending an event again, after a crash or
//! by a second import, changes nothing.

mod arguments;
mod batch;
mod cursor;
mod defect;
mod deliver;
mod error;
mod event;
mod format;
mod host;
mod identity;
mod object;
mod plan;
mod progress;
mod recent;
mod report;
mod sending;
mod source;
mod stop;
mod summary;
mod time;
mod walk;

use std::io::Write as _;

use weir_model::Timestamp;

pub use arguments::Arguments;
pub use defect::{DefectKind, Effect};
pub use deliver::RetryPolicy;
pub use error::ImportError;
pub use format::Format;
pub use report::{Finding, LineRef, Report};
pub use summary::{Outcome, Summary, SummaryFile};

use cursor::Cursor;
use plan::Plan;
use stop::Stop;

/// Runs `weir import` and prints the summary to standard output.
///
/// # Errors
/// [`ImportError`]; [`ImportError::Unfinished`] if the summary reports defects or an
/// early end.
pub async fn run(arguments: &Arguments, now: Timestamp) -> Result<(), ImportError> {
    let summary = import(arguments, now, RetryPolicy::default()).await?;
    let text = if arguments.json { summary.to_json().to_string() } else { summary.to_string() };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(ImportError::Print)?;
    match summary.failure() {
        None => Ok(()),
        Some(failure) => Err(ImportError::Unfinished(failure)),
    }
}

/// Checks the files and sends their events. `now` is the time of the import.
///
/// # Errors
/// [`ImportError`] if there is nothing to summarize.
pub async fn import(
    arguments: &Arguments,
    now: Timestamp,
    patience: RetryPolicy,
) -> Result<Summary, ImportError> {
    let stop = Stop::on_signals().map_err(ImportError::Signals)?;
    if arguments.dry_run {
        let plan = Plan::new(arguments, now, stop)?;
        let report = plan.check().await?;
        return Ok(plan.checked(report, None));
    }
    let target = arguments.target()?;
    let plan = Plan::new(arguments, now, stop)?;
    let job = plan.job(&target);
    let cursor_path = arguments.cursor_path();
    let cursor = match Cursor::load(&cursor_path, &job)? {
        Some(cursor) => cursor,
        None => {
            let report = plan.check().await?;
            if plan.stop.is_requested() || report.skipped > 0 && !arguments.skip_invalid {
                return Ok(plan.checked(report, Some(&target)));
            }
            let cursor = Cursor::begin(job, report.events);
            // Saved here, so that a fault is found before the first request.
            cursor.save(&cursor_path)?;
            cursor
        }
    };
    sending::send(&plan, &target, cursor, cursor_path, arguments.rate, patience).await
}
