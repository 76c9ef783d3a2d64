//! Removing old runs and log lines, so that an export that runs every five minutes for
//! years can still be read and deleted.

use surrealdb::types::RecordId;
use uuid::Uuid;
use weir_model::Timestamp;

use super::NewestRuns;
use super::removed::delete_all;
use super::runs::last_of;
use crate::bind::bind;
use crate::db::Statement;
use crate::{Result, Store};

const LINES: Statement = Statement::read(
    "exports old lines",
    "SELECT VALUE id FROM batch_export_log:[$export]..=[$export, $before, ..];",
)
.within(std::time::Duration::from_secs(30));
const RUNS: Statement = Statement::read(
    "exports old runs",
    "SELECT VALUE id FROM batch_export_run:[$export]..=[$export, $before]
     WHERE $latest CONTAINSNOT record::id(id)[1];",
)
.within(std::time::Duration::from_secs(30));

/// Removes log lines before `lines` and runs before `runs`. The newest runs, which the
/// export's record names, stay.
pub async fn forget(
    store: &Store,
    export: &impl NewestRuns,
    lines: Timestamp,
    runs: Timestamp,
) -> Result<()> {
    let vars = bind! { export: export.export().0, before: lines.micros() };
    let ids = store.db.run(LINES, vars).await?.rows::<RecordId>(0)?;
    delete_all(store, export.export(), &ids).await?;
    let before = last_of(runs.micros().div_euclid(1_000));
    let latest: Vec<Uuid> = export.newest_runs().iter().map(|run| run.0).collect();
    let vars = bind! { export: export.export().0, before: before, latest: latest };
    let ids = store.db.run(RUNS, vars).await?.rows::<RecordId>(0)?;
    delete_all(store, export.export(), &ids).await
}
