//! Projects: the record, the list of an organization, adding, changing, moving and
//! deleting a project.
//!
//! What belongs here: statements about `project` and `org_project`. What does not:
//! project keys (`tokens`), stored events (`events`).

mod checklist;
mod rows;
mod tokens;
mod traffic;

use surrealdb::types::RecordId;
use weir_model::activity::Entry;
use weir_model::projects::ProjectBrief;
use weir_model::{OrganizationId, ProjectId, Timestamp, UserId};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::{Operation, Statement};
use crate::error::is_done;
use crate::exports::{self, remove_export};
use crate::lists::{self, Order};
use crate::organizations::touch_organization;
use crate::plugin_configs::remove_configs_of_project;
use crate::{Error, Result, Store};

pub use checklist::{is_checklist_hidden, set_checklist_hidden};
pub use rows::{PreviousToken, ProjectRow};
pub(crate) use rows::{Stored, StoredBrief};
pub use tokens::{
    NewToken, ProjectRulesRow, all_tokens, by_token, end_previous_token, reset_token, set_secrets,
};
pub(crate) use traffic::of_project as traffic_of_project;
pub use traffic::{KeyHour, add_traffic, traffic};

/// Writes a project and its pointers, and makes it the current project of `$user`. Used
/// by the transactions that create a project; binds `$project` (the record) and `$user`.
/// Idempotent.
macro_rules! write_project {
    () => {
        "UPSERT type::record('project', $project.number) CONTENT $project RETURN NONE;
         UPSERT type::record('org_project', [$project.organization, $project.number])
             CONTENT {} RETURN NONE;
         UPSERT type::record('project_token', $project.api_token)
             CONTENT { project: $project.number } RETURN NONE;
         UPDATE type::record('user', $user)
             SET current_organization = $project.organization,
                 current_project = $project.number
             RETURN NONE;"
    };
}
pub(crate) use write_project;

const NEXT_NUMBER: Statement =
    Statement::write("projects next number", "RETURN sequence::nextval('project_number');");

/// A number that no project has.
///
/// # Errors
/// Any failure of the store.
pub async fn next_number(store: &Store) -> Result<ProjectId> {
    let mut answer = store.db.run(NEXT_NUMBER, bind! {}).await?;
    answer
        .row(0)?
        .map(ProjectId)
        .ok_or_else(|| Error::Shape { statement: NEXT_NUMBER.name, detail: "no number".to_owned() })
}

const GET: Operation = Operation::read("projects get");

/// `project:<number>`
pub(crate) fn key(project: ProjectId) -> RecordId {
    RecordId::new("project", project.0)
}

/// The project with this number, in any organization. For callers that check membership
/// next, and for background work.
///
/// # Errors
/// Any failure of the store.
pub async fn find(store: &Store, project: ProjectId) -> Result<Option<ProjectRow>> {
    Ok(store.db.get_one::<Stored>(GET, key(project)).await?.map(ProjectRow::from))
}

const ORDERED: Order = Order { name: "projects ordered", table: "org_project", part: 1 };

/// The projects of an organization: numbers only, in order.
///
/// # Errors
/// Any failure of the store.
pub async fn ordered(store: &Store, organization: OrganizationId) -> Result<Vec<ProjectId>> {
    lists::ordered(store, ORDERED, organization.0, ProjectId).await
}

/// Projects of an organization, in the order of `projects`; missing ones are skipped.
///
/// # Errors
/// Any failure of the store.
pub async fn rows(
    store: &Store,
    organization: OrganizationId,
    projects: &[ProjectId],
) -> Result<Vec<ProjectRow>> {
    let ids: Vec<i64> = projects.iter().map(|project| project.0).collect();
    let found = lists::records::<Stored>(store, "project", ids).await?.into_iter().flatten();
    let rows = found.map(ProjectRow::from);
    Ok(rows.filter(|row| row.brief.organization == organization).collect())
}

const BRIEFS: Operation = Operation::read("projects briefs");

/// The short forms of projects of an organization, in the order of `projects`; missing
/// ones are skipped. The other fields may be large.
///
/// # Errors
/// Any failure of the store.
pub async fn briefs(
    store: &Store,
    organization: OrganizationId,
    projects: &[ProjectId],
) -> Result<Vec<ProjectBrief>> {
    let ids: Vec<i64> = projects.iter().map(|project| project.0).collect();
    let found = lists::parts::<StoredBrief>(store, BRIEFS, "project", ids).await?;
    let briefs = found.into_iter().flatten().map(ProjectBrief::from);
    Ok(briefs.filter(|brief| brief.organization == organization).collect())
}

// Deleting the organization reads its projects and must not miss one that is created
// concurrently. Locking the organization's record is not enough, because that only
// detects an earlier deletion. So both write it, and one of them runs again. The write
// needs a new value: the engine does not write a record that stays the same.
const CREATE: Statement = Statement::write(
    "projects create",
    concat!(
        "BEGIN;",
        touch_organization!("$project.organization", "missing"),
        write_project!(),
        write_activities!(),
        "COMMIT;"
    ),
);

/// Adds a project to its organization and makes it the current project of `user`. `false`
/// when the organization is deleted.
///
/// # Errors
/// Any failure of the store.
pub async fn create(
    store: &Store,
    row: &ProjectRow,
    user: UserId,
    activities: &[Entry],
) -> Result<bool> {
    let vars = bind! { project: Stored::from(row), user: user.0 };
    is_done(activity::change(store, CREATE, vars, activities).await)
}

const NUMBERS: Statement =
    Statement::read("numbers of projects", "SELECT VALUE number FROM project;")
        .within(std::time::Duration::from_secs(60));

/// The numbers of all projects, in no order.
pub(crate) async fn numbers(store: &Store) -> Result<Vec<i64>> {
    store.db.run(NUMBERS, bind! {}).await?.rows::<i64>(0)
}

const WITH_RETENTION: Statement = Statement::read(
    "projects with a retention",
    "SELECT VALUE number FROM project WHERE event_retention_days > 0;",
)
.within(std::time::Duration::from_secs(60));

/// The projects that keep their events for a limited time.
///
/// # Errors
/// Any failure of the store.
pub async fn with_retention(store: &Store) -> Result<Vec<ProjectId>> {
    let numbers: Vec<i64> = store.db.run(WITH_RETENTION, bind! {}).await?.rows(0)?;
    Ok(numbers.into_iter().map(ProjectId).collect())
}

// Both organizations are written, for the reason given at `CREATE`: a concurrent deletion
// of one of them, or a new export, conflicts with this.
const MOVE: Statement = Statement::write(
    "projects move",
    concat!(
        "BEGIN;
         UPDATE type::record('project', $project)
             SET organization = $to, secrets = $after, updated_at = $now
             WHERE (organization = $from AND secrets = $before)
                 OR (organization = $to AND secrets = $after)
             RETURN AFTER;
         IF (SELECT VALUE organization FROM ONLY type::record('project', $project)) = $to {
             FOR $home IN [$from, $to] {",
        touch_organization!("$home", "missing"),
        "};
             LET $exports = (SELECT VALUE 1
                             FROM project_batch_export:[$project]..=[$project, ..]);
             IF $exports != [] { THROW 'exports' };
             LET $configs = (SELECT VALUE 1
                             FROM project_plugin_config:[$project]..=[$project, ..]);
             IF $configs != [] { THROW 'configs' };
             DELETE type::record('org_project', [$from, $project]) RETURN NONE;
             UPSERT type::record('org_project', [$to, $project]) CONTENT {} RETURN NONE;
             UPDATE type::record('user', $user)
                 SET current_organization = $to WHERE current_project = $project RETURN NONE;",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// The result of moving a project to another organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moved {
    /// The project was moved.
    Yes(Box<ProjectRow>),
    /// The project or one of the organizations is deleted, or the project has changed
    /// since it was read.
    Stale,
    /// The project has exports, which belong to the organization.
    HasExports,
    /// The project has transformation configs: their secrets and perhaps their
    /// plugins belong to the organization.
    HasConfigs,
}

/// Moves a project to another organization, with its secret keys sealed for that one.
/// `user` makes the change. If the project is their current one, their current
/// organization changes too.
///
/// # Errors
/// Any failure of the store.
pub async fn change_organization(
    store: &Store,
    row: &ProjectRow,
    to: OrganizationId,
    secrets: Option<String>,
    user: UserId,
    now: Timestamp,
    activities: &[Entry],
) -> Result<Moved> {
    let vars = bind! {
        from: row.brief.organization.0,
        to: to.0,
        project: row.brief.id.0,
        before: row.secrets.clone(),
        after: secrets,
        user: user.0,
        now: now.micros(),
    };
    match activity::change(store, MOVE, vars, activities).await {
        Ok(mut answer) => {
            let row = answer.row::<Stored>(1)?.map(ProjectRow::from);
            Ok(row.map_or(Moved::Stale, |row| Moved::Yes(Box::new(row))))
        }
        Err(Error::Refused { reason, .. }) if reason == "exports" => Ok(Moved::HasExports),
        Err(Error::Refused { reason, .. }) if reason == "configs" => Ok(Moved::HasConfigs),
        Err(Error::Refused { .. }) => Ok(Moved::Stale),
        Err(error) => Err(error),
    }
}

// Everything that makes the project reachable is deleted immediately. The tombstone in
// `deletion` names the project whose events the background work removes. Writing the
// organization makes this conflict with transactions that add an export.
const DELETE: Statement = Statement::delete(
    "projects delete",
    concat!(
        "BEGIN;
         LET $row = (SELECT uuid, api_token, previous_token, organization
                     FROM ONLY type::record('project', $project));
         IF $row.organization = $organization {
             UPDATE type::record('organization', $organization)
                 SET additions = (additions ?? 0) + 1 RETURN NONE;
             FOR $batch_export IN (SELECT VALUE record::id(id)[1]
                                   FROM project_batch_export:[$project]..=[$project, ..]) {",
        remove_export!(),
        "};",
        remove_configs_of_project!(),
        "DELETE type::record('project_token', $row.api_token) RETURN NONE;
             IF $row.previous_token != NONE {
                 DELETE type::record('project_token', $row.previous_token) RETURN NONE;
             };
             DELETE type::record('org_project', [$organization, $project]) RETURN NONE;
             DELETE type::record('project', $project) RETURN NONE;
             UPSERT type::record('deletion', $row.uuid)
                 CONTENT { kind: 'project', projects: [$project], requested_at: $now }
                 RETURN NONE;",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Deletes a project of this organization with everything that makes it reachable, and
/// writes a tombstone for its stored events. Does nothing when it is already deleted.
///
/// # Errors
/// Any failure of the store.
pub async fn delete(
    store: &Store,
    organization: OrganizationId,
    project: ProjectId,
    now: Timestamp,
    activities: &[Entry],
) -> Result<()> {
    let vars = bind! { organization: organization.0, project: project.0, now: now.micros() };
    let pending = store.notification_of(project);
    let own = exports::ordered(store, exports::Of::Project(project)).await?;
    activity::change_exports(store, DELETE, vars, activities, own, pending).await.map(drop)
}
