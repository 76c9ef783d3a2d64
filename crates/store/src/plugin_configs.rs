//! Transformation configs of projects, their attachments and their waiting jobs.
//!
//! What belongs here: statements about the tables below. What does not: which configs are
//! valid, sealing (`weir-service`); plugin records (`plugins`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `plugin_config` | config | the record; `secrets` is sealed |
//! | `project_plugin_config` | `[project, config]` | the fields that sorting and counting need |
//! | `plugin_use` | `[plugin, config]` | a [`Use`]: the uses of a plugin |
//! | `org_plugin_use` | `[organization, plugin, config]` | a [`Use`]: the uses by an organization |
//! | `plugin_attachment` | uid | the contents of an attachment, sealed |
//! | `plugin_job` | `[config, job]` | a job that waits to be run, oldest first |
//! | `plugin_job_due` | `[time, job]` | the config: the jobs by the time when they are due |
//!
//! The pointers repeat `enabled`, `deleted` and the position of the record.
//! `write_config!` writes all of them. Only [`rearrange`] and
//! `plugin_runtime::switch_off` write some of them too.

pub mod jobs;
mod rows;

use surrealdb::types::{SurrealValue, Variables};
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::{OrganizationId, PluginConfigId, PluginId, ProjectId, Timestamp};

pub use self::rows::{AttachmentRow, ConfigBrief, ConfigRow, Contents, Move, Position, Use};
use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::{Operation, Statement};
use crate::error::is_done;
use crate::memory_budget::RECORDS_PER_STATEMENT;
use crate::plugin_runtime::PluginChange;
use crate::update::{Row, update_text};
use crate::{Error, Result, Store, ids, lists};

const NEXT_NUMBER: Statement = Statement::write(
    "plugin configs next number",
    "RETURN sequence::nextval('plugin_config_number');",
);

/// A number that no config has.
///
/// # Errors
/// Any failure of the store.
pub async fn next_number(store: &Store) -> Result<PluginConfigId> {
    let number = store.db.run(NEXT_NUMBER, bind! {}).await?.row(0)?;
    number
        .map(PluginConfigId)
        .ok_or_else(|| Error::Shape { statement: NEXT_NUMBER.name, detail: "no number".to_owned() })
}

const POSITIONS: Statement = Statement::read(
    "plugin configs positions",
    "SELECT record::id(id)[1] AS config, plugin, position, deleted
     FROM project_plugin_config:[$project]..=[$project, ..];",
);

/// The configs of a project, including hidden ones, in the order of the list: by `order`,
/// then by plugin, then by age.
///
/// # Errors
/// Any failure of the store.
pub async fn positions(store: &Store, project: ProjectId) -> Result<Vec<Position>> {
    let mut found = store.db.run(POSITIONS, bind! { project: project.0 }).await?;
    let mut positions: Vec<Position> = found.rows(0)?;
    positions.sort_by_key(|position| (position.order, position.plugin, position.id));
    Ok(positions)
}

/// Configs of a project, in the order of `ids`; missing configs and those of other
/// projects are skipped.
///
/// # Errors
/// Any failure of the store.
pub async fn rows(
    store: &Store,
    project: ProjectId,
    ids: &[PluginConfigId],
) -> Result<Vec<ConfigRow>> {
    let mut found = all_rows(store, ids).await?;
    found.retain(|row| row.project == project);
    Ok(found)
}

/// Configs of an organization, in the order of `ids`.
///
/// # Errors
/// Any failure of the store.
pub async fn rows_of_organization(
    store: &Store,
    organization: OrganizationId,
    ids: &[PluginConfigId],
) -> Result<Vec<ConfigRow>> {
    let mut found = all_rows(store, ids).await?;
    found.retain(|row| row.organization == organization);
    Ok(found)
}

/// A config of any project, for callers that check more than its id.
///
/// # Errors
/// Any failure of the store.
pub async fn find(store: &Store, id: PluginConfigId) -> Result<Option<ConfigRow>> {
    Ok(all_rows(store, &[id]).await?.into_iter().next())
}

async fn all_rows(store: &Store, ids: &[PluginConfigId]) -> Result<Vec<ConfigRow>> {
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    let found = lists::records(store, "plugin_config", ids).await?;
    Ok(found.into_iter().flatten().collect())
}

const OF_PLUGIN: Statement = Statement::read(
    "plugin configs of a plugin",
    "SELECT * FROM plugin_use:[$plugin]..=[$plugin, ..];",
);

/// The configs of a plugin in all organizations, oldest first.
///
/// # Errors
/// Any failure of the store.
pub async fn of_plugin(store: &Store, plugin: PluginId) -> Result<Vec<Use>> {
    let mut answer = store.db.run(OF_PLUGIN, bind! { plugin: plugin.0 }).await?;
    answer.rows(0)
}

const BRIEFS: Operation = Operation::read("plugin configs briefs");

/// The configs of a plugin in all organizations, without their values.
///
/// # Errors
/// Any failure of the store.
pub async fn briefs_of_plugin(store: &Store, plugin: PluginId) -> Result<Vec<ConfigBrief>> {
    let uses = of_plugin(store, plugin).await?;
    let mut briefs = Vec::with_capacity(uses.len());
    // The fields are small, so that the number of configs is the only bound of this list.
    for some in uses.chunks(RECORDS_PER_STATEMENT) {
        let ids: Vec<i64> = some.iter().map(|one| one.config.0).collect();
        let found = lists::parts(store, BRIEFS, "plugin_config", ids).await?;
        briefs.extend(found.into_iter().flatten());
    }
    Ok(briefs)
}

const OF_ORGANIZATION: Statement = Statement::read(
    "plugin configs of an organization",
    "SELECT * FROM org_plugin_use:[$organization]..=[$organization, ..];",
);

/// The configs of an organization's projects, by plugin.
///
/// # Errors
/// Any failure of the store.
pub async fn of_organization(store: &Store, organization: OrganizationId) -> Result<Vec<Use>> {
    let mut answer = store.db.run(OF_ORGANIZATION, bind! { organization: organization.0 }).await?;
    answer.rows(0)
}

#[derive(Debug, SurrealValue)]
struct StoredAttachment {
    organization: Uuid,
    contents: String,
}

/// The sealed contents of attachments of an organization, in the order of `uids`; `None`
/// where one is missing.
///
/// # Errors
/// Any failure of the store.
pub async fn attached(
    store: &Store,
    organization: OrganizationId,
    uids: &[Uuid],
) -> Result<Vec<Option<String>>> {
    let found = lists::records::<StoredAttachment>(store, "plugin_attachment", uids.to_vec());
    let own = |one: StoredAttachment| (one.organization == organization.0).then_some(one.contents);
    Ok(found.await?.into_iter().map(|one| one.and_then(own)).collect())
}

/// Writes the config `$config` with its pointers. Adds the contents `$added` of
/// attachments, and removes those of `$dropped`. Throws `enabled` when the project has
/// `$most` other enabled configs. Writing the project's record makes two changes of one
/// project conflict, so that both are counted, and makes them conflict with its deletion.
macro_rules! write_config {
    () => {
        "LET $of = (UPDATE type::record('project', $config.project)
                    SET plugin_configs = (plugin_configs ?? 0) + 1 RETURN VALUE organization);
         IF $of != [$config.organization] { THROW 'gone' };
         IF $config.enabled {
             LET $enabled = (SELECT VALUE record::id(id)[1] FROM
                 project_plugin_config:[$config.project]..=[$config.project, ..] WHERE enabled);
             IF $enabled CONTAINSNOT $config.number AND count($enabled) >= $most {
                 THROW 'enabled'
             };
         };
         UPSERT type::record('project_plugin_config', [$config.project, $config.number]) CONTENT {
             plugin: $config.plugin, position: $config.position,
             enabled: $config.enabled, deleted: $config.deleted,
         } RETURN NONE;
         LET $use = {
             config: $config.number, plugin: $config.plugin,
             organization: $config.organization, project: $config.project,
             enabled: $config.enabled, deleted: $config.deleted,
         };
         UPSERT type::record('plugin_use', [$config.plugin, $config.number])
             CONTENT $use RETURN NONE;
         UPSERT type::record('org_plugin_use',
                             [$config.organization, $config.plugin, $config.number])
             CONTENT $use RETURN NONE;
         FOR $contents IN $added {
             UPSERT type::record('plugin_attachment', $contents.uid) CONTENT {
                 organization: $config.organization, contents: $contents.sealed,
             } RETURN NONE;
         };
         FOR $uid IN $dropped { DELETE type::record('plugin_attachment', $uid) RETURN NONE; };"
    };
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Throws `plugin` when the organization of `$config` does not see its plugin. The
/// transaction checks this, because a plugin can be withdrawn from other organizations at
/// any time. It writes the plugin's record, so that it conflicts with its deletion: no
/// config is left without a plugin.
macro_rules! require_plugin {
    () => {
        "LET $found = (UPDATE type::record('plugin', $config.plugin)
                       SET configs = (configs ?? 0) + 1 RETURN AFTER);
         IF $found = [] { THROW 'plugin' };
         LET $plugin = $found[0];
         IF $plugin.organization != $config.organization AND $plugin.is_global != true {
             LET $home = $config.organization;
             LET $used = $config.plugin;
             LET $uses = (SELECT VALUE deleted
                          FROM org_plugin_use:[$home, $used]..=[$home, $used, ..]);
             IF $uses CONTAINSNOT false { THROW 'plugin' };
         };"
    };
}

// `write_config!` makes two concurrent ones conflict, so both are counted.
const CREATE: Statement = Statement::write(
    "plugin configs create",
    concat!(
        "BEGIN;
         LET $present = (SELECT VALUE revision
                         FROM ONLY type::record('plugin_config', $config.number));
         IF $present != $config.revision {",
        require_plugin!(),
        "LET $others = (SELECT VALUE deleted FROM
             project_plugin_config:[$config.project]..=[$config.project, ..]);
         IF array::len($others) >= $room { THROW 'full' };",
        write_config!(),
        "UPSERT type::record('plugin_config', $config.number) CONTENT $config RETURN NONE;",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// The result of creating a config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The config is stored.
    Yes,
    /// The project is deleted.
    NoProject,
    /// The plugin is deleted, or not visible to the organization.
    NoPlugin,
    /// The project has as many enabled configs as allowed.
    TooManyEnabled,
    /// The project has as many configs as allowed, including hidden ones.
    TooMany,
}

/// Adds a config. A project may have `room` configs, of which `most` may be enabled.
///
/// # Errors
/// Any failure of the store.
pub async fn create(
    store: &Store,
    row: &ConfigRow,
    added: &[Contents],
    room: usize,
    most: usize,
    activities: &[Entry],
) -> Result<Created> {
    let vars = bind! {
        config: row.clone(),
        added: added.to_vec(),
        dropped: Vec::<Uuid>::new(),
        room: number(room),
        most: number(most),
    };
    let pending = store.notification_of(row.project);
    match activity::change_holding(store, CREATE, vars, activities, pending).await {
        Ok(_) => Ok(Created::Yes),
        Err(Error::Refused { reason, .. }) => Ok(match reason.as_str() {
            "plugin" => Created::NoPlugin,
            "enabled" => Created::TooManyEnabled,
            "full" => Created::TooMany,
            _ => Created::NoProject,
        }),
        Err(error) => Err(error),
    }
}

/// What is written beside a changed config.
#[derive(Debug, Clone, Default)]
pub struct NewContents {
    /// The contents of added attachments.
    pub added: Vec<Contents>,
    /// The attachments that are removed.
    pub dropped: Vec<Uuid>,
    /// How many configs of the project may be enabled.
    pub most: usize,
}

/// The word that refuses a change: the project has as many enabled configs as allowed.
pub const TOO_MANY_ENABLED: &str = "enabled";
/// The word that refuses a change: the organization does not see the plugin.
pub const NO_PLUGIN: &str = "plugin";

// A hidden config makes no plugin visible, so showing it again needs the same check as
// creating it. A change clears the last fault.
macro_rules! change_config {
    () => {
        concat!(
            "LET $config = $row;
             IF $present.deleted = true AND $config.deleted = false {",
            require_plugin!(),
            "};",
            write_config!(),
            "UPDATE type::record('plugin_health', $config.number) SET fault = NONE RETURN NONE;"
        )
    };
}

impl Row for ConfigRow {
    type Id = PluginConfigId;
    type With = NewContents;
    const TABLE: &'static str = "plugin_config";
    const UPDATE: &'static str = "plugin configs update";
    const TEXT: &'static str = update_text!(change_config!());

    fn touch(&mut self, now: Timestamp) {
        self.updated_at = now;
        self.revision = ids::time_ordered(now);
    }

    fn plugin_changes(&self) -> Vec<PluginChange> {
        vec![PluginChange::Project(self.project)]
    }

    fn bind(&self, contents: NewContents, vars: &mut Variables) -> Result<()> {
        vars.insert("added", contents.added);
        vars.insert("dropped", contents.dropped);
        vars.insert("most", number(contents.most));
        Ok(())
    }
}

// All moves or none. The first move shows whether this is a retry.
const REARRANGE: Statement = Statement::write(
    "plugin configs rearrange",
    concat!(
        "BEGIN;
         LET $present = (SELECT VALUE revision
                         FROM ONLY type::record('plugin_config', $moves[0].config));
         IF $present != $moves[0].after {
             FOR $move IN $moves {
                 LET $row = (SELECT project, revision
                             FROM ONLY type::record('plugin_config', $move.config));
                 IF $row.revision != $move.before OR $row.project != $project {
                     THROW 'stale'
                 };
                 UPDATE type::record('plugin_config', $move.config)
                     SET position = $move.position, updated_at = $now, revision = $move.after
                     RETURN NONE;
                 UPDATE type::record('project_plugin_config', [$project, $move.config])
                     SET position = $move.position RETURN NONE;
             };",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Changes the positions of configs of a project, all or none. `false`: another caller has
/// changed one of them since it was read, and nothing was written.
///
/// # Errors
/// Any failure of the store.
pub async fn rearrange(
    store: &Store,
    project: ProjectId,
    moves: &[Move],
    now: Timestamp,
    activities: &[Entry],
) -> Result<bool> {
    let vars = bind! { project: project.0, moves: moves.to_vec(), now: now.micros() };
    let pending = store.notification_of(project);
    is_done(activity::change_holding(store, REARRANGE, vars, activities, pending).await)
}

/// Removes the config `$plugin_config` with its pointers, attachments, jobs and runtime
/// data. Used by the transactions that do this; does nothing when it is already deleted.
macro_rules! remove_plugin_config {
    () => {
        concat!(
            "LET $config_row = (SELECT organization, project, plugin, attachments
                                FROM ONLY type::record('plugin_config', $plugin_config));
             IF $config_row != NONE {
                 FOR $attachment IN $config_row.attachments {
                     DELETE type::record('plugin_attachment', $attachment.uid) RETURN NONE;
                 };
                 FOR $job IN (SELECT uuid, run_at
                              FROM plugin_job:[$plugin_config]..=[$plugin_config, ..]) {
                     DELETE type::record('plugin_job_due', [$job.run_at, $job.uuid])
                         RETURN NONE;
                 };
                 DELETE plugin_job:[$plugin_config]..=[$plugin_config, ..] RETURN NONE;",
            crate::plugin_runtime::remove_runtime!(),
            "DELETE type::record('project_plugin_config',
                     [$config_row.project, $plugin_config]) RETURN NONE;
                 DELETE type::record('plugin_use', [$config_row.plugin, $plugin_config])
                     RETURN NONE;
                 DELETE type::record('org_plugin_use',
                     [$config_row.organization, $config_row.plugin, $plugin_config])
                     RETURN NONE;
                 DELETE type::record('plugin_config', $plugin_config) RETURN NONE;
             };"
        )
    };
}
pub(crate) use remove_plugin_config;

/// Removes all configs of the project `$project`.
macro_rules! remove_configs_of_project {
    () => {
        concat!(
            "FOR $plugin_config IN (SELECT VALUE record::id(id)[1] FROM
                 project_plugin_config:[$project]..=[$project, ..]) {",
            crate::plugin_configs::remove_plugin_config!(),
            "};"
        )
    };
}
pub(crate) use remove_configs_of_project;

/// Removes all configs of the plugin `$plugin`, in all organizations.
macro_rules! remove_configs_of_plugin {
    () => {
        concat!(
            "FOR $plugin_config IN (SELECT VALUE record::id(id)[1] FROM
                 plugin_use:[$plugin]..=[$plugin, ..]) {",
            crate::plugin_configs::remove_plugin_config!(),
            "};"
        )
    };
}
pub(crate) use remove_configs_of_plugin;

const DELETE: Statement = Statement::delete(
    "plugin configs delete",
    concat!(
        "BEGIN;
         LET $row = (SELECT project, revision
                     FROM ONLY type::record('plugin_config', $plugin_config));
         IF $row != NONE AND $row.project = $project {
             IF $row.revision != $before { THROW 'stale' };",
        remove_plugin_config!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Deletes a config of this project, whose revision was `before` when it was read, with
/// its attachments and jobs. Does nothing when it is already deleted. `false`: another
/// caller has changed it since, and nothing was written.
///
/// # Errors
/// Any failure of the store.
pub async fn delete(
    store: &Store,
    project: ProjectId,
    config: PluginConfigId,
    before: Uuid,
    activities: &[Entry],
) -> Result<bool> {
    let vars = bind! { project: project.0, plugin_config: config.0, before: before };
    let pending = store.notification_of(project);
    is_done(activity::change_holding(store, DELETE, vars, activities, pending).await)
}
