//! Jobs of plugins that were started by hand and wait to be run.

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::{PluginConfigId, ProjectId, Timestamp};

use super::{Changed, changed, number};
use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::{Result, Store};

/// A job that is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRow {
    /// Id, in order of time.
    pub id: Uuid,
    /// The config.
    pub config: PluginConfigId,
    /// The name of the job.
    pub kind: String,
    /// What it gets, as JSON.
    pub payload: String,
    /// When it was asked for.
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, SurrealValue)]
struct StoredJob {
    uuid: Uuid,
    config: i64,
    kind: String,
    payload: String,
    created_at: i64,
}

// It writes the config's record, so that it collides with its deletion and with
// other jobs: none is left behind, and none overlooks another.
const ADD: Statement = Statement::write(
    "plugin configs add job",
    concat!(
        "BEGIN;
         LET $waiting = (SELECT VALUE record::id(id)[1] FROM
                         plugin_job:[$job.config]..=[$job.config, ..]);
         IF $waiting CONTAINSNOT $job.uuid {
             LET $home = (UPDATE type::record('plugin_config', $job.config)
                          SET jobs = (jobs ?? 0) + 1 RETURN VALUE project);
             IF $home != [$project] { THROW 'stale' };
             IF count($waiting) >= $most { THROW 'jobs' };
             UPSERT type::record('plugin_job', [$job.config, $job.uuid])
                 CONTENT $job RETURN NONE;",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Notes a job of a config of this project that is to be run. At most `most` of a
/// config may wait.
///
/// # Errors
/// Any failure of the store.
pub async fn add(
    store: &Store,
    project: ProjectId,
    job: &JobRow,
    most: usize,
    activities: &[Entry],
) -> Result<Changed> {
    let stored = StoredJob {
        uuid: job.id,
        config: job.config.0,
        kind: job.kind.clone(),
        payload: job.payload.clone(),
        created_at: job.created_at.micros(),
    };
    let vars = bind! { project: project.0, job: stored, most: number(most) };
    changed(activity::change(store, ADD, vars, activities).await)
}

#[cfg(test)]
mod tests;
