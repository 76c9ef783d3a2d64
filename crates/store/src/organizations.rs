//! Organizations, and joining them.
//!
//! What belongs here: statements about `organization` and `org_slug`, deletion, and the
//! organizations of a user. What does not: the list of members and their levels
//! (`members`), the level that an action needs (`weir-service`).

mod deletion;

use std::collections::BTreeMap;
use std::time::Duration;

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::organizations::Level;
pub use weir_model::organizations::OrganizationRow;
use weir_model::plugins::PluginsAccess;
use weir_model::projects::ProjectBrief;
use weir_model::{MembershipId, OrganizationId, Timestamp, UserId};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::domains::remove_domains;
use crate::exports::{self, remove_export};
use crate::members::{remove_membership, sign_out_of_none, write_membership};
use crate::plugin_configs::remove_configs_of_project;
use crate::plugin_runtime::PluginChange;
use crate::plugins::{self, remove_plugins};
use crate::projects::{self, ProjectRow};
use crate::roles::remove_roles;
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

/// The contents of the organization `$organization`, as [`StoredContents`].
macro_rules! contents_of {
    () => {
        concat!(
            "{
            members: count(SELECT VALUE 1
                           FROM org_member:[$organization]..=[$organization, ..]),
            projects: (SELECT ",
            crate::projects::brief_fields!(),
            " FROM (SELECT VALUE type::record('project', record::id(id)[1])
                       FROM org_project:[$organization]..=[$organization, ..])),
        }"
        )
    };
}

const GET: Statement = Statement::read(
    "organizations get",
    "SELECT * FROM type::record('organization', $organization);",
);

/// The organization with this id.
///
/// # Errors
/// Any failure of the store.
pub async fn get(store: &Store, id: OrganizationId) -> Result<Option<OrganizationRow>> {
    let mut answer = store.db.run(GET, bind! { organization: id.0 }).await?;
    answer.row(0)
}

#[derive(Debug, SurrealValue)]
struct StoredWhole {
    row: OrganizationRow,
    contents: StoredContents,
}

const GET_WHOLE: Statement = Statement::read(
    "organizations get whole",
    concat!(
        "SELECT VALUE { row: $this, contents: ",
        contents_of!(),
        " } FROM type::record('organization', $organization);"
    ),
);

/// The organization with this id, and its contents.
///
/// # Errors
/// Any failure of the store.
pub async fn get_whole(
    store: &Store,
    id: OrganizationId,
) -> Result<Option<(OrganizationRow, Contents)>> {
    let mut answer = store.db.run(GET_WHOLE, bind! { organization: id.0 }).await?;
    let found = answer.row::<StoredWhole>(0)?;
    Ok(found.map(|found| (found.row, found.contents.into())))
}

const LEVEL: Statement = Statement::read(
    "organizations level",
    "SELECT VALUE level FROM type::record('membership', [$organization, $user]);",
);

/// The level of a user in an organization; `None`: the user is not a member, or there is
/// no such organization.
///
/// # Errors
/// Any failure of the store.
pub async fn level(store: &Store, id: OrganizationId, user: UserId) -> Result<Option<Level>> {
    let mut answer = store.db.run(LEVEL, bind! { organization: id.0, user: user.0 }).await?;
    answer.row::<i64>(0)?.map(|level| to_level(LEVEL.name, level)).transpose()
}

pub(crate) fn to_level(statement: &'static str, level: i64) -> Result<Level> {
    Level::try_from(level).map_err(|detail| Error::Shape { statement, detail })
}

#[derive(Debug, SurrealValue)]
struct StoredBelonging {
    level: Option<i64>,
    organization: Option<OrganizationRow>,
}

// A membership whose organization is missing is skipped: a deletion removes both in one
// transaction, but this read has more than one step.
const OF_USER: Statement = Statement::read(
    "organizations of a user",
    "SELECT VALUE {
         level: type::record('membership', [record::id(id)[1], $user]).level,
         organization: type::record('organization', record::id(id)[1]).*,
     } FROM user_membership:[$user]..=[$user, ..];",
);

/// The organizations of a user, oldest first.
///
/// # Errors
/// Any failure of the store.
pub async fn of_user(store: &Store, user: UserId) -> Result<Vec<Belonging>> {
    let mut answer = store.db.run(OF_USER, bind! { user: user.0 }).await?;
    let mut found = Vec::new();
    for stored in answer.rows::<StoredBelonging>(0)? {
        if let (Some(level), Some(organization)) = (stored.level, stored.organization) {
            let level = to_level(OF_USER.name, level)?;
            found.push(Belonging { row: organization, level });
        }
    }
    found.sort_by_key(|belonging| (belonging.row.created_at, belonging.row.id));
    Ok(found)
}

#[derive(Debug, SurrealValue)]
struct StoredContents {
    members: i64,
    projects: Vec<projects::StoredBrief>,
}

impl From<StoredContents> for Contents {
    fn from(stored: StoredContents) -> Self {
        Self {
            member_count: u64::try_from(stored.members).unwrap_or(0),
            projects: stored.projects.into_iter().map(ProjectBrief::from).collect(),
        }
    }
}

const CONTENTS: Statement = Statement::read(
    "organizations contents",
    concat!("RETURN $organizations.map(|$organization| ", contents_of!(), ");"),
);

/// The contents of these organizations, in the order of `ids`.
///
/// # Errors
/// Any failure of the store.
pub async fn contents(store: &Store, ids: &[OrganizationId]) -> Result<Vec<Contents>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let mut answer = store.db.run(CONTENTS, bind! { organizations: ids }).await?;
    let found = answer.rows::<StoredContents>(0)?;
    Ok(found.into_iter().map(Contents::from).collect())
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
     DELETE invite_email:[$organization]..=[$organization, ..] RETURN NONE;
     FOR $batch_export IN (SELECT VALUE record::id(id)[1]
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
