//! Onboarding of a project: the key, snippets, and the first events.

mod checklist;
mod snippets;

use futures::future::try_join4;
use leptos::prelude::*;
use weir_model::live::EventsFilter;

use super::project_in_path;
use crate::live::{RecentEvents, Row};
use crate::server_fns::events::list_events;
use crate::server_fns::project_start::{
    SendTestEvent, StartHelpView, get_checklist, get_start_help,
};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::copy::CopyValue;
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::icon::Icon;
use crate::ui::page::{PageHead, page};
use crate::ui::refresh::Refresh;
use crate::ui::tabs::CodeTabs;
use crate::ui::time::Time;

use checklist::Checklist;

const TITLE: &str = "Send your first event";
/// Rows that are read. At most 50 refused requests are kept, so there is room for other
/// rows.
const LOOKED_AT: u16 = 70;
/// Rows that decide which steps are complete.
const ROWS: usize = 20;
/// Limit of refused requests among them.
const REFUSED: usize = 5;

#[component]
pub(crate) fn Start() -> impl IntoView {
    page(
        TITLE,
        project_in_path,
        |id| async move {
            let filter = EventsFilter::default();
            let rows = list_events(id, filter, String::new(), LOOKED_AT, Vec::new());
            let (project, page, help, list) =
                try_join4(get_project(id), rows, get_start_help(id), get_checklist(id)).await?;
            Ok((project, chosen(page.rows), help, list))
        },
        |id, (project, rows, help, list)| {
            let organization = project.organization.clone();
            let title = if project.has_events { "Send events" } else { TITLE };
            view! {
                <PageHead title=title within=project.name.clone() />
                <Steps project=project rows=rows help=help />
                <Checklist project=id organization=organization list=list />
            }
            .into_any()
        },
    )
}

/// The newest rows, with a limited number of refused requests.
fn chosen(mut rows: Vec<Row>) -> Vec<Row> {
    let mut refused = 0;
    rows.retain(|row| {
        let is_event = row.is_stored() || row.is_dropped();
        refused += usize::from(!is_event);
        is_event || refused <= REFUSED
    });
    rows.truncate(ROWS);
    rows
}

#[component]
fn Steps(project: ProjectView, rows: Vec<Row>, help: StartHelpView) -> impl IntoView {
    let ProjectView { id, key, host, capture_host, has_events, .. } = project;
    // The live part updates the ticks as rows arrive.
    let stored = has_events || rows.iter().any(Row::is_stored);
    let dropped = rows.iter().any(Row::is_dropped);
    let any = stored || dropped;
    let mut first_snippets = snippets::of(&capture_host, &key, true);
    first_snippets.push(snippets::of_web_site(&capture_host, &key));
    let dropped_snippets = snippets::of(&capture_host, &key, false);
    view! {
        <ol class="steps">
            <Step name="key" title="Copy your project key" done=any>
                <div class="key-box">
                    <CopyValue text=key what="project key" />
                    <p class="hint">"Safe to put into client code: it can send events and nothing else."</p>
                </div>
            </Step>
            <Step name="send" title="Send an event" done=stored>
                <p>"Paste this into a terminal, run it where your code runs, or put it into your web pages."</p>
                <CodeTabs name="first" legend="Language of the snippet" tabs=first_snippets />
                <TestEvent project=id />
            </Step>
            <Step name="check" title="Check that it arrives" done=any>
                <RecentEvents project=id rows=rows host=host.clone() />
                <Help project=id host=host help=help waiting=!any />
            </Step>
            <Step name="dropped" title="See a dropped event" done=dropped>
                <p>
                    "This one lacks its "
                    <code>"distinct_id"</code>
                    ". The answer is still 200, as libraries expect, but the event is not stored. It appears above with the reason and the fix."
                </p>
                <CodeTabs name="dropped" legend="Language of the snippet for a dropped event" tabs=dropped_snippets />
            </Step>
        </ol>
    }
}

/// Sends a test event to Weir, for users without a terminal.
#[component]
fn TestEvent(project: i64) -> impl IntoView {
    let send = form_action::<SendTestEvent>();
    let result = form_result(send);
    view! {
        <div class="send-test">
            <ActionForm action=send>
                <FormFailure result=result />
                <input type="hidden" name="id" value=project.to_string() />
                <ReturnAddress part="step-check" />
                <p class="hint">
                    "Or let Weir send an event to itself. This shows that Weir works, but not that your code can reach it."
                </p>
                <button type="submit" class="button" data-busy="Sending event...">"Send a test event"</button>
            </ActionForm>
        </div>
    }
    .into_any()
}

#[component]
fn Step(name: &'static str, title: &'static str, done: bool, children: Children) -> impl IntoView {
    view! {
        <li id=format!("step-{name}") class=if done { "step step-done" } else { "step" } data-step=name>
            <h2>
                {title}
                <span class="step-tick" data-tick="" hidden=!done>
                    <Icon name="check" />
                    <span class="hidden">" (done)"</span>
                </span>
            </h2>
            {children()}
        </li>
    }
    .into_any()
}

/// Troubleshooting. While no event has arrived it is refreshed, and it opens
/// automatically when an event would be expected.
#[component]
fn Help(project: i64, host: String, help: StartHelpView, waiting: bool) -> impl IntoView {
    let StartHelpView { is_late, strays } = help;
    let opened = waiting && (is_late || !strays.is_empty());
    let seen = strays.into_iter().map(|stray| {
        view! {
            <li>
                "A request with " {stray.key}
                {(!stray.address.is_empty()).then(|| view! { " came from " <code>{stray.address}</code> })}
                " at " <Time iso=stray.at /> "."
            </li>
        }
    });
    let seen = seen.collect_view();
    let list = view! {
        <details class="help" open=opened>
            <summary>"No event arrives?"</summary>
            <ul>
                {seen}
                <li>
                    "The command must print an answer with status 200. If it cannot connect, the host is not reachable from there: try "
                    <code>{format!("curl -i {host}/_livez")}</code> ". To compare, open that address in your browser."
                </li>
                <li>"401 means that the key differs from the one above, or was pasted incompletely."</li>
                <li>"In a browser, an extension that blocks tracking can block the request."</li>
                <li>"Behind a proxy, check that it forwards POST requests to Weir."</li>
                <li>
                    "Dropped events are counted by reason on the page "
                    <a href=format!("/projects/{project}/health")>"Health"</a> "."
                </li>
            </ul>
        </details>
    }
    .into_any();
    if waiting {
        view! {
            <div id="start-help">{list}</div>
            <Refresh seconds=30 />
        }
        .into_any()
    } else {
        list
    }
}
