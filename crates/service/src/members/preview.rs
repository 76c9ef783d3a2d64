//! The effects of a change of members, before it is made, for pages that show them next
//! to their controls.

use weir_model::UserId;
use weir_model::members::{Member, MemberQuery};
use weir_model::organizations::Level;
use weir_model::pagination::{MAX_LIMIT, Page};
use weir_store::{keys, projects};

use super::{Members, OWNER_STAYS, may_change, may_give, works_here};
use crate::Result;
use crate::ctx::OrgCtx;
use crate::error::Error;
use crate::policy::{self, Action};

/// The changes that the actor may make to a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedChanges {
    /// The levels that the actor may give, or why none.
    pub levels: Result<Vec<Level>, String>,
    /// Why the actor is not allowed to remove the member; `None`: the actor is allowed
    /// to.
    pub stays: Option<String>,
}

/// The losses of a user who is removed from the organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The user who would be removed.
    pub user: UserId,
    /// The labels of their personal keys that no longer reach the organization.
    pub keys: Vec<String>,
}

impl Members {
    /// The actor as a member.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::NotFound`] for an actor who is not a member
    /// any more.
    pub async fn own(&self, org: &OrgCtx) -> Result<Member> {
        policy::check(org, Action::ReadMembers)?;
        self.shown(&self.row(org.organization, org.ctx.user()).await?).await
    }

    /// The changes that the actor may make to a member.
    pub fn leeway(&self, org: &OrgCtx, member: &Member) -> AllowedChanges {
        let user = member.user.uuid;
        if let Err(Error::Forbidden(why)) = may_change(org, user, member.level) {
            return AllowedChanges { levels: Err(why.clone()), stays: Some(why) };
        }
        let all = [Level::Member, Level::Administrator, Level::Owner];
        let given = all.into_iter().filter(|level| may_give(org, user, *level).is_ok()).collect();
        // If the actor could give the present level, the actor may also give other
        // levels.
        let levels = match may_give(org, user, member.level) {
            Err(Error::Forbidden(why)) => Err(why),
            _ => Ok(given),
        };
        let stays = (member.level == Level::Owner).then(|| OWNER_STAYS.to_owned());
        AllowedChanges { levels, stays }
    }

    /// The losses of these users if they are removed, in the same order.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn losses(&self, org: &OrgCtx, users: &[UserId]) -> Result<Vec<Loss>> {
        policy::check(org, Action::ReadMembers)?;
        let store = &self.core.store;
        let projects = projects::ordered(store, org.organization).await?;
        let mut losses = Vec::with_capacity(users.len());
        for user in users {
            let found = keys::of_user(store, *user).await?.into_iter();
            let keys = found.filter(|row| works_here(org, &projects, row));
            losses.push(Loss { user: *user, keys: keys.map(|row| row.key.label).collect() });
        }
        Ok(losses)
    }

    /// The members who could not enter the organization if it required a second factor:
    /// those who have none.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn without_second_factor(&self, org: &OrgCtx) -> Result<Vec<Member>> {
        let mut without = Vec::new();
        let mut page = Page { limit: MAX_LIMIT, offset: 0 };
        loop {
            let found = self.list(org, &MemberQuery::default(), page).await?;
            without.extend(found.results.into_iter().filter(|member| !member.is_2fa_enabled));
            page.offset += page.limit;
            if page.offset >= found.count {
                return Ok(without);
            }
        }
    }
}
