//! Benchmark of the store without log, persons and HTTP.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use tokio::task::JoinSet;
use weir_bench::STACK;
use weir_bench::blocks::{PROJECT, Visits, Writer};
use weir_model::events::EventQuery;
use weir_store::events::page;
use weir_store::{Location, Settings, Store};

/// Events of one transaction: the maximum of a batch of the log.
const BATCH: u64 = 4_000;

/// Events or pages per second.
#[derive(Debug)]
pub(crate) struct Library {
    /// Writing one partition.
    pub(crate) insert_one: f64,
    /// Writing four partitions concurrently.
    pub(crate) insert_four: f64,
    /// Pages of the newest 100 events, sequentially.
    pub(crate) pages: f64,
    /// Single events by uuid, sequentially.
    pub(crate) by_uuid: f64,
}

/// Measures a new store in `directory`.
pub(crate) fn run(directory: &Path, events: u64) -> Result<Library> {
    crate::say("the store alone");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK)
        .build()?;
    let directory = directory.to_owned();
    // On a thread of the runtime, because the first thread has a small stack.
    runtime.block_on(async move { tokio::spawn(measure(directory, events)).await? })
}

async fn measure(directory: std::path::PathBuf, events: u64) -> Result<Library> {
    let store = Store::open(&Location::Directory(directory), Settings::default()).await?;
    let visits = Arc::new(Visits::new(10_000));
    let insert_one = insert(&store, &visits, 0, 1, events).await?;
    let insert_four = insert(&store, &visits, events, 4, events).await?;

    let reads = 300_u64;
    let began = Instant::now();
    for _ in 0..reads {
        page(&store, PROJECT, &EventQuery { limit: 100, ..EventQuery::default() }).await?;
    }
    let pages = reads as f64 / began.elapsed().as_secs_f64();
    let began = Instant::now();
    for read in 0..reads {
        let uuid = Some(visits.uuid(1 + read * events / reads));
        page(&store, PROJECT, &EventQuery { limit: 1, uuid, ..EventQuery::default() }).await?;
    }
    let by_uuid = reads as f64 / began.elapsed().as_secs_f64();
    store.close().await?;
    Ok(Library { insert_one, insert_four, pages, by_uuid })
}

/// Writes `events` events after `from`, divided among the partitions.
async fn insert(
    store: &Store,
    visits: &Arc<Visits>,
    from: u64,
    partitions: u16,
    events: u64,
) -> Result<f64> {
    let mut parts = Vec::new();
    for partition in 0..partitions {
        // The events are created before the time is measured.
        let numbers = (from + 1..=from + events).skip(usize::from(partition));
        let events: Vec<_> =
            numbers.step_by(usize::from(partitions)).map(|number| visits.event(number)).collect();
        parts.push((Writer::open(store, partition).await?, events));
    }
    let began = Instant::now();
    let mut writers = JoinSet::new();
    for (mut writer, events) in parts {
        writers.spawn(async move {
            for batch in events.chunks(usize::try_from(BATCH).unwrap_or(1)) {
                writer.write(batch).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = writers.join_next().await {
        done??;
    }
    Ok(events as f64 / began.elapsed().as_secs_f64())
}
