//! Event definitions: the event names of a project, when they were seen, and how many events
//! have them.

use futures::future::try_join;
use leptos::prelude::*;

use super::project_in_path;
use super::timeline::segment;
use crate::error::UiError;
use crate::live::address_of;
use crate::local_path::encode;
use crate::server_fns::definitions::{EventDefinitionList, EventNameView, list_event_definitions};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::download::DownloadCsv;
use crate::ui::empty::{EmptyPage, NoMatch, no_event};
use crate::ui::menu::RowMenu;
use crate::ui::number::{counted, grouped};
use crate::ui::page::{PageHead, page};
use crate::ui::pager::{ListPage, Pager, page_in_query};
use crate::ui::query::{FilterForm, SearchField, in_query, sort_by, with_query};
use crate::ui::table::{ACTIONS, Column, Direction, Table, TableRow, cell, truncated_link};
use crate::ui::time::{ProjectZone, Time};

const TITLE: &str = "Event definitions";
/// Names on one page.
const PAGE_SIZE: u32 = 50;
/// The order without a value in the address.
const USUAL: &str = "name";
/// The heading of the number of events.
pub(super) const VOLUME: &str = "Events in 30 days";

/// The list in the address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Inputs {
    project: i64,
    search: String,
    order: String,
    list_page: ListPage,
}

/// The list of event names.
#[component]
pub(crate) fn EventDefinitions() -> impl IntoView {
    page(TITLE, read, load, draw)
}

fn read() -> Inputs {
    Inputs {
        project: project_in_path(),
        search: in_query("q"),
        order: in_query("order"),
        list_page: page_in_query(PAGE_SIZE),
    }
}

async fn load(inputs: Inputs) -> Result<(ProjectView, EventDefinitionList), UiError> {
    let Inputs { project, search, order, list_page } = inputs;
    let ListPage { limit, offset } = list_page;
    let names = list_event_definitions(project, search, order, limit, offset);
    try_join(get_project(project), names).await
}

fn draw(inputs: Inputs, (of, found): (ProjectView, EventDefinitionList)) -> AnyView {
    let (project, search) = (inputs.project, inputs.search.clone());
    let file = (!found.names.is_empty()).then(|| view! { <DownloadCsv /> });
    let call = call(project, &search);
    let order = order_field(&inputs.order);
    view! {
        <PageHead title=TITLE within=of.name>{file}</PageHead>
        <ProjectZone zone=of.timezone />
        <p class="lead">
            "The names of the events that this project has stored. When a name was last seen is recorded once an hour."
        </p>
        <FilterForm label="Search event definitions">
            {order}
            <SearchField label="Event name" value=search />
        </FilterForm>
        {list(inputs, found)}
        <ApiRequest call=call />
    }
    .into_any()
}

/// A search keeps the order.
fn order_field(order: &str) -> Option<AnyView> {
    let order = Some(order.to_owned()).filter(|order| !order.is_empty())?;
    Some(view! { <input type="hidden" name="order" value=order /> }.into_any())
}

fn call(project: i64, search: &str) -> ApiCall {
    let query =
        if search.is_empty() { String::new() } else { format!("?search={}", encode(search)) };
    ApiCall {
        method: "GET",
        path: format!("/api/projects/{project}/event_definitions/{query}"),
        scope: "event_definition:read",
        body: None,
    }
}

fn list(inputs: Inputs, found: EventDefinitionList) -> AnyView {
    let Inputs { project, search, order, list_page } = inputs;
    let EventDefinitionList { total, names, others, is_full } = found;
    if total == 0 && search.is_empty() {
        return no_event(project, "The first event with a name adds it to this list.");
    }
    if total == 0 {
        let clear = with_query(&[("q", None), ("offset", None)]);
        let filter = format!("with \"{search}\" in its name");
        return view! { <NoMatch filter=filter clear=clear /> }.into_any();
    }
    if names.is_empty() {
        return view! { <EmptyPage what="event definitions" /> }.into_any();
    }
    let columns = vec![
        Column::text("Event").sorted(sort_by("name", &order, USUAL, Direction::Ascending)),
        Column::number(VOLUME).sorted(sort_by("events", &order, USUAL, Direction::Descending)),
        Column::text("First seen").sorted(sort_by(
            "first_seen",
            &order,
            USUAL,
            Direction::Descending,
        )),
        Column::text("Last seen").sorted(sort_by(
            "last_seen",
            &order,
            USUAL,
            Direction::Descending,
        )),
        Column::text(ACTIONS),
    ];
    let rows = names.into_iter().map(|name| row(project, name, others)).collect();
    view! {
        <Table caption="Event definitions" columns=columns rows=rows />
        <Pager page=list_page total=total what="event definitions" />
        {uncounted(others)}
        {is_full.then(|| view! {
            <p class="hint">"A project keeps at most 10,000 event names. Later names are not listed."</p>
        })}
    }
    .into_any()
}

fn row(project: i64, event: EventNameView, others: u64) -> TableRow {
    let EventNameView { name, first_seen, last_seen, events } = event;
    let href = format!("/projects/{project}/definitions/{}", segment(&name));
    let (stored, live) = addresses(project, &name);
    let menu = view! {
        <RowMenu of=name.clone()>
            <li><a href=stored>"Show events"</a></li>
            <li><a href=live>"Watch live"</a></li>
        </RowMenu>
    };
    TableRow::new(vec![
        truncated_link(href, name),
        cell(volume(events, others)),
        cell(view! { <Time iso=first_seen /> }),
        cell(view! { <Time iso=last_seen /> }),
        cell(menu),
    ])
}

/// The addresses of the events with a name: all that are stored, and those that arrive.
pub(super) fn addresses(project: i64, name: &str) -> (String, String) {
    let event = ("event", name);
    (address_of(project, &[event, ("range", "all")]), address_of(project, &[event]))
}

/// The number of events of a name. `others` events of the project are not counted by name, so
/// the number can be too small.
pub(super) fn volume(events: u64, others: u64) -> String {
    match (events, others) {
        (_, 0) => grouped(events),
        (0, _) => "-".to_owned(),
        _ => format!("at least {}", grouped(events)),
    }
}

/// The sentence about events that are not counted by name.
pub(super) fn uncounted(others: u64) -> Option<AnyView> {
    let text = (others > 0).then(|| {
        let events = counted(others, "event", "events");
        format!(
            "{events} of the last 30 days are not counted by name: each day, at most 100 names are counted."
        )
    })?;
    Some(view! { <p class="hint">{text}</p> }.into_any())
}

#[cfg(test)]
mod tests {
    use super::{addresses, call, volume};

    #[test]
    fn a_number_of_events_that_can_be_too_small_says_so() {
        assert_eq!(volume(1_234, 0), "1,234");
        assert_eq!(volume(0, 0), "0");
        assert_eq!(volume(1_234, 5), "at least 1,234");
        assert_eq!(volume(0, 5), "-");
    }

    #[test]
    fn links_have_the_name() {
        let (stored, live) = addresses(1, "cup & pot");
        assert_eq!(stored, "/projects/1/events?event=cup%20%26%20pot&range=all");
        assert_eq!(live, "/projects/1/events?event=cup%20%26%20pot");
        assert_eq!(call(1, "a b").path, "/api/projects/1/event_definitions/?search=a%20b");
        assert_eq!(call(1, "").path, "/api/projects/1/event_definitions/");
    }
}
