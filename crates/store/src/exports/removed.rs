//! Deleting exports. The records that make an export reachable are deleted immediately,
//! and its active runs and backfills are ended. All its runs, log lines and backfills are
//! removed later in the background, because there may be many.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `removed_export` | export | nothing: its runs, lines and backfills are to be removed |

use surrealdb::types::{RecordId, Value, Variables};
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::{BatchExportId, OrganizationId, Timestamp};

use super::locked;
use super::newest_first::TimeWindows;
use super::runs::last_of;
use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::{Result, Store, ids};

/// Records that one transaction deletes.
const CHUNK: usize = 500;

/// Removes the export `$batch_export` of the organization `$organization`: the records
/// that lead to it, and its active runs and backfills. Used by the transactions that do
/// this. The number of writes does not depend on how long the export has run.
macro_rules! remove_export {
    () => {
        "LET $export_project = (SELECT VALUE project
                                FROM ONLY type::record('batch_export', $batch_export));
         FOR $backfill IN (SELECT VALUE record::id(id)[1] FROM
                 active_backfill:[$export_project]..=[$export_project, ..]
                 WHERE export = $batch_export) {
             DELETE type::record('active_backfill', [$export_project, $backfill]) RETURN NONE;
         };
         FOR $run IN (SELECT VALUE record::id(id)[1]
                      FROM active_run:[$batch_export]..=[$batch_export, ..]) {
             UPDATE type::record('batch_export_run', [$batch_export, $run])
                 SET status = 'Cancelled' RETURN NONE;
             DELETE type::record('active_run', [$batch_export, $run]) RETURN NONE;
         };
         DELETE type::record('batch_export_state', $batch_export) RETURN NONE;
         DELETE type::record('project_batch_export', [$export_project, $batch_export])
             RETURN NONE;
         DELETE type::record('org_batch_export', [$organization, $batch_export]) RETURN NONE;
         DELETE type::record('batch_export', $batch_export) RETURN NONE;
         UPSERT type::record('removed_export', $batch_export) CONTENT {} RETURN NONE;"
    };
}
pub(crate) use remove_export;

const DELETE: Statement = Statement::delete(
    "exports delete",
    concat!(
        "BEGIN;
         LET $row = (SELECT * FROM ONLY type::record('batch_export', $batch_export));
         IF $row != NONE AND $row.organization = $organization {",
        remove_export!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Deletes an export of this organization with its runs and backfills. Does nothing when
/// it is already deleted.
///
/// # Errors
/// Any failure of the store.
pub async fn delete(
    store: &Store,
    organization: OrganizationId,
    export: BatchExportId,
    activities: &[Entry],
) -> Result<()> {
    let vars = bind! { organization: organization.0, batch_export: export.0 };
    activity::change_exports(store, DELETE, vars, activities, [export], ()).await.map(drop)
}

// As many as were deleted recently.
const REMOVED: Statement =
    Statement::read("exports removed", "SELECT VALUE record::id(id) FROM removed_export;");
const RUNS: Statement = Statement::read(
    "exports removed runs",
    "SELECT VALUE id FROM batch_export_run:[$export, $low]..=[$export, $high];",
);
const LINES: Statement = Statement::read(
    "exports removed lines",
    "SELECT VALUE id FROM batch_export_log:[$export, $low]..=[$export, $high, ..];",
);
// As many as users have started.
const BACKFILLS: Statement = Statement::read(
    "exports removed backfills",
    "SELECT VALUE id FROM batch_export_backfill:[$export]..=[$export, ..];",
);
const REMOVE: Statement = Statement::delete("exports remove", "DELETE $ids RETURN NONE;");
const DONE: Statement = Statement::delete(
    "exports removal done",
    "DELETE type::record('removed_export', $export) RETURN NONE;",
);

/// Removes the remaining records of deleted exports. The next call continues where this
/// one failed. A failure of one export does not block the others.
///
/// # Errors
/// The first failure of the store.
pub async fn sweep(store: &Store, now: Timestamp) -> Result<()> {
    let mut outcome = Ok(());
    for export in store.db.run(REMOVED, bind! {}).await?.rows::<Uuid>(0)? {
        outcome = outcome.and(sweep_one(store, export, now).await);
    }
    outcome
}

async fn sweep_one(store: &Store, export: Uuid, now: Timestamp) -> Result<()> {
    // Runs first, because no line is added to a deleted run.
    remove_windows(store, export, RUNS, now, |low, high| {
        bind! { export: export, low: ids::first_of(low), high: last_of(high) }
    })
    .await?;
    remove_windows(store, export, LINES, now, |low, high| {
        bind! { export: export, low: low * 1_000, high: high * 1_000 + 999 }
    })
    .await?;
    remove(store, export, BACKFILLS, bind! { export: export }).await?;
    store.db.run(DONE, bind! { export: export }).await.map(drop)
}

/// Removes the records that a statement finds in all ranges of milliseconds. A range is
/// short where there are many records, so its ids fit into memory.
async fn remove_windows(
    store: &Store,
    export: Uuid,
    found: Statement,
    now: Timestamp,
    vars: impl Fn(i64, i64) -> Variables,
) -> Result<()> {
    // The clock may have been set back, so later times are read too.
    for mut windows in
        [TimeWindows::between(None, Some(now)), TimeWindows::between(Some(now), None)]
    {
        while let Some((low, high)) = windows.next() {
            windows.had(remove(store, export, found, vars(low, high)).await?);
        }
    }
    Ok(())
}

/// Removes the records that a statement finds, and returns their number.
async fn remove(store: &Store, export: Uuid, found: Statement, vars: Variables) -> Result<usize> {
    let ids = store.db.run(found, vars).await?.rows::<RecordId>(0)?;
    delete_all(store, BatchExportId(export), &ids).await?;
    Ok(ids.len())
}

/// Deletes records of an export in transactions of [`CHUNK`] records.
pub(super) async fn delete_all(
    store: &Store,
    export: BatchExportId,
    ids: &[RecordId],
) -> Result<()> {
    for some in ids.chunks(CHUNK) {
        let ids: Vec<Value> = some.iter().cloned().map(Value::RecordId).collect();
        locked(store, export, REMOVE, bind! { ids: ids }).await?;
    }
    Ok(())
}
