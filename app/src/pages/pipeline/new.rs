//! Enables a plugin for a project: choosing it, and its settings.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::plugin_configs::NAME_MAX;

use super::calls::creation;
use super::fields::{failure, names, setting_fields};
use crate::error::UiError;
use crate::pages::project_in_path;
use crate::server_fns::plugin_configs::views::OfferedPlugin;
use crate::server_fns::plugin_configs::{CreatePluginConfig, offer_plugin_config};
use crate::server_fns::plugins::list_plugins;
use crate::server_fns::plugins::views::{PluginLine, PluginListView};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::api_request::ApiRequest;
use crate::ui::empty::{Empty, ReadOnly};
use crate::ui::field::{Check, TextLine};
use crate::ui::form::{ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::query::in_query;
use crate::ui::sections::Section;

const TITLE: &str = "Add transformation";

/// The list of plugins to choose from, or the form of the chosen plugin.
#[component]
pub(crate) fn NewConfig() -> impl IntoView {
    page(
        TITLE,
        || (project_in_path(), in_query("plugin")),
        load,
        |(project, _), step| match step {
            Step::Choosing(found, listed) => choosing(project, found, listed),
            Step::Filling(found) => filling(project, found),
        },
    )
}

/// The data of the two steps.
#[derive(Clone, Serialize, Deserialize)]
enum Step {
    /// The project, and the plugins to choose from.
    Choosing(ProjectView, PluginListView),
    /// The chosen plugin.
    Filling(OfferedPlugin),
}

async fn load((project, plugin): (i64, String)) -> Result<Step, UiError> {
    if !plugin.is_empty() {
        return Ok(Step::Filling(offer_plugin_config(project, plugin).await?));
    }
    let found = get_project(project).await?;
    let plugin_list = "transformations".to_owned();
    let listed = list_plugins(found.organization.clone(), plugin_list).await?;
    Ok(Step::Choosing(found, listed))
}

fn choosing(project: i64, found: ProjectView, listed: PluginListView) -> AnyView {
    let list = format!("/organizations/{}/plugins/transformations", found.organization);
    let add = format!("{list}/add");
    let content = if listed.plugins.is_empty() {
        view! {
            <Empty title="The organization has no transformation yet">
                <p>"Add one first: from the catalogue that comes with Weir, from elsewhere, or written by you."</p>
                <p><a class="button button-primary" href=add>"Add a plugin"</a></p>
            </Empty>
        }
        .into_any()
    } else {
        let offers = listed.plugins.into_iter().map(|line| offer(project, line)).collect_view();
        view! {
            <Section id="plugins" title="Choose a plugin">
                <ul class="plain offers">{offers}</ul>
            </Section>
            <p><a href=add>"Add another plugin"</a></p>
        }
        .into_any()
    };
    view! {
        <PageHead title=TITLE within=found.name />
        {content}
        <p><a href=format!("/projects/{project}/transformations")>"Back to transformations"</a></p>
    }
    .into_any()
}

fn offer(project: i64, line: PluginLine) -> AnyView {
    let href = format!("/projects/{project}/transformations/new?plugin={}", line.id);
    let (name, same_name) = (line.name.clone(), line.name);
    view! {
        <li class="offer">
            <div>
                <h3>{name}</h3>
                <p>{line.description}</p>
            </div>
            <a class="button" href=href>"Use"<span class="hidden">" " {same_name}</span></a>
        </li>
    }
    .into_any()
}

fn filling(project: i64, found: OfferedPlugin) -> AnyView {
    let create = form_action::<CreatePluginConfig>();
    let result = form_result(create);
    let OfferedPlugin {
        project_name,
        organization,
        plugin,
        name,
        description,
        plugin_list,
        form,
        read_only_reason,
    } = found;
    let title = format!("Add {name}");
    let fields = setting_fields(result, &form, None);
    let mut shown = names(&form);
    shown.extend(["name".to_owned(), "enabled".to_owned()]);
    let failed = failure(result, &shown);
    let back = format!("/organizations/{organization}/plugins/{plugin_list}/{plugin}");
    let call = creation(project, &plugin, &form);
    let content = match read_only_reason {
        Some(why) => view! { <ReadOnly why=why /> }.into_any(),
        None => view! {
            <Section id="settings" title="Settings">
                <div data-dirty-guard="">
                    <ActionForm action=create>
                        {failed}
                        <input type="hidden" name="project" value=project.to_string() />
                        <input type="hidden" name="plugin" value=plugin />
                        <ReturnAddress />
                        <TextLine result=result name="name" label="Name (optional)" max=NAME_MAX
                            hint="Leave it empty to use the name of the plugin." />
                        {fields}
                        <Check result=result name="enabled" label="Switch on" checked=true
                            hint="It applies to new events within a second." />
                        <Submit result=result label="Add to project" busy="Adding to project..." />
                        <ApiRequest call=call />
                    </ActionForm>
                </div>
            </Section>
        }
        .into_any(),
    };
    view! {
        <PageHead title=title within=project_name />
        {(!description.is_empty()).then(|| view! { <p class="lead">{description}</p> })}
        {content}
        <p><a href=back>"About the plugin"</a></p>
    }
    .into_any()
}
