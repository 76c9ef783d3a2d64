//! Requests to the webhooks of alerts that wait to be sent. One is written in the transaction
//! of the check that causes it, as mails are.
//!
//! What belongs here: statements about `alert_webhook`. What does not: the times of attempts,
//! and sending.

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::{AlertId, ProjectId, Timestamp};

use crate::bind::bind;
use crate::db::Statement;
use crate::{Result, Store};

/// A request that waits.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct WebhookRow {
    /// Its id, which is the same for every attempt.
    #[surreal(rename = "uuid")]
    pub id: Uuid,
    /// The project of the alert.
    pub project: ProjectId,
    /// The alert. Its record has the address.
    pub alert: AlertId,
    /// The time of the next attempt.
    pub due_at: Timestamp,
    /// When it was written.
    pub created_at: Timestamp,
    /// The number of attempts so far.
    pub tries: i64,
    /// The page of the alert, as a path.
    pub path: String,
    /// The body without the address of that page: a JSON object.
    pub body: String,
}

const DUE: Statement = Statement::read(
    "alert webhooks due",
    "SELECT * FROM alert_webhook:[0]..=[$now, ..] LIMIT $most;",
);

/// At most `most` of the requests that are due, longest due first, of all projects.
///
/// # Errors
/// Any failure of the store.
pub async fn due_webhooks(store: &Store, now: Timestamp, most: u32) -> Result<Vec<WebhookRow>> {
    let vars = bind! { now: now.micros(), most: i64::from(most) };
    store.db.run(DUE, vars).await?.rows(0)
}

// Declared as a deletion, as the removal of a mail that was sent.
const FORGET: Statement = Statement::delete(
    "alert webhooks forget",
    "DELETE type::record('alert_webhook', [$due_at, $uuid]) RETURN NONE;",
);

/// Removes a request that was sent, or is given up.
///
/// # Errors
/// Any failure of the store.
pub async fn forget_webhook(store: &Store, row: &WebhookRow) -> Result<()> {
    let vars = bind! { due_at: row.due_at.micros(), uuid: row.id };
    store.db.run(FORGET, vars).await.map(drop)
}

const RETRY: Statement = Statement::delete(
    "alert webhooks retry",
    "BEGIN;
     DELETE type::record('alert_webhook', [$due_at, $row.uuid]) RETURN NONE;
     UPSERT type::record('alert_webhook', [$row.due_at, $row.uuid]) CONTENT $row RETURN NONE;
     COMMIT;",
);

/// Stores that an attempt failed, and sets the time of the next one.
///
/// # Errors
/// Any failure of the store.
pub async fn retry_webhook(store: &Store, row: &WebhookRow, due_at: Timestamp) -> Result<()> {
    let next = WebhookRow { due_at, tries: row.tries.saturating_add(1), ..row.clone() };
    let vars = bind! { due_at: row.due_at.micros(), row: next };
    store.db.run(RETRY, vars).await.map(drop)
}
