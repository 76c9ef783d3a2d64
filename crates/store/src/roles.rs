//! Roles of organizations.
//!
//! What belongs here: statements about `role`, a record with the members of the role
//! in it, and `org_role`, the list. What does not: who may change roles, and which of
//! the members still belong to the organization (`weir-service`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `role` | role | the record |
//! | `org_role` | `[organization, role]` | nothing: the list, oldest first |

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::roles::ROLES_MAX;
use weir_model::{OrganizationId, RoleId, RoleMembershipId, Timestamp, UserId};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::organizations::touch_organization;
use crate::{Error, Result, Store, lists};

/// A role as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleRow {
    /// Id of the role.
    pub id: RoleId,
    /// The organization that the role belongs to.
    pub organization: OrganizationId,
    /// A new value after every change, so that a change of an older state is detected.
    pub revision: Uuid,
    /// Display name.
    pub name: String,
    /// The form of the name for comparisons.
    pub name_key: String,
    /// The user who created it.
    pub created_by: UserId,
    /// When it was created.
    pub created_at: Timestamp,
    /// The members, in the order in which they got the role.
    pub members: Vec<RoleMemberRow>,
}

/// A member of a role as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleMemberRow {
    /// Id of the role membership.
    pub id: RoleMembershipId,
    /// The user who has the role.
    pub user: UserId,
    /// When they got the role.
    pub joined_at: Timestamp,
}

#[derive(Debug, Clone, SurrealValue)]
struct Stored {
    uuid: Uuid,
    organization: Uuid,
    revision: Uuid,
    name: String,
    name_key: String,
    created_by: Uuid,
    created_at: i64,
    members: Vec<StoredMember>,
}

#[derive(Debug, Clone, SurrealValue)]
struct StoredMember {
    uuid: Uuid,
    user: Uuid,
    joined_at: i64,
}

impl From<&RoleRow> for Stored {
    fn from(row: &RoleRow) -> Self {
        let member = |member: &RoleMemberRow| StoredMember {
            uuid: member.id.0,
            user: member.user.0,
            joined_at: member.joined_at.micros(),
        };
        Self {
            uuid: row.id.0,
            organization: row.organization.0,
            revision: row.revision,
            name: row.name.clone(),
            name_key: row.name_key.clone(),
            created_by: row.created_by.0,
            created_at: row.created_at.micros(),
            members: row.members.iter().map(member).collect(),
        }
    }
}

impl From<Stored> for RoleRow {
    fn from(stored: Stored) -> Self {
        let member = |member: StoredMember| RoleMemberRow {
            id: RoleMembershipId(member.uuid),
            user: UserId(member.user),
            joined_at: Timestamp::from_micros(member.joined_at),
        };
        Self {
            id: RoleId(stored.uuid),
            organization: OrganizationId(stored.organization),
            revision: stored.revision,
            name: stored.name,
            name_key: stored.name_key,
            created_by: UserId(stored.created_by),
            created_at: Timestamp::from_micros(stored.created_at),
            members: stored.members.into_iter().map(member).collect(),
        }
    }
}

const ORDERED: Statement = Statement::read(
    "roles ordered",
    "SELECT VALUE record::id(id)[1] FROM org_role:[$organization]..=[$organization, ..];",
);

/// The roles of an organization, ids only, oldest first.
///
/// # Errors
/// Any failure of the store.
pub async fn ordered(store: &Store, organization: OrganizationId) -> Result<Vec<RoleId>> {
    lists::ids(store, ORDERED, bind! { organization: organization.0 }, RoleId).await
}

/// Roles of an organization, in the order of `roles`; missing ones are skipped.
///
/// # Errors
/// Any failure of the store.
pub async fn rows(
    store: &Store,
    organization: OrganizationId,
    roles: &[RoleId],
) -> Result<Vec<RoleRow>> {
    let ids: Vec<Uuid> = roles.iter().map(|role| role.0).collect();
    let found = lists::records::<Stored>(store, "role", ids).await?.into_iter().flatten();
    Ok(found.filter(|row| row.organization == organization.0).map(RoleRow::from).collect())
}

/// Refuses a name that another role of the organization has. Writing the organization's
/// record makes concurrent uses of one name conflict.
macro_rules! refuse_taken {
    () => {
        concat!(
            touch_organization!("$role.organization", "gone"),
            "LET $home = $role.organization;
             LET $roles = (SELECT VALUE type::record('role', record::id(id)[1])
                           FROM org_role:[$home]..=[$home, ..]);
             LET $same = (SELECT VALUE uuid FROM $roles
                          WHERE name_key = $role.name_key AND uuid != $role.uuid);
             IF $same != [] { THROW 'taken' };"
        )
    };
}

const CREATE: Statement = Statement::write(
    "roles create",
    concat!(
        "BEGIN;",
        refuse_taken!(),
        "LET $present = (SELECT VALUE uuid FROM ONLY type::record('role', $role.uuid));
         IF $present = NONE {
             IF array::len($roles) >= $most { THROW 'many' };
             UPSERT type::record('role', $role.uuid) CONTENT $role RETURN NONE;
             UPSERT type::record('org_role', [$role.organization, $role.uuid])
                 CONTENT {} RETURN NONE;",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

// A retry after a lost answer finds its own revision and writes nothing.
const SAVE: Statement = Statement::write(
    "roles save",
    concat!(
        "BEGIN;
         LET $present = (SELECT * FROM ONLY type::record('role', $role.uuid));
         IF $present = NONE { THROW 'gone' };
         IF $present.revision != $role.revision {
             IF $present.revision != $before { THROW 'changed' };",
        refuse_taken!(),
        "UPSERT type::record('role', $role.uuid) CONTENT $role RETURN NONE;",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// The result of writing a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The role is stored.
    Yes,
    /// Another role of the organization has its name. Nothing was written.
    Taken,
    /// The organization has as many roles as allowed. Nothing was written.
    TooMany,
    /// It was changed since it was read. Nothing was written.
    Changed,
    /// The role or its organization is deleted. Nothing was written.
    Gone,
}

/// Adds a role.
///
/// # Errors
/// Any failure of the store.
pub async fn create(store: &Store, row: &RoleRow, activities: &[Entry]) -> Result<Written> {
    let most = i64::try_from(ROLES_MAX).unwrap_or(i64::MAX);
    let vars = bind! { role: Stored::from(row), most: most };
    written(activity::change(store, CREATE, vars, activities).await)
}

/// Replaces a role whose revision is still `before`. The row has a new revision.
///
/// # Errors
/// Any failure of the store.
pub async fn save(
    store: &Store,
    before: Uuid,
    row: &RoleRow,
    activities: &[Entry],
) -> Result<Written> {
    let vars = bind! { before: before, role: Stored::from(row) };
    written(activity::change(store, SAVE, vars, activities).await)
}

fn written<T>(outcome: Result<T>) -> Result<Written> {
    match outcome {
        Ok(_) => Ok(Written::Yes),
        Err(Error::Refused { reason, .. }) => Ok(match reason.as_str() {
            "taken" => Written::Taken,
            "many" => Written::TooMany,
            "changed" => Written::Changed,
            _ => Written::Gone,
        }),
        Err(error) => Err(error),
    }
}

/// Removes all roles of `$organization`. Used by the transaction that deletes an
/// organization.
macro_rules! remove_roles {
    () => {
        "FOR $role IN (SELECT VALUE record::id(id)[1]
                       FROM org_role:[$organization]..=[$organization, ..]) {
             DELETE type::record('role', $role) RETURN NONE;
         };
         DELETE org_role:[$organization]..=[$organization, ..] RETURN NONE;"
    };
}
pub(crate) use remove_roles;

const DELETE: Statement = Statement::delete(
    "roles delete",
    concat!(
        "BEGIN;
         LET $present = (SELECT VALUE organization FROM ONLY type::record('role', $role));
         IF $present = $organization {
             DELETE type::record('role', $role) RETURN NONE;
             DELETE type::record('org_role', [$organization, $role]) RETURN NONE;",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Deletes a role of this organization. Does nothing when it is already deleted.
///
/// # Errors
/// Any failure of the store.
pub async fn delete(
    store: &Store,
    organization: OrganizationId,
    role: RoleId,
    activities: &[Entry],
) -> Result<()> {
    let vars = bind! { organization: organization.0, role: role.0 };
    activity::change(store, DELETE, vars, activities).await.map(drop)
}
