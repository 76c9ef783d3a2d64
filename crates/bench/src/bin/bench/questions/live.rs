//! Questions while events arrive: how soon an event counts, and what questions cost the events.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use weir_bench::api::{Api, anonymous};
use weir_bench::client::Connection;
use weir_bench::events::{People, Shape, Source, Template};
use weir_bench::load::{Load, Work};
use weir_bench::questions::{Days, Kind};
use weir_bench::random::Random;
use weir_bench::stats::{Latencies, median};
use weir_bench::weir::Instance;

use super::send;
use crate::rounds::send_until_readable;
use crate::service::Service;
use crate::sustained::{BATCH, PEOPLE};

/// Events per second of the steady load.
pub(super) const STEADY: f64 = 5_000.0;
/// Full loads with questions, and without.
const ROUNDS: u64 = 3;
/// Timeout until an event counts.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause after a question that the service was too busy for, and between two questions for an
/// event.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// The name of the events whose number is asked for.
const PROBE: &str = "question probe";

/// How soon an event counts beside a steady load.
#[derive(Debug)]
pub(super) struct Fresh {
    /// Acknowledged events per second.
    pub(super) rate: f64,
    /// From the answer to an event until an answer to a question counts it.
    pub(super) counted: Latencies,
}

/// Full loads with and without questions.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) alone: Sending,
    pub(super) beside: Sending,
    /// Questions that were answered, and that the service had no time for.
    pub(super) answered: u64,
    pub(super) busy: u64,
}

/// Events per second.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) acknowledged: f64,
    pub(super) stored: f64,
}

/// Sends single events beside a steady load, one after the other, and asks for their number
/// until it is right.
pub(super) async fn fresh(service: &Service, time: Duration) -> Result<Fresh> {
    crate::say(&format!("time until events count, beside {STEADY} events/s"));
    let work = work(service, 6_000);
    let load = Load {
        rate: Some(STEADY / BATCH as f64),
        ..Load::closed(service.address(), 4, time, work)
    };
    let background = tokio::spawn(weir_bench::load::send(load));
    let mut counted = Latencies::default();
    let mut connection = Connection::open(service.address()).await?;
    let mut api = service.api().await?;
    let mut random = Random::new(9);
    let end = Instant::now() + time;
    let mut sent = 0;
    while Instant::now() < end {
        let key = &service.instance.project_api_key;
        let event = json!({ "api_key": key, "event": PROBE, "distinct_id": "probe" });
        let request = anonymous("POST", "/capture/", &event.to_string());
        let status = connection.send(&request).await?.status;
        ensure!(status == 200, "a probe was answered with {status}");
        sent += 1;
        let acknowledged = Instant::now();
        while count(&service.instance, &mut api).await?.is_none_or(|count| count < sent) {
            ensure!(
                acknowledged.elapsed() < PATIENCE,
                "an event does not count after {PATIENCE:?}"
            );
            sleep(LOOK_AGAIN).await;
        }
        counted.add(acknowledged.elapsed());
        // Random pauses, so that the probes are not synchronized with commits.
        sleep(random.between(Duration::from_millis(100), Duration::from_millis(500))).await;
    }
    let outcome = background.await??;
    ensure!(outcome.refused == 0, "a steady load was refused {} times", outcome.refused);
    Ok(Fresh { rate: outcome.rate(), counted })
}

/// The number of probes. `None`: the service has other work.
async fn count(instance: &Instance, api: &mut Api) -> Result<Option<u64>> {
    let question = json!({
        "kind": "TrendsQuery", "series": [{ "kind": "EventsNode", "event": PROBE }],
        // The day may end meanwhile.
        "dateRange": { "date_from": "-1d" }, "trendsFilter": { "display": "BoldNumber" },
    });
    let Some(answer) = send(instance, api, &question).await? else { return Ok(None) };
    let answer: Value = serde_json::from_slice(&answer)?;
    let number = answer["results"][0]["aggregated_value"].as_u64();
    Ok(Some(number.with_context(|| format!("an answer has no number: {answer}"))?))
}

/// Stores events as fast as they are acknowledged, alternately with questions and without.
pub(super) async fn asking(service: &Service, days: Days, time: Duration) -> Result<Asking> {
    let (mut alone, mut beside) = (Rounds::default(), Rounds::default());
    let (mut answered, mut busy) = (0, 0);
    for round in 0..ROUNDS {
        crate::say(&format!("events beside questions, {} of {ROUNDS}", round + 1));
        alone.round(service, time, 7_000 + 2 * round).await?;
        let is_over = AtomicBool::new(false);
        let sending = async {
            let sent = beside.round(service, time, 7_001 + 2 * round).await;
            is_over.store(true, Relaxed);
            sent
        };
        let asked = ask_until(service, days, &is_over);
        let ((), (some, refused)) = tokio::try_join!(sending, asked)?;
        answered += some;
        busy += refused;
    }
    Ok(Asking { alone: alone.median(), beside: beside.median(), answered, busy })
}

/// Asks one question after the other; returns how many were answered, and how many the service
/// had no time for.
async fn ask_until(service: &Service, days: Days, is_over: &AtomicBool) -> Result<(u64, u64)> {
    let questions = Kind::ALL.map(|kind| kind.question(days));
    let mut api = service.api().await?;
    let (mut answered, mut busy) = (0, 0);
    for question in questions.iter().cycle() {
        if is_over.load(Relaxed) {
            break;
        }
        match send(&service.instance, &mut api, question).await? {
            Some(_) => answered += 1,
            None => {
                busy += 1;
                sleep(LOOK_AGAIN).await;
            }
        }
    }
    Ok((answered, busy))
}

/// Events of known persons, other ones for each seed.
fn work(service: &Service, seed: u64) -> Work {
    let template = Template::batch(&service.instance.project_api_key, Shape::Server, BATCH);
    Work::Fresh(template, Arc::new(Source::new(seed, People::Known(PEOPLE))))
}

/// Figures of each load.
#[derive(Debug, Default)]
struct Rounds {
    acknowledged: Vec<f64>,
    stored: Vec<f64>,
}

impl Rounds {
    async fn round(&mut self, service: &Service, time: Duration, seed: u64) -> Result<()> {
        let load = Load::closed(service.address(), 8, time, work(service, seed));
        let (outcome, took) = send_until_readable(service, load).await?;
        self.acknowledged.push(outcome.rate());
        self.stored.push(outcome.events as f64 / took.as_secs_f64());
        Ok(())
    }

    fn median(&self) -> Sending {
        Sending { acknowledged: median(&self.acknowledged), stored: median(&self.stored) }
    }
}
