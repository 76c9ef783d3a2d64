//! Backups of an instance whose events are all in files: how long they take, what they cost
//! capture, and restoring and checking them.

use std::cell::Cell;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use tokio::time::{Instant, sleep};
use weir_bench::events::{People, Shape, Source, Template};
use weir_bench::load::{Load, Work, send};
use weir_bench::weir::Weir;

use crate::rounds::wait_readable;
use crate::service::{PATIENCE, Service};
use crate::sustained::{BATCH, PEOPLE};
use crate::volume;

/// Time of a load without a backup.
const ALONE: Duration = Duration::from_secs(20);
/// Time of one of the loads beside a backup.
const BESIDE: Duration = Duration::from_secs(1);
/// Maximum time of a backup.
const LONGEST: Duration = Duration::from_secs(3_600);
/// Pause between two checks whether a backup has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
const CONNECTIONS: usize = 8;

/// A backup, as the note in the data directory has it.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Stored {
    /// Milliseconds.
    pub(crate) took_ms: u64,
    /// Bytes of all of its files, and of those that no earlier backup had.
    pub(crate) bytes: u64,
    pub(crate) new_bytes: u64,
}

/// The results.
#[derive(Debug)]
pub(crate) struct Backups {
    pub(crate) events: u64,
    /// Acknowledged events per second: without a backup, and beside the first one.
    pub(crate) alone: f64,
    pub(crate) beside: f64,
    /// A first backup under load, one after it without load, and one directly after that.
    pub(crate) first: Stored,
    pub(crate) second: Stored,
    pub(crate) third: Stored,
    /// Times of commands.
    pub(crate) checking_upgrade: Duration,
    pub(crate) checking_data: Duration,
    pub(crate) checking_backups: Duration,
    pub(crate) restoring: Duration,
    /// The time until the restored instance is ready.
    pub(crate) start: Duration,
}

/// Fills a new instance, seals it and measures its backups.
pub(crate) async fn run(binary: &Path, directory: &Path, events: u64) -> Result<Backups> {
    let (full, mut service) = volume::full(binary, &directory.join("full"), events, 1).await?;
    service.stop().await?;
    crate::say("sealing");
    service.weir.seal()?;
    service.start().await?;

    let backups = directory.join("backups");
    let to = path_text(&backups)?;
    crate::say("sending without a backup");
    let before = rate(&service, 1, ALONE).await?;
    crate::say("a first backup, under load");
    let beside = rate_beside_backup(&service, to).await?;
    let first = stored(&service.weir)?;
    wait_readable(&service).await?;
    crate::say("sending without a backup");
    let after = rate(&service, 2, ALONE).await?;
    service.stop().await?;
    crate::say("further backups");
    service.weir.run(&["backup", to])?;
    let second = stored(&service.weir)?;
    service.weir.run(&["backup", to])?;
    let third = stored(&service.weir)?;

    crate::say("checking");
    let checking_upgrade = service.weir.run(&["upgrade", "--check"])?;
    let checking_data = service.weir.run(&["check"])?;
    let checking_backups = service.weir.run(&["check", to])?;
    crate::say("restoring");
    let restored = Weir::new(binary, &directory.join("restored"))?;
    let restoring = restored.run(&["restore", to])?;
    let (mut process, start) = restored.start_ready(PATIENCE).await?;
    process.stop(PATIENCE).await?;
    Ok(Backups {
        events: full.events,
        alone: f64::midpoint(before, after),
        beside,
        first,
        second,
        third,
        checking_upgrade,
        checking_data,
        checking_backups,
        restoring,
        start,
    })
}

/// A load of known persons in batches. Each seed has other events.
fn load(service: &Service, seed: u64, time: Duration) -> Load {
    let template = Template::batch(&service.instance.project_api_key, Shape::Server, BATCH);
    let work = Work::Fresh(template, Arc::new(Source::new(seed, People::Known(PEOPLE))));
    Load::closed(service.address(), CONNECTIONS, time, work)
}

/// Acknowledged events per second. Everything is readable afterwards.
async fn rate(service: &Service, seed: u64, time: Duration) -> Result<f64> {
    let outcome = send(load(service, seed, time)).await?;
    wait_readable(service).await?;
    Ok(outcome.rate())
}

/// The same while a backup is made, by loads of a second: it is not known before how long it
/// takes.
async fn rate_beside_backup(service: &Service, to: &str) -> Result<f64> {
    let mut backup = service.weir.begin(&["backup", to])?;
    let has_ended = Cell::new(false);
    let waiting = async {
        let began = Instant::now();
        loop {
            if let Some(status) = backup.ended()? {
                has_ended.set(true);
                ensure!(status.success(), "`weir backup` failed: {}", service.weir.last_lines());
                return Ok(());
            }
            ensure!(began.elapsed() < LONGEST, "the backup takes longer than {LONGEST:?}");
            sleep(LOOK_AGAIN).await;
        }
    };
    let sending = async {
        let (mut events, mut took, mut seed) = (0, Duration::ZERO, 1_000);
        while !has_ended.get() {
            let outcome = send(load(service, seed, BESIDE)).await?;
            events += outcome.events;
            took += outcome.took;
            seed += 1;
        }
        Ok::<f64, anyhow::Error>(events as f64 / took.as_secs_f64().max(1e-9))
    };
    let ((), rate) = tokio::try_join!(waiting, sending)?;
    Ok(rate)
}

/// What is noted of the last backup.
fn stored(weir: &Weir) -> Result<Stored> {
    let note = File::open(weir.data().join("last-backup.json"))?;
    serde_json::from_reader(note).context("the note of the last backup has another form")
}

fn path_text(path: &Path) -> Result<&str> {
    path.to_str().context("the directory has a name that is not UTF-8")
}
