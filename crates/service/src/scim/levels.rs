//! Levels that follow from groups (SSO-56): the highest level that a group of the user
//! gives. A user whom no group gives a level keeps the one that administrators gave, and
//! owners stay owners.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::organizations::Level;
use weir_model::{ScimGroupId, UserId};
use weir_store::domains::DomainRow;
use weir_store::ids;
use weir_store::members::{self, MemberRow};
use weir_store::scim::{self as rows, GroupRow, GroupsChange, LevelChange, Outcome};

use super::{Scim, TRIES};
use crate::Result;
use crate::activity::{self, About, Changes};
use crate::ctx::OrgCtx;
use crate::domains::notices;
use crate::error::{Error, NOT_FOUND};

/// Users whose levels change in one transaction.
const PER_CHANGE: usize = 200;

/// Makes the audit entry of a change of a member's level.
pub(super) type Note<'a> = &'a (dyn Fn(About<'_>, AuditAction, Changes) -> Entry + Sync);

impl Scim {
    /// The changes of levels of these users that follow from the groups, where `change`
    /// has been made. Adds them, with their audit entries, to the change, and returns the
    /// users for whom there was no room.
    pub(super) async fn follow(
        &self,
        domain: &DomainRow,
        change: &mut GroupsChange,
        users: &BTreeSet<UserId>,
        note: Note<'_>,
    ) -> Result<BTreeSet<UserId>> {
        let store = &self.core.store;
        let mut levels = BTreeMap::new();
        let stored = rows::groups(store, domain.id).await?;
        for group in stored.iter().filter(|group| !change.gone.contains(&group.id)) {
            levels.insert(group.id, level_of(group));
        }
        for group in &change.groups {
            levels.insert(group.id, level_of(group));
        }
        let some: Vec<UserId> = users.iter().copied().take(PER_CHANGE).collect();
        let groups = rows::groups_of(store, domain.id, &some).await?;
        let marked: BTreeSet<UserId> =
            rows::levelled(store, domain.id, &some).await?.into_iter().collect();
        let present = members::rows(store, domain.organization, &some).await?;
        let groups: BTreeMap<UserId, Vec<ScimGroupId>> = some.iter().copied().zip(groups).collect();
        for member in present.iter().filter(|member| member.level != Level::Owner) {
            let user = member.user.id;
            let mut of_user: BTreeSet<ScimGroupId> =
                groups.get(&user).into_iter().flatten().copied().collect();
            of_user.extend(pairs_of(&change.added, user));
            for group in pairs_of(&change.removed, user) {
                of_user.remove(&group);
            }
            let given = of_user.iter().filter_map(|group| levels.get(group).copied().flatten());
            let given = given.max();
            let is_marked = marked.contains(&user);
            let after = match (given, is_marked) {
                (Some(level), _) => level,
                (None, true) => Level::Member,
                (None, false) => continue,
            };
            if after != member.level {
                change.activities.push(noted(member, after, note));
            }
            if after != member.level || given.is_some() != is_marked {
                change.levels.push(LevelChange {
                    user,
                    before: member.level,
                    after,
                    from_group: given.is_some(),
                });
            }
        }
        Ok(users.iter().copied().skip(PER_CHANGE).collect())
    }

    /// Stores the levels of these users that follow from the groups as they are.
    pub(super) async fn settle(
        &self,
        domain: &DomainRow,
        mut users: BTreeSet<UserId>,
        note: Note<'_>,
    ) -> Result<()> {
        let store = &self.core.store;
        let mut tries = 0;
        while !users.is_empty() {
            let state = rows::state(store, domain.id).await?.ok_or(Error::NotFound(NOT_FOUND))?;
            let now = self.core.clock.now();
            let mut change = GroupsChange::default();
            let rest = self.follow(domain, &mut change, &users, note).await?;
            let outcome = match change.levels.is_empty() {
                true => Outcome::Done,
                false => {
                    let next = ids::time_ordered(now);
                    rows::change_groups(store, &state, next, &change, now).await?
                }
            };
            if outcome == Outcome::Done {
                users = rest;
                tries = 0;
            } else {
                tries += 1;
            }
            if tries == TRIES {
                return Err(Error::Unavailable("others are changing the same members"));
            }
        }
        Ok(())
    }

    /// The level that an activated user gets, who had this one before.
    pub(super) async fn level_of_activated(
        &self,
        domain: &DomainRow,
        user: UserId,
        before: Level,
    ) -> Result<Level> {
        let store = &self.core.store;
        let of_user = rows::groups_of(store, domain.id, &[user]).await?.concat();
        let groups = rows::groups(store, domain.id).await?;
        let given = groups.iter().filter(|group| of_user.contains(&group.id)).filter_map(level_of);
        let is_marked = !rows::levelled(store, domain.id, &[user]).await?.is_empty();
        Ok(match (given.max(), is_marked) {
            (Some(level), _) => level,
            (None, true) => Level::Member,
            // Only an owner makes owners.
            (None, false) => before.min(Level::Administrator),
        })
    }

    /// Sets the level that a group gives, and the levels of its members.
    pub(super) async fn set_group_level(
        &self,
        org: &OrgCtx,
        domain: &DomainRow,
        group: ScimGroupId,
        level: Option<Level>,
    ) -> Result<()> {
        let store = &self.core.store;
        let note = |about: About<'_>, action, changes| {
            activity::entry(&org.ctx, domain.organization, about, action, changes)
        };
        for _ in 0..TRIES {
            let state = rows::state(store, domain.id).await?.ok_or(Error::NotFound(NOT_FOUND))?;
            let found = rows::group(store, domain.id, group).await?;
            let mut row = found.ok_or(Error::NotFound(NOT_FOUND))?;
            let before = level_of(&row);
            row.level = level.map(i64::from);
            row.updated_at = org.ctx.now;
            let changes = Changes::none().field("level", &before, &level);
            let entry = note(about(&row), AuditAction::Updated, changes);
            let users: BTreeSet<UserId> =
                rows::members(store, domain.id, group).await?.into_iter().collect();
            let notice = notices::to_owners(&self.core, domain.organization, Some(org)).await?;
            let mails = notice.of_group(domain, &row.display_name, level, org.ctx.now);
            let mut change = GroupsChange {
                mails: self.core.mailing.rows(org.ctx.now, mails),
                groups: vec![row],
                activities: vec![entry],
                ..GroupsChange::default()
            };
            let rest = self.follow(domain, &mut change, &users, &note).await?;
            let next = ids::time_ordered(self.core.clock.now());
            let outcome = rows::change_groups(store, &state, next, &change, org.ctx.now).await?;
            if outcome == Outcome::Done {
                self.core.mailing.wake();
                return self.settle(domain, rest, &note).await;
            }
        }
        Err(Error::Unavailable("others are changing the same members"))
    }
}

/// The level that a group gives.
pub(super) fn level_of(group: &GroupRow) -> Option<Level> {
    group.level.and_then(|level| Level::try_from(level).ok())
}

/// The subject of audit entries about a group.
pub(super) fn about(group: &GroupRow) -> About<'_> {
    About {
        subject: Subject::ScimGroup,
        id: group.id.to_string(),
        name: Some(&group.display_name),
        project: None,
    }
}

fn pairs_of(pairs: &[(ScimGroupId, UserId)], user: UserId) -> Vec<ScimGroupId> {
    pairs.iter().filter(|(_, of)| *of == user).map(|(group, _)| *group).collect()
}

fn noted(member: &MemberRow, after: Level, note: Note<'_>) -> Entry {
    let about = About {
        subject: Subject::Member,
        id: member.id.to_string(),
        name: Some(&member.user.email),
        project: None,
    };
    note(about, AuditAction::Updated, Changes::none().field("level", &member.level, &after))
}
