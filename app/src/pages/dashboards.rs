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

use super::project_in_path;
use crate::error::UiError;
use crate::local_path::encode;
use crate::server_fns::dashboards::{DashboardLine, DashboardList, list_dashboards};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::download::DownloadCsv;
use crate::ui::empty::{Empty, EmptyPage, NoMatch};
use crate::ui::number::grouped;
use crate::ui::page::{PageHead, page};
use crate::ui::pager::{ListPage, Pager, page_in_query};
use crate::ui::query::{FilterForm, SearchField, in_query, with_query};
use crate::ui::sections::{SubNav, Tab};
use crate::ui::table::{Column, Table, TableRow, cell, truncated, truncated_link};
use crate::ui::time::{ProjectZone, Time};

const TITLE: &str = "Dashboards";
/// Dashboards on one page.
const PAGE_SIZE: u32 = 50;

/// The list in the address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Inputs {
    project: i64,
    search: String,
    list_page: ListPage,
}

/// The list of dashboards.
#[component]
pub(crate) fn Dashboards() -> impl IntoView {
    page(TITLE, read, load, draw)
}

fn read() -> Inputs {
    Inputs {
        project: project_in_path(),
        search: in_query("q"),
        list_page: page_in_query(PAGE_SIZE),
    }
}

async fn load(inputs: Inputs) -> Result<(ProjectView, DashboardList), UiError> {
    let Inputs { project, search, list_page } = inputs;
    let ListPage { limit, offset } = list_page;
    try_join(get_project(project), list_dashboards(project, search, limit, offset)).await
}

fn draw(inputs: Inputs, (of, found): (ProjectView, DashboardList)) -> AnyView {
    let (project, search) = (inputs.project, inputs.search.clone());
    let file = (!found.dashboards.is_empty()).then(|| view! { <DownloadCsv /> });
    let query =
        if search.is_empty() { String::new() } else { format!("?search={}", encode(&search)) };
    let path = format!("/api/projects/{project}/dashboards/{query}");
    let call = ApiCall::new("GET", path, "dashboard:read");
    let has_list = found.total > 0 || !search.is_empty();
    let filter = has_list.then(|| {
        view! {
            <FilterForm label="Search dashboards">
                <SearchField label="Name" value=search />
            </FilterForm>
        }
    });
    view! {
        <PageHead title=TITLE within=of.name>
            <a class="button button-primary" href=format!("/projects/{project}/dashboards/new")>
                "New dashboard"
            </a>
            {file}
        </PageHead>
        <ProjectZone zone=of.timezone />
        {tabs(project)}
        <p class="lead">
            "A dashboard shows the answers of several insights on one page. Links can show it to people without an account."
        </p>
        {filter}
        {list(inputs, found)}
        <ApiRequest call=call />
    }
    .into_any()
}

/// Links between the pages of questions.
pub(super) fn tabs(project: i64) -> AnyView {
    let tab = |path: &str, label: &str| Tab {
        href: format!("/projects/{project}/{path}"),
        label: label.to_owned(),
        count: None,
    };
    let tabs = vec![tab("insights", "Insights"), tab("dashboards", TITLE), tab("sql", "SQL")];
    view! { <SubNav label="Questions" tabs=tabs /> }.into_any()
}

fn list(inputs: Inputs, found: DashboardList) -> AnyView {
    let Inputs { project, search, list_page } = inputs;
    let DashboardList { total, dashboards } = found;
    if total == 0 && search.is_empty() {
        return view! {
            <Empty title="No dashboard yet">
                <p>"Put the insights that you read together on one page."</p>
                <p>
                    <a class="button" href=format!("/projects/{project}/dashboards/new")>
                        "Create a dashboard"
                    </a>
                </p>
            </Empty>
        }
        .into_any();
    }
    if total == 0 {
        let clear = with_query(&[("q", None), ("offset", None)]);
        let filter = format!("with \"{search}\" in its name");
        return view! { <NoMatch filter=filter clear=clear /> }.into_any();
    }
    if dashboards.is_empty() {
        return view! { <EmptyPage what="dashboards" /> }.into_any();
    }
    let columns = vec![
        Column::text("Name"),
        Column::text("Description"),
        Column::number("Tiles"),
        Column::text("Shared"),
        Column::text("Created"),
        Column::text("Created by"),
    ];
    let rows = dashboards.into_iter().map(|line| row(project, line)).collect();
    view! {
        <Table caption=TITLE columns=columns rows=rows />
        <Pager page=list_page total=total what="dashboards" />
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

/// The name of a member, who can have left.
fn member(name: String) -> String {
    if name.is_empty() { "A former member".to_owned() } else { name }
}

/// The address of a dashboard in the API.
fn api_path(project: i64, dashboard: &str) -> String {
    format!("/api/projects/{project}/dashboards/{dashboard}/")
}
