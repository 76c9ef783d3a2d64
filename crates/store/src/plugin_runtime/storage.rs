//! The storage of plugins: values by key, separate for each config.

use uuid::Uuid;
use weir_model::{PluginConfigId, ProjectId};

use super::{hold_config, require_config};
use crate::bind::bind;
use crate::db::Statement;
use crate::error::is_done;
use crate::{Error, Result, Store};

/// Longest key, in characters.
pub const KEY_MAX: usize = 200;
/// Attempts of an increment, which is computed again when another call changed the value.
const TRIES: u32 = 16;

/// The largest size of the storage of a config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Largest number of keys.
    pub keys: u32,
    /// Largest size of all keys and values together, bytes.
    pub bytes: u32,
}

impl Bounds {
    /// The default: a thousand keys and 1 MiB.
    pub const USUAL: Self = Self { keys: 1_000, bytes: 1 << 20 };
}

impl Default for Bounds {
    fn default() -> Self {
        Self::USUAL
    }
}

const GET: Statement = Statement::read(
    "plugin storage get",
    "SELECT VALUE text FROM type::record('plugin_storage', [$config, $key]);",
);

/// The value of a key, as JSON text. Does not check the project.
///
/// # Errors
/// Any failure of the store.
pub async fn get(store: &Store, config: PluginConfigId, key: &str) -> Result<Option<String>> {
    let vars = bind! { config: config.0, key: key.to_owned() };
    store.db.run(GET, vars).await?.row(0)
}

/// Replaces `$row` by the text `$text` of `$size` bytes at `$key`. Throws `full` beyond
/// the bounds. Two concurrent ones conflict at the record of the size.
macro_rules! put {
    () => {
        concat!(
            "LET $stored = (SELECT * FROM ONLY type::record('plugin_storage_size', $config));
             IF $stored = NONE {",
            hold_config!(),
            "};
             LET $more = IF $row = NONE { 1 } ELSE { 0 };
             LET $entries = ($stored.entries ?? 0) + $more;
             LET $total = ($stored.total ?? 0) - ($row.size ?? 0) + $size;
             IF $entries > $most_entries OR $total > $most_bytes { THROW 'full' };
             UPSERT type::record('plugin_storage', [$config, $key])
                 CONTENT { text: $text, size: $size, write: $write } RETURN NONE;
             UPSERT type::record('plugin_storage_size', $config)
                 CONTENT { entries: $entries, total: $total } RETURN NONE;"
        )
    };
}

const SET: Statement = Statement::write(
    "plugin storage set",
    concat!(
        "BEGIN;",
        require_config!(),
        "LET $row = (SELECT * FROM ONLY type::record('plugin_storage', [$config, $key]));",
        put!(),
        "COMMIT;"
    ),
);

/// Stores a value as JSON text. `false`: `bounds` would be exceeded, or the key is too
/// long, or the config is deleted. Nothing was written.
///
/// # Errors
/// Any failure of the store.
pub async fn set(
    store: &Store,
    project: ProjectId,
    config: PluginConfigId,
    key: &str,
    value: &str,
    bounds: Bounds,
) -> Result<bool> {
    if is_long(key) {
        return Ok(false);
    }
    let vars = bind! {
        project: project.0,
        config: config.0,
        key: key.to_owned(),
        text: value.to_owned(),
        size: size(key, value),
        most_entries: i64::from(bounds.keys),
        most_bytes: i64::from(bounds.bytes),
        write: Uuid::new_v4(),
    };
    is_done(store.db.run(SET, vars).await)
}

const REMOVE: Statement = Statement::delete(
    "plugin storage remove",
    "BEGIN;
     LET $row = (SELECT * FROM ONLY type::record('plugin_storage', [$config, $key]));
     IF $row != NONE {
         DELETE type::record('plugin_storage', [$config, $key]) RETURN NONE;
         UPDATE type::record('plugin_storage_size', $config)
             SET entries = entries - 1, total = total - $row.size RETURN NONE;
     };
     COMMIT;",
);

/// Removes the value of a key. Does nothing when there is none. Does not check the
/// project.
///
/// # Errors
/// Any failure of the store.
pub async fn remove(store: &Store, config: PluginConfigId, key: &str) -> Result<()> {
    let vars = bind! { config: config.0, key: key.to_owned() };
    store.db.run(REMOVE, vars).await.map(drop)
}

// A retry after a lost answer finds its own write.
const REPLACE: Statement = Statement::write(
    "plugin storage replace",
    concat!(
        "BEGIN;
         LET $home = (SELECT VALUE project FROM ONLY type::record('plugin_config', $config));
         IF $home = NONE { THROW 'gone' };
         LET $row = (SELECT * FROM ONLY type::record('plugin_storage', [$config, $key]));
         IF $row.write != $write {
             IF $row.text != $present { THROW 'stale' };",
        put!(),
        "};
         COMMIT;"
    ),
);

/// Adds `by` to the number at a key, and returns the sum. A value that is not an integer
/// counts as 0. Does not check the project. The bounds are [`Bounds::USUAL`].
///
/// # Errors
/// [`Error::Refused`] when the bounds would be exceeded, the key is too long or the
/// config is deleted; [`Error::Conflict`]; any other failure of the store.
pub async fn increment(store: &Store, config: PluginConfigId, key: &str, by: i64) -> Result<i64> {
    let refused =
        |reason: &str| Error::Refused { statement: REPLACE.name, reason: reason.to_owned() };
    if is_long(key) {
        return Err(refused("key"));
    }
    let write = Uuid::new_v4();
    for _ in 0..TRIES {
        let present = get(store, config, key).await?;
        let before = present.as_deref().and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
        let after = before.saturating_add(by);
        let text = after.to_string();
        let vars = bind! {
            config: config.0,
            key: key.to_owned(),
            size: size(key, &text),
            text: text,
            present: present,
            most_entries: i64::from(Bounds::USUAL.keys),
            most_bytes: i64::from(Bounds::USUAL.bytes),
            write: write,
        };
        match store.db.run(REPLACE, vars).await {
            Ok(_) => return Ok(after),
            Err(Error::Refused { reason, .. }) if reason == "stale" => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::Conflict { statement: REPLACE.name, attempts: TRIES })
}

fn is_long(key: &str) -> bool {
    key.chars().count() > KEY_MAX
}

fn size(key: &str, value: &str) -> i64 {
    i64::try_from(key.len() + value.len()).unwrap_or(i64::MAX)
}
