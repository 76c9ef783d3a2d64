//! Uneven traffic: a burst, and a distinct id that sends more than all others.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::Instant;
use weir_bench::events::{People, Shape, Source, Template};
use weir_bench::load::{Load, Work, send};
use weir_bench::stats::{Latencies, median};
use weir_model::ProjectId;
use weir_store::events::live_partition;

use crate::rounds::wait_readable;
use crate::service::Service;
use crate::sustained::{BATCH, PEOPLE, probe};

/// Maximum time for sending a burst.
const LONGEST: Duration = Duration::from_secs(120);
/// Fractions of the sustainable rate: less than it in total, as much as in the steady
/// load for comparison.
const HOT: f64 = 0.5;
const OTHERS: f64 = 0.25;

/// Results of a burst.
#[derive(Debug)]
pub(crate) struct Burst {
    pub(crate) events: u64,
    /// Seconds from the first request to the last answer.
    pub(crate) acknowledged: f64,
    /// Seconds from the last answer until everything was readable.
    pub(crate) lag: f64,
}

/// The effect of a hot distinct id on others.
#[derive(Debug)]
pub(crate) struct HotId {
    /// Events per second of the hot id, and of all others.
    pub(crate) hot: f64,
    pub(crate) others: f64,
    /// Times from an answer until the event is readable: of ids in the partition of the
    /// hot one, and of ids in other partitions.
    pub(crate) beside: Latencies,
    pub(crate) apart: Latencies,
}

impl HotId {
    /// Of all ids except the hot one.
    pub(crate) fn all(&self) -> Latencies {
        let mut all = self.beside.clone();
        all.merge(&self.apart);
        all
    }
}

/// Sends bursts of events as fast as they are acknowledged; after each one, waits until
/// everything is readable.
pub(crate) async fn burst(service: &Service, rounds: usize, events: u64) -> Result<Burst> {
    let source = Arc::new(Source::new(2_000, People::Known(PEOPLE)));
    let (mut sizes, mut acknowledged, mut lags) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        crate::say(&format!("a burst of {events} events, {} of {rounds}", round + 1));
        let template = Template::batch(&service.instance.project_api_key, Shape::Server, BATCH);
        let work = Work::Fresh(template, Arc::clone(&source));
        let load = Load {
            most: source.taken() + events,
            ..Load::closed(service.address(), 8, LONGEST, work)
        };
        let outcome = send(load).await?;
        let answered = Instant::now();
        ensure!(outcome.refused == 0, "a burst was refused: {:?}", outcome.refusal);
        wait_readable(service).await?;
        lags.push(answered.elapsed().as_secs_f64());
        acknowledged.push(outcome.took.as_secs_f64());
        sizes.push(outcome.events);
    }
    Ok(Burst {
        events: sizes.into_iter().min().unwrap_or(0),
        acknowledged: median(&acknowledged),
        lag: median(&lags),
    })
}

/// One client sends only events of one distinct id. Others send at the same time, and the
/// time until their events are readable is measured.
pub(crate) async fn hot_id(service: &Service, sustainable: f64, time: Duration) -> Result<HotId> {
    crate::say("time to readable beside a hot distinct id");
    let hot_source = Arc::new(Source::new(3_000, People::Known(1)));
    let others_source = Arc::new(Source::new(3_001, People::Known(PEOPLE)));
    let load = |source: &Arc<Source>, share: f64, connections| {
        let template = Template::batch(&service.instance.project_api_key, Shape::Server, BATCH);
        let work = Work::Fresh(template, Arc::clone(source));
        Load {
            rate: Some((sustainable * share / BATCH as f64).max(1.0)),
            ..Load::closed(service.address(), connections, time, work)
        }
    };
    let hot = tokio::spawn(send(load(&hot_source, HOT, 1)));
    let others = tokio::spawn(send(load(&others_source, OTHERS, 4)));
    let partition = |id: &str| live_partition(ProjectId(service.instance.project_id), id);
    let of_hot = partition(&hot_source.distinct_id(0));
    let (mut beside, mut apart) = (Latencies::default(), Latencies::default());
    probe(service, &others_source, time, |number, took| {
        let shares = partition(&others_source.distinct_id(number)) == of_hot;
        if shares { beside.add(took) } else { apart.add(took) }
    })
    .await?;
    let (hot, others) = (hot.await??, others.await??);
    ensure!(hot.refused + others.refused == 0, "a load below the sustainable rate was refused");
    wait_readable(service).await?;
    Ok(HotId { hot: hot.rate(), others: others.rate(), beside, apart })
}
