//! Killing the service while it upgrades the data directory of an older program.
//!
//! The data directory is made by the older program: events of persons with merges and of
//! groups, transformed and as history, settings, and an export. The program is killed while
//! the export is under way and while events wait in the log. Without an older program, an
//! archive of `scripts/fixture` takes its place.
//!
//! A copy of the directory is upgraded without a kill. That shows how long the upgrade takes,
//! and whether a difference comes from the upgrade or from a kill. What an archive must read
//! like is only known from there.
//!
//! What belongs here: making the directory, the kills, and the order of the checks. What does
//! not: what is compared (`answers`, `compare`, `people`, `exporting`).

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};
use weir_bench::api::{Api, metric, organization_path};
use weir_bench::client::Connection;
use weir_bench::process;
use weir_bench::random::Random;
use weir_bench::until_stopped;
use weir_bench::weir::{Instance, Weir};

use crate::answers::{Answers, Differences};
use crate::compare::{Checks, drained};
use crate::exporting::{Exporting, HOURS};
use crate::files::has_segments;
use crate::ledger::Ledger;
use crate::log::Reader;
use crate::sending::{Shared, capture, lock, setting};
use crate::service::transform;
use crate::{Check, say};

/// Timeout of a start with migrations, of sealing and of counting, also in a debug build.
const LONGEST: Duration = Duration::from_secs(1_800);
/// Timeout of an orderly stop.
const PATIENCE: Duration = Duration::from_secs(120);
/// Without a change of its files for so long, the service has sealed what it can: it seals
/// once a second.
const STILL: Duration = Duration::from_secs(3);
/// Pause between two checks whether the service has ended its work.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The directory of exported files.
const FILES: &str = "files";
/// Plain events and stories of a batch.
const PLAIN: u64 = 485;
const STORIES: u64 = 4;
/// Stories that are only in the log when the older program is killed.
const LAST_STORIES: u64 = 40;
/// One in so many batches is a historical migration.
const HISTORICAL: u64 = 6;
/// Settings of the new program, with which the blocks of the older one are sealed immediately.
const SEALING: [(&str, &str); 2] = [("WEIR_SEAL_EVENTS", "500"), ("WEIR_SEAL_SECONDS", "1")];

/// The size of the test.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// How often the new program is killed.
    pub(crate) kills: u32,
    /// Approximate number of events of the older program.
    pub(crate) events: u64,
    pub(crate) seed: u64,
}

/// Upgrades the data directory of `old`, which is a program or an archive.
pub(crate) fn run(binary: &Path, old: &Path, directory: &Path, load: Load) -> Result<Vec<Check>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(until_stopped(upgrade(binary, old, directory, load)))
}

/// The data of an older program.
struct Old {
    instance: Instance,
    /// What the API of the older program said; `None`: there is only an archive.
    answers: Option<Answers>,
    /// What was sent to the older program, and its export.
    sent: Option<(Shared, Exporting)>,
}

/// How long an upgrade takes without a kill.
#[derive(Debug, Clone, Copy)]
struct Times {
    ready: Duration,
    /// Until all blocks are sealed.
    sealed: Duration,
}

async fn upgrade(binary: &Path, old: &Path, directory: &Path, load: Load) -> Result<Vec<Check>> {
    let (killed, alone) = (directory.join("killed"), directory.join("alone"));
    let Old { instance, mut answers, sent } = match old.extension() {
        Some(name) if name == "gz" => {
            Old { instance: extract(old, &killed)?, answers: None, sent: None }
        }
        _ => make(old, &killed, load).await?,
    };
    copy(&killed, &alone)?;
    let weir = program(binary, &alone)?;
    let (times, mut checks) = upgrade_alone(&weir, &instance, &mut answers).await?;
    fs::remove_dir_all(&alone)?;

    let mut answers = answers.context("nothing was read before the upgrade")?;
    let mut random = Random::new(load.seed ^ 0x0B_5E55);
    let weir = program(binary, &killed)?;
    let mut log = Reader::default();
    if weir.log().exists() {
        // The lines of the older program.
        log.lines(&weir)?;
    }
    let starting = kill_often(&weir, load.kills, times, &mut random).await?;
    let (mut service, _) = weir.start_ready(LONGEST).await?;
    settled(&weir, &instance).await?;
    let mut found = Differences::new();
    let mut api = Api::open(weir.address, &instance).await?;
    answers.compare(&mut api, &instance, sent.is_some(), &mut found).await?;
    let counts = found.to_string();
    checks.extend(found.into_checks());
    if let Some((ledger, export)) = &sent {
        let mut exported = Check::new("the export that was under way has every event once");
        export.complete(&weir, &instance, &killed.join(FILES), ledger, &mut exported).await?;
        checks.push(exported);
        checks.extend(compare_sent(&weir, &instance, ledger, &mut random).await?);
    }
    service.stop(PATIENCE).await?;
    checks.extend([logged(&weir, &mut log)?, sealed(&weir), sound(&weir)?]);
    say(&format!(
        "{} kills, {starting} of them before the service was ready; without a kill it was ready \
         in {} ms and had sealed all in {} ms; {} events before the upgrade; {counts}",
        load.kills,
        times.ready.as_millis(),
        times.sealed.as_millis(),
        answers.events()
    ));
    Ok(checks)
}

/// A program on the data directory below `directory`, with the settings that all of them know.
fn plain(binary: &Path, directory: &Path) -> Result<Weir> {
    let files = directory.join(FILES);
    fs::create_dir_all(&files)?;
    let mut weir = Weir::new(binary, directory)?;
    weir.settings = vec![("WEIR_LOCAL_EXPORTS", files.to_string_lossy().into_owned())];
    Ok(weir)
}

/// The new program on the data directory below `directory`.
fn program(binary: &Path, directory: &Path) -> Result<Weir> {
    let mut weir = plain(binary, directory)?;
    weir.settings.extend(SEALING.map(|(name, value)| (name, value.to_owned())));
    Ok(weir)
}

/// Makes a data directory with the older program, which is killed at the end.
async fn make(binary: &Path, directory: &Path, load: Load) -> Result<Old> {
    let weir = plain(binary, directory)?;
    let instance = weir.set_up()?;
    let (mut process, _) = weir.start_ready(PATIENCE).await?;
    let ledger: Shared = Arc::new(Mutex::new(Ledger::spread(load.seed, HOURS)));
    transform(&weir, &instance).await?;
    change_settings(&weir, &instance, &ledger).await?;
    fill(&weir, &instance, &ledger, load).await?;
    drained(&weir, &instance, &ledger).await?;
    let mut api = Api::open(weir.address, &instance).await?;
    let all = lock(&ledger).acknowledged().count() as u64;
    let export = Exporting::create(&mut api, &instance, all).await?;
    let answers = Answers::read(&mut api, &instance).await?;
    ensure!(answers.events() as u64 == all, "{} of {all} events are stored", answers.events());
    export.begin(&mut api, &instance).await?;
    let numbers: Vec<u64> = {
        let mut ledger = lock(&ledger);
        (0..LAST_STORIES).flat_map(|_| ledger.take_story()).collect()
    };
    send(&weir, &instance, &ledger, &numbers, false).await?;
    ensure!(process.ended()?.is_none(), "the older program ended: {}", weir.last_lines());
    process.kill()?;
    say(&format!("the older program has stored {all} events, and was killed during an export"));
    Ok(Old { instance, answers: Some(answers), sent: Some((ledger, export)) })
}

/// Renames the organization, and changes the time zone of the project.
async fn change_settings(weir: &Weir, instance: &Instance, ledger: &Shared) -> Result<()> {
    let mut api = Api::open(weir.address, instance).await?;
    let project = format!("/api/projects/{}/", instance.project_id);
    for (path, body) in [
        (organization_path(instance), json!({ "name": setting(1) })),
        (project, json!({ "timezone": "Europe/Madrid" })),
    ] {
        let (status, _) = api.call("PATCH", &path, &body.to_string()).await?;
        ensure!(status == 200, "PATCH {path} answered {status}");
    }
    let mut ledger = lock(ledger);
    ledger.setting_tried = 1;
    ledger.setting_kept = 1;
    Ok(())
}

/// Sends about as many events as `load` says.
async fn fill(weir: &Weir, instance: &Instance, ledger: &Shared, load: Load) -> Result<()> {
    let mut random = Random::new(load.seed);
    while lock(ledger).len() < load.events {
        let numbers = {
            let mut ledger = lock(ledger);
            let stories = (0..STORIES).flat_map(|_| ledger.take_story());
            let mut numbers: Vec<u64> = stories.collect();
            numbers.extend(ledger.take(PLAIN));
            numbers
        };
        send(weir, instance, ledger, &numbers, random.one_in(HISTORICAL)).await?;
    }
    Ok(())
}

/// Sends events until they are accepted: the service may have a full log.
async fn send(
    weir: &Weir,
    instance: &Instance,
    ledger: &Shared,
    numbers: &[u64],
    historical: bool,
) -> Result<()> {
    let body = lock(ledger).batch(&instance.project_api_key, numbers, historical, 0);
    let request = capture("/batch/", &body);
    let deadline = Instant::now() + LONGEST;
    loop {
        let mut connection = Connection::open(weir.address).await?;
        match connection.send(&request).await?.status {
            200 => break,
            503 if Instant::now() < deadline => sleep(LOOK_AGAIN).await,
            status => bail!("events were answered with {status}"),
        }
    }
    lock(ledger).acknowledge(numbers);
    Ok(())
}

/// Extracts an archive of `scripts/fixture`; returns the instance that it has.
fn extract(archive: &Path, directory: &Path) -> Result<Instance> {
    #[derive(Deserialize)]
    struct About {
        made: Made,
    }
    #[derive(Deserialize)]
    struct Made {
        project_id: i64,
        project_api_key: String,
        personal_api_key: String,
    }
    fs::create_dir_all(directory)?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--gzip", "--no-same-owner", "--file"]).arg(archive);
    done(tar.arg("--directory").arg(directory))?;
    let file = File::open(directory.join("fixture.json")).context("it is no fixture")?;
    let About { made } = serde_json::from_reader(BufReader::new(file))?;
    let Made { project_id, project_api_key, personal_api_key } = made;
    // The only organization of the owner of the key.
    let organization_id = "@current".to_owned();
    Ok(Instance { organization_id, project_id, project_api_key, personal_api_key })
}

/// Copies a directory, with its modes.
fn copy(from: &Path, to: &Path) -> Result<()> {
    done(Command::new("cp").arg("--archive").arg(from).arg(to))
}

/// Runs a program of the system.
fn done(command: &mut Command) -> Result<()> {
    let name = PathBuf::from(command.get_program());
    let status = command.status().with_context(|| format!("cannot start {}", name.display()))?;
    ensure!(status.success(), "{} ended with {status}", name.display());
    Ok(())
}

/// Upgrades without a kill, and compares what the API says with what it said before; of an
/// archive it reads that now. Returns how long the upgrade takes, and the checks.
async fn upgrade_alone(
    weir: &Weir,
    instance: &Instance,
    answers: &mut Option<Answers>,
) -> Result<(Times, Vec<Check>)> {
    let began = Instant::now();
    let (mut service, ready) = weir.start_ready(LONGEST).await?;
    settled(weir, instance).await?;
    let times = Times { ready, sealed: began.elapsed().saturating_sub(STILL).max(ready) };
    let mut api = Api::open(weir.address, instance).await?;
    let mut checks = Vec::new();
    match answers {
        None => *answers = Some(Answers::read(&mut api, instance).await?),
        Some(answers) => {
            let mut found = Differences::new();
            answers.compare(&mut api, instance, true, &mut found).await?;
            let mut check = Check::new("without a kill everything reads as before the upgrade");
            for part in found.into_checks() {
                part.faults.into_iter().for_each(|fault| check.fail(fault));
            }
            checks.push(check);
        }
    }
    service.stop(PATIENCE).await?;
    Ok((times, checks))
}

/// Starts the program again and again, and kills it: half of the times before it is ready,
/// then until it has sealed everything. Returns how often it was not ready.
async fn kill_often(weir: &Weir, kills: u32, times: Times, random: &mut Random) -> Result<u32> {
    let mut starting = 0;
    for kill in 1..=kills {
        let end = if kill <= kills.div_ceil(2) { times.ready } else { times.sealed };
        let after = random.between(Duration::ZERO, end);
        let mut process = weir.start()?;
        let began = Instant::now();
        let is_ready = match timeout(after, weir.wait_ready(&mut process, LONGEST)).await {
            Ok(ready) => ready.map(|()| true)?,
            Err(_) => false,
        };
        sleep(after.saturating_sub(began.elapsed())).await;
        ensure!(process.ended()?.is_none(), "the service ended: {}", weir.last_lines());
        process.kill()?;
        starting += u32::from(!is_ready);
        let state = if is_ready { "ready" } else { "not ready" };
        say(&format!("kill {kill}: {} ms after the start, {state}", after.as_millis()));
    }
    Ok(starting)
}

/// Waits until the service has applied the log, counted the events from before the upgrade,
/// and sealed what it can.
async fn settled(weir: &Weir, instance: &Instance) -> Result<()> {
    let deadline = Instant::now() + LONGEST;
    while !is_counted(weir, instance).await? {
        ensure!(Instant::now() < deadline, "earlier events are not counted after {LONGEST:?}");
        sleep(LOOK_AGAIN).await;
    }
    let segments = weir.data().join("segments");
    let mut bytes: Option<u64> = None;
    let mut since = Instant::now();
    while since.elapsed() < STILL {
        ensure!(Instant::now() < deadline, "files of events change after {LONGEST:?}");
        // A directory may be removed meanwhile.
        let now = process::disk_usage(&segments).ok();
        let lag = metric(weir.metrics, "weir_ingest_apply_lag_bytes").await?;
        if now != bytes || lag != 0.0 {
            (bytes, since) = (now, Instant::now());
        }
        sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

/// Whether the events of all persons are counted.
async fn is_counted(weir: &Weir, instance: &Instance) -> Result<bool> {
    #[derive(Deserialize)]
    struct Person {
        event_count: Option<u64>,
    }
    let mut api = Api::open(weir.address, instance).await?;
    let persons: Vec<Person> = api.all("persons/").await?;
    Ok(persons.iter().all(|person| person.event_count.is_some()))
}

/// Compares what is stored with what was sent to the older program.
async fn compare_sent(
    weir: &Weir,
    instance: &Instance,
    ledger: &Shared,
    random: &mut Random,
) -> Result<Vec<Check>> {
    let mut sent = Checks::new();
    sent.setting(weir, instance, ledger).await?;
    sent.events(weir, instance, ledger, random).await?;
    say(&format!("compared with what was sent: {}", sent.beings));
    let events = [sent.missing, sent.twice, sent.content, sent.settings];
    Ok(events.into_iter().chain(sent.beings.into_checks()).collect())
}

/// What the new program logged.
fn logged(weir: &Weir, log: &mut Reader) -> Result<Check> {
    let mut check = Check::new("the upgrade logs no damage and no error");
    for (line, entry) in log.lines(weir)? {
        if entry.damaged > 0 || entry.is_fault() {
            check.fail(format!("the service says: {line}"));
        }
    }
    Ok(check)
}

/// The blocks of the older program became files.
fn sealed(weir: &Weir) -> Check {
    let mut check = Check::new("events of the older program were sealed");
    if !has_segments(weir) {
        check.fail("there is no file of events; are there enough events?".to_owned());
    }
    check
}

/// All files of the data directory are as their checksums say.
fn sound(weir: &Weir) -> Result<Check> {
    let mut check = Check::new("weir check finds no faults after the upgrade");
    weir.check()?.into_iter().for_each(|fault| check.fail(fault));
    Ok(check)
}
