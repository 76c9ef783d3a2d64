//! The list of the exports of an organization.

use leptos::prelude::*;
use weir_model::exports::destinations::{ALL, DestinationType};
use weir_model::exports::{BatchExport, ExportModel, Run};

use super::{
    export_path, label_of, list_path, next_run, range, run_path, switch, trouble, word_id, words,
};
use crate::pages::id_in_path;
use crate::server_fns::bulk::{PauseExports, UnpauseExports};
use crate::server_fns::exports::{
    ExportList, ExportRow, OrganizationView, PauseExport, UnpauseExport, list_exports,
};
use crate::ui::bulk::{self, BulkBar, BulkButton, selectable};
use crate::ui::download::DownloadCsv;
use crate::ui::empty::{Empty, NoMatch};
use crate::ui::field::{Choice, Select, TextLine, choices};
use crate::ui::form::{FormFailure, FormResult, form_result};
use crate::ui::form_action::form_action;
use crate::ui::icon::Icon;
use crate::ui::menu::RowMenu;
use crate::ui::number::{counted, grouped};
use crate::ui::page::{PageHead, page};
use crate::ui::pager::{ListPage, Pager, page_in_query};
use crate::ui::query::{FilterForm, in_query};
use crate::ui::refresh::Refresh;
use crate::ui::status::{Mark, Status, Strip};
use crate::ui::table::{ACTIONS, Column, Table, TableRow, cell, truncated, truncated_link};
use crate::ui::time::Ago;

const TITLE: &str = "Exports";
/// Exports on one page of the list.
const PAGE_SIZE: u32 = 20;
/// Runs that the list shows as shapes.
const MARKS: usize = 8;
/// Interval of the refresh, in seconds.
const SECONDS: u32 = 30;
/// Filters of the list: value and label.
const STATES: [(&str, &str); 4] =
    [("", "Any state"), ("failing", "Failing"), ("active", "Active"), ("paused", "Paused")];

#[component]
pub(crate) fn Exports() -> impl IntoView {
    page(
        TITLE,
        || {
            let asked = Inputs {
                name: in_query("name"),
                state: in_query("state"),
                destination: in_query("destination"),
                project: in_query("project"),
            };
            (id_in_path(), asked, page_in_query(PAGE_SIZE))
        },
        |(organization, asked, list_page)| {
            let Inputs { name, state, destination, project } = asked;
            let ListPage { limit, offset } = list_page;
            list_exports(organization, name, state, destination, project, limit, offset)
        },
        |(_, asked, list_page), found| draw(asked, list_page, found),
    )
}

fn draw(asked: Inputs, list_page: ListPage, found: ExportList) -> AnyView {
    let results = [
        form_result(form_action::<PauseExport>()),
        form_result(form_action::<UnpauseExport>()),
        form_result(form_action::<PauseExports>()),
        form_result(form_action::<UnpauseExports>()),
    ];
    let paused = results[0];
    let base = list_path(&found.organization.id);
    let within = found.organization.name.clone();
    let failure =
        results.map(|result| view! { <FormFailure result=result /> }).into_iter().collect_view();
    let file = (found.count > 0).then(|| view! { <DownloadCsv /> });
    let content = match (found.all, found.count) {
        (0, _) => nothing(&base),
        (_, 0) => {
            let words = asked.words(&found.organization);
            view! {
                {filters(asked, &found.organization, paused)}
                <NoMatch filter=words clear=base.clone() />
            }
            .into_any()
        }
        _ => view! {
            {filters(asked, &found.organization, paused)}
            <Refresh seconds=SECONDS />
            <div id="exports">{listed(found, list_page)}</div>
        }
        .into_any(),
    };
    view! {
        <PageHead title=TITLE within=within>
            {file}
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
struct Inputs {
    name: String,
    state: String,
    destination: String,
    /// Number of the project, or empty.
    project: String,
}

impl Inputs {
    fn words(&self, organization: &OrganizationView) -> String {
        let state = STATES.iter().find(|(word, _)| *word == self.state && !word.is_empty());
        let kind = DestinationType::of(&self.destination).map(|kind| kind.label.to_owned());
        let name = (!self.name.is_empty()).then(|| format!("name with \"{}\"", self.name));
        let project = self.project.parse().ok().map(|id| organization.project(id));
        let all = [name, state.map(|(_, label)| (*label).to_owned()), kind, project];
        all.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

fn filters(asked: Inputs, organization: &OrganizationView, result: FormResult) -> AnyView {
    let states = choices(&STATES);
    let mut kinds = vec![Choice::new("", "Any destination")];
    kinds.extend(ALL.iter().map(|kind| Choice::new(kind.name, kind.label)));
    let projects = (organization.projects.len() > 1).then(|| {
        let mut projects = vec![Choice::new("", "All projects")];
        let all = organization.projects.iter();
        projects.extend(all.map(|(id, name)| Choice::new(id.to_string(), name.clone())));
        view! {
            <Select result=result name="project" label="Project" choices=projects
                value=asked.project />
        }
    });
    view! {
        <FilterForm label="Filter exports">
            <TextLine result=result name="name" label="Name" value=asked.name kind="search" />
            {projects}
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
    let columns =
        ["Export", "State", "Last run", "Recent runs", "Schedule", ACTIONS].map(Column::text);
    let are_selected = bulk::is_worth_it(rows.len());
    let rows = rows
        .into_iter()
        .map(|row| {
            let project = several.then(|| organization.project(row.export.team_id.0));
            entry(row, &organization.id, project, are_selected)
        })
        .collect();
    let bar = are_selected.then(|| {
        let (pause, unpause) = (form_action::<PauseExports>(), form_action::<UnpauseExports>());
        view! {
            <BulkBar what="exports" fields=vec![("organization", organization.id)]>
                <BulkButton action=pause label="Pause selected" busy="Pausing exports..." />
                <BulkButton action=unpause label="Unpause selected" busy="Unpausing exports..." />
            </BulkBar>
        }
    });
    view! {
        {bar}
        <Table caption="Exports" columns=columns.into() rows=rows />
        <Pager page=list_page total=count what="exports" />
    }
    .into_any()
}

fn entry(
    row: ExportRow,
    organization: &str,
    project: Option<String>,
    is_selectable: bool,
) -> TableRow {
    let ExportRow { export, condition, recent, next_run: row_next } = row;
    let path = export_path(organization, &export.id.to_string());
    let (tone, state) = words::condition(&condition, export.paused);
    let last = match recent.first() {
        Some(run) => last_run(run, export.model, &path),
        None => view! { <span class="faint">"No run yet"</span> }.into_any(),
    };
    let next = next_run(row_next, export.paused);
    let label = label_of(&export.destination.kind);
    let schedule_text = words::schedule_text(&export);
    let menu = menu(&export, organization, &condition, &path);
    let word = word_id(&export);
    let trouble = trouble(&export, &recent);
    let name = export.name.clone();
    let head = cell(view! {
        {truncated_link(path.clone(), export.name)}
        <span class="hint">{label}</span>
        {project.map(|name| view! { <span class="hint">{truncated(name)}</span> })}
    });
    let head = match is_selectable {
        true => selectable(export.id.to_string(), &name, head),
        false => head,
    };
    TableRow::new(vec![
        head,
        cell(view! { <Status tone=tone label=state id=word /> {trouble} }),
        last,
        strip(&recent, &path, export.failing_since.is_some()),
        cell(view! { {schedule_text} <span class="hint">{next}</span> }),
        menu,
    ])
}

fn menu(export: &BatchExport, organization: &str, condition: &str, path: &str) -> AnyView {
    let link = |rest: &str, label: &'static str| {
        let href = format!("{path}{rest}");
        view! { <li><a href=href>{label}</a></li> }.into_any()
    };
    let (backfill, settings, logs) =
        (link("/backfill", "Backfill"), link("/settings", "Settings"), link("/logs", "Logs"));
    let switch = switch(export, organization, condition);
    view! {
        <RowMenu of=export.name.clone()>
            <li>{switch}</li>
            {backfill}
            {settings}
            {logs}
        </RowMenu>
    }
    .into_any()
}

fn last_run(run: &Run, model: ExportModel, path: &str) -> AnyView {
    let (tone, label) = words::run(run);
    let rows = words::count(run.records_completed).map(|count| {
        let (one, many) = words::rows(model);
        format!("{}, ", counted(count, one, many))
    });
    let when = run.finished_at.unwrap_or(run.created_at).to_string();
    view! {
        <a href=run_path(path, run)><Status tone=tone label=label /></a>
        <span class="hint">{rows} <Ago iso=when /></span>
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
    let marks: Vec<Mark> = recent.iter().take(MARKS).rev().map(mark).collect();
    view! { <Strip marks=marks summary=summary /> }.into_any()
}

/// A text with the number of newest runs that failed, including those that will be
/// retried.
fn summary(recent: &[Run], is_failing: bool) -> String {
    let failed = recent.iter().filter(|run| run.is_failing()).count();
    let sentence = match (failed, recent.len()) {
        (0, 1) => "The last run did not fail.".to_owned(),
        (0, total) => format!("None of the last {} runs failed.", grouped(total as u64)),
        (_, 1) => "The last run failed.".to_owned(),
        (_, total) => format!("{failed} of the last {} runs failed.", grouped(total as u64)),
    };
    if failed == 0 && is_failing {
        format!("{sentence} An older run is retried.")
    } else {
        sentence
    }
}

#[cfg(test)]
mod tests {
    use weir_model::Timestamp;
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
        assert_eq!(summary(&runs[1..], false), "The last run did not fail.");
        let older = "The last run did not fail. An older run is retried.";
        assert_eq!(summary(&runs[1..], true), older);
        assert_eq!(words::run(&runs[0]).1, "Failing, retried");
        assert_eq!(words::run(&runs[1]).1, "Running");
    }
}
