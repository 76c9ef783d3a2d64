//! From nothing to the first event: the key, a snippet, and what arrived.

mod snippets;

use std::sync::Arc;

use leptos::prelude::*;

use super::project_in_path;
use crate::live::{Feed, OutcomeBadge, Row};
use crate::server_fns::events::list_live_rows;
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::copy::CopyValue;
use crate::ui::icon::Icon;
use crate::ui::page_head::PageHead;
use crate::ui::panel::Panel;
use crate::ui::tabs::CodeTabs;
use crate::ui::time::Clock;

/// Rows of the list.
const ROWS: usize = 8;

/// The page.
#[component]
pub(crate) fn Start() -> impl IntoView {
    let id = project_in_path();
    let name = RwSignal::new(String::new());
    let data = Resource::new(
        move || id.get(),
        |id| async move {
            let project = get_project(id).await?;
            Ok((project, list_live_rows(id, 20).await?))
        },
    );
    let content = move |(project, rows): (ProjectView, Vec<Row>)| {
        name.set(project.name.clone());
        view! { <Steps project=project rows=rows /> }.into_any()
    };
    view! {
        <PageHead title=Signal::stored("Send your first event".to_owned()) within=name />
        <Panel data=data lines=14 view=content />
    }
    .into_any()
}

#[component]
fn Steps(project: ProjectView, rows: Vec<Row>) -> impl IntoView {
    let feed = Feed::new(project.id, rows);
    let any = Memo::new(move |_| feed.rows.with(|rows| !rows.is_empty()));
    let stored =
        Memo::new(move |_| feed.rows.with(|rows| rows.iter().any(|row| !row.is_dropped())));
    let done = project.has_events;
    let arrived = Signal::derive(move || done || stored.get());
    let ProjectView { id, key, host, .. } = project;
    let first = snippets::of(&host, &key, true);
    let broken = snippets::of(&host, &key, false);
    view! {
        <ol class="steps">
            <Step title="Take the project key" done=Signal::stored(true)>
                <div class="key-box">
                    <CopyValue text=key what="project key" />
                    <p class="hint">"Safe to put into client code: it can send events and nothing else."</p>
                </div>
            </Step>
            <Step title="Send an event" done=arrived>
                <p>"Paste this into a terminal, or run it where your code runs."</p>
                <CodeTabs name="first" legend="Language of the snippet" tabs=first />
            </Step>
            <Step title="See it here" done=Signal::derive(move || any.get())>
                <Arrived feed=feed project=id host=host />
            </Step>
            <Step title="See what is not stored" done=Signal::derive(move || {
                feed.rows.with(|rows| rows.iter().any(|row| row.is_dropped()))
            })>
                <p>
                    "This one lacks its "
                    <code>"distinct_id"</code>
                    ". The answer is 200 all the same, as libraries expect, and the event is not stored. It appears above with the reason and the fix."
                </p>
                <CodeTabs name="broken" legend="Language of the broken snippet" tabs=broken />
            </Step>
        </ol>
        <section class="next" aria-labelledby="next">
            <h2 id="next">"Next"</h2>
            <ul class="next-list">
                <li><a href=format!("/projects/{id}/live")>"Watch events arrive"</a></li>
                <li><a href="/account/keys/new">"Create a read-only API key"</a></li>
                <li><a href=format!("/projects/{id}/settings")>"Name the project and set its time zone"</a></li>
            </ul>
        </section>
    }
}

#[component]
fn Step(
    title: &'static str,
    #[prop(into)] done: Signal<bool>,
    children: Children,
) -> impl IntoView {
    view! {
        <li class="step" class:step-done=move || done.get()>
            <h2>
                {title}
                {move || done.get().then(|| view! {
                    <span class="step-tick"><Icon name="check" /><span class="hidden">" (done)"</span></span>
                })}
            </h2>
            {children()}
        </li>
    }
    .into_any()
}

/// The latest rows, or what is waited for.
#[component]
fn Arrived(feed: Feed, project: i64, host: String) -> impl IntoView {
    let latest = Memo::new(move |_| {
        feed.rows.with(|rows| rows.iter().take(ROWS).cloned().collect::<Vec<Arc<Row>>>())
    });
    let waits = Memo::new(move |_| latest.with(Vec::is_empty));
    let host = StoredValue::new(host);
    view! {
        <p class="hidden" role="status" aria-live="polite">{move || feed.summary.get()}</p>
        {move || if waits.get() {
            view! {
                <div class="waiting">
                    <span class="pulse" aria-hidden="true"></span>
                    <div>
                        <p><strong>"Waiting for the first event"</strong></p>
                        <p class="hint">
                            "Listening for anything sent with this key to " <code>{host.get_value()}</code>
                        </p>
                    </div>
                </div>
            }.into_any()
        } else {
            view! {
                <ol class="arrivals">
                    <For each=move || latest.get() key=|row| row.key.clone() let:row>
                        {arrival(project, &row)}
                    </For>
                </ol>
            }.into_any()
        }}
        <details class="help">
            <summary>"Nothing arrives?"</summary>
            <ul>
                <li>"The command must print an answer with status 200. If it cannot connect, the host is not reachable from there: try "
                    <code>{format!("curl -i {}/_livez", host.get_value())}</code> "."</li>
                <li>"401 means that the key is not the one above, or was cut while pasting."</li>
                <li>"From a browser, an extension that blocks tracking can hold the request back."</li>
                <li>"Behind a proxy, check that it passes POST requests on to Weir."</li>
            </ul>
        </details>
    }
}

fn arrival(project: i64, row: &Row) -> AnyView {
    let href = format!("/projects/{project}/live?row={}", crate::local_path::encode(&row.key));
    let reasons = row
        .explained()
        .into_iter()
        .map(|explained| {
            view! {
                <p class="arrival-why">
                    <strong>{explained.sentence}</strong>
                    " "
                    {explained.fix}
                </p>
            }
        })
        .collect_view();
    view! {
        <li class="arrival" class:arrival-dropped=row.is_dropped()>
            <OutcomeBadge row=row />
            <a class="arrival-name" href=href>{row.name()}</a>
            <span class="arrival-id">{row.distinct_id.clone()}</span>
            <Clock iso=row.received_at.clone() />
            {reasons}
        </li>
    }
    .into_any()
}
