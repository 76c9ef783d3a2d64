//! Mails to owners of an organization that is near a limit, or beyond it (API-57).
//!
//! What belongs here: which share of a limit is worth a mail, and that there is one mail
//! about it in a month. What does not: the texts (`weir-mail`).

use weir_model::OrganizationId;
use weir_model::limits::{Limit, LimitName, WARNED_AT};
use weir_model::mail::MailContent;
use weir_store::limits::{self as rows, LimitWarning};
use weir_store::organizations;
use weir_store::users::UserRow;

use super::Limits;
use crate::{Result, mail, members};

/// The least share that is worth a mail, in percent.
const LEAST: u64 = WARNED_AT[WARNED_AT.len() - 1];

impl Limits {
    /// Mails owners of organizations that are near a limit of events: background work of
    /// the instance. It reads nothing while no organization is.
    ///
    /// # Errors
    /// When the store cannot be read or written; the next call continues.
    pub async fn warn_events(&self) -> Result<()> {
        let mut outcome = Ok(());
        for (organization, name, limit, used) in self.limiter().near(LEAST) {
            // A failure of one must not delay the others.
            if let Err(error) = self.warn(organization, name, limit, used).await {
                outcome = Err(error);
            }
        }
        outcome
    }

    /// Mails the owners of an organization, unless they got a mail about the same this
    /// month.
    pub(super) async fn warn(
        &self,
        organization: OrganizationId,
        name: LimitName,
        limit: Limit,
        used: u64,
    ) -> Result<()> {
        let Some(percent) = WARNED_AT.into_iter().find(|share| limit.percent(used) >= *share)
        else {
            return Ok(());
        };
        let month = self.limiter().month();
        let warning = LimitWarning { organization, month, limit: name, most: limit.most, percent };
        let (core, is_open) = (&self.core, self.core.mailing.is_open());
        if !is_open || self.sent.lock().contains(&warning) {
            return Ok(());
        }
        let Some(home) = organizations::get(&core.store, organization).await? else {
            return Ok(());
        };
        let news = |owner: &UserRow| MailContent::LimitReached {
            first_name: owner.first_name.clone(),
            organization: home.name.clone(),
            limit: name,
            percent,
            used,
            most: limit.most,
            action: limit.action,
            path: format!("/organizations/{organization}#limits"),
        };
        let owners = members::notified_owners(core, organization).await?;
        let mails = owners.iter().map(|owner| mail::to(&owner.email, news(owner)));
        let mails = core.mailing.rows(core.clock.now(), mails);
        if rows::warn(&core.store, warning, &mails).await? && !mails.is_empty() {
            core.mailing.wake();
        }
        let mut sent = self.sent.lock();
        sent.retain(|other| other.month == month);
        sent.insert(warning);
        Ok(())
    }
}
