//! The times at which the scheduled tasks of each config last ran.

use weir_model::{PluginConfigId, ProjectId, Timestamp};

use super::{hold_config, require_config};
use crate::bind::bind;
use crate::db::Statement;
use crate::error::is_done;
use crate::{Result, Store};

const LAST: Statement = Statement::read(
    "plugin task last run",
    "SELECT VALUE ran_at FROM type::record('plugin_task', [$config, $task]);",
);

/// When a task of a config last ran. Does not check the project.
pub async fn last_run(
    store: &Store,
    config: PluginConfigId,
    task: &str,
) -> Result<Option<Timestamp>> {
    let vars = bind! { config: config.0, task: task.to_owned() };
    let at = store.db.run(LAST, vars).await?.row::<i64>(0)?;
    Ok(at.map(Timestamp::from_micros))
}

const SAVE: Statement = Statement::write(
    "plugin task save run",
    concat!(
        "BEGIN;",
        require_config!(),
        "LET $present = (SELECT VALUE ran_at
                         FROM ONLY type::record('plugin_task', [$config, $task]));
         IF $present = NONE {",
        hold_config!(),
        "};
         UPSERT type::record('plugin_task', [$config, $task])
             CONTENT { ran_at: $ran_at } RETURN NONE;
         COMMIT;"
    ),
);

/// Stores when a task of a config of this project ran. `false`: the config is deleted,
/// and nothing was written.
pub async fn save_run(
    store: &Store,
    project: ProjectId,
    config: PluginConfigId,
    task: &str,
    at: Timestamp,
) -> Result<bool> {
    let vars = bind! {
        project: project.0, config: config.0, task: task.to_owned(), ran_at: at.micros(),
    };
    is_done(store.db.run(SAVE, vars).await)
}
