//! Jobs of plugins that wait to be run. Users or plugins start them.

use std::collections::HashMap;

use surrealdb::types::{SurrealValue, Value};
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::{PluginConfigId, ProjectId, Timestamp};

use super::number;
use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::{Error, Result, Store, lists};

/// A job that waits to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRow {
    /// Id. The order of ids is the order of creation.
    pub id: Uuid,
    /// The config whose plugin runs the job.
    pub config: PluginConfigId,
    /// The name of the job.
    pub kind: String,
    /// The payload of the job, as JSON.
    pub payload: String,
    /// When it was started.
    pub created_at: Timestamp,
    /// When it is to be run; `None`: immediately.
    pub run_at: Option<Timestamp>,
}

/// A job whose time has come, with the project of its config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueJob {
    /// The project of its config.
    pub project: ProjectId,
    /// The job to run.
    pub job: JobRow,
}

#[derive(Debug, Clone, SurrealValue)]
struct StoredJob {
    uuid: Uuid,
    config: i64,
    project: i64,
    kind: String,
    payload: String,
    created_at: i64,
    run_at: i64,
}

impl From<StoredJob> for DueJob {
    fn from(stored: StoredJob) -> Self {
        let job = JobRow {
            id: stored.uuid,
            config: PluginConfigId(stored.config),
            kind: stored.kind,
            payload: stored.payload,
            created_at: Timestamp::from_micros(stored.created_at),
            run_at: Some(Timestamp::from_micros(stored.run_at)),
        };
        Self { project: ProjectId(stored.project), job }
    }
}

// Writing the config's record makes this conflict with its deletion and with other new
// jobs. So no job is left behind, and all jobs are counted.
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
                 CONTENT $job RETURN NONE;
             UPSERT type::record('plugin_job_due', [$job.run_at, $job.uuid])
                 CONTENT { config: $job.config } RETURN NONE;",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// The result of adding a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// The job is stored.
    Yes,
    /// The project does not have the config any more. Nothing was written.
    NoConfig,
    /// The config has as many waiting jobs as allowed. Nothing was written.
    TooMany,
}

/// Stores a job of a config of this project. At most `most` jobs of a config may wait. A
/// job that a plugin starts has no audit entry.
///
/// # Errors
/// Any failure of the store.
pub async fn add(
    store: &Store,
    project: ProjectId,
    job: &JobRow,
    most: usize,
    activities: &[Entry],
) -> Result<Added> {
    let stored = StoredJob {
        uuid: job.id,
        config: job.config.0,
        project: project.0,
        kind: job.kind.clone(),
        payload: job.payload.clone(),
        created_at: job.created_at.micros(),
        run_at: job.run_at.unwrap_or(job.created_at).micros(),
    };
    let vars = bind! { project: project.0, job: stored, most: number(most) };
    match activity::change(store, ADD, vars, activities).await {
        Ok(_) => Ok(Added::Yes),
        Err(Error::Refused { reason, .. }) if reason == "jobs" => Ok(Added::TooMany),
        Err(Error::Refused { .. }) => Ok(Added::NoConfig),
        Err(error) => Err(error),
    }
}

#[derive(Debug, SurrealValue)]
struct Due {
    config: i64,
    job: Uuid,
}

const DUE: Statement = Statement::read(
    "plugin jobs due",
    "SELECT config, record::id(id)[1] AS job FROM plugin_job_due:[0]..=[$now, ..];",
);

/// The largest number of jobs of one config in one result of [`due`], so that other
/// configs do not wait for all of them.
const OF_CONFIG: usize = 4;

/// The jobs of the instance that are due, longest due first: at most `limit`, and a few
/// of each config.
///
/// # Errors
/// Any failure of the store.
pub async fn due(store: &Store, now: Timestamp, limit: usize) -> Result<Vec<DueJob>> {
    let found = store.db.run(DUE, bind! { now: now.micros() }).await?.rows::<Due>(0)?;
    let key = |due: Due| vec![due.config.into_value(), due.job.into_value()];
    let mut of_configs: HashMap<i64, usize> = HashMap::new();
    let is_one_of_few = |due: &Due| {
        let count = of_configs.entry(due.config).or_default();
        *count += 1;
        *count <= OF_CONFIG
    };
    let few = found.into_iter().filter(is_one_of_few).take(limit);
    let keys: Vec<Vec<Value>> = few.map(key).collect();
    let jobs = lists::records::<StoredJob>(store, "plugin_job", keys).await?;
    Ok(jobs.into_iter().flatten().map(DueJob::from).collect())
}

const REMOVE: Statement = Statement::delete(
    "plugin jobs remove",
    "BEGIN;
     LET $run_at = (SELECT VALUE run_at FROM ONLY type::record('plugin_job', [$config, $job]));
     IF $run_at != NONE {
         DELETE type::record('plugin_job_due', [$run_at, $job]) RETURN NONE;
         DELETE type::record('plugin_job', [$config, $job]) RETURN NONE;
     };
     COMMIT;",
);

/// Removes a job that was run. Does not check the project. Does nothing when the job is
/// already removed.
///
/// # Errors
/// Any failure of the store.
pub async fn remove(store: &Store, job: &JobRow) -> Result<()> {
    let vars = bind! { config: job.config.0, job: job.id };
    store.db.run(REMOVE, vars).await.map(drop)
}

#[cfg(test)]
mod tests;
