//! The events of a project in the store, as they were at one moment.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use weir_answer::{Block, OpenPart, Part, Source, SourceError};
use weir_segments::{Bits, Codes, Error as FileError};
use weir_store::events::{self, EventSnapshot, Needed, OpenBlock, OpenSegment};
use weir_store::people::{self, People, PersonView};
use weir_store::{Error, Store};

/// Distinct ids that get their numbers at a time.
const IDS: usize = 1_000;

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
        events::open_again(store, snapshot, &segment, error).await.map(drop)
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
        let opening = self.threads.spawn(async move {
            let Reading { store, snapshot, .. } = &*reading;
            match snapshot.parts().get(part) {
                Some(part) => events::open_part(store, snapshot, part, needed).await,
                None => Ok(None),
            }
        });
        match self.threads.block_on(opening) {
            Ok(opened) => opened?.ok_or(SourceFault::Gone),
            Err(error) => Err(SourceFault::Ended(error.to_string())),
        }
    }

    fn numbers(&self, distinct_ids: &[&[u8]], into: &mut Vec<u32>) -> Result<(), SourceFault> {
        Ok(self.people.numbers(distinct_ids, into)?)
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

/// A block of the snapshot. Its properties are read when they are needed.
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
        let events::OpenPart::Block(open) = self.reading.open(self.part, Needed::Events)? else {
            return Err(SourceFault::Gone.into());
        };
        // Events of erased persons may have been removed from it.
        if open.columns().arrivals() != self.arrivals() {
            return Err(SourceFault::Gone.into());
        }
        let read = open.each_event(|row, event| {
            see(row, event.properties);
            ControlFlow::Continue(())
        });
        read.map_err(SourceFault::Store)?;
        Ok(())
    }
}
