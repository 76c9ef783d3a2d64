//! Disabling a config automatically because it keeps failing.

use weir_model::Timestamp;
use weir_model::activity::Entry;

use super::health::{Fault, StoredFault};
use super::hold_config;
use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::error::is_done;
use crate::mail::{self, MailRow, write_mails};
use crate::plugin_configs::ConfigRow;
use crate::{Result, Store};

// A retry after a lost answer finds its own revision. If the revision is neither its own
// nor the one that failed, the config was changed since, and may work now.
const SWITCH_OFF: Statement = Statement::write(
    "plugin config switch off",
    concat!(
        "BEGIN;
         LET $row = (SELECT organization, project, plugin, enabled, revision
                     FROM ONLY type::record('plugin_config', $config));
         IF $row = NONE OR $row.project != $project { THROW 'gone' };
         IF $row.revision != $revision {
             IF !$row.enabled { THROW 'disabled' };
             IF $row.revision != $failed { THROW 'changed' };",
        hold_config!(),
        "UPDATE type::record('plugin_config', $config) SET
                 enabled = false, updated_at = $now, revision = $revision RETURN NONE;
             UPDATE type::record('project_plugin_config', [$project, $config])
                 SET enabled = false RETURN NONE;
             UPDATE type::record('plugin_use', [$row.plugin, $config])
                 SET enabled = false RETURN NONE;
             UPDATE type::record('org_plugin_use', [$row.organization, $row.plugin, $config])
                 SET enabled = false RETURN NONE;
             LET $last = (SELECT VALUE fault FROM ONLY type::record('plugin_health', $config));
             UPSERT type::record('plugin_health', $config) SET fault = {
                 message: $fault.message, at: $fault.at, sample: $last.sample,
             } RETURN NONE;",
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Disables the config `failed`, and replaces the message of its last fault by `message`.
/// The sample of the fault stays. `false`: the config is disabled already, was changed
/// since, or is deleted. Nothing was written then.
pub async fn switch_off(
    store: &Store,
    failed: &ConfigRow,
    now: Timestamp,
    message: &str,
    mails: &[MailRow],
    entries: &[Entry],
) -> Result<bool> {
    let fault = Fault { message: message.to_owned(), at: now, sample: None };
    let vars = bind! {
        project: failed.project.0,
        config: failed.id.0,
        failed: failed.revision,
        now: now.micros(),
        fault: StoredFault::from(&fault),
        revision: crate::ids::time_ordered(now),
        mails: mail::stored(mails)?,
    };
    let pending = store.notification_of(failed.project);
    is_done(activity::change_holding(store, SWITCH_OFF, vars, entries, pending).await)
}
