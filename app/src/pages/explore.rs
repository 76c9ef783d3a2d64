//! Exploring events: filters, the numbers over time, and the events with columns by choice.
//! The question is in the address.

use futures::future::try_join;
use leptos::prelude::*;
use serde_json::Value;
use weir_model::errors::FieldError;

use super::project_in_path;
use super::sql::file;
use super::timeline::segment;
use crate::error::UiError;
use crate::local_path::encode;
use crate::row_questions::explore::{
    ExploreFields, FIELDS, FILTERS, FUNCTION, OPERATORS, ORDERED, RANGES, USUAL_ORDER, USUAL_RANGE,
};
use crate::row_questions::sql;
use crate::server_fns::explore::{
    ChartView, ExploreView, ExploredEvent, ExploredView, PAGE_SIZE, explore_events,
};
use crate::server_fns::insights::{NamesView, list_question_names};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::chart::{Bars, Series};
use crate::ui::code::Code;
use crate::ui::empty::{EmptyPage, no_event};
use crate::ui::field::{Field, Select, choices, suggestions};
use crate::ui::form::{FormFailure, FormResult};
use crate::ui::number::counted;
use crate::ui::page::{PageHead, page};
use crate::ui::pager::{ListPage, Pager, page_in_query};
use crate::ui::query::{fault_in_query, in_query, sort_by};
use crate::ui::status::Tone;
use crate::ui::table::{Column, Direction, Table, TableRow, cell, truncated, truncated_link};
use crate::ui::time::{ProjectZone, Time};

const TITLE: &str = "Explore events";
/// Longest name of an event or a property, in characters.
const NAME_MAX: usize = 400;
/// Longest condition and list of columns, in characters: the address has them.
const TEXT_MAX: usize = 1_000;
/// Ids of the lists of names.
const EVENTS: &str = "event-names";
const PROPERTIES: &str = "property-names";

/// The question in the address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Inputs {
    project: i64,
    fields: ExploreFields,
    list_page: ListPage,
    /// Why the file of this question was refused.
    fault: Option<FieldError>,
}

#[component]
pub(crate) fn Explore() -> impl IntoView {
    page(TITLE, read, load, draw)
}

fn read() -> Inputs {
    let ListPage { offset, .. } = page_in_query(PAGE_SIZE);
    Inputs {
        project: project_in_path(),
        fields: ExploreFields::read(in_query),
        list_page: ListPage { limit: PAGE_SIZE, offset },
        fault: fault_in_query(FUNCTION),
    }
}

async fn load(inputs: Inputs) -> Result<(ProjectView, ExploreView), UiError> {
    let Inputs { project, fields, list_page, fault } = inputs;
    let found = async move {
        let Some(fault) = fault else {
            return explore_events(project, fields, list_page.offset).await;
        };
        let NamesView { events, properties } = list_question_names(project).await?;
        Ok(ExploreView { answer: Err(fault), events, properties })
    };
    try_join(get_project(project), found).await
}

fn draw(inputs: Inputs, (of, found): (ProjectView, ExploreView)) -> AnyView {
    let Inputs { project, fields, list_page, .. } = inputs;
    let ExploreView { answer, events, properties } = found;
    let (answer, fault) = match answer {
        Ok(answer) => (Some(answer), None),
        Err(fault) => (None, Some(fault)),
    };
    let result = FormResult::sample(fault.map(UiError::Field));
    let has_events = of.has_events;
    let below = answer.map(|answer| match has_events {
        true => answered(project, &fields, list_page, answer),
        false => no_event(project, "Send one first."),
    });
    view! {
        <PageHead title=TITLE within=of.name>
            <a class="button" href=format!("/projects/{project}/events")>"All events, live"</a>
        </PageHead>
        <ProjectZone zone=of.timezone />
        {form(project, &fields, result)}
        {suggestions(EVENTS, events)}
        {suggestions(PROPERTIES, properties)}
        {below}
    }
    .into_any()
}

fn address(project: i64) -> String {
    format!("/projects/{project}/events/explore")
}

fn form(project: i64, fields: &ExploreFields, result: FormResult) -> AnyView {
    let value = |name: &str| fields.get(name).to_owned();
    let or = |name: &str, usual: &str| match fields.get(name) {
        "" => usual.to_owned(),
        value => value.to_owned(),
    };
    let has_more = ["from", "to", "person", "group_type", "group", "where"];
    let has_more = has_more.iter().any(|name| !fields.get(name).is_empty());
    let filters = FILTERS.into_iter().take(filters_shown(fields)).enumerate();
    let filters = filters
        .map(|(at, [property, operator, compared])| {
            let label = |what: &str| match at {
                0 => what.to_owned(),
                at => format!("{what} {}", at + 1),
            };
            view! {
                <div class="explore-filter">
                    <Field result=result name=property label=label("Property") value=value(property) max=NAME_MAX required=false list=PROPERTIES />
                    <Select result=result name=operator label=label("Comparison") choices=choices(&OPERATORS) value=or(operator, OPERATORS[0].0) />
                    <Field result=result name=compared label=label("Value") value=value(compared) max=NAME_MAX required=false />
                </div>
            }
        })
        .collect_view();
    let order = fields.get("order").to_owned();
    let order =
        (!order.is_empty()).then(|| view! { <input type="hidden" name="order" value=order /> });
    let is_set = fields.pairs().next().is_some();
    let clear = is_set.then(|| {
        view! { <a class="button button-quiet" href=address(project)>"Clear filters"</a> }
    });
    view! {
        <FormFailure result=result fields=FIELDS />
        <form class="filter explore" role="search" aria-label="Events" method="get" action=address(project)>
            {order}
            <Field result=result name="event" label="Event" value=value("event") max=NAME_MAX required=false list=EVENTS />
            <Select result=result name="range" label="Range" choices=choices(&RANGES) value=or("range", USUAL_RANGE) />
            {filters}
            <Field result=result name="columns" label="Columns" value=value("columns") max=TEXT_MAX required=false hint="Properties, separated by commas." />
            <details class="more-filters" id="more-filters" open=has_more>
                <summary>"More filters"</summary>
                <div class="more-filters-fields">
                    <Field result=result name="from" label="From" kind="date" value=value("from") required=false />
                    <Field result=result name="to" label="To" kind="date" value=value("to") required=false hint="Both days count as a whole, in the time zone of the project. They replace the range." />
                    <Field result=result name="person" label="Person" value=value("person") max=NAME_MAX required=false hint="A distinct id, or the id of a person for all of its distinct ids." />
                    <Field result=result name="group_type" label="Group type" value=value("group_type") max=NAME_MAX required=false />
                    <Field result=result name="group" label="Group key" value=value("group") max=NAME_MAX required=false />
                    <Field result=result name="where" label="Condition in SQL" value=value("where") max=TEXT_MAX required=false placeholder="person.properties.plan = 'pro'" />
                </div>
            </details>
            <div class="filter-actions">
                <button type="submit" class="button button-primary">"Find events"</button>
                {clear}
            </div>
        </form>
        <p class="hint">
            "Write the values of " <em>"is one of"</em> " and the numbers of " <em>"is between"</em>
            " separated by commas. Each search shows one more filter, up to four."
        </p>
    }
    .into_any()
}

/// How many filters the form shows: an empty one after the last one that is set.
fn filters_shown(fields: &ExploreFields) -> usize {
    let is_set =
        |names: &[&str; 3]| !fields.get(names[0]).is_empty() || !fields.get(names[2]).is_empty();
    let last = FILTERS.iter().rposition(is_set).map_or(0, |last| last + 1);
    (last + 1).min(FILTERS.len())
}

fn answered(
    project: i64,
    fields: &ExploreFields,
    list_page: ListPage,
    found: ExploredView,
) -> AnyView {
    let ExploredView { total, chart, rows, sql: text, filters, query } = found;
    let pairs: Vec<String> =
        fields.pairs().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    let files = format!("?{}", pairs.join("&"));
    let list = if total == 0 && rows.is_empty() {
        view! {
            <div class="empty">
                <p>"No event of the range matches."</p>
                <p><a class="button" href=address(project)>"Clear filters"</a></p>
            </div>
        }
        .into_any()
    } else if rows.is_empty() {
        view! { <EmptyPage what="events" /> }.into_any()
    } else {
        table(project, fields, rows)
    };
    let query: Value = crate::json::read(&query).unwrap_or_default();
    let call = ApiCall::question(project, query);
    let of_filters = match filters.as_str() {
        "" => String::new(),
        filters => format!("&{}={}", sql::FILTERS, encode(filters)),
    };
    let in_sql = format!("/projects/{project}/sql?{}={}{of_filters}", sql::TEXT, encode(&text));
    view! {
        {chart.map(|chart| bars(chart, total))}
        <div class="list-head">
            <p role="status">{counted(total, "event matches.", "events match.")}</p>
            {file(project, "events.csv", "Download CSV", &files)}
            {file(project, "events.parquet", "Download Parquet", &files)}
        </div>
        {list}
        <Pager page=list_page total=total what="events" />
        <details class="advanced">
            <summary>"Show as SQL"</summary>
            <Code text=text what="SQL" />
            <p><a class="button" href=in_sql>"Open in SQL"</a></p>
        </details>
        <ApiRequest call=call of="find the events" />
    }
    .into_any()
}

fn bars(chart: ChartView, total: u64) -> AnyView {
    let ChartView { times, counts } = chart;
    let series = vec![Series::new("Events", Tone::Good, counts.into_iter().map(Some).collect())];
    let summary = format!("{} in the range.", counted(total, "event", "events"));
    view! {
        <section class="events-chart" aria-label="Events over time">
            <h2 class="hidden">"Events over time"</h2>
            <Bars
                id="events-over-time"
                title="Matching events"
                summary=summary
                times=times
                series=series
                unit="events"
            />
        </section>
    }
    .into_any()
}

fn table(project: i64, fields: &ExploreFields, rows: Vec<ExploredEvent>) -> AnyView {
    let has_groups = rows.iter().any(|row| !row.groups.is_empty());
    let order = fields.get("order");
    let sort = |word: &str, first| sort_by(word, order, USUAL_ORDER, first);
    let [time, event, distinct_id] = ORDERED;
    let mut columns = vec![
        Column::text("Time").sorted(sort(time, Direction::Descending)),
        Column::text("Event").sorted(sort(event, Direction::Ascending)),
        Column::text("Person").sorted(sort(distinct_id, Direction::Ascending)),
    ];
    if has_groups {
        columns.push(Column::text("Groups"));
    }
    columns.extend(fields.columns().into_iter().map(|name| {
        let sort = sort(&name, Direction::Ascending);
        Column::named(name).sorted(sort)
    }));
    let rows = rows.into_iter().map(|row| table_row(project, row, has_groups)).collect();
    view! { <Table caption="Events" columns=columns rows=rows can_scroll=true /> }.into_any()
}

fn table_row(project: i64, row: ExploredEvent, has_groups: bool) -> TableRow {
    let ExploredEvent { uuid, at, event, distinct_id, person, groups, values } = row;
    let href = format!("/projects/{project}/events?selected={uuid}");
    let person = match person {
        Some(person) => {
            truncated_link(format!("/projects/{project}/persons/{person}"), distinct_id)
        }
        None => truncated(distinct_id),
    };
    let mut cells =
        vec![cell(view! { <a href=href><Time iso=at /></a> }), truncated(event), person];
    if has_groups {
        let links = groups.into_iter().map(|(group_type, key)| {
            let href =
                format!("/projects/{project}/groups/{}/{}", segment(&group_type), segment(&key));
            view! { <li>{truncated_link(href, format!("{group_type}: {key}"))}</li> }
        });
        let links = links.collect_view();
        cells.push(cell(view! { <ul class="explore-groups">{links}</ul> }));
    }
    cells.extend(values.into_iter().map(|value| match value {
        Some(value) => truncated(value),
        None => ().into_any(),
    }));
    TableRow::new(cells)
}

#[cfg(test)]
mod tests {
    use super::{ExploreFields, filters_shown};

    #[test]
    fn one_more_filter_is_shown() {
        let shown = |set: &'static [&'static str]| {
            let is_set = move |name: &str| set.contains(&name).then(|| "x".to_owned());
            filters_shown(&ExploreFields::read(|name| is_set(name).unwrap_or_default()))
        };
        assert_eq!(shown(&[]), 1);
        assert_eq!(shown(&["property1"]), 2);
        assert_eq!(shown(&["value3"]), 4);
        assert_eq!(shown(&["property4"]), 4);
        assert_eq!(shown(&["operator2"]), 1);
    }
}
