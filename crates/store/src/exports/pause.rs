//! Pausing an export automatically because its runs fail, with the mails that report it
//! to administrators.

use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::{BatchExportId, Timestamp};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::error::is_done;
use crate::mail::{self, MailRow, write_mails};
use crate::{Result, Store};

const PAUSE: Statement = Statement::write(
    "exports pause",
    concat!(
        "BEGIN;
         LET $present = (SELECT paused, revision
                         FROM ONLY type::record('batch_export', $batch_export));
         IF $present = NONE OR ($present.paused AND $present.revision != $revision) {
             THROW 'paused'
         };
         UPDATE type::record('batch_export', $batch_export) SET
             paused = true, last_paused_at = $now, updated_at = $now, revision = $revision
             RETURN NONE;",
        write_mails!(),
        write_activities!(),
        "COMMIT;"
    ),
);

/// Pauses an export. `revision` is its new revision. `false`: it is paused already, or
/// deleted, and nothing was written.
pub async fn pause(
    store: &Store,
    export: BatchExportId,
    revision: Uuid,
    now: Timestamp,
    mails: &[MailRow],
    activities: &[Entry],
) -> Result<bool> {
    let vars = bind! {
        batch_export: export.0,
        revision: revision,
        now: now.micros(),
        mails: mail::stored(mails)?,
    };
    is_done(activity::change_exports(store, PAUSE, vars, activities, [export], ()).await)
}
