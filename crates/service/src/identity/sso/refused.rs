//! What administrators of a domain, and the staff of the instance, learn about refused
//! sign-ins (SSO-26, SSO-42).
//!
//! What belongs here: the audit entry, and the list of each provider of the instance. What
//! does not: why a sign-in is refused (`decide`, the protocols).

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use weir_model::Timestamp;
use weir_model::activity::{AuditAction, Subject};
use weir_model::sso::{Connection, ProviderName};
use weir_store::activity as activity_rows;
use weir_store::domains::{self as domain_rows, DomainRow};

use crate::Result;
use crate::activity::{self, About, Changes};
use crate::ctx::Ctx;
use crate::domains::{acts, has_saml};
use crate::identity::Identity;
use crate::instance::Instance;

/// Why an answer without a pending login is refused. The browser of a user who begins at the
/// provider brings one too.
const NO_PENDING_LOGIN: &str = "This browser did not begin this sign-in, has answered it \
                                already, or began it more than ten minutes ago. Sign-ins that \
                                begin at the provider are not accepted.";
/// Most reasons that are kept for a provider.
const REASONS_MAX: usize = 20;
/// Longest reason that is kept, in characters.
const REASON_MAX: usize = 500;

/// The sign-ins through a provider of the instance that were refused for one reason since the
/// start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedSignIns {
    /// Why, as a sentence for administrators, at most 500 characters.
    pub reason: String,
    /// How many there were.
    pub count: u64,
    /// When the last one was refused.
    pub last_at: Timestamp,
}

/// The newest reasons of each provider of the instance. They are in memory, because anyone
/// can cause refusals. A reason is kept once, so that many refusals for one reason do not
/// replace the others.
#[derive(Default)]
pub(in crate::identity) struct RefusalLists {
    // Locked for operations on one list. Only names of providers get a list.
    lists: Mutex<HashMap<ProviderName, Vec<RefusedSignIns>>>,
}

impl RefusalLists {
    fn keep(&self, name: ProviderName, why: &str, now: Timestamp) {
        let reason: String = why.chars().take(REASON_MAX).collect();
        let mut lists = self.lists.lock();
        let list = lists.entry(name).or_default();
        let before = list.iter().position(|kept| kept.reason == reason);
        let count = before.map_or(0, |at| list.remove(at).count);
        list.insert(0, RefusedSignIns { reason, count: count.saturating_add(1), last_at: now });
        list.truncate(REASONS_MAX);
    }

    fn of(&self, name: ProviderName) -> Vec<RefusedSignIns> {
        self.lists.lock().get(&name).cloned().unwrap_or_default()
    }
}

impl Identity {
    /// For each provider of the instance, why sign-ins were refused: the 20 newest reasons
    /// since the start, the newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound) for callers who are not staff.
    pub async fn refused_sign_ins(
        &self,
        ctx: &Ctx,
    ) -> Result<Vec<(ProviderName, Vec<RefusedSignIns>)>> {
        Instance::new(Arc::clone(&self.core)).enter(ctx).await?;
        let facts = self.core.provider_facts().await?;
        let with_list = |name| (name, self.refusal_lists.of(name));
        Ok(facts.into_iter().map(|facts| with_list(facts.name)).collect())
    }

    /// Keeps a refusal by a provider of the instance for its staff. `why` has no address.
    pub(super) fn keep_refusal(&self, connection: Connection, why: &str) {
        if let Connection::Provider(name) = connection {
            self.refusal_lists.keep(name, why, self.core.clock.now());
        }
    }

    /// Records an answer without a pending login, for those who set the connection up. For a
    /// domain, only some are recorded: anyone can cause them.
    pub(super) async fn record_stray(&self, connection: Connection) -> Result<()> {
        match connection {
            Connection::Provider(name) => {
                // Anyone can enter any name.
                let facts = self.core.provider_facts().await?;
                if facts.iter().any(|provider| provider.name == name) {
                    self.keep_refusal(connection, NO_PENDING_LOGIN);
                }
                Ok(())
            }
            Connection::Saml(domain) => {
                let row = domain_rows::get_any(&self.core.store, domain).await?;
                let Some(row) = row.filter(|row| acts(row) && has_saml(row)) else {
                    return Ok(());
                };
                if !self.may_record_stray(domain).await? {
                    return Ok(());
                }
                self.record_refusal(&row, connection, None, NO_PENDING_LOGIN).await
            }
        }
    }

    /// Records a refused sign-in for the administrators of the domain's organization.
    pub(super) async fn record_refusal(
        &self,
        domain: &DomainRow,
        connection: Connection,
        email: Option<&str>,
        why: &str,
    ) -> Result<()> {
        let about = About {
            subject: Subject::Domain,
            id: domain.id.to_string(),
            name: Some(&domain.domain),
            project: None,
        };
        let name = self.core.connection_name(connection).await?;
        let changes = Changes::none()
            .field("connection", &None, &Some(name))
            .field("email", &None, &email)
            .field("reason", &None, &Some(why));
        let now = self.core.clock.now();
        let action = AuditAction::SignInRefused;
        let entry = activity::own_entry(now, domain.organization, about, action, changes);
        Ok(activity_rows::write(&self.core.store, &[entry]).await?)
    }

    /// As [`Identity::record_refusal`], for a refusal that anyone can cause: only some of
    /// them are recorded. `why` has no text of a visitor.
    pub(super) async fn record_unproved(
        &self,
        domain: &DomainRow,
        connection: Connection,
        why: &str,
    ) -> Result<()> {
        if !self.may_record_refusal(domain.id).await? {
            return Ok(());
        }
        self.record_refusal(domain, connection, None, why).await
    }
}

#[cfg(test)]
mod tests {
    use weir_model::Timestamp;
    use weir_model::sso::ProviderName;

    use super::{REASON_MAX, REASONS_MAX, RefusalLists, RefusedSignIns};

    const GITHUB: ProviderName = ProviderName::GITHUB;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::EPOCH.plus_seconds(seconds)
    }

    #[test]
    fn a_reason_is_kept_once_with_its_count_and_the_newest_is_first() {
        let lists = RefusalLists::default();
        lists.keep(GITHUB, "first", at(1));
        lists.keep(GITHUB, "second", at(2));
        lists.keep(GITHUB, "first", at(3));
        lists.keep(ProviderName::GITLAB, "third", at(4));
        let kept = |reason: &str, count, last_at| RefusedSignIns {
            reason: reason.to_owned(),
            count,
            last_at,
        };
        assert_eq!(lists.of(GITHUB), [kept("first", 2, at(3)), kept("second", 1, at(2))]);
        assert_eq!(lists.of(ProviderName::GITLAB), [kept("third", 1, at(4))]);
        assert!(lists.of(ProviderName::GOOGLE).is_empty());
    }

    #[test]
    fn lists_and_reasons_have_bounds() {
        let lists = RefusalLists::default();
        for number in 0..50 {
            let reason = format!("{number} {}", "é".repeat(2 * REASON_MAX));
            lists.keep(GITHUB, &reason, at(number));
        }
        let kept = lists.of(GITHUB);
        assert_eq!(kept.len(), REASONS_MAX);
        assert!(kept[0].reason.starts_with("49 "));
        assert!(kept.iter().all(|one| one.reason.chars().count() == REASON_MAX));
    }
}
