//! Putting the configs of a project into another order (plugins 5,
//! "rearrange").

use std::collections::HashMap;

use weir_model::activity::Deed;
use weir_model::errors::FieldError;
use weir_model::plugin_configs::{PluginConfigOrder, RearrangeInput};
use weir_model::{PluginConfigId, PluginId};
use weir_store::ids;
use weir_store::plugin_configs::{self as rows, Changed, ConfigRow, Move, Position};

use super::{PluginConfigs, TRIES, no_plugin, overtaken, plugins_of, shown, told};
use crate::Result;
use crate::activity::Changes;
use crate::ctx::ProjectCtx;
use crate::error::Error;
use crate::policy::{self, Action};

/// The code of a refusal because somebody else put configs into another order.
pub const ORDER_CHANGED: &str = "order_changed";

impl PluginConfigs {
    /// Puts configs into other places. Those that are not there, or hidden, are
    /// passed over; a single move must name a plugin that one config uses.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope);
    /// [`Error::Invalid`](crate::Error::Invalid), also where the organization may
    /// not configure plugins.
    pub async fn rearrange(
        &self,
        project: &ProjectCtx,
        input: &RearrangeInput,
    ) -> Result<PluginConfigOrder> {
        policy::check(&project.org, Action::WritePlugins)?;
        self.require_access(&project.org).await?;
        for _ in 0..TRIES {
            let mut listed = rows::positions(&self.core.store, project.project).await?;
            listed.retain(|position| !position.deleted);
            let orders = wanted(&listed, input)?;
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

    /// Puts the transformations of the project into the order `wanted`, if it is
    /// still the order `seen`, in which whoever asks saw them.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope);
    /// [`Error::Conflict`](crate::Error::Conflict) when another order, or other
    /// configs, are there by now; [`Error::Invalid`](crate::Error::Invalid) when both
    /// are not about the same configs, and where the organization may not configure
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

    /// Stores the new places. `false`: somebody else changed one of the configs.
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
            entries.push(told(project, &after, plugin, Deed::OrderChanged, changes));
        }
        if moves.is_empty() {
            return Ok(true);
        }
        let outcome = rows::rearrange(store, project.project, &moves, now, &entries).await?;
        Ok(outcome == Changed::Yes)
    }
}

/// The new places that differ from the present ones.
fn wanted(
    listed: &[Position],
    input: &RearrangeInput,
) -> Result<HashMap<PluginConfigId, i64>, FieldError> {
    let mut orders: HashMap<PluginConfigId, i64> = input.orders.iter().copied().collect();
    if let Some((plugin, order)) = input.single {
        orders.insert(only(listed, plugin)?, order);
    }
    let present: HashMap<PluginConfigId, i64> =
        listed.iter().map(|position| (position.id, position.order)).collect();
    orders.retain(|id, order| present.get(id).is_some_and(|present| present != order));
    Ok(orders)
}

/// The one config of this plugin.
fn only(listed: &[Position], plugin: PluginId) -> Result<PluginConfigId, FieldError> {
    let mut of_plugin = listed.iter().filter(|position| position.plugin == plugin);
    match (of_plugin.next(), of_plugin.next()) {
        (Some(one), None) => Ok(one.id),
        (None, _) => Err(no_plugin(plugin)),
        (Some(_), Some(_)) => {
            let detail = "The project has several configs of this plugin. Name them in `orders`.";
            Err(FieldError::new("plugin", "invalid_input", detail))
        }
    }
}
