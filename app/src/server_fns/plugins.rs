//! Plugins: lists, details, installing, upgrading, removing.
//!
//! What does not belong here: source code (`source`), and the types that pages show
//! (`views`).

pub(crate) mod source;
pub(crate) mod views;

use leptos::prelude::*;
use weir_model::plugins::PluginList;
#[cfg(feature = "ssr")]
use weir_service::OrgCtx;
#[cfg(feature = "ssr")]
use weir_service::plugins::ListedPlugin;

#[cfg(feature = "ssr")]
use crate::context::{enter_organization, go, notice, redirect_with_notice, ui_error};
use crate::error::UiError;
use views::{AuditEntryView, CatalogueView, PluginDetail, PluginLine, PluginListView, UseView};

/// Limit of audit entries on a plugin's page.
const RECENT_ENTRIES: u64 = 20;

/// The list with this name in addresses.
#[cfg(feature = "ssr")]
pub(crate) fn plugin_list_of(word: &str) -> Result<PluginList, UiError> {
    PluginList::of(word)
        .ok_or_else(|| ui_error(weir_service::Error::NotFound(weir_service::error::NOT_FOUND)))
}

/// The path of a plugin's page.
pub(crate) fn plugin_path(organization: &str, plugin_list: &str, plugin: &str) -> String {
    format!("/organizations/{organization}/plugins/{plugin_list}/{plugin}")
}

/// The organization, and the plugin with this id.
#[cfg(feature = "ssr")]
pub(super) async fn enter_plugin(
    organization: &str,
    plugin: &str,
) -> Result<(weir_service::Services, OrgCtx, ListedPlugin), UiError> {
    let (services, org) = enter_organization(organization).await?;
    let found = services.plugins.get_listed(&org, plugin).await.map_err(ui_error)?;
    Ok((services, org, found))
}

/// Refuses a deletion unless the name of the object was typed.
pub(crate) fn refuse_other_name(typed: &str, name: &str) -> Result<(), UiError> {
    if typed.trim() == name.trim() {
        return Ok(());
    }
    let detail = format!("Type the name exactly: {}", name.trim());
    Err(UiError::field("typed_name", "mismatch", &detail))
}

#[server(prefix = "/_fn", endpoint = "list_plugins")]
pub(crate) async fn list_plugins(
    organization: String,
    plugin_list: String,
) -> Result<PluginListView, UiError> {
    let plugin_list = plugin_list_of(&plugin_list)?;
    let (services, org) = enter_organization(&organization).await?;
    let home = services.organizations.get(&org).await.map_err(ui_error)?;
    let found = services.plugins.find_listed(&org, plugin_list).await.map_err(ui_error)?;
    let read_only_reason = services.plugins.why_not_install(&org).await.map_err(ui_error)?;
    Ok(PluginListView {
        organization_name: home.row.name,
        plugins: found.into_iter().map(PluginLine::from).collect(),
        read_only_reason,
    })
}

/// Returns one plugin.
#[server(prefix = "/_fn", endpoint = "get_plugin")]
pub(crate) async fn get_plugin(
    organization: String,
    plugin: String,
) -> Result<PluginDetail, UiError> {
    use weir_model::pagination::Page;
    use weir_service::Error;

    let (services, org, found) = enter_plugin(&organization, &plugin).await?;
    let plugins = &services.plugins;
    let home = services.organizations.get(&org).await.map_err(ui_error)?;
    let read_only_reason = plugins.why_not_change(&org, &found).await.map_err(ui_error)?;
    let offers = found.is_own && plugins.offers(&org).await.map_err(ui_error)?;
    let uses = plugins.uses(&org, &plugin).await.map_err(ui_error)?;
    let page = Page { limit: RECENT_ENTRIES, offset: 0 };
    let history = plugins.history(&org, &plugin, page).await.map_err(ui_error)?;
    let (files, faults) = match plugins.source(&org, found.group, &plugin).await {
        Ok(source) => (source.files.into_keys().collect(), source.faults.into_iter().collect()),
        // Source and errors of other organizations' plugins are not shown.
        Err(Error::NotFound(_) | Error::Forbidden(_)) => (Vec::new(), Vec::new()),
        Err(error) => return Err(ui_error(error)),
    };
    let projects: Vec<(i64, String)> =
        home.teams.into_iter().map(|team| (team.id.0, team.name)).collect();
    let elsewhere = uses.elsewhere;
    let uses = uses.here.into_iter().map(|one| UseView::of(one, &projects)).collect();
    Ok(PluginDetail {
        organization_name: home.row.name,
        read_only_reason,
        offers,
        uses,
        elsewhere,
        history: history.results.into_iter().map(AuditEntryView::from).collect(),
        files,
        faults,
        projects,
        ..PluginDetail::of(found)
    })
}

/// Lists the catalogue entries for a list, and whether the organization has installed
/// them.
#[server(prefix = "/_fn", endpoint = "list_catalogue")]
pub(crate) async fn list_catalogue(
    organization: String,
    plugin_list: String,
    search: String,
) -> Result<CatalogueView, UiError> {
    use weir_model::pagination::{MAX_LIMIT, Page};

    let plugin_list = plugin_list_of(&plugin_list)?;
    let (services, org) = enter_organization(&organization).await?;
    let home = services.organizations.get(&org).await.map_err(ui_error)?;
    let all = Page { limit: MAX_LIMIT, offset: 0 };
    let catalogue = services.plugins.repository(&org, plugin_list.group(), all).await;
    let entries = catalogue.map_err(ui_error)?.1.results;
    let mut installed = Vec::new();
    for plugin_list in PluginList::ALL {
        installed.extend(services.plugins.find_listed(&org, plugin_list).await.map_err(ui_error)?);
    }
    let read_only_reason = services.plugins.why_not_install(&org).await.map_err(ui_error)?;
    Ok(CatalogueView::of(
        home.row.name,
        read_only_reason,
        plugin_list,
        entries,
        &installed,
        &search,
    ))
}

/// Installs a plugin from the catalogue or another host, and redirects to it.
#[server(prefix = "/_fn", endpoint = "install_plugin")]
pub(crate) async fn install_plugin(
    organization: String,
    plugin_list: String,
    url: String,
    #[server(default)] token: String,
) -> Result<(), UiError> {
    use weir_model::plugins::PluginInput;
    use weir_model::plugins::address::CodeSource;

    let plugin_list = plugin_list_of(&plugin_list)?;
    let (services, org) = enter_organization(&organization).await?;
    let (url, token) = (url.trim(), token.trim());
    let sign = if url.contains('?') { '&' } else { '?' };
    let address = match token.is_empty() {
        true => url.to_owned(),
        false => format!("{url}{sign}private_token={token}"),
    };
    let place = CodeSource::read(&address).map_err(UiError::Field)?;
    let input = PluginInput { url: Some(place), ..PluginInput::default() };
    let made =
        services.plugins.install(&org, plugin_list.group(), input).await.map_err(ui_error)?;
    let found = services.plugins.get_listed(&org, &made.id.to_string()).await.map_err(ui_error)?;
    let line = PluginLine::from(found);
    let path = plugin_path(&organization, &line.plugin_list, &line.id);
    redirect_with_notice(&path, &format!("Added {}.", line.name));
    Ok(())
}

/// Creates a plugin with example source, and redirects to the editor.
#[server(prefix = "/_fn", endpoint = "write_plugin")]
pub(crate) async fn write_plugin(
    organization: String,
    plugin_list: String,
    name: String,
) -> Result<(), UiError> {
    use weir_model::plugins::{NAME_MAX, PluginInput, PluginPatch, PluginType};
    use weir_model::{Patch, validate};

    let plugin_list = plugin_list_of(&plugin_list)?;
    let (services, org) = enter_organization(&organization).await?;
    // Writing the source requires a recent sign-in. Check it before the plugin is
    // created.
    weir_service::policy::recent_if_person(&org.ctx).map_err(ui_error)?;
    let name = validate::text("name", &name, NAME_MAX).map_err(UiError::Field)?;
    let fields = PluginPatch {
        plugin_type: Patch::Set(PluginType::Source),
        name: Patch::Set(name.clone()),
        ..PluginPatch::default()
    };
    let input = PluginInput { fields, ..PluginInput::default() };
    let plugins = &services.plugins;
    let made = plugins.create(&org, plugin_list.group(), input).await.map_err(ui_error)?;
    let id = made.id.to_string();
    let editable = plugins.editable(&org, plugin_list.group(), &id).await.map_err(ui_error)?;
    let files = source::first_files(plugin_list, &name);
    plugins.update_source(&org, editable, files).await.map_err(ui_error)?;
    let found = plugins.get_listed(&org, &id).await.map_err(ui_error)?;
    go(&format!("{}/source", plugin_path(&organization, found.plugin_list.text(), &id)));
    Ok(())
}

/// Checks for a newer version of a plugin, and shows the result as a notice.
#[server(prefix = "/_fn", endpoint = "check_plugin")]
pub(crate) async fn check_plugin(organization: String, plugin: String) -> Result<(), UiError> {
    let (services, org, found) = enter_plugin(&organization, &plugin).await?;
    let checked =
        services.plugins.check_for_updates(&org, found.group, &plugin).await.map_err(ui_error)?;
    let name = views::name_of(&checked.plugin);
    if let Some(fault) = checked.fault {
        let detail = format!("The newest version of {name} is unknown: {fault}");
        return Err(UiError::form("check_failed", &detail));
    }
    let fields = &checked.plugin.fields;
    match views::newer(fields) {
        Some(latest) => notice(&format!("{name} can be upgraded to {latest}.")),
        None => notice(&format!("{name} is at its newest version.")),
    }
    Ok(())
}

/// Installs the newest code of a plugin. The message of a failure begins with the fact
/// that nothing changed.
#[server(prefix = "/_fn", endpoint = "upgrade_plugin")]
pub(crate) async fn upgrade_plugin(organization: String, plugin: String) -> Result<(), UiError> {
    let (services, org, found) = enter_plugin(&organization, &plugin).await?;
    let before = found.plugin.fields.tag.clone();
    let upgraded = services.plugins.upgrade(&org, found.group, &plugin).await;
    let after = upgraded.map_err(|error| match ui_error(error) {
        UiError::Field(fault) => {
            let still = match &before {
                Some(tag) => format!("Still on {tag}."),
                None => "Nothing was changed.".to_owned(),
            };
            UiError::form("upgrade_failed", &format!("{still} {}", fault.detail))
        }
        other => other,
    })?;
    let name = views::name_of(&after);
    match after.fields.tag {
        tag if tag == before => notice(&format!("{name} has the newest code already.")),
        Some(tag) => notice(&format!("Upgraded {name} to {tag}.")),
        None => notice(&format!("Upgraded {name}.")),
    }
    Ok(())
}

/// Shares a plugin with all organizations, or ends that.
#[server(prefix = "/_fn", endpoint = "offer_plugin")]
pub(crate) async fn offer_plugin(
    organization: String,
    plugin: String,
    #[server(default)] offered: Option<String>,
) -> Result<(), UiError> {
    use weir_model::Patch;
    use weir_model::plugins::PluginPatch;

    let (services, org, found) = enter_plugin(&organization, &plugin).await?;
    let plugins = &services.plugins;
    let changeable =
        plugins.changeable(&org, found.group, &plugin, true).await.map_err(ui_error)?;
    let is_global = Patch::Set(offered.is_some());
    let patch = PluginPatch { is_global, ..PluginPatch::default() };
    plugins.update(&org, changeable, patch).await.map_err(ui_error)?;
    Ok(())
}

/// Removes a plugin with its source and its configs, if its name was typed, and redirects
/// to the list.
#[server(prefix = "/_fn", endpoint = "remove_plugin")]
pub(crate) async fn remove_plugin(
    organization: String,
    plugin: String,
    typed_name: String,
) -> Result<(), UiError> {
    let (services, org, found) = enter_plugin(&organization, &plugin).await?;
    let plugins = &services.plugins;
    let name = views::name_of(&found.plugin);
    let changeable =
        plugins.changeable(&org, found.group, &plugin, false).await.map_err(ui_error)?;
    refuse_other_name(&typed_name, &name)?;
    plugins.delete(&org, changeable).await.map_err(ui_error)?;
    let list = format!("/organizations/{organization}/plugins/{}", found.plugin_list.text());
    redirect_with_notice(&list, &format!("Removed {name}."));
    Ok(())
}
