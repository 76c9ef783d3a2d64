//! The instance as a whole, for its staff.
//!
//! What belongs here: who may see it, and counts from the store. What does not: the
//! process and its files (the server).

use std::sync::Arc;

use weir_model::scopes::Scope;
use weir_store::users;

pub use weir_store::events::BucketState;
pub use weir_store::instance::Counts;

use crate::ctx::{Actor, Ctx};
use crate::error::{Error, NOT_FOUND};
use crate::{Core, Result, policy};

/// The files of stored events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFiles {
    /// How often a file was found damaged or missing since the start.
    pub damage: u64,
    /// The bucket that the files are in, if the setting names one.
    pub bucket: Option<BucketState>,
}

/// The service for the instance.
#[derive(Clone)]
pub struct Instance {
    core: Arc<Core>,
}

impl Instance {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Whether the caller is a user who may see the instance.
    pub async fn is_staff(&self, ctx: &Ctx) -> Result<bool> {
        if policy::person_only(ctx).is_err() {
            return Ok(false);
        }
        let user = users::get(&self.core.store, ctx.user()).await?;
        Ok(user.is_some_and(|user| user.is_staff))
    }

    /// Refuses callers who are not staff.
    ///
    /// # Errors
    /// [`Error::NotFound`] for all other callers.
    pub async fn enter(&self, ctx: &Ctx) -> Result<()> {
        if self.is_staff(ctx).await? { Ok(()) } else { Err(Error::NotFound(NOT_FOUND)) }
    }

    /// Refuses callers who do not administer the instance: users who are not staff, and keys
    /// that are limited to organizations or projects or lack the scope `*`.
    ///
    /// # Errors
    /// [`Error::MissingScope`] for a key of staff without that scope, [`Error::NotFound`] for
    /// all others.
    pub async fn administer(&self, ctx: &Ctx) -> Result<()> {
        administer(&self.core, ctx).await
    }

    /// The number of records of each kind, over all organizations.
    ///
    /// # Errors
    /// [`Error::NotFound`] for callers who are not staff.
    pub async fn counts(&self, ctx: &Ctx) -> Result<Counts> {
        self.enter(ctx).await?;
        Ok(weir_store::instance::counts(&self.core.store).await?)
    }

    /// The state of the files of stored events.
    ///
    /// # Errors
    /// [`Error::NotFound`] for callers who are not staff.
    pub async fn event_files(&self, ctx: &Ctx) -> Result<EventFiles> {
        self.enter(ctx).await?;
        let store = &self.core.store;
        Ok(EventFiles { damage: store.segment_damage(), bucket: store.segment_bucket() })
    }
}

/// Refuses callers who do not administer the instance. No scope stands for the instance, so
/// a key needs all of them: one with `organization:write` was made for the organizations of
/// its user.
///
/// # Errors
/// [`Error::NotFound`], [`Error::MissingScope`].
pub(crate) async fn administer(core: &Core, ctx: &Ctx) -> Result<()> {
    let is_limited = match &ctx.actor {
        Actor::Session { .. } => false,
        Actor::Key { key, .. } => {
            !key.scoped_teams.is_empty() || !key.scoped_organizations.is_empty()
        }
    };
    let user = users::get(&core.store, ctx.user()).await?;
    if is_limited || !user.is_some_and(|user| user.is_staff) {
        return Err(Error::NotFound(NOT_FOUND));
    }
    ctx.require(Scope::All)
}

#[cfg(test)]
mod tests {
    use weir_model::ProjectId;
    use weir_model::keys::PersonalKeyInput;
    use weir_model::scopes::{Scope, ScopeObject};

    use super::EventFiles;
    use crate::Error;
    use crate::test_support::{ada, key, key_input, organization, outsider, set_up};

    #[tokio::test]
    async fn staff_sees_how_much_there_is() {
        let services = set_up().await;
        let ada = ada(&services).await;
        organization(&services, &ada, "Second House").await;
        let counts = services.instance.counts(&ada).await.unwrap();
        assert_eq!((counts.users, counts.organizations, counts.projects), (1, 2, 2));
        assert_eq!(counts.events, 0);
        let files = services.instance.event_files(&ada).await.unwrap();
        assert_eq!(files, EventFiles { damage: 0, bucket: None });

        let eve = outsider(&services, "eve").await;
        let key = key(&services, &ada, key_input()).await;
        for caller in [eve, key] {
            let refused = services.instance.counts(&caller).await;
            assert!(matches!(refused, Err(Error::NotFound(_))));
            let refused = services.instance.event_files(&caller).await;
            assert!(matches!(refused, Err(Error::NotFound(_))));
            let refused = services.instance.enter(&caller).await;
            assert!(matches!(refused, Err(Error::NotFound(_))));
        }
    }

    #[tokio::test]
    async fn staff_administers_the_instance_also_with_a_key_without_limits() {
        let services = set_up().await;
        let ada = ada(&services).await;
        let home = services.organizations.enter(&ada, "@current").await.unwrap().organization;
        let eve = outsider(&services, "eve").await;
        let whole = key(&services, &ada, key_input()).await;
        for caller in [&ada, &whole] {
            services.instance.administer(caller).await.unwrap();
        }
        let limited = PersonalKeyInput { scoped_organizations: vec![home], ..key_input() };
        let limited = key(&services, &ada, limited).await;
        let project = PersonalKeyInput { scoped_teams: vec![ProjectId(1)], ..key_input() };
        for caller in [eve, limited, key(&services, &ada, project).await] {
            let refused = services.instance.administer(&caller).await;
            assert!(matches!(refused, Err(Error::NotFound(_))));
        }
        let scopes = vec![Scope::write(ScopeObject::Organization)];
        let narrow = key(&services, &ada, PersonalKeyInput { scopes, ..key_input() }).await;
        let refused = services.instance.administer(&narrow).await;
        assert!(matches!(refused, Err(Error::MissingScope(Scope::All))));
    }
}
