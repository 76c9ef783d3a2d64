//! The position of the deliveries of each config.

use surrealdb::types::SurrealValue;
use weir_model::{PluginConfigId, ProjectId, Timestamp};

use super::{hold_config, require_config};
use crate::bind::bind;
use crate::db::Statement;
use crate::error::is_done;
use crate::{Result, Store};

/// The position of the deliveries of a config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The config whose deliveries these are.
    pub config: PluginConfigId,
    /// The arrival number of the last event that was handled.
    pub after: u64,
    /// The number of failed attempts of the next delivery.
    pub tries: u32,
    /// When the first of these attempts failed.
    pub failed_since: Option<Timestamp>,
}

#[derive(Debug, Clone, SurrealValue)]
struct Stored {
    position: i64,
    tries: i64,
    failed_since: Option<i64>,
}

const GET: Statement =
    Statement::read("plugin cursor", "SELECT * FROM type::record('plugin_cursor', $config);");

/// The position of the deliveries of a config; `None`: there were none yet. Does not
/// check the project.
pub async fn cursor(store: &Store, config: PluginConfigId) -> Result<Option<Cursor>> {
    let found = store.db.run(GET, bind! { config: config.0 }).await?.row::<Stored>(0)?;
    Ok(found.map(|stored| Cursor {
        config,
        after: u64::try_from(stored.position).unwrap_or(0),
        tries: u32::try_from(stored.tries).unwrap_or(0),
        failed_since: stored.failed_since.map(Timestamp::from_micros),
    }))
}

const SAVE: Statement = Statement::write(
    "plugin cursor save",
    concat!(
        "BEGIN;",
        require_config!(),
        "LET $present = (SELECT * FROM ONLY type::record('plugin_cursor', $config));
         IF $present = NONE {",
        hold_config!(),
        "};
         UPSERT type::record('plugin_cursor', $config) CONTENT $cursor RETURN NONE;
         COMMIT;"
    ),
);

/// Stores the position of the deliveries of a config of this project. `false`: the config
/// is deleted, and nothing was written.
pub async fn save_cursor(store: &Store, project: ProjectId, cursor: &Cursor) -> Result<bool> {
    let stored = Stored {
        position: i64::try_from(cursor.after).unwrap_or(i64::MAX),
        tries: i64::from(cursor.tries),
        failed_since: cursor.failed_since.map(Timestamp::micros),
    };
    let vars = bind! { project: project.0, config: cursor.config.0, cursor: stored };
    is_done(store.db.run(SAVE, vars).await)
}
