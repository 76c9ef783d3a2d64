//! Log of the runs of an export.

use futures::future::try_join;
use leptos::prelude::*;
use weir_model::exports::{LogLevel, LogLine};

use super::{export_in_path, export_path, head, pager_links, words};
use crate::pages::id_in_path;
use crate::server_fns::exports::runs::{LogList, list_export_logs};
use crate::server_fns::exports::{ExportHead, PauseExport, get_export};
use crate::ui::download::DownloadCsv;
use crate::ui::empty::{Empty, NoMatch};
use crate::ui::field::{Choice, Select, TextLine};
use crate::ui::form::{FormResult, form_result};
use crate::ui::form_action::form_action;
use crate::ui::page::page;
use crate::ui::query::{FilterForm, in_query};
use crate::ui::refresh::Refresh;
use crate::ui::status::Status;
use crate::ui::table::{Column, Table, TableRow, cell};
use crate::ui::time::Time;

const TITLE: &str = "Logs";
/// Interval of the refresh, in seconds.
const SECONDS: u32 = 15;
/// Number of characters of a run id in a line.
const SHOWN: usize = 8;

/// The query parameters.
#[derive(Clone, PartialEq)]
struct Inputs {
    run: String,
    level: String,
    text: String,
    before: String,
}

impl Inputs {
    fn is_filter(&self) -> bool {
        !(self.run.is_empty() && self.level.is_empty() && self.text.is_empty())
    }

    fn words(&self) -> String {
        let run = (!self.run.is_empty()).then(|| format!("run {}", self.run));
        let level = LogLevel::of(&self.level).map(|level| words::level(level).1.to_owned());
        let level = level.map(|level| format!("{level} and above"));
        let text = (!self.text.is_empty()).then(|| format!("text with \"{}\"", self.text));
        [run, level, text].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

#[component]
pub(crate) fn ExportLogs() -> impl IntoView {
    page(
        TITLE,
        || {
            let asked = Inputs {
                run: in_query("run"),
                level: in_query("level"),
                text: in_query("text"),
                before: in_query("before"),
            };
            (id_in_path(), export_in_path(), asked)
        },
        |(organization, export, asked)| {
            let Inputs { run, level, text, before } = asked;
            try_join(
                get_export(organization.clone(), export.clone()),
                list_export_logs(organization, export, run, level, text, before),
            )
        },
        |(_, _, asked), (found, list)| draw(&asked, &found, list),
    )
}

fn draw(asked: &Inputs, found: &ExportHead, list: LogList) -> AnyView {
    // This page changes nothing: its fields belong to a form that cannot fail.
    let form = form_result(form_action::<PauseExport>());
    let path = export_path(&found.organization.id, &found.export.id.to_string());
    let content = match (list.lines.is_empty(), asked.is_filter()) {
        (true, true) => {
            view! { <NoMatch filter=asked.words() clear=format!("{path}/logs") /> }.into_any()
        }
        (true, false) => view! {
            <Empty title="No log lines">
                <p>"Runs write their log here. Lines are kept for 30 days."</p>
                <p><a class="button" href=path>"See the runs"</a></p>
            </Empty>
        }
        .into_any(),
        (false, _) if asked.before.is_empty() => {
            let lines = listed(list, found, asked);
            view! {
                <Refresh seconds=SECONDS />
                <div id="lines">{lines}</div>
            }
            .into_any()
        }
        (false, _) => listed(list, found, asked),
    };
    view! {
        {head(found, TITLE)}
        {filters(asked, form)}
        {content}
    }
    .into_any()
}

fn filters(asked: &Inputs, result: FormResult) -> AnyView {
    let mut levels = vec![Choice::new("", "Any level")];
    levels.extend(
        LogLevel::ALL
            .into_iter()
            .skip(1)
            .map(|level| Choice::new(level.text(), format!("{} and above", words::level(level).1))),
    );
    let Inputs { run, level, text, .. } = asked.clone();
    view! {
        <FilterForm label="Filter lines">
            <Select result=result name="level" label="Level" choices=levels value=level />
            <TextLine result=result name="text" label="Text" value=text kind="search" max=200 />
            <TextLine result=result name="run" label="Run id" value=run max=36 />
        </FilterForm>
    }
    .into_any()
}

fn listed(list: LogList, found: &ExportHead, asked: &Inputs) -> AnyView {
    let columns = vec![
        Column::text("Time"),
        Column::text("Level"),
        Column::text("Run"),
        Column::text("Message"),
    ];
    let older = list.lines.last().filter(|_| list.more).map(|line| line.timestamp.to_string());
    let path = export_path(&found.organization.id, &found.export.id.to_string());
    let rows = list.lines.into_iter().map(|line| entry(line, &path)).collect();
    view! {
        <Table caption="Log lines, newest first" columns=columns rows=rows />
        {pager_links("lines", "before", &asked.before, older.as_deref())}
        <p><DownloadCsv /></p>
    }
    .into_any()
}

fn entry(line: LogLine, path: &str) -> TableRow {
    let (tone, label) = words::level(line.level);
    let run = line.instance_id.to_string();
    // Ids of runs of the same hour have the same beginning. Their ends differ.
    let shown = run.get(run.len().saturating_sub(SHOWN)..).unwrap_or(&run).to_owned();
    let href = format!("{path}/logs?run={run}");
    TableRow::new(vec![
        cell(view! { <Time iso=line.timestamp.to_string() /> }),
        cell(view! { <Status tone=tone label=label /> }),
        cell(view! { <a href=href title=run><code>{shown}</code></a> }),
        cell(view! { <span class="wrap">{line.message}</span> }),
    ])
}
