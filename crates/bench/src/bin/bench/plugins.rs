//! Plugins: the cost of transformations, and the effect of a harmful plugin on other
//! projects.
//!
//! What belongs here: the sandbox alone, and the real service with transformations. What
//! does not: correctness of plugins (tests).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use weir_bench::api::{Api, organization_path};
use weir_bench::events::{People, Shape, Source, Template, properties};
use weir_bench::load::{Load, Work, send};
use weir_bench::plugins::{Transformation, disable, enable};
use weir_bench::stats::median;
use weir_bench::weir::Weir;
use weir_bench::{clock, process};
use weir_sandbox::{
    Grants, Limits, Meta, NoHost, Outcome, Pool, PoolSettings, Program, ProgramKey,
    TransformationCall,
};

use crate::rounds::send_until_readable;
use crate::service::Service;
use crate::sustained::{BATCH, PEOPLE, freshness};

/// A typical transformation: a search for crawlers, a path without its query, two
/// properties.
const SIMPLE: &str =
    "const CRAWLERS = ['bot', 'crawler', 'spider', 'preview', 'headless', 'monitor']
export function processEvent(event) {
    const properties = event.properties
    const agent = String(properties.$raw_user_agent ?? properties.$lib).toLowerCase()
    for (const crawler of CRAWLERS) {
        if (agent.includes(crawler)) { return null }
    }
    properties.page = String(properties.page).split('?')[0].toLowerCase()
    properties.is_paying = properties.plan !== 'free'
    delete properties.request_id
    return event
}";
/// One event in ten loops until it is stopped. If all of them did, the plugin would be
/// disabled immediately.
const LOOPS: &str = "export function processEvent(event) {
    if (Math.random() < 0.1) { for (;;) {} }
    return event
}";
/// Adds some properties to each event.
const NATIVE: Transformation<'static> = Transformation::Native("timestamp-parts", "{}");

/// Time until a change has taken effect; at most a second is promised.
const WORKS: Duration = Duration::from_millis(1_500);
/// Events of a request to the sandbox.
const CONCURRENT_READS: u64 = 200;
/// Events per second of the load during which single events are timed.
const STEADY: f64 = 3_000.0;
/// Events per second of the project with the harmful plugin.
const HOSTILE: f64 = 500.0;
/// Repetitions of a comparison.
const ROUNDS: usize = 3;

/// The results.
#[derive(Debug)]
pub(crate) struct Plugins {
    /// With one child process and with two.
    pub(crate) sandbox: [f64; 2],
    pub(crate) kinds: Vec<Kind>,
    pub(crate) neighbours: Neighbours,
}

/// Events that passed through transformations.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// Acknowledged events per second under full load.
    pub(crate) acknowledged: f64,
    pub(crate) stored: f64,
    /// Processor milliseconds of the service and its child processes per 1,000 events.
    pub(crate) cpu: f64,
    /// Under a steady load: milliseconds from the answer until an event is readable.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// Number of child processes, and memory of the largest in bytes.
    pub(crate) children: usize,
    pub(crate) memory: u64,
}

/// Stored events per second of a project with a simple transformation.
#[derive(Debug)]
pub(crate) struct Neighbours {
    /// While another project sends events without a plugin.
    pub(crate) peaceful: f64,
    /// While another project sends the same events with a plugin that loops.
    pub(crate) hostile: f64,
}

impl Neighbours {
    /// The fraction of events that the harmful plugin costs: 0 none, 1 all.
    pub(crate) fn cost(&self) -> f64 {
        1.0 - self.hostile / self.peaceful.max(1e-9)
    }
}

/// Measures the sandbox, and a new instance below `directory`.
pub(crate) async fn run(binary: &Path, directory: &Path, quick: bool) -> Result<Plugins> {
    let time = Duration::from_secs(if quick { 2 } else { 8 });
    let sandbox = [sandbox(binary, 1, time).await?, sandbox(binary, 2, time).await?];
    let mut service = Service::of(Weir::new(binary, directory)?, 77).await?;
    let mut kinds = Vec::new();
    let simple = Transformation::Script(SIMPLE);
    for (seed, (name, transformations)) in (6_000..).zip([
        ("none", &[][..]),
        ("one in JavaScript", &[simple][..]),
        ("five in JavaScript", &[simple; 5][..]),
        ("one of the catalogue, in Rust", &[NATIVE][..]),
        // Measured again, because storing becomes slower with stored data.
        ("none, once more", &[][..]),
    ]) {
        crate::say(&format!("transformations: {name}"));
        kinds.push(kind(&service, name, transformations, seed, time).await?);
    }
    let neighbours = neighbours(&service, time).await?;
    service.stop().await?;
    Ok(Plugins { sandbox, kinds, neighbours })
}

/// Events per second through the sandbox alone, with this many child processes.
async fn sandbox(binary: &Path, children: usize, time: Duration) -> Result<f64> {
    crate::say(&format!("the sandbox alone, children: {children}"));
    let pool = Arc::new(Pool::new(PoolSettings {
        program: binary.to_owned(),
        arguments: vec!["plugin-worker".into()],
        children,
        limits: Limits::default(),
    }));
    let program = Program {
        key: ProgramKey { config: 1, version: 1 },
        source: SIMPLE.into(),
        name: "index.js".to_owned(),
        meta: Meta {
            config: RawValue::from_string("{}".to_owned())?,
            attachments: Default::default(),
            plugin: "Bench".to_owned(),
        },
        grants: Grants::default(),
    };
    let steps = [TransformationCall { program: Arc::new(program), allowances: Vec::new() }];
    let events: Arc<[Box<RawValue>]> =
        (0..CONCURRENT_READS).map(event).collect::<Result<Vec<_>>>()?.into();
    // Starts the child processes, which otherwise start when they are needed.
    for lane in 0..children {
        pool.transform(lane, &steps, &events, &NoHost).await?;
    }
    let began = Instant::now();
    let mut lanes = JoinSet::new();
    for lane in 0..children {
        let (pool, steps, events) = (Arc::clone(&pool), steps.clone(), Arc::clone(&events));
        lanes.spawn(async move {
            let mut done = 0;
            while began.elapsed() < time {
                let answers = pool.transform(lane, &steps, &events, &NoHost).await?;
                let are_kept =
                    answers.iter().all(|answer| matches!(answer.outcome, Outcome::Kept(_)));
                ensure!(are_kept && answers.len() == events.len(), "events were not transformed");
                done += answers.len();
            }
            anyhow::Ok(done)
        });
    }
    let mut done = 0;
    while let Some(lane) = lanes.join_next().await {
        done += lane??;
    }
    let took = began.elapsed();
    pool.shutdown().await;
    Ok(done as f64 / took.as_secs_f64())
}

/// An event in the form of transformations.
fn event(number: u64) -> Result<Box<RawValue>> {
    let source = Source::new(7_000, People::Known(PEOPLE));
    let properties = properties(&source, number, clock::micros());
    let (uuid, id) = (source.uuid(number), source.distinct_id(number));
    let text = format!(
        r#"{{"uuid":"{uuid}","event":"order completed","distinct_id":"{id}","team_id":1,"ip":"203.0.113.7","timestamp":"2026-06-01T10:00:00Z","now":"2026-06-01T10:00:00Z","site_url":"","properties":{properties}}}"#
    );
    Ok(RawValue::from_string(text)?)
}

/// Sends events through transformations, first under full load and then steadily.
async fn kind(
    service: &Service,
    name: &'static str,
    transformations: &[Transformation<'_>],
    seed: u64,
    time: Duration,
) -> Result<Kind> {
    let project = service.instance.project_id;
    let configs =
        enable(&mut service.api().await?, &service.instance, project, transformations).await?;
    sleep(WORKS).await;
    let load = load(service, &service.instance.project_api_key, seed, time);
    let before = used(service)?;
    let (outcome, took) = send_until_readable(service, load).await?;
    let cpu = used(service)?.saturating_sub(before);
    let fresh = freshness(service, STEADY, 1.0, time).await?;
    let memory = children(service)?.into_iter().map(process::memory);
    let memory = memory.collect::<Result<Vec<_>>>()?;
    disable(&mut service.api().await?, project, &configs).await?;
    Ok(Kind {
        name,
        acknowledged: outcome.rate(),
        stored: outcome.events as f64 / took.as_secs_f64(),
        cpu: cpu.as_secs_f64() * 1e6 / outcome.events.max(1) as f64,
        p50: fresh.p50,
        p99: fresh.p99,
        children: memory.len(),
        memory: memory.into_iter().max().unwrap_or(0),
    })
}

fn load(service: &Service, key: &str, seed: u64, time: Duration) -> Load {
    let template = Template::batch(key, Shape::Server, BATCH);
    let work = Work::Fresh(template, Arc::new(Source::new(seed, People::Known(PEOPLE))));
    Load::closed(service.address(), 8, time, work)
}

fn children(service: &Service) -> Result<Vec<u32>> {
    process::children(service.id())
}

/// Processor time of the service and its child processes. Processes that have ended are
/// missing.
fn used(service: &Service) -> Result<Duration> {
    let mut used = process::cpu(&service.id().to_string())?;
    for child in children(service)? {
        used += process::cpu(&child.to_string()).unwrap_or_default();
    }
    Ok(used)
}

/// Stores events of one project while another one sends, alternately with and without a
/// plugin that loops.
async fn neighbours(service: &Service, time: Duration) -> Result<Neighbours> {
    let mut api = service.api().await?;
    let simple = [Transformation::Script(SIMPLE)];
    enable(&mut api, &service.instance, service.instance.project_id, &simple).await?;
    let (other, key) = project(&mut api, service).await?;
    let (mut peaceful, mut hostile) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        crate::say(&format!("beside a plugin that loops, {} of {ROUNDS}", round + 1));
        let seed = 8_000 + 10 * round as u64;
        peaceful.push(beside(service, &key, seed, time).await?);
        let looping = [Transformation::Script(LOOPS)];
        let configs = enable(&mut service.api().await?, &service.instance, other, &looping).await?;
        hostile.push(beside(service, &key, seed + 5, time).await?);
        disable(&mut service.api().await?, other, &configs).await?;
    }
    Ok(Neighbours { peaceful: median(&peaceful), hostile: median(&hostile) })
}

/// Creates a project; returns its id and its project key.
async fn project(api: &mut Api, service: &Service) -> Result<(i64, String)> {
    let path = format!("{}projects/", organization_path(&service.instance));
    let (status, answer) = api.call("POST", &path, &json!({ "name": "Other" }).to_string()).await?;
    ensure!(status == 201, "creating a project was answered with {status}");
    let made: Value = serde_json::from_slice(&answer)?;
    let id = made["id"].as_i64().context("a project has no id")?;
    Ok((id, made["api_token"].as_str().context("a project has no key")?.to_owned()))
}

/// Stored events per second while the project with this key sends steadily.
async fn beside(service: &Service, key: &str, seed: u64, time: Duration) -> Result<f64> {
    sleep(WORKS).await;
    let steady = Load {
        connections: 2,
        rate: Some(HOSTILE / BATCH as f64),
        ..load(service, key, seed + 1, time)
    };
    let other = tokio::spawn(send(steady));
    let own = load(service, &service.instance.project_api_key, seed, time);
    let (outcome, took) = send_until_readable(service, own).await?;
    other.await??;
    Ok(outcome.events as f64 / took.as_secs_f64())
}
