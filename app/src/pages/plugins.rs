//! The plugins of an organization, one list for each purpose.

pub(crate) mod add;
pub(crate) mod detail;
mod list_labels;
mod offer_and_remove;
pub(crate) mod source;

use leptos::prelude::*;

use super::{id_in_path, in_path};
use crate::server_fns::plugins::views::{PluginLine, PluginListView};
use crate::server_fns::plugins::{CheckPlugin, UpgradePlugin, list_plugins, plugin_path};
use crate::ui::api_request::ApiCall;
use crate::ui::download::DownloadCsv;
use crate::ui::empty::{Empty, ReadOnly};
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, FormAction, form_action};
use crate::ui::icon::Icon;
use crate::ui::page::{PageHead, page_with_title};
use crate::ui::sections::{SubNav, Tab};
use crate::ui::status::{Chip, Status, Tone};
use list_labels::ListLabels;

/// The list in the address.
#[component]
pub(crate) fn PluginList() -> impl IntoView {
    page_with_title(
        || ListLabels::of(&in_path("list")).title,
        || (id_in_path(), in_path("list")),
        |(organization, plugin_list)| list_plugins(organization, plugin_list),
        draw,
    )
}

fn draw((organization, plugin_list): (String, String), found: PluginListView) -> AnyView {
    let (check, upgrade) = (form_action::<CheckPlugin>(), form_action::<UpgradePlugin>());
    let (checked, upgraded) = (form_result(check), form_result(upgrade));
    let labels = ListLabels::of(&plugin_list);
    let PluginListView { organization_name, plugins, read_only_reason } = found;
    let root = format!("/organizations/{organization}/plugins/{plugin_list}");
    let may_install = read_only_reason.is_none();
    let file = (!plugins.is_empty()).then(|| view! { <DownloadCsv /> });
    let content = if plugins.is_empty() {
        empty_list(&labels, &root, may_install)
    } else {
        let lines = plugins
            .into_iter()
            .map(|line| plugin_card(line, &organization, may_install, check, upgrade))
            .collect_view();
        view! { <ul class="plain plugins">{lines}</ul> }.into_any()
    };
    let add_button = may_install.then(|| {
        view! {
            <a class="button button-primary" href=format!("{root}/add")>
                <Icon name="plus" />
                {labels.add}
            </a>
        }
    });
    view! {
        <PageHead title=labels.title within=organization_name>{file} {add_button}</PageHead>
        <SubNav label="Plugin lists" tabs=tabs(&organization) />
        <p class="lead">{labels.lead}</p>
        {read_only_reason.map(|why| view! { <ReadOnly why=why /> })}
        <FormFailure result=checked />
        <FormFailure result=upgraded />
        {content}
    }
    .into_any()
}

/// A request about a plugin. `rest` is the end of its path.
fn api_call(method: &'static str, organization: &str, line: &PluginLine, rest: &str) -> ApiCall {
    let PluginLine { group, id, .. } = line;
    let scope = if method == "GET" { "plugin:read" } else { "plugin:write" };
    ApiCall::new(method, format!("/api/organizations/{organization}/{group}/{id}/{rest}"), scope)
}

/// Links to all lists.
fn tabs(organization: &str) -> Vec<Tab> {
    let tab = |(name, labels): (&'static str, ListLabels)| {
        Tab::new(format!("/organizations/{organization}/plugins/{name}"), labels.title)
    };
    ListLabels::all().into_iter().map(tab).collect()
}

fn empty_list(labels: &ListLabels, root: &str, may_install: bool) -> AnyView {
    let (add, example) = (labels.add, labels.example);
    let action = may_install.then(|| {
        view! { <p><a class="button button-primary" href=format!("{root}/add")>{add}</a></p> }
    });
    view! {
        <Empty title=labels.none>
            <p>{example}</p>
            {action}
        </Empty>
    }
    .into_any()
}

fn plugin_card(
    line: PluginLine,
    organization: &str,
    may_install: bool,
    check: FormAction<CheckPlugin>,
    upgrade: FormAction<UpgradePlugin>,
) -> AnyView {
    let path = plugin_path(organization, &line.plugin_list, &line.id);
    let may_change = may_install && line.is_own;
    let actions = (may_change && line.is_hosted_elsewhere).then(|| match &line.newer {
        Some(newer) => upgrade_form(&line, newer, organization, upgrade),
        None => check_form(&line, organization, check),
    });
    let metrics = (!line.metrics.is_empty()).then(|| metrics(&line.metrics));
    view! {
        <li class="card plugin">
            <div class="plugin-head">
                {picture(&line)}
                <h2><a href=path>{line.name.clone()}</a></h2>
                {badges(&line)}
            </div>
            {(!line.description.is_empty()).then(|| view! { <p>{line.description.clone()}</p> })}
            <dl class="facts facts-row">
                <div><dt>"Code from"</dt><dd>{line.origin.clone()}</dd></div>
                {line.tag.clone().map(|tag| view! {
                    <div><dt>"Version"</dt><dd class="mono wrap">{tag}</dd></div>
                })}
                {(!line.is_own).then(|| view! {
                    <div><dt>"Belongs to"</dt><dd>{line.owner.clone()}</dd></div>
                })}
                {metrics}
            </dl>
            {actions}
        </li>
    }
    .into_any()
}

/// The icon of a plugin, or the default icon.
fn picture(line: &PluginLine) -> AnyView {
    match &line.icon {
        Some(icon) => {
            view! { <img class="plugin-icon" src=icon.clone() alt="" width="32" height="32" /> }
                .into_any()
        }
        None => view! { <Icon name="plugin" /> }.into_any(),
    }
}

/// Badges with special attributes of a plugin.
fn badges(line: &PluginLine) -> AnyView {
    let update = line.newer.is_some().then(|| {
        view! { <Status tone=Tone::Warn label="Update available" /> }
    });
    let global = line.is_global.then(|| view! { <Chip label="For all organizations" /> });
    let unused = line.is_unused.then(|| view! { <Chip label="Unused" /> });
    view! { <span class="plugin-badges">{update}{global}{unused}</span> }.into_any()
}

fn metrics(metrics: &[(String, String)]) -> AnyView {
    let names: Vec<String> =
        metrics.iter().map(|(name, aggregation)| format!("{name} ({aggregation})")).collect();
    view! { <div><dt>"Metrics"</dt><dd>{names.join(", ")}</dd></div> }.into_any()
}

/// The button that checks for a newer version.
fn check_form(line: &PluginLine, organization: &str, check: FormAction<CheckPlugin>) -> AnyView {
    let (organization, id, name) = (organization.to_owned(), line.id.clone(), line.name.clone());
    view! {
        <ActionForm action=check>
            <input type="hidden" name="organization" value=organization />
            <input type="hidden" name="plugin" value=id />
            <ReturnAddress />
            <button type="submit" class="button" data-busy="Checking for updates...">
                "Check for updates"
                <span class="hidden">" of " {name}</span>
            </button>
        </ActionForm>
    }
    .into_any()
}

/// The button that installs a newer version.
fn upgrade_form(
    line: &PluginLine,
    newer: &str,
    organization: &str,
    upgrade: FormAction<UpgradePlugin>,
) -> AnyView {
    let tag = line.tag.clone().unwrap_or_else(|| "no version".to_owned());
    let (organization, id, name) = (organization.to_owned(), line.id.clone(), line.name.clone());
    let newer = newer.to_owned();
    view! {
        <ActionForm action=upgrade>
            <p class="plugin-upgrade">
                <span class="hidden">"From version "</span>
                <code class="wrap">{tag}</code>
                <span aria-hidden="true">" → "</span>
                <span class="hidden">" to version "</span>
                <code class="wrap">{newer}</code>
            </p>
            <input type="hidden" name="organization" value=organization />
            <input type="hidden" name="plugin" value=id />
            <ReturnAddress />
            <button type="submit" class="button" data-busy="Upgrading plugin...">
                "Upgrade"
                <span class="hidden">" " {name}</span>
            </button>
        </ActionForm>
    }
    .into_any()
}
