//! Answers about many plugins (PLG-7, PLG-12). Every answer also has the form of a
//! plugin record: of the first plugin in it, else of the newest one that the group
//! shows.

use std::collections::BTreeSet;

use weir_model::PluginId;
use weir_model::activity::{Entry, Subject};
use weir_model::pagination::{Page, Paged};
use weir_model::plugin_configs::PluginConfig;
use weir_model::plugins::overview::{CatalogueEntry, PluginActivity};
use weir_model::plugins::{Group, PluginShape, has_method};
use weir_store::plugin_configs as uses_of;
use weir_store::plugins::{self as rows, PluginRow};

use super::{Plugins, catalogue, shown};
use crate::ctx::OrgCtx;
use crate::{Result, activity, current, plugin_configs};

/// The number of plugins that are in memory at a time, where only a part of them is
/// needed.
const AT_A_TIME: usize = 16;

impl Plugins {
    /// The audit entries about the organization's plugins, and about the configs of the
    /// caller's current project, newest first.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope);
    /// [`Error::Forbidden`](crate::Error::Forbidden) when the organization is not
    /// allowed to see plugins.
    pub async fn activity(
        &self,
        org: &OrgCtx,
        group: Group,
        page: Page,
    ) -> Result<(PluginShape, Paged<PluginActivity>)> {
        self.may_read(org).await?;
        let project = current::project(&self.core, &org.ctx).await?;
        let project = project.filter(|row| row.brief.organization == org.organization);
        let project = project.map(|row| row.brief.id);
        let wanted = |entry: &Entry| match entry.scope {
            Subject::Plugin => true,
            Subject::PluginConfig => entry.team_id.is_some() && entry.team_id == project,
            _ => false,
        };
        let (count, found) = activity::search(&self.core, org.organization, page, wanted).await?;
        let entries = activity::shown(&self.core, found).await?;
        let results: Vec<PluginActivity> = entries.into_iter().map(PluginActivity::from).collect();
        let first = results.iter().find(|entry| entry.scope == Subject::Plugin);
        let first = first.and_then(|entry| PluginId::in_path(&entry.item_id));
        Ok((self.about(org, group, first).await?, Paged { count, results }))
    }

    /// The configs of the organization that cause costs: the enabled ones, except those
    /// of plugins that are offered to all and change events, and of plugins without
    /// capabilities.
    ///
    /// # Errors
    /// As [`Self::activity`].
    pub async fn exports_unsubscribe_configs(
        &self,
        org: &OrgCtx,
        group: Group,
        page: Page,
    ) -> Result<(PluginShape, Paged<PluginConfig>)> {
        self.may_read(org).await?;
        let store = &self.core.store;
        let mut uses = uses_of::of_organization(store, org.organization).await?;
        uses.retain(|one| one.enabled && !one.deleted);
        let plugins: BTreeSet<PluginId> = uses.iter().map(|one| one.plugin).collect();
        let plugins: Vec<PluginId> = plugins.into_iter().collect();
        let mut counted: BTreeSet<PluginId> = BTreeSet::new();
        for some in plugins.chunks(AT_A_TIME) {
            let found = rows::rows(store, some).await?.into_iter().filter(does_something);
            counted.extend(found.map(|row| row.id));
        }
        uses.retain(|one| counted.contains(&one.plugin));
        let count = uses.len() as u64;
        let uses = page.slice(uses);
        let first = uses.first().map(|one| one.plugin);
        let results = plugin_configs::of_uses(&self.core, org.organization, &uses).await?;
        Ok((self.about(org, group, first).await?, Paged { count, results }))
    }

    /// The catalogue of plugins that can be installed.
    ///
    /// # Errors
    /// As [`Self::activity`].
    pub async fn repository(
        &self,
        org: &OrgCtx,
        group: Group,
        page: Page,
    ) -> Result<(PluginShape, Paged<CatalogueEntry>)> {
        self.may_read(org).await?;
        Ok((self.about(org, group, None).await?, page.of(catalogue::entries())))
    }

    /// The organization's own plugins of a group that no enabled config of any
    /// organization uses, so that they can be deleted without effect.
    ///
    /// # Errors
    /// As [`Self::activity`].
    pub async fn unused(
        &self,
        org: &OrgCtx,
        group: Group,
        page: Page,
    ) -> Result<(PluginShape, Paged<PluginId>)> {
        self.may_read(org).await?;
        let store = &self.core.store;
        let found = page.of(rows::unused(store, org.organization, group).await?);
        Ok((self.about(org, group, found.results.first().copied()).await?, found))
    }

    /// The record of an answer: this plugin, if the organization sees it.
    async fn about(
        &self,
        org: &OrgCtx,
        group: Group,
        plugin: Option<PluginId>,
    ) -> Result<PluginShape> {
        let store = &self.core.store;
        let mut found = match plugin {
            Some(plugin) => rows::get(store, org.organization, plugin).await?,
            None => None,
        };
        if found.is_none() {
            let newest = rows::visible(store, org.organization, group).await?.pop();
            let newest: Vec<PluginId> = newest.into_iter().collect();
            found = rows::rows(store, &newest).await?.into_iter().next();
        }
        let record = shown(&self.core, found.into_iter().collect()).await?.into_iter().next();
        Ok(record.into())
    }
}

/// Whether configs of this plugin cause costs.
fn does_something(row: &PluginRow) -> bool {
    let capabilities = row.capabilities.as_ref();
    let can_do = capabilities.is_some_and(|capabilities| !capabilities.is_empty());
    can_do && !(row.is_global && has_method(capabilities, "processEvent"))
}
