//! Sending requests on several connections, under full load or at a fixed rate.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::client::Connection;
use crate::events::{Source, Template};
use crate::stats::Latencies;

/// Pause after a refusal, so that an overloaded service is not called in a tight loop.
const AFTER_REFUSAL: Duration = Duration::from_millis(20);

/// Prepared requests, for bodies that cannot be changed in place.
#[derive(Debug)]
pub struct Pool {
    requests: Arc<[Vec<u8>]>,
    events: usize,
    raw: usize,
    next: AtomicUsize,
}

impl Pool {
    /// These requests; each answer counts as one event.
    pub fn of(requests: Vec<Vec<u8>>) -> Self {
        Self { requests: requests.into(), events: 1, raw: 0, next: AtomicUsize::new(0) }
    }

    /// Compressed requests from a template, each with new events.
    ///
    /// # Errors
    /// Never in practice: compression is in memory.
    pub fn gzip(mut template: Template, source: &Source, requests: usize) -> Result<Self> {
        let mut made = Vec::with_capacity(requests);
        for _ in 0..requests {
            template.stamp(source);
            made.push(template.gzip()?);
        }
        let (events, raw) = (template.count(), template.raw_bytes());
        Ok(Self { requests: made.into(), events, raw, next: AtomicUsize::new(0) })
    }

    /// The same requests, with none of them used.
    pub fn untouched(&self) -> Self {
        let requests = Arc::clone(&self.requests);
        Self { requests, events: self.events, raw: self.raw, next: AtomicUsize::new(0) }
    }

    fn take(&self, again: bool) -> Option<&[u8]> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let index = if again { index % self.requests.len().max(1) } else { index };
        self.requests.get(index).map(Vec::as_slice)
    }
}

/// What is sent.
#[derive(Debug, Clone)]
pub enum Work {
    /// New events from a template.
    Fresh(Template, Arc<Source>),
    /// The requests of a pool, each once; the load ends with them.
    Once(Arc<Pool>),
    /// The requests of a pool, repeatedly.
    Again(Arc<Pool>),
}

/// A description of a load.
#[derive(Debug, Clone)]
pub struct Load {
    /// The address of the service.
    pub address: SocketAddr,
    /// Number of connections; each waits for an answer before it sends again.
    pub connections: usize,
    /// Duration of the load.
    pub time: Duration,
    /// Total requests per second; `None`: as fast as they are answered.
    pub rate: Option<f64>,
    /// Ends the load when the source has allocated this many events.
    pub most: u64,
    /// The requests to send.
    pub work: Work,
}

impl Load {
    /// A load as fast as it is answered, for some time.
    pub fn closed(address: SocketAddr, connections: usize, time: Duration, work: Work) -> Self {
        Self { address, connections, time, rate: None, most: u64::MAX, work }
    }
}

/// The results of a load.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Events in requests that were answered with 200.
    pub events: u64,
    /// Bytes of these events as JSON.
    pub raw_bytes: u64,
    /// Time from the first request to the last answer.
    pub took: Duration,
    /// Latencies of requests that were answered with 200.
    pub latencies: Latencies,
    /// Number of requests with another status.
    pub refused: u64,
    /// The last other status.
    pub refusal: Option<u16>,
}

impl Outcome {
    /// Acknowledged events per second.
    pub fn rate(&self) -> f64 {
        self.events as f64 / self.took.as_secs_f64().max(1e-9)
    }

    fn add(&mut self, part: &Self) {
        self.events += part.events;
        self.raw_bytes += part.raw_bytes;
        self.took = self.took.max(part.took);
        self.latencies.merge(&part.latencies);
        self.refused += part.refused;
        self.refusal = self.refusal.or(part.refusal);
    }
}

/// Sends a load.
///
/// # Errors
/// If a connection breaks: a running service never closes one.
pub async fn send(load: Load) -> Result<Outcome> {
    let ready = Arc::new(Barrier::new(load.connections));
    let mut senders = JoinSet::new();
    for _ in 0..load.connections {
        senders.spawn(sender(load.clone(), Arc::clone(&ready)));
    }
    let mut outcome = Outcome::default();
    while let Some(part) = senders.join_next().await {
        outcome.add(&part??);
    }
    Ok(outcome)
}

async fn sender(mut load: Load, ready: Arc<Barrier>) -> Result<Outcome> {
    let mut connection =
        Connection::open(load.address).await.context("cannot connect for the load")?;
    let mut pace = load.rate.map(|rate| {
        let mut pace = interval(Duration::from_secs_f64(load.connections as f64 / rate));
        pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
        pace
    });
    let mut outcome = Outcome::default();
    // All connections are open before the first request.
    ready.wait().await;
    let began = Instant::now();
    let mut now = began;
    while now.duration_since(began) < load.time {
        if let Some(pace) = &mut pace {
            pace.tick().await;
            now = Instant::now();
        }
        let (request, events, raw) = match &mut load.work {
            Work::Fresh(_, source) if source.taken() >= load.most => break,
            Work::Fresh(template, source) => {
                template.stamp(source);
                let (events, raw) = (template.count(), template.raw_bytes());
                (template.request(), events, raw)
            }
            Work::Once(pool) => match pool.take(false) {
                Some(request) => (request, pool.events, pool.raw),
                None => break,
            },
            Work::Again(pool) => match pool.take(true) {
                Some(request) => (request, pool.events, pool.raw),
                None => break,
            },
        };
        let status = connection.send(request).await.context("a connection broke")?.status;
        let answered = Instant::now();
        if status == 200 {
            outcome.events += events as u64;
            outcome.raw_bytes += raw as u64;
            outcome.latencies.add(answered.duration_since(now));
            outcome.took = answered.duration_since(began);
        } else {
            outcome.refused += 1;
            outcome.refusal = Some(status);
            tokio::time::sleep(AFTER_REFUSAL).await;
        }
        now = Instant::now();
    }
    Ok(outcome)
}
