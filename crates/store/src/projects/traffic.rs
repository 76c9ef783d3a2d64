//! Events by the project key that they came with, per hour: `project_key_count`, by
//! `[project, hour, key]`.

use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;
use weir_model::{ProjectId, Timestamp};

use crate::bind::bind;
use crate::db::Statement;
use crate::{Result, Store, warnings};

/// Hours for which counts are kept.
const HOURS: i64 = 30 * 24;

/// The events of an hour that came with one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHour {
    /// The project that received the events.
    pub project: ProjectId,
    /// The hour, in hours since 1970.
    pub hour: i64,
    /// The project API key.
    pub token: String,
    /// Number of events.
    pub events: u64,
    /// When the last of these events was received.
    pub last_at: Timestamp,
}

#[derive(Debug, Clone, SurrealValue)]
struct Stored {
    project: i64,
    hour: i64,
    api_token: String,
    events: i64,
    last_at: i64,
}

impl From<&KeyHour> for Stored {
    fn from(count: &KeyHour) -> Self {
        Self {
            project: count.project.0,
            hour: count.hour,
            api_token: count.token.clone(),
            events: i64::try_from(count.events).unwrap_or(i64::MAX),
            last_at: count.last_at.micros(),
        }
    }
}

impl From<Stored> for KeyHour {
    fn from(stored: Stored) -> Self {
        Self {
            project: ProjectId(stored.project),
            hour: stored.hour,
            token: stored.api_token,
            events: u64::try_from(stored.events).unwrap_or(0),
            last_at: Timestamp::from_micros(stored.last_at),
        }
    }
}

// A retry after a lost answer finds the id of its counts.
const ADD: Statement = Statement::write(
    "project traffic add",
    "BEGIN;
     FOR $count IN $counts {
         LET $project = $count.project;
         LET $home = (SELECT VALUE number FROM ONLY type::record('project', $project));
         LET $there = (SELECT VALUE batch FROM ONLY type::record(
             'project_key_count', [$project, $count.hour, $count.api_token]));
         IF $home != NONE AND $there != $batch {
             UPSERT type::record(
                 'project_key_count', [$project, $count.hour, $count.api_token]) SET
                 project = $project,
                 hour = $count.hour,
                 api_token = $count.api_token,
                 events = (events ?? 0) + $count.events,
                 last_at = $count.last_at,
                 batch = $batch
                 RETURN NONE;
             LET $old = $count.hour - $hours;
             DELETE project_key_count:[$project]..=[$project, $old] RETURN NONE;
         };
     };
     COMMIT;",
);

/// Adds to the counts of hours, and removes counts older than thirty days. Counts of
/// deleted projects are skipped. Every hour of a key may occur once in `counts`.
pub async fn add_traffic(store: &Store, counts: &[KeyHour]) -> Result<()> {
    if counts.is_empty() {
        return Ok(());
    }
    let counts: Vec<Stored> = counts.iter().map(Stored::from).collect();
    let vars = bind! { counts: counts, batch: Uuid::new_v4(), hours: HOURS };
    store.db.run(ADD, vars).await.map(drop)
}

const SINCE: Statement = Statement::read(
    "project traffic",
    "SELECT * FROM project_key_count:[$project, $hour]..=[$project, ..];",
);

/// The counts of a project from the hour `since_hour` on, oldest first.
pub async fn traffic(store: &Store, project: ProjectId, since_hour: i64) -> Result<Vec<KeyHour>> {
    let vars = bind! { project: project.0, hour: since_hour };
    let found = store.db.run(SINCE, vars).await?.rows::<Stored>(0)?;
    Ok(found.into_iter().map(KeyHour::from).collect())
}

/// All counts of a project.
pub(crate) fn of_project(project: ProjectId) -> RecordId {
    warnings::of_project("project_key_count", project)
}
