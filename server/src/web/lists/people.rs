//! The lists of one person and of one group: events, and the persons of the group.

use std::sync::Arc;

use uuid::Uuid;
use weir_model::pagination::Paged;
use weir_model::{PersonId, Timestamp};
use weir_service::Error as ServiceError;
use weir_service::error::NOT_FOUND;
use weir_service::events::Stored;
use weir_service::groups::GroupMember;

use super::{Asked, Project};
use crate::web::csv::{Column, CsvList, by_cursor, by_offset, one_page, optional};

/// The maximum number of thousands of events of one file, as on the page of all events.
const THOUSANDS_OF_EVENTS: usize = 10;
/// The maximum number of events of one read, as on the page.
const EVENTS_PER_READ: usize = 50;
/// The answer in place of the persons of a group that are not known yet.
const UNCOUNTED: &str = "the events from before the update are being counted";

const EVENTS: &[Column<Stored>] = &[
    ("event_time", |it| time(it.timestamp)),
    ("received", |it| time(it.received_at)),
    ("event", |it| it.event.clone()),
    ("distinct_id", |it| it.distinct_id.clone()),
    ("uuid", |it| it.uuid.to_string()),
    ("properties", |it| it.properties.clone()),
];

/// A person of a group, and whether the persons and their numbers are complete.
type MemberRow = (GroupMember, bool);

const MEMBERS: &[Column<MemberRow>] = &[
    ("id", |(it, _)| it.id.to_string()),
    ("name", |(it, _)| it.name.clone()),
    ("events", |(it, _)| it.counts.events.to_string()),
    ("events_complete", |(it, are_all)| (*are_all && it.counts.is_complete).to_string()),
    ("first_seen", |(it, _)| optional(it.counts.first.map(time).as_ref())),
    ("last_seen", |(it, _)| optional(it.counts.last.map(time).as_ref())),
];

/// The text of a time in microseconds.
fn time(micros: i64) -> String {
    Timestamp::from_micros(micros).to_string()
}

pub(super) async fn person_events(
    asked: &Asked<'_>,
    within: Project,
    person: &str,
) -> Result<CsvList, ServiceError> {
    let name = within.name.clone();
    let id: PersonId = person.parse().map_err(|_| ServiceError::NotFound(NOT_FOUND))?;
    // A person can have a megabyte, and each read uses it.
    let person = Arc::new(within.services.persons.get(&within.project, id).await?);
    let event = Some(asked.value("event")).filter(|event| !event.is_empty());
    let pages = by_cursor(None, move |before: Option<(Timestamp, Uuid)>| {
        let Project { services, project, .. } = within.clone();
        let (person, event) = (Arc::clone(&person), event.clone());
        async move {
            let persons = &services.persons;
            let page = persons.timeline(&project, &person, EVENTS_PER_READ, event, before).await?;
            let last = page.events.last().filter(|_| page.more);
            let next = last.map(|last| Some((Timestamp::from_micros(last.timestamp), last.uuid)));
            Ok((page.events, next))
        }
    });
    Ok(CsvList::new("person-events", &name, EVENTS, pages).at_most_thousands(THOUSANDS_OF_EVENTS))
}

pub(super) async fn group_events(
    within: Project,
    group_type: &str,
    key: &str,
) -> Result<CsvList, ServiceError> {
    let Project { services, project, name } = within;
    let index = services.groups.index(&project, group_type).await?;
    let found = services.groups.activity(&project, index, key).await?;
    Ok(CsvList::new("group-events", &name, EVENTS, one_page(found.events)))
}

pub(super) async fn group_members(
    within: Project,
    group_type: &str,
    key: &str,
) -> Result<CsvList, ServiceError> {
    let name = within.name.clone();
    let index = within.services.groups.index(&within.project, group_type).await?;
    let key = key.to_owned();
    let pages = by_offset(move |page| {
        let (Project { services, project, .. }, key) = (within.clone(), key.clone());
        async move {
            let found = services.groups.members(&project, index, &key, page).await?;
            let found = found.ok_or(ServiceError::Unavailable(UNCOUNTED))?;
            let are_all = found.is_complete;
            Ok(Paged {
                count: found.count as u64,
                results: found.members.into_iter().map(|member| (member, are_all)).collect(),
            })
        }
    });
    Ok(CsvList::new("group-persons", &name, MEMBERS, pages))
}
