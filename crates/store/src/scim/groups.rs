//! Changes of groups by SCIM, and the levels that follow from them.

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::organizations::Level;
use weir_model::{ScimGroupId, Timestamp, UserId};

use super::{DomainState, GroupRow, Outcome, begin_change, end_change, outcome};
use crate::activity;
use crate::bind::bind;
use crate::db::Statement;
use crate::mail::{self, MailRow};
use crate::{Result, Store};

// The levels of members are compared, because administrators change them too. That of a
// deactivated user waits with its membership.
const CHANGE: Statement = Statement::write(
    "scim change groups",
    concat!(
        begin_change!(),
        "FOR $group IN $groups {
             UPSERT type::record('scim_group', [$domain, $group.uuid]) CONTENT $group RETURN NONE;
         };
         FOR $pair IN $added {
             UPSERT type::record('scim_member', [$domain, $pair[0], $pair[1]])
                 CONTENT {} RETURN NONE;
             UPSERT type::record('scim_group_of', [$domain, $pair[1], $pair[0]])
                 CONTENT {} RETURN NONE;
         };
         FOR $pair IN $removed {
             DELETE type::record('scim_member', [$domain, $pair[0], $pair[1]]) RETURN NONE;
             DELETE type::record('scim_group_of', [$domain, $pair[1], $pair[0]]) RETURN NONE;
         };
         FOR $group IN $gone {
             DELETE type::record('scim_group', [$domain, $group]) RETURN NONE;
         };
         FOR $one IN $levels {
             LET $level_now = (SELECT VALUE level
                               FROM ONLY type::record('membership', [$organization, $one.user]));
             IF $level_now != NONE {
                 IF $level_now != $one.before { THROW 'stale' };
                 IF $one.after != $one.before {
                     UPDATE type::record('membership', [$organization, $one.user])
                         SET level = $one.after, updated_at = $now RETURN NONE;
                 };
             };
             IF $one.from_group {
                 UPSERT type::record('scim_level', [$domain, $one.user]) CONTENT {} RETURN NONE;
             } ELSE {
                 DELETE type::record('scim_level', [$domain, $one.user]) RETURN NONE;
             };
         };",
        end_change!()
    ),
);

/// The level of a member that follows from groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelChange {
    /// The member who gets the level.
    pub user: UserId,
    /// The level as it was read.
    pub before: Level,
    /// The level after the change.
    pub after: Level,
    /// Whether a group gives the level.
    pub from_group: bool,
}

#[derive(Debug, Clone, SurrealValue)]
struct StoredLevel {
    user: Uuid,
    before: i64,
    after: i64,
    from_group: bool,
}

/// A change of groups and of their members, with the levels that follow.
#[derive(Debug, Default)]
pub struct GroupsChange {
    /// Groups that are new or changed.
    pub groups: Vec<GroupRow>,
    /// Groups that are deleted. Their members are among those removed.
    pub gone: Vec<ScimGroupId>,
    /// New members.
    pub added: Vec<(ScimGroupId, UserId)>,
    /// Members that leave a group.
    pub removed: Vec<(ScimGroupId, UserId)>,
    /// The levels that follow.
    pub levels: Vec<LevelChange>,
    /// The mails about the change.
    pub mails: Vec<MailRow>,
    /// The audit entries of the change.
    pub activities: Vec<Entry>,
}

/// Changes groups and the levels of their members, all or nothing.
///
/// # Errors
/// Any failure of the store.
pub async fn change_groups(
    store: &Store,
    state: &DomainState,
    next: Uuid,
    change: &GroupsChange,
    now: Timestamp,
) -> Result<Outcome> {
    let pairs = |pairs: &[(ScimGroupId, UserId)]| -> Vec<Vec<Uuid>> {
        pairs.iter().map(|(group, user)| vec![group.0, user.0]).collect()
    };
    let level = |one: &LevelChange| StoredLevel {
        user: one.user.0,
        before: one.before.into(),
        after: one.after.into(),
        from_group: one.from_group,
    };
    let vars = bind! {
        domain: state.domain.0,
        organization: state.organization.0,
        revision: state.revision,
        next: next,
        groups: change.groups.clone(),
        gone: change.gone.iter().map(|group| group.0).collect::<Vec<_>>(),
        added: pairs(&change.added),
        removed: pairs(&change.removed),
        levels: change.levels.iter().map(level).collect::<Vec<_>>(),
        now: now.micros(),
        mails: mail::stored(&change.mails)?,
    };
    outcome(activity::change(store, CHANGE, vars, &change.activities).await)
}
