//! The keys of projects: finding a project by its API key, and putting other
//! keys in place of those that it has.
//!
//! What belongs here: `project_token`, and the two columns with keys of
//! `project`. What does not: how keys are made and sealed (`weir-service`).

use surrealdb::types::SurrealValue;
use weir_model::activity::Entry;
use weir_model::{ProjectId, Timestamp};

use super::{ProjectRow, Stored};
use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::{Result, Store};

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

/// Puts another project API key in place of that of `row`, which finds nothing
/// from now on. `None` when the project is not there, or its key has changed
/// since.
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
    swap(store, RESET_TOKEN, row, Some(&row.brief.api_token), after, now, activities).await
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
    swap(store, SET_SECRETS, row, row.secrets.as_deref(), after, now, activities).await
}

/// Runs a statement that puts `after` in place of `before`.
async fn swap(
    store: &Store,
    statement: Statement,
    row: &ProjectRow,
    before: Option<&str>,
    after: &str,
    now: Timestamp,
    activities: &[Entry],
) -> Result<Option<ProjectRow>> {
    let vars = bind! {
        organization: row.brief.organization.0,
        project: row.brief.id.0,
        before: before,
        after: after,
        now: now.micros(),
    };
    let mut answer = activity::change(store, statement, vars, activities).await?;
    Ok(answer.row::<Stored>(1)?.map(ProjectRow::from))
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
