//! What the engine asks of its storage for a batch of events, for a request and for a page:
//! the figures of `docs/adr/0032-several-nodes.md`. Counts do not depend on how fast the
//! program is, so a development build is as good as any.

use std::fmt::{Debug, Write as _};
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use uuid::Uuid;
use weir_capture::AcceptedEvent;
use weir_ingest::batch::Batch;
use weir_ingest::log::LogSettings;
use weir_ingest::transform::{Transform, TransformInput, Transformed};
use weir_ingest::{Dependencies, Ingest, OpenLog};
use weir_model::organizations::Level;
use weir_model::{ProjectId, traces};
use weir_server::serve::Options;
use weir_store::events::live_partition;
use weir_store::{Calls, Location, Settings, Store, TransactionCalls};
use weir_testkit::{Answer, Caller, TestApp};

use crate::stored::send;
use crate::web::session;

/// A round trip to a storage in the same data centre.
const DELAY: Duration = Duration::from_micros(200);
/// Events of a batch: the maximum of a transaction.
const BATCH: usize = 4_000;
/// How often each request is sent.
const REPEATS: usize = 5;
const PROJECT: ProjectId = ProjectId(1);
/// Microseconds since 1970 UTC.
const RECEIVED: i64 = 1_780_000_000_000_000;

/// Not a test: it prints the figures.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by scripts/store-calls"]
async fn print_the_calls_of_the_storage() {
    let operations = Operations::default();
    let subscriber = tracing_subscriber::registry().with(operations.clone());
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let mut report = String::new();
    for (title, delay) in [("Without a delay", None), ("With 0.2 ms a round trip", Some(DELAY))] {
        let of_batches = batches(delay, &operations).await;
        let of_requests = requests(delay, &operations).await;
        write!(report, "\n## {title}\n\n{of_batches}\n{of_requests}").unwrap();
    }
    // Also without `--nocapture`.
    std::io::stdout().write_all(report.as_bytes()).unwrap();
}

/// The names of the operations of the store that have begun, from the spans of traces.
#[derive(Clone, Default)]
struct Operations(Arc<Mutex<Vec<String>>>);

impl Operations {
    /// Those since this function was called before, with the number of each.
    fn take(&self) -> String {
        let names = std::mem::take(&mut *self.0.lock().unwrap());
        let mut counted: Vec<(String, usize)> = Vec::new();
        for name in names {
            match counted.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => counted.push((name, 1)),
            }
        }
        let texts = counted.into_iter().map(|(name, count)| match count {
            1 => name,
            _ => format!("{name} ×{count}"),
        });
        texts.collect::<Vec<_>>().join(", ")
    }
}

impl<S: Subscriber> Layer<S> for Operations {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.target() == traces::TARGET
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        if attributes.metadata().name() == "store" {
            attributes.record(&mut OperationName(self));
        }
    }
}

struct OperationName<'a>(&'a Operations);

impl Visit for OperationName<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "otel.name" {
            self.0.0.lock().unwrap().push(value.to_owned());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

/// A store on RocksDB whose calls are counted.
async fn open(folder: &TempDir, delay: Option<Duration>) -> (Store, Calls) {
    let calls = delay.map_or_else(Calls::default, Calls::delaying);
    let settings = Settings { calls: Some(calls.clone()), ..Settings::default() };
    let location = Location::Directory(folder.path().join("data"));
    (Store::open(&location, settings).await.unwrap(), calls)
}

/// What several transactions asked of the storage.
struct Figures {
    transactions: usize,
    naive: u64,
    buffered: u64,
    remembering: u64,
    rows_read: u64,
    rows_written: u64,
    bytes: u64,
    took: Duration,
}

impl Figures {
    fn of<'a>(ended: impl IntoIterator<Item = &'a TransactionCalls>, took: Duration) -> Self {
        let mut sum = Self {
            transactions: 0,
            naive: 0,
            buffered: 0,
            remembering: 0,
            rows_read: 0,
            rows_written: 0,
            bytes: 0,
            took,
        };
        for one in ended {
            sum.transactions += 1;
            sum.naive += one.round_trips.naive;
            sum.buffered += one.round_trips.buffered;
            sum.remembering += one.round_trips.remembering;
            sum.rows_read += one.rows_read;
            sum.rows_written += one.rows_written;
            sum.bytes += one.bytes_read + one.bytes_written;
        }
        sum
    }

    const COLUMNS: &str = "transactions | each call | buffered writes | and remembered reads | \
                           rows read | rows written | KiB | ms |\n|---|---|---|---|---|---|---|---|";

    fn cells(&self) -> String {
        format!(
            "{} | {} | {} | {} | {} | {} | {} | {:.1} |",
            self.transactions,
            self.naive,
            self.buffered,
            self.remembering,
            self.rows_read,
            self.rows_written,
            self.bytes >> 10,
            self.took.as_secs_f64() * 1e3,
        )
    }
}

/// Figures of batches of events: for each kind the first one of a project, and another one.
async fn batches(delay: Option<Duration>, operations: &Operations) -> String {
    let mut table = format!("| batch | {}---|\n", Figures::COLUMNS);
    let mut details = String::new();
    for (name, load) in LOADS {
        let folder = tempfile::tempdir().unwrap();
        let (store, calls) = open(&folder, delay).await;
        let log = folder.path().join("log");
        let log = OpenLog::open(&log, LogSettings::default(), store.clone()).await.unwrap();
        let ingest = log.start(Dependencies {
            applying: Handle::current(),
            locations: None,
            transform: Arc::new(NoTransformations),
        });
        for (round, which) in ["first", "second"].into_iter().enumerate() {
            calls.take();
            operations.take();
            let began = Instant::now();
            apply(&ingest, load(round)).await;
            let (took, ended, names) = (began.elapsed(), calls.take(), operations.take());
            let largest = ended.iter().max_by_key(|one| one.rows_written).unwrap();
            assert!(largest.rows_written >= BATCH as u64, "{name}: one transaction has the batch");
            let (all, of_largest) = (Figures::of(&ended, took), Figures::of([largest], took));
            writeln!(table, "| {name}, {which} | {}", all.cells()).unwrap();
            writeln!(table, "| its largest transaction | {}", of_largest.cells()).unwrap();
            writeln!(details, "- {name}, {which}: {names}; {:?}", largest.methods).unwrap();
        }
        ingest.close(Duration::from_secs(10)).await;
    }
    format!("{table}\n{details}")
}

/// Appends events as one record of the log, and waits until they are readable.
async fn apply(ingest: &Ingest, accepted: Vec<AcceptedEvent>) {
    assert_eq!(accepted.len(), BATCH);
    let batch = Batch { accepted, ..Batch::new(RECEIVED, false) };
    ingest.appender().append(PROJECT, batch.into_encoded()).await.unwrap();
    ingest.applied().await;
}

/// The events of the first and of the second batch.
type Load = fn(round: usize) -> Vec<AcceptedEvent>;

const LOADS: [(&str, Load); 6] = [
    ("100 known persons", known_persons),
    ("100 known persons, all change", changed_persons),
    ("4,000 new persons", new_persons),
    ("groups of 100 known persons", groups),
    ("page views of 500 visitors, half of them new", page_views),
    ("200 new names of events, 500 of properties", new_names),
];

fn known_persons(_: usize) -> Vec<AcceptedEvent> {
    events(&ids("user", 100), |n| (format!("event {}", n % 10), json!({"n": n, "plan": "team"})))
}

fn changed_persons(round: usize) -> Vec<AcceptedEvent> {
    let properties = |n: usize| json!({"n": n, "$set": {"seen": round * BATCH + n}});
    events(&ids("user", 100), |n| (format!("event {}", n % 10), properties(n)))
}

fn new_persons(round: usize) -> Vec<AcceptedEvent> {
    events(&ids(&format!("new-{round}"), BATCH), |n| ("arrived".to_owned(), json!({"n": n})))
}

fn groups(round: usize) -> Vec<AcceptedEvent> {
    events(&ids("user", 100), |n| {
        let key = format!("acme-{}", n % 50);
        match n % 80 {
            0 => {
                let group = json!({"$group_type": "company", "$group_key": key,
                                   "$group_set": {"seats": round * BATCH + n}});
                ("$groupidentify".to_owned(), group)
            }
            _ => ("paid".to_owned(), json!({"n": n, "$groups": {"company": key}})),
        }
    })
}

fn page_views(round: usize) -> Vec<AcceptedEvent> {
    let known = ids("visitor", 250);
    let visitors = [known, ids(&format!("visitor-{round}"), 250)].concat();
    events(&visitors, |n| {
        let (page, session) = (format!("/page/{}", n % 40), format!("session-{round}-{}", n % 500));
        let url = format!("https://shop.example{page}");
        let properties = json!({
            "$current_url": url, "$pathname": page, "$session_id": session, "$browser": "Firefox",
            "$os": "Linux", "$device_type": "Desktop", "$screen_width": 1920,
            "$referrer": "$direct", "$lib": "web", "$lib_version": "1.2.3",
            "$set": {"$browser": "Firefox", "$os": "Linux"},
            "$set_once": {"$initial_current_url": url},
        });
        ("$pageview".to_owned(), properties)
    })
}

fn new_names(round: usize) -> Vec<AcceptedEvent> {
    events(&ids("user", 100), |n| {
        let property = format!("property {round} {}", n % 500);
        (format!("event {round} {}", n % 200), json!({property: n}))
    })
}

/// Events of these distinct ids, one after another.
fn events(ids: &[String], of: impl Fn(usize) -> (String, Value)) -> Vec<AcceptedEvent> {
    let event = |n: usize| {
        let (event, properties) = of(n);
        AcceptedEvent {
            uuid: Uuid::new_v4(),
            event,
            distinct_id: ids[n % ids.len()].clone(),
            timestamp: RECEIVED + i64::try_from(n).unwrap(),
            properties: properties.to_string(),
            elements_chain: String::new(),
            warnings: Vec::new(),
        }
    };
    (0..BATCH).map(event).collect()
}

/// Distinct ids of one partition.
fn ids(prefix: &str, count: usize) -> Vec<String> {
    let ids = (0..).map(|n| format!("{prefix}-{n}"));
    ids.filter(|id| live_partition(PROJECT, id) == 0).take(count).collect()
}

/// No project has transformations.
struct NoTransformations;

#[async_trait]
impl Transform for NoTransformations {
    fn concerns(&self, _: ProjectId) -> bool {
        false
    }

    async fn may_be_omitted(&self, _: ProjectId) -> bool {
        true
    }

    async fn transform(
        &self,
        _: ProjectId,
        _: u16,
        given: Vec<TransformInput>,
    ) -> Vec<Transformed> {
        given.iter().map(|_| Transformed::Unchanged).collect()
    }
}

/// Figures of requests and pages, each sent several times. Tasks in the background also use
/// the storage, so of the later times the one with the fewest round trips counts.
async fn requests(delay: Option<Duration>, operations: &Operations) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (store, calls) = open(&folder, delay).await;
    let options = |options: &mut Options| options.store = Some(store);
    let app = TestApp::with_options(|_| {}, options).await.set_up().await;
    let (caller, cookie) = (app.owner().key(&["*"]).await, session(&app).await);
    let requests = prepared(&app, &caller, &cookie).await;
    let mut table = format!("| request | first time | {}---|---|\n", Figures::COLUMNS);
    let mut details = String::new();
    for request in &requests {
        let mut sent = Vec::new();
        for _ in 0..REPEATS {
            app.app().ingest.applied().await;
            calls.take();
            operations.take();
            let began = Instant::now();
            let answer = request.send().await;
            let (took, ended, names) = (began.elapsed(), calls.take(), operations.take());
            // A redirect to the sign-in is not what is measured.
            assert_eq!(answer.status, 200, "{}: {answer:?}", request.path);
            sent.push((Figures::of(&ended, took), names));
        }
        let ((first, _), later) = sent.split_first().unwrap();
        let least = later.iter().min_by_key(|(one, _)| (one.remembering, one.took));
        let (least, names) = least.unwrap();
        let path = request.path.replace(&app.organization().to_string(), "{organization}");
        let name = format!("{} {} `{path}`", request.name, request.method);
        writeln!(table, "| {name} | {} | {}", first.remembering, least.cells()).unwrap();
        writeln!(details, "- {name}: {names}").unwrap();
    }
    app.stop().await;
    format!("{table}\n{details}")
}

/// A request that is sent several times.
struct Request {
    name: &'static str,
    method: Method,
    path: String,
    body: Option<Value>,
    caller: Caller,
    cookie: Option<String>,
}

impl Request {
    async fn send(&self) -> Answer {
        let mut call = self.caller.call(self.method.clone(), &self.path);
        if let Some(cookie) = &self.cookie {
            call = call.header("cookie", cookie);
        }
        match &self.body {
            Some(body) => call.json(body).send().await,
            None => call.send().await,
        }
    }
}

/// Fills a project. Returns the requests about it.
async fn prepared(app: &TestApp, caller: &Caller, cookie: &str) -> Vec<Request> {
    for name in ["bob", "eve", "kim"] {
        app.member(name, Level::Member).await;
    }
    for part in 0..4 {
        let event = |n: usize| {
            let properties = json!({"$pathname": format!("/{}", n % 20), "$groups": {"company": "acme"},
                                    "$session_id": format!("session-{}", n % 50)});
            let event = if n.is_multiple_of(10) { "paid" } else { "$pageview" };
            json!({"event": event, "distinct_id": format!("user-{}", n % 200),
                   "properties": properties})
        };
        send(app, (part * 500..(part + 1) * 500).map(event).collect()).await;
    }
    let project = format!("/api/projects/{}", app.project());
    let trend = json!({"kind": "TrendsQuery", "series": [{"event": "paid"}]});
    let insight = json!({"name": "Paid", "query": trend});
    let insight = caller.post(&format!("{project}/insights/"), &insight).await.json()["id"].clone();
    let dashboards = format!("{project}/dashboards/");
    let dashboard = caller.post(&dashboards, &json!({"name": "Growth"})).await.json();
    let dashboard = dashboard["id"].clone();
    let tiles = json!({"tiles": [{"insight": insight}]});
    assert_eq!(caller.patch(&format!("{dashboards}{dashboard}/"), &tiles).await.status, 200);
    let first = async |list: &str, field: &str| -> String {
        let list = caller.get(&format!("{project}/{list}/?limit=1")).await.json();
        list["results"][0][field].as_str().expect("a list with an entry").to_owned()
    };
    let (event, person) = (first("events", "uuid").await, first("persons", "uuid").await);

    let of_api = |name, path: String| Request {
        name,
        method: Method::GET,
        path,
        body: None,
        caller: caller.clone(),
        cookie: None,
    };
    let organization = format!("/api/organizations/{}", app.organization());
    let mut all = vec![
        of_api("user", "/api/users/@me/".to_owned()),
        of_api("organizations", "/api/organizations/".to_owned()),
        of_api("organization", format!("{organization}/")),
        of_api("members", format!("{organization}/members/")),
        of_api("activity", format!("{organization}/activity_log/")),
        of_api("projects", "/api/projects/".to_owned()),
        of_api("project", format!("{project}/")),
        of_api("events", format!("{project}/events/?limit=100")),
        of_api("events of a distinct id", format!("{project}/events/?distinct_id=user-7")),
        of_api("event by uuid", format!("{project}/events/?uuid={event}")),
        of_api("persons", format!("{project}/persons/?limit=100")),
        of_api("person by distinct id", format!("{project}/persons/?distinct_id=user-7")),
        of_api("person", format!("{project}/persons/{person}/")),
        of_api("dashboards", dashboards.clone()),
        of_api("dashboard", format!("{dashboards}{dashboard}/")),
        of_api("insights", format!("{project}/insights/")),
    ];
    let post = |name, path: String, body: Value| Request {
        method: Method::POST,
        body: Some(body),
        ..of_api(name, path)
    };
    all.push(post("question", format!("{project}/query/"), json!({"query": trend})));
    let sent = |n: usize| json!({"event": "sent", "distinct_id": format!("user-{n}")});
    let batch: Vec<Value> = (0..100).map(sent).collect();
    let body = json!({"api_key": app.project_key(), "batch": batch});
    all.push(Request {
        caller: app.anonymous(),
        ..post("capture of 100 events", "/batch/".to_owned(), body)
    });
    all.extend(pages(app, (&insight, &dashboard, &person)).into_iter().map(|path| Request {
        caller: app.anonymous(),
        cookie: Some(cookie.to_owned()),
        ..of_api("page", path)
    }));
    all
}

/// The paths of the main pages.
fn pages(app: &TestApp, (insight, dashboard, person): (&Value, &Value, &str)) -> Vec<String> {
    let organization = format!("/organizations/{}", app.organization());
    let project = format!("/projects/{}", app.project());
    let of_project = [
        "",
        "/web",
        "/events",
        "/events/explore",
        "/persons",
        &format!("/persons/{person}"),
        "/groups",
        "/definitions",
        "/health",
        "/insights",
        &format!("/insights/{insight}"),
        "/dashboards",
        &format!("/dashboards/{dashboard}"),
        "/settings",
    ]
    .map(|path| format!("{project}{path}"));
    // The page of help needs the session and nothing else.
    let others = ["/help", "/account", "/organizations"].map(str::to_owned);
    let of_organization = ["", "/members", "/activity", "/exports"];
    let of_organization = of_organization.map(|path| format!("{organization}{path}"));
    [others.to_vec(), of_organization.to_vec(), of_project.to_vec()].concat()
}
