//! The dashboards of a saved insight: adds it to them, and removes it from them.

use futures::future::try_join;
use leptos::prelude::*;
use serde_json::json;

use super::api_path;
use crate::error::UiError;
use crate::pages::{in_path, project_in_path};
use crate::server_fns::dashboards::tiles::{AddTile, RemoveTile};
use crate::server_fns::dashboards::{
    InsightDashboard, InsightDashboards, list_dashboards_of_insight,
};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::empty::{Empty, EmptyPage};
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, FormAction, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::pager::{ListPage, Pager, page_in_query};
use crate::ui::table::{ACTIONS, Column, Table, TableRow, cell, truncated_link};

const TITLE: &str = "Dashboards of an insight";
/// Dashboards on one page.
const PAGE_SIZE: u32 = 50;

/// The insight in the address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Inputs {
    project: i64,
    insight: String,
    list_page: ListPage,
}

/// The link from an insight to this page.
pub(in crate::pages) fn link(project: i64, insight: &str) -> AnyView {
    let href = format!("/projects/{project}/insights/{insight}/dashboards");
    view! { <p><a class="button" href=href>"Add to a dashboard"</a></p> }.into_any()
}

#[component]
pub(crate) fn DashboardsOfInsight() -> impl IntoView {
    page(TITLE, read, load, draw)
}

fn read() -> Inputs {
    Inputs {
        project: project_in_path(),
        insight: in_path("insight"),
        list_page: page_in_query(PAGE_SIZE),
    }
}

async fn load(inputs: Inputs) -> Result<(ProjectView, InsightDashboards), UiError> {
    let Inputs { project, insight, list_page } = inputs;
    let ListPage { limit, offset } = list_page;
    let found = list_dashboards_of_insight(project, insight, limit, offset);
    try_join(get_project(project), found).await
}

fn draw(inputs: Inputs, (of, found): (ProjectView, InsightDashboards)) -> AnyView {
    let Inputs { project, insight, list_page } = inputs;
    let InsightDashboards { id, name, total, dashboards } = found;
    let back = format!("/projects/{project}/insights/{insight}");
    let content = if total == 0 {
        view! {
            <Empty title="No dashboard yet">
                <p>"The project has no dashboard that the insight could be added to."</p>
                <p>
                    <a class="button" href=format!("/projects/{project}/dashboards/new")>
                        "Create a dashboard"
                    </a>
                </p>
            </Empty>
        }
        .into_any()
    } else if dashboards.is_empty() {
        view! { <EmptyPage what="dashboards" /> }.into_any()
    } else {
        list(project, id, list_page, total, dashboards)
    };
    view! {
        <PageHead title=TITLE within=of.name />
        <p class="lead">{format!("{name} can be a tile of any dashboard of the project.")}</p>
        {content}
        <p><a class="button" href=back>"Back to the insight"</a></p>
    }
    .into_any()
}

fn list(
    project: i64,
    insight: i64,
    list_page: ListPage,
    total: u64,
    dashboards: Vec<InsightDashboard>,
) -> AnyView {
    let (add, remove) = (form_action::<AddTile>(), form_action::<RemoveTile>());
    let (added, removed) = (form_result(add), form_result(remove));
    let columns = vec![Column::text("Dashboard"), Column::text("Tile"), Column::text(ACTIONS)];
    // Of the first row: those of the others differ in the dashboard alone.
    let call = dashboards.first().map(|first| {
        let path = api_path(project, &first.id.to_string());
        let tile = match first.has_insight {
            true => json!({ "insight": insight, "deleted": true }),
            false => json!({ "insight": insight }),
        };
        let body = json!({ "tiles": [tile] });
        let verb = if first.has_insight { "remove from" } else { "add to" };
        let of = format!("{verb} {}", first.name);
        let call = ApiCall::new("PATCH", path, "dashboard:write").with(body);
        view! { <ApiRequest call=call of=of /> }
    });
    let row = |one: InsightDashboard| row(project, insight, one, add, remove);
    let rows = dashboards.into_iter().map(row).collect();
    view! {
        <FormFailure result=added />
        <FormFailure result=removed />
        <Table caption="Dashboards" columns=columns rows=rows />
        <Pager page=list_page total=total what="dashboards" />
        {call}
    }
    .into_any()
}

fn row(
    project: i64,
    insight: i64,
    dashboard: InsightDashboard,
    add: FormAction<AddTile>,
    remove: FormAction<RemoveTile>,
) -> TableRow {
    let InsightDashboard { id, name, has_insight } = dashboard;
    let of = name.clone();
    let fields = view! {
        <input type="hidden" name="project" value=project.to_string() />
        <input type="hidden" name="dashboard" value=id.to_string() />
        <input type="hidden" name="insight" value=insight.to_string() />
        <ReturnAddress />
    }
    .into_any();
    let form = match has_insight {
        true => view! {
            <ActionForm action=remove>
                {fields}
                <button type="submit" class="button" data-busy="Removing...">
                    "Remove"<span class="hidden">" from " {of}</span>
                </button>
            </ActionForm>
        }
        .into_any(),
        false => view! {
            <ActionForm action=add>
                {fields}
                <button type="submit" class="button" data-busy="Adding...">
                    "Add"<span class="hidden">" to " {of}</span>
                </button>
            </ActionForm>
        }
        .into_any(),
    };
    TableRow::new(vec![
        truncated_link(format!("/projects/{project}/dashboards/{id}"), name),
        cell(if has_insight { "Yes" } else { "No" }),
        cell(form),
    ])
}
