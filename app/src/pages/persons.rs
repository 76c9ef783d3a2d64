//! Persons of a project: the list and its search.

use futures::future::try_join;
use leptos::prelude::*;

use super::person_counts::{number, times};
use super::project_in_path;
use crate::server_fns::persons::{PersonList, PersonRow, list_persons};
use crate::server_fns::projects::get_project;
use crate::ui::download::DownloadCsv;
use crate::ui::empty::{Empty, EmptyPage, NoMatch, first_event};
use crate::ui::number::grouped;
use crate::ui::page::{PageHead, page};
use crate::ui::pager::{ContinueSearch, ListPage, PagerWithoutTotal, page_in_query};
use crate::ui::query::{FilterForm, SearchField, in_query, sort_by, with_query};
use crate::ui::status::{Status, Tone};
use crate::ui::table::{Column, Direction, Table, TableRow, cell, truncated, truncated_link};
use crate::ui::time::{ProjectZone, Time};

const TITLE: &str = "Persons";
/// Persons on one page.
const PAGE_SIZE: u32 = 50;

/// The list of persons.
#[component]
pub(crate) fn Persons() -> impl IntoView {
    page(
        TITLE,
        || {
            let asked = ["q", "after", "order"].map(in_query);
            (project_in_path(), asked, page_in_query(PAGE_SIZE))
        },
        |(project, [search, after, order], list_page)| async move {
            let ListPage { limit, offset } = list_page;
            let found = list_persons(project, search, limit, offset, after, order);
            try_join(get_project(project), found).await
        },
        |(project, [search, after, order], list_page), (project_view, found)| {
            let is_first_page = list_page.offset == 0 && after.is_empty();
            let file = (!found.persons.is_empty()).then(|| view! { <DownloadCsv /> });
            let is_nothing = found.persons.is_empty() && search.is_empty() && is_first_page;
            let content = match (is_nothing, found.ordered_at.is_some()) {
                _ if found.is_being_sorted => being_sorted(),
                (true, false) => nothing(project),
                (true, true) => without_events(),
                (false, _) => list(project, found, [&search, &order], list_page, !after.is_empty()),
            };
            view! {
            <PageHead title=TITLE within=project_view.name>{file}</PageHead>
            <ProjectZone zone=project_view.timezone />
            <p class="lead">
                "The people who sent your events. The first event of a distinct id creates a person. Identifying events merge several ids into one person."
            </p>
            <FilterForm label="Search persons">
                <SearchField label="Distinct id, name, e-mail address, or property = value" value=search />
            </FilterForm>
            {content}
        }
        .into_any()
        },
    )
}

fn nothing(project: i64) -> AnyView {
    view! {
        <Empty title="No person yet">
            <p>"Persons appear with the first event. The distinct id of an event says whose it is."</p>
            {first_event(project)}
        </Empty>
    }
    .into_any()
}

/// An order has no person: there are none, or their events were removed.
fn without_events() -> AnyView {
    view! {
        <Empty title="No person with events">
            <p>"Only persons with stored events are sorted. A project that keeps events for a limited time removes old events, but no persons."</p>
            <p><a class="button" href=with_query(&[("order", None)])>"Usual order"</a></p>
        </Empty>
    }
    .into_any()
}

/// The order takes long. It is kept when it is made, so a later try shows it.
fn being_sorted() -> AnyView {
    view! {
        <Empty title="The persons are being sorted">
            <p>"This can take some seconds, and longer while other projects wait too."</p>
            <p>
                <a class="button button-primary" href="">"Try again"</a>" "
                <a class="button" href=with_query(&[("order", None)])>"Usual order"</a>
            </p>
        </Empty>
    }
    .into_any()
}

fn list(
    project: i64,
    found: PersonList,
    [search, order]: [&str; 2],
    list_page: ListPage,
    is_continued: bool,
) -> AnyView {
    let PersonList { persons, has_next_page, search_cursor, ordered_at, is_cut, .. } = found;
    let shown = persons.len();
    let continue_search =
        search_cursor.map(|cursor| view! { <ContinueSearch what="persons" cursor=cursor /> });
    if shown == 0 && search.is_empty() {
        return view! {
            <EmptyPage what="persons" />
            {continue_search}
        }
        .into_any();
    }
    if shown == 0 {
        let clear = with_query(&[("q", None), ("after", None), ("offset", None)]);
        let filter =
            format!("with \"{search}\" as a property, or in a distinct id, name or e-mail address");
        return view! {
            <NoMatch filter=filter clear=clear />
            {continue_search}
        }
        .into_any();
    }
    // A search has no order, and neither have numbers that are still being counted.
    let can_be_sorted = search.is_empty() && persons.iter().all(|person| person.counts.is_some());
    let columns = vec![
        Column::text("Person"),
        Column::text("Distinct ids"),
        Column::text("Status"),
        sorted(Column::number("Events"), "event_count", order, can_be_sorted),
        sorted(Column::text("First seen"), "first_seen", order, can_be_sorted),
        sorted(Column::text("Last seen"), "last_seen", order, can_be_sorted),
    ];
    let note = ordered_at.map(|at| order_note(at, is_cut));
    let rows = persons.into_iter().map(|person| row(project, person)).collect();
    view! {
        {note}
        <Table caption="Persons" columns=columns rows=rows />
        {continue_search}
        {(!is_continued).then(|| view! { <PagerWithoutTotal page=list_page has_next=has_next_page shown=shown what="persons" /> })}
    }
    .into_any()
}

/// The column with a heading that sorts by it. The largest numbers and the latest times
/// come first, and with a second click last.
fn sorted(column: Column, by: &str, order: &str, can_be_sorted: bool) -> Column {
    if !can_be_sorted {
        return column;
    }
    column.sorted(sort_by(by, order, "", Direction::Descending))
}

fn order_note(at: String, is_cut: bool) -> AnyView {
    let cut = is_cut.then_some(" Further persons are not listed in this order.");
    let clear = with_query(&[("order", None)]);
    view! {
        <p class="hint">
            "Persons with events, in their order at "<Time iso=at />"."{cut}" "
            <a href=clear>"Usual order"</a>
        </p>
    }
    .into_any()
}

fn row(project: i64, person: PersonRow) -> TableRow {
    let PersonRow { id, name, distinct_ids, more_ids, counts, .. } = person;
    let more = (more_ids > 0).then(|| format!(" and {} more", grouped(more_ids as u64)));
    let ids = view! { <span class="mono">{truncated(distinct_ids.join(", "))}</span> {more} };
    let (tone, known) =
        if person.is_identified { (Tone::Good, "Identified") } else { (Tone::Quiet, "Anonymous") };
    let shown = if name.is_empty() { id.clone() } else { name };
    let [first, last] = times(counts.as_ref());
    TableRow::new(vec![
        truncated_link(format!("/projects/{project}/persons/{id}"), shown),
        cell(ids),
        cell(view! { <Status tone=tone label=known /> }),
        number(counts.as_ref()),
        first,
        last,
    ])
}
