//! Persons of a project: the list and its search.

use futures::future::try_join;
use leptos::prelude::*;

use super::person_counts::{number, times};
use super::project_in_path;
use crate::server_fns::bulk::{DeletePersons, MOST_PERSONS, typed_before_deletion};
use crate::server_fns::persons::{PersonList, PersonRow, list_persons};
use crate::server_fns::projects::get_project;
use crate::ui::alert::Alert;
use crate::ui::bulk::{self, BulkBar, selectable};
use crate::ui::confirm::TypedConfirm;
use crate::ui::download::DownloadCsv;
use crate::ui::empty::{Empty, EmptyPage, NoMatch, first_event};
use crate::ui::field::Check;
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, form_action};
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
            (project_in_path(), asked, page_in_query(PAGE_SIZE), bulk::selected_in_query())
        },
        |(project, [search, after, order], list_page, _)| async move {
            let ListPage { limit, offset } = list_page;
            let found = list_persons(project, search, limit, offset, after, order);
            try_join(get_project(project), found).await
        },
        |(project, [search, after, order], list_page, selected), (project_view, found)| {
            let is_first_page = list_page.offset == 0 && after.is_empty();
            let file = (!found.persons.is_empty()).then(|| view! { <DownloadCsv /> });
            let is_nothing = found.persons.is_empty() && search.is_empty() && is_first_page;
            let deleted = form_result(form_action::<DeletePersons>());
            let asking = match found.may_erase {
                true => deletion_of_selected(project, &found.persons, &selected),
                false => None,
            };
            let are_selected =
                found.may_erase && asking.is_none() && bulk::is_worth_it(found.persons.len());
            let bar = are_selected.then(|| bar(project, [&search, &after, &order], list_page));
            let content = match (is_nothing, found.ordered_at.is_some()) {
                _ if found.is_being_sorted => being_sorted(),
                (true, false) => nothing(project),
                (true, true) => without_events(),
                (false, _) => {
                    list(project, found, [&search, &order], list_page, !after.is_empty(), bar)
                }
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
            <FormFailure result=deleted fields=&["typed_name"] />
            {asking}
            {content}
        }
        .into_any()
        },
    )
}

/// The bar, which leads to the question: it names the persons.
fn bar(project: i64, [search, after, order]: [&str; 3], list_page: ListPage) -> AnyView {
    let mut fields = vec![
        ("q", search.to_owned()),
        ("after", after.to_owned()),
        ("order", order.to_owned()),
        ("limit", list_page.limit.to_string()),
        ("offset", list_page.offset.to_string()),
    ];
    fields.retain(|(_, value)| !value.is_empty());
    view! {
        <BulkBar what="persons" fields=fields asks_at=format!("/projects/{project}/persons")>
            <button type="submit" class="button button-risk">"Delete selected..."</button>
        </BulkBar>
    }
    .into_any()
}

/// Asks whether to delete the selected persons.
fn deletion_of_selected(
    project: i64,
    persons: &[PersonRow],
    selected: &[String],
) -> Option<AnyView> {
    let persons: Vec<&PersonRow> =
        persons.iter().filter(|person| selected.contains(&person.id)).collect();
    if persons.is_empty() {
        return None;
    }
    let back = bulk::without_selection();
    if persons.len() > MOST_PERSONS {
        let most = format!("Select at most {MOST_PERSONS} persons.");
        return Some(
            view! {
                <Alert kind="note" autofocus=true>
                    <p>{most} " " <a href=back>"Select others"</a></p>
                </Alert>
            }
            .into_any(),
        );
    }
    let delete = form_action::<DeletePersons>();
    let result = form_result(delete);
    let entries = persons.iter().map(|person| {
        let shown = if person.name.is_empty() { &person.id } else { &person.name };
        view! {
            <li class="wrap">
                <input type="hidden" name="ids[]" value=person.id.clone() />
                <strong>{shown.clone()}</strong>
            </li>
        }
    });
    let entries = entries.collect_view();
    let count = typed_before_deletion(persons.len());
    let asked = format!("Delete {count}?");
    Some(
        view! {
            <Alert kind="warning" autofocus=true>
                <p>{asked}</p>
                <ActionForm action=delete>
                    <ul>{entries}</ul>
                    <p>"Their distinct ids and properties are deleted too. From then on no page shows them, and within two days their data is removed from all files. This cannot be undone."</p>
                    <input type="hidden" name="project" value=project.to_string() />
                    <ReturnAddress />
                    <Check result=result name="delete_events" label="Delete their events too"
                        hint="Otherwise the events stay, without a person." />
                    <TypedConfirm result=result name_to_type=count label="What is deleted"
                        verb="Delete persons" busy="Deleting persons..." />
                    <p><a class="button" href=back>"Cancel"</a></p>
                </ActionForm>
            </Alert>
        }
        .into_any(),
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
    // With it, persons can be selected.
    bar: Option<AnyView>,
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
    let are_selected = bar.is_some();
    let rows = persons.into_iter().map(|person| row(project, person, are_selected)).collect();
    view! {
        {note}
        {bar}
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

fn row(project: i64, person: PersonRow, is_selectable: bool) -> TableRow {
    let PersonRow { id, name, distinct_ids, more_ids, counts, .. } = person;
    let more = (more_ids > 0).then(|| format!(" and {} more", grouped(more_ids as u64)));
    let ids = view! { <span class="mono">{truncated(distinct_ids.join(", "))}</span> {more} };
    let (tone, known) =
        if person.is_identified { (Tone::Good, "Identified") } else { (Tone::Quiet, "Anonymous") };
    let shown = if name.is_empty() { id.clone() } else { name };
    let [first, last] = times(counts.as_ref());
    let link = truncated_link(format!("/projects/{project}/persons/{id}"), shown.clone());
    let link = match is_selectable {
        true => selectable(id, &shown, link),
        false => link,
    };
    TableRow::new(vec![
        link,
        cell(ids),
        cell(view! { <Status tone=tone label=known /> }),
        number(counts.as_ref()),
        first,
        last,
    ])
}
