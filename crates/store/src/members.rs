//! Members of organizations: the order of their list, their levels, and leaving.
//!
//! What belongs here: statements about `membership`, and about `org_member`, which keeps
//! members in the order in which they joined. What does not: who may change whom
//! (`weir-service`), and joining together with another change (`organizations`,
//! `invites`), which uses [`write_membership`].
//!
//! | table | id | holds |
//! |---|---|---|
//! | `membership` | `[organization, user]` | level and times |
//! | `user_membership` | `[user, organization]` | nothing |
//! | `org_member` | `[organization, joined_at, user]` | nothing; without deactivated users and users that are no persons |

use weir_model::activity::Entry;
use weir_model::organizations::Level;
use weir_model::{MembershipId, OrganizationId, Timestamp, UserId};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::lists::{self, Order};
use crate::organizations::{StoredMembership, to_level};
use crate::users::UserRow;
use crate::{Error, Result, Store};

/// A member as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberRow {
    /// Id of the membership.
    pub id: MembershipId,
    /// The user who is a member.
    pub user: UserRow,
    /// Level of the member.
    pub level: Level,
    /// When the user joined.
    pub joined_at: Timestamp,
    /// When the membership was last changed.
    pub updated_at: Timestamp,
}

/// The result of a change of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// The change was made, or the user is not a member any more.
    Yes,
    /// The level of the actor or of the member has changed since the decision. Nothing
    /// was written.
    Stale,
}

/// A decision to change a member: the levels that it is based on, and its audit entries.
#[derive(Debug, Clone)]
pub struct Decision<'a> {
    /// The organization of both users.
    pub organization: OrganizationId,
    /// The user who makes the change.
    pub actor: UserId,
    /// The level of the actor as it was read.
    pub actor_level: Level,
    /// The member who is changed.
    pub user: UserId,
    /// The level of the member before the change.
    pub level: Level,
    /// The audit entries of the change.
    pub activities: &'a [Entry],
}

/// Makes `$user` a member of an organization with the record `$membership`. Used by the
/// transactions that do this; the argument is the text of the organization's id.
/// Idempotent.
macro_rules! write_membership {
    ($organization:literal) => {
        concat!(
            "UPSERT type::record('membership', [",
            $organization,
            ", $user]) CONTENT $membership RETURN NONE;
             UPSERT type::record('user_membership', [$user, ",
            $organization,
            "]) CONTENT {} RETURN NONE;
             LET $is_listed = (SELECT VALUE is_active AND !string::ends_with(email, '@posthogbot.user')
                               FROM ONLY type::record('user', $user));
             IF $is_listed != false {
                 UPSERT type::record('org_member', [",
            $organization,
            ", $membership.joined_at, $user]) CONTENT {} RETURN NONE;
             };"
        )
    };
}
pub(crate) use write_membership;

/// Removes the membership of `$user` in `$organization`. Used by the transactions that do
/// this. Idempotent.
macro_rules! remove_membership {
    () => {
        "LET $joined_at = (SELECT VALUE joined_at
                           FROM ONLY type::record('membership', [$organization, $user]));
         IF $joined_at != NONE {
             DELETE type::record('org_member', [$organization, $joined_at, $user]) RETURN NONE;
         };
         DELETE type::record('membership', [$organization, $user]) RETURN NONE;
         DELETE type::record('user_membership', [$user, $organization]) RETURN NONE;
         UPDATE type::record('user', $user)
             SET current_organization = NONE, current_project = NONE
             WHERE current_organization = $organization RETURN NONE;"
    };
}
pub(crate) use remove_membership;

/// Ends all sessions of `$user` if they belong to no organization any more (SEC-6). Not
/// for `$actor`, who makes the change and knows of it. Comes after [`remove_membership`].
/// Writing the user's record makes this conflict with transactions that open a session.
/// Idempotent.
macro_rules! sign_out_of_none {
    () => {
        concat!(
            "LET $homes = (SELECT VALUE 1 FROM user_membership:[$user]..=[$user, ..]);
             IF $homes = [] AND $user != $actor {
                 UPDATE type::record('user', $user)
                     SET sessions_made = (sessions_made ?? 0) + 1 RETURN NONE;",
            crate::sessions::end_sessions!(),
            "};"
        )
    };
}
pub(crate) use sign_out_of_none;

const ORDERED: Order = Order { name: "members ordered", table: "org_member", part: 2 };

/// The listed members: ids only, in the order in which they joined.
pub async fn ordered(store: &Store, organization: OrganizationId) -> Result<Vec<UserId>> {
    lists::ordered(store, ORDERED, organization.0, UserId).await
}

/// These users as members, in the order of `users`. Users who are not members are
/// skipped.
pub async fn rows(
    store: &Store,
    organization: OrganizationId,
    users: &[UserId],
) -> Result<Vec<MemberRow>> {
    let memberships = users.iter().map(|user| vec![organization.0, user.0]).collect();
    let memberships = lists::records::<StoredMembership>(store, "membership", memberships).await?;
    let ids = users.iter().map(|user| user.0).collect();
    let users = lists::records::<UserRow>(store, "user", ids).await?;
    let mut found = Vec::new();
    for joined in memberships.into_iter().zip(users) {
        if let (Some(membership), Some(user)) = joined {
            found.push(MemberRow {
                id: MembershipId(membership.uuid),
                user,
                level: to_level("members rows", membership.level)?,
                joined_at: Timestamp::from_micros(membership.joined_at),
                updated_at: Timestamp::from_micros(membership.updated_at),
            });
        }
    }
    Ok(found)
}

/// Begins the transactions that change a member. The organization's record is written, so
/// that two of them conflict. Otherwise two owners could demote each other concurrently,
/// each seeing the other's old level. The second transaction runs again and finds that a
/// level has changed.
macro_rules! decided {
    () => {
        "UPDATE type::record('organization', $organization)
             SET additions = (additions ?? 0) + 1 RETURN NONE;
         LET $actor_now = (SELECT VALUE level
                           FROM ONLY type::record('membership', [$organization, $actor]));
         LET $level_now = (SELECT VALUE level
                           FROM ONLY type::record('membership', [$organization, $user]));"
    };
}

const SET_LEVEL: Statement = Statement::write(
    "members set level",
    concat!(
        "BEGIN;",
        decided!(),
        "IF $level_now != NONE {
             IF $actor_now != $actor_level OR ($level_now != $level_before AND $level_now != $level) {
                 THROW 'stale'
             };
             UPDATE type::record('membership', [$organization, $user])
                 SET level = $level, updated_at = $now RETURN NONE;",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Changes the level of a member, if the levels of actor and member are still those of
/// the decision.
pub async fn set_level(
    store: &Store,
    decision: Decision<'_>,
    level: Level,
    now: Timestamp,
) -> Result<Changed> {
    let vars = bind! {
        organization: decision.organization.0,
        actor: decision.actor.0,
        actor_level: i64::from(decision.actor_level),
        user: decision.user.0,
        level_before: i64::from(decision.level),
        level: i64::from(level),
        now: now.micros(),
    };
    changed(activity::change(store, SET_LEVEL, vars, decision.activities).await)
}

const REMOVE: Statement = Statement::write(
    "members remove",
    concat!(
        "BEGIN;",
        decided!(),
        "IF $level_now != NONE {
             IF $actor_now != $actor_level OR $level_now != $level_before { THROW 'stale' };",
        remove_membership!(),
        sign_out_of_none!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Removes a member from the organization, if the levels of actor and member are still
/// those of the decision. Clears the user's current organization and project there. A
/// user who was removed from their last organization by another user is signed out
/// everywhere (SEC-6).
pub async fn remove(store: &Store, decision: Decision<'_>) -> Result<Changed> {
    let vars = bind! {
        organization: decision.organization.0,
        actor: decision.actor.0,
        actor_level: i64::from(decision.actor_level),
        user: decision.user.0,
        level_before: i64::from(decision.level),
    };
    changed(activity::change(store, REMOVE, vars, decision.activities).await)
}

fn changed<T>(outcome: Result<T>) -> Result<Changed> {
    match outcome {
        Ok(_) => Ok(Changed::Yes),
        Err(Error::Refused { .. }) => Ok(Changed::Stale),
        Err(error) => Err(error),
    }
}

const SET_ACTIVE: Statement = Statement::write(
    "members set active",
    concat!(
        "BEGIN;
     UPDATE type::record('user', $user)
         SET is_active = $is_active, scim_closed = NONE, updated_at = $now RETURN NONE;
     FOR $organization IN (SELECT VALUE record::id(id)[1]
                           FROM user_membership:[$user]..=[$user, ..]) {
         LET $joined_at = (SELECT VALUE joined_at
                           FROM ONLY type::record('membership', [$organization, $user]));
         IF $is_active {
             UPSERT type::record('org_member', [$organization, $joined_at, $user])
                 CONTENT {} RETURN NONE;
         } ELSE {
             DELETE type::record('org_member', [$organization, $joined_at, $user]) RETURN NONE;
         };
     };",
        write_activities!(),
        "COMMIT;"
    ),
);

/// Activates or deactivates a user. A deactivated user is not listed as a member, and is
/// listed again after activation.
pub async fn set_active(
    store: &Store,
    user: UserId,
    is_active: bool,
    activities: &[Entry],
    now: Timestamp,
) -> Result<()> {
    let vars = bind! { user: user.0, is_active: is_active, now: now.micros() };
    activity::change(store, SET_ACTIVE, vars, activities).await.map(drop)
}
