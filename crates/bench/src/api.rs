//! The management API and the metrics page, as checks use them.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use crate::client::Connection;
use crate::weir::Instance;

/// Pause between two requests for an event that is not readable yet.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Timeout of an answer, also of a large page of a debug build.
const ANSWER: Duration = Duration::from_secs(120);

/// A client of the management API with one connection.
#[derive(Debug)]
pub struct Api {
    connection: Connection,
    instance: Instance,
}

/// A page of events.
#[derive(Debug, Deserialize)]
pub struct EventPage {
    /// Address of the next page.
    pub next: Option<String>,
    /// Events, newest first.
    pub results: Vec<EventRow>,
}

/// The fields of an event that checks use.
#[derive(Debug, Deserialize)]
pub struct EventRow {
    /// The uuid of the event.
    pub uuid: Uuid,
    /// The event name.
    pub event: String,
    /// The distinct id.
    pub distinct_id: String,
    /// The properties as JSON.
    pub properties: Box<RawValue>,
}

impl Api {
    /// Connects.
    ///
    /// # Errors
    /// If the connection is refused.
    pub async fn open(address: SocketAddr, instance: &Instance) -> Result<Self> {
        let connection = Connection::open(address).await.context("cannot connect to the API")?;
        Ok(Self { connection, instance: instance.clone() })
    }

    /// The bytes of a request, which can be sent repeatedly.
    pub fn request(&self, method: &str, path: &str, body: &str) -> Vec<u8> {
        request(&self.instance, method, path, body)
    }

    /// Sends a request; returns status and body.
    ///
    /// # Errors
    /// If the connection breaks, or there is no answer in two minutes.
    pub async fn call(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, Vec<u8>)> {
        let request = self.request(method, path, body);
        let answer = timeout(ANSWER, self.connection.send(&request)).await;
        let answer = answer.with_context(|| format!("{path} got no answer in {ANSWER:?}"))??;
        Ok((answer.status, answer.body.to_vec()))
    }

    /// A page of events; `path` begins after the events of the project, or is the URL of
    /// a next page.
    ///
    /// # Errors
    /// If the answer is not a page.
    pub async fn events(&mut self, query: &str) -> Result<EventPage> {
        self.of_project("events/", query).await
    }

    /// All items of a list of the project, such as `persons/`, page by page.
    ///
    /// # Errors
    /// If an answer is not a page.
    pub async fn all<T: DeserializeOwned>(&mut self, list: &str) -> Result<Vec<T>> {
        #[derive(Deserialize)]
        struct Page<T> {
            next: Option<String>,
            results: Vec<T>,
        }
        let mut all = Vec::new();
        let mut next = Some("?limit=1000".to_owned());
        while let Some(query) = next {
            let page: Page<T> = self.of_project(list, &query).await?;
            all.extend(page.results);
            next = page.next;
        }
        Ok(all)
    }

    /// Gets a path below the project; `query` may also be the URL of a next page.
    ///
    /// # Errors
    /// If the answer has another type.
    pub async fn of_project<T: DeserializeOwned>(&mut self, path: &str, query: &str) -> Result<T> {
        // `next` is an absolute URL; the connection is open.
        let path = match query
            .strip_prefix("http://")
            .and_then(|rest| rest.find('/').map(|at| &rest[at..]))
        {
            Some(path) => path.to_owned(),
            None => format!("/api/projects/{}/{path}{query}", self.instance.project_id),
        };
        let (status, body) = self.call("GET", &path, "").await?;
        ensure!(status == 200, "{path} answered {status}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).with_context(|| format!("{path} answered something else"))
    }

    /// Whether an event can be read.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn is_readable(&mut self, uuid: Uuid) -> Result<bool> {
        let page = self.events(&format!("?uuid={uuid}")).await?;
        Ok(page.results.iter().any(|event| event.uuid == uuid))
    }

    /// Waits until all these events can be read.
    ///
    /// # Errors
    /// If that takes longer than `patience`.
    pub async fn wait_readable(&mut self, uuids: &[Uuid], patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        for uuid in uuids {
            while !self.is_readable(*uuid).await? {
                if Instant::now() > deadline {
                    bail!("event {uuid} was acknowledged and is not readable after {patience:?}");
                }
                sleep(LOOK_AGAIN).await;
            }
        }
        Ok(())
    }
}

/// The bytes of a request to the management API.
pub fn request(instance: &Instance, method: &str, path: &str, body: &str) -> Vec<u8> {
    let key = format!("Authorization: Bearer {}\r\n", instance.personal_api_key);
    with_headers(method, path, &key, body)
}

/// The bytes of a request without a key.
pub fn anonymous(method: &str, path: &str, body: &str) -> Vec<u8> {
    with_headers(method, path, "", body)
}

fn with_headers(method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: weir-bench\r\n\
         {headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Path of the events of the instance's project.
pub fn events_path(instance: &Instance) -> String {
    format!("/api/projects/{}/events/", instance.project_id)
}

/// Path of the instance's organization.
pub fn organization_path(instance: &Instance) -> String {
    format!("/api/organizations/{}/", instance.organization_id)
}

/// A value of the metrics page.
///
/// # Errors
/// If the page cannot be read or has no such value.
pub async fn metric(address: SocketAddr, name: &str) -> Result<f64> {
    let page = metrics(address).await?;
    let value = page
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .with_context(|| format!("the metrics page has no {name}"))?;
    Ok(value.trim().parse()?)
}

/// The lines of the metrics page that begin with this, for messages.
///
/// # Errors
/// If the page cannot be read.
pub async fn measured(address: SocketAddr, begin: &str) -> Result<String> {
    let page = metrics(address).await?;
    Ok(page.lines().filter(|line| line.starts_with(begin)).collect::<Vec<_>>().join("\n"))
}

async fn metrics(address: SocketAddr) -> Result<String> {
    let mut connection = Connection::open(address).await?;
    let answer = connection.send(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await?;
    Ok(String::from_utf8_lossy(answer.body).into_owned())
}
