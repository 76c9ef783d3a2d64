//! One plugin: description, configs that use it, history.

use leptos::prelude::*;

use super::offer_and_remove::{offering, removal};
use super::{api_call, badges, check_form, metrics, upgrade_form};
use crate::pages::{id_in_path, in_path};
use crate::plugin_settings::{Part, Setting, settings};
use crate::server_fns::bulk::{SwitchUsedConfigs, used_config};
use crate::server_fns::plugin_configs::{SwitchPluginConfig, config_path};
use crate::server_fns::plugins::views::{AuditEntryView, PluginDetail as Detail, UseView};
use crate::server_fns::plugins::{
    CheckPlugin, OfferPlugin, RemovePlugin, UpgradePlugin, get_plugin, plugin_path,
};
use crate::ui::alert::Alert;
use crate::ui::api_request::ApiRequest;
use crate::ui::bulk::{self, BulkBar, BulkButton, selectable};
use crate::ui::empty::ReadOnly;
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, FormAction, form_action};
use crate::ui::menu::RowMenu;
use crate::ui::number::counted;
use crate::ui::page::{PageHead, page};
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};
use crate::ui::table::{ACTIONS, Column, Table, TableRow, cell, truncated};
use crate::ui::time::Time;

#[component]
pub(crate) fn PluginDetail() -> impl IntoView {
    page(
        "Plugin",
        || (id_in_path(), in_path("plugin")),
        |(organization, plugin)| get_plugin(organization, plugin),
        |(organization, _), found| draw(&organization, &found),
    )
}

fn draw(organization: &str, found: &Detail) -> AnyView {
    let upgrade = form_action::<UpgradePlugin>();
    let check = form_action::<CheckPlugin>();
    let switch = form_action::<SwitchPluginConfig>();
    let remove = form_action::<RemovePlugin>();
    let offer = form_action::<OfferPlugin>();
    let (upgraded, checked) = (form_result(upgrade), form_result(check));
    let all_switched = form_result(form_action::<SwitchUsedConfigs>());
    let (switched, removed, offered) =
        (form_result(switch), form_result(remove), form_result(offer));
    let name = found.line.name.clone();
    let root = plugin_path(organization, &found.line.plugin_list, &found.line.id);
    let may_change = found.read_only_reason.is_none();
    let marks = badges(&found.line);
    let updating = (may_change && found.line.is_hosted_elsewhere).then(|| {
        let line = &found.line;
        let (form, call) = match &line.newer {
            Some(newer) => (
                upgrade_form(line, newer, organization, upgrade),
                api_call("POST", organization, line, "upgrade/"),
            ),
            None => (
                check_form(line, organization, check),
                api_call("GET", organization, line, "check_for_updates/"),
            ),
        };
        view! { {form} <ApiRequest call=call of="update" /> }
    });
    let faults = (!found.faults.is_empty()).then(|| faults(&found.faults, &root));
    let danger = may_change.then(|| {
        let offering = found.offers.then(|| offering(found, organization, offer));
        view! { {offering} {removal(found, organization, remove, removed)} }
    });
    view! {
        <PageHead title=name within=found.organization_name.clone()>
            {marks}
        </PageHead>
        // The message of a failed upgrade begins with the fact that nothing changed.
        <FormFailure result=upgraded />
        <FormFailure result=checked />
        <FormFailure result=switched />
        <FormFailure result=all_switched />
        <FormFailure result=removed fields=&["typed_name"] />
        <FormFailure result=offered />
        {found.read_only_reason.clone().map(|why| view! { <ReadOnly why=why /> })}
        {faults}
        <div class="card-columns">
            {about(found, &root)}
            {uses(found, switch)}
            {updating.map(|form| view! {
                <Section id="updates" title="Updates">{form}</Section>
            })}
        </div>
        {configurable(&found.settings)}
        {history(found.history.clone())}
        {danger}
    }
    .into_any()
}

fn faults(faults: &[(String, String)], root: &str) -> AnyView {
    let lines = faults
        .iter()
        .map(|(file, fault)| view! { <li><code>{file.clone()}</code> ": " {fault.clone()}</li> })
        .collect_view();
    let source = format!("{root}/source");
    view! {
        <Alert kind="error">
            <p>"Its source cannot be run as it is:"</p>
            <ul>{lines}</ul>
            <p><a href=source>"Open the source"</a></p>
        </Alert>
    }
    .into_any()
}

fn about(found: &Detail, root: &str) -> AnyView {
    let line = &found.line;
    let description = match line.description.is_empty() {
        true => "It has no description.".to_owned(),
        false => line.description.clone(),
    };
    let (origin, owner, tag) = (line.origin.clone(), line.owner.clone(), line.tag.clone());
    let url = line.url.clone();
    let capabilities = found
        .capabilities
        .iter()
        .map(|(label, names)| {
            view! { <dt>{label.clone()}</dt> <dd class="mono wrap">{names.join(", ")}</dd> }
        })
        .collect_view();
    let jobs = (!found.jobs.is_empty()).then(|| {
        view! { <dt>"Started by hand"</dt> <dd class="mono wrap">{found.jobs.join(", ")}</dd> }
    });
    let metrics = (!line.metrics.is_empty()).then(|| metrics(&line.metrics));
    let source = (!found.files.is_empty()).then(|| {
        let verb =
            if line.is_edited_here && found.read_only_reason.is_none() { "Edit" } else { "View" };
        view! { <p><a class="button" href=format!("{root}/source")>{verb} " source"</a></p> }
    });
    view! {
        <Section id="about" title="About">
            <p>{description}</p>
            <dl class="facts">
                <dt>"Code from"</dt>
                <dd>{origin}</dd>
                {url.map(|url| view! { <dt>"Address"</dt> <dd class="mono wrap">{url}</dd> })}
                {tag.map(|tag| view! { <dt>"Version"</dt> <dd class="mono wrap">{tag}</dd> })}
                <dt>"Belongs to"</dt>
                <dd>{owner}</dd>
                {capabilities}
                {jobs}
            </dl>
            {metrics.map(|metrics| view! { <dl class="facts facts-row">{metrics}</dl> })}
            {source}
        </Section>
    }
    .into_any()
}

/// The configs that use the plugin, and how to add one in another project.
fn uses(found: &Detail, switch: FormAction<SwitchPluginConfig>) -> AnyView {
    let transforms = found.line.plugin_list == "transformations";
    let used: Vec<UseView> = found.uses.iter().filter(|one| !one.deleted).cloned().collect();
    let are_selected = found.read_only_reason.is_none() && bulk::is_worth_it(used.len());
    let bar = are_selected.then(|| {
        let switch = form_action::<SwitchUsedConfigs>();
        view! {
            <BulkBar what="projects" fields=Vec::new()>
                <BulkButton action=switch label="Switch selected on" busy="Switching on..." field=("enabled", "on") />
                <BulkButton action=switch label="Switch selected off" busy="Switching off..." field=("enabled", "off") />
            </BulkBar>
        }
    });
    let row = |one| use_row(one, &found.line.name, transforms, switch, are_selected);
    let rows: Vec<TableRow> = used.into_iter().map(row).collect();
    let table = if rows.is_empty() {
        view! { <p>"No project uses this plugin yet."</p> }.into_any()
    } else {
        let columns = vec![Column::text("Project"), Column::text("State"), Column::text(ACTIONS)];
        view! { <Table caption="Projects that use it" columns=columns rows=rows /> }.into_any()
    };
    let elsewhere = (found.elsewhere > 0).then(|| {
        let count = u64::try_from(found.elsewhere).unwrap_or(u64::MAX);
        let configs = counted(count, "config", "configs");
        view! { <p class="hint">"Other organizations have " {configs} " of it."</p> }
    });
    let id = found.line.id.clone();
    let list = if transforms { "transformations" } else { "plugins" };
    let offers = found
        .projects
        .iter()
        .map(|(project, name)| {
            let href = format!("/projects/{project}/{list}/new?plugin={id}");
            view! { <li><a class="button" href=href>"Use in " {name.clone()}</a></li> }
        })
        .collect_view();
    view! {
        <Section id="uses" title="Projects"
            hint="A project can use the plugin more than once, each time with its own settings.">
            {bar}
            {table}
            {elsewhere}
            <ul class="links use-in">{offers}</ul>
        </Section>
    }
    .into_any()
}

fn use_row(
    one: UseView,
    plugin: &str,
    transforms: bool,
    switch: FormAction<SwitchPluginConfig>,
    is_selectable: bool,
) -> TableRow {
    let UseView { config, name, project, project_name, enabled, .. } = one;
    let href = config_path(project, transforms, &config);
    let named = name.unwrap_or_else(|| plugin.to_owned());
    let of = format!("{named} in {project_name}");
    let selection = is_selectable.then(|| used_config(project, &config));
    let state = if enabled { (Tone::Good, "On") } else { (Tone::Quiet, "Off") };
    let word = format!("state-{config}");
    let switched = word.clone();
    let change = enabled.then(|| {
        view! {
            <li>
                <ActionForm action=switch>
                    <input type="hidden" name="project" value=project.to_string() />
                    <input type="hidden" name="config" value=config />
                    <input type="hidden" name="enabled" value="off" />
                    <ReturnAddress />
                    <button type="submit" data-busy="Switching off..." data-state=switched data-becomes="Off">
                        "Switch off"
                    </button>
                </ActionForm>
            </li>
        }
        .into_any()
    });
    let (to, of_menu) = (href.clone(), of.clone());
    let menu = view! {
        <RowMenu of=of_menu>
            {change}
            <li><a href=to>"Settings"</a></li>
        </RowMenu>
    };
    let link = cell(view! { <a href=href>{project_name} ": " {named}</a> });
    let link = match selection {
        Some(id) => selectable(id, &of, link),
        None => link,
    };
    TableRow::new(vec![
        link,
        cell(view! { <Status tone=state.0 label=state.1 id=word /> }),
        cell(menu),
    ])
}

/// The settings, as a table.
fn configurable(form: &[Part]) -> AnyView {
    let row = |setting: &Setting| {
        let Setting { key, name, hint, kind, secret, required, default } = setting.clone();
        let needed = match (required, secret) {
            (true, true) => "Required, secret",
            (true, false) => "Required",
            (false, true) => "Optional, secret",
            (false, false) => "Optional",
        };
        let default = if secret || default.is_empty() { "-".to_owned() } else { default };
        TableRow::new(vec![
            cell(view! { <span>{name}</span> " " <code class="wrap">{key}</code> }),
            cell(kind.words()),
            cell(needed),
            truncated(default),
            cell(hint),
        ])
    };
    let rows: Vec<TableRow> = settings(form).map(row).collect();
    let content = if rows.is_empty() {
        view! { <p>"It has no settings."</p> }.into_any()
    } else {
        let columns = ["Setting", "Type", "Required", "Default", "Description"].map(Column::text);
        let columns: Vec<Column> = columns.into_iter().collect();
        view! { <Table caption="Settings" columns=columns rows=rows /> }.into_any()
    };
    view! { <Section id="settings" title="Settings">{content}</Section> }.into_any()
}

fn history(actions: Vec<AuditEntryView>) -> AnyView {
    let content = if actions.is_empty() {
        view! { <p>"No activity yet."</p> }.into_any()
    } else {
        let row = |entry: AuditEntryView| {
            let fields = match entry.fields.is_empty() {
                true => "-".to_owned(),
                false => entry.fields.join(", "),
            };
            TableRow::new(vec![
                cell(view! { <Time iso=entry.at /> }),
                cell(entry.who),
                cell(entry.what),
                cell(view! { <span class="wrap">{fields}</span> }),
            ])
        };
        let columns: Vec<Column> =
            ["When", "Who", "What", "Changed"].map(Column::text).into_iter().collect();
        let rows: Vec<TableRow> = actions.into_iter().map(row).collect();
        view! { <Table caption="Activity of the plugin" columns=columns rows=rows /> }.into_any()
    };
    view! { <Section id="activity" title="Activity">{content}</Section> }.into_any()
}
