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
use crate::lists::{self, Order};
use crate::organizations::touch_organization;
use crate::update::{Row, update_text};
use crate::{Error, Result, Store, ids};

/// Refuses a name that another role of the organization has. Writing the organization's
/// record makes concurrent uses of one name conflict.
macro_rules! refuse_taken {
    () => {
        concat!(
            touch_organization!("$row.organization", "gone"),
            "LET $home = $row.organization;
             LET $roles = (SELECT VALUE type::record('role', record::id(id)[1])
                           FROM org_role:[$home]..=[$home, ..]);
             LET $same = (SELECT VALUE uuid FROM $roles
                          WHERE name_key = $row.name_key AND uuid != $row.uuid);
             IF $same != [] { THROW 'taken' };"
        )
    };
}

/// A role as stored.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct RoleRow {
    /// Id of the role.
    #[surreal(rename = "uuid")]
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
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct RoleMemberRow {
    /// Id of the role membership.
    #[surreal(rename = "uuid")]
    pub id: RoleMembershipId,
    /// The user who has the role.
    pub user: UserId,
    /// When they got the role.
    pub joined_at: Timestamp,
}

impl Row for RoleRow {
    type Id = RoleId;
    type With = ();
    const TABLE: &'static str = "role";
    const UPDATE: &'static str = "roles update";
    const TEXT: &'static str = update_text!(refuse_taken!());

    fn touch(&mut self, now: Timestamp) {
        self.revision = ids::time_ordered(now);
    }
}

const ORDERED: Order = Order { name: "roles ordered", table: "org_role", part: 1 };

/// The roles of an organization, ids only, oldest first.
///
/// # Errors
/// Any failure of the store.
pub async fn ordered(store: &Store, organization: OrganizationId) -> Result<Vec<RoleId>> {
    lists::ordered(store, ORDERED, organization.0, RoleId).await
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
    let found = lists::records::<RoleRow>(store, "role", ids).await?.into_iter().flatten();
    Ok(found.filter(|row| row.organization == organization).collect())
}

const CREATE: Statement = Statement::write(
    "roles create",
    concat!(
        "BEGIN;",
        refuse_taken!(),
        "LET $present = (SELECT VALUE uuid FROM ONLY type::record('role', $row.uuid));
         IF $present = NONE {
             IF array::len($roles) >= $most { THROW 'many' };
             UPSERT type::record('role', $row.uuid) CONTENT $row RETURN NONE;
             UPSERT type::record('org_role', [$row.organization, $row.uuid])
                 CONTENT {} RETURN NONE;",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// The result of creating a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The role is stored.
    Yes,
    /// Another role of the organization has its name. Nothing was written.
    Taken,
    /// The organization has as many roles as allowed. Nothing was written.
    TooMany,
    /// The organization is deleted. Nothing was written.
    Gone,
}

/// The word of a change that gives a role the name of another one.
pub const TAKEN: &str = "taken";

/// Adds a role.
///
/// # Errors
/// Any failure of the store.
pub async fn create(store: &Store, row: &RoleRow, activities: &[Entry]) -> Result<Created> {
    let most = i64::try_from(ROLES_MAX).unwrap_or(i64::MAX);
    let vars = bind! { row: row.clone(), most: most };
    match activity::change(store, CREATE, vars, activities).await {
        Ok(_) => Ok(Created::Yes),
        Err(Error::Refused { reason, .. }) => Ok(match reason.as_str() {
            TAKEN => Created::Taken,
            "many" => Created::TooMany,
            _ => Created::Gone,
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
