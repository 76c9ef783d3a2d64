//! The outbox: mails that wait to be sent, and the result of each attempt.
//!
//! What belongs here: storing a mail in the transaction of the change that causes it,
//! when to retry, when to give up. What does not: texts and delivery (`weir-mail`), the
//! task that sends (the server).

use std::sync::Arc;

use tokio::sync::Notify;
use weir_model::mail::{Mail, MailContent, UserChange};
use weir_model::organizations::Level;
use weir_model::{MailId, OrganizationId, ProjectId, Timestamp};
use weir_store::mail::{self as rows, MailRow};
use weir_store::members::{self, MemberRow};
use weir_store::users::UserRow;
use weir_store::{Store, ids, organizations, projects};

pub use weir_store::mail::Undelivered;

use crate::error::Error;
use crate::identity::links;
use crate::{Core, Result};

/// Seconds until the next attempt, by the number of attempts so far. The last entry
/// applies to all further ones.
const WAITS: &[i64] = &[5, 30, 120, 600, 1800, 3600];
/// Seconds after which a mail that could not be sent is given up: a day.
pub(crate) const GIVE_UP_AFTER: i64 = 24 * 60 * 60;

/// Whether mail is sent, and the notification that a mail waits.
#[derive(Debug)]
pub struct Mailing {
    is_sent: bool,
    arrived: Notify,
}

impl Mailing {
    /// Mail that is sent, or none: then none is stored either.
    #[must_use]
    pub fn new(is_sent: bool) -> Self {
        Self { is_sent, arrived: Notify::new() }
    }

    /// The rows of mails, for the transaction of the change that causes them; none
    /// where no mail is sent.
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

    /// Whether mail is sent.
    pub(crate) fn is_open(&self) -> bool {
        self.is_sent
    }

    /// Notifies the sending task that mails were stored.
    pub(crate) fn wake(&self) {
        self.arrived.notify_one();
    }
}

/// Why a mail was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendError {
    /// No mail server answered.
    Unreachable(String),
    /// The mail server refused it for now.
    Refused(String),
    /// It can never be sent, so there is no retry.
    Hopeless(String),
}

impl SendError {
    fn reason(&self) -> &str {
        match self {
            Self::Unreachable(reason) | Self::Refused(reason) | Self::Hopeless(reason) => reason,
        }
    }

    /// Whether a mail server answered and refused.
    fn was_refused(&self) -> bool {
        match self {
            Self::Unreachable(_) => false,
            Self::Refused(_) | Self::Hopeless(_) => true,
        }
    }
}

/// The service for the task that sends mails.
#[derive(Clone)]
pub struct Mails {
    core: Arc<Core>,
}

impl Mails {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Whether mail is sent.
    pub fn is_open(&self) -> bool {
        self.core.mailing.is_open()
    }

    /// Returns after a mail was stored.
    pub async fn arrived(&self) {
        self.core.mailing.arrived.notified().await;
    }

    /// A batch of mails that are due, with their links. Mails that are not needed any
    /// more are removed: those of deleted invites, and those to users who have no use
    /// for them.
    pub async fn due(&self) -> Result<Vec<MailRow>> {
        let store = &self.core.store;
        let mut due = Vec::new();
        for row in rows::due(store, self.core.clock.now()).await? {
            match self.ready(&row.mail).await {
                Ok(Some(mail)) => due.push(MailRow { mail, ..row }),
                Ok(None) => rows::forget(store, &row).await?,
                // Its link cannot be stored now: it stays in the outbox, and does not
                // delay others.
                Err(Error::Store(error)) if error.is_temporary() => {
                    tracing::debug!(mail = %row.id, %error, "a mail waits for its link");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(due)
    }

    /// A mail ready to be sent; `None`: it is not needed any more.
    async fn ready(&self, mail: &Mail) -> Result<Option<Mail>> {
        links::filled(&self.core, mail).await
    }

    /// Records that the mail server accepted a mail.
    pub async fn sent(&self, row: &MailRow) -> Result<()> {
        Ok(rows::sent(&self.core.store, row).await?)
    }

    /// Records that an attempt failed. The mail is retried later, for a day.
    pub async fn not_sent(&self, row: &MailRow, failure: &SendError) -> Result<()> {
        let store = &self.core.store;
        let now = self.core.clock.now();
        let next = now.plus_seconds(wait(row.tries));
        let end = row.created_at.plus_seconds(GIVE_UP_AFTER);
        let (mail, reason) = (row.id, failure.reason());
        if matches!(failure, SendError::Hopeless(_)) || next > end {
            tracing::warn!(%mail, tries = row.tries + 1, reason, "a mail was given up");
            let mut kept = row.clone();
            kept.mail.news.forget_answers();
            rows::give_up(store, &kept, reason, failure.was_refused(), now).await?;
        } else {
            tracing::warn!(%mail, tries = row.tries + 1, reason, "a mail was not sent yet");
            rows::again(store, row, next, failure.was_refused()).await?;
        }
        Ok(())
    }

    /// The mails that were given up in the last thirty days, oldest first.
    pub async fn undelivered(&self) -> Result<Vec<Undelivered>> {
        Ok(rows::undelivered(&self.core.store).await?)
    }

    /// How many mails wait to be sent.
    pub async fn waiting(&self) -> Result<u64> {
        Ok(rows::waiting(&self.core.store).await?)
    }
}

/// Seconds until the next attempt after so many earlier ones.
pub(crate) fn wait(tries: u32) -> i64 {
    let index = usize::try_from(tries).unwrap_or(usize::MAX).min(WAITS.len() - 1);
    WAITS.get(index).copied().unwrap_or(GIVE_UP_AFTER)
}

/// A mail with this news.
pub(crate) fn to(address: &str, news: MailContent) -> Mail {
    Mail { to: address.to_owned(), news }
}

/// Mails to the administrators of an organization about something in one of its projects. `news`
/// gets the names of the organization and the project; there is none if one of them is deleted.
pub(crate) async fn to_administrators(
    store: &Store,
    organization: OrganizationId,
    project: ProjectId,
    news: impl Fn(String, String) -> MailContent,
) -> Result<Vec<Mail>> {
    let home = organizations::get(store, organization).await?;
    let project = projects::find(store, project).await?;
    let Some((home, project)) = home.zip(project) else { return Ok(Vec::new()) };
    let ids = members::ordered(store, organization).await?;
    let members = members::rows(store, organization, &ids).await?;
    let recipients = members
        .iter()
        .filter(|member| member.level >= Level::Administrator && member.user.is_active);
    let mail = |member: &MemberRow| {
        to(&member.user.email, news(home.name.clone(), project.brief.name.clone()))
    };
    Ok(recipients.map(mail).collect())
}

/// The mail that notifies a user of a change, at the address before the change.
pub(crate) fn of_change(user: &UserRow, change: UserChange, at: Timestamp) -> Mail {
    let first_name = user.first_name.clone();
    to(&user.email, MailContent::UserChanged { first_name, change, at })
}

#[cfg(test)]
mod tests;
