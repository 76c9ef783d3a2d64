//! Plugin records and their source files.
//!
//! What belongs here: statements about the tables below. What does not: who may change
//! which plugin, the effects of a change (`weir-service`); configs (`plugin_configs`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `plugin` | number | the record; `private_token` is sealed |
//! | `org_plugin` | `[organization, number]` | its groups, and whether it was ever offered to others: the list of an organization |
//! | `global_plugin` | number | its groups; only of plugins that every organization sees |
//! | `plugin_url` | `[organization, address]` | the number: an address is installed once |
//! | `plugin_file` | `[number, name]` | the text of a source file |
//!
//! The results of compiling the source are in `build`.
//!
//! Groups are computed from the record ([`PluginRow::groups`]), so every statement that
//! writes the record writes the lists too (`write_plugin!`). An organization sees its own
//! plugins, those that are offered to all, and those that a config of its projects uses.

pub mod build;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use surrealdb::types::{SurrealValue, Variables};
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::plugins::{Group, SourceChange};
use weir_model::{OrganizationId, PluginId, Timestamp};

pub use self::rows::PluginRow;
use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::memory_budget::RECORDS_PER_STATEMENT;
use crate::organizations::touch_organization;
use crate::plugin_configs::{self, ConfigBrief};
use crate::plugin_runtime::PluginChange;
use crate::plugin_runtime::changes::PendingNotification;
use crate::update::{Row, update_text};
use crate::{Error, Result, Store, ids, lists};

const NEXT_NUMBER: Statement =
    Statement::write("plugins next number", "RETURN sequence::nextval('plugin_number');");

/// A number that no plugin has.
///
/// # Errors
/// Any failure of the store.
pub async fn next_number(store: &Store) -> Result<PluginId> {
    let number = store.db.run(NEXT_NUMBER, bind! {}).await?.row(0)?;
    number.map(PluginId).ok_or_else(|| shape(&"no number"))
}

/// Plugins of any organization, in the order of `ids`; missing ones are skipped. For
/// callers that know that the plugins are visible.
///
/// # Errors
/// Any failure of the store.
pub async fn rows(store: &Store, ids: &[PluginId]) -> Result<Vec<PluginRow>> {
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    let found = lists::records(store, "plugin", ids).await?;
    Ok(found.into_iter().flatten().collect())
}

const USES_THERE: Statement = Statement::read(
    "plugins uses in an organization",
    "SELECT VALUE deleted
     FROM org_plugin_use:[$organization, $plugin]..=[$organization, $plugin, ..];",
);

/// A plugin that this organization sees: its own, one that is offered to all, or
/// one that a config of its projects uses.
///
/// # Errors
/// Any failure of the store.
pub async fn get(
    store: &Store,
    organization: OrganizationId,
    id: PluginId,
) -> Result<Option<PluginRow>> {
    let Some(row) = rows(store, &[id]).await?.into_iter().next() else { return Ok(None) };
    if row.organization == organization || row.is_global {
        return Ok(Some(row));
    }
    let vars = bind! { organization: organization.0, plugin: id.0 };
    let hidden: Vec<bool> = store.db.run(USES_THERE, vars).await?.rows(0)?;
    Ok(hidden.contains(&false).then_some(row))
}

#[derive(Debug, SurrealValue)]
struct Listed {
    plugin: i64,
    groups: Vec<String>,
    // Only in the list of an organization.
    was_global: Option<bool>,
}

const OF_ORGANIZATION: Statement = Statement::read(
    "plugins of an organization",
    "SELECT record::id(id)[1] AS plugin, groups, was_global
     FROM org_plugin:[$organization]..=[$organization, ..];",
);

/// The list of an organization, in order of numbers.
async fn listed(store: &Store, organization: OrganizationId) -> Result<Vec<Listed>> {
    store.db.run(OF_ORGANIZATION, bind! { organization: organization.0 }).await?.rows(0)
}

/// The plugins that belong to an organization: ids only, in order of their numbers.
///
/// # Errors
/// Any failure of the store.
pub async fn own(store: &Store, organization: OrganizationId) -> Result<Vec<PluginId>> {
    let listed = listed(store, organization).await?;
    Ok(listed.into_iter().map(|one| PluginId(one.plugin)).collect())
}

// A table scan: every record is needed.
const GLOBAL: Statement = Statement::read(
    "plugins global",
    "SELECT record::id(id) AS plugin, groups FROM global_plugin;",
);

/// The plugins that this organization sees in a group: ids only, in order of their
/// numbers.
///
/// # Errors
/// Any failure of the store.
pub async fn visible(
    store: &Store,
    organization: OrganizationId,
    group: Group,
) -> Result<Vec<PluginId>> {
    let own = of_group(listed(store, organization).await?, group);
    let mut seen: BTreeSet<PluginId> = own.map(|one| PluginId(one.plugin)).collect();
    let global: Vec<Listed> = store.db.run(GLOBAL, bind! {}).await?.rows(0)?;
    seen.extend(of_group(global, group).map(|one| PluginId(one.plugin)));
    let uses = plugin_configs::of_organization(store, organization).await?;
    let used: BTreeSet<PluginId> =
        uses.iter().filter(|one| !one.deleted).map(|one| one.plugin).collect();
    let further: Vec<PluginId> = used.difference(&seen).copied().collect();
    for some in further.chunks(RECORDS_PER_STATEMENT) {
        let shown =
            rows(store, some).await?.into_iter().filter(|row| row.groups().contains(&group));
        seen.extend(shown.map(|row| row.id));
    }
    Ok(seen.into_iter().collect())
}

fn of_group(listed: Vec<Listed>, group: Group) -> impl Iterator<Item = Listed> {
    let shows = move |one: &Listed| one.groups.iter().any(|word| word == group.text());
    listed.into_iter().filter(shows)
}

#[derive(Debug, SurrealValue)]
struct StoredFile {
    name: String,
    text: String,
}

const FILES: Statement = Statement::read(
    "plugins files",
    "SELECT record::id(id)[1] AS name, text FROM plugin_file:[$plugin]..=[$plugin, ..];",
);

/// The source files of a plugin by name.
///
/// # Errors
/// Any failure of the store.
pub async fn files(store: &Store, plugin: PluginId) -> Result<BTreeMap<String, String>> {
    let mut answer = store.db.run(FILES, bind! { plugin: plugin.0 }).await?;
    let files = answer.rows::<StoredFile>(0)?;
    Ok(files.into_iter().map(|file| (file.name, file.text)).collect())
}

const USAGE: Statement = Statement::read(
    "plugins usage",
    "RETURN $plugins.map(|$plugin| {
         plugin: $plugin,
         enabled: (SELECT VALUE enabled FROM plugin_use:[$plugin]..=[$plugin, ..]),
     });",
);

#[derive(Debug, SurrealValue)]
struct Usage {
    plugin: i64,
    enabled: Vec<bool>,
}

/// The plugins of an organization in a group that no enabled config of any organization
/// uses, in order of their numbers. Uses in other organizations are read only for plugins
/// that were ever offered to them, which are few.
///
/// # Errors
/// Any failure of the store.
pub async fn unused(
    store: &Store,
    organization: OrganizationId,
    group: Group,
) -> Result<Vec<PluginId>> {
    let uses = plugin_configs::of_organization(store, organization).await?;
    let mut used: BTreeSet<PluginId> =
        uses.iter().filter(|one| one.enabled).map(|one| one.plugin).collect();
    let own: Vec<Listed> = of_group(listed(store, organization).await?, group).collect();
    let others: Vec<i64> = own
        .iter()
        .filter(|one| one.was_global == Some(true) && !used.contains(&PluginId(one.plugin)))
        .map(|one| one.plugin)
        .collect();
    if !others.is_empty() {
        let usage = store.db.run(USAGE, bind! { plugins: others }).await?.rows::<Usage>(0)?;
        let enabled = usage.into_iter().filter(|one| one.enabled.contains(&true));
        used.extend(enabled.map(|one| PluginId(one.plugin)));
    }
    let own = own.into_iter().map(|one| PluginId(one.plugin));
    Ok(own.filter(|plugin| !used.contains(plugin)).collect())
}

/// A change of the source of a plugin.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewSource {
    /// The files that are written or removed.
    pub change: SourceChange,
    /// The result of compiling all files; `None`: the stored result stays.
    pub build: Option<build::Build>,
}

/// Writes the entries of the plugin `$plugin` in lists as in `$groups`, the changed source
/// files `$files`, and `$build`. Used by the transactions that do this.
macro_rules! write_plugin {
    () => {
        "UPSERT type::record('org_plugin', [$plugin.organization, $plugin.number])
             CONTENT { groups: $groups, was_global: $plugin.was_global } RETURN NONE;
         IF $plugin.is_global {
             UPSERT type::record('global_plugin', $plugin.number)
                 CONTENT { groups: $groups } RETURN NONE;
         } ELSE {
             DELETE type::record('global_plugin', $plugin.number) RETURN NONE;
         };
         FOR $file IN $files {
             IF $file.text = NONE {
                 DELETE type::record('plugin_file', [$plugin.number, $file.name]) RETURN NONE;
             } ELSE {
                 UPSERT type::record('plugin_file', [$plugin.number, $file.name])
                     CONTENT { text: $file.text } RETURN NONE;
             };
         };
         IF $build != NONE {
             UPSERT type::record('plugin_build', $plugin.number) CONTENT $build RETURN NONE;
         };"
    };
}

fn shape(fault: &dyn Display) -> Error {
    Error::Shape { statement: "plugins", detail: fault.to_string() }
}

#[derive(Debug, Clone, SurrealValue)]
struct ChangedFile {
    name: String,
    text: Option<String>,
}

fn stored_build(source: &NewSource) -> Result<Option<build::Stored>> {
    source.build.as_ref().map(build::Stored::try_from).transpose()
}

fn pending(store: &Store, row: &PluginRow) -> PendingNotification {
    store.plugin_changes.pending(vec![PluginChange::Plugin(row.id)])
}

fn changed_files(change: SourceChange) -> Vec<ChangedFile> {
    change.into_iter().map(|(name, text)| ChangedFile { name, text }).collect()
}

fn groups(row: &PluginRow) -> Vec<String> {
    row.groups().into_iter().map(|group| group.text().to_owned()).collect()
}

// It writes the organization's record for the reason given at `projects::CREATE`, and so
// that of two concurrent ones both are counted. Of two concurrent calls with the same
// address one conflicts with the other's `plugin_url`, runs again and finds it there. A
// retry after a lost answer finds its plugin and does not count it.
const CREATE: Statement = Statement::write(
    "plugins create",
    concat!(
        "BEGIN;",
        touch_organization!("$plugin.organization", "gone"),
        "LET $home = $plugin.organization;
         LET $own = (SELECT VALUE record::id(id)[1] FROM org_plugin:[$home]..=[$home, ..]);
         IF array::len($own) >= $most AND $own CONTAINSNOT $plugin.number { THROW 'full' };
         IF $plugin.url != NONE {
             LET $place = [$plugin.organization, $plugin.url];
             LET $holder = (SELECT VALUE plugin FROM ONLY type::record('plugin_url', $place));
             IF $holder != NONE AND $holder != $plugin.number { THROW 'url' };
             UPSERT type::record('plugin_url', $place)
                 CONTENT { plugin: $plugin.number } RETURN NONE;
         };
         UPSERT type::record('plugin', $plugin.number) CONTENT $plugin RETURN NONE;",
        write_plugin!(),
        write_activities!(),
        "COMMIT;"
    ),
);

/// The result of creating a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The plugin is stored.
    Yes,
    /// The organization has a plugin from this address. Nothing was written.
    UrlTaken,
    /// The organization has as many plugins as allowed. Nothing was written.
    TooMany,
    /// The organization is deleted. Nothing was written.
    OrganizationGone,
}

/// Adds a plugin with its source. An organization may have `most`.
///
/// # Errors
/// Any failure of the store.
pub async fn create(
    store: &Store,
    row: &PluginRow,
    source: &NewSource,
    most: usize,
    activities: &[Entry],
) -> Result<Created> {
    let vars = bind! {
        most: i64::try_from(most).unwrap_or(i64::MAX),
        plugin: row.clone(),
        groups: groups(row),
        files: changed_files(source.change.clone()),
        build: stored_build(source)?,
    };
    let notification = pending(store, row);
    match activity::change_holding(store, CREATE, vars, activities, notification).await {
        Ok(_) => Ok(Created::Yes),
        Err(Error::Refused { reason, .. }) if reason == "url" => Ok(Created::UrlTaken),
        Err(Error::Refused { reason, .. }) if reason == "full" => Ok(Created::TooMany),
        Err(Error::Refused { .. }) => Ok(Created::OrganizationGone),
        Err(error) => Err(error),
    }
}

macro_rules! change_plugin {
    () => {
        concat!("LET $plugin = $row;", write_plugin!())
    };
}

impl Row for PluginRow {
    type Id = PluginId;
    type With = NewSource;
    const TABLE: &'static str = "plugin";
    const UPDATE: &'static str = "plugins update";
    const TEXT: &'static str = update_text!(change_plugin!());

    fn touch(&mut self, now: Timestamp) {
        self.updated_at = now;
        self.revision = ids::time_ordered(now);
    }

    fn plugin_changes(&self) -> Vec<PluginChange> {
        vec![PluginChange::Plugin(self.id)]
    }

    fn bind(&self, source: NewSource, vars: &mut Variables) -> Result<()> {
        vars.insert("groups", groups(self));
        vars.insert("build", stored_build(&source)?);
        vars.insert("files", changed_files(source.change));
        Ok(())
    }
}

// Running copies need not be loaded again because of this, so the revision stays.
const NOTE_LATEST: Statement = Statement::write(
    "plugins note latest",
    "UPDATE type::record('plugin', $plugin) SET
         latest_tag = $tag ?? latest_tag, latest_tag_checked_at = $now
         WHERE organization = $organization RETURN NONE;",
);

/// Stores the newest version of a plugin of this organization that its host reports, and
/// when it was requested of the host.
///
/// # Errors
/// Any failure of the store.
pub async fn note_latest(
    store: &Store,
    organization: OrganizationId,
    plugin: PluginId,
    tag: Option<&str>,
    now: Timestamp,
) -> Result<()> {
    let vars = bind! {
        organization: organization.0,
        plugin: plugin.0,
        tag: tag.map(str::to_owned),
        now: now.micros(),
    };
    store.db.run(NOTE_LATEST, vars).await.map(drop)
}

/// Removes the plugin `$plugin` (its number) of `$organization`, with its source and its
/// configs in all organizations. Used by the transactions that do this.
macro_rules! remove_plugin {
    () => {
        concat!(
            crate::plugin_configs::remove_configs_of_plugin!(),
            "LET $address = (SELECT VALUE url FROM ONLY type::record('plugin', $plugin));
             IF $address != NONE {
                 DELETE type::record('plugin_url', [$organization, $address]) RETURN NONE;
             };
             DELETE plugin_file:[$plugin]..=[$plugin, ..] RETURN NONE;
             DELETE type::record('plugin_build', $plugin) RETURN NONE;
             DELETE type::record('global_plugin', $plugin) RETURN NONE;
             DELETE type::record('org_plugin', [$organization, $plugin]) RETURN NONE;
             DELETE type::record('plugin', $plugin) RETURN NONE;"
        )
    };
}

/// Removes all plugins of the organization `$organization`.
macro_rules! remove_plugins {
    () => {
        concat!(
            "FOR $plugin IN (SELECT VALUE record::id(id)[1]
                             FROM org_plugin:[$organization]..=[$organization, ..]) {",
            crate::plugins::remove_plugin!(),
            "};"
        )
    };
}
pub(crate) use {remove_plugin, remove_plugins};

const DELETE: Statement = Statement::delete(
    "plugins delete",
    concat!(
        "BEGIN;
         LET $row = (SELECT organization, is_global FROM ONLY type::record('plugin', $plugin));
         IF $row != NONE AND $row.organization = $organization {
             IF $row.is_global { THROW 'global' };
             LET $present = (SELECT VALUE revision FROM (
                 SELECT VALUE type::record('plugin_config', record::id(id)[1])
                 FROM plugin_use:[$plugin]..=[$plugin, ..]));
             IF $present != $configs { THROW 'stale' };",
        remove_plugin!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
)
.within(std::time::Duration::from_secs(30));

/// The result of deleting a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// The plugin is deleted.
    Yes,
    /// It is offered to all organizations. Nothing was written.
    IsGlobal,
    /// Its configs have changed since they were read. Nothing was written.
    Stale,
}

/// Deletes a plugin of this organization with its source and its configs. `configs` are
/// the configs as they were read; `activities` has audit entries for them too. Does
/// nothing when the plugin is already deleted.
///
/// # Errors
/// Any failure of the store.
pub async fn delete(
    store: &Store,
    organization: OrganizationId,
    plugin: PluginId,
    configs: &[ConfigBrief],
    activities: &[Entry],
) -> Result<Deleted> {
    let mut changes: Vec<PluginChange> =
        configs.iter().map(|row| PluginChange::Project(row.project)).collect();
    changes.push(PluginChange::Plugin(plugin));
    let notification = store.plugin_changes.pending(changes);
    let configs: Vec<Uuid> = configs.iter().map(|row| row.revision).collect();
    let vars = bind! { organization: organization.0, plugin: plugin.0, configs: configs };
    match activity::change_holding(store, DELETE, vars, activities, notification).await {
        Ok(_) => Ok(Deleted::Yes),
        Err(Error::Refused { reason, .. }) if reason == "global" => Ok(Deleted::IsGlobal),
        Err(Error::Refused { .. }) => Ok(Deleted::Stale),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
