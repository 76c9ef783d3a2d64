//! Sends a plan to a host: one thread reads and compresses, another one sends.
//!
//! What belongs here: connecting the parts, and finding the position where an earlier run
//! ended. What does not: delivering a request ([`crate::deliver`]).

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::arguments::Target;
use crate::batch::{self, Batch, Limits};
use crate::cursor::Cursor;
use crate::deliver::{Delivery, Ended, Pace, RetryPolicy};
use crate::error::ImportError;
use crate::host::ImportServer;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::report::Report;
use crate::summary::{Outcome, Summary};
use crate::walk::{Position, Walk};

/// Batches that are prepared while one is being sent.
const READY: usize = 2;

/// Sends the events after the cursor.
pub(crate) async fn send(
    plan: &Plan,
    target: &Target,
    mut cursor: Cursor,
    cursor_path: PathBuf,
    rate: Option<NonZeroU32>,
    patience: RetryPolicy,
) -> Result<Summary, ImportError> {
    let accepted_before = cursor.accepted;
    let limits = Limits::for_rate(rate.map(NonZeroU32::get));
    let progress = Progress::of_sending(cursor.events, cursor.accepted + cursor.refused);
    let (batches, filled) = mpsc::channel(READY);
    let filling = Filling {
        walk: plan.walk(Arc::default()),
        limits: limits.clone(),
        key: target.key.clone(),
        behind: cursor.position.clone(),
        batches,
    };
    let mut delivery = Delivery {
        host: ImportServer::new(&target.address)?,
        key: &target.key,
        files: plan.inputs.iter().map(|(input, _)| input.name.clone()).collect(),
        cursor: &mut cursor,
        cursor_path: &cursor_path,
        limits,
        patience,
        pace: Pace::new(rate),
        progress: progress.clone(),
        stop: plan.stop.clone(),
        began: None,
        requests: 0,
        refused: Vec::new(),
        answered: false,
    };
    if accepted_before > 0 {
        progress.note(Some("finding the place where it ended".to_owned()));
    }
    let shown = progress.show();
    let filling = tokio::task::spawn_blocking(move || filling.run());
    let ended = delivery.run(filled).await;
    let took = delivery.began.map(|began| began.elapsed()).unwrap_or_default();
    let (requests, refused_at) = (delivery.requests, delivery.refused);
    let report = filling.await?;
    shown.end().await;

    // If the batches are incomplete, the end of the delivery is not a success.
    let report = report.map_err(|error| match error {
        NotFilled::Error(error) => error,
        NotFilled::Changed => ImportError::Changed {
            what: "what has been sent is not in the files any more".to_owned(),
            path: cursor_path.clone(),
        },
    })?;
    let outcome = match ended? {
        Ended::Complete => Outcome::Complete,
        Ended::Interrupted => Outcome::Interrupted,
        Ended::Stopped(reason) => Outcome::Stopped(reason),
    };
    let is_complete = outcome == Outcome::Complete;
    if is_complete {
        Cursor::remove(&cursor_path)?;
    }
    Ok(Summary {
        outcome,
        to: Some(target.shown()),
        files: plan.files(),
        report,
        accepted: cursor.accepted,
        accepted_before,
        links: cursor.links,
        refused: cursor.refused,
        refused_at,
        requests,
        took,
        cursor: (!is_complete).then_some(cursor_path),
    })
}

/// Prepares batches on a separate thread.
struct Filling {
    walk: Walk,
    limits: Limits,
    key: String,
    /// Everything up to this position was sent before.
    behind: Option<Position>,
    batches: mpsc::Sender<Batch>,
}

/// Why there are no more batches although there should be.
enum NotFilled {
    Error(ImportError),
    /// Lines that were sent before are no longer in the files.
    Changed,
}

impl From<ImportError> for NotFilled {
    fn from(error: ImportError) -> Self {
        Self::Error(error)
    }
}

impl Filling {
    fn run(mut self) -> Result<Report, NotFilled> {
        self.pass_by()?;
        while let Some(batch) = batch::fill(&mut self.walk, &self.limits, &self.key)? {
            if self.batches.blocking_send(batch).is_err() {
                break;
            }
        }
        Ok(self.walk.into_report())
    }

    /// Walks to the position where the earlier run ended. It reads all lines before it:
    /// duplicates are reported again, and a changed beginning is noticed.
    fn pass_by(&mut self) -> Result<(), NotFilled> {
        let Some(behind) = self.behind.take() else { return Ok(()) };
        let goal = Some((behind.file, behind.within.line));
        loop {
            let found = self.walk.next()?;
            if self.walk.is_stopped() {
                return Ok(());
            }
            if found.is_some() && self.walk.here() < goal {
                continue;
            }
            let is_there = self.walk.position().as_ref() == Some(&behind);
            return if is_there { Ok(()) } else { Err(NotFilled::Changed) };
        }
    }
}
