//! Two layouts of events in the store, measured at two sizes.
//!
//! `layouts [--events N]` prints the table of `docs/adr/0003-event-layout.md`. Both
//! layouts get the same events: visitors who send ten events each, interleaved with those
//! of fifty others, a hundred events per second.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Parser;
use tokio::task::JoinSet;
use weir_bench::blocks::{PROJECT, Visits, Writer, open_again};
use weir_bench::process::disk_usage;
use weir_bench::stats::Latencies;
use weir_bench::{STACK, until_stopped};
use weir_model::Timestamp;
use weir_model::events::EventQuery;
use weir_store::events::{self, LIVE_PARTITIONS, live_partition};
use weir_store::{Store, measure};

/// Events of one transaction of the layout with a record per event.
const RECORDS: usize = 1_000;
/// Events of one transaction of the layout with blocks, and how many are created at a
/// time before the time is measured.
const BATCH: usize = 1_000;
const PORTION: u64 = 20_000;
/// Events of a page.
const PAGE: usize = 100;
/// Number of distinct ids; at 5,000,000 events each has about a hundred.
const PEOPLE: u64 = 50_000;

/// Measures event layouts.
#[derive(Debug, Parser)]
struct Cli {
    /// Events of the larger measurement
    #[arg(long, default_value_t = 5_000_000, value_name = "N")]
    events: u64,
    /// Events of the smaller measurement
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    small: u64,
    /// Pages read for each figure
    #[arg(long, default_value_t = 50, value_name = "N")]
    pages: u64,
    /// Directory to work in [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Records,
    Blocks,
}

/// Results of one layout at one size.
struct Row {
    layout: Layout,
    events: u64,
    written: f64,
    by_arrival: Latencies,
    by_time: Latencies,
    by_distinct_id: Latencies,
    bytes: f64,
    raw: f64,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let place = cli.directory.clone().unwrap_or_else(std::env::temp_dir);
    let directory = tempfile::Builder::new().prefix("weir-layouts-").tempdir_in(place)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK)
        .build()?;
    let path = directory.path().to_owned();
    // On a thread of the runtime, because the first thread has a small stack.
    let rows = runtime.block_on(until_stopped(async move {
        tokio::spawn(async move {
            let mut rows = Vec::new();
            for events in [cli.small, cli.events] {
                for layout in [Layout::Records, Layout::Blocks] {
                    rows.push(run(&path, layout, events, cli.pages).await?);
                }
            }
            anyhow::Ok(rows)
        })
        .await?
    }))?;
    print(&rows)?;
    Ok(())
}

async fn run(directory: &Path, layout: Layout, events: u64, pages: u64) -> Result<Row> {
    let directory = directory.join(format!("{layout:?}-{events}"));
    say(&format!("{layout:?}, {events} events"));
    let store = open_again(&directory).await?;
    // The engine allocates its log in advance, at any size.
    let empty = disk_usage(&directory)?;
    let visits = Arc::new(Visits::new(PEOPLE));
    let took = match layout {
        Layout::Records => write_records(&store, &visits, events).await?,
        Layout::Blocks => write_blocks(&store, &visits, events).await?,
    };
    // Closed and opened again, so that the data is in files, not in memory.
    store.close().await?;
    drop(store);
    let store = open_again(&directory).await?;
    let mut row = Row {
        layout,
        events,
        written: events as f64 / took.as_secs_f64(),
        by_arrival: Latencies::default(),
        by_time: Latencies::default(),
        by_distinct_id: Latencies::default(),
        bytes: disk_usage(&directory)?.saturating_sub(empty) as f64 / events as f64,
        raw: visits.event(events / 2).properties.len() as f64,
    };
    for page in 0..pages {
        // Positions within the middle half.
        let at = events / 4 + page * (events / 2) / pages.max(1);
        let whom = visits.distinct_id(at);
        let time = Visits::time(at);
        let began = Instant::now();
        let read = match layout {
            Layout::Records => measure::by_arrival(&store, PROJECT, at, PAGE).await?,
            Layout::Blocks => events::arrivals(&store, PROJECT, Some(at), PAGE).await?.events.len(),
        };
        row.by_arrival.add(began.elapsed());
        ensure!(read == PAGE, "a page by arrival has {read} events");

        let began = Instant::now();
        let read = match layout {
            Layout::Records => measure::by_time(&store, PROJECT, time, PAGE).await?,
            Layout::Blocks => page_of(&store, Some(time), None).await?,
        };
        row.by_time.add(began.elapsed());
        ensure!(read == PAGE, "a page by time has {read} events");

        let began = Instant::now();
        let read = match layout {
            Layout::Records => {
                measure::by_distinct_id(&store, PROJECT, &whom, events + 1, PAGE).await?
            }
            Layout::Blocks => page_of(&store, None, Some(whom)).await?,
        };
        row.by_distinct_id.add(began.elapsed());
        ensure!(read > 0, "a page by distinct id is empty");
    }
    store.close().await?;
    drop(store);
    fs::remove_dir_all(&directory)?;
    Ok(row)
}

async fn page_of(store: &Store, before: Option<i64>, whom: Option<String>) -> Result<usize> {
    let query = EventQuery {
        limit: PAGE,
        before: before.map(Timestamp::from_micros),
        distinct_id: whom,
        ..EventQuery::default()
    };
    Ok(events::page(store, PROJECT, &query).await?.0.len())
}

/// Four concurrent writers, as with blocks, so that both layouts have concurrent syncs.
async fn write_records(store: &Store, visits: &Arc<Visits>, events: u64) -> Result<Duration> {
    let mut took = Duration::ZERO;
    for first in (1..=events).step_by(usize::try_from(PORTION)?) {
        let last = events.min(first + PORTION - 1);
        let mut parts = vec![Vec::new(); usize::from(LIVE_PARTITIONS)];
        for (index, from) in (first..=last).step_by(RECORDS).enumerate() {
            let to = last.min(from + RECORDS as u64 - 1);
            let batch: Vec<_> = (from..=to).map(|number| visits.event(number)).collect();
            parts[index % usize::from(LIVE_PARTITIONS)].push(batch);
        }
        let began = Instant::now();
        let mut working = JoinSet::new();
        for part in parts {
            let store = store.clone();
            working.spawn(async move {
                for batch in part {
                    measure::write(&store, PROJECT, &batch).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = working.join_next().await {
            done??;
        }
        took += began.elapsed();
        tell(last, events);
    }
    Ok(took)
}

/// As in the pipeline: four partitions with one writer each.
async fn write_blocks(store: &Store, visits: &Arc<Visits>, events: u64) -> Result<Duration> {
    let mut took = Duration::ZERO;
    let mut writers = Vec::new();
    for partition in 0..LIVE_PARTITIONS {
        writers.push(Writer::open(store, partition).await?);
    }
    for first in (1..=events).step_by(usize::try_from(PORTION)?) {
        let last = events.min(first + PORTION - 1);
        let mut parts = vec![Vec::new(); usize::from(LIVE_PARTITIONS)];
        for number in first..=last {
            let event = visits.event(number);
            let partition = usize::from(live_partition(PROJECT, &event.distinct_id));
            parts[partition].push(event);
        }
        let began = Instant::now();
        let mut working = JoinSet::new();
        for (mut writer, part) in writers.drain(..).zip(parts) {
            working.spawn(async move {
                for batch in part.chunks(BATCH) {
                    writer.write(batch).await?;
                }
                anyhow::Ok(writer)
            });
        }
        while let Some(done) = working.join_next().await {
            writers.push(done??);
        }
        took += began.elapsed();
        // They end in any order; parts are sorted by partition.
        writers.sort_by_key(Writer::partition);
        tell(last, events);
    }
    Ok(took)
}

fn tell(done: u64, of: u64) {
    if done.is_multiple_of(500_000) {
        say(&format!("{done} of {of}"));
    }
}

fn say(line: &str) {
    // Standard error may be closed.
    let _ = writeln!(std::io::stderr(), "layouts: {line}");
}

fn print(rows: &[Row]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "| layout | events | written/s | page by arrival, p50 / p95 ms | page by event time | page by distinct id | bytes on disk per event (properties: {:.0}) |\n|---|---|---|---|---|---|---|",
        rows.first().map_or(0.0, |row| row.raw)
    )?;
    for row in rows {
        let name = match row.layout {
            Layout::Records => "record per event, pointers",
            Layout::Blocks => "compressed blocks",
        };
        let pages =
            |of: &Latencies| format!("{:.1} / {:.1}", of.percentile(0.5), of.percentile(0.95));
        writeln!(
            out,
            "| {name} | {} | {:.0} | {} | {} | {} | {:.0} |",
            row.events,
            row.written,
            pages(&row.by_arrival),
            pages(&row.by_time),
            pages(&row.by_distinct_id),
            row.bytes
        )?;
    }
    Ok(())
}
