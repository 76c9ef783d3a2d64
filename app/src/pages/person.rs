//! One person: properties, distinct ids with their merges, groups, events, export and
//! deletion. Of a deleted person: how far that is.

use futures::future::try_join;
use leptos::prelude::*;
use weir_model::erasures::ErasureState;

use super::person_counts::{number, times};
use super::timeline::{segment, timeline};
use super::{in_path, project_in_path};
use crate::local_path::encode;
use crate::server_fns::persons::{
    DELETED, DeletePerson, ErasureView, IdView, PersonPage, PersonView, PropertyView, get_person,
};
use crate::server_fns::projects::get_project;
use crate::ui::alert::Alert;
use crate::ui::confirm::Confirm;
use crate::ui::copy::CopyValue;
use crate::ui::download::DownloadCsv;
use crate::ui::empty::{Empty, NoMatch};
use crate::ui::field::Check;
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::icon::Icon;
use crate::ui::number::{Id, counted, grouped};
use crate::ui::page::{PageHead, page};
use crate::ui::query::{FilterForm, in_query, with_query};
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};
use crate::ui::table::{Column, Table, TableRow, cell, truncated};
use crate::ui::time::{Ago, ProjectZone, Time};

const TITLE: &str = "Person";
/// The properties that come first.
const FIRST: [&str; 3] = ["name", "email", "plan"];

#[component]
pub(crate) fn Person() -> impl IntoView {
    page(
        TITLE,
        || {
            let asked = ["event", "before", "before_uuid"].map(in_query);
            (project_in_path(), in_path("person"), asked)
        },
        |(project, id, [event, before, before_uuid])| {
            try_join(get_project(project), get_person(project, id, event, before, before_uuid))
        },
        |(project, _, [event, before, _]), (of, person)| {
            let person = match person {
                PersonPage::Person(person) => *person,
                PersonPage::Erased(erasure) => {
                    return view! {
                        <PageHead title=DELETED within=of.name />
                        <ProjectZone zone=of.timezone />
                        {erased(erasure)}
                    }
                    .into_any();
                }
            };
            let is_newest = before.is_empty();
            let name = if person.name.is_empty() { TITLE.to_owned() } else { person.name.clone() };
            view! {
                <PageHead title=name within=of.name />
                <ProjectZone zone=of.timezone />
                {facts(&person)}
                {refused(&person)}
                {properties(&person)}
                <div class="card-columns">{ids(&person)} {groups(project, &person)}</div>
                {data(project, &person)}
                {events(project, person, event, is_newest)}
            }
            .into_any()
        },
    )
}

/// The export of the person, and its deletion.
fn data(project: i64, person: &PersonView) -> AnyView {
    let delete = form_action::<DeletePerson>();
    let deleted = form_result(delete);
    let id = person.id.clone();
    let form = match person.may_erase {
        true => view! {
            <FormFailure result=deleted />
            <Confirm button="Delete person" danger=true>
                <ActionForm action=delete>
                    <p>
                        "The person, its distinct ids and its properties are deleted. From then on no page shows them, and within two days their data is removed from all files. This cannot be undone. Later events of these distinct ids create a new person."
                    </p>
                    <input type="hidden" name="project" value=project.to_string() />
                    <input type="hidden" name="person" value=id.clone() />
                    <Check result=deleted name="delete_events" label="Delete its events too"
                        hint="Otherwise the events stay, without a person." />
                    <ReturnAddress />
                    <button type="submit" class="button button-danger" data-busy="Deleting the person...">
                        "Delete the person"
                    </button>
                </ActionForm>
            </Confirm>
        }
        .into_any(),
        false => view! {
            <p>"Administrators and owners of the organization can delete persons."</p>
        }
        .into_any(),
    };
    let export = format!("/_person/{project}/{}", person.id);
    view! {
        <Section id="data" title="Data of the person">
            <p>
                <a class="button" href=export download="">
                    <Icon name="download" />
                    "Export person"
                </a>
            </p>
            {form}
        </Section>
    }
    .into_any()
}

/// How far the deletion of a person is.
fn erased(erasure: ErasureView) -> AnyView {
    let ErasureView { person, deletes_events, state, requested_at, segments_left, events, .. } =
        erasure;
    let (tone, label) = match state {
        ErasureState::Pending => (Tone::Busy, "Files still have its data"),
        ErasureState::Clearing => (Tone::Busy, "Older files are being removed"),
        ErasureState::Failed => (Tone::Bad, "Failed, will be tried again"),
        ErasureState::Done => (Tone::Good, "Deleted"),
    };
    let of_events = deletes_events.then(|| {
        let files_left = match (state, segments_left) {
            (ErasureState::Pending, 0) => "Not counted yet".to_owned(),
            _ => grouped(segments_left),
        };
        view! {
            <dt>"Events removed"</dt>
            <dd>{grouped(events)}</dd>
            <dt>"Files left"</dt>
            <dd>{files_left}</dd>
        }
    });
    let done = erasure.done_at.map(|at| {
        view! {
            <dt>"Done"</dt>
            <dd><Ago iso=at /></dd>
        }
    });
    let failure = erasure.failure.map(|why| {
        view! { <Alert kind="warning"><p>{why}</p></Alert> }
    });
    let what = match deletes_events {
        true => "This person and its events were deleted. No page shows them any more.",
        false => "This person was deleted. Its events stay, without a person.",
    };
    view! {
        {failure}
        <p>{what}</p>
        <dl class="facts">
            <dt>"Id"</dt>
            <dd><CopyValue text=person what="person id" /></dd>
            <dt>"Status"</dt>
            <dd><Status tone=tone label=label /></dd>
            <dt>"Deleted"</dt>
            <dd><Ago iso=requested_at /></dd>
            {of_events}
            {done}
        </dl>
    }
    .into_any()
}

fn facts(person: &PersonView) -> AnyView {
    let counts = person.counts.as_ref();
    let [first, last] = times(counts);
    let known = if person.is_identified { "Identified" } else { "Anonymous" };
    view! {
        <dl class="facts">
            <dt>"Id"</dt>
            <dd><CopyValue text=person.id.clone() what="person id" /></dd>
            <dt>"Status"</dt>
            <dd>{known}</dd>
            <dt>"Events"</dt>
            <dd>{number(counts)}</dd>
            <dt>"First seen"</dt>
            <dd>{first}</dd>
            <dt>"Last seen"</dt>
            <dd>{last}</dd>
        </dl>
    }
    .into_any()
}

fn refused(person: &PersonView) -> Option<AnyView> {
    if person.refused.is_empty() {
        return None;
    }
    let entries = person
        .refused
        .iter()
        .cloned()
        .map(|(at, why, id)| view! { <li><Time iso=at /> " " {why} " Event of " <code>{id}</code></li> })
        .collect_view();
    let view = view! {
        <Alert kind="warning">
            <p>"Another person was not merged with this one:"</p>
            <ul>{entries}</ul>
        </Alert>
    };
    Some(view.into_any())
}

fn properties(person: &PersonView) -> AnyView {
    let hint = format!(
        "Which event set a property is known from the newest {} events{}.",
        grouped(person.looked_at as u64),
        of_shown_ids(person)
    );
    if person.properties.is_empty() {
        return view! {
            <Section id="properties" title="Properties">
                <p>"None. An event sets them with " <code>"$set"</code> " and " <code>"$set_once"</code> "."</p>
            </Section>
        }
        .into_any();
    }
    let (mut own, of_libraries): (Vec<PropertyView>, Vec<PropertyView>) =
        person.properties.iter().cloned().partition(|property| !property.name.starts_with('$'));
    own.sort_by_key(|property| {
        FIRST.iter().position(|name| *name == property.name).unwrap_or(FIRST.len())
    });
    let of_libraries = (!of_libraries.is_empty()).then(|| {
        let count = grouped(of_libraries.len() as u64);
        let table = table("Properties set by SDKs", of_libraries);
        view! {
            <details class="advanced">
                <summary>"Properties set by SDKs " <span class="chip">{count}</span></summary>
                {table}
            </details>
        }
    });
    let own = (!own.is_empty()).then(|| table("Properties of the person", own));
    view! {
        <Section id="properties" title="Properties" hint=hint>
            {own}
            {of_libraries}
        </Section>
    }
    .into_any()
}

fn table(caption: &'static str, properties: Vec<PropertyView>) -> AnyView {
    let columns: Vec<Column> = ["Property", "Value", "Set by", "Set at"].map(Column::text).into();
    let rows = properties.into_iter().map(property).collect();
    view! { <Table caption=caption columns=columns rows=rows /> }.into_any()
}

fn property(property: PropertyView) -> TableRow {
    let PropertyView { name, value, set_by } = property;
    let (event, at) = match set_by {
        Some((event, at)) => (event, view! { <Ago iso=at /> }.into_any()),
        None => ("-".to_owned(), "-".into_any()),
    };
    TableRow::new(vec![
        cell(view! { <span class="mono">{truncated(name)}</span> }),
        cell(view! { <span class="mono">{truncated(value)}</span> }),
        truncated(event),
        cell(at),
    ])
}

fn ids(person: &PersonView) -> AnyView {
    let entries = person.ids.iter().cloned().map(distinct_id).collect_view();
    let more = (person.more_ids > 0).then(|| {
        let shown = grouped(person.ids.len() as u64);
        let more = counted(person.more_ids as u64, "more distinct id is", "more distinct ids are");
        view! {
            <p class="hint">{more} " not shown. These " {shown} " are the first one and those that were merged last."</p>
        }
    });
    view! {
        <Section id="ids" title="Distinct ids">
            <ul class="plain ids">{entries}</ul>
            {more}
        </Section>
    }
    .into_any()
}

fn distinct_id(view: IdView) -> AnyView {
    let IdView { id, joined } = view;
    let how = match joined {
        Some((at, by)) => view! {
            "Merged into this person at "<Time iso=at />" by the event "<Id text=by what="event id" />
        }
        .into_any(),
        None => "The first id of this person".into_any(),
    };
    view! {
        <li>
            <CopyValue text=id what="distinct id" />
            <span class="hint">{how}</span>
        </li>
    }
    .into_any()
}

fn groups(project: i64, person: &PersonView) -> AnyView {
    let looked = format!(
        "Groups of the newest {} events{}.",
        grouped(person.looked_at as u64),
        of_shown_ids(person)
    );
    let entries = person
        .groups
        .iter()
        .map(|(group_type, key, has_page)| {
            let text = format!("{group_type}: {key}");
            if !has_page {
                return view! { <li>{text}</li> }.into_any();
            }
            let href =
                format!("/projects/{project}/groups/{}/{}", segment(group_type), segment(key));
            view! { <li><a href=href>{text}</a></li> }.into_any()
        })
        .collect_view();
    let content = if person.groups.is_empty() {
        view! { <p>"None."</p> }.into_any()
    } else {
        view! { <ul class="links">{entries}</ul> }.into_any()
    };
    view! { <Section id="groups" title="Groups" hint=looked>{content}</Section> }.into_any()
}

/// Which distinct ids events are read of, to continue a sentence; empty: of all.
fn of_shown_ids(person: &PersonView) -> &'static str {
    if person.more_ids > 0 { " of the distinct ids on this page" } else { "" }
}

fn events(project: i64, person: PersonView, event: String, is_newest: bool) -> AnyView {
    let hint = match person.more_ids {
        0 => "",
        _ => "Of the distinct ids on this page only. The others can have newer events.",
    };
    let whose = match person.more_ids {
        0 => "this person",
        _ => "these distinct ids",
    };
    let file = (!person.events.is_empty()).then(|| {
        let filter = match event.is_empty() {
            true => String::new(),
            false => format!("?event={}", encode(&event)),
        };
        let page = format!("/projects/{project}/persons/{}/events{filter}", person.id);
        view! { <DownloadCsv page=page /> }
    });
    let content = match (person.events.is_empty(), event.is_empty()) {
        (false, _) => timeline(project, person.events),
        (true, false) => {
            let clear =
                with_query(&[("event", None), ("before", None), ("before_uuid", None)]);
            view! { <NoMatch filter=format!("named \"{event}\"") clear=clear /> }.into_any()
        }
        (true, true) => view! {
            <Empty title="No event">
                <p>"No event of "{whose}" is stored. Groups and properties can come without one."</p>
            </Empty>
        }
        .into_any(),
    };
    let older = person.older.map(|(before, uuid)| {
        let href =
            with_query(&[("before", Some(before.as_str())), ("before_uuid", Some(uuid.as_str()))]);
        view! { <a class="button" href=href>"Older events"</a> }
    });
    let newest = (!is_newest).then(|| {
        let href = with_query(&[("before", None), ("before_uuid", None)]);
        view! { <a class="button" href=href>"Newest events"</a> }
    });
    view! {
        <Section id="events" title="Events" hint=hint>
            <FilterForm label="Filter events">
                <div class="field">
                    <label for="event">"Event name"</label>
                    <input id="event" name="event" type="search" value=event maxlength="200" autocomplete="off" spellcheck="false" />
                </div>
            </FilterForm>
            {content}
            <p class="pages">{newest} {older} {file}</p>
        </Section>
    }
    .into_any()
}
