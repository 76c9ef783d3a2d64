//! Transformation configs of projects: the records, their order, and operations on them
//! (PLG-13, PLG-16).
//!
//! What belongs here: who may do what, the meaning of a change, its audit entries, and
//! what running plugins needs of configs. What does not: running plugins; the forms of
//! settings (`weir_model::plugin_configs::settings`); plugin records (`plugins`).

mod addresses;
mod changes;
mod duplicates;
mod health;
mod jobs;
mod order;
mod pages;
mod pipeline;
mod removal;
mod running;
mod trial;
mod values;

use std::collections::HashMap;
use std::sync::Arc;

use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::errors::FieldError;
use weir_model::pagination::{Page, Paged};
use weir_model::plugin_configs::{
    CONFIGS_MAX, ENABLED_MAX, PluginConfig, PluginConfigInput, PluginConfigPatch, PluginLogEntry,
    Texted,
};
use weir_model::plugins::PluginsAccess;
use weir_model::{OrganizationId, Patch, PluginConfigId, PluginId};
use weir_store::plugin_configs::{
    self as rows, ConfigRow, Created, NO_PLUGIN, NewContents, TOO_MANY_ENABLED, Use,
};
use weir_store::plugin_runtime::logs as log_rows;
use weir_store::plugins::{self as plugin_rows, PluginRow};
use weir_store::update::{Updated, update_with};
use weir_store::{ids, organizations as organization_rows};

use crate::activity::{self, About, Changes};
use crate::ctx::{OrgCtx, ProjectCtx};
use crate::error::{Error, NOT_FOUND};
use crate::plugins::code::PluginCode;
use crate::policy::{self, Action};
use crate::unchecked::Unchecked;
use crate::{Core, Result, plugins, secrets, update};
use changes::Draft;
pub use health::Numbers;
pub use order::ORDER_CHANGED;
pub use pages::SiteScript;
pub use pipeline::{Failing, Stage};
pub(crate) use removal::{gone_elsewhere, gone_with};
pub use running::{OpenedAttachment, OpenedValues, RunningConfigs};
pub use trial::{Sample, Tried};
use values::Opened;
pub use values::on_failure;

/// How often a change is computed again after a concurrent change.
const TRIES: usize = 5;

/// The service for transformation configs.
#[derive(Clone)]
pub struct PluginConfigs {
    core: Arc<Core>,
    code: Arc<dyn PluginCode>,
}

impl PluginConfigs {
    pub(crate) fn new(core: Arc<Core>, code: Arc<dyn PluginCode>) -> Self {
        Self { core, code }
    }

    /// What running plugins may do with configs, over the same state.
    #[must_use]
    pub fn running(&self) -> RunningConfigs {
        RunningConfigs::new(Arc::clone(&self.core))
    }

    /// The configs of the project in their order; none where the organization is not
    /// allowed to configure plugins.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn list(&self, project: &ProjectCtx, page: Page) -> Result<Paged<PluginConfig>> {
        policy::check(&project.org, Action::ReadPlugins)?;
        if !self.may_configure(&project.org).await? {
            return Ok(Paged { count: 0, results: Vec::new() });
        }
        let listed = self.listed(project).await?;
        let count = listed.len() as u64;
        let found = rows::rows(&self.core.store, project.project, &page.slice(listed)).await?;
        Ok(Paged { count, results: shown(&self.core, &found).await? })
    }

    /// One config.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn get(&self, project: &ProjectCtx, config: &str) -> Result<PluginConfig> {
        let row = self.readable(project, config).await?;
        self.show(&row).await
    }

    /// Creates a config.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`]; [`Error::Invalid`], also where the
    /// organization is not allowed to configure plugins, does not see the plugin, or
    /// the project has the maximum number of configs or of enabled ones.
    pub async fn create(
        &self,
        project: &ProjectCtx,
        input: impl Into<Unchecked<'_, PluginConfigInput>>,
    ) -> Result<PluginConfig> {
        policy::check(&project.org, Action::WritePlugins)?;
        let input = input.into().read()?;
        self.require_access(&project.org).await?;
        let (store, org) = (&self.core.store, &project.org);
        let plugin = plugin_rows::get(store, org.organization, input.plugin).await?;
        let plugin = plugin.ok_or_else(|| no_plugin(input.plugin))?;
        let now = org.ctx.now;
        let empty = ConfigRow {
            id: rows::next_number(store).await?,
            organization: org.organization,
            project: project.project,
            plugin: plugin.id,
            enabled: false,
            order: input.order,
            values: "{}".to_owned(),
            secrets: None,
            secret_keys: Vec::new(),
            attachments: Vec::new(),
            name: None,
            description: None,
            deleted: false,
            on_failure: None,
            created_at: now,
            updated_at: now,
            revision: ids::time_ordered(now),
            web_token: secrets::web_token()?,
        };
        let patch = PluginConfigPatch { order: Patch::Keep, ..input.rest };
        let draft = changes::drafted(&self.core, &plugin, None, empty, patch, now).await?;
        let entries = changes::created(project, &plugin, &draft);
        let Draft { row, added, .. } = &draft;
        let outcome = rows::create(store, row, added, CONFIGS_MAX, ENABLED_MAX, &entries);
        match outcome.await? {
            Created::Yes => {
                self.warn_of_duplicates(row, &plugin).await;
                self.show(row).await
            }
            Created::NoProject => Err(Error::NotFound(NOT_FOUND)),
            Created::NoPlugin => Err(no_plugin(input.plugin).into()),
            Created::TooManyEnabled => Err(too_many_enabled()),
            Created::TooMany => Err(too_many()),
        }
    }

    /// Changes a config. Missing secrets stay as they are.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub async fn update(
        &self,
        project: &ProjectCtx,
        config: &str,
        patch: impl Into<Unchecked<'_, PluginConfigPatch>>,
    ) -> Result<PluginConfig> {
        let now = project.org.ctx.now;
        let found = self.writable(project, config).await?;
        let patch = &patch.into().read()?;
        let change = |before: ConfigRow| async move {
            require_place(project, &before)?;
            if patch.plugin.is_some_and(|plugin| plugin != before.plugin) {
                return Err(another_plugin());
            }
            let plugin = self.plugin(&before).await?;
            let opened = Opened::of(&self.core.sealer, &before)?;
            let (row, patch) = (before.clone(), patch.clone());
            let draft =
                changes::drafted(&self.core, &plugin, Some(&opened), row, patch, now).await?;
            let entries = changes::changed(project, &plugin, &before, &opened, &draft);
            let Draft { row, added, dropped, .. } = draft;
            let starts = row.enabled && !before.enabled;
            let with = NewContents { added, dropped, most: ENABLED_MAX };
            Ok((update::change(before, row, now, entries, with), starts.then_some(plugin)))
        };
        match update_with(&self.core.store, found.id, (), change).await? {
            Updated::Stored((row, started)) => {
                if let Some(plugin) = started {
                    self.warn_of_duplicates(&row, &plugin).await;
                }
                self.show(&row).await
            }
            Updated::Refused(reason) if reason == TOO_MANY_ENABLED => Err(too_many_enabled()),
            Updated::Refused(reason) if reason == NO_PLUGIN => Err(not_offered()),
            Updated::Gone | Updated::Refused(_) => Err(Error::NotFound(NOT_FOUND)),
        }
    }

    /// Deletes a config with its attachments and its waiting jobs.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`]; [`Error::Invalid`] where the
    /// organization is not allowed to configure plugins.
    pub async fn delete(&self, project: &ProjectCtx, config: &str) -> Result<()> {
        for _ in 0..TRIES {
            let row = self.writable(project, config).await?;
            let plugin = self.plugin(&row).await?;
            let tell = |action, changes| audit_entry(project, &row, &plugin, action, changes);
            let mut entries = Vec::new();
            if row.enabled {
                let changes = Changes::none().field("enabled", &true, &false);
                entries.push(tell(AuditAction::Disabled, changes));
            }
            let name = name(&row, &plugin);
            entries.push(tell(AuditAction::Deleted, Changes::none().field("name", &name, &None)));
            let (store, before) = (&self.core.store, row.revision);
            if rows::delete(store, project.project, row.id, before, &entries).await? {
                return Ok(());
            }
        }
        Err(overtaken())
    }

    /// The log lines of a config, newest first.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn logs(
        &self,
        project: &ProjectCtx,
        config: &str,
        page: Page,
    ) -> Result<Paged<PluginLogEntry>> {
        let row = self.readable(project, config).await?;
        let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let (offset, limit) = (at(page.offset), at(page.limit));
        let (count, found) = log_rows::page(&self.core.store, row.id, offset, limit).await?;
        let shown = |logged: log_rows::Logged| PluginLogEntry {
            id: logged.id,
            team_id: row.project,
            plugin_id: row.plugin,
            plugin_config_id: row.id,
            timestamp: logged.line.at,
            source: logged.line.source,
            kind: logged.line.level,
            message: logged.line.message,
            instance_id: logged.process,
        };
        Ok(Paged { count, results: found.into_iter().map(shown).collect() })
    }

    /// Ids of the configs that the list shows, in its order.
    async fn listed(&self, project: &ProjectCtx) -> Result<Vec<PluginConfigId>> {
        let positions = rows::positions(&self.core.store, project.project).await?;
        Ok(positions.into_iter().filter(|one| !one.deleted).map(|one| one.id).collect())
    }

    async fn may_configure(&self, org: &OrgCtx) -> Result<bool> {
        let access = organization_rows::plugins_access(&self.core.store, org.organization).await?;
        Ok(access >= PluginsAccess::Config)
    }

    async fn require_access(&self, org: &OrgCtx) -> Result<()> {
        if self.may_configure(org).await? {
            return Ok(());
        }
        let detail = "This organization may not configure plugins.";
        Err(FieldError::body("invalid_input", detail).into())
    }

    async fn readable(&self, project: &ProjectCtx, config: &str) -> Result<ConfigRow> {
        policy::check(&project.org, Action::ReadPlugins)?;
        if !self.may_configure(&project.org).await? {
            return Err(Error::NotFound(NOT_FOUND));
        }
        self.find(project, config).await
    }

    async fn writable(&self, project: &ProjectCtx, config: &str) -> Result<ConfigRow> {
        policy::check(&project.org, Action::WritePlugins)?;
        self.require_access(&project.org).await?;
        self.find(project, config).await
    }

    async fn find(&self, project: &ProjectCtx, config: &str) -> Result<ConfigRow> {
        let missing = || Error::NotFound(NOT_FOUND);
        let id = PluginConfigId::in_path(config).ok_or_else(missing)?;
        let row = rows::find(&self.core.store, id).await?.ok_or_else(missing)?;
        require_place(project, &row)?;
        Ok(row)
    }

    /// The plugin of a config, even if the plugin is no longer offered: an existing
    /// config may still use it.
    async fn plugin(&self, row: &ConfigRow) -> Result<PluginRow> {
        let found = plugin_rows::rows(&self.core.store, &[row.plugin]).await?;
        found.into_iter().next().ok_or(Error::NotFound(NOT_FOUND))
    }

    /// A config with its plugin's record. A hidden config has none, so that it makes no
    /// plugin visible.
    async fn show(&self, row: &ConfigRow) -> Result<PluginConfig> {
        let plugin = self.plugin(row).await?;
        let mut config = values::shown(row, &plugin)?;
        health::tell(&self.core, std::slice::from_mut(&mut config)).await?;
        let visible = match row.deleted {
            true => plugin_rows::get(&self.core.store, row.organization, row.plugin).await?,
            false => Some(plugin),
        };
        let visible: Vec<PluginRow> = visible.into_iter().collect();
        let record = plugins::shown(&self.core, visible).await?.into_iter().next();
        config.fields.plugin_info = record.map(|record| Texted::Value(Box::new(record)));
        Ok(config)
    }
}

/// These configs of an organization, for a list.
pub(crate) async fn of_uses(
    core: &Core,
    organization: OrganizationId,
    uses: &[Use],
) -> Result<Vec<PluginConfig>> {
    let ids: Vec<PluginConfigId> = uses.iter().map(|one| one.config).collect();
    shown(core, &rows::rows_of_organization(&core.store, organization, &ids).await?).await
}

/// Configs without the records of their plugins.
async fn shown(core: &Core, found: &[ConfigRow]) -> Result<Vec<PluginConfig>> {
    let plugins = plugins_of(core, found).await?;
    let show = |row: &ConfigRow| Some(values::shown(row, plugins.get(&row.plugin)?));
    // Configs are deleted with their plugin, so one without a plugin is gone.
    let mut configs = found.iter().filter_map(show).collect::<Result<Vec<PluginConfig>>>()?;
    health::tell(core, &mut configs).await?;
    Ok(configs)
}

async fn plugins_of(core: &Core, found: &[ConfigRow]) -> Result<HashMap<PluginId, PluginRow>> {
    let mut ids: Vec<PluginId> = found.iter().map(|row| row.plugin).collect();
    ids.sort_unstable();
    ids.dedup();
    let plugins = plugin_rows::rows(&core.store, &ids).await?;
    Ok(plugins.into_iter().map(|plugin| (plugin.id, plugin)).collect())
}

/// The display name of a config.
fn name<'a>(row: &'a ConfigRow, plugin: &'a PluginRow) -> Option<&'a str> {
    row.name.as_deref().or(plugin.name.as_deref())
}

/// The audit entry about a config.
fn audit_entry(
    project: &ProjectCtx,
    row: &ConfigRow,
    plugin: &PluginRow,
    action: AuditAction,
    changes: Changes,
) -> Entry {
    let about = About {
        subject: Subject::PluginConfig,
        id: row.id.to_string(),
        name: name(row, plugin),
        project: Some(row.project),
    };
    activity::entry(&project.org.ctx, row.organization, about, action, changes)
}

fn no_plugin(id: PluginId) -> FieldError {
    FieldError::new("plugin", "does_not_exist", format!("Object with id={id} does not exist."))
}

fn another_plugin() -> Error {
    let detail = "The plugin of a config never changes. Make another config.";
    FieldError::new("plugin", "invalid_input", detail).into()
}

fn too_many_enabled() -> Error {
    let detail = format!(
        "At most {ENABLED_MAX} transformations of a project may be enabled. Disable one first."
    );
    FieldError::new("enabled", "invalid_input", detail).into()
}

fn too_many() -> Error {
    let detail = format!(
        "A project may have at most {CONFIGS_MAX} transformation configs, hidden ones too. \
         Delete one first."
    );
    FieldError::body("invalid_input", detail).into()
}

fn not_offered() -> Error {
    let detail = "Its plugin is no longer offered to the organization.";
    FieldError::new("deleted", "invalid_input", detail).into()
}

/// Hides a config of another project or organization.
fn require_place(project: &ProjectCtx, row: &ConfigRow) -> Result<()> {
    let is_there = (row.organization, row.project) == (project.org.organization, project.project);
    is_there.then_some(()).ok_or(Error::NotFound(NOT_FOUND))
}

fn overtaken() -> Error {
    Error::Unavailable("other requests are changing the config")
}

#[cfg(test)]
mod tests;
