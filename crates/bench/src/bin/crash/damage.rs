//! Bits that change on the disk while the service is down: in a segment, among the entries of
//! a run, and in the filter of a run.
//!
//! Checked are: the service notices them, logs and counts them, and serves no event that is
//! not as it was sent. A damaged run is written again, and its events stay known: other checks
//! find an event that is stored twice. Some of these repairs are interrupted by a kill. A
//! segment gets its bits back, because its events are nowhere else.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::time::{Instant, sleep};
use weir_bench::api::{Api, metric};
use weir_bench::client::Connection;
use weir_bench::random::Random;
use weir_bench::weir::{Instance, Weir};

use crate::compare::Checks;
use crate::sending::{Shared, capture, lock};
use crate::{Check, say};

/// Bytes with a checksum of their own, also the header of a run.
const CHUNK: u64 = 16 << 10;
/// Entries in such a part of a run.
const ENTRIES: u64 = 431;
/// Where the header of a run has the number of its entries.
const NUMBER: u64 = 16;
/// Bytes of a filter before its fingerprints.
const SETTINGS: u64 = 24;
/// Bits that change in a segment, far apart: a reader does not need all of its columns.
const BITS: u64 = 16;
/// Stored events that are sent again while a run is damaged.
const AGAIN: usize = 200;
/// Timeout until damage of a run is repaired, and until damage is counted.
const PATIENCE: Duration = Duration::from_secs(60);
/// In a run with so many cycles every part is damaged.
const ENOUGH: u32 = 20;
/// Pause between two checks whether damage was found.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// What the service logs about a damaged file, with its name.
const NOTICED: &str = "a file of stored events is damaged";
/// The same about the uuids of damaged runs, without their names.
const LOST: &str = "runs of event uuids are damaged; what is lost is read from the segments";

/// What is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Segment,
    Entries,
    Filter,
}

const PARTS: [Part; 3] = [Part::Entries, Part::Filter, Part::Segment];

/// All damage of a run of the harness.
pub(crate) struct Damage {
    random: Random,
    /// What is damaged now.
    present: Option<Flip>,
    /// How often each of [`PARTS`] was damaged in a file that the service uses.
    flips: [u32; PARTS.len()],
    /// The names of all files that were damaged.
    names: Vec<String>,
    /// How often the service logged damage.
    logged: u32,
    /// How often the service was killed while it repaired a run.
    interrupted: u32,
    check: Check,
}

/// One bit of each of these bytes is flipped.
struct Flip {
    part: Part,
    file: PathBuf,
    bits: Vec<(u64, u8)>,
    /// Whether the service has logged it, as far as this was awaited.
    is_found: bool,
    /// Whether the service was killed after it began.
    is_killed: bool,
}

impl Damage {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed ^ 0xDA_4A6E),
            present: None,
            flips: [0; PARTS.len()],
            names: Vec::new(),
            logged: 0,
            interrupted: 0,
            check: Check::new("flipped bits of files are noticed, and no wrong event is served"),
        }
    }

    /// Flips bits of the part that was damaged least, while the service is down. Returns
    /// what, if there is such a file.
    pub(crate) fn flip(&mut self, weir: &Weir, instance: &Instance) -> Result<Option<String>> {
        let segments = weir.data().join("segments");
        let mut parts: Vec<usize> = (0..PARTS.len()).collect();
        parts.sort_by_key(|part| self.flips.get(*part).copied());
        for part in parts.into_iter().filter_map(|part| PARTS.get(part).copied()) {
            let of_project = segments.join(instance.project_id.to_string());
            let file = match part {
                Part::Segment => largest(&directories(&of_project), "parquet"),
                Part::Entries | Part::Filter => largest(&[segments.join("uuids")], "run"),
            };
            let Some(file) = file else { continue };
            let bits = self.bits(part, &file)?;
            let flip = Flip { part, file, bits, is_found: false, is_killed: false };
            flip.apply()?;
            let name = flip.name();
            let note = format!("{} bits of the {part:?} of {name} flipped", flip.bits.len());
            self.names.push(name);
            self.present = Some(flip);
            return Ok(Some(note));
        }
        Ok(None)
    }

    /// Which bits of a file to flip.
    fn bits(&mut self, part: Part, file: &Path) -> Result<Vec<(u64, u8)>> {
        let opened = File::open(file)?;
        let length = opened.metadata()?.len();
        let mut number = [0; 8];
        opened.read_exact_at(&mut number, NUMBER)?;
        let entries = u64::from_be_bytes(number);
        let places: Vec<u64> = match part {
            Part::Segment => (1..=BITS).map(|place| length * place / (BITS + 1)).collect(),
            Part::Entries => vec![CHUNK + self.random.below(ENTRIES.min(entries) * 38)],
            // The runs of a test have one section: its filter follows all entries.
            Part::Filter => vec![CHUNK * (1 + entries.div_ceil(ENTRIES)) + SETTINGS],
        };
        ensure!(places.iter().all(|place| *place < length), "{} is short", file.display());
        let bit = |place| (place, 1 << self.random.below(8));
        Ok(places.into_iter().map(bit).collect())
    }

    /// Whether entries of a run were damaged.
    pub(crate) fn has_lost_uuids(&self) -> bool {
        let [entries, ..] = self.flips;
        entries > 0
    }

    /// Whether a run is damaged now.
    pub(crate) fn is_in_run(&self) -> bool {
        self.present.as_ref().is_some_and(|flip| flip.part != Part::Segment)
    }

    /// Waits until the service that starts has found the damage, which it repairs then.
    /// `logged`: where the lines of this start begin in the log.
    pub(crate) async fn until_found(&mut self, weir: &Weir, logged: u64) -> Result<()> {
        let Some(flip) = &mut self.present else { return Ok(()) };
        let name = flip.name();
        let deadline = Instant::now() + PATIENCE;
        // What a seal or a merge had left is removed at the start.
        while flip.file.exists() && Instant::now() < deadline {
            let text = weir.log_from(logged)?;
            let text = String::from_utf8_lossy(&text);
            if text.lines().any(|line| line.contains(NOTICED) && line.contains(&name)) {
                flip.is_found = true;
                return Ok(());
            }
            sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// Notes that the service was killed after [`until_found`](Self::until_found). The repair
    /// ends when the damaged file gets another name.
    pub(crate) fn killed(&mut self) {
        if let Some(flip) = &mut self.present {
            flip.is_killed = true;
            self.interrupted += u32::from(flip.is_found && flip.file.exists());
        }
    }

    /// Waits until the running service has noticed the damage, and checks that its events are
    /// not served wrongly and stay known. A segment is as before afterwards.
    pub(crate) async fn find(
        &mut self,
        weir: &Weir,
        instance: &Instance,
        ledger: &Shared,
        checks: &mut Checks,
    ) -> Result<()> {
        let Some(flip) = self.present.take() else { return Ok(()) };
        let name = flip.file.display().to_string();
        match flip.part {
            // What a seal or a merge had left was removed at the start. So is a damaged run if
            // the kill came when the catalog had the new one already.
            _ if !flip.file.exists() && !flip.set_aside().exists() && !flip.is_found => {
                say(&format!("{name} was in no catalog"));
                return Ok(());
            }
            Part::Segment => {
                let mut api = Api::open(weir.address, instance).await?;
                if !checks.until_refused(&mut api, ledger).await? {
                    self.check.fail(format!("all events were served with damage in {name}"));
                }
                flip.apply()?;
            }
            Part::Entries | Part::Filter => {
                send_again(weir, instance, ledger).await?;
                let deadline = Instant::now() + PATIENCE;
                while flip.file.exists() && Instant::now() < deadline {
                    sleep(Duration::from_millis(100)).await;
                }
                if flip.file.exists() {
                    self.check.fail(format!("{name} was not written again in {PATIENCE:?}"));
                }
            }
        }
        // The metric is updated once a second. A service that was killed after its repair
        // counts nothing at the next start.
        let deadline = Instant::now() + PATIENCE;
        while !flip.is_killed && metric(weir.metrics, "weir_segment_damage_total").await? == 0.0 {
            if Instant::now() > deadline {
                self.check.fail(format!("damage of {name} is not counted"));
                break;
            }
            sleep(Duration::from_millis(100)).await;
        }
        for (flips, part) in self.flips.iter_mut().zip(PARTS) {
            *flips += u32::from(part == flip.part);
        }
        Ok(())
    }

    /// Whether a line that the service logged as an error is about this damage.
    pub(crate) fn explains(&mut self, message: &str, line: &str) -> bool {
        let is_named = self.names.iter().any(|name| line.contains(name.as_str()));
        self.logged += u32::from(is_named && message == NOTICED);
        is_named || message == LOST && !self.names.is_empty()
    }

    /// The check, after all cycles.
    ///
    /// `is_long`: a kill must have interrupted a repair.
    pub(crate) fn sum_up(mut self, cycles: u32, is_long: bool) -> Check {
        let [entries, filters, segments] = self.flips;
        say(&format!(
            "flipped bits in entries of runs {entries} times, in filters {filters} times, in \
             segments {segments} times; the service logged damage {} times, and was killed during \
             the repair of a run {} times",
            self.logged, self.interrupted
        ));
        if is_long && self.interrupted == 0 {
            self.check.fail(format!("no kill interrupted the repair of a run in {cycles} cycles"));
        }
        if cycles >= ENOUGH && self.flips.contains(&0) {
            self.check.fail("there was nothing to damage of one kind".to_owned());
        }
        let all: u32 = self.flips.iter().sum();
        if self.logged < all {
            self.check.fail(format!("{all} times damaged, {} times logged", self.logged));
        }
        self.check
    }
}

impl Flip {
    /// Flips the bits; the second time they are as before.
    fn apply(&self) -> Result<()> {
        let file = File::options().read(true).write(true).open(&self.file)?;
        for (place, bit) in &self.bits {
            let mut byte = [0];
            file.read_exact_at(&mut byte, *place)?;
            file.write_all_at(&[byte[0] ^ bit], *place)?;
        }
        file.sync_all().with_context(|| self.file.display().to_string())
    }

    /// The name of the file, without its directory.
    fn name(&self) -> String {
        self.file.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// What the service renames a damaged run to.
    fn set_aside(&self) -> PathBuf {
        let mut name = self.file.as_os_str().to_owned();
        name.push(".damaged");
        name.into()
    }
}

/// Sends stored events again, the oldest ones, which are in the largest run most likely.
async fn send_again(weir: &Weir, instance: &Instance, ledger: &Shared) -> Result<()> {
    let body = {
        let ledger = lock(ledger);
        let stored = ledger.acknowledged().filter(|number| ledger.is_repeatable(*number));
        let numbers: Vec<u64> = stored.take(AGAIN).collect();
        ledger.batch(&instance.project_api_key, &numbers, false, 0)
    };
    let mut connection = Connection::open(weir.address).await?;
    let status = connection.send(&capture("/batch/", &body)).await?.status;
    ensure!(status == 200, "events that were sent again were answered with {status}");
    Ok(())
}

/// The directories in a directory.
fn directories(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// The largest file with this extension.
fn largest(directories: &[PathBuf], extension: &str) -> Option<PathBuf> {
    let files = directories.iter().filter_map(|directory| fs::read_dir(directory).ok());
    let files = files.flatten().flatten().map(|entry| entry.path());
    let files = files.filter(|path| path.extension().is_some_and(|name| name == extension));
    files.max_by_key(|path| fs::metadata(path).map_or(0, |file| file.len()))
}
