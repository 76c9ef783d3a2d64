//! Batch exports of an organization: shared parts of the pages of an export.

pub(crate) mod backfill;
mod calls;
mod causes;
mod fields;
pub(super) mod form;
mod list;
pub(crate) mod logs;
pub(crate) mod new;
mod range;
pub(crate) mod runs;
pub(crate) mod settings;
pub(super) mod words;

pub(crate) use form::all_labels;
use leptos::prelude::*;
pub(crate) use list::Exports;
use server_fn::ServerFn;
use weir_model::Timestamp;
use weir_model::exports::destinations::DestinationType;
use weir_model::exports::lists::RUN_DAYS;
use weir_model::exports::{BatchExport, Run};

use super::in_path;
use crate::server_fns::exports::{ExportHead, PauseExport, UnpauseExport};
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::form_action;
use crate::ui::page::PageHead;
use crate::ui::query::with_query;
use crate::ui::sections::{SubNav, Tab};
use crate::ui::status::{Chip, Status};
use crate::ui::table::truncated;
use crate::ui::time::{Ago, Time};

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// The id of the element with the state of an export, which the pause button updates.
fn word_id(export: &BatchExport) -> String {
    format!("state-{}", export.id)
}

fn switch(export: &BatchExport, organization: &str, condition: &str) -> AnyView {
    let (function, verb, busy) = match export.paused {
        true => (UnpauseExport::PATH, "Unpause", "Unpausing export..."),
        false => (PauseExport::PATH, "Pause", "Pausing export..."),
    };
    let (organization, of) = (organization.to_owned(), export.name.clone());
    let (_, becomes) = words::condition(condition, !export.paused);
    let state = word_id(export);
    view! {
        <form method="post" action=function>
            <input type="hidden" name="organization" value=organization />
            <input type="hidden" name="export" value=export.id.to_string() />
            <ReturnAddress />
            <button type="submit" class="button" data-busy=busy data-state=state data-becomes=becomes>
                {verb}
                <span class="hidden">" " {of}</span>
            </button>
        </form>
    }
    .into_any()
}

/// Since when an export fails, the time of the next attempt, and the cause.
fn trouble(export: &BatchExport, recent: &[Run]) -> Option<AnyView> {
    let since = export.failing_since?.to_string();
    let next = match export.next_try_at {
        Some(next) => view! { ", next try " <Time iso=next.to_string() /> }.into_any(),
        None if recent.iter().any(Run::is_retried) => ", tried again now".into_any(),
        None => ().into_any(),
    };
    let error = export.latest_error.as_deref().and_then(|error| error.lines().next());
    let error = error.map(|text| view! { <span class="hint">{truncated(text.to_owned())}</span> });
    Some(
        view! {
            <span class="hint">"Failing since " <Time iso=since /> {next}</span>
            {error}
        }
        .into_any(),
    )
}

fn label_of(kind: &str) -> &'static str {
    DestinationType::of(kind).map_or("Unknown destination", |kind| kind.label)
}

fn list_path(organization: &str) -> String {
    format!("/organizations/{organization}/exports")
}

fn export_path(organization: &str, export: &str) -> String {
    format!("{}/{export}", list_path(organization))
}

/// The address of the list around one of the newest runs. The list begins as many days
/// before the run as it shows by default. The few newer runs fit on the same page.
fn run_path(path: &str, run: &Run) -> String {
    let since = run.created_at.plus_seconds(-RUN_DAYS * DAY_SECONDS);
    format!("{path}?after={}#run-{}", day(since), run.id)
}

/// The beginning of the day, in the format of `datetime-local` fields.
fn day(time: Timestamp) -> String {
    format!("{}T00:00", time.day_text())
}

/// Links to older items, and back to the newest. `by` is the query parameter for the
/// upper bound of the page; `begins` is its current value.
fn pager_links(what: &str, by: &'static str, begins: &str, older: Option<&str>) -> AnyView {
    let link = |rel: &'static str, words: String, begins: Option<&str>| {
        let href = with_query(&[(by, begins)]);
        view! { <a class="button" rel=rel href=href>{words}</a> }
    };
    let newest = (!begins.is_empty()).then(|| link("prev", format!("Newest {what}"), None));
    let older = older.map(|older| link("next", format!("Older {what}"), Some(older)));
    view! {
        <nav class="pager" aria-label=format!("Pages of {what}")>
            <div class="pager-ways">{newest}{older}</div>
        </nav>
    }
    .into_any()
}

/// When the schedule starts the next run.
fn next_run(next: Option<String>, paused: bool) -> AnyView {
    match next {
        Some(next) => view! { "Next run " <Ago iso=next /> }.into_any(),
        None if paused => "No runs while paused".into_any(),
        None => "No further runs: its end has passed".into_any(),
    }
}

/// The id of the export in the address.
fn export_in_path() -> String {
    in_path("export")
}

/// The head of every page of one export.
fn head(found: &ExportHead, title: &'static str) -> AnyView {
    let export = &found.export;
    let path = export_path(&found.organization.id, &export.id.to_string());
    let (tone, state) = words::condition(&found.condition, export.paused);
    let next = next_run(found.next_run.clone(), export.paused);
    let tab = |rest: &str, label: &str| Tab::new(format!("{path}{rest}"), label);
    let tabs = vec![
        tab("", "Runs"),
        tab("/backfill", "Backfill"),
        tab("/settings", "Settings"),
        tab("/logs", "Logs"),
    ];
    let project = (found.organization.projects.len() > 1).then(|| {
        view! { <Chip label=found.organization.project(export.team_id.0) /> }
    });
    let form = switch(export, &found.organization.id, &found.condition);
    let trouble = trouble(export, &export.latest_runs)
        .map(|trouble| view! { <p class="export-facts" id="trouble">{trouble}</p> });
    let paused = form_result(form_action::<PauseExport>());
    let unpaused = form_result(form_action::<UnpauseExport>());
    view! {
        <PageHead title=export.name.clone() within=format!("{title} - {}", found.organization.name)>
            {form}
        </PageHead>
        <p class="export-facts">
            <Status tone=tone label=state id=word_id(export) />
            <span>{label_of(&export.destination.kind)}</span>
            <span>{words::model(export.model)}</span>
            {project}
            <span>{words::schedule_text(export)}</span>
            <span>{next}</span>
        </p>
        {trouble}
        <SubNav label="Pages of the export" tabs=tabs />
        <FormFailure result=paused />
        <FormFailure result=unpaused />
    }
    .into_any()
}
