//! Organizations, and joining them.
//!
//! What belongs here: statements about `organization` and `org_slug`, deletion, and the
//! organizations of a user. What does not: the list of members and their levels
//! (`members`), the level that an action needs (`weir-service`).

mod deletion;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use surrealdb::types::{RecordId, RecordIdKey, SurrealValue, Value};
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::organizations::Level;
pub use weir_model::organizations::OrganizationRow;
use weir_model::plugins::PluginsAccess;
use weir_model::projects::ProjectBrief;
use weir_model::{MembershipId, OrganizationId, ProjectId, Timestamp, UserId};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::{Failure, Operation, Statement};
use crate::domains::remove_domains;
use crate::exports::{self, remove_export};
use crate::limits::remove_usage;
use crate::members::{remove_membership, sign_out_of_none, write_membership};
use crate::plugin_configs::remove_configs_of_project;
use crate::plugin_runtime::PluginChange;
use crate::plugins::{self, remove_plugins};
use crate::projects::{self, ProjectRow};
use crate::roles::remove_roles;
use crate::transaction::{Keyspace, Transaction};
use crate::update::Row;
use crate::{Error, Result, Store, lists};

pub use deletion::{Deletion, deletion_done, deletions};

impl Row for OrganizationRow {
    type Id = OrganizationId;
    type With = ();
    const TABLE: &'static str = "organization";
    const UPDATE: &'static str = "organizations update";

    fn touch(&mut self, now: Timestamp) {
        self.updated_at = now;
    }
}

/// A new organization with its owner and its first project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOrganization {
    /// The record of the organization.
    pub row: OrganizationRow,
    /// The user who becomes its owner.
    pub owner: UserId,
    /// Id of the owner's membership.
    pub membership: MembershipId,
    /// Its first project. Its `organization` is the id of `row`.
    pub project: ProjectRow,
}

/// An organization of a user, with the user's level in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Belonging {
    /// The organization that the user is a member of.
    pub row: OrganizationRow,
    /// The user's level in it.
    pub level: Level,
}

/// The contents of an organization, for display.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contents {
    /// The number of members.
    pub member_count: u64,
    /// The projects, in order of their numbers.
    pub projects: Vec<ProjectBrief>,
}

/// The result of creating an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The organization is stored.
    Yes,
    /// Its slug belongs to another organization. Nothing was written.
    SlugTaken,
}

/// The record of a membership; its id is `membership:[organization, user]`.
#[derive(Debug, Clone, SurrealValue)]
pub(crate) struct StoredMembership {
    pub(crate) uuid: Uuid,
    pub(crate) level: i64,
    pub(crate) joined_at: i64,
    pub(crate) updated_at: i64,
}

impl StoredMembership {
    pub(crate) fn new(id: MembershipId, level: Level, now: Timestamp) -> Self {
        let now = now.micros();
        Self { uuid: id.0, level: level.into(), joined_at: now, updated_at: now }
    }
}

/// Writes the record of an organization, so that additions to it conflict with its
/// deletion and with other additions. Throws `$gone` when the organization is deleted.
macro_rules! touch_organization {
    ($organization:literal, $gone:literal) => {
        concat!(
            "LET $touched = (UPDATE type::record('organization', ",
            $organization,
            ") SET additions = (additions ?? 0) + 1 RETURN VALUE uuid);
             IF $touched = [] { THROW '",
            $gone,
            "' };"
        )
    };
}
pub(crate) use touch_organization;

/// Writes an organization with slug, owner and first project. Used by the transactions
/// that create one; binds `$organization`, `$membership`, `$project` (records) and
/// `$user` (the owner). Idempotent; throws `slug` when the slug belongs to another
/// organization.
macro_rules! write_organization {
    () => {
        concat!(
            "LET $slug_of = (SELECT VALUE organization
                             FROM ONLY type::record('org_slug', $organization.slug));
             IF $slug_of != NONE AND $slug_of != $organization.uuid { THROW 'slug' };
             UPSERT type::record('org_slug', $organization.slug)
                 CONTENT { organization: $organization.uuid } RETURN NONE;
             UPSERT type::record('organization', $organization.uuid)
                 CONTENT $organization RETURN NONE;
             ",
            crate::members::write_membership!("$organization.uuid"),
            crate::projects::write_project!()
        )
    };
}
pub(crate) use write_organization;

const GET: Operation = Operation::read("organizations get");

/// `organization:<uuid>`
fn key(organization: OrganizationId) -> RecordId {
    RecordId::new("organization", RecordIdKey::Uuid(organization.0.into()))
}

/// An id that begins with the organization or the user.
fn below(table: &'static str, parts: impl IntoIterator<Item = Uuid>) -> RecordId {
    let parts: Vec<Value> = parts.into_iter().map(|part| Value::Uuid(part.into())).collect();
    RecordId::new(table, RecordIdKey::Array(parts.into()))
}

/// `membership:[organization, user]`
fn membership(organization: OrganizationId, user: UserId) -> RecordId {
    below("membership", [organization.0, user.0])
}

/// The organization with this id.
///
/// # Errors
/// Any failure of the store.
pub async fn get(store: &Store, id: OrganizationId) -> Result<Option<OrganizationRow>> {
    store.db.get_one(GET, key(id)).await
}

const ALL: Operation = Operation::read("organizations of the instance");

/// The ids of all organizations, oldest first.
///
/// # Errors
/// Any failure of the store.
pub async fn all(store: &Store) -> Result<Vec<OrganizationId>> {
    let (from, to) = (key(OrganizationId(Uuid::nil())), key(OrganizationId(Uuid::max())));
    let range = Arc::new(store.db.keyspace().await?.range(from, to)?);
    let work = move |tx: Transaction| {
        let range = Arc::clone(&range);
        async move { tx.ids(&range).await }
    };
    let ids = store.db.transact(ALL, (), work).await?;
    let organization = |id: RecordId| match id.key {
        RecordIdKey::Uuid(id) => Some(OrganizationId(id.into())),
        _ => None,
    };
    Ok(ids.into_iter().filter_map(organization).collect())
}

/// The organizations with these ids, in the order of `ids`, without those that are deleted.
///
/// # Errors
/// Any failure of the store.
pub async fn rows(store: &Store, ids: &[OrganizationId]) -> Result<Vec<OrganizationRow>> {
    let ids = ids.iter().map(|id| id.0).collect();
    let rows = lists::records::<OrganizationRow>(store, "organization", ids).await?;
    Ok(rows.into_iter().flatten().collect())
}

const GET_WHOLE: Operation = Operation::read("organizations get whole");

/// The organization with this id, and its contents.
///
/// # Errors
/// Any failure of the store.
pub async fn get_whole(
    store: &Store,
    id: OrganizationId,
) -> Result<Option<(OrganizationRow, Contents)>> {
    let keyspace = store.db.keyspace().await?;
    let work = move |tx: Transaction| async move {
        let Some(row) = tx.get_one::<OrganizationRow>(&keyspace.key(key(id))?).await? else {
            return Ok(None);
        };
        Ok(Some((row, contents_of(&tx, keyspace, id).await?)))
    };
    store.db.transact(GET_WHOLE, (), work).await
}

const LEVEL: Operation = Operation::read("organizations level");

#[derive(SurrealValue)]
struct StoredLevel {
    level: i64,
}

/// The level of a user in an organization; `None`: the user is not a member, or there is
/// no such organization.
///
/// # Errors
/// Any failure of the store.
pub async fn level(store: &Store, id: OrganizationId, user: UserId) -> Result<Option<Level>> {
    let stored = store.db.get_one::<StoredLevel>(LEVEL, membership(id, user)).await?;
    stored.map(|stored| to_level(LEVEL.name, stored.level)).transpose()
}

pub(crate) fn to_level(statement: &'static str, level: i64) -> Result<Level> {
    Level::try_from(level).map_err(|detail| Error::Shape { statement, detail })
}

const OF_USER: Operation = Operation::read("organizations of a user");

/// The organizations of a user, oldest first.
///
/// # Errors
/// Any failure of the store.
pub async fn of_user(store: &Store, user: UserId) -> Result<Vec<Belonging>> {
    let keyspace = store.db.keyspace().await?;
    let range = Arc::new(keyspace.beginning_with(below("user_membership", [user.0]))?);
    let work = move |tx: Transaction| {
        let range = Arc::clone(&range);
        async move {
            let mut organizations = Vec::new();
            for id in tx.ids(&range).await? {
                let RecordIdKey::Array(parts) = &id.key else { continue };
                if let Some(Value::Uuid(id)) = parts.get(1) {
                    organizations.push(OrganizationId(Uuid::from_bytes(*id.as_bytes())));
                }
            }
            let rows = keyspace.keys(organizations.iter().map(|id| key(*id)))?;
            let levels = keyspace.keys(organizations.iter().map(|id| membership(*id, user)))?;
            let rows = tx.get::<OrganizationRow>(&rows).await?;
            let levels = tx.get::<StoredLevel>(&levels).await?;
            Ok(rows.into_iter().zip(levels).collect::<Vec<_>>())
        }
    };
    let mut found = Vec::new();
    for belonging in store.db.transact(OF_USER, (), work).await? {
        if let (Some(row), Some(stored)) = belonging {
            found.push(Belonging { row, level: to_level(OF_USER.name, stored.level)? });
        }
    }
    found.sort_by_key(|belonging| (belonging.row.created_at, belonging.row.id));
    Ok(found)
}

const CONTENTS: Operation = Operation::read("organizations contents");

async fn contents_of(
    tx: &Transaction,
    keyspace: Keyspace,
    id: OrganizationId,
) -> Result<Contents, Failure> {
    let members = keyspace.beginning_with(below("org_member", [id.0]))?;
    let members = tx.count(&members, u32::MAX).await?;
    let mut projects = Vec::new();
    for id in tx.ids(&keyspace.beginning_with(below("org_project", [id.0]))?).await? {
        let number = crate::events::part(&id, 1, CONTENTS.name)?;
        projects.push(keyspace.key(projects::key(ProjectId(number)))?);
    }
    let projects = tx.get::<projects::StoredBrief>(&projects).await?.into_iter().flatten();
    Ok(Contents {
        member_count: members as u64,
        projects: projects.map(ProjectBrief::from).collect(),
    })
}

/// The contents of these organizations, in the order of `ids`.
///
/// # Errors
/// Any failure of the store.
pub async fn contents(store: &Store, ids: &[OrganizationId]) -> Result<Vec<Contents>> {
    let (keyspace, ids) = (store.db.keyspace().await?, Arc::new(ids.to_vec()));
    let work = move |tx: Transaction| {
        let ids = Arc::clone(&ids);
        async move {
            let mut contents = Vec::with_capacity(ids.len());
            for id in ids.iter() {
                contents.push(contents_of(&tx, keyspace, *id).await?);
            }
            Ok(contents)
        }
    };
    store.db.transact(CONTENTS, (), work).await
}

const CREATE: Statement = Statement::write(
    "organizations create",
    concat!("BEGIN;", write_organization!(), write_activities!(), "COMMIT;"),
);

/// Creates an organization with its owner and first project, and makes both current for
/// the owner.
///
/// # Errors
/// Any failure of the store.
pub async fn create(store: &Store, new: &NewOrganization, activities: &[Entry]) -> Result<Created> {
    let vars = bind! {
        organization: new.row.clone(),
        membership: StoredMembership::new(new.membership, Level::Owner, new.row.created_at),
        project: projects::Stored::from(&new.project),
        user: new.owner.0,
    };
    match activity::change(store, CREATE, vars, activities).await {
        Ok(_) => Ok(Created::Yes),
        Err(Error::Refused { .. }) => Ok(Created::SlugTaken),
        Err(error) => Err(error),
    }
}

/// The result of adding a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// The user is a member now.
    Yes,
    /// The user was a member before. Nothing was written.
    AlreadyMember,
    /// There is no such organization.
    NoOrganization,
}

// It writes the organization's record for the reason given at
// `projects::CREATE`.
const ADD_MEMBER: Statement = Statement::write(
    "organizations add member",
    concat!(
        "BEGIN;",
        touch_organization!("$organization", "organization"),
        "LET $present = (SELECT VALUE uuid
                         FROM ONLY type::record('membership', [$organization, $user]));
         IF $present != NONE AND $present != $membership.uuid { THROW 'member' };",
        write_membership!("$organization"),
        "COMMIT;"
    ),
);

/// Makes a user a member of an organization.
///
/// # Errors
/// Any failure of the store.
pub async fn add_member(
    store: &Store,
    organization: OrganizationId,
    user: UserId,
    membership: MembershipId,
    level: Level,
    now: Timestamp,
) -> Result<Added> {
    let vars = bind! {
        organization: organization.0,
        user: user.0,
        membership: StoredMembership::new(membership, level, now),
    };
    match store.db.run(ADD_MEMBER, vars).await {
        Ok(_) => Ok(Added::Yes),
        Err(Error::Refused { reason, .. }) if reason == "member" => Ok(Added::AlreadyMember),
        Err(Error::Refused { .. }) => Ok(Added::NoOrganization),
        Err(error) => Err(error),
    }
}

/// The names of these organizations. Missing ones are skipped.
///
/// # Errors
/// Any failure of the store.
pub async fn names(
    store: &Store,
    ids: &[OrganizationId],
) -> Result<BTreeMap<OrganizationId, String>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let found = lists::records::<OrganizationRow>(store, "organization", ids).await?;
    let name = |row: OrganizationRow| (row.id, row.name);
    Ok(found.into_iter().flatten().map(name).collect())
}

const PLUGINS_ACCESS: Statement = Statement::read(
    "organizations plugins access",
    "SELECT VALUE plugins_access FROM type::record('organization', $organization);",
);

/// What an organization may do with plugins. A missing organization may do nothing.
///
/// # Errors
/// Any failure of the store.
pub async fn plugins_access(store: &Store, id: OrganizationId) -> Result<PluginsAccess> {
    let mut answer = store.db.run(PLUGINS_ACCESS, bind! { organization: id.0 }).await?;
    let stored = answer.row::<Option<PluginsAccess>>(0)?;
    Ok(stored.map_or(PluginsAccess::None, |access| access.unwrap_or(PluginsAccess::unlimited())))
}

/// What is notified after a change of the organization's access to plugins: its enabled
/// configs run from then on, or stop.
///
/// # Errors
/// Any failure of the store.
pub async fn plugins_notification(
    store: &Store,
    id: OrganizationId,
) -> Result<impl Send + Sync + use<>> {
    let projects = projects::ordered(store, id).await?.into_iter().map(PluginChange::Project);
    Ok(store.plugin_changes.pending(projects.collect()))
}

// Everything that makes the organization reachable is deleted immediately. The tombstone
// in `deletion` names the projects whose events the background work removes. Deleting the
// organization's own record makes this conflict with transactions that add a project or a
// member, because they write it.
const DELETE: Statement = Statement::delete(
    "organizations delete",
    concat!(
        "BEGIN;
     LET $slug = (SELECT VALUE slug FROM ONLY type::record('organization', $organization));
     LET $projects = (SELECT VALUE record::id(id)[1]
                      FROM org_project:[$organization]..=[$organization, ..]);
     LET $users = (SELECT VALUE record::id(id)[1]
                   FROM membership:[$organization]..=[$organization, ..]);
     FOR $project IN $projects {
         LET $api_token = (SELECT VALUE api_token FROM ONLY type::record('project', $project));
         DELETE type::record('project_token', $api_token) RETURN NONE;
         LET $older = (SELECT VALUE previous_token FROM ONLY type::record('project', $project));
         IF $older != NONE {
             DELETE type::record('project_token', $older) RETURN NONE;
         };
         DELETE type::record('project', $project) RETURN NONE;
         DELETE type::record('org_project', [$organization, $project]) RETURN NONE;",
        remove_configs_of_project!(),
        "};
     FOR $user IN $users {",
        remove_membership!(),
        sign_out_of_none!(),
        "};
     FOR $invite IN (SELECT VALUE record::id(id)[1]
                     FROM org_invite:[$organization]..=[$organization, ..]) {
         FOR $link IN ((SELECT VALUE links FROM ONLY type::record('invite', $invite)) ?? []) {
             DELETE type::record('invite_link', $link) RETURN NONE;
         };
         DELETE type::record('invite', $invite) RETURN NONE;
         DELETE type::record('org_invite', [$organization, $invite]) RETURN NONE;
     };
     DELETE invite_email:[$organization]..=[$organization, ..] RETURN NONE;",
        remove_usage!(),
        "FOR $batch_export IN (SELECT VALUE record::id(id)[1]
                           FROM org_batch_export:[$organization]..=[$organization, ..]) {",
        remove_export!(),
        "};",
        remove_domains!(),
        remove_roles!(),
        remove_plugins!(),
        "IF $slug != NONE {
         DELETE type::record('org_slug', $slug) RETURN NONE;
         DELETE type::record('organization', $organization) RETURN NONE;
         UPSERT type::record('deletion', $organization)
             CONTENT { kind: 'organization', projects: $projects, requested_at: $now }
             RETURN NONE;",
        write_activities!(),
        "};
         COMMIT;"
    ),
)
.within(Duration::from_secs(60));

/// Deletes an organization with everything that makes it and its projects reachable, and
/// writes a tombstone for their stored events. Configs of its plugins are deleted in all
/// organizations. Members who belong to no other organization are signed out everywhere,
/// except `actor`, who deletes it. Does nothing when it is already deleted.
///
/// # Errors
/// Any failure of the store.
pub async fn delete(
    store: &Store,
    id: OrganizationId,
    actor: UserId,
    now: Timestamp,
    activities: &[Entry],
) -> Result<()> {
    // Projects that are added meanwhile have no configs. Plugins of the organization may
    // have configs in other organizations.
    let projects = projects::ordered(store, id).await?.into_iter().map(PluginChange::Project);
    let plugins = plugins::own(store, id).await?.into_iter().map(PluginChange::Plugin);
    let notification = store.plugin_changes.pending(projects.chain(plugins).collect());
    let vars = bind! { organization: id.0, actor: actor.0, now: now.micros() };
    let own = exports::ordered(store, exports::Of::Organization(id)).await?;
    activity::change_exports(store, DELETE, vars, activities, own, notification).await.map(drop)
}
