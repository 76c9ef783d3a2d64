//! Storing a month of events, as an import sends them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use weir_bench::client::Connection;
use weir_bench::questions::History;

use crate::service::Service;

/// Events of a request.
const BATCH: u64 = 1_000;
/// Events that are sent before waiting until they are readable: the log of all of them would
/// be larger than the store.
const PART: u64 = 1_000_000;
const CONNECTIONS: usize = 4;
/// Maximum time until the events of a part are readable.
const DRAIN: Duration = Duration::from_secs(1_800);
/// Pause between two checks whether they are: a check takes processor time from the import.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Pause after a refusal, and the number of refusals of one request that end the benchmark.
const AFTER_REFUSAL: Duration = Duration::from_millis(100);
const REFUSALS: u32 = 600;

/// Stores all events; returns how many were stored per second.
pub(super) async fn fill(service: &Service, history: History) -> Result<f64> {
    let events = history.events();
    let history = Arc::new(history);
    let began = Instant::now();
    let mut begin = 0;
    while begin < events {
        let end = events.min(begin + PART);
        crate::say(&format!("importing events {} to {end}", begin + 1));
        part(service, &history, begin..end).await?;
        begin = end;
    }
    Ok(events as f64 / began.elapsed().as_secs_f64().max(1e-9))
}

/// Stores a part of the events. The last request is sent after the answers to all others, and
/// an import is stored in its order: when it is readable, so are the others.
async fn part(service: &Service, history: &Arc<History>, events: Range<u64>) -> Result<()> {
    let last = events.start.max(events.end.saturating_sub(BATCH));
    let next = Arc::new(AtomicU64::new(events.start));
    let mut senders = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (history, next) = (Arc::clone(history), Arc::clone(&next));
        let key = service.instance.project_api_key.clone();
        let mut connection = Connection::open(service.address()).await?;
        senders.spawn(async move {
            loop {
                let begin = next.fetch_add(BATCH, Ordering::Relaxed);
                if begin >= last {
                    return anyhow::Ok(());
                }
                let request = history.request(&key, begin..last.min(begin + BATCH));
                deliver(&mut connection, &request).await?;
            }
        });
    }
    while let Some(sender) = senders.join_next().await {
        sender??;
    }
    let request = history.request(&service.instance.project_api_key, last..events.end);
    deliver(&mut Connection::open(service.address()).await?, &request).await?;
    let mut api = service.api().await?;
    let began = Instant::now();
    while !api.is_readable(history.uuid(events.end - 1)).await? {
        ensure!(began.elapsed() < DRAIN, "imported events are not readable after {DRAIN:?}");
        sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

/// Sends a request until it is accepted.
async fn deliver(connection: &mut Connection, request: &[u8]) -> Result<()> {
    let mut refusals = 0;
    loop {
        let status = connection.send(request).await?.status;
        if status == 200 {
            return Ok(());
        }
        ensure!(status == 503, "an import was answered with {status}");
        refusals += 1;
        ensure!(refusals < REFUSALS, "an import was refused {refusals} times");
        sleep(AFTER_REFUSAL).await;
    }
}
