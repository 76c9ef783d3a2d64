//! Questions about a month of events whose numbers other engines confirm: how long they take,
//! cold and warm, beside those engines, and while events arrive.
//!
//! What belongs here: asking Weir, and comparing the answers. What does not: the events and the
//! questions (`weir_bench::questions`).

mod fill;
mod live;
mod peers;
mod section;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use weir_bench::api::Api;
use weir_bench::machine::{Machine, drop_file_cache};
use weir_bench::questions::{Cells, Days, Engine, History, Kind};
use weir_bench::weir::{Instance, Weir};
use weir_bench::{clock, process};

use self::live::{Asking, Fresh};
use self::peers::{Peer, Tables};
use crate::service::Service;

pub(crate) use self::section::section;

/// How often a question is asked after the first time.
const RUNS: u32 = 5;
/// Seconds between passes of sealing: longer than the measurement, so that no pass replaces
/// files that the other engines read.
const SEAL_SECONDS: u32 = 86_400;

/// The size of the measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Events to ask about.
    events: u64,
    /// Time of a steady load while questions are asked.
    steady: Duration,
    /// Time of a full load with questions, and of one without.
    full: Duration,
}

impl Effort {
    pub(crate) fn new(quick: bool, events: Option<u64>) -> Self {
        Self {
            events: events.unwrap_or(if quick { 50_000 } else { 1_000_000 }),
            steady: Duration::from_secs(if quick { 3 } else { 30 }),
            full: Duration::from_secs(if quick { 1 } else { 10 }),
        }
    }
}

/// The results.
#[derive(Debug)]
pub(crate) struct Questions {
    machine: Machine,
    events: u64,
    persons: u64,
    /// Events per second that were imported.
    imported: f64,
    /// Bytes of the files of the events.
    segments: u64,
    /// Whether the file cache could be dropped before the first run of each question.
    is_cold: bool,
    /// Milliseconds of a question directly after a start.
    started: f64,
    rows: Vec<Row>,
    /// The engines that are not installed.
    absent: Vec<Engine>,
    fresh: Fresh,
    asking: Asking,
}

/// A question, as Weir and other engines answer it.
#[derive(Debug)]
struct Row {
    kind: Kind,
    /// The numbers of the answer that are not 0.
    cells: usize,
    weir: Timing,
    peers: Vec<(Engine, Timing)>,
}

/// How long an engine takes.
#[derive(Debug, Deserialize)]
struct Timing {
    /// Milliseconds of the first time.
    first: f64,
    /// Milliseconds of the times after it.
    warm: Vec<f64>,
    /// Processor milliseconds of each of these.
    cpu: f64,
    /// The highest memory in bytes.
    memory: u64,
}

/// Fills a new instance, and asks.
pub(crate) async fn run(binary: &Path, directory: &Path, effort: Effort) -> Result<Questions> {
    let days = Days::before(clock::micros());
    let history = History::new(days, effort.events);
    let mut weir = Weir::new(binary, directory)?;
    weir.settings = vec![("WEIR_SEAL_SECONDS", SEAL_SECONDS.to_string())];
    let mut service = Service::of(weir, 27).await?;
    let persons = history.persons();
    let imported = fill::fill(&service, history).await?;
    service.stop().await?;
    crate::say("sealing");
    service.weir.run(&["seal", "--persons"])?;
    service.start().await?;

    let is_cold = drop_file_cache();
    let (started, _) = ask(&service, &mut service.api().await?, Kind::Persons, days).await?;
    let tables = Tables::read(&service).await?;
    ensure!(
        tables.rows == effort.events,
        "{} of {} events are in files",
        tables.rows,
        effort.events
    );
    let (engines, absent): (Vec<_>, Vec<_>) =
        Engine::ALL.into_iter().partition(|engine| peers::is_installed(*engine));
    let mut rows = Vec::new();
    for kind in Kind::ALL {
        rows.push(compare(&service, kind, days, &tables, &engines).await?);
    }
    let fresh = live::fresh(&service, effort.steady).await?;
    let asking = live::asking(&service, days, effort.full).await?;
    let segments = tables.bytes()?;
    service.stop().await?;
    Ok(Questions {
        machine: Machine::look(directory),
        events: effort.events,
        persons,
        imported,
        segments,
        is_cold,
        started,
        rows,
        absent,
        fresh,
        asking,
    })
}

/// Asks Weir and the other engines the same, and compares the numbers.
async fn compare(
    service: &Service,
    kind: Kind,
    days: Days,
    tables: &Tables,
    engines: &[Engine],
) -> Result<Row> {
    crate::say(&format!("{}: Weir", kind.name()));
    let (weir, cells) = of_weir(service, kind, days).await?;
    let mut peers = Vec::new();
    for engine in engines {
        crate::say(&format!("{}: {}", kind.name(), engine.name()));
        let Peer { timing, rows } = peers::ask(*engine, kind, days, tables).await?;
        if let Some(difference) = cells.difference(&kind.cells_of_rows(&rows)?) {
            let (kind, engine) = (kind.name(), engine.name());
            bail!("{kind}: {engine} has other numbers than Weir, first at {difference}");
        }
        peers.push((*engine, timing));
    }
    Ok(Row { kind, cells: cells.count(), weir, peers })
}

async fn of_weir(service: &Service, kind: Kind, days: Days) -> Result<(Timing, Cells)> {
    let process = service.id().to_string();
    let mut api = service.api().await?;
    drop_file_cache();
    process::forget_peak(service.id())?;
    let (first, answer) = ask(service, &mut api, kind, days).await?;
    let cells = kind.cells(&answer)?;
    ensure!(cells.count() > 0, "{}: the answer has no numbers", kind.name());
    let before = process::cpu(&process)?;
    let mut warm = Vec::new();
    for _ in 0..RUNS {
        let (took, again) = ask(service, &mut api, kind, days).await?;
        ensure!(kind.cells(&again)? == cells, "{}: Weir gave two answers", kind.name());
        warm.push(took);
    }
    let used = process::cpu(&process)?.saturating_sub(before);
    let cpu = used.as_secs_f64() * 1e3 / f64::from(RUNS);
    Ok((Timing { first, warm, cpu, memory: process::peak(service.id())? }, cells))
}

/// Asks a question; returns the milliseconds until its answer, and the answer.
async fn ask(service: &Service, api: &mut Api, kind: Kind, days: Days) -> Result<(f64, Value)> {
    let began = Instant::now();
    let answer = send(&service.instance, api, &kind.question(days)).await?;
    let took = began.elapsed().as_secs_f64() * 1e3;
    let answer = answer.with_context(|| format!("{}: Weir was busy", kind.name()))?;
    let answer: Value = serde_json::from_slice(&answer)?;
    ensure!(answer["is_cached"] == false, "{}: the answer was kept", kind.name());
    Ok((took, answer))
}

/// Sends a question that no answer from before suffices for. `None`: the service has other
/// work.
async fn send(instance: &Instance, api: &mut Api, question: &Value) -> Result<Option<Vec<u8>>> {
    let path = format!("/api/projects/{}/query/", instance.project_id);
    let body = json!({ "query": question, "refresh": "force_blocking" }).to_string();
    let (status, answer) = api.call("POST", &path, &body).await?;
    match status {
        200 => Ok(Some(answer)),
        503 => Ok(None),
        _ => bail!("a question was answered with {status}: {}", String::from_utf8_lossy(&answer)),
    }
}
