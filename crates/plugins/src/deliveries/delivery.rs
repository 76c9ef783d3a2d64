//! One delivery to a destination: reading events, passing them to the script, sending the
//! requests that it returns, advancing the position.
//!
//! Events are delivered at least once. While the failed part of a batch is retried, the
//! successful part is not repeated unless the service stops in between. A long delivery
//! ends within a batch, and the next one continues there.

use std::collections::VecDeque;
use std::time::Duration;

use weir_model::Timestamp;
use weir_store::events::{Scan, Selection, StoredEvent, size};
use weir_store::plugin_runtime::cursors::{self, Cursor};

use super::back_off::{is_enough, pause};
use super::{FROM_NEWEST, send};
use crate::Shared;
use crate::metrics::Effect;
use crate::registry::Active;
use crate::report::Tally;

/// Events of a batch.
const EVENTS: usize = 100;
/// No event is added to a batch of more bytes.
const BYTES: usize = 1 << 20;
/// A delivery starts nothing new after this time.
const LONG: Duration = Duration::from_secs(5);
/// Pause after a fault of the store.
const STORE_PAUSE: Duration = Duration::from_secs(5);

/// The progress of a config.
#[derive(Debug, Default)]
pub(super) struct Progress {
    cursor: Option<Cursor>,
    /// The rest of the batch after the position: failed events, and events that were not
    /// passed to the script yet.
    left: Vec<StoredEvent>,
    /// The arrival number at which the batch ends.
    end: u64,
    /// The time of the next delivery, of a monotonic clock.
    pub(super) next: Duration,
}

impl Progress {
    /// Whether there may be events up to this watermark.
    pub(super) fn has_work(&self, mark: u64) -> bool {
        self.cursor.is_none_or(|cursor| cursor.after < mark)
    }
}

/// Why an event was not delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    /// Shown to members.
    pub(super) message: String,
    /// A retry is not expected to help.
    pub(super) is_permanent: bool,
}

/// Runs one delivery.
pub(super) async fn take(shared: &Shared, active: &Active, progress: &mut Progress, mark: u64) {
    let deadline = shared.services.uptime() + LONG;
    if let Err(error) = work(shared, active, progress, mark, deadline).await {
        if !matches!(error, weir_store::Error::Stopped) {
            tracing::error!(config = %active.id(), %error, "a delivery was put off");
        }
        progress.next = shared.services.uptime() + STORE_PAUSE;
    }
}

async fn work(
    shared: &Shared,
    active: &Active,
    progress: &mut Progress,
    mark: u64,
    deadline: Duration,
) -> weir_store::Result<()> {
    let (project, config) = (active.project(), active.id());
    let mut cursor = match progress.cursor {
        Some(cursor) => cursor,
        None => {
            let stored = cursors::cursor(&shared.store, config).await?;
            // A new config starts here; the position is stored.
            let begun = Cursor { config, after: mark, tries: 0, failed_since: None };
            let cursor = stored.filter(|stored| stored.after < FROM_NEWEST).unwrap_or(begun);
            save(shared, active, progress, cursor).await?;
            cursor
        }
    };
    let mut read = Reading { scan: None, events: VecDeque::new(), after: cursor.after };
    while !shared.is_stopped() && shared.services.uptime() < deadline {
        let batch = match progress.left.is_empty() {
            false => std::mem::take(&mut progress.left),
            true => {
                let batch = read.batch(shared, active, mark).await?;
                progress.end = batch.last().map_or(mark, |event| event.arrival);
                batch
            }
        };
        let is_last = batch.is_empty();
        let Tried { failed, rest } =
            deliver(shared, active, batch, cursor.tries > 0, deadline).await?;
        let Some((_, first)) = failed.first() else {
            cursor = passed(progress, cursor, rest);
            read.after = read.after.max(cursor.after);
            save(shared, active, progress, cursor).await?;
            if is_last {
                return Ok(());
            }
            continue;
        };
        let now = shared.services.now();
        let since = cursor.failed_since.unwrap_or(now);
        let tries = cursor.tries.saturating_add(1);
        let is_permanent = failed.iter().all(|(_, fault)| fault.is_permanent);
        if is_enough(tries, since, now, is_permanent) {
            give_up(shared, active, &failed, tries, now);
            cursor = passed(progress, cursor, rest);
            read.after = read.after.max(cursor.after);
            save(shared, active, progress, cursor).await?;
            continue;
        }
        let sample = failed.first().map(|(event, _)| send::sample(shared, event, project));
        shared.report.fault(&active.row, &first.message, sample.as_deref(), now);
        progress.left = failed.into_iter().map(|(event, _)| event).chain(rest).collect();
        progress.next = shared.services.uptime() + pause(tries);
        cursor = Cursor { tries, failed_since: Some(since), ..cursor };
        return save(shared, active, progress, cursor).await;
    }
    Ok(())
}

/// The position when no failure is left: after the batch, if the batch is finished.
fn passed(progress: &mut Progress, cursor: Cursor, rest: Vec<StoredEvent>) -> Cursor {
    let after = if rest.is_empty() { progress.end } else { cursor.after };
    progress.left = rest;
    Cursor { after, tries: 0, failed_since: None, ..cursor }
}

/// Reports events that reached the limit of attempts, and skips them.
fn give_up(
    shared: &Shared,
    active: &Active,
    failed: &[(StoredEvent, Failed)],
    tries: u32,
    now: Timestamp,
) {
    let (project, config) = (active.project(), active.id());
    let Some((event, fault)) = failed.first() else { return };
    let count = failed.len();
    let message = format!(
        "{count} events were given up after {tries} tries, the first of them {}: {}",
        event.uuid, fault.message
    );
    let sample = send::sample(shared, event, project);
    shared.report.fault(&active.row, &message, Some(&sample), now);
    let tally = Tally { failed: count as u64, ..Tally::default() };
    shared.metrics.count(Effect::Delivered, tally);
    shared.report.count(project, config, tally, now);
}

async fn save(
    shared: &Shared,
    active: &Active,
    progress: &mut Progress,
    cursor: Cursor,
) -> weir_store::Result<()> {
    // The scheduler of deliveries notices a deleted config.
    cursors::save_cursor(&shared.store, active.project(), &cursor).await?;
    progress.cursor = Some(cursor);
    Ok(())
}

/// The rest of a batch.
#[derive(Debug, Default)]
struct Tried {
    failed: Vec<(StoredEvent, Failed)>,
    /// Not passed to the script: the delivery reached its time limit.
    rest: Vec<StoredEvent>,
}

/// Passes a batch to the script; returns the failed events.
async fn deliver(
    shared: &Shared,
    active: &Active,
    mut batch: Vec<StoredEvent>,
    is_again: bool,
    deadline: Duration,
) -> weir_store::Result<Tried> {
    if batch.is_empty() {
        return Ok(Tried::default());
    }
    let results = send::send(shared, active, &batch, is_again, deadline).await?;
    let rest = batch.split_off(results.len().min(batch.len()));
    let mut failed = Vec::new();
    let mut tally = Tally::default();
    for (event, result) in batch.into_iter().zip(results) {
        match result {
            None => tally.succeeded += 1,
            Some(fault) => failed.push((event, fault)),
        }
    }
    shared.metrics.count(Effect::Delivered, tally);
    shared.report.count(active.project(), active.id(), tally, shared.services.now());
    Ok(Tried { failed, rest })
}

/// Events after a position.
struct Reading {
    scan: Option<Scan>,
    events: VecDeque<StoredEvent>,
    after: u64,
}

impl Reading {
    /// The next events up to the watermark. An empty result means that there are no more.
    async fn batch(
        &mut self,
        shared: &Shared,
        active: &Active,
        mark: u64,
    ) -> weir_store::Result<Vec<StoredEvent>> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < EVENTS && bytes < BYTES {
            if self.events.is_empty() {
                let scan = match &mut self.scan {
                    Some(scan) => scan,
                    none => {
                        let selection =
                            Selection { after: self.after, up_to: mark, ..Selection::default() };
                        let begun = Scan::begin(&shared.store, active.project(), selection).await?;
                        none.insert(begun)
                    }
                };
                let Some(events) = scan.next().await? else { break };
                let own = |event: &StoredEvent| send::is_made_by(event, active.id());
                self.events.extend(events.into_iter().filter(|event| !own(event)));
                continue;
            }
            let Some(event) = self.events.pop_front() else { break };
            bytes += size(&event);
            batch.push(event);
        }
        Ok(batch)
    }
}
