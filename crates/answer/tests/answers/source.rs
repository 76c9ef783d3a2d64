//! A source of events in blocks and segments.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use tempfile::TempDir;
use weir_answer::{Block, BlockEvent, OpenPart, Part, Source, SourceError};
use weir_segments::{
    Bits, Codes, ColumnType, Options, OwnedEvent, Segment, SegmentEvent, TypedColumn, Writer,
};

use crate::world::{Random, World};

/// Where events are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Blocks,
    Segments,
    Mixed,
    /// In segments with typed columns that do not hold all values.
    TableColumns,
}

/// Events in memory and in files of a directory.
pub(crate) struct TestSource {
    layout: Layout,
    parts: Vec<Part>,
    open: Vec<OpenPart>,
    ids: HashMap<Vec<u8>, u32>,
    persons: Vec<u32>,
    /// By the number of the distinct id.
    erased: HashMap<u32, u64>,
    first_seen: Vec<(u32, i64)>,
    directory: TempDir,
}

impl TestSource {
    pub(crate) fn new(world: &World, layout: Layout, random: &mut Random) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut names: Vec<&String> = world.persons.keys().collect();
        names.sort();
        let mut numbered: Vec<(usize, &String)> =
            names.into_iter().map(|name| (random.below(1_000), name)).collect();
        numbered.sort();
        let ids: HashMap<Vec<u8>, u32> =
            (0..).zip(&numbered).map(|(at, (_, id))| (id.as_bytes().to_vec(), at)).collect();
        let number = |id: &String| ids[id.as_bytes()];
        let persons = numbered.iter().map(|(_, id)| number(&world.persons[*id])).collect();
        let mut source = Self {
            layout,
            parts: Vec::new(),
            open: Vec::new(),
            persons,
            erased: world.erased.iter().map(|(id, bound)| (number(id), *bound)).collect(),
            first_seen: first_seen(world).into_iter().map(|(id, at)| (number(&id), at)).collect(),
            ids: ids.clone(),
            directory,
        };
        let partitions = 1 + random.below(2);
        for partition in 0..partitions {
            let is_of = |event: &&OwnedEvent| {
                ids[event.distinct_id.as_bytes()] as usize % partitions == partition
            };
            let events: Vec<OwnedEvent> = world.events.iter().filter(is_of).cloned().collect();
            let mut rest = &events[..];
            while !rest.is_empty() {
                let (part, later) = rest.split_at(1 + random.below(rest.len()));
                rest = later;
                let is_block = match layout {
                    Layout::Blocks => true,
                    Layout::Segments | Layout::TableColumns => false,
                    Layout::Mixed => random.one_in(2),
                };
                source.add(part, is_block, world.last);
            }
        }
        if !source.parts.is_empty() {
            let by = random.below(source.parts.len());
            source.parts.rotate_left(by);
            source.open.rotate_left(by);
        }
        source
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    fn add(&mut self, events: &[OwnedEvent], is_block: bool, last: u64) {
        let times = events.iter().map(|event| event.timestamp);
        let times = (times.clone().min().unwrap(), times.max().unwrap());
        self.open.push(match is_block {
            true => OpenPart::Block(Arc::new(TestBlock::new(events, &self.ids))),
            false => self.segment(events),
        });
        self.parts.push(Part { times, last });
    }

    fn segment(&self, events: &[OwnedEvent]) -> OpenPart {
        let path = self.directory.path().join(format!("{}.parquet", self.open.len()));
        let mut options = Options::default();
        if self.layout == Layout::TableColumns {
            let known = |property: &str, kind| TypedColumn { property: property.to_owned(), kind };
            options.known = vec![
                known("plan", ColumnType::Text),
                known("price", ColumnType::Number),
                known("ok", ColumnType::Boolean),
                known("$group_0", ColumnType::Text),
            ];
        }
        let mut writer = Writer::create(&path, &options).unwrap();
        for block in events.chunks(7) {
            let block: Vec<SegmentEvent<'_>> = block.iter().map(SegmentEvent::from).collect();
            writer.push_block(&block).unwrap();
        }
        let written = writer.finish().unwrap();
        let segment = Segment::open(&path, written.bytes, &written.sums).unwrap();
        OpenPart::Segment(segment.columns(&[]).unwrap())
    }
}

/// The first event of each person that counts.
pub(crate) fn first_seen(world: &World) -> HashMap<String, i64> {
    let mut first: HashMap<String, i64> = HashMap::new();
    for event in world.counted() {
        let time = first.entry(event.person).or_insert(event.time);
        *time = event.time.min(*time);
    }
    first
}

impl Source for TestSource {
    fn parts(&self) -> &[Part] {
        &self.parts
    }

    fn open(&self, part: usize) -> Result<OpenPart, SourceError> {
        Ok(self.open[part].clone())
    }

    fn ids(&self, distinct_ids: &[&[u8]], into: &mut Vec<u32>) -> Result<(), SourceError> {
        into.extend(distinct_ids.iter().map(|id| self.ids[*id]));
        Ok(())
    }

    fn persons(&self, ids: &[u32], into: &mut Vec<u32>) {
        into.extend(ids.iter().map(|id| self.persons.get(*id as usize).copied().unwrap_or(*id)));
    }

    fn may_have_erased(&self, _part: usize, arrivals: (u64, u64)) -> bool {
        self.erased.values().any(|bound| arrivals.0 <= *bound)
    }

    fn erased_rows(&self, _part: usize, arrivals: &[u64], ids: &[u32], into: &mut Bits) {
        for (row, (arrival, id)) in arrivals.iter().zip(ids).enumerate() {
            if self.erased.get(id).is_some_and(|bound| arrival <= bound) {
                into.set(row);
            }
        }
    }

    fn first_seen(&self, see: &mut dyn FnMut(u32, i64)) -> Result<(), SourceError> {
        for (id, time) in &self.first_seen {
            let person = self.persons[*id as usize];
            see(person, *time);
            // A later time changes nothing.
            see(person, time.saturating_add(1));
        }
        Ok(())
    }
}

struct TestBlock {
    arrivals: Vec<u64>,
    times: Vec<i64>,
    names: Codes,
    ids: Vec<u32>,
    events: Vec<OwnedEvent>,
}

impl TestBlock {
    fn new(events: &[OwnedEvent], ids: &HashMap<Vec<u8>, u32>) -> Self {
        let mut values: Vec<Bytes> = Vec::new();
        let codes = events.iter().map(|event| {
            let known = values.iter().position(|value| value == event.event.as_bytes());
            known.unwrap_or_else(|| {
                values.push(Bytes::copy_from_slice(event.event.as_bytes()));
                values.len() - 1
            })
        });
        let codes = codes.map(|code| u32::try_from(code).unwrap()).collect();
        Self {
            arrivals: events.iter().map(|event| event.arrival).collect(),
            times: events.iter().map(|event| event.timestamp).collect(),
            names: Codes { codes, values },
            ids: events.iter().map(|event| ids[event.distinct_id.as_bytes()]).collect(),
            events: events.to_vec(),
        }
    }
}

impl Block for TestBlock {
    fn arrivals(&self) -> &[u64] {
        &self.arrivals
    }

    fn times(&self) -> &[i64] {
        &self.times
    }

    fn names(&self) -> Codes {
        self.names.clone()
    }

    fn ids(&self) -> &[u32] {
        &self.ids
    }

    fn properties(&self, see: &mut dyn FnMut(u32, &str)) -> Result<(), SourceError> {
        (0..).zip(&self.events).for_each(|(row, event)| see(row, &event.properties));
        Ok(())
    }

    fn events(
        &self,
        rows: &Bits,
        see: &mut dyn FnMut(u32, BlockEvent<'_>),
    ) -> Result<(), SourceError> {
        for row in rows.ones() {
            let event = &self.events[row];
            let found = BlockEvent {
                uuid: event.uuid,
                distinct_id: &event.distinct_id,
                received_at: event.received_at,
                elements_chain: &event.elements_chain,
                properties: &event.properties,
            };
            see(u32::try_from(row).unwrap(), found);
        }
        Ok(())
    }
}
