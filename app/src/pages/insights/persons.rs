//! The persons behind a number of an answer. The question and what names the number are in the
//! address; the server reads them.

use std::collections::BTreeMap;

use futures::future::try_join;
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use serde_json::Value;

use crate::error::UiError;
use crate::local_path::encode;
use crate::pages::project_in_path;
use crate::server_fns::insights::persons::{NumberPerson, NumberView, list_persons_of_number};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::download::DownloadCsv;
use crate::ui::empty::{Empty, EmptyPage};
use crate::ui::field::{Choice, Select};
use crate::ui::form::FormResult;
use crate::ui::number::{counted, grouped};
use crate::ui::page::{PageHead, page};
use crate::ui::pager::{ListPage, Pager, page_in_query};
use crate::ui::query::FilterForm;
use crate::ui::status::{Status, Tone};
use crate::ui::table::{Column, Table, TableRow, cell, truncated, truncated_link};

const TITLE: &str = "Persons behind a number";
/// Persons on one page.
const PAGE_SIZE: u32 = 50;
/// The parameter with the interval.
const DAY: &str = "day";

/// The number in the address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Inputs {
    project: i64,
    /// All parameters but the place in the list.
    parameters: BTreeMap<String, String>,
    list_page: ListPage,
}

#[component]
pub(crate) fn PersonsOfNumber() -> impl IntoView {
    page(TITLE, read, load, draw)
}

fn read() -> Inputs {
    let all = use_query_map().get().into_iter();
    let named = all.map(|(name, value)| (name.into_owned(), value));
    let is_of_number = |(name, _): &(String, String)| {
        // The outcomes of forms begin with two underscores.
        let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_word && !matches!(name.as_str(), "limit" | "offset") && !name.starts_with("__")
    };
    Inputs {
        project: project_in_path(),
        parameters: named.filter(is_of_number).collect(),
        list_page: page_in_query(PAGE_SIZE),
    }
}

async fn load(inputs: Inputs) -> Result<(ProjectView, NumberView), UiError> {
    let Inputs { project, parameters, list_page } = inputs;
    let ListPage { limit, offset } = list_page;
    let found = list_persons_of_number(project, parameters, limit, offset);
    try_join(get_project(project), found).await
}

fn draw(inputs: Inputs, (of, found): (ProjectView, NumberView)) -> AnyView {
    let Inputs { project, parameters, list_page } = inputs;
    let NumberView { title, details, intervals, total, persons, query } = found;
    let file = (!persons.is_empty()).then(|| view! { <DownloadCsv /> });
    let pairs: Vec<String> = parameters
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
        .collect();
    let question = format!("/projects/{project}/insights/new?{}", pairs.join("&"));
    let filter = (!intervals.is_empty()).then(|| choice_of_interval(&parameters, intervals));
    let details = (!details.is_empty()).then(|| {
        let item = |detail: String| view! { <li class="wrap">{detail}</li> };
        view! { <ul>{details.into_iter().map(item).collect_view()}</ul> }
    });
    let call = crate::json::read::<Value>(&query).ok().map(|query| {
        let call = ApiCall::question(project, query);
        view! { <ApiRequest call=call of="list the persons" /> }
    });
    view! {
        <PageHead title=TITLE within=of.name>
            <a class="button" href=question>"Open the question"</a>
            {file}
        </PageHead>
        <p class="lead wrap">{title}</p>
        {details}
        {filter}
        {list(project, total, persons, list_page)}
        {call}
    }
    .into_any()
}

/// A list of the intervals of the answer.
fn choice_of_interval(
    parameters: &BTreeMap<String, String>,
    intervals: Vec<(String, String)>,
) -> AnyView {
    let others = parameters.iter().filter(|(name, value)| *name != DAY && !value.is_empty());
    let others = others.map(|(name, value)| {
        view! { <input type="hidden" name=name.clone() value=value.clone() /> }
    });
    let others = others.collect_view();
    let whole = Choice::new("", "Whole range");
    let choices = intervals.into_iter().map(|(day, label)| Choice::new(day, label));
    let choices: Vec<Choice> = std::iter::once(whole).chain(choices).collect();
    let day = parameters.get(DAY).cloned().unwrap_or_default();
    let result = FormResult::sample(None);
    view! {
        <FilterForm label="Choose an interval">
            {others}
            <Select result=result name=DAY label="Interval" choices=choices value=day />
        </FilterForm>
    }
    .into_any()
}

fn list(project: i64, total: u64, persons: Vec<NumberPerson>, list_page: ListPage) -> AnyView {
    if total == 0 {
        return view! {
            <Empty title="No person">
                <p>"No person is behind this number."</p>
            </Empty>
        }
        .into_any();
    }
    if persons.is_empty() {
        return view! { <EmptyPage what="persons" /> }.into_any();
    }
    let has_events = persons.iter().any(|person| person.events.is_some());
    let mut columns =
        vec![Column::text("Person"), Column::text("Distinct ids"), Column::text("Status")];
    if has_events {
        columns.push(Column::number("Events"));
    }
    let rows = persons.into_iter().map(|person| row(project, person)).collect();
    view! {
        <p>{counted(total, "person", "persons")}</p>
        <Table caption="Persons" columns=columns rows=rows />
        <Pager page=list_page total=total what="persons" />
    }
    .into_any()
}

fn row(project: i64, person: NumberPerson) -> TableRow {
    let NumberPerson { id, name, distinct_ids, more_ids, is_identified, events } = person;
    let more = (more_ids > 0).then(|| format!(" and {} more", grouped(more_ids as u64)));
    let ids = view! { <span class="mono">{truncated(distinct_ids.join(", "))}</span> {more} };
    let shown = if name.is_empty() { id.clone() } else { name };
    let (name, tone, known) = match is_identified {
        // Its events came without a person, so it has no page.
        None => (truncated(shown), Tone::Quiet, "No record"),
        Some(is_identified) => {
            let link = truncated_link(format!("/projects/{project}/persons/{id}"), shown);
            match is_identified {
                true => (link, Tone::Good, "Identified"),
                false => (link, Tone::Quiet, "Anonymous"),
            }
        }
    };
    let mut cells = vec![name, cell(ids), cell(view! { <Status tone=tone label=known /> })];
    cells.extend(events.map(|events| cell(grouped(events))));
    TableRow::new(cells)
}
