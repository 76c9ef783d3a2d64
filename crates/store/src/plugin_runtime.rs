//! Data of running plugins: health, logs, storage, cursors, times of tasks.
//!
//! What belongs here: statements about the tables below, and reading the enabled configs.
//! What does not: configs and their waiting jobs (`plugin_configs`), plugin records
//! (`plugins`), running plugins (`weir-plugins`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `plugin_health` | config | the last fault, and the id of the last batch of notes |
//! | `plugin_count` | `[config, hour]` | events of an hour: succeeded, failed, dropped |
//! | `plugin_log` | `[config, number]` | a line; numbers are dense |
//! | `plugin_log_head` | config | the first and the last number |
//! | `plugin_storage` | `[config, key]` | a stored value |
//! | `plugin_storage_size` | config | number of keys and bytes of the storage |
//! | `plugin_cursor` | config | the position of the deliveries |
//! | `plugin_task` | `[config, task]` | when a scheduled task last ran |
//!
//! All of it is deleted with the config (`remove_runtime!`). The first record that a
//! table has for a config is written together with the config's own record. So it
//! conflicts with the deletion of the config, and no record is left behind. Changes of
//! existing records conflict with the deletion anyway.
//!
//! Functions that take no project use config ids that come from the enabled configs and
//! not from a request. Their documentation says so.

pub(crate) mod changes;
pub mod cursors;
pub mod health;
pub mod logs;
pub mod registry;
pub mod storage;
mod switch;
pub mod tasks;

pub use self::changes::PluginChange;
pub use self::switch::switch_off;

/// Writes the record of the config `$config`. Used by the transactions that write the
/// first record of a table for a config.
macro_rules! hold_config {
    () => {
        "UPDATE type::record('plugin_config', $config)
             SET holds = (holds ?? 0) + 1 RETURN NONE;"
    };
}

/// Throws `gone` unless `$config` is a config of the project `$project`.
macro_rules! require_config {
    () => {
        "LET $home = (SELECT VALUE project FROM ONLY type::record('plugin_config', $config));
         IF $home = NONE OR $home != $project { THROW 'gone' };"
    };
}

/// Removes the data of this module of the config `$plugin_config`. Used by the
/// transactions that remove the config.
macro_rules! remove_runtime {
    () => {
        "DELETE plugin_count:[$plugin_config]..=[$plugin_config, ..] RETURN NONE;
         DELETE plugin_log:[$plugin_config]..=[$plugin_config, ..] RETURN NONE;
         DELETE plugin_storage:[$plugin_config]..=[$plugin_config, ..] RETURN NONE;
         DELETE plugin_task:[$plugin_config]..=[$plugin_config, ..] RETURN NONE;
         DELETE type::record('plugin_health', $plugin_config) RETURN NONE;
         DELETE type::record('plugin_log_head', $plugin_config) RETURN NONE;
         DELETE type::record('plugin_storage_size', $plugin_config) RETURN NONE;
         DELETE type::record('plugin_cursor', $plugin_config) RETURN NONE;"
    };
}
pub(crate) use {hold_config, remove_runtime, require_config};

#[cfg(test)]
mod tests;
