//! Backups that the server makes itself, at the interval of the settings (DUR-22).
//!
//! What belongs here: when a backup is made, and what the server shows of it. What does not:
//! making it (`super::make`).

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use weir_backup::Repository;
use weir_model::Timestamp;

use super::place::{Place, known_as};
use super::{BackupError, LastBackup, Made, Order, last, make, refuse_backup};
use crate::app::App;
use crate::config::{Config, StoreKind};
use crate::logs::with_causes;

/// Time between two checks of the note of the last backup.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Time between a backup that failed and the next one, unless the interval is shorter.
const AGAIN: Duration = Duration::from_secs(10 * 60);

/// The backups that the settings ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The directory of backups, absolute, or the address of the bucket.
    pub directory: PathBuf,
    /// The time between the beginnings of two backups.
    pub every: Duration,
    /// How many backups stay there; `None`: all of them.
    pub keep: Option<NonZeroUsize>,
}

impl Schedule {
    /// The schedule of the settings, if they have one.
    pub fn of(config: &Config) -> Option<Self> {
        let to = &config.backup_to;
        if to.as_os_str().is_empty() {
            return None;
        }
        Some(Self {
            directory: known_as(to),
            every: config.backup_every.0,
            keep: usize::try_from(config.backup_keep).ok().and_then(NonZeroUsize::new),
        })
    }

    /// Whether a backup must be made now. `last`: when the last one began.
    fn is_due(&self, last: Option<Timestamp>, now: Timestamp) -> bool {
        let Some(last) = last else { return true };
        // A time in the future says nothing of the age: the clock was set back since.
        let age = now.micros().checked_sub(last.micros()).and_then(|age| u64::try_from(age).ok());
        age.is_none_or(|age| Duration::from_micros(age) >= self.every)
    }
}

/// What the server knows of its backups.
#[derive(Debug, Default)]
pub struct Backups(Mutex<BackupState>);

/// The same at one moment.
#[derive(Debug, Clone, Default)]
pub struct BackupState {
    /// The last backup: with a schedule, the last one in its directory.
    pub last: Option<LastBackup>,
    /// Why the last attempt of this server has failed, if no backup was made since.
    pub failure: Option<Failure>,
    /// Whether this server is making a backup.
    pub is_running: bool,
}

/// A backup that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// When it began.
    pub at: Timestamp,
    /// The error, with its causes.
    pub reason: String,
}

impl Backups {
    /// What is known now.
    pub fn known(&self) -> BackupState {
        self.0.lock().clone()
    }

    fn begin(&self) {
        self.0.lock().is_running = true;
    }

    fn end(&self, failure: Option<Failure>) {
        let mut known = self.0.lock();
        known.is_running = false;
        known.failure = failure;
    }

    /// Takes a note that was read or made. A newer backup ends a failure.
    fn note(&self, last: LastBackup) {
        let mut known = self.0.lock();
        if known.last.as_ref() != Some(&last) {
            known.last = Some(last);
            known.failure = None;
        }
    }
}

/// What the note of the last backup said when it was read last.
#[derive(Debug, Default)]
struct Note(Option<LastBackup>);

impl Note {
    /// The note, if it says something else than before. Otherwise the server may know of a
    /// later backup, whose note could not be written.
    fn changed(&mut self, read: Option<LastBackup>) -> Option<LastBackup> {
        if read.is_none() || read == self.0 {
            return None;
        }
        self.0.clone_from(&read);
        read
    }
}

/// Starts the task on threads of the lowest priority. It ends soon after the service begins
/// to stop: a backup that is being made is interrupted, and its links are removed.
pub(crate) fn begin(app: &App, threads: &Handle) -> JoinHandle<()> {
    threads.spawn(run(app.clone()))
}

async fn run(app: App) {
    if app.config.store != StoreKind::RocksDb {
        return;
    }
    let schedule = Schedule::of(&app.config);
    if let Some(schedule) = &schedule {
        app.metrics.backup_interval_seconds.set(schedule.every.as_secs_f64());
    }
    let mut tick = tokio::time::interval(CHECK_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut note = Note::default();
    let mut not_before: Option<Instant> = None;
    loop {
        tokio::select! {
            biased;
            () = app.stopping.begun() => return,
            _ = tick.tick() => {}
        }
        read_note(&app, schedule.as_ref(), &mut note).await;
        let Some(schedule) = &schedule else { continue };
        let last = app.backups.known().last.map(|last| last.began_at);
        let is_due = schedule.is_due(last, app.services.clock.now());
        if is_due && not_before.is_none_or(|at| at <= Instant::now()) {
            attempt(&app, schedule).await;
            not_before = Some(Instant::now() + schedule.every.min(AGAIN));
        }
    }
}

/// Reads the note of the last backup, which a command may have written, and shows it.
async fn read_note(app: &App, schedule: Option<&Schedule>, note: &mut Note) {
    let data = app.config.data.clone();
    // It fails only when the process ends.
    let read = tokio::task::spawn_blocking(move || last::read(&data)).await.ok().flatten();
    let counts = |last: &LastBackup| schedule.is_none_or(|it| it.directory == last.directory);
    if let Some(last) = note.changed(read.filter(counts)) {
        show(app, last);
    }
}

/// Shows the last backup on the page and in the metrics.
fn show(app: &App, last: LastBackup) {
    app.metrics.show_backup(&last);
    app.backups.note(last);
}

/// Makes a backup. A failure is shown, and tried again later.
async fn attempt(app: &App, schedule: &Schedule) {
    let is_stopped = Arc::new(AtomicBool::new(false));
    let began_at = app.services.clock.now();
    app.backups.begin();
    let made = {
        let making = make_scheduled(app, schedule, began_at, Arc::clone(&is_stopped));
        tokio::pin!(making);
        tokio::select! {
            made = &mut making => made,
            () = app.stopping.begun() => {
                is_stopped.store(true, Ordering::Release);
                making.await
            }
        }
    };
    match made {
        Ok(Made { stored, removed, last }) => {
            tracing::info!(
                backup = last.name,
                files = stored.files,
                bytes = last.bytes,
                new_bytes = last.new_bytes,
                duration_ms = last.took_ms,
                removed = removed.len(),
                "a backup was stored"
            );
            if !stored.kept_for.is_empty() {
                let manifests = stored.kept_for.join(", ");
                tracing::warn!(
                    manifests,
                    "old backups and unused content stay: these manifests cannot be read"
                );
            }
            if stored.unsound > 0 {
                tracing::error!(
                    files = stored.unsound,
                    "files of events are damaged or missing in the bucket, and so in this backup"
                );
            }
            app.backups.end(None);
            show(app, last);
        }
        Err(_) if is_stopped.load(Ordering::Acquire) => {
            tracing::info!("a backup was interrupted; it is made after the next start");
            app.backups.end(None);
        }
        Err(error) => {
            let reason = with_causes(&error);
            tracing::error!(error = reason, "a backup failed; trying again later");
            app.metrics.backup_failures.inc();
            app.backups.end(Some(Failure { at: began_at, reason }));
        }
    }
}

async fn make_scheduled(
    app: &App,
    schedule: &Schedule,
    began_at: Timestamp,
    is_stopped: Arc<AtomicBool>,
) -> Result<Made, BackupError> {
    let directory = schedule.directory.clone();
    if let Place::Directory(directory) = refuse_backup(&app.config, &directory)? {
        refuse_vanished(&directory, app.backups.known().last.as_ref())?;
    }
    make(&app.config, Order { directory, began_at, keep: schedule.keep }, is_stopped).await
}

/// Refuses to begin a new repository where there was one: the directory below a file system
/// that is not mounted may be on the disk of the data. `last`: the last backup there.
fn refuse_vanished(directory: &Path, last: Option<&LastBackup>) -> Result<(), BackupError> {
    match last.is_some() && !Repository::exists(directory) {
        true => Err(BackupError::Vanished(directory.to_owned())),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_model::Timestamp;

    use super::{Backups, Failure, LastBackup, Note, Schedule, refuse_vanished};
    use crate::config::Settings;

    fn made(began_at: Timestamp) -> LastBackup {
        LastBackup {
            directory: "/mnt/backups".into(),
            name: "20260601T100000.000Z-0123456789abcdef".to_owned(),
            began_at,
            took_ms: 1_500,
            bytes: 7_000,
            new_bytes: 300,
        }
    }

    #[test]
    fn a_schedule_needs_a_directory() {
        let config = Settings::default().over(Settings::default());
        assert_eq!(Schedule::of(&config), None);
        let given = Settings { backup_to: Some("/mnt/backups".into()), ..Settings::default() };
        let schedule = Schedule::of(&given.over(Settings::default())).unwrap();
        assert_eq!(schedule.directory.to_str(), Some("/mnt/backups"));
        assert_eq!((schedule.every, schedule.keep), (Duration::from_secs(86_400), None));
    }

    #[test]
    fn a_backup_is_due_an_interval_after_the_beginning_of_the_last() {
        let schedule = Schedule {
            directory: "/mnt/backups".into(),
            every: Duration::from_secs(3_600),
            keep: None,
        };
        let now = Timestamp::from_micros(1_780_308_000_000_000);
        assert!(schedule.is_due(None, now));
        assert!(!schedule.is_due(Some(now), now));
        assert!(!schedule.is_due(Some(now.plus_seconds(-3_599)), now));
        assert!(schedule.is_due(Some(now.plus_seconds(-3_600)), now));
        assert!(schedule.is_due(Some(now.plus_seconds(1)), now), "the clock was set back");
    }

    #[test]
    fn a_newer_backup_ends_a_failure() {
        let now = Timestamp::from_micros(1_780_308_000_000_000);
        let backups = Backups::default();
        backups.note(made(now));
        backups.begin();
        assert!(backups.known().is_running);
        let failure = Failure { at: now, reason: "the disk is full".to_owned() };
        backups.end(Some(failure.clone()));
        // The same note is read again and again.
        backups.note(made(now));
        let known = backups.known();
        assert_eq!((known.failure, known.is_running), (Some(failure), false));
        backups.note(made(now.plus_seconds(60)));
        assert_eq!(backups.known().failure, None);
    }

    #[test]
    fn a_note_that_says_the_same_as_before_is_no_news() {
        let now = Timestamp::from_micros(1_780_308_000_000_000);
        let (first, second) = (made(now), made(now.plus_seconds(60)));
        let mut note = Note::default();
        assert_eq!(note.changed(None), None);
        assert_eq!(note.changed(Some(first.clone())), Some(first.clone()));
        // The server made a backup since, and could not note it.
        assert_eq!(note.changed(Some(first)), None);
        assert_eq!(note.changed(None), None);
        assert_eq!(note.changed(Some(second.clone())), Some(second));
    }

    #[test]
    fn a_directory_that_lost_its_backups_is_not_used_again_silently() {
        let folder = tempfile::tempdir().unwrap();
        let last = made(Timestamp::EPOCH);
        assert!(refuse_vanished(folder.path(), None).is_ok());
        assert!(refuse_vanished(folder.path(), Some(&last)).is_err());
        std::fs::write(folder.path().join("weir-repository"), "").unwrap();
        assert!(refuse_vanished(folder.path(), Some(&last)).is_ok());
    }
}
