//! Sends finished spans to a collector.
//!
//! What belongs here: when spans are sent, and what happens if they are not taken: they are
//! lost, and the next ones are tried. What does not: the bound on waiting spans (`queue`),
//! the format (`otlp`).

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};
use serde_json::Value as Json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use uuid::Uuid;
use weir_egress::{BuildError, Egress, Fault, FaultClass, Method, Rules};

use super::otlp;
use super::queue::{BATCH, Batch, Finished, Queue};
use crate::config::Config;
use crate::metrics::Metrics;

/// Time between two requests, if not many spans wait.
const INTERVAL: Duration = Duration::from_secs(2);
/// Time for a request.
const REQUEST: Duration = Duration::from_secs(10);
/// Time for sending waiting spans when the process ends.
const END: Duration = Duration::from_secs(2);
/// Largest answer that is read, bytes.
const ANSWER: usize = 64 << 10;

/// The connection to a collector.
pub struct Exporter {
    queue: Arc<Queue>,
    egress: Egress,
    url: String,
    headers: HeaderMap,
    resource: Json,
    metrics: Metrics,
    /// Whether the last request failed, so that a long failure is one line of the log.
    is_failing: bool,
}

/// An exporter that runs.
pub struct Exporting {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Exporter {
    /// The address is the operator's, so each may be dialled.
    pub(super) fn new(
        queue: Arc<Queue>,
        config: &Config,
        metrics: Metrics,
    ) -> Result<Self, BuildError> {
        let mut headers = config.traces_headers.all().clone();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(otlp::MEDIA_TYPE));
        Ok(Self {
            queue,
            egress: Egress::new(Rules::any())?.within(REQUEST),
            url: config.traces_endpoint.url().unwrap_or_default(),
            headers,
            resource: otlp::resource(&Uuid::new_v4().to_string()),
            metrics,
            is_failing: false,
        })
    }

    /// Starts sending.
    pub fn start(self) -> Exporting {
        let (stop, stopping) = oneshot::channel();
        Exporting { stop, task: tokio::spawn(self.run(stopping)) }
    }

    async fn run(mut self, mut stopping: oneshot::Receiver<()>) {
        let mut is_stopping = false;
        while !is_stopping {
            tokio::select! {
                () = sleep(INTERVAL) => {}
                () = self.queue.filled(), if !self.is_failing => {}
                // Also when the sender is dropped.
                _ = &mut stopping => is_stopping = true,
            }
            while self.send_batch().await {}
        }
    }

    /// Sends the oldest spans. Returns whether a whole batch was sent, so that more may wait.
    async fn send_batch(&mut self) -> bool {
        let Batch { spans, lost } = self.queue.take();
        self.metrics.trace_spans_lost.inc_by(lost);
        if spans.is_empty() {
            return false;
        }
        let count = u64::try_from(spans.len()).unwrap_or(u64::MAX);
        match self.send(&spans).await {
            Ok(rejected) => {
                let rejected = rejected.min(count);
                self.metrics.trace_spans_lost.inc_by(rejected);
                self.metrics.trace_spans_exported.inc_by(count - rejected);
                if self.is_failing {
                    tracing::info!("traces are exported again");
                }
                self.is_failing = false;
                spans.len() == BATCH
            }
            Err(fault) => {
                self.metrics.trace_spans_lost.inc_by(count);
                if !self.is_failing {
                    tracing::warn!(%fault, "traces cannot be exported and are lost");
                }
                self.is_failing = true;
                // The others wait for the interval.
                false
            }
        }
    }

    /// Returns how many spans the collector did not take.
    async fn send(&self, spans: &[Finished]) -> Result<u64, Fault> {
        let body = otlp::request(&self.resource, spans).to_string();
        let request = self.egress.request(Method::POST, &self.url)?;
        let response = request.headers(self.headers.clone()).body(body).send().await?;
        let status = response.status();
        let answer = Egress::read(response, ANSWER).await?;
        if status.is_success() {
            Ok(otlp::rejected(&answer))
        } else {
            Err(FaultClass::Status(status.as_u16()).into())
        }
    }
}

impl Exporting {
    /// Sends what waits, for a moment, and ends.
    pub async fn finish(self) {
        // It fails only if the task has ended.
        let _ = self.stop.send(());
        if timeout(END, self.task).await.is_err() {
            tracing::warn!("the last traces were not exported in time");
        }
    }
}
