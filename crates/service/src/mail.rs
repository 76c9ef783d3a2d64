//! Mails that wait to be sent, and what becomes of each try.
//!
//! What belongs here: writing mails beside what they tell, when to try again,
//! when to give up. What does not: words and delivery (`weir-mail`), the task
//! that sends (the server).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
use weir_model::mail::{AccountChange, Mail, News};
use weir_model::{MailId, Timestamp};
use weir_store::ids;
use weir_store::mail::{self as rows, MailRow};
use weir_store::users::UserRow;

pub use weir_store::mail::Undelivered;

use crate::error::Error;
use crate::identity::links;
use crate::{Core, Result};

/// Seconds until a mail is tried again; beyond the end the last entry holds.
const WAITS: &[i64] = &[5, 30, 120, 600, 1800, 3600];
/// A mail that could not be sent for so many seconds is given up: a day.
const GIVE_UP_AFTER: i64 = 24 * 60 * 60;

/// Whether anybody sends, and the sign that there is something to send.
#[derive(Debug, Default)]
pub(crate) struct Mailing {
    open: AtomicBool,
    arrived: Notify,
}

impl Mailing {
    /// The rows of mails to be written in the transaction of what they tell;
    /// none where nobody sends.
    pub(crate) fn rows(
        &self,
        now: Timestamp,
        mails: impl IntoIterator<Item = Mail>,
    ) -> Vec<MailRow> {
        if !self.is_open() {
            return Vec::new();
        }
        let row = |mail: Mail| MailRow {
            id: MailId(ids::time_ordered(now)),
            due_at: now,
            created_at: now,
            tries: 0,
            mail,
        };
        mails.into_iter().map(row).collect()
    }

    /// Whether anybody sends.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// Mails were written: there is something to send.
    pub(crate) fn wake(&self) {
        self.arrived.notify_one();
    }
}

/// Why a mail was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setback {
    /// No mail server answered.
    Unreachable(String),
    /// The mail server said no, for now.
    Refused(String),
    /// It can never be sent as it is: trying again is of no use.
    Hopeless(String),
}

impl Setback {
    fn reason(&self) -> &str {
        match self {
            Self::Unreachable(reason) | Self::Refused(reason) | Self::Hopeless(reason) => reason,
        }
    }

    /// Whether a mail server was there and said no.
    fn was_refused(&self) -> bool {
        match self {
            Self::Unreachable(_) => false,
            Self::Refused(_) | Self::Hopeless(_) => true,
        }
    }
}

/// Mails: for the task of the instance that sends them.
#[derive(Clone)]
pub struct Mails {
    core: Arc<Core>,
}

impl Mails {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Says that mails will be sent from now on. Until then none is written.
    pub fn open(&self) {
        self.core.mailing.open.store(true, Ordering::Relaxed);
    }

    /// Whether mails are sent.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.core.mailing.is_open()
    }

    /// Returns when a mail was written.
    pub async fn arrived(&self) {
        self.core.mailing.arrived.notified().await;
    }

    /// Mails to try now, some at a time, with the links that they carry. Those
    /// whose invite is gone, and their link with it, are forgotten; so are those
    /// to accounts that have no use for them.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn due(&self) -> Result<Vec<MailRow>> {
        let store = &self.core.store;
        let mut due = Vec::new();
        for row in rows::due(store, self.core.clock.now()).await? {
            match self.ready(&row.mail).await {
                Ok(Some(mail)) => due.push(MailRow { mail, ..row }),
                Ok(None) => rows::forget(store, &row).await?,
                // Its link cannot be kept just now: it stays where it is, and
                // holds up no other.
                Err(Error::Store(error)) if error.is_temporary() => {
                    tracing::debug!(mail = %row.id, %error, "a mail waits for its link");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(due)
    }

    /// A mail as it is sent; `None`: it is of no use any more.
    async fn ready(&self, mail: &Mail) -> Result<Option<Mail>> {
        links::filled(&self.core, mail).await
    }

    /// Notes that a mail was taken by the mail server.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn sent(&self, row: &MailRow) -> Result<()> {
        Ok(rows::sent(&self.core.store, row).await?)
    }

    /// Notes that a mail was not sent: it is tried again later, for a day.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn not_sent(&self, row: &MailRow, setback: &Setback) -> Result<()> {
        let store = &self.core.store;
        let now = self.core.clock.now();
        let next = now.plus_seconds(wait(row.tries));
        let end = row.created_at.plus_seconds(GIVE_UP_AFTER);
        let (mail, reason) = (row.id, setback.reason());
        if matches!(setback, Setback::Hopeless(_)) || next > end {
            tracing::warn!(%mail, tries = row.tries + 1, reason, "a mail was given up");
            rows::give_up(store, row, reason, setback.was_refused(), now).await?;
        } else {
            tracing::warn!(%mail, tries = row.tries + 1, reason, "a mail was not sent yet");
            rows::again(store, row, next, setback.was_refused()).await?;
        }
        Ok(())
    }

    /// What was given up in the last thirty days, oldest first.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn undelivered(&self) -> Result<Vec<Undelivered>> {
        Ok(rows::undelivered(&self.core.store).await?)
    }

    /// How many mails wait to be sent.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn waiting(&self) -> Result<u64> {
        Ok(rows::waiting(&self.core.store).await?)
    }
}

fn wait(tries: u32) -> i64 {
    let index = usize::try_from(tries).unwrap_or(usize::MAX).min(WAITS.len() - 1);
    WAITS.get(index).copied().unwrap_or(GIVE_UP_AFTER)
}

/// A mail with this news.
pub(crate) fn to(address: &str, news: News) -> Mail {
    Mail { to: address.to_owned(), news }
}

/// The mail that tells the owner of an account of a change, at the address that it has
/// before.
pub(crate) fn of_change(user: &UserRow, change: AccountChange, at: Timestamp) -> Mail {
    let first_name = user.first_name.clone();
    to(&user.email, News::AccountChanged { first_name, change, at })
}

#[cfg(test)]
mod tests;
