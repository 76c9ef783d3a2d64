//! Audit entries about configs that are deleted with their plugin, or with the
//! organization of the plugin.

use weir_model::activity::{AuditAction, Entry, Subject};
use weir_store::plugin_configs::{self as rows, ConfigBrief};
use weir_store::plugins::{self as plugin_rows, PluginRow};

use crate::activity::{self, About, Changes};
use crate::ctx::OrgCtx;
use crate::{Core, Result};

/// The audit entries for other organizations about configs that are deleted with the
/// plugins of this organization.
pub(crate) async fn gone_elsewhere(core: &Core, org: &OrgCtx) -> Result<Vec<Entry>> {
    let own = plugin_rows::own(&core.store, org.organization).await?;
    let mut entries = Vec::new();
    // One at a time: large records must not keep the organization from being deleted.
    for id in own {
        let plugin = plugin_rows::rows(&core.store, &[id]).await?.into_iter().next();
        if let Some(plugin) = plugin.filter(|plugin| plugin.was_global) {
            let mut configs = rows::briefs_of_plugin(&core.store, plugin.id).await?;
            configs.retain(|row| row.organization != org.organization);
            entries.extend(gone_with(org, &plugin, &configs));
        }
    }
    Ok(entries)
}

/// The audit entries about configs that are deleted with their plugin by its
/// organization. Each entry is for the organization of the config. In another
/// organization the entry names the service as the actor, so that it does not reveal
/// the members of this one.
pub(crate) fn gone_with(org: &OrgCtx, plugin: &PluginRow, configs: &[ConfigBrief]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for row in configs {
        let name = row.name.as_deref().or(plugin.name.as_deref());
        let mut tell = |action, changes| {
            let (subject, id) = (Subject::PluginConfig, row.id.to_string());
            let about = About { subject, id, name, project: Some(row.project) };
            entries.push(if row.organization == org.organization {
                activity::entry(&org.ctx, row.organization, about, action, changes)
            } else {
                activity::own_entry(org.ctx.now, row.organization, about, action, changes)
            });
        };
        if row.enabled {
            tell(AuditAction::Disabled, Changes::none().field("enabled", &true, &false));
        }
        tell(AuditAction::Deleted, Changes::none().field("name", &name, &None));
    }
    entries
}
