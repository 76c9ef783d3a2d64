//! Groups of an identity provider, and the levels that follow from them (SSO-56).

use std::collections::BTreeSet;

use serde_json::Value;
use weir_model::activity::AuditAction;
use weir_model::scim::GROUPS_MAX;
use weir_model::{ScimGroupId, UserId};
use weir_scim::{Fault, FaultKind, GROUP, Group, GroupInput, Member, Meta, apply};
use weir_store::scim::{self as rows, GroupRow, GroupsChange, Outcome};
use weir_store::{ids, users};

use super::levels::about;
use super::{
    Listed, Listing, Precondition, Scim, ScimCtx, ScimError, ScimResult, TRIES, busy, json,
    parse_id, version,
};
use crate::activity::{About, Changes, scim_entry};

impl Scim {
    /// The groups of the domain, oldest first.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn list_groups_of(&self, ctx: &ScimCtx, listing: &Listing) -> ScimResult<Listed> {
        let store = &self.core.store;
        let filter = listing.filter.as_ref();
        let mut all = rows::groups(store, ctx.domain.id).await?;
        if let Some(filter) = filter {
            if let Some(id) = filter.must_equal("id") {
                all.retain(|row| row.id.to_string() == id);
            }
            if let Some(name) = filter.must_equal("displayName") {
                let name = name.to_lowercase();
                all.retain(|row| row.display_name.to_lowercase() == name);
            }
            if let Some(user) = filter.must_equal("members") {
                let user = parse_id(user).map(UserId);
                let users: Vec<UserId> = user.into_iter().collect();
                let of_user = rows::groups_of(store, ctx.domain.id, &users).await?.concat();
                all.retain(|row| of_user.contains(&row.id));
            }
            let mut matching = Vec::new();
            for row in all {
                let members = match filter.reads("members") {
                    true => rows::members(store, ctx.domain.id, row.id).await?,
                    false => Vec::new(),
                };
                if filter.matches(&json(&shown(ctx, &row, &members))?) {
                    matching.push(row);
                }
            }
            all = matching;
        }
        let total = all.len();
        let mut resources = Vec::new();
        for row in listing.of(all) {
            let mut resource = json(&self.shown_as_requested(ctx, &row, listing).await?)?;
            listing.selection.apply(&mut resource);
            resources.push(resource);
        }
        Ok(Listed { total, resources })
    }

    /// One group.
    ///
    /// # Errors
    /// [`ScimError::NotFound`].
    pub async fn get_group_of(&self, ctx: &ScimCtx, id: &str) -> ScimResult<Group> {
        let row = self.find_group_of(ctx, id).await?;
        let members = rows::members(&self.core.store, ctx.domain.id, row.id).await?;
        Ok(shown(ctx, &row, &members))
    }

    /// Adds a group.
    ///
    /// # Errors
    /// [`ScimError::Fault`].
    pub async fn create_group(&self, ctx: &ScimCtx, body: &Value) -> ScimResult<Group> {
        let input = GroupInput::read(body)?;
        let store = &self.core.store;
        let row = GroupRow {
            id: ScimGroupId(ids::time_ordered(ctx.now)),
            display_name: input.display_name.clone(),
            external_id: input.external_id.clone(),
            level: None,
            created_at: ctx.now,
            updated_at: ctx.now,
        };
        for _ in 0..TRIES {
            let state = self.state(ctx).await?;
            if rows::groups(store, ctx.domain.id).await?.len() >= GROUPS_MAX {
                let detail = format!("A domain may have at most {GROUPS_MAX} groups.");
                return Err(Fault::new(FaultKind::TooMany, detail).into());
            }
            let members = self.users_of(ctx, &input.members, &BTreeSet::new()).await?;
            let changes = Changes::none()
                .field("display_name", &None, &Some(&row.display_name))
                .field("external_id", &None, &row.external_id)
                .field("members_added", &None, &self.names(&members).await?);
            let change = GroupsChange {
                groups: vec![row.clone()],
                added: members.iter().map(|user| (row.id, *user)).collect(),
                activities: vec![scim_entry(ctx, about(&row), AuditAction::Created, changes)],
                ..GroupsChange::default()
            };
            if self.store_groups(ctx, &state, change, members).await? {
                return self.get_group_of(ctx, &row.id.to_string()).await;
            }
        }
        Err(busy())
    }

    /// Replaces a group.
    ///
    /// # Errors
    /// [`ScimError::NotFound`], [`ScimError::Stale`], [`ScimError::Fault`].
    pub async fn replace_group(
        &self,
        ctx: &ScimCtx,
        id: &str,
        body: &Value,
        precondition: &Precondition,
    ) -> ScimResult<Group> {
        let input = GroupInput::read(body)?;
        self.change_group(ctx, id, precondition, &|_| Ok(input.clone())).await
    }

    /// Changes a group by operations.
    ///
    /// # Errors
    /// As [`Self::replace_group`].
    pub async fn patch_group(
        &self,
        ctx: &ScimCtx,
        id: &str,
        body: &Value,
        precondition: &Precondition,
    ) -> ScimResult<Group> {
        let patched = |before: &Group| -> ScimResult<GroupInput> {
            let mut resource = json(before)?;
            apply(&GROUP, &mut resource, body)?;
            Ok(GroupInput::read(&resource)?)
        };
        self.change_group(ctx, id, precondition, &patched).await
    }

    /// Deletes a group.
    ///
    /// # Errors
    /// [`ScimError::NotFound`], [`ScimError::Stale`].
    pub async fn delete_group(
        &self,
        ctx: &ScimCtx,
        id: &str,
        precondition: &Precondition,
    ) -> ScimResult<()> {
        for _ in 0..TRIES {
            let state = self.state(ctx).await?;
            let row = self.find_group_of(ctx, id).await?;
            let members = rows::members(&self.core.store, ctx.domain.id, row.id).await?;
            precondition.check(shown(ctx, &row, &members).meta.version.as_deref())?;
            let changes = Changes::none().field("display_name", &Some(&row.display_name), &None);
            let change = GroupsChange {
                gone: vec![row.id],
                removed: members.iter().map(|user| (row.id, *user)).collect(),
                activities: vec![scim_entry(ctx, about(&row), AuditAction::Deleted, changes)],
                ..GroupsChange::default()
            };
            if self.store_groups(ctx, &state, change, members.into_iter().collect()).await? {
                return Ok(());
            }
        }
        Err(busy())
    }

    async fn change_group(
        &self,
        ctx: &ScimCtx,
        id: &str,
        precondition: &Precondition,
        wanted: &(dyn Fn(&Group) -> ScimResult<GroupInput> + Sync),
    ) -> ScimResult<Group> {
        for _ in 0..TRIES {
            let state = self.state(ctx).await?;
            let row = self.find_group_of(ctx, id).await?;
            let present = rows::members(&self.core.store, ctx.domain.id, row.id).await?;
            let before = shown(ctx, &row, &present);
            precondition.check(before.meta.version.as_deref())?;
            let input = wanted(&before)?;
            let present: BTreeSet<UserId> = present.into_iter().collect();
            let members = self.users_of(ctx, &input.members, &present).await?;
            let added: BTreeSet<UserId> = members.difference(&present).copied().collect();
            let removed: BTreeSet<UserId> = present.difference(&members).copied().collect();
            let changes = Changes::none()
                .field("display_name", &row.display_name, &input.display_name)
                .field("external_id", &row.external_id, &input.external_id)
                .field("members_added", &None, &self.names(&added).await?)
                .field("members_removed", &self.names(&removed).await?, &None);
            if changes.is_empty() {
                return Ok(before);
            }
            let row = GroupRow {
                display_name: input.display_name,
                external_id: input.external_id,
                updated_at: ctx.now,
                ..row
            };
            let pair = |user: &UserId| (row.id, *user);
            let change = GroupsChange {
                added: added.iter().map(pair).collect(),
                removed: removed.iter().map(pair).collect(),
                activities: vec![scim_entry(ctx, about(&row), AuditAction::Updated, changes)],
                groups: vec![row],
                ..GroupsChange::default()
            };
            let touched = added.union(&removed).copied().collect();
            if self.store_groups(ctx, &state, change, touched).await? {
                return self.get_group_of(ctx, id).await;
            }
        }
        Err(busy())
    }

    /// Stores a change of groups with the levels that follow for these users. `false`:
    /// another change was faster.
    async fn store_groups(
        &self,
        ctx: &ScimCtx,
        state: &rows::DomainState,
        mut change: GroupsChange,
        users: BTreeSet<UserId>,
    ) -> ScimResult<bool> {
        let note = |about: About<'_>, action, changes| scim_entry(ctx, about, action, changes);
        let rest = self.follow(&ctx.domain, &mut change, &users, &note).await?;
        let (store, next) = (&self.core.store, ids::time_ordered(ctx.now));
        let outcome = rows::change_groups(store, state, next, &change, ctx.now).await?;
        if outcome == Outcome::Done {
            self.settle(&ctx.domain, rest, &note).await?;
        }
        Ok(outcome == Outcome::Done)
    }

    /// The users with these ids. Those who are no members of the group yet must be users of
    /// the domain.
    async fn users_of(
        &self,
        ctx: &ScimCtx,
        sent: &[String],
        present: &BTreeSet<UserId>,
    ) -> ScimResult<BTreeSet<UserId>> {
        let mut members = BTreeSet::new();
        for id in sent {
            let unknown = || Fault::value(format!("`members`: {id} is no user of this domain."));
            let user = parse_id(id).map(UserId).ok_or_else(unknown)?;
            if !present.contains(&user) {
                self.find_user(ctx, id).await.map_err(|error| match error {
                    ScimError::NotFound => unknown().into(),
                    other => other,
                })?;
            }
            members.insert(user);
        }
        Ok(members)
    }

    /// The addresses of these users, for an audit entry; `None`: there are none.
    async fn names(&self, of: &BTreeSet<UserId>) -> ScimResult<Option<Vec<String>>> {
        let mut names = Vec::with_capacity(of.len());
        for user in of {
            let row = users::get(&self.core.store, *user).await?;
            names.push(row.map_or_else(|| user.to_string(), |row| row.email));
        }
        Ok((!names.is_empty()).then_some(names))
    }

    async fn find_group_of(&self, ctx: &ScimCtx, id: &str) -> ScimResult<GroupRow> {
        self.group_at(ctx.domain.id, id).await?.ok_or(ScimError::NotFound)
    }

    /// A group of a list. Its members are read only where they are shown.
    async fn shown_as_requested(
        &self,
        ctx: &ScimCtx,
        row: &GroupRow,
        listing: &Listing,
    ) -> ScimResult<Group> {
        // The version depends on the members.
        if listing.selection.has("members") || listing.selection.has("meta") {
            let members = rows::members(&self.core.store, ctx.domain.id, row.id).await?;
            return Ok(shown(ctx, row, &members));
        }
        let mut group = shown(ctx, row, &[]);
        group.members = None;
        Ok(group)
    }
}

/// A group as it is shown.
fn shown(ctx: &ScimCtx, row: &GroupRow, members: &[UserId]) -> Group {
    let member = |user: &UserId| Member {
        value: user.to_string(),
        location: format!("{}/Users/{user}", ctx.base),
        kind: "User",
    };
    let id = row.id.to_string();
    let mut shown = Group {
        schemas: Group::SCHEMAS,
        external_id: row.external_id.clone(),
        display_name: row.display_name.clone(),
        members: Some(members.iter().map(member).collect()),
        meta: Meta {
            resource_type: "Group",
            created: row.created_at.to_string(),
            last_modified: row.updated_at.to_string(),
            location: format!("{}/Groups/{id}", ctx.base),
            version: None,
        },
        id,
    };
    shown.meta.version = version(&shown);
    shown
}
