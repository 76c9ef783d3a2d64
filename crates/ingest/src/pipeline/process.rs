//! What happens to the events of a batch, in this order (ING-40):
//!
//! 1. whether the event has a person ([`SpecialProperties::has_profile`]), and the location
//!    of its address ([`Locations`]);
//! 2. the changes of the person, and the properties that are copied to the person
//!    ([`Updates`]);
//! 3. merges ([`merge`], [`People::join`]);
//! 4. the person is created or changed ([`People::change`]);
//! 5. groups ([`Groups`]);
//! 6. names in use ([`NewNames`]);
//! 7. the stored form of the event.
//!
//! Transformations run before the first step ([`ApplyBatch::transform`]). The steps then
//! work on the transformed event.
//!
//! [`ApplyBatch::transform`]: super::apply_batch::ApplyBatch::transform
//!
//! What belongs here: the order of the steps, and the resulting writes. What does not:
//! the steps.

use std::borrow::Cow;
use std::sync::Arc;

use weir_json as json;
use weir_model::outcomes::Warning;
use weir_model::{PersonId, ProjectId};
use weir_store::counts::{CountedEvent, EventCounts, group_index};
use weir_store::events::{NewEvent, ProjectWrite};
use weir_store::groups::TypesWrite;
use weir_store::persons::{self, PersonWrite, Stored};
use weir_store::{ByteBudget, Error, Store};

use super::apply_batch::{Item, Part};
use super::cache::PersonCache;
use super::groups::{Groups, Identified, TypesCache};
use super::merge::{self, MergeRequest};
use super::names::{Named, NamesCache, NewNames};
use super::people::{Cause, People};
use super::planner::UncommittedWrites;
use super::special_properties::SpecialProperties;
use super::updates::Updates;
use crate::location::{Located, Locations};
use crate::logged::EventView;

/// The caches of stored state that all consumers use.
#[derive(Default)]
pub(crate) struct StoreCache {
    persons: PersonCache,
    types: TypesCache,
    names: NamesCache,
    locations: Option<Arc<Locations>>,
}

/// What processing changes in the stored form of an event.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Finished {
    /// The properties, if they differ from those of the event.
    pub(super) properties: Option<String>,
    /// Codes of all warnings about the event.
    pub(super) warnings: Vec<&'static str>,
}

impl Finished {
    /// The stored form of an event.
    pub(super) fn of<'a>(&'a self, item: &'a Item) -> Option<NewEvent<'a>> {
        let event = item.event()?;
        Some(NewEvent {
            arrival: item.arrival,
            uuid: event.uuid,
            event: event.event,
            distinct_id: event.distinct_id,
            timestamp: event.timestamp,
            received_at: item.received_at(),
            properties: self.properties.as_deref().unwrap_or(event.properties),
            elements_chain: event.elements_chain,
            historical: item.is_historical(),
            warnings: Cow::Borrowed(&self.warnings),
        })
    }

    /// The stored forms of the events of a part, with what processing changes in each.
    pub(super) fn all<'a>(part: &'a Part, finished: &'a [Self]) -> Vec<NewEvent<'a>> {
        part.items.iter().zip(finished).filter_map(|(item, finished)| finished.of(item)).collect()
    }
}

/// The result for the events of one project in a batch.
#[derive(Debug)]
pub(super) struct Processed {
    /// For each event of the part, what is changed in its stored form.
    pub(super) finished: Vec<Finished>,
    /// What to put into the caches after the commit, or to remove from them after a
    /// failure.
    pub(super) cache_update: CacheUpdate,
}

/// State that is in the store once the batch is committed.
#[derive(Debug)]
pub(super) struct CacheUpdate {
    project: ProjectId,
    looked_at: Vec<PersonId>,
    persons: Vec<Arc<Stored>>,
    types: Option<TypesWrite>,
    names: NewNames,
}

impl CacheUpdate {
    /// The persons that are written.
    pub(super) fn persons(&self) -> impl Iterator<Item = ((ProjectId, PersonId), Arc<Stored>)> {
        self.persons.iter().map(|person| ((self.project, person.id), Arc::clone(person)))
    }
}

/// An event and its special properties.
struct Read<'a> {
    received_at: i64,
    event: EventView<'a>,
    /// The first id of its distinct id.
    first_id: PersonId,
    special: SpecialProperties<'a>,
    /// The location of its address.
    located: Vec<Located>,
    merge_request: MergeRequest,
    identified: Option<Identified>,
}

impl StoreCache {
    pub(super) fn new(locations: Option<Arc<Locations>>) -> Self {
        Self { locations, ..Self::default() }
    }

    /// Computes the effects of the events of one project and puts the records into
    /// `write`. `None` if their persons and groups are larger than `budget`. `uncommitted`
    /// is what the batch before is writing.
    pub(super) async fn process(
        &self,
        store: &Store,
        project: ProjectId,
        part: &Part,
        uncommitted: Option<&UncommittedWrites>,
        write: &mut ProjectWrite,
        budget: &mut ByteBudget,
    ) -> Result<Option<Processed>, Error> {
        let read = part.items.iter().filter_map(|item| self.read(project, item));
        let read: Vec<Read<'_>> = read.collect();
        let ids = read.iter().flat_map(|read| read.person_ids(project));
        let people = People::load(&self.persons, store, project, ids, uncommitted, budget).await?;
        let Some(mut people) = people else { return Ok(None) };
        let identified: Vec<Identified> =
            read.iter().filter_map(|read| read.identified.clone()).collect();
        let groups = Groups::load(&self.types, store, project, &identified, budget).await?;
        let Some(mut groups) = groups else { return Ok(None) };
        self.names.load(store, project).await?;
        let mut names = NewNames::default();

        let mut finished = Vec::with_capacity(read.len());
        for read in &read {
            #[cfg(test)]
            crate::tests::stumble(read.event);
            let counts = &mut write.counts;
            finished.push(self.work(project, read, &mut people, &mut groups, &mut names, counts));
            budget.take(people.take_grown() + groups.take_grown());
            if budget.is_used_up() {
                return Ok(None);
            }
        }

        let looked_at = people.ids().collect();
        write.persons = people.into_writes();
        (write.groups, write.group_types) = groups.into_writes();
        (write.event_names, write.property_names) = names.definitions();
        let cache_update = CacheUpdate {
            project,
            looked_at,
            persons: write.persons.iter().map(|write| Arc::new(as_stored(write))).collect(),
            types: write.group_types.clone(),
            names,
        };
        Ok(Some(Processed { finished, cache_update }))
    }

    /// Puts committed state into the caches.
    pub(super) fn commit(&self, cache_update: CacheUpdate) {
        self.persons.post(cache_update.project, &cache_update.persons);
        if let Some(types) = cache_update.types {
            self.types.post(cache_update.project, types.names);
        }
        self.names.post(cache_update.project, cache_update.names);
    }

    /// Removes the state that a refused write was computed from. The store has a newer
    /// one.
    pub(super) fn forget(&self, cache_update: &CacheUpdate) {
        self.persons.forget(cache_update.project, cache_update.looked_at.iter().copied());
        self.types.forget(cache_update.project);
    }

    /// Removes persons that were erased in the store.
    pub(super) fn forget_persons(&self, project: ProjectId, ids: &[PersonId]) {
        self.persons.forget(project, ids.iter().copied());
    }

    fn read<'a>(&self, project: ProjectId, item: &'a Item) -> Option<Read<'a>> {
        let event = item.event()?;
        let special = SpecialProperties::read(event.properties, self.names.hashing());
        let merge_request = match special.has_profile() {
            true => merge::request_of(event.event, event.distinct_id, &special),
            false => MergeRequest::Nothing,
        };
        let located = match (&self.locations, special.address()) {
            (Some(locations), Some(address)) => locations.find(&address),
            _ => Vec::new(),
        };
        let identified = Identified::of(event.event, &special);
        // Computed once, because it is a hash.
        let first_id = persons::first_id(project, event.distinct_id);
        let received_at = item.received_at();
        Some(Read { received_at, event, first_id, special, located, merge_request, identified })
    }

    fn work(
        &self,
        project: ProjectId,
        read: &Read<'_>,
        people: &mut People,
        groups: &mut Groups,
        names: &mut NewNames,
        counts: &mut EventCounts,
    ) -> Finished {
        let Read { received_at, event, special, located, merge_request, identified, .. } = read;
        let cause =
            Cause { uuid: event.uuid, distinct_id: event.distinct_id, timestamp: event.timestamp };
        let mut warnings: Vec<Warning> = Vec::new();
        let mut updates = Updates::default();
        if let Some(person) = read.person() {
            updates = Updates::of(event.event, special, located);
            match merge_request {
                MergeRequest::Nothing => {}
                MergeRequest::Join(merge) => {
                    warnings.extend(merge.is_cut.then_some(Warning::DistinctIdCut));
                    warnings.extend(people.join(project, merge, &cause));
                }
                MergeRequest::Illegal => warnings.push(Warning::MergeIdIllegal),
                MergeRequest::Incomplete => warnings.push(Warning::MergeWithoutId),
            }
            warnings.extend(people.change(person, &cause, &updates));
        }
        match identified {
            Some(group) => warnings.extend(groups.identify(group, special.group_set, &cause)),
            None if event.event == "$groupidentify" => warnings.push(Warning::GroupWithoutKey),
            None => {}
        }
        let place = located.iter().map(|found| (found.name.to_owned(), found.value.clone()));
        let mut added: Vec<(String, String)> = place.collect();
        if let Some(raw) = special.groups {
            let (members, warning) = groups.members(raw);
            added.extend(members);
            warnings.extend(warning);
        }
        if !self.names.note(project, names, read.named(&updates, &added), *received_at) {
            warnings.push(Warning::TooManyNames);
        }
        counts.add(&read.counted(&added));
        let properties = rewritten(event.properties, special, &added);
        let mut codes: Vec<&'static str> = event.warnings.iter().map(|w| w.code()).collect();
        for code in warnings.iter().map(|warning| warning.code()) {
            if !codes.contains(&code) {
                codes.push(code);
            }
        }
        Finished { properties, warnings: codes }
    }
}

impl Read<'_> {
    /// The person of its distinct id, before merges. `None` if the event has no person.
    fn person(&self) -> Option<PersonId> {
        self.special.has_profile().then_some(self.first_id)
    }

    /// What is counted of the event. The groups are those of its stored form.
    fn counted<'b>(&'b self, added: &'b [(String, String)]) -> CountedEvent<'b> {
        let mut groups = self.special.group_keys;
        for (name, value) in added {
            if let Some(key) = group_index(name).and_then(|index| groups.get_mut(index)) {
                *key = Some(value);
            }
        }
        CountedEvent {
            first_id: self.first_id,
            time: self.event.timestamp,
            has_person: self.special.has_profile(),
            groups,
        }
    }

    /// The names that the event uses.
    fn named<'b>(&'b self, updates: &'b Updates<'b>, added: &'b [(String, String)]) -> Named<'b> {
        Named { event: self.event, special: &self.special, updates, added }
    }

    /// The ids of the persons that the event concerns.
    fn person_ids(&self, project: ProjectId) -> impl Iterator<Item = PersonId> + use<> {
        let first = |id: &str| persons::first_id(project, id);
        let joined = match &self.merge_request {
            MergeRequest::Join(merge) => [Some(first(&merge.main)), Some(first(&merge.other))],
            MergeRequest::Nothing | MergeRequest::Illegal | MergeRequest::Incomplete => {
                [None, None]
            }
        };
        self.person().into_iter().chain(joined.into_iter().flatten())
    }
}

/// The properties in their stored form, if it differs: members that only instruct
/// processing are removed, and indexes of groups are added.
fn rewritten(
    properties: &str,
    special: &SpecialProperties<'_>,
    added: &[(String, String)],
) -> Option<String> {
    let mut removed: Vec<&str> = added.iter().map(|(name, _)| name.as_str()).collect();
    if !special.has_profile() {
        let spoken =
            [("$set", special.set), ("$set_once", special.set_once), ("$unset", special.unset)];
        removed.extend(spoken.into_iter().filter(|(_, value)| value.is_some()).map(|(n, _)| n));
    } else if special.profile.is_some() {
        removed.push("$process_person_profile");
    }
    if removed.is_empty() {
        return None;
    }
    // Capture has parsed the text. Properties that cannot be rewritten stay as they are.
    let mut out = json::without_members(properties, &removed).ok()?;
    for (name, value) in added {
        out = json::with_member(&out, name, value);
    }
    Some(out)
}

fn as_stored(write: &PersonWrite) -> Stored {
    Stored { id: write.id, version: write.version, state: write.state.clone() }
}
