//! Work that the service does at intervals.
//!
//! What belongs here: when it is done, and what a failure means. What does not: the work
//! itself, which is in the services, the store and the engines.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use weir_export::engine::Engine;
use weir_ingest::log::{AppendError, Damage};
use weir_plugins::Plugins;
use weir_store::Store;
use weir_store::counts::{Counting, Progress};
use weir_store::erasures;
use weir_store::events::{self, MergedSegments, SealBounds, SealReport};
use weir_store::people;

use super::retention::Retention;
use crate::alerts;
use crate::app::App;
use crate::backup;
use crate::metrics::memory;
use crate::subscriptions;

/// Time between two checks of states that send no notification.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two checks for domains whose verification is due again.
const DOMAIN_CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Time between two writes of traffic counts.
const COUNT: Duration = Duration::from_secs(60);
/// Number of writes of traffic counts after which old counts and invites are removed.
const FORGET: u32 = 60;
/// Time between two writes of the events that count for limits. A crash loses what was
/// counted since.
const WRITE_USAGE: Duration = Duration::from_secs(5);
/// Time between two measurements of the disk space of organizations.
const MEASURE_DISK_SPACE: Duration = Duration::from_secs(60 * 60);
/// Time between two checks for deleted organizations.
const PURGE: Duration = Duration::from_secs(30);
/// Time between two removals of old counters of sign-in attempts.
const PRUNE: Duration = Duration::from_secs(60 * 60);
/// The same when not all of them were removed.
const PRUNE_SOON: Duration = Duration::from_secs(60);
/// Time between two removals of pending logins that have expired.
const PRUNE_PENDING_LOGINS: Duration = Duration::from_secs(60);
/// Time between two searches for sessions that have ended.
const END_SESSIONS: Duration = Duration::from_secs(60 * 60);
/// Time for one search, which continues after [`PRUNE_SOON`].
const END_SESSIONS_TIME: Duration = Duration::from_secs(10);
/// Time between two checks whether the secret of visitors without cookies is of the day.
const FORGET_COOKIELESS: Duration = Duration::from_secs(60);
/// Time between two writes of how keys are used.
const NOTE: Duration = Duration::from_secs(60);

/// Time before counting earlier events is tried again after a failure.
const COUNT_AGAIN: Duration = Duration::from_secs(10);

/// Intervals of sealing between two times that tables are written again for erasures, and
/// between two segments of the log: writing tables takes as long as reading and writing all of
/// them, and a segment of the log has 64 MiB of the disk from its beginning on.
const ERASE_PAUSE: u32 = 6;

/// Time for applying the log before erasures are applied again that a start did not apply.
/// Other erasures wait meanwhile.
const REAPPLY_TIME: Duration = Duration::from_secs(20);

/// Time before a repair of lists of uuids is tried again after a failure. It doubles with every
/// further one.
const REPAIR_AGAIN: Duration = Duration::from_secs(1);
const REPAIR_AGAIN_LONGEST: Duration = Duration::from_secs(300);

/// Segments that are sealed before small ones are merged: after an update many may wait.
const SEALED: usize = 64;

/// Starts the tasks that may be interrupted when the service stops.
pub(super) fn begin(
    tasks: &mut JoinSet<()>,
    app: &App,
    store: &Store,
    exports: &Arc<Engine>,
    plugins: &Plugins,
) {
    tasks.spawn(watch_exports(app.clone(), Arc::clone(exports)));
    tasks.spawn(watch_plugins(app.clone(), plugins.clone()));
    tasks.spawn(app.tokens.clone().keep_fresh());
    tasks.spawn(watch(app.clone(), store.clone()));
    tasks.spawn(purge_deleted(app.clone()));
    tasks.spawn(check_domains(app.clone()));
    tasks.spawn(alerts::check(app.services.alerts.clone()));
    tasks.spawn(subscriptions::deliver(app.services.subscriptions.clone()));
    tasks.spawn(write_notes(app.clone()));
    tasks.spawn(prune_counters(app.clone()));
    tasks.spawn(prune_pending_logins(app.clone()));
    tasks.spawn(end_refused_sessions(app.clone()));
    tasks.spawn(forget_cookieless(app.clone()));
}

/// Starts repairing damaged runs, on threads of the lowest priority. To be called before a start
/// waits for events of the log, which may wait for a repair.
pub(super) fn begin_repairs(tasks: &mut JoinSet<()>, store: &Store, threads: &Handle) {
    tasks.spawn_on(repair_runs(store.clone()), threads);
}

/// Starts sealing, erasing and measuring, on threads of the lowest priority. They may be
/// interrupted: what was not finished is removed at the next start.
pub(super) fn begin_sealing(
    tasks: &mut JoinSet<()>,
    app: &App,
    store: &Store,
    plugins: &Plugins,
    threads: &Handle,
) {
    tasks.spawn_on(seal_events(app.clone(), store.clone(), plugins.clone()), threads);
    tasks.spawn_on(count_earlier(store.clone()), threads);
    tasks.spawn_on(measure_disk_space(app.clone()), threads);
    tasks.spawn_on(erase_persons(app.clone(), store.clone()), threads);
}

/// Removes the data of erased persons, and of deleted projects from files of the database and
/// of the log. A new erasure begins immediately, and what is left is continued at intervals.
async fn erase_persons(app: App, store: Store) {
    let (_, interval) = app.config.sealing();
    let pause = interval.saturating_mul(ERASE_PAUSE);
    let is_due = |last: Option<Instant>| last.is_none_or(|at| at.elapsed() >= pause);
    let (mut compacted, mut segment_begun): (Option<Instant>, Option<Instant>) = (None, None);
    let mut is_reapplied = false;
    loop {
        if !is_reapplied {
            is_reapplied = reapply_erasures(&app, REAPPLY_TIME).await;
        }
        if is_due(segment_begun) {
            match begin_log_segment(&app, &store).await {
                Ok(true) => segment_begun = Some(Instant::now()),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, "erased data stays in the log; trying again later");
                }
            }
        }
        match erase_now(&app, &store, is_due(compacted)).await {
            Ok(true) => compacted = Some(Instant::now()),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "not all erased data was removed; trying again later");
            }
        }
        tokio::select! {
            () = erasures::changed(&store) => {}
            () = tokio::time::sleep(interval) => {}
        }
    }
}

/// Applies erasures again that the database does not know after a restore. Before events are
/// accepted: those are of later persons. It waits for the events of the log, not longer than
/// `within`. Returns whether all are applied.
pub(super) async fn reapply_erasures(app: &App, within: Duration) -> bool {
    match app.services.persons.reapply_erasures(within).await {
        Ok(0) => true,
        Ok(erasures) => {
            tracing::info!(erasures, "erasures that a backup did not know were applied again");
            true
        }
        Err(error) => {
            tracing::error!(%error, "erasures that a backup did not know are not applied yet");
            false
        }
    }
}

/// Begins a segment of the log, so that the segments with erased data are removed later, if
/// there are some. Returns whether it did.
async fn begin_log_segment(app: &App, store: &Store) -> Result<bool, BeginError> {
    let in_log = erasures::without_log_end(store).await?;
    if in_log.is_empty() {
        return Ok(false);
    }
    let end = app.ingest.begin_log_segment().await?;
    erasures::note_log_end(store, in_log, end).await?;
    Ok(true)
}

/// Returns whether files of the database were written again.
async fn erase_now(app: &App, store: &Store, may_compact: bool) -> Result<bool, weir_store::Error> {
    let now = app.services.clock.now();
    // A failure of one project does not keep others from being finished.
    let erased = erasures::erase_stored(store, now).await;
    let compacted = erasures::finish(store, now, app.ingest.log_begin(), may_compact).await?;
    erased?;
    Ok(compacted)
}

/// Why no segment of the log was begun.
#[derive(Debug, thiserror::Error)]
enum BeginError {
    #[error(transparent)]
    Store(#[from] weir_store::Error),
    #[error("the ingest log does not begin a new segment")]
    Log(#[from] AppendError),
}

/// Moves events from the database to files, merges files, and removes old ones.
async fn seal_events(app: App, store: Store, plugins: Plugins) {
    let (bounds, interval) = app.config.sealing();
    let trusted_after = Duration::from_secs(app.config.retention_clock_seconds);
    let mut retention = Retention::new(trusted_after);
    let mut tick = tokio::time::interval(interval);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if let Err(error) = seal_now(&app, &store, bounds).await {
            tracing::warn!(%error, "not all events were sealed; trying again later");
        }
        backup::remove_abandoned(&app.config).await;
        if let Err(error) = retention.apply(&app.services.clock, &store, &plugins).await {
            tracing::warn!(%error, "not all old events were removed; trying again later");
        }
    }
}

/// Repairs lists of uuids in which damage was found. Batches of events may wait for it.
async fn repair_runs(store: Store) {
    let mut wait = REPAIR_AGAIN;
    loop {
        events::damage_found(&store).await;
        match events::repair_runs(&store).await {
            Ok(()) => wait = REPAIR_AGAIN,
            Err(error) => {
                let seconds = wait.as_secs();
                tracing::warn!(%error, seconds, "lists of uuids are not repaired; trying again");
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(REPAIR_AGAIN_LONGEST);
            }
        }
    }
}

/// Counts the events from before there were event counts, once after an update.
async fn count_earlier(store: Store) {
    let (mut counting, mut counted) = (Counting::default(), 0);
    loop {
        match counting.step(&store).await {
            Ok(Progress::Counted(events)) => counted += events,
            Ok(Progress::Done) => break,
            Err(error) => {
                tracing::warn!(%error, "not all earlier events are counted yet; trying again");
                tokio::time::sleep(COUNT_AGAIN).await;
            }
        }
    }
    if counted > 0 {
        tracing::info!(events = counted, "earlier events were counted by person");
    }
}

async fn seal_now(app: &App, store: &Store, bounds: SealBounds) -> Result<(), weir_store::Error> {
    loop {
        let now = app.services.clock.now();
        let sealed = events::seal_all(store, now, SEALED, bounds).await?;
        let SealReport { segments, events, bytes, is_limited, failure, .. } = sealed;
        if segments > 0 {
            tracing::info!(segments, events, bytes, "events were sealed into files");
        }
        while let Some(MergedSegments { segments, events, bytes }) =
            events::merge_segments(store, now).await?
        {
            tracing::info!(segments, events, bytes, "files of events were merged");
        }
        if !is_limited {
            return failure.map_or(Ok(()), Err);
        }
    }
}

/// The disk guard, unused memory of questions, the progress of ingestion, and the gauges that
/// no other code sets.
async fn watch(app: App, store: Store) {
    let mut tick = tokio::time::interval(CHECK_INTERVAL);
    let (mut damage, mut failures, mut refused) = (0, 0, 0);
    loop {
        tick.tick().await;
        store.check_disk();
        people::drop_unused(&store, Instant::now());
        let found = store.segment_damage();
        app.metrics.segment_damage.inc_by(found.saturating_sub(damage));
        damage = found;
        let filters = i64::try_from(store.segment_filter_bytes()).unwrap_or(i64::MAX);
        app.metrics.segment_filter_bytes.set(filters);
        let cached = i64::try_from(store.segment_cache_bytes()).unwrap_or(i64::MAX);
        app.metrics.segment_cache_bytes.set(cached);
        let found = store.segment_bucket_failures();
        app.metrics.segment_bucket_failures.inc_by(found.saturating_sub(failures));
        failures = found;
        let used = i64::try_from(app.services.questions.memory_used()).unwrap_or(i64::MAX);
        app.metrics.query_memory_bytes.set(used);
        app.ingest.check(Instant::now());
        app.metrics.count_outcomes(app.ingest.take_outcomes());
        app.metrics.show_disk(app.disk.free_bytes(), app.config.disk_marks());
        let found = app.services.identity.refusals();
        app.metrics.sign_ins_refused.inc_by(found.saturating_sub(refused));
        refused = found;
        app.metrics.count_alert_checks(app.services.alerts.take_checks());
        app.metrics.count_deliveries(app.services.subscriptions.take_deliveries());
        if let Some(resident) = memory::resident_bytes() {
            app.metrics.process_resident_bytes.set(resident);
        }
        let lag = i64::try_from(app.ingest.lag_bytes()).unwrap_or(i64::MAX);
        app.metrics.apply_lag_bytes.set(lag);
        let Damage { copies, bytes, missing } = app.ingest.damage();
        let gauge = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        app.metrics.log_damaged_places.set(gauge(copies));
        app.metrics.log_damaged_bytes.set(gauge(bytes + missing));
        app.metrics.log_torn_bytes.set(gauge(app.ingest.recovery().torn_bytes));
        let waiting = app.ingest.lag_bytes();
        if waiting > 0 {
            app.traffic.waiting(app.services.clock.now(), waiting);
        }
    }
}

/// Adds what exports have done to the metrics.
async fn watch_exports(app: App, exports: Arc<Engine>) {
    let mut tick = tokio::time::interval(CHECK_INTERVAL);
    loop {
        tick.tick().await;
        app.metrics.count_exports(exports.metrics().take());
    }
}

/// Adds what plugins have done to the metrics.
async fn watch_plugins(app: App, plugins: Plugins) {
    let mut tick = tokio::time::interval(CHECK_INTERVAL);
    loop {
        tick.tick().await;
        app.metrics.count_plugins(plugins.metrics().take());
        app.metrics.count_children(plugins.children());
    }
}

/// Removes the data of deleted organizations. Requests from the time when the key was
/// still known have ended before, and their events are applied first. So no data of a
/// project appears after its removal.
async fn purge_deleted(app: App) {
    let settled = -i64::try_from(app.limits.capture_time.as_secs()).unwrap_or(0) - 1;
    let mut tick = tokio::time::interval(PURGE);
    loop {
        tick.tick().await;
        let before = app.services.clock.now().plus_seconds(settled);
        app.ingest.applied().await;
        if let Err(error) = app.services.organizations.purge_deleted(before).await {
            tracing::error!(%error, "data of a deleted organization was not removed yet");
        }
    }
}

/// Writes traffic counts until the service stops. It is never interrupted, because counts
/// that it has taken would be lost.
pub(super) async fn write_counts(app: App) {
    let mut tick = tokio::time::interval(COUNT);
    let mut writes = 0_u32;
    loop {
        tokio::select! {
            () = app.stopping.begun() => return,
            _ = tick.tick() => {}
        }
        if let Err(error) = app.services.traffic.write().await {
            tracing::warn!(%error, "counters were not written; trying again");
        }
        writes = (writes + 1) % FORGET;
        if writes == 0 {
            if let Err(error) = app.services.traffic.forget().await {
                tracing::warn!(%error, "old counts were not removed yet");
            }
            if let Err(error) = app.services.invites.prune().await {
                tracing::warn!(%error, "old invites were not removed yet");
            }
        }
    }
}

/// Writes the events that count for the limits of organizations, and mails owners who are
/// near one, until the service stops. It is never interrupted, because counts that it has
/// taken would be lost.
pub(super) async fn write_usage(app: App) {
    let mut tick = tokio::time::interval(WRITE_USAGE);
    loop {
        tokio::select! {
            () = app.stopping.begun() => return,
            _ = tick.tick() => {}
        }
        if let Err(error) = app.services.limits.write().await {
            tracing::warn!(%error, "the use of limits was not written; trying again");
        }
        if let Err(error) = app.services.limits.warn_events().await {
            tracing::warn!(%error, "not all owners near a limit got a mail yet");
        }
    }
}

/// Measures the disk space of organizations, at intervals.
async fn measure_disk_space(app: App) {
    let mut tick = tokio::time::interval(MEASURE_DISK_SPACE);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if let Err(error) = app.services.limits.measure().await {
            tracing::warn!(%error, "the disk space of organizations was not measured");
        }
    }
}

/// Removes old counters of sign-in attempts, at intervals.
async fn prune_counters(app: App) {
    loop {
        let wait = match app.services.identity.prune_counters().await {
            Ok(true) => PRUNE,
            Ok(false) => PRUNE_SOON,
            Err(error) => {
                tracing::warn!(%error, "old sign-in counters were not removed yet");
                PRUNE
            }
        };
        tokio::time::sleep(wait).await;
    }
}

/// Removes pending logins that have expired, at intervals.
async fn prune_pending_logins(app: App) {
    loop {
        tokio::time::sleep(PRUNE_PENDING_LOGINS).await;
        match app.services.identity.prune_pending_logins().await {
            Ok(true) => {}
            Ok(false) => tracing::warn!("more old sign-ins at providers wait to be removed"),
            Err(error) => {
                tracing::warn!(%error, "old sign-ins at providers were not removed yet");
            }
        }
    }
}

/// Ends sessions that have expired or that a domain refuses, at intervals.
async fn end_refused_sessions(app: App) {
    let (mut part, mut wait) = (0, END_SESSIONS);
    loop {
        // A start does not wait for the search: these sessions open nothing anyway.
        tokio::time::sleep(wait).await;
        (part, wait) =
            match app.services.identity.end_refused_sessions(part, END_SESSIONS_TIME).await {
                Ok(Some(next)) => (next, PRUNE_SOON),
                Ok(None) => (0, END_SESSIONS),
                Err(error) => {
                    tracing::warn!(%error, "sessions that have ended were not removed yet");
                    (part, END_SESSIONS)
                }
            };
    }
}

/// Forgets the secret of visitors without cookies after its day, also if no visitor comes.
async fn forget_cookieless(app: App) {
    loop {
        tokio::time::sleep(FORGET_COOKIELESS).await;
        app.cookieless_keys.forget(app.services.clock.now());
    }
}

/// Writes how keys are used, at intervals.
async fn write_notes(app: App) {
    let mut tick = tokio::time::interval(NOTE);
    loop {
        tick.tick().await;
        write_notes_now(&app).await;
    }
}

/// Writes how keys are used, immediately.
pub(super) async fn write_notes_now(app: &App) {
    if let Err(error) = app.services.keys.write_uses().await {
        tracing::warn!(%error, "the use of keys was not written yet");
    }
    if let Err(error) = app.services.projects.write_traffic().await {
        tracing::warn!(%error, "events by project key were not written yet");
    }
}

/// Verifies domains again when they are due.
async fn check_domains(app: App) {
    let mut tick = tokio::time::interval(DOMAIN_CHECK_INTERVAL);
    loop {
        tick.tick().await;
        if let Err(error) = app.services.domains.check_again().await {
            tracing::error!(%error, "verified domains were not checked again");
        }
    }
}
