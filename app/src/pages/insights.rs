//! Insights: the saved questions of a project.

mod funnel;
mod lifecycle;
mod links;
mod paths;
pub(crate) mod persons;
pub(crate) mod question;
mod retention;
mod stickiness;
pub(super) mod trends;

use futures::future::try_join;
use leptos::prelude::*;

use super::project_in_path;
use crate::error::UiError;
use crate::local_path::encode;
use crate::server_fns::insights::{InsightLine, InsightList, list_insights};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::download::DownloadCsv;
use crate::ui::empty::{Empty, EmptyPage, NoMatch, first_event};
use crate::ui::page::{PageHead, page};
use crate::ui::pager::{ListPage, Pager, page_in_query};
use crate::ui::query::{FilterForm, SearchField, in_query, with_query};
use crate::ui::table::{Column, Table, TableRow, cell, truncated_link};
use crate::ui::time::{ProjectZone, Time};

const TITLE: &str = "Insights";
/// Insights on one page.
const PAGE_SIZE: u32 = 50;

/// The list in the address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Inputs {
    project: i64,
    search: String,
    list_page: ListPage,
}

/// The list of saved insights.
#[component]
pub(crate) fn Insights() -> impl IntoView {
    page(TITLE, read, load, draw)
}

fn read() -> Inputs {
    Inputs {
        project: project_in_path(),
        search: in_query("q"),
        list_page: page_in_query(PAGE_SIZE),
    }
}

async fn load(inputs: Inputs) -> Result<(ProjectView, InsightList), UiError> {
    let Inputs { project, search, list_page } = inputs;
    let ListPage { limit, offset } = list_page;
    try_join(get_project(project), list_insights(project, search, limit, offset)).await
}

fn draw(inputs: Inputs, (of, found): (ProjectView, InsightList)) -> AnyView {
    let (project, search) = (inputs.project, inputs.search.clone());
    let file = (!found.insights.is_empty()).then(|| view! { <DownloadCsv /> });
    let query =
        if search.is_empty() { String::new() } else { format!("?search={}", encode(&search)) };
    let path = format!("/api/projects/{project}/insights/{query}");
    let call = ApiCall::new("GET", path, "insight:read");
    let has_list = found.total > 0 || !search.is_empty();
    let filter = has_list.then(|| {
        view! {
            <FilterForm label="Search insights">
                <SearchField label="Name" value=search />
            </FilterForm>
        }
    });
    view! {
        <PageHead title=TITLE within=of.name>
            <a class="button button-primary" href=format!("/projects/{project}/insights/new")>
                "New insight"
            </a>
            {file}
        </PageHead>
        <ProjectZone zone=of.timezone />
        {super::dashboards::tabs(project)}
        <p class="lead">
            "An insight is a question about the events of this project, saved under a name. It is answered each time you open it."
        </p>
        {filter}
        {list(inputs, found, of.has_events)}
        <ApiRequest call=call />
    }
    .into_any()
}

fn list(inputs: Inputs, found: InsightList, has_events: bool) -> AnyView {
    let Inputs { project, search, list_page } = inputs;
    let InsightList { total, insights } = found;
    if total == 0 && search.is_empty() {
        return nothing(project, has_events);
    }
    if total == 0 {
        let clear = with_query(&[("q", None), ("offset", None)]);
        let filter = format!("with \"{search}\" in its name");
        return view! { <NoMatch filter=filter clear=clear /> }.into_any();
    }
    if insights.is_empty() {
        return view! { <EmptyPage what="insights" /> }.into_any();
    }
    let columns = vec![
        Column::text("Name"),
        Column::text("Question"),
        Column::text("Changed"),
        Column::text("Changed by"),
    ];
    let rows = insights.into_iter().map(|insight| row(project, insight)).collect();
    view! {
        <Table caption="Insights" columns=columns rows=rows />
        <Pager page=list_page total=total what="insights" />
    }
    .into_any()
}

fn nothing(project: i64, has_events: bool) -> AnyView {
    if !has_events {
        return view! {
            <Empty title="No event yet">
                <p>"Questions are about stored events, so send one first."</p>
                {first_event(project)}
            </Empty>
        }
        .into_any();
    }
    view! {
        <Empty title="No insight saved yet">
            <p>"Ask how often something happens, how many persons do one step after another, or how many come back. Save the question for your team."</p>
            <p>
                <a class="button" href=format!("/projects/{project}/insights/new")>
                    "Ask a question"
                </a>
            </p>
        </Empty>
    }
    .into_any()
}

fn row(project: i64, insight: InsightLine) -> TableRow {
    let InsightLine { short_id, name, kind, changed_at, changed_by } = insight;
    let changed_by = if changed_by.is_empty() { "A former member".to_owned() } else { changed_by };
    TableRow::new(vec![
        truncated_link(format!("/projects/{project}/insights/{short_id}"), name),
        cell(kind),
        cell(view! { <Time iso=changed_at /> }),
        cell(changed_by),
    ])
}
