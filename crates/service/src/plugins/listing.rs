//! The lists of plugins on pages of the app, and the use of one plugin.
//!
//! What belongs here: data that pages need beyond the operations of the API. What does
//! not: rules (`plugins`), which this module calls.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::activity::{Activity, Entry, Subject};
use weir_model::pagination::{Page, Paged};
use weir_model::plugins::{Group, Plugin, PluginList};
use weir_model::{PluginConfigId, PluginId, ProjectId};
use weir_store::plugin_configs as config_rows;
use weir_store::plugins::{self as rows, PluginRow};

use super::{Plugins, shown};
use crate::ctx::OrgCtx;
use crate::error::{Error, NOT_FOUND};
use crate::{Result, activity, policy};

/// A plugin on a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedPlugin {
    /// The plugin.
    pub plugin: Plugin,
    /// The group of the API for requests about it.
    pub group: Group,
    /// The list that shows it; the first one of several.
    pub plugin_list: PluginList,
    /// Whether it belongs to the organization.
    pub is_own: bool,
    /// Whether the organization owns it and no enabled config uses it.
    pub is_unused: bool,
}

/// A config that uses a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginUse {
    /// The config.
    pub config: PluginConfigId,
    /// The config's own name, if it has one.
    pub name: Option<String>,
    /// The project of the config.
    pub project: ProjectId,
    /// Whether its project has it switched on.
    pub enabled: bool,
    /// Whether it is hidden from lists.
    pub deleted: bool,
}

/// Which configs use a plugin, as far as the caller may see them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PluginUses {
    /// The configs of the organization's projects that the caller sees.
    pub here: Vec<PluginUse>,
    /// The number of configs in other organizations; 0 for a plugin of another
    /// organization.
    pub elsewhere: usize,
}

impl Plugins {
    /// The plugins of a list, by id.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Forbidden`] when the organization is not
    /// allowed to see plugins.
    pub async fn find_listed(
        &self,
        org: &OrgCtx,
        plugin_list: PluginList,
    ) -> Result<Vec<ListedPlugin>> {
        self.may_read(org).await?;
        let store = &self.core.store;
        let groups = match plugin_list {
            PluginList::Transformations => Group::ALL.to_vec(),
            PluginList::Destinations | PluginList::FrontendApps | PluginList::ImportApps => {
                vec![plugin_list.group()]
            }
        };
        let mut found: BTreeMap<PluginId, Group> = BTreeMap::new();
        let mut unused: BTreeSet<PluginId> = BTreeSet::new();
        for group in groups {
            for id in rows::visible(store, org.organization, group).await? {
                found.entry(id).or_insert(group);
            }
            unused.extend(rows::unused(store, org.organization, group).await?);
        }
        let ids: Vec<PluginId> = found.keys().copied().collect();
        let mut listed = rows::rows(store, &ids).await?;
        listed.retain(|row| plugin_list.shows(row.capabilities.as_ref()));
        let plugins = shown(&self.core, listed).await?;
        let to_listed = |plugin: Plugin| {
            let group = found.get(&plugin.id).copied()?;
            let is_own = plugin.fields.organization_id == Some(org.organization);
            let is_unused = unused.contains(&plugin.id);
            Some(ListedPlugin { plugin, group, plugin_list, is_own, is_unused })
        };
        Ok(plugins.into_iter().filter_map(to_listed).collect())
    }

    /// A plugin with the list that shows it.
    ///
    /// # Errors
    /// As [`Self::find_listed`]; [`Error::NotFound`].
    pub async fn get_listed(&self, org: &OrgCtx, plugin: &str) -> Result<ListedPlugin> {
        self.may_read(org).await?;
        let row = self.seen(org, plugin).await?;
        let groups = row.groups();
        let group = groups.first().copied().ok_or(Error::NotFound(NOT_FOUND))?;
        let of_group = |plugin_list: &PluginList| {
            *plugin_list == PluginList::Transformations || groups.contains(&plugin_list.group())
        };
        let shows = |plugin_list: &PluginList| {
            of_group(plugin_list) && plugin_list.shows(row.capabilities.as_ref())
        };
        let plugin_list =
            PluginList::ALL.into_iter().find(shows).unwrap_or(PluginList::Destinations);
        let is_own = row.organization == org.organization;
        let unused = rows::unused(&self.core.store, org.organization, group).await?;
        let is_unused = unused.contains(&row.id);
        Ok(ListedPlugin { plugin: self.show(row).await?, group, plugin_list, is_own, is_unused })
    }

    /// Why the caller is not allowed to install plugins; `None`: the caller is allowed
    /// to.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; any failure of the store.
    pub async fn why_not_install(&self, org: &OrgCtx) -> Result<Option<String>> {
        refusal(self.may_install(org).await)
    }

    /// Why the caller is not allowed to change a plugin; `None`: the caller is allowed
    /// to.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`]; any failure of the store.
    pub async fn why_not_change(
        &self,
        org: &OrgCtx,
        listed: &ListedPlugin,
    ) -> Result<Option<String>> {
        let id = listed.plugin.id.to_string();
        refusal(self.changeable(org, listed.group, &id, false).await)
    }

    /// Whether the caller may offer plugins to all organizations.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; any failure of the store.
    pub async fn offers(&self, org: &OrgCtx) -> Result<bool> {
        Ok(refusal(self.may_offer(org).await)?.is_none())
    }

    /// The configs that use a plugin, with hidden ones.
    ///
    /// # Errors
    /// As [`Self::get_listed`].
    pub async fn uses(&self, org: &OrgCtx, plugin: &str) -> Result<PluginUses> {
        self.may_read(org).await?;
        let row = self.seen(org, plugin).await?;
        let mut uses = PluginUses::default();
        for config in config_rows::briefs_of_plugin(&self.core.store, row.id).await? {
            if config.organization != org.organization {
                uses.elsewhere += usize::from(row.organization == org.organization);
            } else if policy::project_in_limits(&org.ctx, config.organization, config.project) {
                uses.here.push(PluginUse {
                    config: config.id,
                    name: config.name,
                    project: config.project,
                    enabled: config.enabled,
                    deleted: config.deleted,
                });
            }
        }
        Ok(uses)
    }

    /// The audit entries about a plugin in this organization, newest first.
    ///
    /// # Errors
    /// As [`Self::get_listed`].
    pub async fn history(&self, org: &OrgCtx, plugin: &str, page: Page) -> Result<Paged<Activity>> {
        self.may_read(org).await?;
        let id = self.seen(org, plugin).await?.id.to_string();
        let wanted = |entry: &Entry| entry.scope == Subject::Plugin && entry.item_id == id;
        let (count, found) = activity::search(&self.core, org.organization, page, wanted).await?;
        Ok(Paged { count, results: activity::shown(&self.core, found).await? })
    }

    /// The plugin with this id that the organization sees in any group.
    async fn seen(&self, org: &OrgCtx, plugin: &str) -> Result<PluginRow> {
        let missing = || Error::NotFound(NOT_FOUND);
        let id = PluginId::in_path(plugin).ok_or_else(missing)?;
        rows::get(&self.core.store, org.organization, id).await?.ok_or_else(missing)
    }
}

/// Why something is not allowed; `None`: it is allowed.
fn refusal<T>(permission: Result<T>) -> Result<Option<String>> {
    match permission {
        Ok(_) => Ok(None),
        Err(Error::Forbidden(why)) => Ok(Some(why)),
        Err(error) => Err(error),
    }
}
