//! Killing a process that writes to the store.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::time::sleep;
use weir_bench::blocks::{PROJECT, Visits, Writer, open_again};
use weir_bench::process::Process;
use weir_bench::random::Random;
use weir_bench::{STACK, until_stopped};
use weir_store::{Store, events};

use crate::{Check, say};

/// Partitions that are written concurrently.
const PARTITIONS: u16 = 2;
/// Maximum events of one write.
const LARGEST: u64 = 400;
/// How long the writer runs, including its start.
const LIVES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(2_500));
/// The store is compared after this many cycles.
const COMPARE_EVERY: u32 = 4;

fn runtime() -> Result<tokio::runtime::Runtime> {
    let built =
        tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build();
    Ok(built?)
}

/// The process of the writer: writes until it is killed, and prints partition and
/// position of each acknowledged write.
pub(crate) fn write(directory: &Path, seed: u64) -> Result<()> {
    // It must end together with the harness, even if that is killed.
    let end = rustix::process::Signal::TERM;
    rustix::process::set_parent_process_death_signal(Some(end))?;
    let directory = directory.to_owned();
    runtime()?.block_on(async move {
        // On a thread of the runtime, because the first thread has a small stack.
        tokio::spawn(async move {
            let store = open_again(&directory).await?;
            let mut writers = tokio::task::JoinSet::new();
            for partition in 0..PARTITIONS {
                let random = Random::new(seed ^ u64::from(partition));
                writers.spawn(write_partition(store.clone(), partition, random));
            }
            while let Some(ended) = writers.join_next().await {
                ended??;
            }
            Ok(())
        })
        .await?
    })
}

async fn write_partition(store: Store, partition: u16, mut random: Random) -> Result<()> {
    let visits = Visits::new(500);
    let mut writer = Writer::open(&store, partition).await?;
    loop {
        let from = writer.position();
        let most = if random.one_in(4) { LARGEST } else { 20 };
        let count = 1 + random.below(most);
        let new: Vec<_> =
            (from..from + count).map(|n| visits.event(arrival(partition, n))).collect();
        writer.write(&new).await?;
        let mut output = std::io::stdout().lock();
        writeln!(output, "{partition} {}", writer.position())?;
        output.flush()?;
    }
}

/// Arrival numbers alternate between the partitions.
fn arrival(partition: u16, position: u64) -> u64 {
    1 + position * u64::from(PARTITIONS) + u64::from(partition)
}

/// Runs the cycles.
pub(crate) fn run(directory: &Path, cycles: u32, seed: u64) -> Result<Vec<Check>> {
    let directory = directory.to_owned();
    runtime()?.block_on(until_stopped(async move {
        tokio::spawn(async move { kill_cycles(&directory, cycles, seed).await }).await?
    }))
}

async fn kill_cycles(directory: &Path, cycles: u32, seed: u64) -> Result<Vec<Check>> {
    let mut random = Random::new(seed);
    let mut acknowledged: BTreeMap<u16, u64> = BTreeMap::new();
    let mut missing = Check::new("every acknowledged event is there");
    let mut once = Check::new("every event is there once and as it was written");
    let mut longest = Duration::ZERO;
    for cycle in 1..=cycles {
        let lives = random.between(LIVES.0, LIVES.1);
        let before: u64 = acknowledged.values().sum();
        live_and_die(directory, lives, random.number(), &mut acknowledged).await?;
        say(&format!(
            "cycle {cycle}: killed after {} ms, {} acknowledged",
            lives.as_millis(),
            acknowledged.values().sum::<u64>() - before
        ));
        if cycle % COMPARE_EVERY == 0 || cycle == cycles {
            let took = compare(directory, &acknowledged, &mut missing, &mut once).await?;
            longest = longest.max(took);
        }
    }
    let all: u64 = acknowledged.values().sum();
    say(&format!(
        "{cycles} cycles: lost {} of {all}; longest start {} ms",
        missing.faults.len(),
        longest.as_millis()
    ));
    Ok(vec![missing, once])
}

/// One run of the writer.
async fn live_and_die(
    directory: &Path,
    lives: Duration,
    seed: u64,
    acknowledged: &mut BTreeMap<u16, u64>,
) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("writer").arg(directory).arg(seed.to_string());
    let mut process = Process::start(command.stdin(Stdio::null()).stdout(Stdio::piped()))?;
    let output = process.take_output().context("the writer has no output")?;
    // Reads to the end of the pipe, including lines that were printed just before the
    // kill.
    let reading = tokio::task::spawn_blocking(move || {
        BufReader::new(output).lines().map_while(Result::ok).collect::<Vec<_>>()
    });
    sleep(lives).await;
    ensure!(process.ended()?.is_none(), "the writer ended by itself");
    process.kill()?;
    for line in reading.await? {
        // The last line may be truncated: a truncated number would be too small, and
        // without the partition there is none.
        if let Some((partition, position)) = line.split_once(' ')
            && let (Ok(partition), Ok(position)) = (partition.parse(), position.parse::<u64>())
        {
            let known = acknowledged.entry(partition).or_insert(0);
            *known = position.max(*known);
        }
    }
    Ok(())
}

/// Opens the store and reads all of it; returns how long opening took.
async fn compare(
    directory: &Path,
    acknowledged: &BTreeMap<u16, u64>,
    missing: &mut Check,
    once: &mut Check,
) -> Result<Duration> {
    let began = tokio::time::Instant::now();
    let store = open_again(directory).await?;
    let took = began.elapsed();
    let visits = Visits::new(500);
    let mut seen: BTreeMap<u64, u32> = BTreeMap::new();
    let mut before = None;
    loop {
        let page = events::arrivals(&store, PROJECT, before, 1_000).await?;
        for event in &page.events {
            *seen.entry(event.arrival).or_default() += 1;
            if *event != visits.event(event.arrival) {
                once.fail(format!("event {} is not as it was written", event.arrival));
            }
        }
        before = page.events.last().map(|event| event.arrival);
        if !page.more {
            break;
        }
    }
    for partition in 0..PARTITIONS {
        let sent = acknowledged.get(&partition).copied().unwrap_or(0);
        let position = events::position(&store, partition).await?.offset;
        if position < sent {
            missing
                .fail(format!("partition {partition} is at {position}, {sent} was acknowledged"));
        }
        // Events and position are one transaction: all events up to the position, none
        // after it.
        for number in 0..sent.max(position) {
            match seen.remove(&arrival(partition, number)) {
                Some(1) => {}
                Some(count) => once.fail(format!("event {number} is there {count} times")),
                None => missing.fail(format!("event {number} of partition {partition}")),
            }
        }
    }
    for arrival in seen.keys() {
        once.fail(format!("event {arrival} is after the position"));
    }
    store.close().await?;
    Ok(took)
}
