//! Checking verified domains again every day, and releasing claims: work of the
//! instance, without a caller (API-39).
//!
//! A domain stays verified when its record disappears. The missing record is stored and
//! shown. After seven days of failed checks the domain's rules for signing in are
//! suspended, until the record is there again.

use weir_model::activity::AuditAction;
use weir_model::domains::DomainDetails;
use weir_model::{DomainId, Timestamp};
use weir_store::domains::{self as rows, DomainRow};
use weir_store::update::lock;

use super::{Changeable, DAY_SECONDS, Domains, about, has_saml, is_suspended, lookup, notices};
use crate::Result;
use crate::activity::{self, Changes};
use crate::ctx::OrgCtx;
use crate::error::{Error, NOT_FOUND};

/// Owners are notified so many days before the last certificate expires.
const NOTICE_DAYS: [i64; 2] = [super::CERTIFICATE_SOON_DAYS, 7];

/// The maximum number of domains that one call checks. The next call checks the others.
const ROUND: usize = 100;

/// The result of releasing a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// The domain is free.
    Yes,
    /// No organization has verified it. An unverified claim reserves nothing.
    Unverified,
    /// It is verified, and the caller did not ask to release a verified one.
    Verified,
}

/// The state of a verified domain, for the audit entry.
fn state(row: &DomainRow) -> &'static str {
    match (row.failing_since, is_suspended(row)) {
        (None, _) => "found",
        (Some(_), false) => "missing",
        (Some(_), true) => "missing, rules suspended",
    }
}

impl Domains {
    /// Checks the verified domains that are due. Each has its own time of the day, and
    /// the next time is stored with it, so that a restart changes nothing.
    ///
    /// # Errors
    /// Any failure of the store; the next call continues.
    pub async fn check_again(&self) -> Result<()> {
        let store = &self.core.store;
        let due = rows::due(store, self.core.clock.now()).await?;
        for id in due.into_iter().take(ROUND) {
            if let Some(row) = rows::get_any(store, id).await? {
                self.check_one(&row).await?;
            }
        }
        Ok(())
    }

    /// Checks a domain at the request of a caller: for the proof of an unverified one,
    /// or whether the record of a verified one is still there.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the domain was deleted at the same time.
    pub async fn look(&self, org: &OrgCtx, changeable: Changeable) -> Result<DomainDetails> {
        let id = changeable.0.id;
        if changeable.0.verified_at.is_some() {
            self.check_one(&changeable.0).await?;
        } else {
            self.verify(org, changeable).await?;
        }
        let found = rows::get(&self.core.store, org.organization, id).await?;
        self.detail(found.ok_or(Error::NotFound(NOT_FOUND))?).await
    }

    async fn check_one(&self, before: &DomainRow) -> Result<()> {
        let proved = lookup::prove(&*self.lookup, &before.domain, &before.challenge).await;
        let now = self.core.clock.now();
        let change = |row: &mut DomainRow| {
            // It was changed concurrently: it is still due, or not checked at all.
            if row.revision != before.revision {
                return Ok(());
            }
            row.checked_at = Some(now);
            row.last_answer = Some(lookup::answer(&proved));
            row.due_at = Some(next(row.id, now));
            row.failing_since = match &proved {
                Ok(()) => None,
                Err(_) => Some(row.failing_since.unwrap_or(now)),
            };
            if expiring(row, now).is_some() {
                row.certificate_notified_at = Some(now);
            }
            Ok(())
        };
        let entries = |before: &DomainRow, after: &DomainRow| {
            let changes = Changes::none()
                .field("verification_failing_since", &before.failing_since, &after.failing_since)
                .field("verification_record", &state(before), &state(after));
            let of = |changes| {
                activity::own_entry(
                    now,
                    after.organization,
                    about(after),
                    AuditAction::Updated,
                    changes,
                )
            };
            (!changes.is_empty()).then(|| of(changes)).into_iter().collect()
        };
        let notice = notices::to_owners(&self.core, before.organization, None).await?;
        let mails = |before: &DomainRow, after: &DomainRow| {
            let mut mails = match (is_suspended(before), is_suspended(after)) {
                (false, true) => notice.of_suspension(after, true, now),
                (true, false) => notice.of_suspension(after, false, now),
                _ => Vec::new(),
            };
            if before.certificate_notified_at != after.certificate_notified_at
                && let Some(expires_at) = expiring(before, now)
            {
                mails.extend(notice.of_certificate(after, expires_at, now));
            }
            mails
        };
        let updated = self.update_with_mails(before.id, now, change, entries, mails).await?;
        let Some(row) = updated.stored().filter(|row| row.checked_at == Some(now)) else {
            return Ok(());
        };
        let (domain, organization) = (&row.domain, row.organization);
        if let Err(why) = &proved {
            let state = state(&row);
            tracing::warn!(domain, %organization, %why, state, "a verified domain is not proved");
        } else if before.failing_since.is_some() {
            tracing::info!(domain, %organization, "a verified domain is proved again");
        }
        Ok(())
    }

    /// Takes a domain from the organization that has verified it, for the operator, if
    /// `verified_too` is set. A claim that is not verified reserves nothing.
    pub async fn release(&self, name: &str, verified_too: bool) -> Result<Released> {
        let store = &self.core.store;
        let Some(found) = rows::by_name(store, name).await? else {
            return Ok(Released::Unverified);
        };
        let _permit = lock::<DomainRow>(store, &found.id).await;
        let Some(row) = rows::by_name(store, name).await? else { return Ok(Released::Unverified) };
        if !verified_too {
            return Ok(Released::Verified);
        }
        let now = self.core.clock.now();
        let changes = Changes::none().field("domain", &Some(&row.domain), &None);
        let audit_entry =
            activity::own_entry(now, row.organization, about(&row), AuditAction::Deleted, changes);
        let notice = notices::to_owners(&self.core, row.organization, None).await?;
        let mails = self.core.mailing.rows(now, notice.of_removal(&row, now));
        rows::delete(store, row.organization, row.id, &mails, &[audit_entry]).await?;
        Ok(Released::Yes)
    }
}

/// When the last certificate of a domain's SAML provider expires, if owners are to be
/// notified of that now.
fn expiring(row: &DomainRow, now: Timestamp) -> Option<Timestamp> {
    let last = row.certificate_expires_at.max(row.next_certificate_expires_at)?;
    let is_due = |days: i64| {
        let from = last.plus_seconds(-days * DAY_SECONDS);
        from <= now && row.certificate_notified_at.is_none_or(|notified| notified < from)
    };
    (has_saml(row) && now < last && NOTICE_DAYS.into_iter().any(is_due)).then_some(last)
}

/// The next check of a domain after this time. The id gives the time of the day, so
/// that the checks of an instance are spread over the day.
pub(super) fn next(domain: DomainId, now: Timestamp) -> Timestamp {
    let day = DAY_SECONDS * 1_000_000;
    // The end of an id is random.
    let own = i64::try_from(domain.0.as_u128() % (DAY_SECONDS as u128)).unwrap_or(0) * 1_000_000;
    let today = now.micros().div_euclid(day) * day + own;
    Timestamp::from_micros(if today > now.micros() { today } else { today + day })
}
