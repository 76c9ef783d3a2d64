//! Project keys: finding a project by its key, and replacing the keys of a project.
//!
//! What belongs here: `project_token`, and the two fields with keys of `project`. What
//! does not: how keys are made and sealed (`weir-service`).

use surrealdb::types::SurrealValue;
use weir_model::activity::Entry;
use weir_model::{OrganizationId, ProjectId, Timestamp};

use super::{ProjectRow, Stored, rows};
use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::{Result, Store};

/// The settings of a project that capture needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectRulesRow {
    /// The project that the key belongs to.
    pub id: ProjectId,
    /// The organization of the project.
    pub organization: OrganizationId,
    /// Whether client IP addresses are removed from events.
    pub anonymize_ips: bool,
    /// Whether events are processed without persons.
    pub person_processing_opt_out: bool,
    /// When the key that was looked up stops working; `None`: never.
    pub ends_at: Option<Timestamp>,
}

// The previous key ends immediately, even before its time.
const RESET_TOKEN: Statement = Statement::write(
    "projects reset token",
    concat!(
        "BEGIN;
         UPDATE type::record('project', $project)
             SET api_token = $after, previous_token = $kept, previous_token_until = $until,
                 updated_at = $now
             WHERE organization = $organization AND (api_token = $before OR api_token = $after)
             RETURN AFTER;
         IF (SELECT VALUE api_token FROM ONLY type::record('project', $project)) = $after {
             IF $older != NONE {
                 DELETE type::record('project_token', $older) RETURN NONE;
             };
             IF $kept = NONE {
                 DELETE type::record('project_token', $before) RETURN NONE;
             };
             UPSERT type::record('project_token', $after)
                 CONTENT { project: $project } RETURN NONE;",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// A new project key.
#[derive(Debug, Clone, Copy)]
pub struct NewToken<'a> {
    /// The new key.
    pub token: &'a str,
    /// When the replaced key stops working; `None`: immediately.
    pub until: Option<Timestamp>,
}

/// Replaces the project key of `row`. `None` when there is no such project, or its key
/// has changed since it was read.
///
/// # Errors
/// Any failure of the store.
pub async fn reset_token(
    store: &Store,
    row: &ProjectRow,
    new: NewToken<'_>,
    now: Timestamp,
    activities: &[Entry],
) -> Result<Option<ProjectRow>> {
    let present = row.brief.api_token.as_str();
    let vars = bind! {
        organization: row.brief.organization.0,
        project: row.brief.id.0,
        before: present,
        after: new.token,
        kept: new.until.map(|_| present.to_owned()),
        until: new.until.map(Timestamp::micros),
        older: row.previous.as_ref().map(|previous| previous.token.clone()),
        now: now.micros(),
    };
    let mut answer = activity::change(store, RESET_TOKEN, vars, activities).await?;
    Ok(answer.row::<Stored>(1)?.map(ProjectRow::from))
}

// A retry after a lost answer changes nothing and returns no row. The caller then reads
// the project again.
const END_PREVIOUS: Statement = Statement::delete(
    "projects end previous token",
    concat!(
        "BEGIN;
         LET $ended = (UPDATE type::record('project', $project)
                       SET previous_token = NONE, previous_token_until = NONE,
                           updated_at = $now
                       WHERE organization = $organization AND previous_token = $older
                       RETURN VALUE number);
         IF $ended != [] {
             DELETE type::record('project_token', $older) RETURN NONE;",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Ends the previous project key of `row` immediately. Does nothing when it has ended
/// already.
///
/// # Errors
/// Any failure of the store.
pub async fn end_previous_token(
    store: &Store,
    row: &ProjectRow,
    now: Timestamp,
    activities: &[Entry],
) -> Result<()> {
    let Some(previous) = &row.previous else { return Ok(()) };
    let vars = bind! {
        organization: row.brief.organization.0,
        project: row.brief.id.0,
        older: previous.token.as_str(),
        now: now.micros(),
    };
    activity::change(store, END_PREVIOUS, vars, activities).await.map(drop)
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

/// Replaces the secret keys of `row`. `None` when there is no such project, or they have
/// changed since they were read.
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
        organization: row.brief.organization.0,
        project: row.brief.id.0,
        before: row.secrets.as_deref(),
        after: after,
        now: now.micros(),
    };
    let mut answer = activity::change(store, SET_SECRETS, vars, activities).await?;
    Ok(answer.row::<Stored>(1)?.map(ProjectRow::from))
}

#[derive(Debug, SurrealValue)]
struct StoredRules {
    number: i64,
    organization: OrganizationId,
    api_token: String,
    previous_token: Option<String>,
    previous_token_until: Option<i64>,
    anonymize_ips: bool,
    person_processing_opt_out: bool,
}

// A table scan: it runs when the service starts, and every few seconds.
const ALL_TOKENS: Statement = Statement::read(
    "projects all tokens",
    "SELECT number, organization, api_token, previous_token, previous_token_until,
            anonymize_ips, person_processing_opt_out
     FROM project;",
)
.within(std::time::Duration::from_secs(60));

/// The keys of all projects, including replaced ones, for the cache of capture. The
/// caller checks whether a replaced key is still valid.
///
/// # Errors
/// Any failure of the store.
pub async fn all_tokens(store: &Store) -> Result<Vec<(String, ProjectRulesRow)>> {
    let mut answer = store.db.run(ALL_TOKENS, bind! {}).await?;
    let rows = answer.rows::<StoredRules>(0)?;
    Ok(rows.into_iter().flat_map(rules).collect())
}

const BY_TOKEN: Statement = Statement::read(
    "projects by token",
    "SELECT number, organization, api_token, previous_token, previous_token_until,
            anonymize_ips, person_processing_opt_out
     FROM (SELECT VALUE type::record('project', project)
           FROM type::record('project_token', $api_token));",
);

/// The project with this key. The caller checks whether a replaced key is still valid.
///
/// # Errors
/// Any failure of the store.
pub async fn by_token(store: &Store, token: &str) -> Result<Option<ProjectRulesRow>> {
    // The engine does not allow empty record ids.
    if token.is_empty() {
        return Ok(None);
    }
    let mut answer = store.db.run(BY_TOKEN, bind! { api_token: token }).await?;
    let mut found = answer.row::<StoredRules>(0)?.into_iter().flat_map(rules);
    Ok(found.find(|(known, _)| known == token).map(|(_, rules)| rules))
}

/// The keys of a project, with the settings that capture needs.
fn rules(row: StoredRules) -> Vec<(String, ProjectRulesRow)> {
    let rules = |ends_at| ProjectRulesRow {
        id: ProjectId(row.number),
        organization: row.organization,
        anonymize_ips: row.anonymize_ips,
        person_processing_opt_out: row.person_processing_opt_out,
        ends_at,
    };
    let mut all = vec![(row.api_token.clone(), rules(None))];
    if let Some(old) = rows::previous(row.previous_token.clone(), row.previous_token_until) {
        all.push((old.token, rules(Some(old.until))));
    }
    all
}
