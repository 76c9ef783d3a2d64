//! The events of a project in the store, as they were at one moment, and its persons and groups
//! as they are now.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use uuid::Uuid;
use weir_answer::{
    Block, BlockEvent, GroupRow, OpenPart, Part, PersonRow, RowSource, Source, SourceError,
};
use weir_model::groups::Group;
use weir_model::{PersonId, ProjectId};
use weir_segments::{Bits, Codes, Error as FileError};
use weir_store::events::{self, BorrowedEvent, EventSnapshot, Needed, OpenBlock, OpenSegment};
use weir_store::groups::GroupPage;
use weir_store::people::{self, People, PersonView};
use weir_store::persons::{Facts, PersonPage, PersonState};
use weir_store::{ByteBudget, Error, ScanLimits, Store, groups, persons};

/// Distinct ids that get their numbers at a time.
const IDS: usize = 1_000;
/// Persons or groups of a page. A page has about 4 MiB at most.
const PAGE: usize = 1_000;
/// Bytes of the persons or groups that are in memory at a time.
const RECORD_BYTES: usize = 4 << 20;
/// How often persons are read until all are found: a guard against damaged data, in which
/// persons that were merged into each other could be a ring.
const ROUNDS: usize = 10_000;

/// Why events could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum SourceFault {
    /// They are not there any more as they were. A new source has them.
    #[error("a part of the events is not there any more")]
    Gone,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
    /// The task that read them failed.
    #[error("events were not read: {0}")]
    Ended(String),
}

/// The events of a snapshot.
pub(super) struct StoreSource {
    reading: Arc<Reading>,
    parts: Vec<Part>,
    /// The segments that were opened, by the number of the part.
    opened: Mutex<HashMap<usize, OpenSegment>>,
}

/// What parts are read with.
struct Reading {
    store: Store,
    /// Runs what waits. A thread of a question has a small stack, and the store needs a larger
    /// one.
    threads: Handle,
    snapshot: EventSnapshot,
    people: Arc<People>,
    view: PersonView,
}

impl StoreSource {
    pub(super) fn new(
        store: Store,
        threads: Handle,
        snapshot: EventSnapshot,
        people: Arc<People>,
        view: PersonView,
    ) -> Self {
        let part = |part: &events::Part| {
            let times = part.times();
            // Later events are not in the snapshot.
            Part { times: (times.from, times.to), last: u64::MAX }
        };
        let parts = snapshot.parts().iter().map(part).collect();
        let reading = Arc::new(Reading { store, threads, snapshot, people, view });
        Self { reading, parts, opened: Mutex::default() }
    }

    /// Whether persons may have been erased since, so that an answer must not be given.
    pub(super) fn has_later_erasures(&self) -> bool {
        self.reading.snapshot.has_later_erasures(&self.reading.store)
    }

    /// After a segment could not be read: fetches another copy, if there is one. Then a new
    /// source can be read.
    pub(super) async fn read_again(&self, error: FileError) -> Result<(), Error> {
        let Some(path) = file(&error).map(Path::to_owned) else {
            let detail = error.to_string();
            return Err(Error::Shape { statement: "segment of events", detail });
        };
        let segment = {
            let mut opened = self.opened.lock();
            let is_it = |segment: &OpenSegment| path.ends_with(segment.file());
            let found = opened.iter().find(|(_, segment)| is_it(segment)).map(|(part, _)| *part);
            found.and_then(|part| opened.remove(&part))
        };
        let Some(segment) = segment else {
            return Err(Error::Damaged { file: path, detail: error.to_string() });
        };
        let Reading { store, snapshot, .. } = &*self.reading;
        events::open_replaced(store, snapshot, &segment, error).await.map(drop)
    }
}

/// The file that an error is about.
fn file(error: &FileError) -> Option<&Path> {
    match error {
        FileError::Damaged { file, .. }
        | FileError::UnknownFormat { file, .. }
        | FileError::Io { file, .. }
        | FileError::NoSuchRows { file, .. }
        | FileError::NoSuchColumn { file, .. } => Some(file),
        _ => None,
    }
}

impl Reading {
    fn open(
        self: &Arc<Self>,
        part: usize,
        needed: Needed,
    ) -> Result<events::OpenPart, SourceFault> {
        let reading = Arc::clone(self);
        let opening = async move {
            let Reading { store, snapshot, .. } = &*reading;
            match snapshot.parts().get(part) {
                Some(part) => events::open_part(store, snapshot, part, needed).await,
                None => Ok(None),
            }
        };
        self.wait(opening)?.ok_or(SourceFault::Gone)
    }

    fn wait<T: Send + 'static>(
        &self,
        reading: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, SourceFault> {
        match self.threads.block_on(self.threads.spawn(reading)) {
            Ok(read) => Ok(read?),
            Err(error) => Err(SourceFault::Ended(error.to_string())),
        }
    }

    fn numbers(&self, distinct_ids: &[&[u8]], into: &mut Vec<u32>) -> Result<(), SourceFault> {
        Ok(self.people.numbers(distinct_ids, into)?)
    }

    /// Calls `see` with the place in the list of each person that has a record, its id and its
    /// data.
    fn each_person_of(
        &self,
        persons: &[u32],
        mut see: impl FnMut(usize, PersonId, &Facts),
    ) -> Result<(), SourceFault> {
        let Self { store, snapshot, people, .. } = self;
        // The places in the list, by the id that is read next.
        let mut open: HashMap<PersonId, Vec<usize>> = HashMap::new();
        for (at, person) in persons.iter().enumerate() {
            if let Some(id) = people.person_id(*person) {
                open.entry(id).or_default().push(at);
            }
        }
        for _ in 0..ROUNDS {
            if open.is_empty() {
                break;
            }
            let ids = open.keys().copied().collect();
            let reading = persons_of(store.clone(), snapshot.project(), ids);
            let (found, is_complete) = self.wait(reading)?;
            let mut merged: Vec<(PersonId, Vec<usize>)> = Vec::new();
            for record in found {
                let places = open.remove(&record.id).unwrap_or_default();
                match record.state {
                    PersonState::Person(facts) => {
                        places.into_iter().for_each(|at| see(at, record.id, &facts));
                    }
                    // Merged since the question began.
                    PersonState::Merged(pointer) => merged.push((pointer.into, places)),
                    PersonState::Erased => {}
                }
            }
            if is_complete {
                // The others have no record.
                open.clear();
            }
            for (id, places) in merged {
                open.entry(id).or_default().extend(places);
            }
        }
        Ok(())
    }

    /// Calls `see` with the place in the list of each group that has a record, and the group.
    fn each_group_of(
        &self,
        index: u8,
        keys: &[&str],
        mut see: impl FnMut(usize, &Group),
    ) -> Result<(), SourceFault> {
        let Self { store, snapshot, .. } = self;
        let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, key) in keys.iter().enumerate() {
            open.entry(*key).or_default().push(at);
        }
        // Each time but the last one, at least one is found.
        for _ in keys {
            let wanted = open.keys().map(|key| (*key).to_owned()).collect();
            let reading = groups_of(store.clone(), snapshot.project(), index, wanted);
            let (found, is_complete) = self.wait(reading)?;
            for groups::Stored { group, .. } in found {
                let places = open.remove(group.key.as_str()).unwrap_or_default();
                places.into_iter().for_each(|at| see(at, &group));
            }
            if is_complete {
                break;
            }
        }
        Ok(())
    }
}

impl Source for StoreSource {
    fn parts(&self) -> &[Part] {
        &self.parts
    }

    fn open(&self, part: usize) -> Result<OpenPart, SourceError> {
        match self.reading.open(part, Needed::Columns)? {
            events::OpenPart::Segment(segment) => {
                let columns = segment.columns().clone();
                self.opened.lock().insert(part, segment);
                Ok(OpenPart::Segment(columns))
            }
            events::OpenPart::Block(open) => {
                Ok(OpenPart::Block(Arc::new(StoreBlock::new(&self.reading, part, open)?)))
            }
        }
    }

    fn ids(&self, distinct_ids: &[&[u8]], into: &mut Vec<u32>) -> Result<(), SourceError> {
        Ok(self.reading.numbers(distinct_ids, into)?)
    }

    fn persons(&self, ids: &[u32], into: &mut Vec<u32>) {
        into.extend(ids.iter().map(|id| self.reading.view.person(*id)));
    }

    fn may_have_erased(&self, part: usize, arrivals: (u64, u64)) -> bool {
        self.reading.snapshot.may_have_erased(part, arrivals.0)
    }

    fn erased_rows(&self, part: usize, arrivals: &[u64], ids: &[u32], into: &mut Bits) {
        let Reading { snapshot, people, .. } = &*self.reading;
        snapshot.erased_rows(part, arrivals, ids, people, into);
    }

    fn first_seen(&self, see: &mut dyn FnMut(u32, i64)) -> Result<(), SourceError> {
        let Reading { store, threads, snapshot, people, view } = &*self.reading;
        let see = |id: u32, time: i64| see(view.person(id), time);
        let seen = people::first_seen(store, snapshot.project(), people, see);
        threads.block_on(seen).map_err(SourceFault::Store)?;
        Ok(())
    }
}

impl RowSource for StoreSource {
    fn project(&self) -> i64 {
        self.reading.snapshot.project().0
    }

    fn person_ids(&self, persons: &[u32], into: &mut Vec<Uuid>) {
        let people = &self.reading.people;
        let ids = persons.iter().map(|person| people.person_id(*person));
        // All of these numbers are of the map.
        into.extend(ids.map(|id| id.map_or(Uuid::nil(), |id| id.0)));
    }

    fn person_properties(
        &self,
        persons: &[u32],
        see: &mut dyn FnMut(usize, &str),
    ) -> Result<(), SourceError> {
        Ok(self.reading.each_person_of(persons, |at, _, facts| see(at, &facts.properties))?)
    }

    fn group_properties(
        &self,
        index: u8,
        keys: &[&str],
        see: &mut dyn FnMut(usize, &str),
    ) -> Result<(), SourceError> {
        Ok(self.reading.each_group_of(index, keys, |at, group| see(at, &group.properties))?)
    }

    fn person_records(
        &self,
        persons: &[u32],
        see: &mut dyn FnMut(usize, PersonRow<'_>),
    ) -> Result<(), SourceError> {
        let each = self.reading.each_person_of(persons, |at, id, facts| {
            let row = PersonRow {
                id: id.0,
                created_at: facts.created_at,
                properties: &facts.properties,
                is_identified: facts.is_identified,
                distinct_ids: &facts.distinct_ids,
            };
            see(at, row);
        });
        Ok(each?)
    }

    fn group_records(
        &self,
        index: u8,
        keys: &[&str],
        see: &mut dyn FnMut(usize, GroupRow<'_>),
    ) -> Result<(), SourceError> {
        Ok(self.reading.each_group_of(index, keys, |at, group| see(at, group_row(group)))?)
    }

    fn each_person(
        &self,
        see: &mut dyn FnMut(PersonRow<'_>) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        let Reading { store, snapshot, .. } = &*self.reading;
        let mut from = None;
        loop {
            let reading = person_page(store.clone(), snapshot.project(), from);
            let PersonPage { persons, next } = self.reading.wait(reading)?;
            for person in &persons {
                let row = PersonRow {
                    id: person.id.0,
                    created_at: person.created_at.micros(),
                    properties: &person.properties,
                    is_identified: person.is_identified,
                    distinct_ids: &person.distinct_ids,
                };
                if see(row).is_break() {
                    return Ok(());
                }
            }
            from = next;
            if from.is_none() {
                return Ok(());
            }
        }
    }

    fn each_group(
        &self,
        see: &mut dyn FnMut(GroupRow<'_>) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        let Reading { store, snapshot, .. } = &*self.reading;
        let types = self.reading.wait(type_count(store.clone(), snapshot.project()))?;
        for (index, _) in (0_u8..).zip(0..types) {
            let mut from = None;
            loop {
                let reading = group_page(store.clone(), snapshot.project(), index, from);
                let GroupPage { groups, next } = self.reading.wait(reading)?;
                for group in &groups {
                    if see(group_row(group)).is_break() {
                        return Ok(());
                    }
                }
                from = next;
                if from.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }
}

fn group_row(group: &Group) -> GroupRow<'_> {
    GroupRow {
        index: group.index,
        key: &group.key,
        properties: &group.properties,
        created_at: group.created_at.micros(),
    }
}

/// The records of persons, and whether these are all that there are.
async fn persons_of(
    store: Store,
    project: ProjectId,
    ids: Vec<PersonId>,
) -> Result<(Vec<persons::Stored>, bool), Error> {
    let mut budget = ByteBudget::of(RECORD_BYTES);
    let found = persons::by_ids(&store, project, &ids, &mut budget).await?;
    Ok((found, !budget.is_used_up()))
}

/// The same for groups of a type.
async fn groups_of(
    store: Store,
    project: ProjectId,
    index: u8,
    keys: Vec<String>,
) -> Result<(Vec<groups::Stored>, bool), Error> {
    let keys: Vec<(u8, &str)> = keys.iter().map(|key| (index, key.as_str())).collect();
    let mut budget = ByteBudget::of(RECORD_BYTES);
    let found = groups::by_keys(&store, project, &keys, &mut budget).await?;
    Ok((found, !budget.is_used_up()))
}

async fn person_page(
    store: Store,
    project: ProjectId,
    from: Option<PersonId>,
) -> Result<PersonPage, Error> {
    persons::page(&store, project, from, PAGE, ScanLimits::records(PAGE), |_| true).await
}

async fn group_page(
    store: Store,
    project: ProjectId,
    index: u8,
    from: Option<Uuid>,
) -> Result<GroupPage, Error> {
    groups::page(&store, project, index, from, PAGE, ScanLimits::records(PAGE), |_| true).await
}

async fn type_count(store: Store, project: ProjectId) -> Result<usize, Error> {
    Ok(groups::types(&store, project).await?.len())
}

/// A block of the snapshot. Its events are read when more than its columns is needed.
struct StoreBlock {
    reading: Arc<Reading>,
    part: usize,
    open: OpenBlock,
    ids: Vec<u32>,
}

impl StoreBlock {
    fn new(reading: &Arc<Reading>, part: usize, open: OpenBlock) -> Result<Self, SourceFault> {
        let codes = open.columns().distinct_ids();
        let texts: Vec<&[u8]> = codes.values.iter().map(|text| &text[..]).collect();
        let mut numbers = Vec::with_capacity(texts.len());
        for texts in texts.chunks(IDS) {
            reading.numbers(texts, &mut numbers)?;
        }
        let number = |code: &u32| numbers.get(*code as usize).copied().unwrap_or(u32::MAX);
        let ids = codes.codes.iter().map(number).collect();
        Ok(Self { reading: Arc::clone(reading), part, open, ids })
    }

    /// Calls `see` with each row and its event, in order.
    fn each_event(&self, mut see: impl FnMut(u32, &BorrowedEvent<'_>)) -> Result<(), SourceFault> {
        let events::OpenPart::Block(open) = self.reading.open(self.part, Needed::Events)? else {
            return Err(SourceFault::Gone);
        };
        // Events of erased persons may have been removed from it.
        if open.columns().arrivals() != self.open.columns().arrivals() {
            return Err(SourceFault::Gone);
        }
        open.each_event(|row, event| {
            see(row, event);
            ControlFlow::Continue(())
        })?;
        Ok(())
    }
}

impl Block for StoreBlock {
    fn arrivals(&self) -> &[u64] {
        self.open.columns().arrivals()
    }

    fn times(&self) -> &[i64] {
        self.open.columns().times()
    }

    fn names(&self) -> Codes {
        self.open.columns().names().clone()
    }

    fn ids(&self) -> &[u32] {
        &self.ids
    }

    fn properties(&self, see: &mut dyn FnMut(u32, &str)) -> Result<(), SourceError> {
        Ok(self.each_event(|row, event| see(row, event.properties))?)
    }

    fn events(
        &self,
        rows: &Bits,
        see: &mut dyn FnMut(u32, BlockEvent<'_>),
    ) -> Result<(), SourceError> {
        let each = self.each_event(|row, event| {
            if !rows.get(row as usize) {
                return;
            }
            let found = BlockEvent {
                uuid: event.uuid,
                distinct_id: event.distinct_id,
                received_at: event.received_at,
                elements_chain: event.elements_chain,
                properties: event.properties,
            };
            see(row, found);
        });
        Ok(each?)
    }
}
