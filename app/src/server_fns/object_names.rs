//! Names of the objects that addresses lead to, for the breadcrumb.

use leptos::prelude::*;
#[cfg(feature = "ssr")]
use weir_service::{Ctx, OrgCtx, ProjectCtx, Services};

#[cfg(feature = "ssr")]
use crate::context::enter;
use crate::error::UiError;

/// Finds the name of the object at an address. `None`: it has no name, it does not exist, or
/// the user may not see it. A failure here does not fail the page.
#[server(prefix = "/_fn", endpoint = "find_object_name")]
pub(crate) async fn find_object_name(path: String) -> Result<Option<String>, UiError> {
    let (services, ctx) = enter()?;
    let parts: Vec<String> = path.split('/').skip(1).map(crate::local_path::decode_part).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let name = named(&services, &ctx, &parts).await;
    Ok(name.filter(|name| !name.trim().is_empty()))
}

/// The name of the object at the parts of a path.
#[cfg(feature = "ssr")]
async fn named(services: &Services, ctx: &Ctx, parts: &[&str]) -> Option<String> {
    match *parts {
        ["projects", id, ref rest @ ..] => {
            let project = services.projects.enter(ctx, id).await.ok()?;
            in_project(services, &project, rest).await
        }
        ["organizations", id, ref rest @ ..] => {
            let org = services.organizations.enter(ctx, id).await.ok()?;
            in_organization(services, &org, rest).await
        }
        ["account", "keys", id] => {
            let id = weir_model::KeyId(id.to_owned());
            Some(services.keys.get(ctx, &id).await.ok()?.label)
        }
        ["help", page] => Some(crate::help::page(page)?.title),
        ["instance", "organizations", id] => {
            let (organization, _) = services.limits.organization(ctx, id).await.ok()?;
            Some(organization.name)
        }
        _ => None,
    }
}

#[cfg(feature = "ssr")]
async fn in_project(services: &Services, project: &ProjectCtx, parts: &[&str]) -> Option<String> {
    use super::plugin_configs::views::ConfigLine;

    match *parts {
        ["persons", id] => {
            let id = id.parse().ok()?;
            match services.persons.get(project, id).await {
                Ok(person) => Some(weir_service::persons::display_name(&person)),
                Err(_) => {
                    let erasure = services.persons.erasure(project, id).await.ok()?;
                    erasure.map(|_| super::persons::DELETED.to_owned())
                }
            }
        }
        ["groups", group_type, key] => {
            let group = services.groups.get(project, group_type, key).await.ok();
            let name = group.and_then(|group| super::groups::name_in(&group.properties));
            Some(name.unwrap_or_else(|| key.to_owned()))
        }
        ["insights", insight] => {
            let found = services.insights.get(project, insight).await.ok()?;
            Some(super::insights::name_of(&found))
        }
        ["dashboards", dashboard] => {
            Some(services.dashboards.get(project, dashboard).await.ok()?.brief.name)
        }
        ["transformations" | "plugins", config] => {
            let stage = services.plugin_configs.stage(project, config).await.ok()?;
            Some(ConfigLine::from(stage).name)
        }
        _ => None,
    }
}

#[cfg(feature = "ssr")]
async fn in_organization(services: &Services, org: &OrgCtx, parts: &[&str]) -> Option<String> {
    use super::plugins::views::name_of;

    match *parts {
        ["exports", export] => Some(services.exports.get(org.into(), export).await.ok()?.name),
        ["plugins", _, plugin] => {
            let found = services.plugins.get_listed(org, plugin).await.ok()?;
            Some(name_of(&found.plugin))
        }
        ["domains", domain] => Some(services.domains.get(org, domain).await.ok()?.domain.domain),
        _ => None,
    }
}
