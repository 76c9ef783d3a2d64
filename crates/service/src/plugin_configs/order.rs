//! Changing the order of a project's configs (PLG-15).

use std::collections::HashMap;

use weir_model::PluginConfigId;
use weir_model::activity::AuditAction;
use weir_model::errors::FieldError;
use weir_model::plugin_configs::{PluginConfigOrder, RearrangeInput, SingleMove};
use weir_store::ids;
use weir_store::plugin_configs::{self as rows, ConfigRow, Move, Position};

use super::{PluginConfigs, TRIES, audit_entry, name, no_plugin, overtaken, plugins_of, shown};
use crate::Result;
use crate::activity::Changes;
use crate::ctx::ProjectCtx;
use crate::error::Error;
use crate::policy::{self, Action};
use crate::unchecked::Unchecked;

/// The maximum number of configs that a fault lists.
const LISTED: usize = 20;

/// The error code for a concurrent change of the order.
pub const ORDER_CHANGED: &str = "order_changed";

impl PluginConfigs {
    /// Changes the positions of configs. Unknown and hidden configs are skipped. A
    /// single move must name one config by its plugin; where several configs use the
    /// plugin, also by its id or name.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope);
    /// [`Error::Invalid`](crate::Error::Invalid), also where the organization is not
    /// allowed to configure plugins.
    pub async fn rearrange(
        &self,
        project: &ProjectCtx,
        input: impl Into<Unchecked<'_, RearrangeInput>>,
    ) -> Result<PluginConfigOrder> {
        policy::check(&project.org, Action::WritePlugins)?;
        let input = input.into().read()?;
        self.require_access(&project.org).await?;
        for _ in 0..TRIES {
            let mut listed = rows::positions(&self.core.store, project.project).await?;
            listed.retain(|position| !position.deleted);
            let mut orders: HashMap<PluginConfigId, i64> = input.orders.iter().copied().collect();
            if let Some(single) = &input.single {
                orders.insert(self.only(project, &listed, single).await?, single.order);
            }
            let present: HashMap<PluginConfigId, i64> =
                listed.iter().map(|position| (position.id, position.order)).collect();
            orders.retain(|id, order| present.get(id).is_some_and(|present| present != order));
            if orders.is_empty() || self.moved(project, &orders).await? {
                let all = self.listed(project).await?;
                let found = rows::rows(&self.core.store, project.project, &all).await?;
                return Ok(PluginConfigOrder::of(
                    project.project,
                    shown(&self.core, &found).await?,
                ));
            }
        }
        Err(overtaken())
    }

    /// Sets the order of the project's transformations to `wanted`, if the order is
    /// still `seen`, which the caller has read.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope);
    /// [`Error::Conflict`](crate::Error::Conflict) when the order or the configs have
    /// changed since; [`Error::Invalid`](crate::Error::Invalid) when both orders do not
    /// contain the same configs, and where the organization is not allowed to configure
    /// plugins.
    pub async fn reorder(
        &self,
        project: &ProjectCtx,
        seen: &[PluginConfigId],
        wanted: &[PluginConfigId],
    ) -> Result<()> {
        policy::check(&project.org, Action::WritePlugins)?;
        self.require_access(&project.org).await?;
        let sorted = |ids: &[PluginConfigId]| {
            let mut ids = ids.to_vec();
            ids.sort_unstable();
            ids
        };
        if sorted(seen) != sorted(wanted) {
            let detail = "The new order must name the same transformations as the old one.";
            return Err(FieldError::body("invalid_input", detail).into());
        }
        let orders: HashMap<PluginConfigId, i64> = wanted.iter().copied().zip(1..).collect();
        for _ in 0..TRIES {
            if self.transformations(project).await? != seen {
                return Err(Error::Conflict {
                    code: ORDER_CHANGED,
                    detail: "The order was changed meanwhile.".to_owned(),
                });
            }
            if self.moved(project, &orders).await? {
                return Ok(());
            }
        }
        Err(overtaken())
    }

    /// Stores the new positions. `false`: one of the configs was changed concurrently.
    async fn moved(
        &self,
        project: &ProjectCtx,
        orders: &HashMap<PluginConfigId, i64>,
    ) -> Result<bool> {
        let (store, now) = (&self.core.store, project.org.ctx.now);
        let mut ids: Vec<PluginConfigId> = orders.keys().copied().collect();
        ids.sort_unstable();
        let found = rows::rows(store, project.project, &ids).await?;
        let plugins = plugins_of(&self.core, &found).await?;
        let (mut moves, mut entries) = (Vec::new(), Vec::new());
        for row in &found {
            let (Some(order), Some(plugin)) = (orders.get(&row.id), plugins.get(&row.plugin))
            else {
                continue;
            };
            if row.order == *order {
                continue;
            }
            let after = ConfigRow { order: *order, ..row.clone() };
            moves.push(Move {
                id: row.id,
                order: *order,
                before: row.revision,
                after: ids::time_ordered(now),
            });
            let changes = Changes::none().field("order", &row.order, order);
            entries.push(audit_entry(project, &after, plugin, AuditAction::OrderChanged, changes));
        }
        if moves.is_empty() {
            return Ok(true);
        }
        Ok(rows::rearrange(store, project.project, &moves, now, &entries).await?)
    }

    /// The config of a single move.
    async fn only(
        &self,
        project: &ProjectCtx,
        listed: &[Position],
        single: &SingleMove,
    ) -> Result<PluginConfigId> {
        let of_plugin: Vec<PluginConfigId> = listed
            .iter()
            .filter(|position| position.plugin == single.plugin)
            .map(|position| position.id)
            .collect();
        match (of_plugin.as_slice(), single.id) {
            ([], _) => return Err(no_plugin(single.plugin).into()),
            ([one], None) => return Ok(*one),
            (_, Some(id)) if of_plugin.contains(&id) => return Ok(id),
            _ => {}
        }
        let found = rows::rows(&self.core.store, project.project, &of_plugin).await?;
        let plugins = plugins_of(&self.core, &found).await?;
        let named = |row: &ConfigRow| {
            let name = plugins.get(&row.plugin).and_then(|plugin| name(row, plugin));
            (row.id, name.unwrap_or_default().to_owned())
        };
        let names: Vec<(PluginConfigId, String)> = found.iter().map(named).collect();
        let (attr, wanted) = match (single.id, &single.name) {
            (Some(_), _) => ("id", None),
            (None, Some(name)) => ("name", Some(name)),
            (None, None) => ("plugin", None),
        };
        let mut of_name = names.iter().filter(|(_, name)| Some(name) == wanted);
        if let (Some((one, _)), None) = (of_name.next(), of_name.next()) {
            return Ok(*one);
        }
        let list: Vec<String> =
            names.iter().take(LISTED).map(|(id, name)| format!("{id} ({name})")).collect();
        let more = if names.len() > LISTED { ", …" } else { "" };
        let detail = format!(
            "The project has these configs of this plugin: {}{more}. Say which one with its `id` \
             or, where it has a name of its own, its `name`; or use `orders`.",
            list.join(", ")
        );
        Err(FieldError::new(attr, "invalid_input", detail).into())
    }
}
