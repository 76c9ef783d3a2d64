//! Lists of an organization that has a thousand of everything.
//!
//! What belongs here: filling the organization, through the API alone, and
//! reading the first and the last page of each list in turns. What does not:
//! requests whose cost does not grow with the organization (`management`).

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

/// Pages that a list has.
const PAGES: usize = 10;
/// Clients that read at a time.
const TOGETHER: usize = 4;
/// Clients that create projects at a time.
const CREATORS: usize = 8;
/// Invites of one request.
const BULK: usize = 20;
/// People who sign up at a time: the service works out two passwords at once.
const SIGNING_UP: usize = 2;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Length of each list.
    pub(crate) length: usize,
    /// How often the pages of a list take turns.
    pub(crate) rounds: usize,
    /// For how long a page is read in a round.
    pub(crate) time: Duration,
    /// Projects that each of those creates who do so at once.
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

/// What came of it.
#[derive(Debug)]
pub(crate) struct Lists {
    /// Length of each list.
    pub(crate) length: usize,
    pub(crate) lists: Vec<List>,
    pub(crate) creators: Creators,
}

/// One list, read by a number of clients.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) name: &'static str,
    pub(crate) clients: usize,
    pub(crate) first: Page,
    pub(crate) last: Page,
}

impl List {
    /// Median of the last page to that of the first.
    pub(crate) fn ratio(&self) -> f64 {
        self.last.took.percentile(0.5) / self.first.took.percentile(0.5).max(1e-9)
    }

    /// Of the page that takes longer, in milliseconds.
    pub(crate) fn p99(&self) -> f64 {
        self.first.took.percentile(0.99).max(self.last.took.percentile(0.99))
    }
}

/// One page, read again and again.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) took: Latencies,
    /// Processor time of the service in all.
    cpu: Duration,
}

impl Page {
    /// Processor time of the service per answer, in milliseconds: on a machine
    /// that does other things too it says more than the time of an answer.
    pub(crate) fn cpu(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e3 / self.took.count().max(1) as f64
    }
}

/// Clients that write one organization at a time: each has to wait for the others.
#[derive(Debug, Default)]
pub(crate) struct Creators {
    pub(crate) clients: usize,
    /// Answered with 201, and after how long.
    pub(crate) created: Latencies,
    /// Answered with 503.
    pub(crate) busy: usize,
    /// Answered with anything else.
    pub(crate) others: usize,
}

/// Measures a new instance below `directory`.
pub(crate) async fn run(binary: &Path, directory: &Path, effort: Effort) -> Result<Lists> {
    let mut service = Service::create(binary, directory, 99).await?;
    let names = fill(&service, effort.length).await?;
    let mut lists = Vec::new();
    for (name, path) in names {
        for clients in [1, TOGETHER] {
            lists.push(read(&service, name, path, clients, effort).await?);
        }
    }
    let creators = create_projects(&service, effort.creations).await?;
    service.stop().await?;
    Ok(Lists { length: effort.length, lists, creators })
}

/// Makes each list so long. Gives their names, and their paths below the
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
    // The owner is one.
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
    // The set-up made one.
    all_well(post(service, "projects/", (1..length).map(project))).await?;
    Ok(lists)
}

/// Lists of invites to so many people, as long as one request may have.
fn invites(name: &'static str, people: usize) -> impl Iterator<Item = Value> {
    let invite = move |number: usize| {
        let address = format!("{name}-{number}@mail.example");
        json!({ "target_email": address, "first_name": "Grace" })
    };
    (0..people)
        .step_by(BULK)
        .map(move |first| (first..people.min(first + BULK)).map(invite).collect())
}

/// An export with everything that can be shown of one. Paused: nobody listens at
/// its destination.
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

/// Reads the first and the last page in turns, so that what disturbs the machine
/// disturbs both.
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

/// Figures of a list that is not as long as it should be would mean nothing.
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

/// Lets several clients create projects of the one organization.
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

/// Requests that are sent once each.
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

/// By one client, because writers of one organization only wait for each other.
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

/// The bodies of the answers, each of which must tell of success.
async fn all_well(sending: Sending) -> Result<Vec<Vec<u8>>> {
    let mut bodies = Vec::new();
    for Answered { status, body, .. } in sending.run().await? {
        let told = String::from_utf8_lossy(&body);
        ensure!(matches!(status, 200 | 201), "filling was answered with {status}: {told}");
        bodies.push(body);
    }
    Ok(bodies)
}
