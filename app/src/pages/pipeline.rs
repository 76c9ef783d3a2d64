//! The transformations of a project in their order, and the configs of its other plugins.

mod actions;
mod calls;
pub(crate) mod config;
mod diff;
mod ending;
mod fields;
pub(crate) mod new;
mod order;
mod results;
pub(crate) mod trial;

use leptos::prelude::*;

use super::project_in_path;
use crate::server_fns::bulk::SwitchPluginConfigs;
use crate::server_fns::plugin_configs::views::{ConfigLine, PipelineView};
use crate::server_fns::plugin_configs::{
    HidePluginConfig, ReorderTransformations, RestorePluginConfig, SwitchPluginConfig, config_path,
    list_transformations,
};
use crate::ui::api_request::ApiRequest;
use crate::ui::bulk::{self, BulkBar, BulkButton, check_box};
use crate::ui::download::DownloadCsv;
use crate::ui::empty::ReadOnly;
use crate::ui::form::{FormFailure, form_result};
use crate::ui::form_action::{FormAction, form_action};
use crate::ui::icon::Icon;
use crate::ui::page::{PageHead, page};
use crate::ui::reorder::drag_handle;
use crate::ui::status::{Status, Tone};
use actions::{hiding, restoring, switching, word_id};
use order::{Order, conflict, mover};
use results::{counts, last_failure};

const TITLE: &str = "Transformations";

/// The actions of a line.
#[derive(Clone, Copy)]
struct Actions {
    switch: FormAction<SwitchPluginConfig>,
    hide: FormAction<HidePluginConfig>,
    reorder: FormAction<ReorderTransformations>,
    restore: FormAction<RestorePluginConfig>,
}

/// The list of transformations.
#[component]
pub(crate) fn Transformations() -> impl IntoView {
    page(TITLE, project_in_path, list_transformations, draw)
}

fn draw(project: i64, found: PipelineView) -> AnyView {
    let actions = Actions {
        switch: form_action(),
        hide: form_action(),
        reorder: form_action(),
        restore: form_action(),
    };
    let (switched, hidden) = (form_result(actions.switch), form_result(actions.hide));
    let restored = form_result(actions.restore);
    let PipelineView { project_name, organization, listed, hidden: gone, read_only_reason } = found;
    let may_change = read_only_reason.is_none();
    let order = Order::of(project, &listed);
    let all_switched = form_result(form_action::<SwitchPluginConfigs>());
    let asking = conflict(actions.reorder, &order, &listed);
    let file = (!listed.is_empty()).then(|| view! { <DownloadCsv /> });
    let content = if listed.is_empty() {
        nothing(project, may_change)
    } else {
        lines(project, listed, &order, may_change, actions)
    };
    let plugins = format!("/organizations/{organization}/plugins/transformations");
    let buttons = may_change.then(|| {
        view! {
            <a class="button" href=format!("/projects/{project}/transformations/try")>"Try all"</a>
            <a class="button button-primary" href=format!("/projects/{project}/transformations/new")>
                <Icon name="plus" />
                "Add transformation"
            </a>
        }
    });
    view! {
        <PageHead title=TITLE within=project_name>{file} {buttons}</PageHead>
        <p class="lead">
            "Each event goes through these steps, from the top, before it is stored. "
            "They change only new events. Stored events stay as they are. "
            <a href=plugins>"Plugins for transformations"</a>
        </p>
        {read_only_reason.map(|why| view! { <ReadOnly why=why /> })}
        <FormFailure result=switched />
        <FormFailure result=hidden />
        <FormFailure result=all_switched />
        <FormFailure result=restored />
        {asking}
        {content}
        {bin(project, gone, may_change, actions)}
    }
    .into_any()
}

/// Explains transformations where there is none.
fn nothing(project: i64, may_change: bool) -> AnyView {
    let action = may_change.then(|| {
        let href = format!("/projects/{project}/transformations/new");
        view! { <p><a class="button button-primary" href=href>"Add transformation"</a></p> }
    });
    view! {
        <div class="empty">
            <h2>"No transformation yet"</h2>
            <p>"A transformation changes or drops events before they are stored. It can drop bots, shorten addresses and correct names."</p>
            <ol class="flow-steps" aria-label="Steps of an event">
                <li>"Event arrives"</li>
                <li>"Step 1"</li>
                <li>"Step 2"</li>
                <li>"Stored"</li>
            </ol>
            {action}
        </div>
    }
    .into_any()
}

fn lines(
    project: i64,
    listed: Vec<ConfigLine>,
    order: &Order,
    may_change: bool,
    actions: Actions,
) -> AnyView {
    let count = listed.len();
    let are_selected = may_change && bulk::is_worth_it(count);
    let bar = are_selected.then(|| {
        let switch = form_action::<SwitchPluginConfigs>();
        view! {
            <BulkBar what="transformations" fields=vec![("project", project.to_string())]>
                <BulkButton action=switch label="Switch selected on" busy="Switching on..." field=("enabled", "on") />
                <BulkButton action=switch label="Switch selected off" busy="Switching off..." field=("enabled", "off") />
            </BulkBar>
        }
    });
    let rows = listed
        .into_iter()
        .enumerate()
        .map(|(at, line)| {
            let selecting = are_selected.then(|| check_box(line.id.clone(), &line.name));
            row(project, at, count, line, order, may_change.then_some(actions), selecting)
        })
        .collect_view();
    let form = may_change.then(|| {
        let request = (count > 1).then(|| {
            view! { <ApiRequest call=order.call() of="put in order" /> }
        });
        view! { {order.form(actions.reorder)} {request} }
    });
    #[cfg(not(feature = "ssr"))]
    crate::behaviours::start_reordering();
    view! {
        {bar}
        <div data-reorder="">
            <ol class="plain steps">{rows}</ol>
            {form}
        </div>
    }
    .into_any()
}

fn row(
    project: i64,
    at: usize,
    count: usize,
    line: ConfigLine,
    order: &Order,
    // Without them the user cannot change anything.
    actions: Option<Actions>,
    selecting: Option<AnyView>,
) -> AnyView {
    let path = config_path(project, true, &line.id);
    let state = if line.enabled { (Tone::Good, "On") } else { (Tone::Quiet, "Off") };
    let handle = (actions.is_some() && count > 1).then(drag_handle);
    let buttons = actions.map(|actions| {
        view! {
            <div class="step-actions">
                {switching(project, &line, actions.switch)}
                {(at > 0).then(|| mover(order, at, at - 1, &line.name, actions.reorder))}
                {(at + 1 < count).then(|| mover(order, at, at + 1, &line.name, actions.reorder))}
                {hiding(project, &line, None, actions.hide)}
            </div>
        }
    });
    let of = (line.name != line.plugin_name)
        .then(|| view! { <span class="faint">{line.plugin_name.clone()}</span> });
    view! {
        <li class="card step" data-reorder-item=line.id.clone()>
            <div class="step-head">
                {handle}
                {selecting}
                <span class="step-place" aria-hidden="true">{(at + 1).to_string()}</span>
                <h2><a href=path>{line.name.clone()}</a></h2>
                {of}
                <Status tone=state.0 label=state.1 id=word_id(&line) />
            </div>
            {counts(&line)}
            {line.fault.clone().map(last_failure)}
            {buttons}
        </li>
    }
    .into_any()
}

/// Deleted configs, which can be restored.
fn bin(project: i64, gone: Vec<ConfigLine>, may_change: bool, actions: Actions) -> Option<AnyView> {
    if gone.is_empty() {
        return None;
    }
    let rows = gone
        .into_iter()
        .map(|line| {
            let buttons = may_change.then(|| {
                // The config page explains the consequences and asks for the name.
                let ending = format!("{}#ending", config_path(project, true, &line.id));
                let name = line.name.clone();
                view! {
                    {restoring(project, &line, actions.restore)}
                    <a class="button button-risk" href=ending>
                        "Delete permanently"<span class="hidden">" " {name}</span>
                    </a>
                }
            });
            view! {
                <li class="bin-line">
                    <span>{line.name.clone()}</span>
                    {buttons}
                </li>
            }
        })
        .collect_view();
    Some(
        view! {
            <details class="bin">
                <summary>"Deleted transformations"</summary>
                <p class="hint">"They are inactive and keep their settings until you delete them permanently."</p>
                <ul class="plain">{rows}</ul>
            </details>
        }
        .into_any(),
    )
}
