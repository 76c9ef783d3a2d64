//! Configs of a project with the data that pages show next to them.
//!
//! What belongs here: reading. What does not: changes (`changes`), and running plugins
//! (`weir-plugins`).

use std::collections::BTreeSet;

use weir_model::plugin_configs::PluginConfig;
use weir_model::plugins::{Plugin, transforms};
use weir_model::{PluginConfigId, PluginId};
use weir_store::plugin_configs::{self as rows, ConfigRow};
use weir_store::plugins as plugin_rows;

use super::health::{self, Numbers};
use super::{PluginConfigs, plugins_of, shown};
use crate::ctx::ProjectCtx;
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};
use crate::{Result, plugins};

/// A config with its plugin and its results.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// The config.
    pub config: PluginConfig,
    /// The plugin that the config uses.
    pub plugin: Plugin,
    /// Whether it changes events before they are stored.
    pub transforms: bool,
    /// Its results in the last 24 hours.
    pub numbers: Numbers,
}

/// How many configs of a project failed in the last 24 hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Failing {
    /// Configs that change events before they are stored.
    pub transformations: usize,
    /// All other configs: of destinations and apps.
    pub others: usize,
}

impl PluginConfigs {
    /// The configs of the project in their order, with hidden ones; none where the
    /// organization is not allowed to configure plugins.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn stages(&self, project: &ProjectCtx) -> Result<Vec<Stage>> {
        policy::check(&project.org, Action::ReadPlugins)?;
        if !self.may_configure(&project.org).await? {
            return Ok(Vec::new());
        }
        let store = &self.core.store;
        let listed = rows::positions(store, project.project).await?;
        let ids: Vec<PluginConfigId> = listed.into_iter().map(|one| one.id).collect();
        self.with_plugins(rows::rows(store, project.project, &ids).await?).await
    }

    /// How many configs of the project failed in the last 24 hours. None where the
    /// organization may not configure plugins, as in [`Self::stages`].
    ///
    /// # Errors
    /// [`Error::MissingScope`]; any failure of the store.
    pub async fn failing(&self, project: &ProjectCtx) -> Result<Failing> {
        policy::check(&project.org, Action::ReadPlugins)?;
        if !self.may_configure(&project.org).await? {
            return Ok(Failing::default());
        }
        let mut listed = rows::positions(&self.core.store, project.project).await?;
        listed.retain(|one| !one.deleted);
        let ids: Vec<PluginConfigId> = listed.iter().map(|one| one.id).collect();
        let numbers = health::numbers(&self.core, &ids).await?;
        listed.retain(|one| numbers.get(&one.id).is_some_and(|numbers| numbers.failed > 0));
        let plugins = listed.iter().map(|one| one.plugin).collect();
        let transforming = self.transforming(plugins).await?;
        let (transformations, others): (Vec<&rows::Position>, Vec<_>) =
            listed.iter().partition(|one| transforming.contains(&one.plugin));
        Ok(Failing { transformations: transformations.len(), others: others.len() })
    }

    /// One config, also a hidden one.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn stage(&self, project: &ProjectCtx, config: &str) -> Result<Stage> {
        let row = self.readable(project, config).await?;
        let stage = self.with_plugins(vec![row]).await?.into_iter().next();
        stage.ok_or(Error::NotFound(NOT_FOUND))
    }

    /// Why the caller is not allowed to change configs; `None`: the caller is allowed
    /// to.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; any failure of the store.
    pub async fn why_not_change(&self, project: &ProjectCtx) -> Result<Option<String>> {
        match policy::check(&project.org, Action::WritePlugins) {
            Ok(()) => {}
            Err(Error::Forbidden(why)) => return Ok(Some(why)),
            Err(error) => return Err(error),
        }
        Ok((!self.may_configure(&project.org).await?).then(|| plugins::NO_ACCESS.to_owned()))
    }

    /// The position after all configs of the project.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn last_order(&self, project: &ProjectCtx) -> Result<i64> {
        policy::check(&project.org, Action::ReadPlugins)?;
        let listed = rows::positions(&self.core.store, project.project).await?;
        let last = listed.into_iter().filter(|one| !one.deleted).map(|one| one.order).max();
        // A position that is out of range is refused when it is stored.
        Ok(last.map_or(1, |last| last.saturating_add(1)))
    }

    /// The transformations of the project that are not hidden, in their order.
    pub(super) async fn transformations(
        &self,
        project: &ProjectCtx,
    ) -> Result<Vec<PluginConfigId>> {
        let mut listed = rows::positions(&self.core.store, project.project).await?;
        listed.retain(|one| !one.deleted);
        let plugins = listed.iter().map(|one| one.plugin).collect();
        let transforming = self.transforming(plugins).await?;
        listed.retain(|one| transforming.contains(&one.plugin));
        Ok(listed.into_iter().map(|one| one.id).collect())
    }

    /// Those of the plugins that change events before they are stored.
    async fn transforming(&self, plugins: BTreeSet<PluginId>) -> Result<BTreeSet<PluginId>> {
        let mut transforming = BTreeSet::new();
        // One at a time: only the capabilities are needed, and records may be large.
        for id in plugins {
            let found = plugin_rows::rows(&self.core.store, &[id]).await?.into_iter();
            let of_these = found.filter(|row| transforms(row.capabilities.as_ref()));
            transforming.extend(of_these.map(|row| row.id));
        }
        Ok(transforming)
    }

    async fn with_plugins(&self, found: Vec<ConfigRow>) -> Result<Vec<Stage>> {
        let ids: Vec<PluginConfigId> = found.iter().map(|row| row.id).collect();
        let numbers = health::numbers(&self.core, &ids).await?;
        let records = plugins_of(&self.core, &found).await?.into_values().collect();
        let records = plugins::shown(&self.core, records).await?;
        let stage = |config: PluginConfig| {
            let plugin = records.iter().find(|record| record.id == config.plugin)?.clone();
            Some(Stage {
                transforms: transforms(plugin.fields.capabilities.as_ref()),
                numbers: numbers.get(&config.id).copied().unwrap_or_default(),
                plugin,
                config,
            })
        };
        Ok(shown(&self.core, &found).await?.into_iter().filter_map(stage).collect())
    }
}
