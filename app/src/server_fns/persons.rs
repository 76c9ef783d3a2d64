//! Persons of a project.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::erasures::ErasureState;

#[cfg(feature = "ssr")]
use crate::context::{enter_project, ui_error};
use crate::error::UiError;

/// The name of a deleted person.
pub(crate) const DELETED: &str = "Deleted person";
/// Limit of distinct ids per person in the list.
const IDS: usize = 3;
/// Events on one page of a timeline.
const EVENTS: usize = 50;
/// Persons on one page of an ordered list, at most.
#[cfg(feature = "ssr")]
const ORDERED: u64 = 100;
/// Limit of an event's shown properties, in bytes.
const PROPERTIES: usize = 8 << 10;

/// How many events a person has, and when the first and the last happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CountsView {
    pub(crate) events: u64,
    /// Whether these are all of its events. It has at least these.
    pub(crate) is_exact: bool,
    pub(crate) first: Option<String>,
    pub(crate) last: Option<String>,
}

#[cfg(feature = "ssr")]
impl From<weir_service::persons::PersonCounts> for CountsView {
    fn from(counts: weir_service::persons::PersonCounts) -> Self {
        let time = |micros| weir_model::Timestamp::from_micros(micros).to_string();
        Self {
            events: counts.events,
            is_exact: counts.is_complete,
            first: counts.first.map(time),
            last: counts.last.map(time),
        }
    }
}

/// A person in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PersonRow {
    /// Id of the person.
    pub(crate) id: String,
    /// A name or address in the properties, else a distinct id.
    pub(crate) name: String,
    /// The first few distinct ids.
    pub(crate) distinct_ids: Vec<String>,
    /// Number of other distinct ids.
    pub(crate) more_ids: usize,
    /// Whether an identifying event named the person.
    pub(crate) is_identified: bool,
    /// `None`: events from before an update are still being counted.
    pub(crate) counts: Option<CountsView>,
}

/// A page of the list.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PersonList {
    pub(crate) persons: Vec<PersonRow>,
    /// Whether more persons can exist.
    pub(crate) has_next_page: bool,
    /// Cursor to continue the search, after many persons were read and few matched.
    pub(crate) search_cursor: Option<String>,
    /// When the order was made. `None`: the usual order.
    pub(crate) ordered_at: Option<String>,
    /// Whether further persons are not listed in the order.
    pub(crate) is_cut: bool,
    /// Whether the order is still being made, so that no persons are listed.
    pub(crate) is_being_sorted: bool,
    /// Whether the user may delete persons.
    pub(crate) may_erase: bool,
}

/// A person in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PersonView {
    /// Id of the person.
    pub(crate) id: String,
    /// A name or address in the properties, else a distinct id.
    pub(crate) name: String,
    /// Whether an identifying event named the person.
    pub(crate) is_identified: bool,
    /// `None`: events from before an update are still being counted.
    pub(crate) counts: Option<CountsView>,
    /// Distinct ids, with the events that added them.
    pub(crate) ids: Vec<IdView>,
    /// Number of other distinct ids. Their events are not read.
    pub(crate) more_ids: usize,
    pub(crate) properties: Vec<PropertyView>,
    /// Groups in its newest events: type, key, and whether the project has the type.
    /// Without a type there is no page to link to.
    pub(crate) groups: Vec<(String, String, bool)>,
    /// Refused merges: time, reason, and distinct id of the event.
    pub(crate) refused: Vec<(String, String, String)>,
    /// Number of newest events that were read for properties and groups.
    pub(crate) looked_at: usize,
    /// A page of its events.
    pub(crate) events: Vec<TimelineEvent>,
    /// Cursor of older events: time and uuid.
    pub(crate) older: Option<(String, String)>,
    /// Whether the user may delete the person.
    pub(crate) may_erase: bool,
}

/// What the page of a person shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PersonPage {
    Person(Box<PersonView>),
    /// The person was deleted.
    Erased(ErasureView),
}

/// How far the deletion of a person is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ErasureView {
    /// Id of the person.
    pub(crate) person: String,
    /// Whether its events are deleted too.
    pub(crate) deletes_events: bool,
    pub(crate) state: ErasureState,
    pub(crate) requested_at: String,
    pub(crate) segments_left: u64,
    pub(crate) events: u64,
    pub(crate) done_at: Option<String>,
    pub(crate) failure: Option<String>,
}

#[cfg(feature = "ssr")]
impl From<weir_model::erasures::Erasure> for ErasureView {
    fn from(erasure: weir_model::erasures::Erasure) -> Self {
        Self {
            person: erasure.person.to_string(),
            deletes_events: erasure.deletes_events,
            state: erasure.state(),
            requested_at: erasure.requested_at.to_string(),
            segments_left: erasure.segments_left,
            events: erasure.events,
            done_at: erasure.done_at.map(|at| at.to_string()),
            failure: erasure.failure,
        }
    }
}

/// A distinct id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IdView {
    pub(crate) id: String,
    /// Time at which it was added to the person, and name of the event.
    pub(crate) joined: Option<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PropertyView {
    pub(crate) name: String,
    /// JSON text.
    pub(crate) value: String,
    /// Name and time of the event that set it, if known.
    pub(crate) set_by: Option<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TimelineEvent {
    /// Uuid of the event.
    pub(crate) uuid: String,
    /// Name of the event.
    pub(crate) event: String,
    /// Distinct id of the event.
    pub(crate) distinct_id: String,
    /// Event time.
    pub(crate) at: String,
    /// JSON text. Long texts are truncated.
    pub(crate) properties: String,
}

#[cfg(feature = "ssr")]
impl From<weir_service::events::Stored> for TimelineEvent {
    fn from(event: weir_service::events::Stored) -> Self {
        let end = event.properties.floor_char_boundary(PROPERTIES);
        let mut properties = event.properties;
        properties.truncate(end);
        Self {
            uuid: event.uuid.to_string(),
            event: event.event,
            distinct_id: event.distinct_id,
            at: weir_model::Timestamp::from_micros(event.timestamp).to_string(),
            properties,
        }
    }
}

/// Lists persons whose name, address or distinct id contains a text, or that have a
/// property with this value.
#[server(prefix = "/_fn", endpoint = "list_persons")]
pub(crate) async fn list_persons(
    project: i64,
    #[server(default)] search: String,
    limit: u32,
    offset: u32,
    // Cursor: id of the last person of the previous page.
    #[server(default)] after: String,
    // Name of an order by event counts. Has no effect on a search.
    #[server(default)] order: String,
) -> Result<PersonList, UiError> {
    use weir_model::pagination::Page;
    use weir_model::persons::{PersonOrder, PersonQuery};
    use weir_service::policy::Action;
    use weir_service::scan::{SCAN_TIME, offset_too_large};

    let (services, project) = enter_project(project).await?;
    let may_erase = project.org.level >= Action::ErasePersons.level();
    let limit = u64::from(limit.clamp(1, 1000));
    let after: Option<weir_model::PersonId> = after.parse().ok();
    let query = PersonQuery {
        limit,
        offset: if after.is_some() { 0 } else { u64::from(offset) },
        after,
        distinct_id: None,
        search: crate::filters::text(&search),
    };
    let is_search = query.search.is_some() || query.after.is_some();
    if let Some(order) = PersonOrder::named(&order).filter(|_| !is_search) {
        let page = Page { limit: limit.min(ORDERED), offset: query.offset };
        let ranking = match services.persons.ranking(&project, order).await {
            Ok(ranking) => ranking,
            Err(weir_service::Error::Unavailable(_)) => {
                return Ok(PersonList { is_being_sorted: true, ..PersonList::default() });
            }
            Err(error) => return Err(ui_error(error)),
        };
        let ordered = services.persons.ordered(&project, &ranking, page).await.map_err(ui_error)?;
        return Ok(PersonList {
            has_next_page: ordered.has_next,
            search_cursor: None,
            ordered_at: Some(ranking.at.to_string()),
            is_cut: ordered.is_cut,
            is_being_sorted: false,
            may_erase,
            persons: rows(&services, &project, ordered.persons).await?,
        });
    }
    let step = services.persons.list(&project, &query, SCAN_TIME).await.map_err(ui_error)?;
    if step.next.is_some_and(|(_, offset)| offset > 0) {
        return Err(ui_error(offset_too_large()));
    }
    let is_full = step.found.len() as u64 >= limit;
    let next = step.next.map(|(id, _)| id.to_string());
    Ok(PersonList {
        has_next_page: next.is_some() && is_full && query.after.is_none(),
        search_cursor: next.filter(|_| !is_full || query.after.is_some()),
        ordered_at: None,
        is_cut: false,
        is_being_sorted: false,
        may_erase,
        persons: rows(&services, &project, step.found).await?,
    })
}

/// The rows of persons, with their counts.
#[cfg(feature = "ssr")]
async fn rows(
    services: &weir_service::Services,
    project: &weir_service::ProjectCtx,
    persons: Vec<weir_model::persons::PersonRef>,
) -> Result<Vec<PersonRow>, UiError> {
    let counts = services.persons.counts(project, &persons).await.map_err(ui_error)?;
    let mut counts = counts.map(Vec::into_iter);
    let row = |person: weir_model::persons::PersonRef| PersonRow {
        name: weir_service::persons::display_name(&person),
        more_ids: person.distinct_ids.len().saturating_sub(IDS),
        id: person.id.to_string(),
        distinct_ids: person.distinct_ids.into_iter().take(IDS).collect(),
        is_identified: person.is_identified,
        counts: counts.as_mut().and_then(Iterator::next).map(CountsView::from),
    };
    Ok(persons.into_iter().map(row).collect())
}

#[cfg(feature = "ssr")]
pub(super) fn person_id(text: &str) -> Result<weir_model::PersonId, UiError> {
    text.parse().map_err(|_| ui_error(weir_service::Error::NotFound("Not found.")))
}

/// Deletes a person, with or without its events.
#[server(prefix = "/_fn", endpoint = "delete_person")]
pub(crate) async fn delete_person(
    project: i64,
    person: String,
    // Browsers do not send unticked boxes.
    #[server(default)] delete_events: Option<String>,
) -> Result<(), UiError> {
    let (services, project) = enter_project(project).await?;
    let id = person_id(&person)?;
    let deletes_events = delete_events.is_some();
    services.persons.erase(&project, id, deletes_events).await.map_err(ui_error)?;
    crate::context::notice("The person is deleted.");
    Ok(())
}

/// Returns a person with a page of its events, or how far its deletion is.
#[server(prefix = "/_fn", endpoint = "get_person")]
pub(crate) async fn get_person(
    project: i64,
    person: String,
    // Name of the events to show. Empty: all events.
    #[server(default)] event: String,
    // Cursor of the previous page.
    #[server(default)] before: String,
    #[server(default)] before_uuid: String,
) -> Result<PersonPage, UiError> {
    use std::collections::BTreeMap;

    use serde_json::value::RawValue;
    use weir_model::Timestamp;
    use weir_service::Error;
    use weir_service::policy::Action;

    let (services, project) = enter_project(project).await?;
    let id = person_id(&person)?;
    let found = match services.persons.profile(&project, id).await {
        Err(missing @ Error::NotFound(_)) => {
            let erasure = services.persons.erasure(&project, id).await;
            return match erasure {
                Ok(Some(erasure)) => Ok(PersonPage::Erased(erasure.into())),
                Ok(None) | Err(Error::NotFound(_)) => Err(ui_error(missing)),
                Err(error) => Err(ui_error(error)),
            };
        }
        found => found.map_err(ui_error)?,
    };
    let whose = std::slice::from_ref(&found.person);
    let counts = services.persons.counts(&project, whose).await.map_err(ui_error)?;
    let counts = counts.and_then(|counts| counts.into_iter().next()).map(CountsView::from);
    let types = services.groups.types(&project).await.map_err(ui_error)?;
    let name = Some(event).filter(|name| !name.is_empty());
    let before = Timestamp::parse(&before).zip(before_uuid.parse().ok());
    let timeline = services.persons.timeline(&project, &found.person, EVENTS, name, before);
    let timeline = timeline.await.map_err(ui_error)?;
    let last = timeline.events.last().filter(|_| timeline.more);
    let older = last
        .map(|event| (Timestamp::from_micros(event.timestamp).to_string(), event.uuid.to_string()));
    let properties: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(&found.person.properties).unwrap_or_default();
    let set_by =
        |name: &str| found.set_by.get(name).map(|by| (by.event.clone(), by.at.to_string()));
    let properties = properties
        .into_iter()
        .map(|(name, value)| PropertyView {
            set_by: set_by(&name),
            name,
            value: crate::ui::json::written(value.get()),
        })
        .collect();
    let ids = found.ids.into_iter().map(|id| IdView {
        id: id.id,
        joined: id.joined.map(|(at, by)| (at.to_string(), by.to_string())),
    });
    let groups = found.groups.into_iter().map(|(group_type, key)| {
        let has_page = types.contains(&group_type);
        (group_type, key, has_page)
    });
    let refused = found.refused.into_iter();
    Ok(PersonPage::Person(Box::new(PersonView {
        may_erase: project.org.level >= Action::ErasePersons.level(),
        id: found.person.id.to_string(),
        name: weir_service::persons::display_name(&found.person),
        is_identified: found.person.is_identified,
        counts,
        ids: ids.collect(),
        more_ids: found.more_ids,
        properties,
        groups: groups.collect(),
        refused: refused
            .map(|merge| (merge.at.to_string(), merge.why.to_owned(), merge.distinct_id))
            .collect(),
        looked_at: found.looked_at,
        events: timeline.events.into_iter().map(TimelineEvent::from).collect(),
        older,
    })))
}
