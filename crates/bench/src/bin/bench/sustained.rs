//! The maximum rate of stored events by kind of traffic, and the time until an event is
//! readable below that rate.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{Instant, sleep};
use weir_bench::client::Connection;
use weir_bench::events::{People, Shape, Source, Template};
use weir_bench::load::{Load, Work, send};
use weir_bench::process;
use weir_bench::random::Random;
use weir_bench::stats::{Latencies, median};

use crate::rounds::send_until_readable;
use crate::service::Service;

/// Events of a request.
pub(crate) const BATCH: usize = 100;
/// Timeout for one event.
const PATIENCE: Duration = Duration::from_secs(60);

/// Number of distinct ids, which are all known after a short time.
pub(crate) const PEOPLE: u64 = 5_000;

/// Kinds of traffic.
const KINDS: [(&str, Shape, People); 4] = [
    ("server events, a new person each", Shape::Server, People::New),
    ("server events, 5,000 distinct ids", Shape::Server, People::Known(PEOPLE)),
    ("the same, each sets a property of its person", Shape::Setting, People::Known(PEOPLE)),
    ("browser page views, unidentified", Shape::Browser, People::New),
];

/// Index of the kind that an aim refers to.
pub(crate) const KNOWN: usize = 1;

/// Stored events per second of one kind of traffic.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) acknowledged: f64,
    pub(crate) stored: f64,
    /// Processor milliseconds of the service per 1,000 events.
    pub(crate) cpu: f64,
}

/// Times from an answer until the event is readable.
#[derive(Debug)]
pub(crate) struct Freshness {
    /// Fraction of the sustainable rate.
    pub(crate) share: f64,
    /// Events per second that were sent at the same time.
    pub(crate) rate: f64,
    pub(crate) p50: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
    pub(crate) probes: usize,
}

/// Stores each kind of traffic alternately.
pub(crate) async fn kinds(service: &Service, rounds: usize, time: Duration) -> Result<Vec<Kind>> {
    let process = service.id().to_string();
    let mut rates = [const { (Vec::new(), Vec::new(), Vec::new()) }; KINDS.len()];
    for round in 0..rounds {
        for (index, (name, shape, people)) in KINDS.into_iter().enumerate() {
            crate::say(&format!("storing: {name}, {} of {rounds}", round + 1));
            let template = Template::batch(&service.instance.project_api_key, shape, BATCH);
            let seed = 1_000 + (round * KINDS.len() + index) as u64;
            let work = Work::Fresh(template, Arc::new(Source::new(seed, people)));
            let load = Load::closed(service.address(), 8, time, work);
            let before = process::cpu(&process)?;
            let (outcome, took) = send_until_readable(service, load).await?;
            let used = process::cpu(&process)?.saturating_sub(before);
            rates[index].0.push(outcome.rate());
            rates[index].1.push(outcome.events as f64 / took.as_secs_f64());
            rates[index].2.push(used.as_secs_f64() * 1e6 / outcome.events.max(1) as f64);
        }
    }
    let kinds =
        KINDS.into_iter().zip(rates).map(|((name, ..), (acknowledged, stored, cpu))| Kind {
            name,
            acknowledged: median(&acknowledged),
            stored: median(&stored),
            cpu: median(&cpu),
        });
    Ok(kinds.collect())
}

/// Sends a fraction of the sustainable rate, and measures the time until single events
/// are readable.
pub(crate) async fn freshness(
    service: &Service,
    sustainable: f64,
    share: f64,
    time: Duration,
) -> Result<Freshness> {
    crate::say(&format!("time to readable at {:.0} % of the sustainable rate", share * 100.0));
    let template = Template::batch(&service.instance.project_api_key, Shape::Server, BATCH);
    let work = Work::Fresh(template, Arc::clone(&service.source));
    let load = Load {
        rate: Some((sustainable * share / BATCH as f64).max(1.0)),
        ..Load::closed(service.address(), 4, time, work)
    };
    let background = tokio::spawn(send(load));
    let mut probes = Latencies::default();
    probe(service, &service.source, time, |_, took| probes.add(took)).await?;
    let outcome = background.await??;
    ensure!(outcome.refused == 0, "a load below the sustainable rate was refused");
    Ok(Freshness {
        share,
        rate: outcome.rate(),
        p50: probes.percentile(0.5),
        p95: probes.percentile(0.95),
        p99: probes.percentile(0.99),
        probes: probes.count(),
    })
}

/// Sends single events of a source for some time, one after the other; returns for each
/// its number and the time from the answer until it was readable.
pub(crate) async fn probe(
    service: &Service,
    source: &Source,
    time: Duration,
    mut readable: impl FnMut(u64, Duration),
) -> Result<()> {
    let mut template = Template::single(&service.instance.project_api_key, Shape::Server);
    let mut connection = Connection::open(service.address()).await?;
    let mut api = service.api().await?;
    let mut random = Random::new(5);
    let end = Instant::now() + time;
    while Instant::now() < end {
        let number = template.stamp(source).start;
        let status = connection.send(template.request()).await?.status;
        ensure!(status == 200, "a probe was answered with {status}");
        let answered = Instant::now();
        api.wait_readable(&[source.uuid(number)], PATIENCE).await?;
        readable(number, answered.elapsed());
        // Random pauses, so that the probes are not synchronized with commits.
        sleep(random.between(Duration::from_millis(10), Duration::from_millis(120))).await;
    }
    Ok(())
}
