//! Lists of an organization with a thousand items each.
//!
//! What belongs here: filling the organization through the API, and reading the first and
//! the last page of each list alternately. What does not: requests whose cost does not
//! depend on the size of the organization (`management`).

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;
use weir_bench::api::{anonymous, organization_path, request};
use weir_bench::client::Connection;
use weir_bench::load::{Load, Pool, Work, send};
use weir_bench::process;
use weir_bench::stats::Latencies;

use crate::service::Service;

/// Pages of a list.
const PAGES: usize = 10;
/// Concurrent readers.
const CONCURRENT_READS: usize = 4;
/// Concurrent clients that create projects.
const CREATORS: usize = 8;
/// Invites in one request.
const BULK: usize = 20;
/// Concurrent sign-ups: the service computes two password hashes at a time.
const SIGNING_UP: usize = 2;

/// The size of the measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Length of each list.
    pub(crate) length: usize,
    /// Number of rounds, which alternate between the pages of a list.
    pub(crate) rounds: usize,
    /// Duration of reading a page in a round.
    pub(crate) time: Duration,
    /// Projects that each concurrent client creates.
    pub(crate) creations: usize,
}

impl Effort {
    pub(crate) fn new(quick: bool) -> Self {
        Self {
            length: if quick { 100 } else { 1_000 },
            rounds: if quick { 1 } else { 4 },
            time: Duration::from_millis(if quick { 300 } else { 1_000 }),
            creations: if quick { 3 } else { 25 },
        }
    }
}

/// The results.
#[derive(Debug)]
pub(crate) struct Lists {
    /// Length of each list.
    pub(crate) length: usize,
    pub(crate) lists: Vec<List>,
    pub(crate) creators: Creators,
}

/// One list, read by several clients.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) name: &'static str,
    pub(crate) clients: usize,
    pub(crate) first: Page,
    pub(crate) last: Page,
}

impl List {
    /// Ratio of the median of the last page to that of the first.
    pub(crate) fn ratio(&self) -> f64 {
        self.last.took.percentile(0.5) / self.first.took.percentile(0.5).max(1e-9)
    }

    /// Of the slower page, in milliseconds.
    pub(crate) fn p99(&self) -> f64 {
        self.first.took.percentile(0.99).max(self.last.took.percentile(0.99))
    }
}

/// One page, read repeatedly.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) took: Latencies,
    /// Total processor time of the service.
    cpu: Duration,
}

impl Page {
    /// Processor time of the service per answer, in milliseconds. On a busy machine it is
    /// more meaningful than the latency.
    pub(crate) fn cpu(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e3 / self.took.count().max(1) as f64
    }
}

/// Concurrent clients that write to one organization, so that each must wait for the
/// others.
#[derive(Debug, Default)]
pub(crate) struct Creators {
    pub(crate) clients: usize,
    /// Latencies of answers with status 201.
    pub(crate) created: Latencies,
    /// Answers with status 503.
    pub(crate) busy: usize,
    /// All other answers.
    pub(crate) others: usize,
}

/// Measures a new instance below `directory`.
pub(crate) async fn run(binary: &Path, directory: &Path, effort: Effort) -> Result<Lists> {
    let mut service = Service::create(binary, directory, 99).await?;
    let names = fill(&service, effort.length).await?;
    let mut lists = Vec::new();
    for (name, path) in names {
        for clients in [1, CONCURRENT_READS] {
            lists.push(read(&service, name, path, clients, effort).await?);
        }
    }
    let creators = create_projects(&service, effort.creations).await?;
    service.stop().await?;
    Ok(Lists { length: effort.length, lists, creators })
}

/// Fills each list to this length. Returns their names, and their paths below the
/// organization.
async fn fill(service: &Service, length: usize) -> Result<[(&'static str, &'static str); 5]> {
    #[derive(Deserialize)]
    struct Invite {
        token: String,
    }
    let lists = [
        ("members", "members/"),
        ("invites", "invites/"),
        ("batch exports", "batch_exports/"),
        ("domains", "domains/"),
        ("projects", "projects/"),
    ];
    crate::say(&format!("{length} members"));
    let mut people = Vec::new();
    // The owner is one member.
    for answer in all_well(post(service, "invites/bulk/", invites("member", length - 1))).await? {
        let sent: Vec<Invite> = serde_json::from_slice(&answer).context("no list of invites")?;
        people.extend(sent.into_iter().map(|invite| {
            let body = json!({ "first_name": "Grace", "password": "plum-otter-violin-93" });
            anonymous("POST", &format!("/api/signup/{}/", invite.token), &body.to_string())
        }));
    }
    all_well(Sending { requests: people, clients: SIGNING_UP, address: service.address() }).await?;

    crate::say(&format!("{length} invites, exports, domains and projects"));
    all_well(post(service, "invites/bulk/", invites("guest", length))).await?;
    all_well(post(service, "batch_exports/", (0..length).map(export))).await?;
    let domain = |number| json!({ "domain": format!("shop-{number:04}.example.com") });
    all_well(post(service, "domains/", (0..length).map(domain))).await?;
    let project = |number| json!({ "name": format!("Shop {number}") });
    // The set-up created one project.
    all_well(post(service, "projects/", (1..length).map(project))).await?;
    Ok(lists)
}

/// Bulk requests with invites to this many people.
fn invites(name: &'static str, people: usize) -> impl Iterator<Item = Value> {
    let invite = move |number: usize| {
        let address = format!("{name}-{number}@mail.example");
        json!({ "target_email": address, "first_name": "Grace" })
    };
    (0..people)
        .step_by(BULK)
        .map(move |first| (first..people.min(first + BULK)).map(invite).collect())
}

/// An export with all optional fields. Paused, because its destination does not exist.
fn export(number: usize) -> Value {
    json!({
        "name": format!("Export {number}"),
        "interval": "day",
        "paused": true,
        "destination": { "type": "S3", "config": {
            "bucket_name": "events", "region": "eu-west-1", "prefix": "weir/{year}/{month}/",
            "aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "example",
        } },
        "hogql_query": "SELECT event, distinct_id, timestamp, properties FROM events",
    })
}

/// Reads the first and the last page alternately, so that other load on the machine
/// affects both.
async fn read(
    service: &Service,
    name: &'static str,
    path: &str,
    clients: usize,
    effort: Effort,
) -> Result<List> {
    crate::say(&format!("{name}, {clients} at a time"));
    let limit = effort.length / PAGES;
    let process = service.id().to_string();
    let mut pages = [Page::default(), Page::default()];
    for round in 0..effort.rounds {
        for (offset, page) in [0, effort.length - limit].into_iter().zip(&mut pages) {
            let path = organization_path(&service.instance)
                + &format!("{path}?limit={limit}&offset={offset}");
            if round == 0 {
                check(service, &path, limit, effort.length).await?;
            }
            let work = vec![request(&service.instance, "GET", &path, "")];
            let work = Work::Again(Arc::new(Pool::of(work)));
            let load = Load::closed(service.address(), clients, effort.time, work);
            let before = process::cpu(&process)?;
            let outcome = send(load).await?;
            page.cpu += process::cpu(&process)?.saturating_sub(before);
            ensure!(outcome.refused == 0, "{path}: answered with {:?}", outcome.refusal);
            page.took.merge(&outcome.latencies);
        }
    }
    let [first, last] = pages;
    Ok(List { name, clients, first, last })
}

/// Checks the length of a list: figures of a list of another length would be meaningless.
async fn check(service: &Service, path: &str, limit: usize, length: usize) -> Result<()> {
    #[derive(Deserialize)]
    struct Answer {
        count: usize,
        results: Vec<IgnoredAny>,
    }
    let mut api = service.api().await?;
    let (status, body) = api.call("GET", path, "").await?;
    ensure!(status == 200, "{path}: answered with {status}");
    let page: Answer = serde_json::from_slice(&body).with_context(|| format!("{path}: no page"))?;
    let (count, shown) = (page.count, page.results.len());
    ensure!((count, shown) == (length, limit), "{path}: {shown} of {count}");
    Ok(())
}

/// Has several clients create projects of one organization.
async fn create_projects(service: &Service, each: usize) -> Result<Creators> {
    crate::say(&format!("{CREATORS} clients that create projects"));
    let bodies = (0..CREATORS * each).map(|number| json!({ "name": format!("New {number}") }));
    let sending = Sending { clients: CREATORS, ..post(service, "projects/", bodies) };
    let mut creators = Creators { clients: CREATORS, ..Creators::default() };
    for answered in sending.run().await? {
        match answered.status {
            201 => creators.created.add(answered.took),
            503 => creators.busy += 1,
            _ => creators.others += 1,
        }
    }
    Ok(creators)
}

/// Requests that are each sent once.
struct Sending {
    requests: Vec<Vec<u8>>,
    clients: usize,
    address: SocketAddr,
}

struct Answered {
    status: u16,
    body: Vec<u8>,
    took: Duration,
}

/// Sends with one client, because writers of one organization wait for each other anyway.
fn post(service: &Service, path: &str, bodies: impl IntoIterator<Item = Value>) -> Sending {
    let path = organization_path(&service.instance) + path;
    let post = |body: Value| request(&service.instance, "POST", &path, &body.to_string());
    let requests = bodies.into_iter().map(post).collect();
    Sending { requests, clients: 1, address: service.address() }
}

impl Sending {
    async fn run(self) -> Result<Vec<Answered>> {
        let mut clients = JoinSet::new();
        for share in self.requests.chunks(self.requests.len().div_ceil(self.clients).max(1)) {
            clients.spawn(one_client(self.address, share.to_vec()));
        }
        let mut answers = Vec::with_capacity(self.requests.len());
        while let Some(share) = clients.join_next().await {
            answers.extend(share??);
        }
        Ok(answers)
    }
}

async fn one_client(address: SocketAddr, requests: Vec<Vec<u8>>) -> Result<Vec<Answered>> {
    let mut connection = Connection::open(address).await.context("cannot connect")?;
    let mut answers = Vec::with_capacity(requests.len());
    for request in requests {
        let began = Instant::now();
        let answer = connection.send(&request).await.context("a connection broke")?;
        let (status, body) = (answer.status, answer.body.to_vec());
        answers.push(Answered { status, body, took: began.elapsed() });
    }
    Ok(answers)
}

/// The bodies of the answers, which must all be successful.
async fn all_well(sending: Sending) -> Result<Vec<Vec<u8>>> {
    let mut bodies = Vec::new();
    for Answered { status, body, .. } in sending.run().await? {
        let text = String::from_utf8_lossy(&body);
        ensure!(matches!(status, 200 | 201), "filling was answered with {status}: {text}");
        bodies.push(body);
    }
    Ok(bodies)
}
