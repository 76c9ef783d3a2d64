//! Reading the names that a project's events use (API-48), how many events have them, and
//! which properties those events have.

mod filter;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_json::Members;
use weir_model::Timestamp;
use weir_model::definitions::{
    EventColumn, EventDefinition, EventOrder, NAMES_MAX, PropertyDefinition, PropertyKind,
    PropertyOwner,
};
use weir_model::events::EventQuery;
use weir_model::pagination::{Page, Paged};
use weir_store::definitions as rows;
use weir_store::events;
use weir_store::traffic::NameCounts;

use crate::ctx::ProjectCtx;
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};
use crate::traffic::Traffic;
use crate::{Core, Result};

pub use self::filter::{EventFilter, PropertyFilter};

/// Days (UTC) whose events are counted by name, with today. The store keeps one more.
pub const COUNTED_DAYS: i64 = 30;
const DAY_SECONDS: i64 = 24 * 60 * 60;
/// The maximum number of events that are read for their properties, newest first. The store
/// ends earlier where events are large.
const SAMPLED: usize = 50;
/// After this time, no further events are read for their properties.
const WITHIN: Duration = Duration::from_secs(1);
/// The maximum number of properties of an event name.
const PROPERTIES: usize = 300;
/// Upper bound of bytes in the name of a property. Longer names are not shown.
const PROPERTY_NAME: usize = 400;
/// Upper bound of bytes in a sample. The rest is cut off.
const SAMPLE: usize = 200;

/// An event name in use, with the number of its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventName {
    /// The event name.
    pub name: String,
    /// When it was first seen.
    pub first_at: Timestamp,
    /// When it was last seen, to the hour.
    pub last_at: Timestamp,
    /// Stored events of [`COUNTED_DAYS`], as far as they are counted by name.
    pub events: u64,
}

/// A page of event names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventNames {
    /// The names of the page, and the total number of names that match.
    pub page: Paged<EventName>,
    /// Events of the project that are not counted by name. If there are any, the counts of
    /// the names can be too small.
    pub others: u64,
    /// Whether the project has the maximum number of names, so that further ones are
    /// missing.
    pub is_full: bool,
}

/// A property of the events of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledProperty {
    /// The property name.
    pub name: String,
    /// The kinds of its values, those of newer events first. Empty if all are `null`.
    pub kinds: Vec<PropertyKind>,
    /// The newest value that is not `null`: JSON text, cut when long.
    pub sample: String,
    /// How many of the events that were read have it.
    pub events: u64,
}

/// A property name of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedProperty {
    /// The property name.
    pub definition: PropertyDefinition,
    /// Whether one of the newest events of [`PropertyFilter::seen_in`] has it. `None`: no
    /// event was named, or it is no property of events.
    pub is_seen: Option<bool>,
}

/// An event name with the properties of its newest events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDetail {
    /// The event name, with the number of its events.
    pub seen: EventName,
    /// Events of the project that are not counted by name, see [`EventNames::others`].
    pub others: u64,
    /// The number of newest events that were read.
    pub read: u64,
    /// Whether reading ended before an event was found, because they are rare.
    pub is_early: bool,
    /// Whether the events that were read have further properties.
    pub is_cut: bool,
    /// Their properties, in order of their names.
    pub properties: Vec<SampledProperty>,
}

/// The service for names in use.
#[derive(Clone)]
pub struct Definitions {
    core: Arc<Core>,
    traffic: Traffic,
}

impl Definitions {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { traffic: Traffic::new(Arc::clone(&core)), core }
    }

    /// Event names that contain `search` with the number of their events, in this order.
    ///
    /// # Errors
    /// [`Error::MissingScope`], or when the store cannot be read.
    pub async fn names(
        &self,
        project: &ProjectCtx,
        search: &str,
        order: EventOrder,
        page: Page,
    ) -> Result<EventNames> {
        policy::check(&project.org, Action::ReadProject)?;
        let mut all = rows::events(&self.core.store, project.project).await?;
        let is_full = all.len() >= NAMES_MAX;
        let counts = self.counts(project).await?;
        EventFilter { search, ..EventFilter::default() }.retain(&mut all);
        all.sort_by(|one, other| compared(order, &counts, one, other));
        let Paged { count, results } = page.of(all);
        let results = results.into_iter().map(|seen| counted(seen, &counts)).collect();
        Ok(EventNames { page: Paged { count, results }, others: counts.others, is_full })
    }

    /// An event name with the properties of its newest events. Reads a bounded number of
    /// events, and ends early where they are rare.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`], or when the store cannot be read.
    pub async fn event(&self, project: &ProjectCtx, name: &str) -> Result<EventDetail> {
        policy::check(&project.org, Action::ReadProject)?;
        let (store, id) = (&self.core.store, project.project);
        let seen = rows::event(store, id, name).await?.ok_or(Error::NotFound(NOT_FOUND))?;
        let counts = self.counts(project).await?;
        let until = Instant::now().checked_add(WITHIN);
        let (newest, next) = events::page_until(store, id, &newest_of(name), until).await?;
        let (properties, is_cut) = sampled(newest.iter().map(|event| event.properties.as_str()));
        Ok(EventDetail {
            seen: counted(seen, &counts),
            others: counts.others,
            read: newest.len() as u64,
            is_early: newest.is_empty() && next.is_some(),
            is_cut,
            properties,
        })
    }

    async fn counts(&self, project: &ProjectCtx) -> Result<NameCounts> {
        let since = project.org.ctx.now.plus_seconds(-(COUNTED_DAYS - 1) * DAY_SECONDS);
        self.traffic.names_since(project.project, since).await
    }

    /// Event names that contain `search`, in order.
    pub async fn events(
        &self,
        project: &ProjectCtx,
        search: &str,
        page: Page,
    ) -> Result<Paged<EventDefinition>> {
        let filter = EventFilter { search, ..EventFilter::default() };
        self.filtered_events(project, &filter, EventOrder::default(), page).await
    }

    /// Event names of a filter, in this order. The numbers of events are not read: they are
    /// equal for the order.
    pub async fn filtered_events(
        &self,
        project: &ProjectCtx,
        filter: &EventFilter<'_>,
        order: EventOrder,
        page: Page,
    ) -> Result<Paged<EventDefinition>> {
        let mut all = rows::events(&self.core.store, project.project).await?;
        filter.retain(&mut all);
        let none = NameCounts::default();
        all.sort_by(|one, other| compared(order, &none, one, other));
        Ok(page.of(all))
    }

    /// Property names of `owner` that contain `search`, in order.
    pub async fn properties(
        &self,
        project: &ProjectCtx,
        owner: Option<PropertyOwner>,
        search: &str,
        page: Page,
    ) -> Result<Paged<PropertyDefinition>> {
        let mut all = rows::properties(&self.core.store, project.project).await?;
        PropertyFilter { owner, search, ..PropertyFilter::default() }.retain(&mut all);
        Ok(page.of(all))
    }

    /// Property names of a filter, in order. Reads a bounded number of events if the filter
    /// names some.
    pub async fn filtered_properties(
        &self,
        project: &ProjectCtx,
        filter: &PropertyFilter<'_>,
        page: Page,
    ) -> Result<Paged<ListedProperty>> {
        let mut all = rows::properties(&self.core.store, project.project).await?;
        filter.retain(&mut all);
        let seen = self.properties_of(project, &filter.seen_in).await?;
        let listed = all.into_iter().map(|definition| {
            let is_asked = !filter.seen_in.is_empty() && definition.owner == PropertyOwner::Event;
            let is_seen = is_asked.then(|| seen.contains(&definition.name));
            ListedProperty { definition, is_seen }
        });
        let listed = listed.filter(|one| !filter.is_seen_only || one.is_seen != Some(false));
        Ok(page.of(listed.collect()))
    }

    /// The names of the properties that the newest events of these names have.
    async fn properties_of(
        &self,
        project: &ProjectCtx,
        names: &[String],
    ) -> Result<HashSet<String>> {
        let until = Instant::now().checked_add(WITHIN);
        let mut found = HashSet::new();
        for name in names {
            let (store, query) = (&self.core.store, newest_of(name));
            let (newest, _) = events::page_until(store, project.project, &query, until).await?;
            for event in &newest {
                let members = Members::of(&event.properties).into_iter();
                found.extend(members.map(|(name, _)| name.into_owned()));
            }
        }
        Ok(found)
    }
}

/// The newest events of a name.
fn newest_of(name: &str) -> EventQuery {
    EventQuery { limit: SAMPLED, event: Some(name.to_owned()), ..EventQuery::default() }
}

fn counted(seen: EventDefinition, counts: &NameCounts) -> EventName {
    let EventDefinition { name, first_at, last_at } = seen;
    let events = events_of(counts, &name);
    EventName { name, first_at, last_at, events }
}

fn events_of(counts: &NameCounts, name: &str) -> u64 {
    counts.names.get(name).copied().unwrap_or(0)
}

/// How two names are sorted. Equal ones are in order of their names in both directions.
fn compared(
    order: EventOrder,
    counts: &NameCounts,
    one: &EventDefinition,
    other: &EventDefinition,
) -> Ordering {
    let by_column = match order.by {
        EventColumn::Name => one.name.cmp(&other.name),
        EventColumn::Events => events_of(counts, &one.name).cmp(&events_of(counts, &other.name)),
        EventColumn::FirstSeen => one.first_at.cmp(&other.first_at),
        EventColumn::LastSeen => one.last_at.cmp(&other.last_at),
    };
    let by_column = if order.is_descending { by_column.reverse() } else { by_column };
    by_column.then_with(|| one.name.cmp(&other.name))
}

/// The properties of events from their JSON objects, the newest event first, and whether
/// there are more than are returned.
fn sampled<'a>(newest: impl Iterator<Item = &'a str>) -> (Vec<SampledProperty>, bool) {
    let mut found: BTreeMap<Cow<'a, str>, Found<'a>> = BTreeMap::new();
    let mut is_cut = false;
    for (at, properties) in newest.enumerate() {
        // Of a repeated name, the last value counts.
        for (name, json) in Members::of(properties).into_iter().rev() {
            let is_known = found.contains_key(&name);
            if !is_known && (found.len() >= PROPERTIES || name.len() > PROPERTY_NAME) {
                is_cut = true;
                continue;
            }
            found.entry(name).or_default().add(at, json);
        }
    }
    let properties = found.into_iter().map(|(name, found)| SampledProperty {
        name: name.into_owned(),
        kinds: found.kinds,
        sample: cut(found.sample.unwrap_or("null")).to_owned(),
        events: found.events,
    });
    (properties.collect(), is_cut)
}

/// What is known of a property.
#[derive(Default)]
struct Found<'a> {
    kinds: Vec<PropertyKind>,
    /// The newest value that is not `null`.
    sample: Option<&'a str>,
    events: u64,
    /// The place of the last event with the property.
    last: Option<usize>,
}

impl<'a> Found<'a> {
    /// Adds the value of the event at this place.
    fn add(&mut self, at: usize, json: &'a str) {
        if self.last == Some(at) {
            return;
        }
        self.last = Some(at);
        self.events += 1;
        if let Some(kind) = PropertyKind::of(json) {
            self.sample.get_or_insert(json);
            if !self.kinds.contains(&kind) {
                self.kinds.push(kind);
            }
        }
    }
}

/// The beginning of a long sample.
fn cut(json: &str) -> &str {
    json.get(..json.floor_char_boundary(SAMPLE)).unwrap_or(json)
}

#[cfg(test)]
mod tests {
    use weir_store::traffic::Applied;

    use super::*;
    use crate::test_support::{self, ada};

    fn name(name: &str, seen: i64) -> EventDefinition {
        let at = Timestamp::from_micros(seen);
        EventDefinition { name: name.to_owned(), first_at: at, last_at: at }
    }

    #[test]
    fn names_are_sorted_by_a_column_and_then_by_name() {
        let names = [("a", 1), ("b", 7), ("c", 1)].map(|(name, events)| (name.to_owned(), events));
        let counts = NameCounts { names: names.into(), others: 0 };
        let sorted = |text: &str| {
            let order = EventOrder::named(text);
            let mut names = vec![name("c", 5), name("b", 3), name("a", 9)];
            names.sort_by(|one, other| compared(order, &counts, one, other));
            names.into_iter().map(|one| one.name).collect::<Vec<_>>().join("")
        };
        assert_eq!(sorted(""), "abc");
        assert_eq!(sorted("-name"), "cba");
        assert_eq!(sorted("-events"), "bac");
        assert_eq!(sorted("events"), "acb");
        assert_eq!(sorted("first_seen"), "bca");
        assert_eq!(sorted("-last_seen"), "acb");
    }

    #[test]
    fn properties_have_their_kinds_and_the_newest_value() {
        let newest = [
            r#"{"plan": null, "size": 3, "size": 4}"#,
            r#"{"plan": "pro", "size": "large"}"#,
            r#"{"size": 1, "never": null}"#,
        ];
        let (found, is_cut) = sampled(newest.into_iter());
        assert!(!is_cut);
        let property = |name: &str, kinds: &[PropertyKind], sample: &str, events| SampledProperty {
            name: name.to_owned(),
            kinds: kinds.to_vec(),
            sample: sample.to_owned(),
            events,
        };
        let expected = [
            property("never", &[], "null", 1),
            property("plan", &[PropertyKind::Text], r#""pro""#, 2),
            property("size", &[PropertyKind::Number, PropertyKind::Text], "4", 3),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn properties_and_samples_are_bounded() {
        let members: Vec<String> = (0..PROPERTIES + 1).map(|at| format!("\"p{at}\":1")).collect();
        let many = format!("{{{}}}", members.join(","));
        let (found, is_cut) = sampled(std::iter::once(many.as_str()));
        assert_eq!((found.len(), is_cut), (PROPERTIES, true));
        let long = format!("{{\"a\":\"{}\"}}", "ä".repeat(SAMPLE));
        let (found, _) = sampled(std::iter::once(long.as_str()));
        assert!(found[0].sample.len() <= SAMPLE);
    }

    #[tokio::test]
    async fn events_of_thirty_days_are_counted_by_name() {
        let services = test_support::set_up().await;
        let project = services.projects.enter(&ada(&services).await, "1").await.unwrap();
        let now = project.org.ctx.now;
        let names = [(0, 3), (COUNTED_DAYS - 1, 4), (COUNTED_DAYS, 50)].map(|(days, events)| {
            let at = now.plus_seconds(-days * DAY_SECONDS);
            (at.micros() / (DAY_SECONDS * 1_000_000), "a".to_owned(), events)
        });
        let applied = Applied { names: names.into(), ..Applied::default() };
        services.organizations.store().traffic().applied(project.project, &applied);
        let counts = services.definitions.counts(&project).await.unwrap();
        assert_eq!(counts.names.get("a"), Some(&7));
        let unknown = services.definitions.event(&project, "a").await;
        assert!(matches!(unknown, Err(Error::NotFound(_))));
    }
}
