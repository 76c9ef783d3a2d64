//! Killing the service under load.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::sleep;
use weir_bench::api::Api;
use weir_bench::plugins::{Transformation, enable};
use weir_bench::process::Process;
use weir_bench::random::Random;
use weir_bench::until_stopped;
use weir_bench::weir::{Instance, Weir};

use crate::aging::Aging;
use crate::compare::Checks;
use crate::damage::Damage;
use crate::files::Files;
use crate::ledger::Ledger;
use crate::log::Reader;
use crate::sending::{Clients, Impatient, Shared, lock};
use crate::{Check, say, stories};

/// Timeout of a start; a longer one is a failure.
const PATIENCE: Duration = Duration::from_secs(120);
/// The maximum time of a restart, also under load: client libraries stop retrying soon
/// after (ING-5).
const PROMISED: Duration = Duration::from_secs(5);
/// How long the service runs before it is killed.
const WORKS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(1_800));
/// The longest time from the discovery of damage in a run to the kill.
const REPAIR: Duration = Duration::from_millis(30);
/// Time until an enabled transformation has taken effect; at most a second is promised.
const ENABLED: Duration = Duration::from_secs(3);
/// Settings with which events are sealed, and removed for their age, all the time.
const SEALING: [(&str, &str); 3] = [
    ("WEIR_SEAL_EVENTS", "500"),
    ("WEIR_SEAL_SECONDS", "1"),
    ("WEIR_RETENTION_CLOCK_SECONDS", "1"),
];
/// Messages of the service about files of events that were written, merged and removed.
const MESSAGES: [&str; 3] =
    ["events were sealed into files", "files of events were merged", "old events were removed"];
/// In one of so many cycles the service is killed again early, and in another one files are
/// damaged.
const THIRD: u32 = 3;
/// In one of so many of those cycles the repair of a run is interrupted.
const INTERRUPTED: u64 = 2;
/// In a run with so many cycles everything must have happened at least once: segments need
/// many cycles until the first ones are merged.
const LONG: u32 = 200;
/// All events are compared after this many cycles.
const COMPARE_EVERY: u32 = 5;

/// The size of the test.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) cycles: u32,
    /// Approximate number of new events of a cycle.
    pub(crate) events: u64,
    pub(crate) seed: u64,
}

/// Runs the cycles.
pub(crate) fn run(binary: &Path, directory: &Path, load: Load) -> Result<Vec<Check>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(until_stopped(kill_cycles(binary, directory, load)))
}

/// The service under test.
struct Patient {
    weir: Weir,
    instance: Instance,
    ledger: Shared,
    random: Random,
    log: Reader,
    restarts: Vec<Duration>,
    faults: Check,
    /// Number of errors and warnings in the log of the service that are not faults.
    notes: BTreeMap<String, u32>,
    /// How often each of [`MESSAGES`] was logged.
    logged: [u32; MESSAGES.len()],
    files: Files,
    checks: Checks,
    damage: Damage,
}

async fn kill_cycles(binary: &Path, directory: &Path, load: Load) -> Result<Vec<Check>> {
    let Load { cycles, events, seed } = load;
    let mut weir = Weir::new(binary, directory)?;
    weir.settings = SEALING.map(|(name, value)| (name, value.to_owned())).into();
    let instance = weir.set_up()?;
    let mut patient = Patient {
        weir,
        instance,
        ledger: Arc::new(Mutex::new(Ledger::new(seed))),
        random: Random::new(seed),
        log: Reader::default(),
        restarts: Vec::new(),
        faults: Check::new("no damage, no error, no unexpected answer"),
        notes: BTreeMap::new(),
        logged: [0; MESSAGES.len()],
        files: Files::default(),
        checks: Checks::new(),
        damage: Damage::new(seed),
    };
    let mut process = patient.start().await?;
    let mut aging = Aging::begin(&patient.weir, &patient.instance).await?;
    transform(&patient.weir, &patient.instance).await?;
    let mut early = 0;
    for cycle in 1..=cycles {
        let before = lock(&patient.ledger).acknowledged().count();
        aging.send(&patient.weir).await?;
        let works = patient.random.between(WORKS.0, WORKS.1);
        let clients = Clients::start(
            &patient.weir,
            &patient.instance,
            &patient.ledger,
            events,
            seed + u64::from(cycle),
        );
        sleep(works).await;
        ensure!(process.ended()?.is_none(), "the service ended: {}", patient.weir.last_lines());
        process.kill()?;
        clients.gone().await;
        let now = lock(&patient.ledger).acknowledged().count();
        patient.files.compare(&patient.weir);
        let mut note = String::new();
        if cycle % THIRD == 1
            && cycle > 1
            && let Some(flipped) = patient.damage.flip(&patient.weir, &patient.instance)?
        {
            note = format!(", {flipped}");
        }

        // Clients continue to send while the service is down.
        let impatient = Impatient::start(
            &patient.weir,
            &patient.instance,
            &patient.ledger,
            events / 4,
            seed + u64::from(cycles + cycle),
        );
        if patient.damage.is_in_run() && patient.random.one_in(INTERRUPTED) {
            let after = patient.kill_during_repair().await?;
            note += &format!(", killed again {} ms after its damage was found", after.as_millis());
        }
        if cycle.is_multiple_of(THIRD) {
            let after = patient.kill_early().await?;
            early += 1;
            note = format!(", killed again {} ms into the restart", after.as_millis());
        }
        process = patient.start().await?;
        impatient.leave().await;
        let at_restart = lock(&patient.ledger).acknowledged().count() - now;
        let took = patient.restarts.last().copied().unwrap_or_default();
        say(&format!(
            "cycle {cycle}: killed after {} ms, {} acknowledged{note}, ready in {} ms, \
             {at_restart} acknowledged until then",
            works.as_millis(),
            now - before,
            took.as_millis()
        ));
        let Patient { weir, instance, ledger, random, checks, damage, .. } = &mut patient;
        damage.find(weir, instance, ledger, checks).await?;
        checks.setting(weir, instance, ledger).await?;
        if cycle % COMPARE_EVERY == 0 || cycle == cycles {
            checks.events(weir, instance, ledger, random).await?;
            aging.compare(weir, damage.has_lost_uuids()).await?;
            say(&format!("compared: {} events readable", checks.readable));
        }
    }
    patient.stop_and_look_again(process, &mut aging).await?;
    Ok(patient.sum_up(cycles, early, aging.check))
}

/// Enables a script and a catalogue step for every event; the properties that they add
/// are checked in each event.
pub(crate) async fn transform(weir: &Weir, instance: &Instance) -> Result<()> {
    let mut api = Api::open(weir.address, instance).await?;
    let transformations =
        [Transformation::Script(stories::SCRIPT), Transformation::Native(stories::NATIVE, "{}")];
    enable(&mut api, instance, instance.project_id, &transformations).await?;
    sleep(ENABLED).await;
    Ok(())
}

impl Patient {
    /// Starts the service, and reads what it logs about recovery.
    async fn start(&mut self) -> Result<Process> {
        let (process, took) = self.weir.start_ready(PATIENCE).await?;
        self.restarts.push(took);
        self.read_log()?;
        Ok(process)
    }

    /// Starts the service and kills it during recovery or directly after.
    async fn kill_early(&mut self) -> Result<Duration> {
        let last = self.restarts.last().copied().unwrap_or_default();
        let after = self.random.between(Duration::ZERO, last.mul_f64(1.3));
        let mut process = self.weir.start()?;
        sleep(after).await;
        ensure!(process.ended()?.is_none(), "the service ended: {}", self.weir.last_lines());
        process.kill()?;
        self.read_log()?;
        Ok(after)
    }

    /// Starts the service and kills it while it repairs the damaged run, or directly after.
    async fn kill_during_repair(&mut self) -> Result<Duration> {
        let mut process = self.weir.start()?;
        self.damage.until_found(&self.weir, self.log.position()).await?;
        // Half of the kills come immediately: a small run is repaired in milliseconds.
        let after = match self.random.one_in(2) {
            true => Duration::ZERO,
            false => self.random.between(Duration::ZERO, REPAIR),
        };
        sleep(after).await;
        ensure!(process.ended()?.is_none(), "the service ended: {}", self.weir.last_lines());
        process.kill()?;
        self.damage.killed();
        self.read_log()?;
        Ok(after)
    }

    /// An orderly stop must not lose data either.
    async fn stop_and_look_again(&mut self, mut process: Process, aging: &mut Aging) -> Result<()> {
        let status = process.stop(PATIENCE).await?;
        if !status.success() {
            self.faults.fail(format!("stopped with {status}"));
        }
        let mut process = self.start().await?;
        let Self { weir, instance, ledger, random, checks, damage, .. } = self;
        checks.setting(weir, instance, ledger).await?;
        checks.events(weir, instance, ledger, random).await?;
        aging.compare(weir, damage.has_lost_uuids()).await?;
        process.stop(PATIENCE).await?;
        self.read_log()
    }

    /// Prints repairs and collects errors from the new lines of the log of the service.
    fn read_log(&mut self) -> Result<()> {
        for (line, entry) in self.log.lines(&self.weir)? {
            if entry.torn_bytes > 0 {
                say(&format!("repair: {} bytes of a torn tail cut off the log", entry.torn_bytes));
            }
            for (count, message) in self.logged.iter_mut().zip(MESSAGES) {
                *count += u32::from(entry.message == message);
            }
            let is_explained =
                entry.level == "ERROR" && self.damage.explains(&entry.message, &line);
            if entry.damaged > 0 || entry.is_fault() && !is_explained {
                self.faults.fail(format!("the service says: {line}"));
            } else if ["ERROR", "WARN"].contains(&entry.level.as_str()) {
                // Printed, but no faults.
                *self.notes.entry(entry.note()).or_default() += 1;
            }
        }
        Ok(())
    }

    fn sum_up(self, cycles: u32, early: u32, aging: Check) -> Vec<Check> {
        let Self { ledger, restarts, mut faults, notes, logged, files, checks, damage, .. } = self;
        let is_long = cycles >= LONG;
        let damage = damage.sum_up(cycles, is_long);
        let [sealed, merged, removed] = logged;
        say(&format!(
            "sealed {sealed} times, merged {merged} times, removed old events {removed} times; \
             the catalog had merged segments {} times, and merged runs {} times",
            files.merged_segments, files.merged_runs
        ));
        let mut sealing = Check::new("files of events were written, merged and removed meanwhile");
        for (times, is_expected, what) in [
            (sealed, true, "no events were sealed into files"),
            (removed, true, "no old events were removed (retention)"),
            (merged, is_long, "no segments were merged (compaction)"),
            (files.merged_segments, is_long, "no segment took the place of others in the catalog"),
            (files.merged_runs, is_long, "no runs were merged, so no filter was built again"),
        ] {
            if is_expected && times == 0 {
                sealing.fail(format!("{what} in {cycles} cycles"));
            }
        }
        for (note, times) in notes {
            say(&format!("noted {times} times: {note}"));
        }
        let mut ledger = lock(&ledger);
        for surprise in ledger.surprises.drain(..) {
            faults.fail(surprise);
        }
        let longest = restarts.iter().max().copied().unwrap_or_default();
        let mut restart = Check::new("every restart under load takes less than five seconds");
        if longest > PROMISED {
            restart.fail(format!("the longest took {} ms", longest.as_millis()));
        }
        say(&format!(
            "{cycles} cycles, {early} of them killed again during or right after recovery; \
             {} sent, {} acknowledged, {} readable; missing {}, twice {}; \
             {}; {} starts, the longest took {} ms",
            ledger.len(),
            ledger.acknowledged().count(),
            checks.readable,
            checks.missing.faults.len(),
            checks.twice.faults.len(),
            checks.beings,
            restarts.len(),
            longest.as_millis()
        ));
        let events = [checks.missing, checks.twice, checks.content];
        let beings = checks.beings.into_checks();
        events
            .into_iter()
            .chain(beings)
            .chain([checks.settings, aging, sealing, damage, restart, faults])
            .collect()
    }
}
