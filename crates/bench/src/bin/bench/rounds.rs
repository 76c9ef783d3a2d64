//! Interleaved rounds: floor and Weir alternate, so that other load on the machine
//! affects both.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::time::Instant;
use uuid::Uuid;
use weir_bench::client::Connection;
use weir_bench::events::{People, Shape, Source, Template};
use weir_bench::load::{Load, Outcome, Pool, Work, send};
use weir_bench::process;
use weir_bench::stats::median;

use crate::service::Service;

/// Events that are sent last, to detect that all before them are readable: enough to be
/// in every partition.
const LAST: usize = 64;
/// Timeout until everything acknowledged is readable.
const DRAIN: Duration = Duration::from_secs(600);

/// A kind of load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) connections: usize,
    /// Events of a request; `None`: a single event to `/capture/`.
    batch: Option<usize>,
    gzip: bool,
}

pub(crate) const SCENARIOS: [Scenario; 7] = [
    Scenario { name: "single events, 1 connection", connections: 1, batch: None, gzip: false },
    Scenario { name: "single events, 32 connections", connections: 32, batch: None, gzip: false },
    Scenario { name: "single events, 128 connections", connections: 128, batch: None, gzip: false },
    Scenario { name: "batches of 100", connections: 8, batch: Some(100), gzip: false },
    Scenario { name: "batches of 100, gzip", connections: 8, batch: Some(100), gzip: true },
    Scenario { name: "batches of 1000", connections: 4, batch: Some(1000), gzip: false },
    Scenario { name: "batches of 1000, gzip", connections: 4, batch: Some(1000), gzip: true },
];

/// Index in [`SCENARIOS`] that the aims refer to.
pub(crate) const ONE: usize = 0;
pub(crate) const MANY: [usize; 2] = [1, 2];
pub(crate) const BATCH: usize = 3;

/// Figures of one server in one scenario, one value per round.
#[derive(Debug, Clone, Default)]
pub(crate) struct Side {
    /// Acknowledged events per second.
    pub(crate) rate: Vec<f64>,
    /// Milliseconds.
    pub(crate) p50: Vec<f64>,
    pub(crate) p99: Vec<f64>,
    /// Processor milliseconds per 1,000 events.
    pub(crate) cpu: Vec<f64>,
    pub(crate) refused: u64,
}

impl Side {
    fn add(&mut self, outcome: &Outcome, cpu: Duration, events: u64) {
        self.rate.push(outcome.rate());
        self.p50.push(outcome.latencies.percentile(0.5));
        self.p99.push(outcome.latencies.percentile(0.99));
        self.cpu.push(cpu.as_secs_f64() * 1e6 / events.max(1) as f64);
        self.refused += outcome.refused;
    }
}

/// Results of one scenario.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) scenario: Scenario,
    pub(crate) floor: Side,
    pub(crate) weir: Side,
    /// Stored and readable events per second.
    pub(crate) stored: Vec<f64>,
    /// Processor milliseconds of the client per 1,000 events, both loads.
    pub(crate) client: Vec<f64>,
}

impl Row {
    /// Median over the rounds of Weir's value divided by the floor's.
    pub(crate) fn ratio(&self, of: impl Fn(&Side) -> &Vec<f64>) -> f64 {
        let pairs = of(&self.weir).iter().zip(of(&self.floor));
        let ratios: Vec<f64> = pairs.map(|(weir, floor)| weir / floor.max(1e-9)).collect();
        median(&ratios)
    }

    /// Median over the rounds of the stored rate divided by the floor's rate.
    pub(crate) fn stored_ratio(&self) -> f64 {
        let pairs = self.stored.iter().zip(&self.floor.rate);
        let ratios: Vec<f64> = pairs.map(|(stored, floor)| stored / floor.max(1e-9)).collect();
        median(&ratios)
    }
}

/// Results of all rounds.
#[derive(Debug)]
pub(crate) struct Rounds {
    pub(crate) rows: Vec<Row>,
    /// Processor time of Weir's threads while it accepted and stored batches of 100.
    pub(crate) threads: BTreeMap<String, Duration>,
    pub(crate) count: usize,
    pub(crate) time: Duration,
}

/// Duration and number of rounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) rounds: usize,
    pub(crate) time: Duration,
    /// Events of the compressed requests that are created for one run.
    pub(crate) pool: usize,
}

/// Runs all scenarios alternately.
pub(crate) async fn run(
    service: &Service,
    floor: (SocketAddr, u32),
    effort: Effort,
) -> Result<Rounds> {
    let empty = Side::default;
    let mut rows: Vec<Row> = SCENARIOS
        .into_iter()
        .map(|scenario| Row {
            scenario,
            floor: empty(),
            weir: empty(),
            stored: Vec::new(),
            client: Vec::new(),
        })
        .collect();
    let mut threads = BTreeMap::new();
    for round in 0..effort.rounds {
        for (index, row) in rows.iter_mut().enumerate() {
            crate::say(&format!("round {} of {}: {}", round + 1, effort.rounds, row.scenario.name));
            let (for_floor, for_weir) = work(service, row.scenario, effort)?;
            let client = process::cpu("self")?;
            let mut events = 0;
            // The second of a pair runs under other conditions than the first, so the
            // order alternates.
            for weir in [round % 2 == 0, round % 2 != 0] {
                if weir {
                    let before = process::cpu_by_thread(service.id())?;
                    events += of_weir(service, row, for_weir.clone(), effort.time).await?;
                    if index == BATCH {
                        for (name, after) in process::cpu_by_thread(service.id())? {
                            let used = after
                                .saturating_sub(before.get(&name).copied().unwrap_or_default());
                            *threads.entry(name).or_insert(Duration::ZERO) += used;
                        }
                    }
                } else {
                    events += of_floor(floor, row, for_floor.clone(), effort.time).await?;
                }
            }
            let used = process::cpu("self")?.saturating_sub(client);
            row.client.push(used.as_secs_f64() * 1e6 / events.max(1) as f64);
        }
    }
    Ok(Rounds { rows, threads, count: effort.rounds, time: effort.time })
}

/// The load, which is the same for both servers. Compressed requests are created before
/// the run. The floor may get one twice; Weir would not store it twice.
fn work(service: &Service, scenario: Scenario, effort: Effort) -> Result<(Work, Work)> {
    let token = &service.instance.project_api_key;
    let template = match scenario.batch {
        None => Template::single(token, Shape::Server),
        Some(count) => Template::batch(token, Shape::Server, count),
    };
    if scenario.gzip {
        let requests = effort.pool / template.count();
        let pool = Pool::gzip(template, &service.source, requests)?;
        return Ok((Work::Again(Arc::new(pool.untouched())), Work::Once(Arc::new(pool))));
    }
    let floor = Arc::new(Source::new(1, People::New));
    Ok((Work::Fresh(template.clone(), floor), Work::Fresh(template, Arc::clone(&service.source))))
}

async fn of_floor(
    (address, id): (SocketAddr, u32),
    row: &mut Row,
    work: Work,
    time: Duration,
) -> Result<u64> {
    let before = process::cpu(&id.to_string())?;
    let outcome = send(Load::closed(address, row.scenario.connections, time, work)).await?;
    let used = process::cpu(&id.to_string())?.saturating_sub(before);
    ensure!(outcome.refused == 0, "the floor answered {:?}", outcome.refusal);
    row.floor.add(&outcome, used, outcome.events);
    let mut connection = Connection::open(address).await?;
    connection.send(b"POST /empty/ HTTP/1.1\r\nHost: f\r\nContent-Length: 0\r\n\r\n").await?;
    Ok(outcome.events)
}

async fn of_weir(service: &Service, row: &mut Row, work: Work, time: Duration) -> Result<u64> {
    let process = service.id().to_string();
    let before = process::cpu(&process)?;
    let load = Load::closed(service.address(), row.scenario.connections, time, work);
    let (outcome, took) = send_until_readable(service, load).await?;
    let used = process::cpu(&process)?.saturating_sub(before);
    let events = outcome.events + LAST as u64;
    row.weir.add(&outcome, used, events);
    row.stored.push(events as f64 / took.as_secs_f64());
    Ok(events)
}

/// Sends a load and waits until all of it is readable; returns the duration of both.
pub(crate) async fn send_until_readable(
    service: &Service,
    load: Load,
) -> Result<(Outcome, Duration)> {
    let began = Instant::now();
    let outcome = send(load).await?;
    wait_readable(service).await?;
    Ok((outcome, began.elapsed()))
}

/// Waits until everything acknowledged before is readable: the events of a request that
/// was logged after all others.
pub(crate) async fn wait_readable(service: &Service) -> Result<()> {
    let mut last = Template::batch(&service.instance.project_api_key, Shape::Server, LAST);
    let numbers = last.stamp(&service.source);
    let mut connection = Connection::open(service.address()).await?;
    let status = connection.send(last.request()).await?.status;
    ensure!(status == 200, "the last events of a load were answered with {status}");
    let uuids: Vec<Uuid> = numbers.map(|number| service.source.uuid(number)).collect();
    let mut api = service.api().await?;
    api.wait_readable(&uuids, DRAIN).await.context("after a load")
}
