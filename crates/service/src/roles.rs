//! Roles of an organization (API-44): names for groups of its members.
//!
//! What belongs here: who may change roles and who has one. What does not: permissions
//! of a member, which depend only on the level (`policy`).
//!
//! A user who has left the organization has no role in it any more, and gets none back
//! by joining again: a role counts only for the membership that it was given to.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::errors::FieldError;
use weir_model::members::Member;
use weir_model::pagination::{Page, Paged};
use weir_model::roles::{
    MEMBERS_MAX, NAME_MAX, ROLES_MAX, Role, RoleInput, RoleMembership, RoleMembershipInput,
    RolePatch,
};
use weir_model::{RoleId, RoleMembershipId, UserId, validate};
use weir_store::members::{self as member_rows, MemberRow};
use weir_store::roles::{self as rows, Created, RoleMemberRow, RoleRow};
use weir_store::update::{Updated, lock};
use weir_store::{ids, users as user_rows};

use crate::activity::{self, About, Changes};
use crate::ctx::OrgCtx;
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};
use crate::unchecked::Unchecked;
use crate::update::update;
use crate::{Core, Result, members, users};

/// The service for roles.
#[derive(Clone)]
pub struct Roles {
    core: Arc<Core>,
}

/// A role that the actor may change, as stored at the time of the check.
#[derive(Debug, Clone)]
pub struct Changeable(RoleRow);

impl Roles {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The roles of the organization, oldest first.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn list(&self, org: &OrgCtx, page: Page) -> Result<Paged<Role>> {
        policy::check(org, Action::ReadOrganization)?;
        let store = &self.core.store;
        let ids = rows::ordered(store, org.organization).await?;
        let count = ids.len() as u64;
        let found = rows::rows(store, org.organization, &page.slice(ids)).await?;
        Ok(Paged { count, results: self.shown(org, found).await? })
    }

    /// One role.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::NotFound`].
    pub async fn get(&self, org: &OrgCtx, role: &str) -> Result<Role> {
        policy::check(org, Action::ReadOrganization)?;
        let row = self.find(org, role).await?;
        self.show(org, row).await
    }

    /// Refuses a caller who is not allowed to change the roles of the organization.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Forbidden`] below administrator.
    fn may_manage(org: &OrgCtx) -> Result<()> {
        policy::check(org, Action::UpdateOrganization)
    }

    /// Adds a role without members.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Forbidden`] below administrator;
    /// [`Error::Invalid`] for a name that is taken, and for too many roles.
    pub async fn create(
        &self,
        org: &OrgCtx,
        input: impl Into<Unchecked<'_, RoleInput>>,
    ) -> Result<Role> {
        Self::may_manage(org)?;
        let input = input.into().read()?;
        let name = validate::text("name", &input.name, NAME_MAX)?;
        let row = RoleRow {
            id: RoleId(ids::time_ordered(org.ctx.now)),
            organization: org.organization,
            revision: ids::time_ordered(org.ctx.now),
            name_key: name.to_lowercase(),
            name,
            created_by: org.ctx.user(),
            created_at: org.ctx.now,
            members: Vec::new(),
        };
        let changes = Changes::none().field("name", &None, &Some(&row.name));
        let audit_entry = entry(org, &row, AuditAction::Created, changes);
        match rows::create(&self.core.store, &row, &[audit_entry]).await? {
            Created::Yes => self.show(org, row).await,
            Created::Taken => Err(taken()),
            Created::TooMany => {
                let detail = format!("An organization has at most {ROLES_MAX} roles.");
                Err(FieldError::body("invalid_input", detail).into())
            }
            Created::Gone => Err(Error::NotFound(NOT_FOUND)),
        }
    }

    /// Proves that there is this role and that the actor may change it.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Forbidden`] below administrator; [`Error::NotFound`].
    pub async fn changeable(&self, org: &OrgCtx, role: &str) -> Result<Changeable> {
        Self::may_manage(org)?;
        Ok(Changeable(self.find(org, role).await?))
    }

    /// Renames a role.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name that is taken.
    pub async fn rename(
        &self,
        org: &OrgCtx,
        changeable: Changeable,
        patch: RolePatch,
    ) -> Result<Role> {
        let Some(name) = patch.name else { return self.show(org, changeable.0).await };
        let name = validate::text("name", &name, NAME_MAX)?;
        let change = |row: &mut RoleRow| {
            row.name_key = name.to_lowercase();
            row.name = name.clone();
            Ok(())
        };
        let row = self.change(org, changeable, change).await?;
        self.show(org, row).await
    }

    /// Deletes a role. Its members stay members of the organization.
    pub async fn delete(&self, org: &OrgCtx, changeable: Changeable) -> Result<()> {
        let store = &self.core.store;
        let _permit = lock::<RoleRow>(store, &changeable.0.id).await;
        let row = self.find(org, &changeable.0.id.to_string()).await?;
        let changes = Changes::none().field("name", &Some(&row.name), &None);
        let audit_entry = entry(org, &row, AuditAction::Deleted, changes);
        Ok(rows::delete(store, org.organization, row.id, &[audit_entry]).await?)
    }

    /// The members with a role, in the order in which they got it.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::NotFound`].
    pub async fn members(
        &self,
        org: &OrgCtx,
        role: &str,
        page: Page,
    ) -> Result<Paged<RoleMembership>> {
        let members = self.get(org, role).await?.members;
        Ok(page.of(members))
    }

    /// One member with a role.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::NotFound`].
    pub async fn member(&self, org: &OrgCtx, role: &str, id: &str) -> Result<RoleMembership> {
        let mut members = self.get(org, role).await?.members.into_iter();
        let found = members.find(|member| id.eq_ignore_ascii_case(&member.id.to_string()));
        found.ok_or(Error::NotFound(NOT_FOUND))
    }

    /// Gives a member of the organization a role.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a user who is not a member, or has the role already.
    pub async fn add(
        &self,
        org: &OrgCtx,
        changeable: Changeable,
        input: RoleMembershipInput,
    ) -> Result<RoleMembership> {
        let wrong = |detail: &str| Error::from(FieldError::body("invalid_input", detail));
        let user = input.user;
        let member = self.of_organization(org, &[user]).await?.remove(&user);
        let member = member.ok_or_else(|| wrong("User does not exist."))?;
        let new = RoleMemberRow {
            id: RoleMembershipId(ids::time_ordered(org.ctx.now)),
            user,
            joined_at: org.ctx.now,
        };
        let change = |row: &mut RoleRow| {
            if row.members.iter().any(|one| one.user == user && counts(one, &member)) {
                return Err(wrong("User is already part of the role."));
            }
            row.members.retain(|one| one.user != user);
            if row.members.len() >= MEMBERS_MAX {
                return Err(wrong("A role has at most 1000 members."));
            }
            row.members.push(new.clone());
            Ok(())
        };
        let row = self.change(org, changeable, change).await?;
        let as_member = members::all_shown(&self.core, std::slice::from_ref(&member)).await?.pop();
        let as_member = as_member.ok_or_else(|| wrong("User does not exist."))?;
        Ok(shown(row.id, &new, &member, as_member))
    }

    /// Takes a role away from a member, by the id of the role membership.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a member who does not have it any more.
    pub async fn remove(&self, org: &OrgCtx, changeable: Changeable, id: &str) -> Result<()> {
        let change = |row: &mut RoleRow| {
            let before = row.members.len();
            row.members.retain(|one| !id.eq_ignore_ascii_case(&one.id.to_string()));
            if row.members.len() == before {
                return Err(Error::NotFound(NOT_FOUND));
            }
            Ok(())
        };
        self.change(org, changeable, change).await.map(drop)
    }

    /// Changes a role.
    async fn change(
        &self,
        org: &OrgCtx,
        changeable: Changeable,
        change: impl Fn(&mut RoleRow) -> Result<()>,
    ) -> Result<RoleRow> {
        let entries = |before: &RoleRow, after: &RoleRow| {
            vec![entry(org, after, AuditAction::Updated, changes(before, after))]
        };
        let (id, now) = (changeable.0.id, org.ctx.now);
        match update(&self.core, id, now, (), change, entries).await? {
            Updated::Stored(row) => Ok(row),
            Updated::Refused(reason) if reason == rows::TAKEN => Err(taken()),
            Updated::Gone | Updated::Refused(_) => Err(Error::NotFound(NOT_FOUND)),
        }
    }

    async fn find(&self, org: &OrgCtx, role: &str) -> Result<RoleRow> {
        let missing = || Error::NotFound(NOT_FOUND);
        let id: RoleId = role.parse().map_err(|_| missing())?;
        if !role.eq_ignore_ascii_case(&id.to_string()) {
            return Err(missing());
        }
        let found = rows::rows(&self.core.store, org.organization, &[id]).await?;
        found.into_iter().next().ok_or_else(missing)
    }

    async fn of_organization(
        &self,
        org: &OrgCtx,
        users: &[UserId],
    ) -> Result<BTreeMap<UserId, MemberRow>> {
        let found = member_rows::rows(&self.core.store, org.organization, users).await?;
        let listed = found.into_iter().filter(|row| members::is_listed(&row.user));
        Ok(listed.map(|row| (row.user.id, row)).collect())
    }

    async fn show(&self, org: &OrgCtx, row: RoleRow) -> Result<Role> {
        let shown = self.shown(org, vec![row]).await?.pop();
        shown.ok_or_else(|| Error::Internal("a role is not shown".to_owned()))
    }

    async fn shown(&self, org: &OrgCtx, found: Vec<RoleRow>) -> Result<Vec<Role>> {
        let mut users: Vec<UserId> =
            found.iter().flat_map(|row| row.members.iter().map(|one| one.user)).collect();
        users.sort_unstable();
        users.dedup();
        let present = self.of_organization(org, &users).await?;
        let rows: Vec<MemberRow> = present.values().cloned().collect();
        let members = members::all_shown(&self.core, &rows).await?;
        let members: BTreeMap<UserId, Member> =
            members.into_iter().map(|member| (member.user.uuid, member)).collect();
        let mut roles = Vec::with_capacity(found.len());
        for row in found {
            let creator = user_rows::get(&self.core.store, row.created_by).await?;
            let member = |one: &RoleMemberRow| {
                let member = present.get(&one.user).filter(|member| counts(one, member))?;
                Some(shown(row.id, one, member, members.get(&one.user)?.clone()))
            };
            roles.push(Role {
                members: row.members.iter().filter_map(member).collect(),
                id: row.id,
                name: row.name.clone(),
                created_at: row.created_at,
                created_by: creator.as_ref().map(users::shown),
                is_default: false,
            });
        }
        Ok(roles)
    }
}

/// Whether a role was given to this membership, and not to an earlier one of the same
/// user.
fn counts(given: &RoleMemberRow, member: &MemberRow) -> bool {
    member.joined_at <= given.joined_at
}

fn shown(role: RoleId, given: &RoleMemberRow, member: &MemberRow, shown: Member) -> RoleMembership {
    RoleMembership {
        id: given.id,
        role_id: role,
        organization_member: shown,
        user: users::shown(&member.user),
        joined_at: given.joined_at,
        updated_at: given.joined_at,
    }
}

fn taken() -> Error {
    FieldError::new("name", "unique", "There is already a role with this name.").into()
}

fn changes(before: &RoleRow, after: &RoleRow) -> Changes {
    let users = |row: &RoleRow| row.members.iter().map(|one| one.user).collect::<Vec<_>>();
    Changes::none().field("name", &before.name, &after.name).field(
        "members",
        &users(before),
        &users(after),
    )
}

fn entry(org: &OrgCtx, row: &RoleRow, action: AuditAction, changes: Changes) -> Entry {
    let about = About {
        subject: Subject::Role,
        id: row.id.to_string(),
        name: Some(&row.name),
        project: None,
    };
    activity::entry(&org.ctx, org.organization, about, action, changes)
}
