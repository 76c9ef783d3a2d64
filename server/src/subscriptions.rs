//! The task that stores the mails of subscriptions when they are due.
//!
//! What belongs here: when. What does not: what is due, and what a mail contains
//! (`weir-service`), and sending mails (`mail`).

use std::time::Duration;

use tokio::time::MissedTickBehavior;
use weir_service::subscriptions::Subscriptions;

/// Time between two searches for subscriptions that are due.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Time until they are tried again after a failure, such as a disk without space: questions are
/// asked before anything is written.
const PAUSE: Duration = Duration::from_secs(10);

/// Stores the mails of subscriptions when they are due, forever.
pub async fn deliver(subscriptions: Subscriptions) {
    let mut tick = tokio::time::interval(POLL_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if let Err(error) = subscriptions.deliver_due().await {
            tracing::warn!(%error, "subscriptions were not delivered; trying again");
            tokio::time::sleep(PAUSE).await;
        }
    }
}
