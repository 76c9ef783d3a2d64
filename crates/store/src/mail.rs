//! Outbox: mails that wait to be sent. A mail is written in the transaction of the change
//! that causes it, so that neither exists without the other, and it survives a restart.
//!
//! What belongs here: statements about `mail` (keyed by time, so that due mails are a
//! narrow range) and `mail_undelivered` (mails that were given up). What does not: the
//! text of a mail and the times of its attempts.

use std::time::Duration;

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::mail::Mail;
use weir_model::{MailId, Timestamp};

use crate::bind::bind;
use crate::db::Statement;
use crate::{Error, Result, Store};

/// Mails that are read at a time.
const CONCURRENT: i64 = 20;
/// Seconds for which a mail that was given up is kept: thirty days.
const KEPT_SECONDS: i64 = 30 * 24 * 60 * 60;

/// A mail that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailRow {
    /// Id of the mail. It is the same for every attempt, so that a receiver can recognize
    /// a mail that was sent twice.
    pub id: MailId,
    /// The time of the next attempt.
    pub due_at: Timestamp,
    /// When it was written.
    pub created_at: Timestamp,
    /// The number of attempts so far.
    pub tries: u32,
    /// Text and receivers.
    pub mail: Mail,
}

#[derive(Debug, Clone, SurrealValue)]
pub(crate) struct Stored {
    uuid: Uuid,
    due_at: i64,
    created_at: i64,
    tries: i64,
    invite: Option<Uuid>,
    text: String,
}

impl TryFrom<&MailRow> for Stored {
    type Error = Error;

    fn try_from(row: &MailRow) -> Result<Self> {
        Ok(Self {
            uuid: row.id.0,
            due_at: row.due_at.micros(),
            created_at: row.created_at.micros(),
            tries: i64::from(row.tries),
            invite: row.mail.news.invite().map(|invite| invite.0),
            text: serde_json::to_string(&row.mail).map_err(shape)?,
        })
    }
}

impl TryFrom<Stored> for MailRow {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self> {
        Ok(Self {
            id: MailId(stored.uuid),
            due_at: Timestamp::from_micros(stored.due_at),
            created_at: Timestamp::from_micros(stored.created_at),
            tries: u32::try_from(stored.tries).unwrap_or(u32::MAX),
            mail: serde_json::from_str(&stored.text).map_err(shape)?,
        })
    }
}

fn shape(error: serde_json::Error) -> Error {
    Error::Shape { statement: "mail", detail: error.to_string() }
}

/// Mails as a statement binds them to `$mails`.
///
/// # Errors
/// [`Error::Shape`] when a mail cannot be encoded as JSON, which does not happen.
pub(crate) fn stored(rows: &[MailRow]) -> Result<Vec<Stored>> {
    rows.iter().map(Stored::try_from).collect()
}

/// Adds the mails `$mails` ([`stored`]) to the outbox. Used by the transactions of the
/// changes that cause them.
macro_rules! write_mails {
    () => {
        "FOR $mail IN $mails {
             UPSERT type::record('mail', [$mail.due_at, $mail.uuid]) CONTENT $mail RETURN NONE;
         };"
    };
}
pub(crate) use write_mails;

const ADD: Statement = Statement::write("mail add", concat!("BEGIN;", write_mails!(), "COMMIT;"));

/// Adds mails to the outbox without another write.
///
/// # Errors
/// Any failure of the store.
pub async fn add(store: &Store, rows: &[MailRow]) -> Result<()> {
    store.db.run(ADD, bind! { mails: stored(rows)? }).await.map(drop)
}

const DUE: Statement =
    Statement::read("mail due", "SELECT * FROM mail:[0]..=[$now, ..] LIMIT $limit;");

/// Some of the mails that are due, longest due first.
///
/// # Errors
/// Any failure of the store.
pub async fn due(store: &Store, now: Timestamp) -> Result<Vec<MailRow>> {
    let mut answer = store.db.run(DUE, bind! { now: now.micros(), limit: CONCURRENT }).await?;
    answer.rows::<Stored>(0)?.into_iter().map(MailRow::try_from).collect()
}

const FORGET: Statement =
    Statement::delete("mail forget", "DELETE type::record('mail', [$due_at, $mail]) RETURN NONE;");

/// Removes a mail that is not needed any more.
///
/// # Errors
/// Any failure of the store.
pub async fn forget(store: &Store, row: &MailRow) -> Result<()> {
    store.db.run(FORGET, bind! { mail: row.id.0, due_at: row.due_at.micros() }).await.map(drop)
}

// Declared as a read, like deletions, because it writes little more. It must work while
// the disk is low: otherwise the same mail would be sent repeatedly.
const SENT: Statement = Statement::delete(
    "mail sent",
    "BEGIN;
     DELETE type::record('mail', [$due_at, $mail]) RETURN NONE;
     IF $invite != NONE {
         UPDATE type::record('invite', $invite) SET emailing_attempt_made = true RETURN NONE;
     };
     COMMIT;",
);

/// Removes a mail that the mail server accepted. If it is about an invite, records there
/// that a mail was attempted.
///
/// # Errors
/// Any failure of the store.
pub async fn sent(store: &Store, row: &MailRow) -> Result<()> {
    let vars = bind! {
        mail: row.id.0,
        due_at: row.due_at.micros(),
        invite: row.mail.news.invite().map(|invite| invite.0),
    };
    store.db.run(SENT, vars).await.map(drop)
}

const AGAIN: Statement = Statement::delete(
    "mail again",
    "BEGIN;
     LET $present = (SELECT VALUE uuid FROM ONLY type::record('mail', [$due_at, $row.uuid]));
     IF $present != NONE {
         DELETE type::record('mail', [$due_at, $row.uuid]) RETURN NONE;
         UPSERT type::record('mail', [$row.due_at, $row.uuid]) CONTENT $row RETURN NONE;
     };
     IF $was_refused AND $row.invite != NONE {
         UPDATE type::record('invite', $row.invite) SET emailing_attempt_made = true RETURN NONE;
     };
     COMMIT;",
);

/// Stores that an attempt failed, and sets the time of the next attempt to `due_at`.
/// `was_refused`: a mail server answered and refused the mail; `false`: none answered.
///
/// # Errors
/// Any failure of the store.
pub async fn again(
    store: &Store,
    row: &MailRow,
    due_at: Timestamp,
    was_refused: bool,
) -> Result<()> {
    let next = MailRow { due_at, tries: row.tries.saturating_add(1), ..row.clone() };
    let vars = bind! {
        due_at: row.due_at.micros(),
        row: Stored::try_from(&next)?,
        was_refused: was_refused,
    };
    store.db.run(AGAIN, vars).await.map(drop)
}

const GIVE_UP: Statement = Statement::delete(
    "mail give up",
    "BEGIN;
     DELETE type::record('mail', [$row.due_at, $row.uuid]) RETURN NONE;
     UPSERT type::record('mail_undelivered', [$now, $row.uuid])
         CONTENT object::extend($row, { reason: $reason, given_up_at: $now }) RETURN NONE;
     IF $was_refused AND $row.invite != NONE {
         UPDATE type::record('invite', $row.invite) SET emailing_attempt_made = true RETURN NONE;
     };
     DELETE mail_undelivered:[0]..=[$before, ..] RETURN NONE;
     COMMIT;",
)
.within(Duration::from_secs(30));

/// Gives a mail up for this reason. It is kept for thirty days.
///
/// # Errors
/// Any failure of the store.
pub async fn give_up(
    store: &Store,
    row: &MailRow,
    reason: &str,
    was_refused: bool,
    now: Timestamp,
) -> Result<()> {
    let vars = bind! {
        row: Stored::try_from(row)?,
        reason: reason,
        was_refused: was_refused,
        now: now.micros(),
        before: now.plus_seconds(-KEPT_SECONDS).micros(),
    };
    store.db.run(GIVE_UP, vars).await.map(drop)
}

/// A mail that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undelivered {
    /// Text and receivers.
    pub mail: Mail,
    /// Why it was given up.
    pub reason: String,
    /// When it was given up.
    pub given_up_at: Timestamp,
}

#[derive(Debug, SurrealValue)]
struct StoredUndelivered {
    text: String,
    reason: String,
    given_up_at: i64,
}

const UNDELIVERED: Statement =
    Statement::read("mail undelivered", "SELECT text, reason, given_up_at FROM mail_undelivered;");

/// The mails that were given up in the last thirty days, oldest first.
///
/// # Errors
/// Any failure of the store.
pub async fn undelivered(store: &Store) -> Result<Vec<Undelivered>> {
    let mut answer = store.db.run(UNDELIVERED, bind! {}).await?;
    let shown = |stored: StoredUndelivered| {
        Ok(Undelivered {
            mail: serde_json::from_str(&stored.text).map_err(shape)?,
            reason: stored.reason,
            given_up_at: Timestamp::from_micros(stored.given_up_at),
        })
    };
    answer.rows::<StoredUndelivered>(0)?.into_iter().map(shown).collect()
}

const WAITING: Statement =
    Statement::read("mail waiting", "RETURN count(SELECT VALUE 1 FROM mail);");

/// The number of mails in the outbox.
///
/// # Errors
/// Any failure of the store.
pub async fn waiting(store: &Store) -> Result<u64> {
    let count = store.db.run(WAITING, bind! {}).await?.row::<i64>(0)?;
    Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
}
