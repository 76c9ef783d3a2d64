//! Plugin records: installing, changing and removing them, and their source (PLG-1,
//! PLG-5).
//!
//! What belongs here: which plugins an organization sees, who may do what with them,
//! the meaning of a change. What does not: configs (`plugin_configs`); running plugins,
//! and fetching and inspecting their code (`weir-plugins`, called through `code`).
//!
//! Two conditions apply in addition to the key's scope: the organization's access to
//! plugins ([`PluginsAccess`]), and the organization of the plugin.

pub(crate) mod catalogue;
pub mod code;
mod install;
mod listing;
mod overview;
mod source;
mod upgrade;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::errors::FieldError;
use weir_model::pagination::{Page, Paged};
use weir_model::plugins::address::CodeSource;
use weir_model::plugins::{
    Group, PLUGINS_MAX, Plugin, PluginFields, PluginInput, PluginPatch, PluginType, PluginsAccess,
};
use weir_model::{OrganizationId, PluginId};
use weir_store::plugin_configs as config_rows;
use weir_store::plugins::{self as rows, Created, Deleted, NewSource, PluginRow};
use weir_store::update::{Change, update_with};
use weir_store::{ids, organizations, users};

use crate::activity::{self, About, Changes};
use crate::ctx::OrgCtx;
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};
use crate::sealing::{self, SealedField};
use crate::{Core, Result, plugin_configs, update};

use code::PluginCode;
pub use listing::{ListedPlugin, PluginUse, PluginUses};
pub use source::Source;
pub use upgrade::Checked;

/// The message when an organization's access to plugins is not sufficient.
pub const ACCESS: &str = "What your organization may do with plugins does not include this.";
/// The message for changing a plugin of another organization.
pub const FOREIGN: &str = "This plugin belongs to another organization.";
/// The message for offering plugins to all organizations.
pub const OFFERING: &str = "You may not offer plugins to all organizations.";
/// The message for an address that is installed already.
pub const SAME_URL: &str = "The organization has a plugin from this address already.";
/// The message for deleting a plugin that is offered to all organizations.
pub const IS_GLOBAL: &str =
    "The plugin is offered to all organizations. Set is_global to false before deleting it.";
/// How often a change is computed again after a concurrent change.
const TRIES: usize = 5;
/// The name of an address's token in audit entries.
const TOKEN: &str = "private_token";

/// The service for plugin records.
#[derive(Clone)]
pub struct Plugins {
    core: Arc<Core>,
    code: Arc<dyn PluginCode>,
}

/// A plugin that the caller may change, and the group of the request.
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

    /// Adds a plugin, with the code at its address or in its archive. It stays in this
    /// group. A sent field has precedence over the same field from the code.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Forbidden`]; [`Error::SignInAgain`] where
    /// there is code; [`Error::Invalid`], also when there is no usable code, or it
    /// belongs to another group: at `url` or `archive`; and when the organization has the
    /// maximum number of plugins; [`Error::Unavailable`] when many plugins of the caller
    /// wait to be checked already.
    pub async fn create(&self, org: &OrgCtx, group: Group, input: PluginInput) -> Result<Plugin> {
        self.add(org, group, false, input).await
    }

    /// Like [`Self::create`], for pages, which find a plugin in any group: code of
    /// another group is accepted and added there.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub async fn install(&self, org: &OrgCtx, group: Group, input: PluginInput) -> Result<Plugin> {
        self.add(org, group, true, input).await
    }

    async fn add(
        &self,
        org: &OrgCtx,
        group: Group,
        any_group: bool,
        input: PluginInput,
    ) -> Result<Plugin> {
        self.may_install(org).await?;
        let PluginInput { url, archive, fields } = input;
        let is_global = fields.is_global.clone().required("is_global")?.unwrap_or(false);
        if is_global {
            self.may_offer(org).await?;
        }
        if url.is_some() || archive.is_some() {
            policy::recent_if_person(&org.ctx)?;
        }
        let given_token = match &url {
            Some(CodeSource::Address(address)) => address.private_token.as_deref(),
            Some(CodeSource::Catalogue(_)) | None => None,
        };
        let fetched = match (archive, &url) {
            (Some(archive), _) => Some(install::from_archive(&*self.code, archive).await?),
            (None, Some(place)) => {
                Some(install::from_source(&*self.code, place, given_token).await?)
            }
            (None, None) => None,
        };
        let (store, now) = (&self.core.store, org.ctx.now);
        let id = rows::next_number(store).await?;
        let private_token = match given_token {
            None => None,
            Some(token) => {
                let place =
                    sealing::SealedLocation::new(SealedField::PluginToken, id, org.organization);
                Some(self.core.sealer.seal(&place, token.as_bytes()).await?)
            }
        };
        let named = match &url {
            Some(CodeSource::Address(address)) => address.tag.clone(),
            Some(CodeSource::Catalogue(_)) | None => None,
        };
        let kind = fetched.as_ref().map_or(PluginType::Source, |fetched| fetched.kind);
        let empty = || Some(serde_json::Map::new());
        let bare = PluginRow {
            id,
            organization: org.organization,
            created_group: Some(group),
            is_analysed: false,
            plugin_type: Some(kind),
            name: None,
            description: None,
            url: url.as_ref().map(CodeSource::url),
            private_token,
            icon: None,
            config_schema: empty(),
            tag: named,
            latest_tag: None,
            latest_tag_checked_at: None,
            is_global,
            was_global: is_global,
            capabilities: empty(),
            metrics: empty(),
            public_jobs: empty(),
            created_at: now,
            updated_at: now,
            revision: ids::time_ordered(now),
        };
        let mut source = NewSource::default();
        let mut row = match &fetched {
            None => patched(&bare, fields, None),
            Some(fetched) => {
                source.change = fetched.change(&BTreeMap::new())?;
                patched(&upgrade::filled(bare, fetched, now), fields, None)
            }
        };
        if let Some(fetched) = &fetched {
            let user = org.ctx.user();
            let build = install::analyse(&*self.code, user, &mut row, &fetched.files).await?;
            source.build = Some(build);
            if any_group && !row.groups().contains(&group) {
                row.created_group = row.groups().first().copied();
            } else {
                source::begins_in(group, &row, fetched)?;
            }
        }
        let mut changes = changes(None, &row);
        if row.private_token.is_some() {
            changes = changes.secret(TOKEN);
        }
        let installed = audit_entry(org, &row, AuditAction::Installed, changes);
        match rows::create(store, &row, &source, PLUGINS_MAX, &[installed]).await? {
            Created::Yes => self.show(row).await,
            Created::TooMany => {
                let detail = format!(
                    "An organization may have at most {PLUGINS_MAX} plugins. Delete one first."
                );
                Err(FieldError::body("invalid_input", detail).into())
            }
            Created::UrlTaken => Err(FieldError::body("invalid_input", SAME_URL).into()),
            Created::Gone => Err(Error::NotFound(NOT_FOUND)),
        }
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
            return Err(Error::Forbidden(FOREIGN.to_owned()));
        }
        if names_global && access < PluginsAccess::Root {
            return Err(Error::Forbidden(OFFERING.to_owned()));
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
                source::stays_in(group, &before, &after, "capabilities")?;
                entries.push(audit_entry(org, &after, AuditAction::Updated, changes));
            }
            let none = NewSource::default();
            Ok((update::change(before, after, org.ctx.now, entries, none), ()))
        };
        let (row, ()) = self.changed(found.id, change).await?;
        self.show(row).await
    }

    /// Changes a plugin, whose statements refuse nothing.
    async fn changed<T, F: Future<Output = Result<(Change<PluginRow>, T)>>>(
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
        for _ in 0..TRIES {
            let configs = config_rows::briefs_of_plugin(store, row.id).await?;
            let mut entries = plugin_configs::gone_with(org, &row, &configs);
            let gone = Changes::none().field("name", &row.name.as_ref(), &None);
            entries.push(audit_entry(org, &row, AuditAction::Uninstalled, gone));
            match rows::delete(store, org.organization, row.id, &configs, &entries).await? {
                Deleted::Yes => return Ok(()),
                Deleted::IsGlobal => {
                    return Err(FieldError::body("invalid_input", IS_GLOBAL).into());
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
            return Err(Error::Forbidden(OFFERING.to_owned()));
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

    /// A plugin of the organization after a concurrent change.
    async fn again(&self, org: &OrgCtx, id: PluginId) -> Result<PluginRow> {
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
    Error::Unavailable("the plugin is being changed by others")
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
        return Err(Error::Forbidden(ACCESS.to_owned()));
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
    fn note<T: Serialize>(
        changes: Changes,
        name: &str,
        rows: (Option<&PluginRow>, &PluginRow),
        field: impl Fn(&PluginRow) -> &Option<T>,
    ) -> Changes {
        changes.field(name, &rows.0.and_then(|row| field(row).as_ref()), &field(rows.1).as_ref())
    }
    let rows = (before, after);
    let changes = note(Changes::none(), "plugin_type", rows, |row| &row.plugin_type);
    let changes = note(changes, "name", rows, |row| &row.name);
    let changes = note(changes, "description", rows, |row| &row.description);
    let changes = note(changes, "url", rows, |row| &row.url);
    let changes = note(changes, "icon", rows, |row| &row.icon);
    let changes = note(changes, "config_schema", rows, |row| &row.config_schema);
    let changes = note(changes, "tag", rows, |row| &row.tag);
    let is_global = before.map(|row| row.is_global);
    let changes = changes.field("is_global", &is_global, &Some(after.is_global));
    let changes = note(changes, "capabilities", rows, |row| &row.capabilities);
    let changes = note(changes, "metrics", rows, |row| &row.metrics);
    note(changes, "public_jobs", rows, |row| &row.public_jobs)
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
