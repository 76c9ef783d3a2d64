//! Plugin records: reading, changing and removing them (PLG-1, PLG-5). Modules below add
//! them (`create`), change their source (`source`) and fetch newer code (`upgrade`).
//!
//! What belongs here: which plugins an organization sees, who may do what with them, and
//! which fields a change sets. What does not: configs (`plugin_configs`); running plugins,
//! and fetching and inspecting their code (`weir-plugins`, called through `code`).
//!
//! Two conditions apply in addition to the key's scope: the organization's access to
//! plugins ([`PluginsAccess`]), and the organization of the plugin.

pub(crate) mod catalogue;
pub mod code;
mod create;
mod install;
mod listing;
mod overview;
mod source;
mod upgrade;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::errors::FieldError;
use weir_model::pagination::{Page, Paged};
use weir_model::plugins::{Group, Plugin, PluginFields, PluginPatch, PluginsAccess};
use weir_model::{OrganizationId, PluginId};
use weir_store::plugin_configs as config_rows;
use weir_store::plugins::{self as rows, Deleted, NewSource, PluginRow};
use weir_store::update::{Change, update_with};
use weir_store::{organizations, users};

use crate::activity::{self, About, Changes};
use crate::ctx::OrgCtx;
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};
use crate::{Core, Result, plugin_configs, update};

use code::PluginCode;
pub use listing::{ListedPlugin, PluginUse, PluginUses};
pub use source::Source;
pub use upgrade::Checked;

/// The message when an organization's access to plugins is not sufficient.
pub const NO_ACCESS: &str = "What your organization may do with plugins does not include this.";
/// The message for changing a plugin of another organization.
pub const OF_OTHER_ORGANIZATION: &str = "This plugin belongs to another organization.";
/// The message for offering plugins to all organizations.
pub const MAY_NOT_OFFER: &str = "You may not offer plugins to all organizations.";
/// The message for an address that is installed already.
pub const URL_TAKEN: &str = "The organization has a plugin from this address already.";
/// The message for deleting a plugin that is offered to all organizations.
pub const STILL_OFFERED: &str =
    "The plugin is offered to all organizations. Set is_global to false before deleting it.";
/// Attempts to delete a plugin: a concurrent change of its configs ends one.
const ATTEMPTS: usize = 5;

/// The service for plugin records.
#[derive(Clone)]
pub struct Plugins {
    core: Arc<Core>,
    code: Arc<dyn PluginCode>,
}

/// A plugin that the caller may change, and the group in the URL of the request.
#[derive(Debug)]
pub struct Changeable(PluginRow, Group);

impl Plugins {
    pub(crate) fn new(core: Arc<Core>, code: Arc<dyn PluginCode>) -> Self {
        Self { core, code }
    }

    /// The plugins that the organization sees in a group, by id.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Forbidden`] when the organization is not
    /// allowed to see plugins.
    pub async fn list(&self, org: &OrgCtx, group: Group, page: Page) -> Result<Paged<Plugin>> {
        self.may_read(org).await?;
        let ids = rows::visible(&self.core.store, org.organization, group).await?;
        let count = ids.len() as u64;
        let found = rows::rows(&self.core.store, &page.slice(ids)).await?;
        Ok(Paged { count, results: shown(&self.core, found).await? })
    }

    /// One plugin.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Forbidden`]; [`Error::NotFound`], also
    /// when it is not in this group.
    pub async fn get(&self, org: &OrgCtx, group: Group, plugin: &str) -> Result<Plugin> {
        self.may_read(org).await?;
        let row = self.find(org, group, plugin).await?;
        self.show(row).await
    }

    /// Refuses a caller who is not allowed to install plugins.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Forbidden`] when the organization is not
    /// allowed to install plugins.
    pub async fn may_install(&self, org: &OrgCtx) -> Result<PluginsAccess> {
        policy::check(org, Action::WritePlugins)?;
        require(&self.core, org.organization, PluginsAccess::Install).await
    }

    /// The plugin with this id, for changing or deleting it. `names_global`: the change
    /// says whether all organizations may use it.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::NotFound`]; [`Error::Forbidden`] when the
    /// organization is not allowed to install plugins, when the plugin belongs to
    /// another organization, when the change names `is_global` and the organization is
    /// not allowed to offer plugins, or when the caller is not allowed to offer plugins
    /// and this one is offered, or was and others still use it.
    pub async fn changeable(
        &self,
        org: &OrgCtx,
        group: Group,
        plugin: &str,
        names_global: bool,
    ) -> Result<Changeable> {
        let access = self.may_install(org).await?;
        let row = self.find(org, group, plugin).await?;
        if row.organization != org.organization {
            return Err(Error::Forbidden(OF_OTHER_ORGANIZATION.to_owned()));
        }
        if names_global && access < PluginsAccess::Root {
            return Err(Error::Forbidden(MAY_NOT_OFFER.to_owned()));
        }
        self.may_change(org, &row).await?;
        Ok(Changeable(row, group))
    }

    /// Changes a plugin. Its capabilities decide which other groups show it from now
    /// on.
    ///
    /// # Errors
    /// [`Error::Invalid`], also when its capabilities belong to another group;
    /// [`Error::Forbidden`] for a caller who is not allowed to offer plugins to all
    /// organizations; [`Error::NotFound`] when it was deleted at the same time.
    pub async fn update(
        &self,
        org: &OrgCtx,
        changeable: Changeable,
        patch: PluginPatch,
    ) -> Result<Plugin> {
        let is_global = patch.is_global.clone().required("is_global")?;
        let (Changeable(found, group), patch) = (changeable, &patch);
        let change = |before: PluginRow| async move {
            require_owner(org, &before)?;
            match is_global {
                Some(true) => self.may_offer(org).await?,
                Some(false) | None => self.may_change(org, &before).await?,
            }
            let after = patched(&before, patch.clone(), is_global);
            let changes = changes(Some(&before), &after);
            let mut entries = Vec::new();
            if !changes.is_empty() {
                source::refuse_lost_group(group, &before, &after, "capabilities")?;
                entries.push(audit_entry(org, &after, AuditAction::Updated, changes));
            }
            let none = NewSource::default();
            Ok((update::change(before, after, org.ctx.now, entries, none), ()))
        };
        let (row, ()) = self.write_change(found.id, change).await?;
        self.show(row).await
    }

    /// Writes a change of a plugin. A concurrent change makes it compute the change again.
    async fn write_change<T, F: Future<Output = Result<(Change<PluginRow>, T)>>>(
        &self,
        plugin: PluginId,
        change: impl Fn(PluginRow) -> F,
    ) -> Result<(PluginRow, T)> {
        update::stored(update_with(&self.core.store, plugin, (), change).await?)
    }

    /// Deletes a plugin with its source and its configs, in all organizations. Each
    /// organization gets the audit entries about its own configs.
    ///
    /// # Errors
    /// [`Error::Invalid`] while it is offered to all organizations.
    pub async fn delete(&self, org: &OrgCtx, changeable: Changeable) -> Result<()> {
        let Changeable(row, _) = changeable;
        let store = &self.core.store;
        for _ in 0..ATTEMPTS {
            let configs = config_rows::briefs_of_plugin(store, row.id).await?;
            let mut entries = plugin_configs::gone_with(org, &row, &configs);
            let gone = Changes::none().field("name", &row.name.as_ref(), &None);
            entries.push(audit_entry(org, &row, AuditAction::Uninstalled, gone));
            match rows::delete(store, org.organization, row.id, &configs, &entries).await? {
                Deleted::Yes => return Ok(()),
                Deleted::IsGlobal => {
                    return Err(FieldError::body("invalid_input", STILL_OFFERED).into());
                }
                Deleted::Stale => {}
            }
        }
        Err(busy())
    }

    /// The plugin with this id, if the organization owns it: for actions that treat
    /// plugins of others as not found.
    async fn own(
        &self,
        org: &OrgCtx,
        group: Group,
        plugin: &str,
        action: Action,
    ) -> Result<Changeable> {
        policy::check(org, action)?;
        require(&self.core, org.organization, PluginsAccess::Install).await?;
        let row = self.find(org, group, plugin).await?;
        require_owner(org, &row)?;
        Ok(Changeable(row, group))
    }

    async fn may_read(&self, org: &OrgCtx) -> Result<()> {
        policy::check(org, Action::ReadPlugins)?;
        require(&self.core, org.organization, PluginsAccess::Config).await.map(drop)
    }

    /// Refuses a caller who is not allowed to offer plugins to all organizations, or
    /// change one that is offered. The organization's access is not enough: every user
    /// can create an organization, and an offered plugin runs on the events of others.
    async fn may_offer(&self, org: &OrgCtx) -> Result<()> {
        let access = self.may_install(org).await?;
        let caller = users::get(&self.core.store, org.ctx.user()).await?;
        if access < PluginsAccess::Root || !caller.is_some_and(|user| user.is_staff) {
            return Err(Error::Forbidden(MAY_NOT_OFFER.to_owned()));
        }
        Ok(())
    }

    /// Refuses to change a plugin that other organizations run, if the caller is not
    /// allowed to offer plugins: it is offered, or was and their configs still use it.
    async fn may_change(&self, org: &OrgCtx, row: &PluginRow) -> Result<()> {
        if row.is_global || (row.was_global && self.others_use(row).await?) {
            self.may_offer(org).await?;
        }
        Ok(())
    }

    /// Whether a config of another organization that is not hidden uses a plugin.
    async fn others_use(&self, row: &PluginRow) -> Result<bool> {
        let uses = config_rows::of_plugin(&self.core.store, row.id).await?;
        Ok(uses.iter().any(|one| one.organization != row.organization && !one.deleted))
    }

    /// The plugin with this id that the organization sees in this group.
    async fn find(&self, org: &OrgCtx, group: Group, plugin: &str) -> Result<PluginRow> {
        let missing = || Error::NotFound(NOT_FOUND);
        let id = PluginId::in_path(plugin).ok_or_else(missing)?;
        let found = rows::get(&self.core.store, org.organization, id).await?;
        found.filter(|row| row.groups().contains(&group)).ok_or_else(missing)
    }

    /// A plugin of the organization, read again after it was written.
    async fn read_again(&self, org: &OrgCtx, id: PluginId) -> Result<PluginRow> {
        let found = rows::get(&self.core.store, org.organization, id).await?;
        let row = found.ok_or(Error::NotFound(NOT_FOUND))?;
        require_owner(org, &row)?;
        Ok(row)
    }

    async fn show(&self, row: PluginRow) -> Result<Plugin> {
        let shown = shown(&self.core, vec![row]).await?.into_iter().next();
        shown.ok_or(Error::NotFound(NOT_FOUND))
    }
}

fn busy() -> Error {
    Error::Unavailable("other requests are changing the plugin")
}

/// Refuses an organization whose access to plugins is not sufficient; returns its
/// access.
pub(crate) async fn require(
    core: &Core,
    organization: OrganizationId,
    least: PluginsAccess,
) -> Result<PluginsAccess> {
    let access = organizations::plugins_access(&core.store, organization).await?;
    if access < least {
        return Err(Error::Forbidden(NO_ACCESS.to_owned()));
    }
    Ok(access)
}

/// Plugins as the API shows them, with the names of their organizations.
pub(crate) async fn shown(core: &Core, rows: Vec<PluginRow>) -> Result<Vec<Plugin>> {
    let owners: BTreeSet<OrganizationId> = rows.iter().map(|row| row.organization).collect();
    let owners: Vec<OrganizationId> = owners.into_iter().collect();
    let names = organizations::names(&core.store, &owners).await?;
    let show = |row: PluginRow| Plugin {
        id: row.id,
        fields: PluginFields {
            plugin_type: row.plugin_type,
            name: row.name,
            description: row.description,
            url: row.url,
            icon: row.icon,
            config_schema: row.config_schema,
            tag: row.tag,
            latest_tag: row.latest_tag,
            is_global: row.is_global,
            organization_id: Some(row.organization),
            organization_name: names.get(&row.organization).cloned(),
            capabilities: row.capabilities,
            metrics: row.metrics,
            public_jobs: row.public_jobs,
        },
    };
    Ok(rows.into_iter().map(show).collect())
}

fn patched(before: &PluginRow, patch: PluginPatch, is_global: Option<bool>) -> PluginRow {
    let before = before.clone();
    let is_global = is_global.unwrap_or(before.is_global);
    PluginRow {
        plugin_type: patch.plugin_type.over(before.plugin_type),
        name: patch.name.over(before.name),
        description: patch.description.over(before.description),
        icon: patch.icon.over(before.icon),
        config_schema: patch.config_schema.over(before.config_schema),
        tag: patch.tag.over(before.tag),
        is_global,
        was_global: before.was_global || is_global,
        capabilities: patch.capabilities.over(before.capabilities),
        metrics: patch.metrics.over(before.metrics),
        public_jobs: patch.public_jobs.over(before.public_jobs),
        ..before
    }
}

/// Hides a plugin that another organization owns.
fn require_owner(org: &OrgCtx, row: &PluginRow) -> Result<()> {
    (row.organization == org.organization).then_some(()).ok_or(Error::NotFound(NOT_FOUND))
}

/// The changed fields for the audit entry, in the order of the resource.
fn changes(before: Option<&PluginRow>, after: &PluginRow) -> Changes {
    fn with_field<T: Serialize>(
        changes: Changes,
        name: &str,
        rows: (Option<&PluginRow>, &PluginRow),
        field: impl Fn(&PluginRow) -> &Option<T>,
    ) -> Changes {
        changes.field(name, &rows.0.and_then(|row| field(row).as_ref()), &field(rows.1).as_ref())
    }
    let rows = (before, after);
    let changes = with_field(Changes::none(), "plugin_type", rows, |row| &row.plugin_type);
    let changes = with_field(changes, "name", rows, |row| &row.name);
    let changes = with_field(changes, "description", rows, |row| &row.description);
    let changes = with_field(changes, "url", rows, |row| &row.url);
    let changes = with_field(changes, "icon", rows, |row| &row.icon);
    let changes = with_field(changes, "config_schema", rows, |row| &row.config_schema);
    let changes = with_field(changes, "tag", rows, |row| &row.tag);
    let is_global = before.map(|row| row.is_global);
    let changes = changes.field("is_global", &is_global, &Some(after.is_global));
    let changes = with_field(changes, "capabilities", rows, |row| &row.capabilities);
    let changes = with_field(changes, "metrics", rows, |row| &row.metrics);
    with_field(changes, "public_jobs", rows, |row| &row.public_jobs)
}

fn audit_entry(org: &OrgCtx, row: &PluginRow, action: AuditAction, changes: Changes) -> Entry {
    let about = About {
        subject: Subject::Plugin,
        id: row.id.to_string(),
        name: row.name.as_deref().or(row.url.as_deref()),
        project: None,
    };
    activity::entry(&org.ctx, row.organization, about, action, changes)
}

#[cfg(test)]
mod tests;
