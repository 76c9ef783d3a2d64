//! SQL: the question in the address, its answer as a table, the tables that it can read, and
//! saving it as an insight.

use std::borrow::Cow;

use futures::future::try_join;
use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast as _;
use serde_json::{Value, json};
use web_sys::{Element, HtmlElement, KeyboardEvent};
use weir_model::errors::FieldError;

use super::project_in_path;
use crate::error::UiError;
use crate::local_path::encode;
use crate::row_questions::sql;
use crate::server_fns::projects::{ProjectView, get_project};
use crate::server_fns::rows::RowsView;
use crate::server_fns::sql::{SaveSql, SavedSql, SqlView, TableView, get_sql};
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::field::{Field, TextArea};
use crate::ui::form::{FormFailure, FormResult, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::icon::Icon;
use crate::ui::number::{counted, duration, grouped};
use crate::ui::page::{PageHead, page};
use crate::ui::query::{fault_in_query, in_query};
use crate::ui::sections::Section;
use crate::ui::table::{Align, Column, Table, TableRow, cell, truncated, truncated_link};
use crate::ui::time::ProjectZone;

const TITLE: &str = "SQL";
/// The fields of the form, which show their own faults.
const FIELDS: &[&str] = &[sql::TEXT, sql::FILTERS];
/// Longest name of an insight, in characters.
const NAME_MAX: usize = 400;
/// Questions to begin with: what they ask, and their text.
const EXAMPLES: [(&str, &str); 3] = [
    (
        "Events of the last seven days by name",
        "SELECT event, count() AS events\nFROM events\nWHERE timestamp > now() - INTERVAL 7 DAY\nGROUP BY event\nORDER BY events DESC",
    ),
    (
        "Persons by day",
        "SELECT toStartOfDay(timestamp) AS day, count(DISTINCT person_id) AS persons\nFROM events\nWHERE timestamp > now() - INTERVAL 30 DAY\nGROUP BY day\nORDER BY day",
    ),
    (
        "The longest sessions",
        "SELECT session_id, person_id, start_timestamp, duration, event_count\nFROM sessions\nWHERE start_timestamp > now() - INTERVAL 1 DAY\nORDER BY duration DESC\nLIMIT 20",
    ),
];

/// The question in the address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Inputs {
    project: i64,
    /// Short id of a saved insight. Empty: a new one.
    insight: String,
    text: String,
    filters: String,
    /// Why the file of this question was refused.
    fault: Option<FieldError>,
}

#[component]
pub(crate) fn Sql() -> impl IntoView {
    page(TITLE, read, load, draw)
}

fn read() -> Inputs {
    Inputs {
        project: project_in_path(),
        insight: in_query("insight"),
        text: in_query(sql::TEXT),
        filters: in_query(sql::FILTERS),
        fault: fault_in_query(sql::FUNCTION),
    }
}

async fn load(inputs: Inputs) -> Result<(ProjectView, SqlView), UiError> {
    let Inputs { project, insight, text, filters, fault } = inputs;
    let found = async move {
        let Some(fault) = fault else { return get_sql(project, insight, text, filters).await };
        let empty = String::new;
        let found = get_sql(project, empty(), empty(), empty()).await?;
        Ok(SqlView { text, filters, answer: Some(Err(fault)), ..found })
    };
    try_join(get_project(project), found).await
}

fn draw(inputs: Inputs, (of, found): (ProjectView, SqlView)) -> AnyView {
    let project = inputs.project;
    let SqlView { saved, text, filters, answer, tables } = found;
    let path = format!("/projects/{project}/sql");
    let title = saved.as_ref().map_or_else(|| TITLE.to_owned(), |saved| saved.name.clone());
    let manage = saved.as_ref().map(|saved| {
        let href = format!("/projects/{project}/insights/{}", saved.short_id);
        view! { <a class="button" href=href>"Dashboards and deletion"</a> }
    });
    let (found, fault) = match answer {
        Some(Ok(found)) => (Some(found), None),
        Some(Err(fault)) => (None, Some(fault)),
        None => (None, None),
    };
    let line = fault.as_ref().and_then(|fault| fault_line(&text, &fault.detail));
    let result = FormResult::sample(fault.map(UiError::Field));
    let examples = text.is_empty().then(|| examples(&path));
    let call = (!text.is_empty()).then(|| {
        let call = ApiCall::question(project, question(&text, &filters));
        view! { <ApiRequest call=call of="ask the question" /> }
    });
    let below = found.map(|found| {
        view! {
            {answered(project, found, &text, &filters)}
            {save(project, saved.as_ref(), &text, &filters)}
        }
    });
    view! {
        <PageHead title=title within=of.name>{manage}</PageHead>
        <ProjectZone zone=of.timezone />
        {super::dashboards::tabs(project)}
        <div class="sql">
            <div>
                {editor(path, saved.as_ref(), text.clone(), filters.clone(), line, result)}
                {examples}
            </div>
            {schema(tables)}
        </div>
        {below}
        {call}
    }
    .into_any()
}

/// The question as JSON. Filters that are none are shown as they were entered.
fn question(text: &str, filters: &str) -> Value {
    let mut question = json!({ "kind": "HogQLQuery", "query": text });
    if !filters.is_empty() {
        question["filters"] = crate::json::read(filters).unwrap_or_else(|_| json!(filters));
    }
    question
}

/// The form of the question. `line` is the line of its fault.
fn editor(
    path: String,
    saved: Option<&SavedSql>,
    text: String,
    filters: String,
    line: Option<AnyView>,
    result: FormResult,
) -> AnyView {
    let insight = saved.map(|saved| {
        view! { <input type="hidden" name="insight" value=saved.short_id.clone() /> }
    });
    let has_filters = !filters.is_empty();
    view! {
        <FormFailure result=result fields=FIELDS />
        <form method="get" action=path aria-label="Question in SQL" on:keydown=run_with_keys>
            {insight}
            <TextArea
                result=result
                name=sql::TEXT
                label="Query"
                value=text
                rows=10
                max=sql::TEXT_MAX
                required=true
                code=true
                hint="One SELECT. Without LIMIT, an answer has 100 rows."
            />
            {line}
            <details class="advanced" open=has_filters>
                <summary>"Filters"</summary>
                <TextArea
                    result=result
                    name=sql::FILTERS
                    label="What {filters} stands for"
                    value=filters
                    rows=3
                    max=sql::FILTERS_MAX
                    code=true
                    hint="JSON, as the API has it: {\"properties\": [...], \"dateRange\": {\"date_from\": \"-7d\"}}. Without {filters} in the query it changes nothing."
                />
            </details>
            <p class="sql-run">
                <button type="submit" class="button button-primary">"Run query"</button>
                <span class="hint needs-scripts">"Or press Ctrl+Enter in the query."</span>
            </p>
        </form>
    }
    .into_any()
}

/// Sends the form of the element with the focus on Ctrl+Enter, or on Cmd+Enter.
fn run_with_keys(event: KeyboardEvent) {
    if event.key() != "Enter" || !(event.ctrl_key() || event.meta_key()) {
        return;
    }
    let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    let form = target.and_then(|target| target.closest("form").ok().flatten());
    let button = form.and_then(|form| form.query_selector("button[type=submit]").ok().flatten());
    if let Some(button) = button.and_then(|button| button.dyn_into::<HtmlElement>().ok()) {
        event.prevent_default();
        button.click();
    }
}

/// The line of a fault, with a mark below its column.
fn fault_line(text: &str, detail: &str) -> Option<AnyView> {
    let shown = marked_line(text, detail)?;
    Some(view! { <pre class="sql-fault" tabindex="0"><code>{shown}</code></pre> }.into_any())
}

fn marked_line(text: &str, detail: &str) -> Option<String> {
    let (line, column) = sql::position(detail)?;
    let content = text.lines().nth(line.checked_sub(1)?)?;
    let number = format!("{line}  ");
    let before = column.saturating_sub(1).min(content.chars().count());
    // A tab in the line is as wide as it is above.
    let indent = content.chars().take(before).map(|c| if c == '\t' { '\t' } else { ' ' });
    let indent: String = number.chars().map(|_| ' ').chain(indent).collect();
    Some(format!("{number}{content}\n{indent}^"))
}

fn examples(path: &str) -> AnyView {
    let links = EXAMPLES.iter().map(|(label, text)| {
        let href = format!("{path}?{}={}", sql::TEXT, encode(text));
        view! { <li><a href=href>{*label}</a></li> }
    });
    let links = links.collect_view();
    view! {
        <div class="empty">
            <h2>"Begin with an example"</h2>
            <ul>{links}</ul>
        </div>
    }
    .into_any()
}

/// The tables with their columns.
fn schema(tables: Vec<TableView>) -> AnyView {
    let tables = tables.into_iter().enumerate().map(|(at, table)| {
        let columns = table.columns.into_iter().map(|(name, kind)| {
            view! { <li><code>{name}</code> " " <span class="faint">{short_kind(&kind)}</span></li> }
        });
        let columns = columns.collect_view();
        view! {
            <details open={at == 0}>
                <summary><code>{table.name}</code></summary>
                <ul>{columns}</ul>
            </details>
        }
    });
    let tables = tables.collect_view();
    view! {
        <Section id="tables" title="Tables">
            {tables}
            <p class="hint">
                "A property of an event is " <code>"properties.plan"</code> ", and one of its person "
                <code>"person.properties.plan"</code> ". "
                <a href="/help/sql">"What a query can say"</a>
            </p>
        </Section>
    }
    .into_any()
}

/// The name of a type without its parameters.
fn short_kind(kind: &str) -> String {
    kind.split('(').next().unwrap_or_default().to_owned()
}

/// The answer, with links to its files.
fn answered(project: i64, found: RowsView, text: &str, filters: &str) -> AnyView {
    let RowsView { columns, rows, count, has_more, took, .. } = found;
    let filters = match filters {
        "" => String::new(),
        filters => format!("&{}={}", sql::FILTERS, encode(filters)),
    };
    let query = format!("?{}={}{filters}", sql::TEXT, encode(text));
    let kinds: Vec<String> = columns.iter().map(|(_, kind)| kind.clone()).collect();
    let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
    let headings = columns.into_iter().map(|(name, kind)| heading(&name, &kind)).collect();
    let first = rows.len() as u64;
    let rows: Vec<TableRow> = rows
        .into_iter()
        .map(|row| {
            let cells = row.into_iter().zip(names.iter().zip(&kinds));
            TableRow::new(
                cells.map(|(value, (name, kind))| shown(project, value, name, kind)).collect(),
            )
        })
        .collect();
    let table = match rows.is_empty() {
        true => view! { <div class="empty"><p>"The answer has no rows."</p></div> }.into_any(),
        false => view! { <Table caption="Answer" columns=headings rows=rows can_scroll=true /> }
            .into_any(),
    };
    let cut = (first < count).then(|| format!("The page shows the first {}. ", grouped(first)));
    let more = has_more.then_some("More rows follow: LIMIT says how many an answer has.");
    view! {
        <section class="sql-answer" id="answer" aria-labelledby="answer-title">
            <h2 id="answer-title">"Answer"</h2>
            <div class="list-head">
                <p role="status">
                    {counted(count, "row", "rows")} " in " {duration(took)} ". " {cut} {more}
                </p>
                {file(project, "sql.csv", "Download CSV", &query)}
                {file(project, "sql.parquet", "Download Parquet", &query)}
            </div>
            {table}
        </section>
    }
    .into_any()
}

/// The link to a file with the answer to a question.
pub(super) fn file(project: i64, file: &str, label: &'static str, query: &str) -> AnyView {
    let href = format!("/_answers/{project}/{file}{query}");
    view! {
        <a class="button" href=href rel="external">
            <Icon name="download" />
            {label}
        </a>
    }
    .into_any()
}

fn heading(name: &str, kind: &str) -> Column {
    let align = if is_number(kind) { Align::End } else { Align::Start };
    Column { label: Cow::Owned(format!("{name} ({})", short_kind(kind))), align, sort: None }
}

fn is_number(kind: &str) -> bool {
    matches!(kind, "Int64" | "Float64")
}

/// A value of a column. Events and persons are links.
fn shown(project: i64, value: Option<String>, name: &str, kind: &str) -> AnyView {
    match (value, name) {
        (None, _) => view! { <span class="faint">"null"</span> }.into_any(),
        (Some(id), "person_id") if kind == "UUID" => {
            truncated_link(format!("/projects/{project}/persons/{id}"), id)
        }
        (Some(id), "uuid") if kind == "UUID" => {
            truncated_link(format!("/projects/{project}/events?selected={id}"), id)
        }
        (Some(number), _) if is_number(kind) => cell(number),
        (Some(text), _) => truncated(text),
    }
}

/// Saves the question that was answered.
fn save(project: i64, saved: Option<&SavedSql>, text: &str, filters: &str) -> AnyView {
    let action = form_action::<SaveSql>();
    let result = form_result(action);
    let root = format!("/api/projects/{project}/insights/");
    let (title, label, busy) = match saved {
        None => ("Save", "Save insight", "Saving insight..."),
        Some(_) => ("Change", "Save changes", "Saving changes..."),
    };
    let (method, path) = match saved {
        None => ("POST", root),
        Some(saved) => ("PATCH", format!("{root}{}/", saved.short_id)),
    };
    let body = json!({ "name": "{name}", "query": question(text, filters) });
    let call = ApiCall::new(method, path, "insight:write").with(body);
    let short_id = saved.map(|saved| saved.short_id.clone()).unwrap_or_default();
    let name = saved.map(|saved| saved.name.clone()).unwrap_or_default();
    let (text, filters) = (text.to_owned(), filters.to_owned());
    view! {
        <Section id="save" title=title hint="All members of the organization can open and change it.">
            <ActionForm action=action>
                <FormFailure result=result fields=&["name"] />
                <input type="hidden" name="project" value=project.to_string() />
                <input type="hidden" name="insight" value=short_id />
                <input type="hidden" name=sql::TEXT value=text />
                <input type="hidden" name=sql::FILTERS value=filters />
                <ReturnAddress />
                <Field result=result name="name" label="Name" value=name max=NAME_MAX />
                <Submit result=result label=label busy=busy />
                <ApiRequest call=call of="save" />
            </ActionForm>
        </Section>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::marked_line;

    #[test]
    fn a_fault_is_marked_in_its_line() {
        let text = "SELECT event,\n\tnothing\nFROM events";
        let mark = |detail| marked_line(text, detail);
        let first = "1  SELECT event,\n          ^".to_owned();
        assert_eq!(mark("Unknown (line 1, column 8)"), Some(first));
        assert_eq!(mark("Unknown (line 2, column 2)"), Some("2  \tnothing\n   \t^".to_owned()));
        let end = "3  FROM events\n              ^".to_owned();
        assert_eq!(mark("Ends (line 3, column 99)"), Some(end));
        assert_eq!(mark("Ends (line 4, column 1)"), None);
        assert_eq!(mark("This field may not be blank."), None);
    }
}
