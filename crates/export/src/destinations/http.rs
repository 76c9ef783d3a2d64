//! HTTP: events to the `/batch/` endpoint of another instance, or of another receiver
//! with the same protocol (EXP-39).
//!
//! What belongs here: requests in order, one being sent while the next is built. What
//! does not: their bodies (`body`), the meaning of answers (`answer`), retries
//! (`engine`).
//!
//! Acknowledged events are delivered permanently, so an interrupted run continues after
//! them. The receiver may have accepted an interrupted request too: receivers deduplicate
//! events by their uuid.

mod answer;
mod body;

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::task::JoinHandle;
use weir_egress::{Egress, Fault, Method, header};
use weir_model::exports::ExportModel;

use crate::columns::Columns;
use crate::destination::{Altered, Delivered, Destination, Failure, Job, Writer};
use crate::destinations::Dependencies;
use crate::rows::Batch;
use answer::Answer;
use body::Events;

/// Upper bound of events in a request.
const EVENTS_MAX: usize = 5_000;
/// Upper bound of bytes of a request's events: a quarter of the limit of receivers, and
/// few enough for a slow connection.
const BYTES_MAX: usize = 5 << 20;
/// The steps of the test.
pub(crate) const STEPS: &[&str] = &["Check the address", "Reach the receiver with the token"];
/// The path of the endpoint.
const PATH: &str = "/batch/";

#[derive(Deserialize)]
struct Config {
    url: String,
    token: String,
}

/// A receiver of events.
pub(crate) struct Http {
    line: Arc<Line>,
}

/// The connection settings of a receiver.
struct Line {
    egress: Egress,
    url: String,
    head: Vec<u8>,
}

impl Http {
    /// Opens the destination.
    pub(crate) fn new(
        config: &Map<String, Value>,
        dependencies: &Dependencies,
    ) -> Result<Self, Failure> {
        let config: Config =
            serde_json::from_value(Value::Object(config.clone())).map_err(|_| {
                Failure::permanent("InvalidConfig", "An address and a token are needed.")
            })?;
        let line = Line {
            egress: dependencies.egress.clone(),
            url: endpoint(&config.url),
            head: body::head(&config.token),
        };
        Ok(Self { line: Arc::new(line) })
    }
}

#[async_trait]
impl Destination for Http {
    fn columns(&self) -> Columns {
        body::columns()
    }

    async fn begin(&self, job: Job) -> Result<Box<dyn Writer>, Failure> {
        if job.model != ExportModel::Events || job.columns.columns != self.columns().columns {
            return Err(no_events());
        }
        Ok(Box::new(HttpWriter {
            line: Arc::clone(&self.line),
            next: Events::default(),
            sending: None,
            too_long: usize::MAX,
            rows: job.cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0),
            delivered: None,
            altered: Vec::new(),
        }))
    }

    fn steps(&self) -> &'static [&'static str] {
        STEPS
    }

    async fn test(&self, step: usize, _: ExportModel) -> Result<(), Failure> {
        if step == 0 {
            return Ok(self.line.egress.check_url(&self.line.url).await?);
        }
        // A batch without events stores nothing. Some receivers answer it with an error.
        match self.line.send(&[]).await {
            Err(failure) if failure.class == answer::INVALID => Ok(()),
            answered => answered.map(drop),
        }
    }
}

impl Line {
    /// Sends events, given as text.
    async fn send(&self, events: &[u8]) -> Result<Answer, Failure> {
        let request = self.egress.request(Method::POST, &self.url)?;
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let request = request.body(body::whole(&self.head, events));
        answer::read(request.send().await.map_err(Fault::from)?).await
    }

    /// Sends events in as few requests as the receiver accepts.
    async fn deliver(self: Arc<Self>, events: Events, too_long: usize) -> Sent {
        let mut sent = Sent { taken: 0, altered: Vec::new(), too_long, outcome: Ok(()), events };
        let all = 0..sent.events.len();
        let mut waiting: Vec<Range<usize>> = vec![all];
        while let Some(range) = waiting.pop() {
            let text = sent.events.text(&range);
            let answer = match text.len() >= sent.too_long && range.len() > 1 {
                true => Ok(Answer::TooLarge),
                false => self.send(text).await,
            };
            match answer {
                Ok(Answer::Taken) => sent.taken = range.end,
                Ok(Answer::TooLarge) if range.len() > 1 => {
                    sent.too_long = sent.too_long.min(text.len());
                    let middle = range.start + range.len() / 2;
                    waiting.push(middle..range.end);
                    waiting.push(range.start..middle);
                }
                Ok(Answer::TooLarge) => {
                    sent.altered.push(Altered {
                        uuid: sent.events.uuid(range.start),
                        column: "properties".to_owned(),
                        what: "the event was skipped: it is longer than the receiver takes",
                    });
                    sent.taken = range.end;
                }
                Err(failure) => {
                    sent.outcome = Err(failure);
                    break;
                }
            }
        }
        sent
    }
}

/// The outcome for the events of a round of requests.
struct Sent {
    events: Events,
    /// Number of events that are settled, counted from the first.
    taken: usize,
    /// The settled events that the receiver did not get.
    altered: Vec<Altered>,
    /// Bytes of the shortest request that the receiver refused as too long.
    too_long: usize,
    outcome: Result<(), Failure>,
}

struct HttpWriter {
    line: Arc<Line>,
    /// The events of the request that is being built.
    next: Events,
    /// The request that is being sent.
    sending: Option<JoinHandle<Sent>>,
    /// Bytes of the shortest request that the receiver refused as too long.
    too_long: usize,
    /// Rows of the run that are delivered.
    rows: u64,
    delivered: Option<Delivered>,
    altered: Vec<Altered>,
}

impl HttpWriter {
    /// Waits for the request that is being sent.
    async fn arrived(&mut self) -> Result<(), Failure> {
        let Some(sending) = &mut self.sending else {
            return Ok(());
        };
        let sent = sending.await;
        self.sending = None;
        let sent = sent.map_err(|error| {
            tracing::error!(%error, "sending events over HTTP ended early");
            Failure::retryable("Internal", "Sending failed for a reason of ours.")
        })?;
        self.too_long = sent.too_long;
        let omitted = sent.altered.len();
        self.altered.extend(sent.altered);
        if let Some(arrival) = sent.taken.checked_sub(1).and_then(|last| sent.events.arrival(last))
        {
            self.rows += sent.taken.saturating_sub(omitted) as u64;
            let cursor = self.rows.to_string();
            self.delivered = Some(Delivered { rows: self.rows, arrival, cursor });
        }
        sent.outcome
    }

    /// Sends the built request after the present one.
    async fn send(&mut self) -> Result<(), Failure> {
        self.arrived().await?;
        if self.next.len() > 0 {
            let events = std::mem::take(&mut self.next);
            let line = Arc::clone(&self.line);
            self.sending = Some(tokio::spawn(line.deliver(events, self.too_long)));
        }
        Ok(())
    }

    fn stop(&mut self) {
        if let Some(sending) = self.sending.take() {
            sending.abort();
        }
    }
}

#[async_trait]
impl Writer for HttpWriter {
    async fn write(&mut self, batch: Batch) -> Result<(), Failure> {
        if self.sending.as_ref().is_some_and(JoinHandle::is_finished) {
            self.arrived().await?;
        }
        let arrivals = batch.arrivals.as_ref().ok_or_else(no_events)?;
        for (row, arrival) in batch.rows.iter().zip(arrivals) {
            self.next.push(row, *arrival)?;
            let bytes_max = BYTES_MAX.min(self.too_long / 2);
            if self.next.len() >= EVENTS_MAX || self.next.size() >= bytes_max {
                self.send().await?;
            }
        }
        Ok(())
    }

    fn delivered(&self) -> Option<Delivered> {
        self.delivered.clone()
    }

    fn altered(&mut self) -> Vec<Altered> {
        std::mem::take(&mut self.altered)
    }

    async fn finish(&mut self) -> Result<(), Failure> {
        self.send().await?;
        self.arrived().await
    }

    async fn abort(&mut self) {
        self.stop();
    }
}

impl Drop for HttpWriter {
    fn drop(&mut self) {
        self.stop();
    }
}

fn no_events() -> Failure {
    let message = "Receivers take whole events: export events, without a query.";
    Failure::permanent("WrongColumns", message)
}

/// The endpoint of a receiver with this URL. The address of this machine does not belong
/// to the events: `ip=0` keeps the receiver from adding it.
fn endpoint(url: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let (address, query) = url.split_once('?').unwrap_or((url, "ip=0"));
    let host_at = address.find("://").map_or(0, |at| at + 3);
    let has_path = address
        .get(host_at..)
        .and_then(|rest| rest.split_once('/'))
        .is_some_and(|(_, path)| !path.is_empty());
    let address = if has_path { address } else { address.trim_end_matches('/') };
    let path = if has_path { "" } else { PATH };
    format!("{address}{path}?{query}")
}

#[cfg(test)]
mod tests {
    use super::endpoint;

    #[test]
    fn addresses_of_receivers() {
        for (url, expected) in [
            ("https://weir.example", "https://weir.example/batch/?ip=0"),
            ("https://weir.example/", "https://weir.example/batch/?ip=0"),
            ("http://127.0.0.1:8000/batch/", "http://127.0.0.1:8000/batch/?ip=0"),
            ("https://weir.example/a/capture", "https://weir.example/a/capture?ip=0"),
            ("https://weir.example?ip=1#x", "https://weir.example/batch/?ip=1"),
            ("https://weir.example/batch/?a=b", "https://weir.example/batch/?a=b"),
        ] {
            assert_eq!(endpoint(url), expected, "{url}");
        }
    }
}
