//! Batch exports of an organization: the list, and shared parts of the pages of an
//! export.

pub(crate) mod backfill;
mod calls;
mod causes;
mod fields;
mod form;
pub(crate) mod logs;
pub(crate) mod new;
mod range;
pub(crate) mod runs;
pub(crate) mod settings;
mod words;

pub(crate) use form::all_labels;
use leptos::prelude::*;
use server_fn::ServerFn;
use weir_model::Timestamp;
use weir_model::exports::destinations::{ALL, DestinationType};
use weir_model::exports::lists::RUN_DAYS;
use weir_model::exports::{BatchExport, ExportModel, Run};

use super::{id_in_path, in_path};
use crate::server_fns::exports::{
    ExportHead, ExportList, ExportRow, PauseExport, UnpauseExport, list_exports,
};
use crate::ui::empty::{Empty, NoMatch};
use crate::ui::field::{Choice, Select, TextLine};
use crate::ui::form::{FormFailure, FormResult, ReturnAddress, form_result};
use crate::ui::form_action::form_action;
use crate::ui::icon::Icon;
use crate::ui::number::{counted, grouped};
use crate::ui::page::{PageHead, page};
use crate::ui::pager::{ListPage, Pager, page_in_query};
use crate::ui::query::{FilterForm, in_query, with_query};
use crate::ui::refresh::Refresh;
use crate::ui::sections::{SubNav, Tab};
use crate::ui::status::{Chip, Mark, Status, Strip};
use crate::ui::table::{Column, Table, TableRow, cell};
use crate::ui::time::Time;

const TITLE: &str = "Exports";
/// Exports on one page of the list.
const PAGE_SIZE: u32 = 20;
/// Interval of the refresh, in seconds.
const SECONDS: u32 = 30;
const DAY_SECONDS: i64 = 24 * 60 * 60;
/// Filters of the list: value and label.
const STATES: [(&str, &str); 4] =
    [("", "Any state"), ("failing", "Failing"), ("active", "Active"), ("paused", "Paused")];

#[component]
pub(crate) fn Exports() -> impl IntoView {
    page(
        TITLE,
        || {
            let asked = Asked {
                name: in_query("name"),
                state: in_query("state"),
                destination: in_query("destination"),
            };
            (id_in_path(), asked, page_in_query(PAGE_SIZE))
        },
        |(organization, asked, list_page)| {
            let Asked { name, state, destination } = asked;
            let ListPage { limit, offset } = list_page;
            list_exports(organization, name, state, destination, limit, offset)
        },
        |(_, asked, list_page), found| draw(asked, list_page, found),
    )
}

fn draw(asked: Asked, list_page: ListPage, found: ExportList) -> AnyView {
    let paused = form_result(form_action::<PauseExport>());
    let unpaused = form_result(form_action::<UnpauseExport>());
    let base = list_path(&found.organization.id);
    let within = found.organization.name.clone();
    let failure = view! { <FormFailure result=paused /> <FormFailure result=unpaused /> };
    let content = match (found.all, found.count) {
        (0, _) => nothing(&base),
        (_, 0) => view! {
            {filters(asked.clone(), paused)}
            <NoMatch filter=asked.words() clear=base.clone() />
        }
        .into_any(),
        _ => view! {
            {filters(asked, paused)}
            <Refresh seconds=SECONDS />
            <div id="exports">{listed(found, list_page)}</div>
        }
        .into_any(),
    };
    view! {
        <PageHead title=TITLE within=within>
            <a class="button button-primary" href=format!("{base}/new")>
                <Icon name="plus" />
                "New export"
            </a>
        </PageHead>
        <p class="lead">
            "An export sends the events or the persons of a project to a storage, a database or another instance at the end of every interval."
        </p>
        {failure}
        {content}
    }
    .into_any()
}

/// The query parameters.
#[derive(Clone, PartialEq)]
struct Asked {
    name: String,
    state: String,
    destination: String,
}

impl Asked {
    fn words(&self) -> String {
        let state = STATES.iter().find(|(word, _)| *word == self.state && !word.is_empty());
        let kind = DestinationType::of(&self.destination).map(|kind| kind.label.to_owned());
        let name = (!self.name.is_empty()).then(|| format!("name with \"{}\"", self.name));
        let all = [name, state.map(|(_, label)| (*label).to_owned()), kind];
        all.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

fn filters(asked: Asked, result: FormResult) -> AnyView {
    let states: Vec<Choice> =
        STATES.iter().map(|(word, label)| Choice::new(*word, *label)).collect();
    let mut kinds = vec![Choice::new("", "Any destination")];
    kinds.extend(ALL.iter().map(|kind| Choice::new(kind.name, kind.label)));
    view! {
        <FilterForm label="Filter exports">
            <TextLine result=result name="name" label="Name" value=asked.name kind="search" />
            <Select result=result name="state" label="State" choices=states value=asked.state />
            <Select result=result name="destination" label="Destination" choices=kinds
                value=asked.destination />
        </FilterForm>
    }
    .into_any()
}

fn nothing(base: &str) -> AnyView {
    let kinds = ALL
        .iter()
        .filter(|kind| kind.name != "NoOp")
        .map(|kind| view! { <li class="chip">{kind.label}</li> })
        .collect_view();
    let create = format!("{base}/new");
    view! {
        <Empty title="No export yet">
            <p>
                "An export keeps a copy of your events where you analyse them. A backfill exports the events from before the export was created."
            </p>
            <ul class="chips" aria-label="Destinations">{kinds}</ul>
            <p>
                <a class="button button-primary" href=create>"Create export"</a>
            </p>
        </Empty>
    }
    .into_any()
}

fn listed(found: ExportList, list_page: ListPage) -> AnyView {
    let ExportList { organization, count, rows, .. } = found;
    let several = organization.projects.len() > 1;
    let mut columns = vec![
        Column::text("Export"),
        Column::text("State"),
        Column::text("Last run"),
        Column::text("Next run"),
        Column::text("Recent runs"),
        Column::text("Schedule"),
    ];
    if several {
        columns.insert(1, Column::text("Project"));
    }
    let rows = rows
        .into_iter()
        .map(|row| {
            let project = several.then(|| organization.project(row.export.team_id.0));
            entry(row, &organization.id, project)
        })
        .collect();
    view! {
        <Table caption="Exports" columns=columns rows=rows />
        <Pager page=list_page total=count what="exports" />
    }
    .into_any()
}

fn entry(row: ExportRow, organization: &str, project: Option<String>) -> TableRow {
    let ExportRow { export, condition, recent, next_run } = row;
    let path = export_path(organization, &export.id.to_string());
    let (tone, state) = words::condition(&condition, export.paused);
    let last = match recent.first() {
        Some(run) => last_run(run, export.model, &path),
        None => view! { <span class="faint">"No run yet"</span> }.into_any(),
    };
    let next = match next_run {
        Some(next) => view! { <Time iso=next /> }.into_any(),
        None if export.paused => view! { <span class="faint">"Paused"</span> }.into_any(),
        None => view! { <span class="faint">"None, its end has passed"</span> }.into_any(),
    };
    let label = label_of(&export.destination.kind);
    let schedule_text = words::schedule_text(&export);
    let form = switch(&export, organization, &condition);
    let word = word_id(&export);
    let trouble = trouble(&export, &recent);
    let head = view! {
        <a class="export-name" href=path.clone()>{export.name}</a>
        <span class="hint">{label}</span>
    };
    let mut cells = vec![cell(head)];
    cells.extend(project.map(cell));
    cells.push(cell(view! { <Status tone=tone label=state id=word /> {trouble} }));
    cells.push(last);
    cells.push(next);
    cells.push(strip(&recent, &path, export.failing_since.is_some()));
    cells.push(cell(view! {
        <div class="export-schedule">
            <span>{schedule_text}</span>
            {form}
        </div>
    }));
    TableRow::new(cells)
}

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

fn last_run(run: &Run, model: ExportModel, path: &str) -> AnyView {
    let (tone, label) = words::run(run);
    let rows = words::count(run.records_completed).map(|count| {
        let (one, many) = words::rows(model);
        view! { <span class="hint">{counted(count, one, many)}</span> }
    });
    let when = run.finished_at.unwrap_or(run.created_at).to_string();
    view! {
        <a class="export-run" href=run_path(path, run)>
            <Status tone=tone label=label />
        </a>
        {rows}
        <span class="hint"><Time iso=when /></span>
    }
    .into_any()
}

/// The newest runs as shapes, the oldest first.
fn strip(recent: &[Run], path: &str, is_failing: bool) -> AnyView {
    if recent.is_empty() {
        return view! { <span class="faint">"-"</span> }.into_any();
    }
    let mark = |run: &Run| {
        let (tone, label) = words::run(run);
        let rows = words::count(run.records_completed).map(grouped).unwrap_or_default();
        let rows = if rows.is_empty() { rows } else { format!(", {rows} delivered") };
        Mark {
            tone,
            title: format!("{label}: {}{rows}", range::text(run)),
            href: Some(run_path(path, run)),
        }
    };
    let summary = summary(recent, is_failing);
    view! { <Strip marks=recent.iter().rev().map(mark).collect() summary=summary /> }.into_any()
}

/// A text with the number of newest runs that failed, including those that will be
/// retried.
fn summary(recent: &[Run], is_failing: bool) -> String {
    let total = counted(recent.len() as u64, "run", "runs");
    match recent.iter().filter(|run| run.is_failing()).count() {
        0 if is_failing => format!("None of the last {total} failed. An older run is retried."),
        0 => format!("None of the last {total} failed."),
        failed => format!("{failed} of the last {total} failed."),
    }
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
    let error = error.map(|text| view! { <span class="export-error">{text.to_owned()}</span> });
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
    time.to_chrono().format("%Y-%m-%dT00:00").to_string()
}

/// Links to older items, and back to the newest. `by` is the query parameter for the
/// upper bound of the page; `begins` is its current value.
fn ways(what: &str, by: &'static str, begins: &str, older: Option<&str>) -> AnyView {
    let way = |rel: &'static str, words: String, begins: Option<&str>| {
        let href = with_query(&[(by, begins)]);
        view! { <a class="button" rel=rel href=href>{words}</a> }
    };
    let newest = (!begins.is_empty()).then(|| way("prev", format!("Newest {what}"), None));
    let older = older.map(|older| way("next", format!("Older {what}"), Some(older)));
    view! {
        <nav class="pager" aria-label=format!("Pages of {what}")>
            <div class="pager-ways">{newest}{older}</div>
        </nav>
    }
    .into_any()
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
    let next = match &found.next_run {
        Some(next) => view! { <span>"Next run " <Time iso=next.clone() /></span> }.into_any(),
        None if export.paused => view! { <span>"No run while it is paused"</span> }.into_any(),
        None => view! { <span>"No further run: its end has passed"</span> }.into_any(),
    };
    let tab = |rest: &str, label: &str| Tab {
        href: format!("{path}{rest}"),
        label: label.to_owned(),
        count: None,
    };
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
        <p class="crumb"><a href=list_path(&found.organization.id)>"Exports"</a></p>
        <PageHead title=export.name.clone() within=format!("{title} - {}", found.organization.name)>
            {form}
        </PageHead>
        <p class="export-facts">
            <Status tone=tone label=state id=word_id(export) />
            <span>{label_of(&export.destination.kind)}</span>
            <span>{words::model(export.model)}</span>
            {project}
            <span>{words::schedule_text(export)}</span>
            {next}
        </p>
        {trouble}
        <SubNav label="Pages of the export" tabs=tabs />
        <FormFailure result=paused />
        <FormFailure result=unpaused />
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use weir_model::exports::Status;

    use super::*;

    const ID: &str = "00000000-0000-4000-8000-000000000000";

    #[test]
    fn a_retried_run_counts_as_failed() {
        let at = Timestamp::from_micros(0);
        let run = |status, failing_since| Run {
            id: ID.parse().unwrap(),
            status,
            records_completed: None,
            latest_error: None,
            data_interval_start: None,
            data_interval_end: at,
            cursor: None,
            created_at: at,
            finished_at: None,
            last_updated_at: at,
            records_total_count: None,
            batch_export: ID.parse().unwrap(),
            failing_since,
            next_try_at: None,
        };
        let runs = [run(Status::Running, Some(at)), run(Status::Running, None)];
        assert_eq!(summary(&runs, true), "1 of the last 2 runs failed.");
        assert_eq!(summary(&runs[1..], false), "None of the last 1 run failed.");
        let older = "None of the last 1 run failed. An older run is retried.";
        assert_eq!(summary(&runs[1..], true), older);
        assert_eq!(words::run(&runs[0]).1, "Failing, retried");
        assert_eq!(words::run(&runs[1]).1, "Running");
    }
}
