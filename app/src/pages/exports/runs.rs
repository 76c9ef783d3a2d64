//! Runs of an export: delivered rows, failures, and retries.

use futures::future::try_join;
use leptos::prelude::*;

use super::calls::call;
use super::{causes, day, export_in_path, export_path, head, pager_links, range, words};
use crate::pages::id_in_path;
use crate::server_fns::exports::runs::{
    CancelExportRun, RetryExportRun, RunList, RunRow, list_export_runs,
};
use crate::server_fns::exports::{ExportHead, get_export};
use crate::ui::api_request::ApiRequest;
use crate::ui::bytes;
use crate::ui::code::Code;
use crate::ui::confirm::Confirm;
use crate::ui::download::DownloadCsv;
use crate::ui::empty::{Empty, NoMatch};
use crate::ui::field::{MomentField, Select, choices};
use crate::ui::form::{FormFailure, FormResult, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::icon::Icon;
use crate::ui::number::{Id, duration, grouped};
use crate::ui::page::page;
use crate::ui::query::{FilterForm, in_query, with_query};
use crate::ui::refresh::Refresh;
use crate::ui::status::{Chip, Progress, Status};
use crate::ui::table::{Column, Table, TableRow, cell, truncated};
use crate::ui::time::{Ago, Time};

const TITLE: &str = "Runs";
/// Interval of the refresh while a run is in progress, in seconds.
const SECONDS: u32 = 5;
/// Interval of the refresh while no run is in progress, in seconds.
const IDLE_SECONDS: u32 = 30;
/// Filters by state: value and label.
const STATES: [(&str, &str); 5] = [
    ("", "Any state"),
    ("active", "In progress"),
    ("completed", "Completed"),
    ("failed", "Failed"),
    ("cancelled", "Cancelled"),
];

/// The query parameters.
#[derive(Clone, PartialEq)]
struct Inputs {
    state: String,
    after: String,
    before: String,
    cursor: String,
}

impl Inputs {
    /// Whether the list is limited to the last days, because no time range is given.
    fn is_of_last_days(&self) -> bool {
        self.after.is_empty() && self.before.is_empty()
    }

    fn words(&self) -> String {
        let state = STATES.iter().find(|(word, _)| *word == self.state && !word.is_empty());
        let after = (!self.after.is_empty()).then(|| format!("created after {} UTC", self.after));
        let before =
            (!self.before.is_empty()).then(|| format!("created before {} UTC", self.before));
        let all = [state.map(|(_, label)| (*label).to_owned()), after, before];
        all.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// The list of runs.
#[component]
pub(crate) fn ExportRuns() -> impl IntoView {
    page(
        TITLE,
        || {
            let asked = Inputs {
                state: in_query("state"),
                after: in_query("after"),
                before: in_query("before"),
                cursor: in_query("cursor"),
            };
            (id_in_path(), export_in_path(), asked)
        },
        |(organization, export, asked)| {
            let Inputs { state, after, before, cursor } = asked;
            try_join(
                get_export(organization.clone(), export.clone()),
                list_export_runs(organization, export, state, after, before, cursor),
            )
        },
        |(_, _, asked), (found, list)| draw(&asked, &found, list),
    )
}

fn draw(asked: &Inputs, found: &ExportHead, list: RunList) -> AnyView {
    let retried = form_result(form_action::<RetryExportRun>());
    let cancelled = form_result(form_action::<CancelExportRun>());
    let is_active = list.rows.iter().any(|row| row.run.status.is_active());
    let seconds = if is_active { SECONDS } else { IDLE_SECONDS };
    let content = match (list.rows.is_empty(), found.export.latest_runs.is_empty()) {
        (true, true) => {
            let nothing = nothing(found);
            view! {
                <Refresh seconds=seconds />
                <div id="runs">{nothing}</div>
            }
            .into_any()
        }
        (true, false) => view! {
            {filters(asked, retried)}
            {none_of_these(asked, found)}
        }
        .into_any(),
        (false, _) => {
            let runs = listed(list, found, asked);
            view! {
                {filters(asked, retried)}
                <Refresh seconds=seconds />
                <div id="runs">{runs}</div>
            }
            .into_any()
        }
    };
    view! {
        {head(found, TITLE)}
        <FormFailure result=retried />
        <FormFailure result=cancelled />
        {content}
    }
    .into_any()
}

fn filters(asked: &Inputs, result: FormResult) -> AnyView {
    let states = choices(&STATES);
    let Inputs { state, after, before, .. } = asked.clone();
    view! {
        <FilterForm label="Filter runs">
            <Select result=result name="state" label="State" choices=states value=state />
            <MomentField result=result name="after" label="Created after" value=after />
            <MomentField result=result name="before" label="Created before" value=before />
        </FilterForm>
    }
    .into_any()
}

fn nothing(found: &ExportHead) -> AnyView {
    let path = export_path(&found.organization.id, &found.export.id.to_string());
    let often = words::schedule_text(&found.export);
    let next = match &found.next_run {
        Some(next) => view! {
            <p>{often} ", a run exports the events that arrived since the previous run. The next run starts at " <Time iso=next.clone() /> "."</p>
        }
        .into_any(),
        None => view! { <p>"The export is paused, so its schedule starts no run."</p> }.into_any(),
    };
    view! {
        <Empty title="No run yet">
            {next}
            <p>"A backfill exports events that were stored earlier."</p>
            <p><a class="button" href=format!("{path}/backfill")>"Plan a backfill"</a></p>
        </Empty>
    }
    .into_any()
}

/// The export has runs, but none matches the filter.
fn none_of_these(asked: &Inputs, found: &ExportHead) -> AnyView {
    let path = export_path(&found.organization.id, &found.export.id.to_string());
    let (filter, all) = (asked.words(), of_all_days(found));
    match (asked.is_of_last_days(), filter.is_empty()) {
        (false, _) => view! { <NoMatch filter=filter clear=path /> }.into_any(),
        (true, true) => view! {
            <Empty title="No run in the last 7 days">
                <p>"Older runs are kept for 90 days."</p>
                <p><a class="button" href=all>"Show all runs"</a></p>
            </Empty>
        }
        .into_any(),
        (true, false) => view! {
            <Empty title="No matching run in the last 7 days">
                <p>"No run of the last 7 days matches the filter: " <strong>{filter}</strong></p>
                <p>"Older runs were not searched. They are kept for 90 days."</p>
                <p><a class="button" href=all>"Show runs of all days"</a></p>
                <p><a class="button" href=path>"Clear filters"</a></p>
            </Empty>
        }
        .into_any(),
    }
}

/// The same page, including runs that are older than the last days.
fn of_all_days(found: &ExportHead) -> String {
    let since = first_day(found);
    with_query(&[("after", Some(since.as_str())), ("cursor", None)])
}

/// The day of the export's creation. No run is older.
fn first_day(found: &ExportHead) -> String {
    day(found.export.created_at)
}

fn listed(list: RunList, found: &ExportHead, asked: &Inputs) -> AnyView {
    let columns = vec![
        Column::text("Data interval"),
        Column::text("Status"),
        Column::number("Records"),
        Column::number("Duration"),
        Column::number("Attempts"),
        Column::text("More"),
    ];
    let older = list.rows.last().filter(|_| list.more).map(|row| row.run.id.to_string());
    let range = asked.is_of_last_days().then(|| {
        let all = of_all_days(found);
        view! { <p class="hint">"Runs of the last 7 days. " <a href=all>"Show runs of all days"</a></p> }
    });
    let rows = list.rows.into_iter().map(|row| entry(row, found)).collect();
    view! {
        {range}
        <Table caption="Runs, newest first" columns=columns rows=rows />
        {pager_links("runs", "cursor", &asked.cursor, older.as_deref())}
        <p><DownloadCsv /></p>
    }
    .into_any()
}

fn entry(row: RunRow, found: &ExportHead) -> TableRow {
    let run = &row.run;
    let (tone, label) = words::run(run);
    let (done, total) =
        (words::count(run.records_completed), words::count(run.records_total_count));
    let records = match (done, total) {
        (done, Some(total)) => format!("{} / {}", grouped(done.unwrap_or(0)), grouped(total)),
        (Some(done), None) => grouped(done),
        (None, None) => "-".to_owned(),
    };
    let progress = run.status.is_active().then(|| {
        view! { <Progress done=done.unwrap_or(0) total=total label="Delivered" /> }
    });
    let first_line = run.latest_error.as_deref().and_then(|error| error.lines().next());
    let error = first_line.map(|text| {
        view! { <span class="hint">{truncated(text.to_owned())}</span> }
    });
    let next_try = run.next_try_at.map(|time| {
        view! { <span class="hint">"Next try " <Time iso=time.to_string() /></span> }
    });
    let backfill = row.of_backfill.then(|| view! { <Chip label="Backfill" /> });
    let cells = vec![
        cell(view! { <span>{range::of_run(run)}</span> {backfill} }),
        cell(view! { <Status tone=tone label=label /> {next_try} {error} {progress} }),
        cell(records),
        cell(duration(row.milliseconds)),
        cell(grouped(row.attempt.into())),
        more(&row, found),
    ];
    TableRow::new(cells).id(format!("run-{}", run.id))
}

/// Details of a run, and the actions for it.
fn more(row: &RunRow, found: &ExportHead) -> AnyView {
    let run = &row.run;
    let path = export_path(&found.organization.id, &found.export.id.to_string());
    let error = run.latest_error.clone().map(|error| {
        let advice = causes::advice(&error);
        view! { <Code text=error what="error" /> {advice} }
    });
    let finished = run.finished_at.map(|time| {
        view! { <div><dt>"Ended"</dt><dd><Ago iso=time.to_string() /></dd></div> }
    });
    let cursor = run.cursor.clone().map(|cursor| {
        view! { <div><dt>"Resumes at"</dt><dd><code class="wrap">{cursor}</code></dd></div> }
    });
    let id = run.id.to_string();
    // The refresh uses the id to open the details again.
    let details = format!("details-{id}");
    let logs = format!("{path}/logs?run={id}");
    let of = range::of_run(run);
    let is_active = run.status.is_active();
    let form = if is_active { cancel(row, found) } else { again(row, found) };
    // The retry form is one button without space for its API request.
    let request = (!is_active).then(|| {
        view! { <ApiRequest call=call("POST", found, &format!("runs/{id}/retry/")) of="run again" /> }
    });
    view! {
        <details class="export-more" id=details>
            <summary>"Details"<span class="hidden">" of " {of}</span></summary>
            {error}
            <dl class="facts facts-row">
                <div><dt>"Created"</dt><dd><Ago iso=run.created_at.to_string() /></dd></div>
                <div><dt>"Last change"</dt><dd><Ago iso=run.last_updated_at.to_string() /></dd></div>
                {finished}
                <div><dt>"Sent"</dt><dd>{bytes::text(row.bytes)}</dd></div>
                {cursor}
                <div><dt>"Id"</dt><dd><Id text=id what="run id" /></dd></div>
            </dl>
            <p><a href=logs>"Log of this run"</a></p>
            {request}
        </details>
        {form}
    }
    .into_any()
}

fn ids(row: &RunRow, found: &ExportHead) -> AnyView {
    view! {
        <input type="hidden" name="organization" value=found.organization.id.clone() />
        <input type="hidden" name="export" value=found.export.id.to_string() />
        <input type="hidden" name="run" value=row.run.id.to_string() />
        <ReturnAddress />
    }
    .into_any()
}

fn again(row: &RunRow, found: &ExportHead) -> AnyView {
    let retry = form_action::<RetryExportRun>();
    let (ids, of) = (ids(row, found), range::of_run(&row.run));
    view! {
        <ActionForm action=retry>
            {ids}
            <button type="submit" class="button" data-busy="Starting run...">
                <Icon name="refresh" />
                "Run again"
                <span class="hidden">" " {of}</span>
            </button>
        </ActionForm>
    }
    .into_any()
}

fn cancel(row: &RunRow, found: &ExportHead) -> AnyView {
    let cancel = form_action::<CancelExportRun>();
    let ids = ids(row, found);
    let call = call("POST", found, &format!("runs/{}/cancel/", row.run.id));
    view! {
        <Confirm button="Cancel" of=format!("run {}", range::text(&row.run))>
            <p>"The run ends now and is not tried again. Delivered rows stay at the destination. If the run belongs to a backfill, the backfill continues with its other runs and ends as cancelled."</p>
            <ActionForm action=cancel>
                {ids}
                <button type="submit" class="button button-primary" data-busy="Cancelling run...">
                    "Cancel run"
                </button>
            </ActionForm>
            <ApiRequest call=call />
        </Confirm>
    }
    .into_any()
}
