//! Writing events to the store as the pipeline does, without log and persons.

use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use uuid::Uuid;
use weir_model::ProjectId;
use weir_store::events::{
    self, Apply, BlockBuilder, Head, NewBlock, Position, ProjectWrite, StoredEvent,
};
use weir_store::{Error, Location, Result, Settings, Store};

use crate::events::{People, Source, properties};

/// The project of all events.
pub const PROJECT: ProjectId = ProjectId(1);
/// 2026-06-01, the time of the first event.
const BEGIN: i64 = 1_780_308_000_000_000;
/// Microseconds from one event to the next.
const STEP: i64 = 10_000;
/// Number of active visitors, and of events that each sends.
const ACTIVE: u64 = 50;
const VISIT: u64 = 10;

/// Opens a store that this process, or a killed one, had open before. The engine releases
/// its files shortly after it was closed, so this retries.
///
/// # Errors
/// If it cannot be opened.
pub async fn open_again(directory: &Path) -> Result<Store> {
    let place = Location::Directory(directory.to_owned());
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match Store::open(&place, Settings::default()).await {
            Err(Error::Open { .. } | Error::InUse { .. }) if Instant::now() < deadline => {
                sleep(Duration::from_millis(10)).await;
            }
            outcome => return outcome,
        }
    }
}

/// Visitors who send ten events per visit, interleaved with those of others, and come
/// back later.
#[derive(Debug)]
pub struct Visits {
    source: Source,
    people: u64,
}

impl Visits {
    /// A population of this size.
    pub fn new(people: u64) -> Self {
        Self { source: Source::new(17, People::Known(people)), people }
    }

    fn distinct_id(&self, number: u64) -> String {
        let visit = number / (ACTIVE * VISIT) * ACTIVE + number % ACTIVE;
        format!("user-{:016x}", crate::random::mix(visit) % self.people)
    }

    fn time(number: u64) -> i64 {
        BEGIN + i64::try_from(number).unwrap_or(0) * STEP
    }

    /// Uuid of event `number`.
    pub fn uuid(&self, number: u64) -> Uuid {
        self.source.uuid(number)
    }

    /// Event `number`; numbers are arrival numbers, from 1.
    pub fn event(&self, number: u64) -> StoredEvent {
        let names = ["order completed", "invoice issued", "report exported", "member invited"];
        let time = Self::time(number);
        StoredEvent {
            arrival: number,
            uuid: self.uuid(number),
            event: names[usize::try_from(number % 4).unwrap_or(0)].to_owned(),
            distinct_id: self.distinct_id(number),
            timestamp: time,
            received_at: time + 1_000,
            properties: properties(&self.source, number, time),
            elements_chain: String::new(),
            historical: false,
            warnings: Vec::new(),
        }
    }
}

/// The writer of one partition.
pub struct Writer {
    store: Store,
    partition: u16,
    position: u64,
    head: Head,
    open: Option<BlockBuilder>,
}

impl Writer {
    /// Continues after the events in the store.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn open(store: &Store, partition: u16) -> Result<Self> {
        let position = events::position(store, partition).await?.offset;
        let (head, open) = match events::head(store, PROJECT, partition).await? {
            Some(head) => {
                let open = events::open_block(store, PROJECT, partition, &head).await?;
                (head, open)
            }
            None => (Head::empty(), None),
        };
        Ok(Self { store: store.clone(), partition, position, head, open })
    }

    /// Number of events that this partition contains.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Writes events in one synced transaction.
    ///
    /// # Errors
    /// If none of them was written.
    pub async fn write(&mut self, new: &[StoredEvent]) -> Result<()> {
        let is_first = self.head.count == 0;
        let (mut uuids, mut blocks) = (Vec::with_capacity(new.len()), Vec::new());
        let mut added_times = Vec::new();
        for event in new {
            if let Some(full) = self.open.take_if(|block| block.is_full()) {
                close(&full, &mut added_times, &mut blocks)?;
            }
            let index = match &mut self.open {
                Some(block) => block.push(event)?,
                None => {
                    self.open = Some(BlockBuilder::begin(PROJECT, event)?);
                    0
                }
            };
            let first = self.open.as_ref().map_or(event.arrival, |block| block.first);
            uuids.push((event.uuid, first, index));
            added_times.push(event.timestamp);
            self.head.newest = int(first);
            self.head.last = int(event.arrival);
            self.head.count += 1;
            self.head.from_time = self.head.from_time.min(event.timestamp);
            self.head.to_time = self.head.to_time.max(event.timestamp);
        }
        if let Some(block) = &self.open {
            close(block, &mut added_times, &mut blocks)?;
        }
        let write = ProjectWrite {
            blocks,
            uuids,
            head: self.head.clone(),
            is_first,
            ..ProjectWrite::new(PROJECT)
        };
        let to = self.position + new.len() as u64;
        let apply = Apply {
            partition: self.partition,
            from: Position::at(self.position),
            to: Position::at(to),
            projects: vec![write],
        };
        events::apply(&self.store, apply).await?;
        self.position = to;
        Ok(())
    }
}

fn close(block: &BlockBuilder, times: &mut Vec<i64>, blocks: &mut Vec<NewBlock>) -> Result<()> {
    if !times.is_empty() {
        let (data, summary) = block.finish()?;
        let added_times = std::mem::take(times);
        blocks.push(NewBlock { first: block.first, data, summary, added_times });
    }
    Ok(())
}

fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
