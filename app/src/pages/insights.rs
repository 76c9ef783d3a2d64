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

use super::named_list::{self, Found, Inputs, NamedList, member};
use crate::error::UiError;
use crate::server_fns::insights::{InsightLine, InsightList, list_insights};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::empty::{Empty, no_event};
use crate::ui::page::page;
use crate::ui::pager::ListPage;
use crate::ui::status::{Status, Tone};
use crate::ui::table::{Column, TableRow, cell, truncated_link};
use crate::ui::time::Time;

const TITLE: &str = "Insights";
/// What events are needed for.
const NO_EVENT: &str = "Questions are about stored events, so send one first.";

static LIST: NamedList = NamedList {
    title: TITLE,
    entries: "insights",
    entry: "insight",
    scope: "insight:read",
    lead: "An insight is a question about the events of this project, saved under a name. It is answered each time you open it.",
};

/// The list of saved insights.
#[component]
pub(crate) fn Insights() -> impl IntoView {
    page(TITLE, named_list::read, load, draw)
}

async fn load(inputs: Inputs) -> Result<(ProjectView, InsightList), UiError> {
    let Inputs { project, search, list_page } = inputs;
    let ListPage { limit, offset } = list_page;
    try_join(get_project(project), list_insights(project, search, limit, offset)).await
}

fn draw(inputs: Inputs, (of, found): (ProjectView, InsightList)) -> AnyView {
    let columns = vec![
        Column::text("Name"),
        Column::text("Question"),
        Column::text("Changed"),
        Column::text("Changed by"),
    ];
    let (project, has_events) = (inputs.project, of.has_events);
    let rows = found.insights.into_iter().map(|insight| row(project, insight)).collect();
    let found = Found { total: found.total, columns, rows };
    named_list::draw(&LIST, inputs, of, found, |project| nothing(project, has_events))
}

fn nothing(project: i64, has_events: bool) -> AnyView {
    if !has_events {
        return no_event(project, NO_EVENT);
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
    let InsightLine { short_id, name, kind, changed_at, changed_by, is_firing } = insight;
    let path = match kind.as_str() {
        "SQL" => format!("/projects/{project}/sql?insight={short_id}"),
        _ => format!("/projects/{project}/insights/{short_id}"),
    };
    let alerts = is_firing.then(|| {
        let href = format!("/projects/{project}/insights/{short_id}/alerts");
        view! { " " <a href=href><Status tone=Tone::Bad label="Alert fires" /></a> }
    });
    let name = truncated_link(path, name);
    TableRow::new(vec![
        cell(view! { {name} {alerts} }),
        cell(kind),
        cell(view! { <Time iso=changed_at /> }),
        cell(member(changed_by)),
    ])
}
