//! Members of an organization: the list, levels, leaving (API-31, API-32).
//!
//! What belongs here: who may change whom, and the order of the refusals. What does
//! not: becoming a member (`invites`).

mod preview;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::errors::FieldError;
use weir_model::members::{
    BOT_ADDRESSES, Member, MemberKey, MemberKeys, MemberOrder, MemberPatch, MemberQuery,
};
use weir_model::organizations::Level;
use weir_model::pagination::{Page, Paged};
use weir_model::sso::Connection;
use weir_model::users::User;
use weir_model::{OrganizationId, ProjectId, UserId};
use weir_store::keys::{self as key_rows, KeyRow};
use weir_store::members::{self as rows, Changed, Decision, MemberRow};
use weir_store::sso::identities;
use weir_store::users::UserRow;
use weir_store::{passkeys, projects, users as user_rows};

use crate::activity::{self, About, Changes};
use crate::ctx::OrgCtx;
use crate::error::{Error, NOT_FOUND};
use crate::identity::emails;
use crate::policy::{self, Action};
use crate::{Core, Result, users};

pub use preview::{AllowedChanges, Loss};

/// The message for a member who wants to change another member.
pub const NOT_AN_ADMIN: &str = "You can only edit others if you are an admin.";
/// The message for an administrator who wants to change an owner.
pub const TARGET_ABOVE: &str = "You can only edit others with level lower or equal to you.";
/// The message for a member who wants to change their own level.
pub const OWN_LEVEL: &str = "You can't change your own access level.";
/// The message for an administrator who wants to make an owner.
pub const OWNERS_MAKE_OWNERS: &str =
    "You can only make another member owner if you're this organization's owner.";
/// The message for giving a member a higher level than one's own.
pub const LEVEL_ABOVE: &str =
    "You can only change access level of others to lower or equal to your current one.";
/// The message for removing an owner.
pub const OWNER_STAYS: &str = "Cannot leave the organization as its owner!";

/// A key that was used within this many seconds counts as active: seven days.
const ACTIVE_SECONDS: i64 = 7 * 24 * 60 * 60;
/// Most owners that are notified of one change.
const NOTIFIED_MAX: usize = 50;
/// How often a change is checked again after concurrent changes of the same members.
const TRIES: usize = 8;

/// The service for members.
#[derive(Clone)]
pub struct Members {
    core: Arc<Core>,
}

/// A member whom the actor may change, as stored at the time of the check.
#[derive(Debug, Clone)]
pub struct Changeable(MemberRow);

impl Changeable {
    /// First name of the member.
    pub fn name(&self) -> &str {
        &self.0.user.first_name
    }

    /// Level of the member.
    pub fn level(&self) -> Level {
        self.0.level
    }
}

impl Members {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The members of the organization. Users who are not active and bots are skipped.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn list(
        &self,
        org: &OrgCtx,
        query: &MemberQuery,
        page: Page,
    ) -> Result<Paged<Member>> {
        policy::check(org, Action::ReadMembers)?;
        let store = &self.core.store;
        let mut ids = match &query.email {
            Some(email) => self.with_address(email).await?,
            None => rows::ordered(store, org.organization).await?,
        };
        if query.order == MemberOrder::NewestFirst {
            ids.reverse();
        }
        if query.is_all() {
            let count = ids.len() as u64;
            let found = rows::rows(store, org.organization, &page.slice(ids)).await?;
            return Ok(Paged { count, results: all_shown(&self.core, &found).await? });
        }
        // The search is about fields of the members, so all of them are read.
        let found = rows::rows(store, org.organization, &ids).await?.into_iter();
        let wanted: Vec<MemberRow> =
            found.filter(|row| is_listed(&row.user) && is_wanted(row, query)).collect();
        let Paged { count, results } = page.of(wanted);
        Ok(Paged { count, results: all_shown(&self.core, &results).await? })
    }

    /// How each of these members signs in, in words, in the order of `users`. A password
    /// counts although a domain may forbid it.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn sign_in_methods(
        &self,
        org: &OrgCtx,
        users: &[UserId],
    ) -> Result<Vec<Vec<String>>> {
        policy::check(org, Action::ReadMembers)?;
        let store = &self.core.store;
        let found = rows::rows(store, org.organization, users).await?;
        let ids: Vec<UserId> = found.iter().map(|row| row.user.id).collect();
        let linked = identities::of_users(store, &ids).await?;
        let holders = passkeys::holders(store, &ids).await?;
        let labels = self.core.connection_names().await?;
        let methods = |user: &UserId| {
            let row = found.iter().find(|row| row.user.id == *user);
            let has_password = row.is_some_and(|row| row.user.password.is_some());
            let words = [(has_password, "Password"), (holders.contains(user), "Passkey")];
            let words = words.into_iter().filter(|(has, _)| *has).map(|(_, word)| word.to_owned());
            let own = linked.iter().filter(|identity| identity.user == *user);
            let own = own.filter_map(|identity| Connection::parse(&identity.connection));
            let names = own.map(|connection| labels.of(connection));
            let mut methods: Vec<String> = words.chain(names).collect();
            methods.dedup();
            methods
        };
        Ok(users.iter().map(methods).collect())
    }

    async fn shown(&self, row: &MemberRow) -> Result<Member> {
        let shown = all_shown(&self.core, std::slice::from_ref(row)).await?.pop();
        shown.ok_or_else(|| Error::Internal("a member is not shown".to_owned()))
    }

    async fn with_address(&self, email: &str) -> Result<Vec<UserId>> {
        let found = user_rows::by_email(&self.core.store, &emails::normalise(email)).await?;
        Ok(found.map(|user| user.id).into_iter().collect())
    }

    /// Proves that there is this member (a user's uuid or `@me`) and that the actor may
    /// change them.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::SignInAgain`]; [`Error::NotFound`];
    /// [`Error::Forbidden`] when the actor is not an administrator or the member has a
    /// higher level.
    pub async fn changeable(&self, org: &OrgCtx, user: &str) -> Result<Changeable> {
        policy::check(org, Action::ChangeMembers)?;
        policy::recent_if_person(&org.ctx)?;
        let row = self.find(org, user).await?;
        may_change(org, row.user.id, row.level)?;
        Ok(Changeable(row))
    }

    /// Gives a member another level.
    ///
    /// # Errors
    /// [`Error::Forbidden`] with the first rule of API-31 that forbids it;
    /// [`Error::NotFound`] when the member has left at the same time.
    pub async fn update(
        &self,
        org: &OrgCtx,
        changeable: Changeable,
        patch: MemberPatch,
    ) -> Result<Member> {
        let Changeable(mut row) = changeable;
        let mut org = org.clone();
        let Some(level) = patch.level else { return self.shown(&row).await };
        for _ in 0..TRIES {
            may_change(&org, row.user.id, row.level)?;
            may_give(&org, row.user.id, level)?;
            if level == row.level {
                return self.shown(&row).await;
            }
            let changes = Changes::none().field("level", &row.level, &level);
            let activities = [entry(&org, &row, AuditAction::Updated, changes)];
            let decision = decision(&org, &row, &activities);
            let now = org.ctx.now;
            let outcome = rows::set_level(&self.core.store, decision, level, now).await?;
            if outcome == Changed::Yes {
                return self.shown(&self.row(org.organization, row.user.id).await?).await;
            }
            (org, row) = self.again(org, &row).await?;
        }
        Err(Error::Unavailable("others are changing the same members"))
    }

    /// Removes a member from the organization. Members may remove themselves, but an
    /// owner cannot be removed. The user's current project there is forgotten; the user
    /// remains.
    ///
    /// # Errors
    /// [`Error::Forbidden`]; [`Error::Invalid`] for an owner.
    pub async fn remove(&self, org: &OrgCtx, changeable: Changeable) -> Result<()> {
        let Changeable(mut row) = changeable;
        let mut org = org.clone();
        for _ in 0..TRIES {
            may_change(&org, row.user.id, row.level)?;
            if row.level == Level::Owner {
                return Err(FieldError::body("invalid_input", OWNER_STAYS).into());
            }
            let activities = [entry(&org, &row, AuditAction::Deleted, Changes::none())];
            let decision = decision(&org, &row, &activities);
            if rows::remove(&self.core.store, decision).await? == Changed::Yes {
                return Ok(());
            }
            (org, row) = self.again(org, &row).await?;
        }
        Err(Error::Unavailable("others are changing the same members"))
    }

    /// The personal API keys of a member that reach this organization.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::NotFound`].
    pub async fn keys(&self, org: &OrgCtx, user: &str) -> Result<MemberKeys> {
        policy::check(org, Action::ReadMembers)?;
        let store = &self.core.store;
        let row = self.find(org, user).await?;
        let projects = projects::ordered(store, org.organization).await?;
        let now = org.ctx.now;
        let keys: Vec<MemberKey> = key_rows::of_user(store, row.user.id)
            .await?
            .into_iter()
            .filter(|row| works_here(org, &projects, row))
            .map(|row| MemberKey { name: row.key.label, last_used_at: row.key.last_used_at })
            .collect();
        let since = now.plus_seconds(-ACTIVE_SECONDS);
        let is_active = |key: &MemberKey| key.last_used_at.is_some_and(|used| used >= since);
        Ok(MemberKeys {
            has_keys: !keys.is_empty(),
            has_keys_active_last_week: keys.iter().any(is_active),
            keys,
        })
    }

    async fn find(&self, org: &OrgCtx, user: &str) -> Result<MemberRow> {
        let user = if user == "@me" { Some(org.ctx.user()) } else { parse_id(user) };
        self.row(org.organization, user.ok_or(Error::NotFound(NOT_FOUND))?).await
    }

    async fn row(&self, organization: OrganizationId, user: UserId) -> Result<MemberRow> {
        let found = rows::rows(&self.core.store, organization, &[user]).await?.into_iter().next();
        found.filter(|row| is_listed(&row.user)).ok_or(Error::NotFound(NOT_FOUND))
    }

    /// Actor and member as they are now, after a concurrent change of one of them.
    async fn again(&self, org: OrgCtx, row: &MemberRow) -> Result<(OrgCtx, MemberRow)> {
        let actor = self.row(org.organization, org.ctx.user()).await?;
        let row = self.row(org.organization, row.user.id).await?;
        Ok((OrgCtx { level: actor.level, ..org }, row))
    }
}

fn decision<'a>(org: &OrgCtx, row: &MemberRow, activities: &'a [Entry]) -> Decision<'a> {
    Decision {
        organization: org.organization,
        actor: org.ctx.user(),
        actor_level: org.level,
        user: row.user.id,
        level: row.level,
        activities,
    }
}

/// The rules that do not depend on the new level, for a user with this level.
fn may_change(org: &OrgCtx, user: UserId, present: Level) -> Result<()> {
    let is_self = user == org.ctx.user();
    if !is_self && org.level < Level::Administrator {
        return Err(Error::Forbidden(NOT_AN_ADMIN.to_owned()));
    }
    if !is_self && present > org.level {
        return Err(Error::Forbidden(TARGET_ABOVE.to_owned()));
    }
    Ok(())
}

/// The rules about the new level.
fn may_give(org: &OrgCtx, user: UserId, level: Level) -> Result<()> {
    let against = if user == org.ctx.user() {
        OWN_LEVEL
    } else if level == Level::Owner && org.level < Level::Owner {
        OWNERS_MAKE_OWNERS
    } else if level > org.level {
        LEVEL_ABOVE
    } else {
        return Ok(());
    };
    Err(Error::Forbidden(against.to_owned()))
}

/// Whether a key still works and reaches the organization with these projects.
fn works_here(org: &OrgCtx, projects: &[ProjectId], row: &KeyRow) -> bool {
    let (organizations, teams) = (&row.key.scoped_organizations, &row.key.scoped_teams);
    (organizations.is_empty() || organizations.contains(&org.organization))
        && (teams.is_empty() || teams.iter().any(|team| projects.contains(team)))
        && row.key.expires_at.is_none_or(|end| end > org.ctx.now)
}

/// These users as other resources embed them; those who are not members are missing.
pub(crate) async fn users_by_id(
    core: &Core,
    organization: OrganizationId,
    ids: BTreeSet<UserId>,
) -> Result<BTreeMap<UserId, User>> {
    let ids: Vec<UserId> = ids.into_iter().collect();
    let found = rows::rows(&core.store, organization, &ids).await?;
    Ok(found.iter().map(|row| (row.user.id, users::shown(&row.user))).collect())
}

/// Whether a user is shown as a member.
pub(crate) fn is_listed(user: &UserRow) -> bool {
    user.is_active && !user.email.ends_with(BOT_ADDRESSES)
}

/// The owners who get the mails to the owners of an organization.
pub(crate) async fn notified_owners(
    core: &Core,
    organization: OrganizationId,
) -> Result<Vec<UserRow>> {
    let all = rows::ordered(&core.store, organization).await?;
    let all = rows::rows(&core.store, organization, &all).await?.into_iter();
    let owners = all.filter(|row| row.level == Level::Owner && row.user.is_active);
    Ok(owners.take(NOTIFIED_MAX).map(|row| row.user).collect())
}

fn is_wanted(row: &MemberRow, query: &MemberQuery) -> bool {
    let contains = |text: &str| {
        let user = &row.user;
        let text = text.to_lowercase();
        [&user.first_name, &user.last_name, &user.email]
            .iter()
            .any(|part| part.to_lowercase().contains(&text))
    };
    query.search.as_deref().is_none_or(contains)
        && query.updated_after.is_none_or(|time| row.updated_at > time)
}

/// The id in a path. Only its usual written form is accepted, as for organizations.
fn parse_id(text: &str) -> Option<UserId> {
    let id: UserId = text.parse().ok()?;
    text.eq_ignore_ascii_case(&id.to_string()).then_some(id)
}

fn entry(org: &OrgCtx, row: &MemberRow, action: AuditAction, changes: Changes) -> Entry {
    let about = About {
        subject: Subject::Member,
        id: row.id.to_string(),
        name: Some(&row.user.email),
        project: None,
    };
    activity::entry(&org.ctx, org.organization, about, action, changes)
}

/// Members as they are shown.
pub(crate) async fn all_shown(core: &Core, rows: &[MemberRow]) -> Result<Vec<Member>> {
    let users: Vec<UserId> = rows.iter().map(|row| row.user.id).collect();
    let linked = identities::of_users(&core.store, &users).await?;
    let is_linked = |user: UserId| linked.iter().any(|identity| identity.user == user);
    Ok(rows.iter().map(|row| shown(row, is_linked(row.user.id))).collect())
}

/// A member as the API shows it.
fn shown(row: &MemberRow, has_social_auth: bool) -> Member {
    Member {
        id: row.id,
        user: users::shown(&row.user),
        level: row.level,
        joined_at: row.joined_at,
        updated_at: row.updated_at,
        is_2fa_enabled: row.user.second_factor.is_some(),
        has_social_auth,
        last_login: row.user.last_login,
    }
}

#[cfg(test)]
mod tests;
