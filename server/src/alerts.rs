//! The tasks of alerts: checking those that are due, and sending requests to webhooks.
//!
//! What belongs here: when, and the request itself. What does not: what a check means, and
//! when a request is tried again (`weir-service`).

use std::time::Duration;

use futures::future::join_all;
use tokio::time::MissedTickBehavior;
use weir_egress::{Egress, Fault, FaultClass, Method, header};
use weir_service::alerts::{Alerts, DueWebhook};

/// Time between two searches for alerts and requests that are due.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Time until alerts are checked again after a failure, such as a disk without space: a check
/// asks a question before it writes.
const PAUSE: Duration = Duration::from_secs(10);
/// Timeout of a request to a webhook.
const REQUEST: Duration = Duration::from_secs(10);

/// Checks alerts when they are due, forever.
pub async fn check(alerts: Alerts) {
    let mut tick = tokio::time::interval(POLL_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if let Err(error) = alerts.check_due().await {
            tracing::warn!(%error, "alerts were not checked; trying again");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Sends requests to the webhooks of alerts.
pub struct WebhookWorker {
    alerts: Alerts,
    egress: Egress,
    /// The address of this instance.
    origin: String,
}

impl WebhookWorker {
    /// A worker that names `origin` in its requests.
    pub fn new(alerts: Alerts, egress: Egress, origin: String) -> Self {
        Self { alerts, egress: egress.within(REQUEST), origin }
    }

    /// Sends requests when they are due, forever.
    pub async fn send(self) {
        let mut tick = tokio::time::interval(POLL_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            match self.alerts.due_webhooks().await {
                // A slow receiver does not delay the others.
                Ok(due) => {
                    join_all(due.iter().map(|webhook| self.send_one(webhook))).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "webhooks of alerts were not read; trying again");
                }
            }
        }
    }

    async fn send_one(&self, webhook: &DueWebhook) {
        let failure = self.post(webhook).await.err().map(|fault| fault.to_string());
        if let Err(error) = self.alerts.webhook_sent(webhook, failure).await {
            tracing::warn!(%error, "the result of a webhook was not stored");
        }
    }

    async fn post(&self, webhook: &DueWebhook) -> Result<(), Fault> {
        let request = self.egress.request(Method::POST, &webhook.url)?;
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let answer = request.body(webhook.body(&self.origin)).send().await?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        Err(FaultClass::Status(status.as_u16()).into())
    }
}
