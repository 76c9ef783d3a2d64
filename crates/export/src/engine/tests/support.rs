//! A store with a project and an export, a clock, and a destination that records its
//! calls and fails on request.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use uuid::Uuid;
use weir_model::exports::{ExportModel, LogLine, Run};
use weir_model::{
    BatchExportId, MembershipId, OrganizationId, ProjectId, RunId, Timestamp, UserId,
};
use weir_store::events::{
    Apply, BlockBuilder, Head, NewBlock, Position, ProjectWrite, StoredEvent, apply,
};
use weir_store::exports::logs::Logs;
use weir_store::exports::runs::Runs;
use weir_store::exports::{self, BackfillRow, Backfilled, ExportRow, NewBackfill};
use weir_store::organizations::{self, NewOrganization, OrganizationRow};
use weir_store::persons::{PersonState, PersonWrite, first_id};
use weir_store::projects::ProjectRow;
use weir_store::update::{Change, Row as _, update_with};
use weir_store::users::{self, UserRow};
use weir_store::{Location, Store};
use weir_testkit::until;

use crate::columns::{Columns, Source};
use crate::destination::{Altered, Delivered, Destination, Failure, Job, Writer};
use crate::engine::{Engine, ExportServices, Settings};
use crate::rows::{Batch, Cell, Kind};

pub(super) const PROJECT: ProjectId = ProjectId(1);
/// `2026-08-21T14:20:00Z`
pub(super) const BEGIN: i64 = 1_787_322_000;

/// What the destination has, and how it behaves.
#[derive(Default)]
pub(super) struct World {
    /// Arrival numbers of the permanent events, by the end of the interval.
    pub(super) there: HashMap<Timestamp, Vec<u64>>,
    /// Rows of the permanent persons, by the end of the interval.
    pub(super) people: HashMap<Timestamp, Vec<Vec<Cell>>>,
    /// Every write fails with this fault.
    pub(super) fault: Option<Failure>,
    /// Every write hangs.
    pub(super) hangs: bool,
    /// Every write after this many rows hangs.
    pub(super) hangs_after: Option<usize>,
    /// Writes that hang or hung.
    pub(super) hung: usize,
    /// The destination skips the event with this arrival number.
    pub(super) leaves_out: Option<u64>,
    /// The next write panics.
    pub(super) panics: bool,
    /// Acknowledged events are not readable yet.
    pub(super) lags: watch::Sender<bool>,
    /// Written rows are permanent immediately, and an interrupted run continues after
    /// them.
    pub(super) goes_on: bool,
    pub(super) begun: usize,
    /// For each attempt: whether its bounds apply to event times.
    pub(super) by_time: Vec<bool>,
    pub(super) aborted: usize,
    pub(super) reported_failed: Vec<RunId>,
    pub(super) paused: Vec<(u32, u32)>,
}

pub(super) struct TestServices {
    now: AtomicI64,
    /// In seconds.
    uptime: AtomicU64,
    /// How often the engine has read the uptime.
    uptime_reads: AtomicU64,
    pub(super) world: Arc<Mutex<World>>,
    store: Store,
}

impl TestServices {
    /// This much time passes. A negative number sets the clock back.
    pub(super) fn advance(&self, seconds: i64) {
        self.set_ahead(seconds);
        self.uptime.fetch_add(u64::try_from(seconds).unwrap_or(0), Ordering::AcqRel);
    }

    /// Waits until an attempt has checked its time limit: a check that began after this
    /// call has ended.
    pub(super) async fn until_limit_checked(&self) {
        let before = self.uptime_reads.load(Ordering::Acquire);
        until(async || self.uptime_reads.load(Ordering::Acquire) > before + 2).await;
    }

    /// Sets the clock without time passing.
    pub(super) fn set_ahead(&self, seconds: i64) {
        self.now.fetch_add(seconds * 1_000_000, Ordering::AcqRel);
    }
}

#[async_trait]
impl ExportServices for TestServices {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.now.load(Ordering::Acquire))
    }

    fn uptime(&self) -> Duration {
        self.uptime_reads.fetch_add(1, Ordering::AcqRel);
        Duration::from_secs(self.uptime.load(Ordering::Acquire))
    }

    async fn applied(&self) {
        let mut lags = self.world.lock().lags.subscribe();
        lags.wait_for(|lags| !lags).await.unwrap();
    }

    async fn config(&self, export: &ExportRow) -> Result<Map<String, Value>, Failure> {
        Ok(serde_json::from_str(&export.config).unwrap())
    }

    fn destination(
        &self,
        _kind: &str,
        _config: &Map<String, Value>,
    ) -> Result<Box<dyn Destination>, Failure> {
        Ok(Box::new(Noting(Arc::clone(&self.world))))
    }

    async fn failed(&self, _export: &ExportRow, run: &Run) {
        self.world.lock().reported_failed.push(run.id);
    }

    async fn pause(&self, export: &ExportRow, failed: u32, of: u32, _error: Option<&str>) {
        self.world.lock().paused.push((failed, of));
        let row = ExportRow { paused: true, revision: Uuid::from_u128(9), ..export.clone() };
        replace(&self.store, &row, None).await;
    }
}

/// Replaces the row with the id of this one, with a backfill.
pub(super) async fn replace(store: &Store, row: &ExportRow, backfill: Option<&BackfillRow>) {
    let change = |stored: ExportRow| {
        let mut row = row.clone();
        row.touch(stored.updated_at);
        let with = backfill.map(|row| NewBackfill { row: row.clone(), most: 5 });
        let change = Change { row, entries: Vec::new(), with };
        std::future::ready(Ok::<_, weir_store::Error>((change, ())))
    };
    update_with(store, row.id, (), change).await.unwrap().stored().unwrap();
}

struct Noting(Arc<Mutex<World>>);

#[async_trait]
impl Destination for Noting {
    fn columns(&self) -> Columns {
        Columns::of(&[
            ("uuid", Kind::Uuid, Source::Uuid),
            ("distinct_id", Kind::Text, Source::DistinctId),
            ("person_id", Kind::Uuid, Source::PersonId),
        ])
    }

    async fn begin(&self, job: Job) -> Result<Box<dyn Writer>, Failure> {
        let mut world = self.0.lock();
        world.begun += 1;
        world.by_time.push(job.by_time);
        let goes_on = world.goes_on;
        let rows = match (goes_on, &job.cursor) {
            (true, Some(cursor)) => cursor.parse().unwrap(),
            _ => 0,
        };
        let end = job.end;
        Ok(Box::new(NotingWriter {
            world: Arc::clone(&self.0),
            end,
            goes_on,
            rows,
            arrival: None,
            open: Vec::new(),
            people: Vec::new(),
            altered: Vec::new(),
        }))
    }

    fn steps(&self) -> &'static [&'static str] {
        &[]
    }

    async fn test(&self, _step: usize, _model: ExportModel) -> Result<(), Failure> {
        Ok(())
    }
}

struct NotingWriter {
    world: Arc<Mutex<World>>,
    end: Timestamp,
    goes_on: bool,
    rows: u64,
    arrival: Option<u64>,
    open: Vec<u64>,
    people: Vec<Vec<Cell>>,
    altered: Vec<Altered>,
}

#[async_trait]
impl Writer for NotingWriter {
    async fn write(&mut self, batch: Batch) -> Result<(), Failure> {
        let are_people = batch.arrivals.is_none();
        let arrivals = batch.arrivals.unwrap_or_default();
        assert!(are_people || batch.rows.len() == arrivals.len());
        let last = arrivals.last().copied();
        let leaves_out = self.world.lock().leaves_out;
        let (omitted, taken): (Vec<u64>, Vec<u64>) =
            arrivals.into_iter().partition(|arrival| leaves_out == Some(*arrival));
        self.altered.extend(omitted.into_iter().map(|arrival| Altered {
            uuid: Some(Uuid::from_u128(u128::from(arrival))),
            column: "properties".to_owned(),
            what: "it was left out",
        }));
        let hangs = {
            let mut world = self.world.lock();
            if std::mem::take(&mut world.panics) {
                panic!("as the test wants it");
            }
            if let Some(fault) = &world.fault {
                return Err(fault.clone());
            }
            let taken = self.rows as usize + self.open.len();
            let hangs = world.hangs || world.hangs_after.is_some_and(|rows| taken >= rows);
            world.hung += usize::from(hangs);
            hangs
        };
        if hangs {
            std::future::pending::<()>().await;
        }
        match are_people {
            true => self.people.extend(batch.rows),
            false => self.open.extend(taken),
        }
        if self.goes_on {
            self.arrival = last;
            self.rows += self.open.len() as u64;
            let mut world = self.world.lock();
            world.there.entry(self.end).or_default().append(&mut self.open);
        }
        Ok(())
    }

    fn delivered(&self) -> Option<Delivered> {
        let arrival = self.arrival?;
        Some(Delivered { rows: self.rows, arrival, cursor: self.rows.to_string() })
    }

    fn altered(&mut self) -> Vec<Altered> {
        std::mem::take(&mut self.altered)
    }

    async fn finish(&mut self) -> Result<(), Failure> {
        let mut world = self.world.lock();
        let rows = world.there.entry(self.end).or_default();
        if !self.goes_on {
            rows.clear();
        }
        rows.append(&mut self.open);
        if !self.people.is_empty() {
            world.people.insert(self.end, std::mem::take(&mut self.people));
        }
        Ok(())
    }

    async fn abort(&mut self) {
        self.world.lock().aborted += 1;
    }
}

/// A store with a project and an export, and possibly an engine.
pub(super) struct Fixture {
    pub(super) store: Store,
    pub(super) services: Arc<TestServices>,
    pub(super) export: BatchExportId,
    /// Persons whose ids are in memory at a time.
    pub(super) persons: usize,
    /// Time between two polls of the engine.
    pub(super) tick: Duration,
    /// Runs that read and send concurrently.
    pub(super) parallel: usize,
    /// Time after which a destination counts as silent.
    pub(super) silence: Duration,
    engine: Option<(Engine, Runtime)>,
    next: AtomicU64,
    applied: Mutex<HashMap<u16, u64>>,
    /// Persons that are written with the next events.
    people: Mutex<Vec<PersonWrite>>,
}

impl Fixture {
    /// It is 14:20 on a Friday. The engine has not started.
    pub(super) async fn new(interval: &str) -> Self {
        Self::of(interval, ExportModel::Events).await
    }

    /// The same with an export of this model.
    pub(super) async fn of(interval: &str, model: ExportModel) -> Self {
        let store = Store::open(&Location::Memory, weir_store::Settings::default()).await.unwrap();
        let now = Timestamp::from_micros(BEGIN * 1_000_000);
        let world = Arc::new(Mutex::new(World::default()));
        let services = Arc::new(TestServices {
            now: AtomicI64::new(now.micros()),
            uptime: AtomicU64::new(0),
            uptime_reads: AtomicU64::new(0),
            world,
            store: store.clone(),
        });
        let home = home(&store, now).await;
        let row = ExportRow {
            id: BatchExportId(weir_store::ids::time_ordered(now)),
            organization: home,
            project: PROJECT,
            name: "Warehouse".to_owned(),
            kind: "NoOp".to_owned(),
            config: "{}".to_owned(),
            secrets: None,
            model: model.text().to_owned(),
            interval: interval.to_owned(),
            timezone: None,
            offset_day: None,
            offset_hour: None,
            paused: false,
            created_at: now,
            updated_at: now,
            last_paused_at: None,
            backfilled: Backfilled(None),
            start_at: None,
            end_at: None,
            query: None,
            schema: None,
            revision: Uuid::from_u128(1),
            latest: Vec::new(),
        };
        let created = exports::create(&store, &row, 1, None, &[]).await.unwrap();
        assert_eq!(created, exports::Created::Yes);
        Self {
            store,
            services,
            export: row.id,
            persons: Settings::default().persons,
            tick: Duration::from_millis(5),
            parallel: Settings::default().parallel,
            silence: Settings::default().silence,
            engine: None,
            next: AtomicU64::new(1),
            applied: Mutex::default(),
            people: Mutex::default(),
        }
    }

    /// The person that a distinct id creates gets this state with the next events.
    pub(super) fn will_write(&self, distinct_id: &str, version: i64, state: PersonState) {
        let id = first_id(PROJECT, distinct_id);
        self.people.lock().push(PersonWrite { id, state, expected: None, version });
    }

    /// Starts the engine on its own threads.
    pub(super) fn start(&mut self) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_stack_size(10 << 20)
            .enable_all()
            .build()
            .unwrap();
        let settings = Settings {
            jitter: 0,
            tick: self.tick,
            persons: self.persons,
            parallel: self.parallel,
            silence: self.silence,
            ..Settings::default()
        };
        let services: Arc<dyn ExportServices> =
            Arc::clone(&self.services) as Arc<dyn ExportServices>;
        let engine = Engine::start(self.store.clone(), services, settings, runtime.handle());
        self.engine = Some((engine, runtime));
    }

    /// Ends the engine without closing it.
    pub(super) fn kill(&mut self) {
        if let Some((engine, runtime)) = self.engine.take() {
            runtime.shutdown_background();
            drop(engine);
        }
    }

    /// Closes the engine.
    pub(super) async fn stop(&mut self) {
        if let Some((engine, runtime)) = self.engine.take() {
            let begun = Instant::now();
            engine.close(Duration::from_secs(10)).await;
            assert!(begun.elapsed() < Duration::from_secs(8));
            runtime.shutdown_background();
        }
    }

    pub(super) fn world<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        look(&mut self.services.world.lock())
    }

    pub(super) async fn row(&self) -> ExportRow {
        exports::find(&self.store, self.export).await.unwrap().unwrap()
    }

    /// Changes the export.
    pub(super) async fn change(&self, change: impl FnOnce(&mut ExportRow)) {
        let mut row = self.row().await;
        change(&mut row);
        replace(&self.store, &row, None).await;
    }

    /// This many events arrive now. Each happened at `time`, in seconds since 1970.
    pub(super) async fn arrive_at(&self, count: u64, time: impl Fn(u64) -> i64) {
        let received_at = self.services.now().micros();
        let first = self.next.fetch_add(count, Ordering::AcqRel);
        let all: Vec<u64> = (first..first + count).collect();
        // The partitions alternate, so that their arrival numbers do too.
        for partition in 0..3_u16 {
            let own = all.iter().filter(|n| *n % 3 == u64::from(partition));
            let event = |arrival: &u64| StoredEvent {
                arrival: *arrival,
                uuid: Uuid::from_u128(u128::from(*arrival)),
                event: format!("event {}", arrival % 5),
                distinct_id: format!("user {}", arrival % 7),
                timestamp: time(*arrival) * 1_000_000,
                received_at,
                properties: format!(r#"{{"n":{arrival}}}"#),
                elements_chain: String::new(),
                historical: false,
                warnings: Vec::new(),
            };
            let events: Vec<StoredEvent> = own.map(event).collect();
            for some in events.chunks(400) {
                self.apply(partition, some).await;
            }
        }
    }

    /// This many events arrive now, with the present time.
    pub(super) async fn arrive(&self, count: u64) {
        let now = self.services.now().micros() / 1_000_000;
        self.arrive_at(count, |_| now).await;
    }

    async fn apply(&self, partition: u16, events: &[StoredEvent]) {
        let first = events[0].arrival;
        let mut block = BlockBuilder::begin(PROJECT, &events[0]).unwrap();
        let mut uuids = vec![(events[0].uuid, first, 0)];
        for event in &events[1..] {
            uuids.push((event.uuid, first, block.push(event).unwrap()));
        }
        let (data, summary) = block.finish().unwrap();
        let times: Vec<i64> = events.iter().map(|event| event.timestamp).collect();
        let heads = weir_store::events::heads(&self.store, PROJECT).await.unwrap();
        let before = heads.get(&partition).cloned().unwrap_or_else(Head::empty);
        let head = Head {
            newest: i64::try_from(first).unwrap(),
            last: summary.last,
            count: before.count + summary.count,
            from_time: before.from_time.min(summary.from_time),
            to_time: before.to_time.max(summary.to_time),
            samples: 0,
            affected: 0,
            strays: false,
            erased: None,
        };
        let write = ProjectWrite {
            blocks: vec![NewBlock { first, data, summary, added_times: times }],
            uuids,
            head,
            persons: std::mem::take(&mut *self.people.lock()),
            ..ProjectWrite::new(PROJECT)
        };
        let (from, to) = {
            let mut applied = self.applied.lock();
            let at = applied.entry(partition).or_default();
            *at += 1;
            (Position::at(*at - 1), Position::at(*at))
        };
        apply(&self.store, Apply { partition, from, to, projects: vec![write] }).await.unwrap();
    }

    /// The runs, oldest first.
    pub(super) async fn runs(&self) -> Vec<Run> {
        let wanted = Runs { limit: 100, ..Runs::default() };
        let mut runs = exports::runs::page(&self.store, self.export, wanted).await.unwrap();
        runs.sort_by_key(|run| run.data_interval_end);
        runs
    }

    /// The lines of a run, oldest first.
    pub(super) async fn lines(&self, run: RunId) -> Vec<LogLine> {
        let wanted = Logs { limit: 500, ..Logs::default() };
        let lines = exports::logs::page(&self.store, self.export, Some(run), wanted).await;
        lines.unwrap().into_iter().rev().collect()
    }

    /// Waits until the runs fit.
    pub(super) async fn until_runs(&self, fits: impl Fn(&[Run]) -> bool) -> Vec<Run> {
        until(async || {
            let runs = self.runs().await;
            if fits(&runs) { Ok(runs) } else { Err(runs) }
        })
        .await
    }

    /// Waits until the destination fits.
    pub(super) async fn until_world(&self, fits: impl Fn(&World) -> bool) {
        until(async || self.world(|world| fits(world))).await;
    }

    /// Waits until the engine has created all runs that are due now: a check that began
    /// after this call has ended.
    pub(super) async fn until_checked(&self) {
        const UNSET: usize = 1_000_000;
        let metrics = self.engine.as_ref().unwrap().0.metrics();
        // Each check sets the number. The first one may have begun before this call.
        for _ in 0..2 {
            metrics.set_active(UNSET);
            until(async || metrics.take().active != UNSET as u64).await;
        }
    }

    /// The events at the destination for the interval that ends this many seconds after
    /// `BEGIN`, in order.
    pub(super) fn there(&self, end: i64) -> Vec<u64> {
        let end = Timestamp::from_micros((BEGIN + end) * 1_000_000);
        self.world(|world| world.there.get(&end).cloned().unwrap_or_default())
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An organization with a project.
async fn home(store: &Store, now: Timestamp) -> OrganizationId {
    let user = UserRow {
        first_name: "Ada".to_owned(),
        email: "ada@mail.example".to_owned(),
        ..UserRow::new(UserId(Uuid::from_u128(1)), 1, now)
    };
    users::create(store, &user, "ada@mail.example").await.unwrap();
    let id = OrganizationId(Uuid::from_u128(1));
    let new = NewOrganization {
        row: OrganizationRow {
            name: "Acme".to_owned(),
            slug: "acme".to_owned(),
            ..OrganizationRow::new(id, now)
        },
        owner: user.id,
        membership: MembershipId(Uuid::from_u128(1)),
        project: ProjectRow::new(PROJECT, id, "Web".to_owned(), "phc_1".to_owned(), now),
    };
    organizations::create(store, &new, &[]).await.unwrap();
    id
}
