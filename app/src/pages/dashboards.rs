//! Dashboards: saved insights of a project side by side.

mod answer;
pub(crate) mod new;
pub(crate) mod of_insight;
pub(crate) mod one;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod sharing;
mod tiles;

use futures::future::try_join;
use leptos::prelude::*;

use super::named_list::{self, Found, Inputs, NamedList, member};
use crate::error::UiError;
use crate::server_fns::dashboards::{DashboardLine, DashboardList, list_dashboards};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::empty::Empty;
use crate::ui::number::grouped;
use crate::ui::page::page;
use crate::ui::pager::ListPage;
use crate::ui::sections::{SubNav, Tab};
use crate::ui::table::{Column, TableRow, cell, truncated, truncated_link};
use crate::ui::time::Time;

const TITLE: &str = "Dashboards";

static LIST: NamedList = NamedList {
    title: TITLE,
    entries: "dashboards",
    entry: "dashboard",
    scope: "dashboard:read",
    lead: "A dashboard shows the answers of several insights on one page. Links can show it to people without an account.",
};

/// The list of dashboards.
#[component]
pub(crate) fn Dashboards() -> impl IntoView {
    page(TITLE, named_list::read, load, draw)
}

async fn load(inputs: Inputs) -> Result<(ProjectView, DashboardList), UiError> {
    let Inputs { project, search, list_page } = inputs;
    let ListPage { limit, offset } = list_page;
    try_join(get_project(project), list_dashboards(project, search, limit, offset)).await
}

fn draw(inputs: Inputs, (of, found): (ProjectView, DashboardList)) -> AnyView {
    let columns = vec![
        Column::text("Name"),
        Column::text("Description"),
        Column::number("Tiles"),
        Column::text("Shared"),
        Column::text("Created"),
        Column::text("Created by"),
    ];
    let project = inputs.project;
    let rows = found.dashboards.into_iter().map(|line| row(project, line)).collect();
    named_list::draw(&LIST, inputs, of, Found { total: found.total, columns, rows }, nothing)
}

/// Links between the pages of questions.
pub(super) fn tabs(project: i64) -> AnyView {
    let tab = |path: &str, label: &str| Tab::new(format!("/projects/{project}/{path}"), label);
    let tabs = vec![tab("insights", "Insights"), tab("dashboards", TITLE), tab("sql", "SQL")];
    view! { <SubNav label="Questions" tabs=tabs /> }.into_any()
}

fn nothing(project: i64) -> AnyView {
    view! {
        <Empty title="No dashboard yet">
            <p>"Put the insights that you read together on one page."</p>
            <p>
                <a class="button" href=format!("/projects/{project}/dashboards/new")>
                    "Create a dashboard"
                </a>
            </p>
        </Empty>
    }
    .into_any()
}

fn row(project: i64, line: DashboardLine) -> TableRow {
    let DashboardLine { id, name, description, pinned, is_shared, tiles, created_at, created_by } =
        line;
    let link = truncated_link(format!("/projects/{project}/dashboards/{id}"), name);
    let pinned = pinned.then(|| view! { " " <span class="chip">"Pinned"</span> });
    let description = if description.is_empty() { "-".to_owned() } else { description };
    TableRow::new(vec![
        cell(view! { {link} {pinned} }),
        truncated(description),
        cell(grouped(tiles)),
        cell(if is_shared { "Yes" } else { "No" }),
        cell(view! { <Time iso=created_at /> }),
        cell(member(created_by)),
    ])
}

/// The address of a dashboard in the API.
fn api_path(project: i64, dashboard: &str) -> String {
    format!("/api/projects/{project}/dashboards/{dashboard}/")
}
