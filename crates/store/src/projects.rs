//! Projects: the record, the list of an organization, the pointer by token.
//!
//! What belongs here: statements about `project`, `org_project` and
//! `project_token`. What does not: stored events.

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::projects::ProjectBrief;
use weir_model::{OrganizationId, Patch, ProjectId, Timestamp, UserId};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::exports::remove_export;
use crate::{Error, Result, Store};

/// A project as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectRow {
    /// What lists show of it.
    pub brief: ProjectBrief,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Whether client addresses are left out of events.
    pub anonymize_ips: bool,
    /// Whether events have no persons.
    pub person_processing_opt_out: bool,
    /// Addresses of the sites that send events.
    pub app_urls: Vec<String>,
    /// 0 Sunday, 1 Monday.
    pub week_start_day: Option<i64>,
    /// A description for people.
    pub product_description: Option<String>,
    /// Person properties shown as a person's name.
    pub person_display_name_properties: Option<Vec<String>>,
    /// Its secret keys, sealed.
    pub secrets: Option<String>,
}

impl ProjectRow {
    /// A new project with the defaults.
    #[must_use]
    pub fn new(
        id: ProjectId,
        organization: OrganizationId,
        name: String,
        api_token: String,
        now: Timestamp,
    ) -> Self {
        Self {
            brief: ProjectBrief {
                id,
                uuid: crate::ids::time_ordered(now),
                organization,
                api_token,
                name,
                completed_snippet_onboarding: false,
                has_completed_onboarding_for: None,
                ingested_event: false,
                is_demo: false,
                timezone: "UTC".to_owned(),
                access_control: false,
            },
            created_at: now,
            updated_at: now,
            anonymize_ips: false,
            person_processing_opt_out: false,
            app_urls: Vec::new(),
            week_start_day: None,
            product_description: None,
            person_display_name_properties: None,
            secrets: None,
        }
    }
}

/// What capture needs to know of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectRulesRow {
    /// The project.
    pub id: ProjectId,
    /// Whether client addresses are left out of events.
    pub anonymize_ips: bool,
    /// Whether events have no persons.
    pub person_processing_opt_out: bool,
}

/// Changes of a project. `None` and `Keep` keep a field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectChange {
    /// New name.
    pub name: Option<String>,
    /// New time zone.
    pub timezone: Option<String>,
    /// New value of `anonymize_ips`.
    pub anonymize_ips: Option<bool>,
    /// New value of `person_processing_opt_out`.
    pub person_processing_opt_out: Option<bool>,
    /// New addresses of sites.
    pub app_urls: Option<Vec<String>>,
    /// New value of `completed_snippet_onboarding`.
    pub completed_snippet_onboarding: Option<bool>,
    /// New first day of the week.
    pub week_start_day: Patch<i64>,
    /// New description.
    pub product_description: Patch<String>,
    /// New person properties shown as a name.
    pub person_display_name_properties: Patch<Vec<String>>,
}

impl ProjectChange {
    /// Makes the change on a row that is not stored yet.
    pub fn apply_to(self, row: &mut ProjectRow) {
        replace(&mut row.brief.name, self.name);
        replace(&mut row.brief.timezone, self.timezone);
        replace(&mut row.anonymize_ips, self.anonymize_ips);
        replace(&mut row.person_processing_opt_out, self.person_processing_opt_out);
        replace(&mut row.app_urls, self.app_urls);
        replace(&mut row.brief.completed_snippet_onboarding, self.completed_snippet_onboarding);
        apply(&mut row.week_start_day, self.week_start_day);
        apply(&mut row.product_description, self.product_description);
        apply(&mut row.person_display_name_properties, self.person_display_name_properties);
    }
}

fn replace<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn apply<T>(field: &mut Option<T>, patch: Patch<T>) {
    match patch {
        Patch::Keep => {}
        Patch::Clear => *field = None,
        Patch::Set(value) => *field = Some(value),
    }
}

/// The record. Its id is `project:<number>`, given as `number` too.
#[derive(Debug, Clone, SurrealValue)]
pub(crate) struct Stored {
    number: i64,
    uuid: Uuid,
    organization: Uuid,
    api_token: String,
    name: String,
    timezone: String,
    completed_snippet_onboarding: bool,
    ingested_event: bool,
    anonymize_ips: bool,
    person_processing_opt_out: bool,
    app_urls: Vec<String>,
    week_start_day: Option<i64>,
    product_description: Option<String>,
    person_display_name_properties: Option<Vec<String>>,
    secrets: Option<String>,
    created_at: i64,
    updated_at: i64,
}

impl From<Stored> for ProjectRow {
    fn from(stored: Stored) -> Self {
        Self {
            brief: ProjectBrief {
                id: ProjectId(stored.number),
                uuid: stored.uuid,
                organization: OrganizationId(stored.organization),
                api_token: stored.api_token,
                name: stored.name,
                completed_snippet_onboarding: stored.completed_snippet_onboarding,
                has_completed_onboarding_for: None,
                ingested_event: stored.ingested_event,
                is_demo: false,
                timezone: stored.timezone,
                access_control: false,
            },
            created_at: Timestamp::from_micros(stored.created_at),
            updated_at: Timestamp::from_micros(stored.updated_at),
            anonymize_ips: stored.anonymize_ips,
            person_processing_opt_out: stored.person_processing_opt_out,
            app_urls: stored.app_urls,
            week_start_day: stored.week_start_day,
            product_description: stored.product_description,
            person_display_name_properties: stored.person_display_name_properties,
            secrets: stored.secrets,
        }
    }
}

impl From<&ProjectRow> for Stored {
    fn from(row: &ProjectRow) -> Self {
        Self {
            number: row.brief.id.0,
            uuid: row.brief.uuid,
            organization: row.brief.organization.0,
            api_token: row.brief.api_token.clone(),
            name: row.brief.name.clone(),
            timezone: row.brief.timezone.clone(),
            completed_snippet_onboarding: row.brief.completed_snippet_onboarding,
            ingested_event: row.brief.ingested_event,
            anonymize_ips: row.anonymize_ips,
            person_processing_opt_out: row.person_processing_opt_out,
            app_urls: row.app_urls.clone(),
            week_start_day: row.week_start_day,
            product_description: row.product_description.clone(),
            person_display_name_properties: row.person_display_name_properties.clone(),
            secrets: row.secrets.clone(),
            created_at: row.created_at.micros(),
            updated_at: row.updated_at.micros(),
        }
    }
}

/// Writes a project and its pointers, and makes it what `$user` looks at. Part
/// of the transactions that create a project; binds `$project` (the record),
/// `$user`. Safe to run twice.
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

const GET: Statement =
    Statement::read("projects get", "SELECT * FROM type::record('project', $project);");

/// The project with this number, in whatever organization. For the one who
/// proves membership next, and for background work.
///
/// # Errors
/// Any failure of the store.
pub async fn find(store: &Store, project: ProjectId) -> Result<Option<ProjectRow>> {
    let mut answer = store.db.run(GET, bind! { project: project.0 }).await?;
    Ok(answer.row::<Stored>(0)?.map(ProjectRow::from))
}

const LIST: Statement = Statement::read(
    "projects of an organization",
    "SELECT * FROM (SELECT VALUE type::record('project', record::id(id)[1])
                    FROM org_project:[$organization]..=[$organization, ..]);",
);

/// The projects of an organization, in order of their number.
///
/// # Errors
/// Any failure of the store.
pub async fn of_organization(
    store: &Store,
    organization: OrganizationId,
) -> Result<Vec<ProjectRow>> {
    let mut answer = store.db.run(LIST, bind! { organization: organization.0 }).await?;
    Ok(answer.rows::<Stored>(0)?.into_iter().map(ProjectRow::from).collect())
}

// Deleting the organization reads its projects; a project that comes at the same
// moment must not be missed. Locking the organization's record is not enough
// (that only notices a deletion that comes first): both write it, so one of them
// starts again. It has to be a new value, the engine does not write a record
// that stays the same.
const CREATE: Statement = Statement::write(
    "projects create",
    concat!(
        "BEGIN;
         LET $home = (UPDATE type::record('organization', $project.organization)
                      SET additions = (additions ?? 0) + 1 RETURN VALUE uuid);
         IF $home = [] { THROW 'missing' };",
        write_project!(),
        write_activities!(),
        "COMMIT;"
    ),
);

/// Adds a project to its organization and makes it what `user` looks at.
/// `false` when the organization is gone.
///
/// # Errors
/// Any failure of the store.
pub async fn create(
    store: &Store,
    row: &ProjectRow,
    user: UserId,
    activities: &[Entry],
) -> Result<bool> {
    let vars = bind! {
        activities: activity::stored(activities)?,
        project: Stored::from(row),
        user: user.0,
    };
    match store.db.run(CREATE, vars).await {
        Ok(_) => Ok(true),
        Err(Error::Refused { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

const UPDATE: Statement = Statement::write(
    "projects update",
    concat!(
        "BEGIN;
     UPDATE type::record('project', $project) SET
        name = $name ?? name,
        timezone = $timezone ?? timezone,
        anonymize_ips = $anonymize_ips ?? anonymize_ips,
        person_processing_opt_out = $person_processing_opt_out ?? person_processing_opt_out,
        app_urls = $app_urls ?? app_urls,
        completed_snippet_onboarding =
            $completed_snippet_onboarding ?? completed_snippet_onboarding,
        week_start_day = IF $keep_week { week_start_day } ELSE { $week_start_day },
        product_description =
            IF $keep_description { product_description } ELSE { $product_description },
        person_display_name_properties =
            IF $keep_display { person_display_name_properties } ELSE { $display },
        updated_at = $now
     WHERE organization = $organization RETURN AFTER;
     IF (SELECT VALUE organization FROM ONLY type::record('project', $project)) = $organization {",
        write_activities!(),
        "};
     COMMIT;"
    ),
);

/// Changes a project of this organization; `None` when it is not there.
///
/// # Errors
/// Any failure of the store.
pub async fn update(
    store: &Store,
    organization: OrganizationId,
    project: ProjectId,
    change: ProjectChange,
    now: Timestamp,
    activities: &[Entry],
) -> Result<Option<ProjectRow>> {
    let vars = bind! {
        activities: activity::stored(activities)?,
        organization: organization.0,
        project: project.0,
        name: change.name,
        timezone: change.timezone,
        anonymize_ips: change.anonymize_ips,
        person_processing_opt_out: change.person_processing_opt_out,
        app_urls: change.app_urls,
        completed_snippet_onboarding: change.completed_snippet_onboarding,
        keep_week: change.week_start_day.is_keep(),
        week_start_day: set_value(change.week_start_day),
        keep_description: change.product_description.is_keep(),
        product_description: set_value(change.product_description),
        keep_display: change.person_display_name_properties.is_keep(),
        display: set_value(change.person_display_name_properties),
        now: now.micros(),
    };
    let mut answer = store.db.run(UPDATE, vars).await?;
    Ok(answer.row::<Stored>(1)?.map(ProjectRow::from))
}

fn set_value<T>(patch: Patch<T>) -> Option<T> {
    match patch {
        Patch::Set(value) => Some(value),
        Patch::Keep | Patch::Clear => None,
    }
}

const RESET_TOKEN: Statement = Statement::write(
    "projects reset token",
    concat!(
        "BEGIN;
         UPDATE type::record('project', $project) SET api_token = $after, updated_at = $now
             WHERE organization = $organization AND (api_token = $before OR api_token = $after)
             RETURN AFTER;
         IF (SELECT VALUE api_token FROM ONLY type::record('project', $project)) = $after {
             DELETE type::record('project_token', $before) RETURN NONE;
             UPSERT type::record('project_token', $after)
                 CONTENT { project: $project } RETURN NONE;",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Puts another project API key in place of `before`, which finds nothing from
/// now on. `None` when the project is not there, or its key is not `before`.
///
/// # Errors
/// Any failure of the store.
pub async fn reset_token(
    store: &Store,
    row: &ProjectRow,
    after: &str,
    now: Timestamp,
    activities: &[Entry],
) -> Result<Option<ProjectRow>> {
    let vars = bind! {
        activities: activity::stored(activities)?,
        organization: row.brief.organization.0,
        project: row.brief.id.0,
        before: row.brief.api_token.as_str(),
        after: after,
        now: now.micros(),
    };
    let mut answer = store.db.run(RESET_TOKEN, vars).await?;
    Ok(answer.row::<Stored>(1)?.map(ProjectRow::from))
}

const SET_SECRETS: Statement = Statement::write(
    "projects set secrets",
    concat!(
        "BEGIN;
         UPDATE type::record('project', $project) SET secrets = $after, updated_at = $now
             WHERE organization = $organization AND (secrets = $before OR secrets = $after)
             RETURN AFTER;
         IF (SELECT VALUE secrets FROM ONLY type::record('project', $project)) = $after {",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Puts other secret keys in place of those of `row`. `None` when the project is
/// not there, or they have changed since.
///
/// # Errors
/// Any failure of the store.
pub async fn set_secrets(
    store: &Store,
    row: &ProjectRow,
    after: &str,
    now: Timestamp,
    activities: &[Entry],
) -> Result<Option<ProjectRow>> {
    let vars = bind! {
        activities: activity::stored(activities)?,
        organization: row.brief.organization.0,
        project: row.brief.id.0,
        before: row.secrets.clone(),
        after: after,
        now: now.micros(),
    };
    let mut answer = store.db.run(SET_SECRETS, vars).await?;
    Ok(answer.row::<Stored>(1)?.map(ProjectRow::from))
}

// Both organizations are written, for the reason given at `CREATE`: neither may
// be deleted, nor an export be added, without this being noticed.
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
             FOR $home IN [$from, $to] {
                 LET $found = (UPDATE type::record('organization', $home)
                               SET additions = (additions ?? 0) + 1 RETURN VALUE uuid);
                 IF $found = [] { THROW 'missing' };
             };
             LET $exports = (SELECT VALUE 1
                             FROM project_batch_export:[$project]..=[$project, ..]);
             IF $exports != [] { THROW 'exports' };
             DELETE type::record('org_project', [$from, $project]) RETURN NONE;
             UPSERT type::record('org_project', [$to, $project]) CONTENT {} RETURN NONE;
             UPDATE type::record('user', $user)
                 SET current_organization = $to WHERE current_project = $project RETURN NONE;",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// What became of putting a project into another organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moved {
    /// It is there.
    Yes(Box<ProjectRow>),
    /// The project or one of the organizations is gone, or the project has
    /// changed since it was read.
    Stale,
    /// The project has exports, which belong to the organization.
    HasExports,
}

/// Puts a project into another organization, with its secret keys sealed for
/// there. `user` is who does it: who looks at the project goes on to.
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
        activities: activity::stored(activities)?,
        from: row.brief.organization.0,
        to: to.0,
        project: row.brief.id.0,
        before: row.secrets.clone(),
        after: secrets,
        user: user.0,
        now: now.micros(),
    };
    match store.db.run(MOVE, vars).await {
        Ok(mut answer) => {
            let row = answer.row::<Stored>(1)?.map(ProjectRow::from);
            Ok(row.map_or(Moved::Stale, |row| Moved::Yes(Box::new(row))))
        }
        Err(Error::Refused { reason, .. }) if reason == "exports" => Ok(Moved::HasExports),
        Err(Error::Refused { .. }) => Ok(Moved::Stale),
        Err(error) => Err(error),
    }
}

// Everything that makes the project reachable goes at once; the note in
// `deletion` tells the background work whose events to remove. The organization
// is written, so that this collides with whoever adds an export.
const DELETE: Statement = Statement::read(
    "projects delete",
    concat!(
        "BEGIN;
         LET $row = (SELECT uuid, api_token, organization
                     FROM ONLY type::record('project', $project));
         IF $row.organization = $organization {
             UPDATE type::record('organization', $organization)
                 SET additions = (additions ?? 0) + 1 RETURN NONE;
             FOR $batch_export IN (SELECT VALUE record::id(id)[1]
                                   FROM project_batch_export:[$project]..=[$project, ..]) {",
        remove_export!(),
        "};
             DELETE type::record('project_token', $row.api_token) RETURN NONE;
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

/// Deletes a project of this organization with everything that makes it
/// reachable, and notes that its stored events are to be removed. Deleting what
/// is gone does nothing.
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
    let vars = bind! {
        activities: activity::stored(activities)?,
        organization: organization.0,
        project: project.0,
        now: now.micros(),
    };
    store.db.run(DELETE, vars).await.map(drop)
}

#[derive(Debug, SurrealValue)]
struct StoredRules {
    number: i64,
    api_token: String,
    anonymize_ips: bool,
    person_processing_opt_out: bool,
}

// A table scan: it runs once, when the service starts.
const ALL_TOKENS: Statement = Statement::read(
    "projects all tokens",
    "SELECT number, api_token, anonymize_ips, person_processing_opt_out FROM project;",
)
.within(std::time::Duration::from_secs(60));

/// The tokens of all projects, for the cache that capture looks them up in.
///
/// # Errors
/// Any failure of the store.
pub async fn all_tokens(store: &Store) -> Result<Vec<(String, ProjectRulesRow)>> {
    let mut answer = store.db.run(ALL_TOKENS, bind! {}).await?;
    let rows = answer.rows::<StoredRules>(0)?;
    Ok(rows.into_iter().map(rules).collect())
}

const BY_TOKEN: Statement = Statement::read(
    "projects by token",
    "SELECT number, api_token, anonymize_ips, person_processing_opt_out
     FROM (SELECT VALUE type::record('project', project)
           FROM type::record('project_token', $api_token));",
);

/// The project that this token belongs to.
///
/// # Errors
/// Any failure of the store.
pub async fn by_token(store: &Store, token: &str) -> Result<Option<ProjectRulesRow>> {
    // The engine has no record ids without characters.
    if token.is_empty() {
        return Ok(None);
    }
    let mut answer = store.db.run(BY_TOKEN, bind! { api_token: token }).await?;
    Ok(answer.row::<StoredRules>(0)?.map(|row| rules(row).1))
}

fn rules(row: StoredRules) -> (String, ProjectRulesRow) {
    let rules = ProjectRulesRow {
        id: ProjectId(row.number),
        anonymize_ips: row.anonymize_ips,
        person_processing_opt_out: row.person_processing_opt_out,
    };
    (row.api_token, rules)
}
