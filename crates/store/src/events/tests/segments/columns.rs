//! What questions read column by column is what the list of events shows, from all layers.

use std::ops::ControlFlow;

use uuid::Uuid;
use weir_model::Timestamp;
use weir_segments::{Bits, Codes, ColumnName, Error as FileError, RowGroup};

use super::super::support::{PROJECT, batch, events, records};
use super::damage::flip;
use super::erasing::{add, erase, person, pointer};
use super::removing::add_at;
use super::support::{NOW, Opened, add_blocks, drop_old, merge_once, now, seal};
use crate::erasures::erase_stored;
use crate::events::columns::OPEN_BYTES;
use crate::events::segments::{MergeBounds, merge_segments_within, remove_replaced};
use crate::events::{
    EventSnapshot, Needed, OpenBlock, OpenPart, OpenSegment, Part, StoredEvent, TimeRange, apply,
    open_part, open_replaced, purge, snapshot,
};
use crate::people::{self, People};
use crate::transaction::tests::{overwrite, stored_of};
use crate::{Error, Store};

const DAY: i64 = 86_400_000_000;

/// Columns lack the warnings.
pub(super) fn without_warnings(events: &[StoredEvent]) -> Vec<StoredEvent> {
    events.iter().map(|event| StoredEvent { warnings: Vec::new(), ..event.clone() }).collect()
}

/// All events that are shown now, in order of arrival, without warnings.
pub(super) async fn shown(store: &Store) -> Vec<StoredEvent> {
    read(store, &all(store).await).await.unwrap()
}

async fn all(store: &Store) -> EventSnapshot {
    snapshot(store, PROJECT, TimeRange::ALL).await.unwrap()
}

/// The events of a snapshot that are shown, in order of arrival. `None`: a part is gone.
async fn read(store: &Store, snapshot: &EventSnapshot) -> Option<Vec<StoredEvent>> {
    let mut found = Vec::new();
    for part in snapshot.parts() {
        found.extend(events_of(&open(store, snapshot, part).await?));
    }
    found.sort_by_key(|event| event.arrival);
    Some(found)
}

async fn open(store: &Store, snapshot: &EventSnapshot, part: &Part) -> Option<OpenPart> {
    open_part(store, snapshot, part, Needed::Events).await.unwrap()
}

/// The events of a part that are shown.
fn events_of(part: &OpenPart) -> Vec<StoredEvent> {
    match part {
        OpenPart::Block(block) => of_block(block),
        OpenPart::Segment(segment) => {
            let groups = segment.columns().groups().iter();
            groups.flat_map(|group| of_group(segment, *group)).collect()
        }
    }
}

fn of_block(block: &OpenBlock) -> Vec<StoredEvent> {
    let (columns, erased) = (block.columns(), block.erased_rows().unwrap_or_default());
    let text = |codes: &Codes, row: usize| codes.values[codes.codes[row] as usize].to_vec();
    let (mut found, mut rows) = (Vec::new(), 0);
    block
        .each_event(|row, event| {
            let row = row as usize;
            assert_eq!(row, rows);
            rows += 1;
            assert_eq!(columns.arrivals()[row], event.arrival);
            assert_eq!(columns.times()[row], event.timestamp);
            assert_eq!(text(columns.names(), row), event.event.as_bytes());
            assert_eq!(text(columns.distinct_ids(), row), event.distinct_id.as_bytes());
            if !erased.get(row) {
                found.push(StoredEvent {
                    arrival: event.arrival,
                    uuid: event.uuid,
                    event: event.event.to_owned(),
                    distinct_id: event.distinct_id.to_owned(),
                    timestamp: event.timestamp,
                    received_at: event.received_at,
                    properties: event.properties.to_owned(),
                    elements_chain: event.elements_chain.to_owned(),
                    historical: event.historical,
                    warnings: Vec::new(),
                });
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(rows, columns.arrivals().len());
    found
}

fn of_group(segment: &OpenSegment, group: RowGroup) -> Vec<StoredEvent> {
    let erased = segment.erased_rows(group).unwrap().unwrap_or_default();
    let mut reader = segment.columns().group(group);
    let mut numbers = |column: ColumnName| {
        let mut found = Vec::new();
        reader.numbers(&column, &mut found).unwrap();
        found
    };
    let arrivals = numbers(ColumnName::Arrival);
    let (times, received) = (numbers(ColumnName::Timestamp), numbers(ColumnName::ReceivedAt));
    let names = reader.codes(&ColumnName::Event).unwrap();
    let (mut historical, mut valid) = (Bits::default(), Bits::default());
    reader.booleans(&ColumnName::Historical, &mut historical, &mut valid).unwrap();
    let mut texts = |column: ColumnName| {
        let mut found = Vec::new();
        reader
            .each_text(&column, |_, text| {
                found.push(String::from_utf8(text.to_vec()).unwrap());
                ControlFlow::Continue(())
            })
            .unwrap();
        found
    };
    let uuids = texts(ColumnName::Uuid);
    let (ids, chains) = (texts(ColumnName::DistinctId), texts(ColumnName::ElementsChain));
    let properties = texts(ColumnName::Properties);
    let mut found = Vec::new();
    for row in (0..group.rows as usize).filter(|row| !erased.get(*row)) {
        let arrival = u64::try_from(arrivals[row]).unwrap();
        assert!((group.times.0..=group.times.1).contains(&times[row]));
        assert!((group.arrivals.0..=group.arrivals.1).contains(&arrival));
        let name = &names.values[names.codes[row] as usize];
        found.push(StoredEvent {
            arrival,
            uuid: Uuid::parse_str(&uuids[row]).unwrap(),
            event: String::from_utf8(name.to_vec()).unwrap(),
            distinct_id: ids[row].clone(),
            timestamp: times[row],
            received_at: received[row],
            properties: properties[row].clone(),
            elements_chain: chains[row].clone(),
            historical: historical.get(row),
            warnings: Vec::new(),
        });
    }
    found
}

/// Reads a column of the first group.
pub(super) fn read_properties(segment: &OpenSegment) -> Result<(), FileError> {
    let group = segment.columns().groups()[0];
    let mut reader = segment.columns().group(group);
    reader.each_text(&ColumnName::Properties, |_, _| ControlFlow::Continue(()))
}

/// Opens all parts, with the columns of blocks alone. Returns them, as far as they are not
/// gone.
async fn open_columns(store: &Store, snapshot: &EventSnapshot) -> Vec<OpenPart> {
    let mut found = Vec::new();
    for part in snapshot.parts() {
        found.extend(open_part(store, snapshot, part, Needed::Columns).await.unwrap());
    }
    found
}

#[tokio::test]
async fn a_snapshot_has_the_events_of_all_layers_and_no_later_ones() {
    let mut opened = Opened::new().await;
    assert!(all(&opened.store).await.parts().is_empty());
    let sent = add_blocks(&opened.store, PROJECT, 24, 37).await;
    // Eight segments of two blocks, four closed blocks and four open ones.
    assert_eq!(seal(&opened.store, 74).await.segments, 8);
    let before = all(&opened.store).await;
    assert_eq!(before.project(), PROJECT);
    assert_eq!(before.parts().len(), 8 + 4 + 4);
    assert_eq!(before.parts().iter().map(Part::events).sum::<u64>(), sent.len() as u64);
    let expected = without_warnings(&sent);
    assert_eq!(read(&opened.store, &before).await.unwrap(), expected);
    assert_eq!(all(&opened.store).await.version(), before.version());

    let more = add_blocks(&opened.store, PROJECT, 4, 37).await;
    let after = all(&opened.store).await;
    assert_ne!(after.version(), before.version());
    assert_eq!(read(&opened.store, &before).await.unwrap(), expected);
    let expected = without_warnings(&[sent, more].concat());
    assert_eq!(read(&opened.store, &after).await.unwrap(), expected);
    opened = opened.reopen().await;
    assert_eq!(shown(&opened.store).await, expected);
    purge(&opened.store, PROJECT).await.unwrap();
    assert!(all(&opened.store).await.parts().is_empty());
}

#[tokio::test]
async fn columns_of_closed_blocks_are_kept_in_memory() {
    let opened = Opened::new().await;
    let store = &opened.store;
    add_blocks(store, PROJECT, 8, 20).await;
    let snapshot = all(store).await;
    for _ in 0..2 {
        let open = open_columns(store, &snapshot).await;
        assert_eq!(open.len(), 8);
        for (part, open) in snapshot.parts().iter().zip(&open) {
            let OpenPart::Block(open) = open else { panic!("nothing is sealed") };
            let whole = open_part(store, &snapshot, part, Needed::Events).await.unwrap();
            let Some(OpenPart::Block(whole)) = whole else { panic!("nothing is sealed") };
            assert_eq!(open.columns(), whole.columns());
            assert_eq!(open.partition(), whole.partition());
            let refused = open.each_event(|_, _| ControlFlow::Continue(())).unwrap_err();
            assert!(matches!(refused, Error::Shape { .. }), "{refused}");
        }
        // The first four blocks are closed, and the others are open.
        let kept = |(partition, first)| store.blocks.columns(PROJECT, (partition, first));
        for (partition, first) in [(0, 1), (1, 21), (3, 41)] {
            assert!(kept((partition, first)).is_some());
            assert!(kept((partition, first + 80)).is_none());
        }
    }
}

#[tokio::test]
async fn blocks_that_are_open_with_their_events_have_a_bound_in_bytes() {
    let opened = Opened::new().await;
    let store = &opened.store;
    add_blocks(store, PROJECT, 4, 20).await;
    let snapshot = all(store).await;
    let free = || snapshot.room.available_permits();
    let all = OPEN_BYTES as usize;
    let columns = open_columns(store, &snapshot).await;
    assert_eq!((columns.len(), free()), (4, all));
    let mut held = Vec::new();
    for part in snapshot.parts() {
        let before = free();
        held.push(open(store, &snapshot, part).await.unwrap());
        assert!(free() < before && before - free() < 20_000);
    }
    drop(held);
    assert_eq!(free(), all);
}

#[tokio::test]
async fn parts_without_events_of_the_times_are_left_out() {
    let opened = Opened::new().await;
    let store = &opened.store;
    // Five segments and an open block.
    for (number, day) in (0..).zip([10, 1, 11, 2, 12, 20]) {
        add_at(&opened, 0, number * 10 + 1, day * DAY).await;
    }
    seal(store, 10).await;
    // An open block with events of two days that are far apart.
    let mut wide = events(101, 102, "b");
    (wide[0].timestamp, wide[1].timestamp) = (3 * DAY, 30 * DAY);
    apply(store, batch(1, 0, 1, &wide)).await.unwrap();
    let days = async |start: i64, end: i64| {
        let times = TimeRange { start: start * DAY, end: end * DAY };
        let found = snapshot(store, PROJECT, times).await.unwrap();
        let day = |part: &Part| part.times().from / DAY;
        found.parts().iter().map(day).collect::<Vec<_>>()
    };
    assert_eq!(days(0, 100).await, [3, 20, 12, 11, 10, 2, 1], "the latest event first");
    assert_eq!(days(1, 2).await, [1]);
    assert_eq!(days(2, 3).await, [2]);
    assert_eq!(days(3, 4).await, [3]);
    assert_eq!(days(11, 21).await, [20, 12, 11]);
    assert_eq!(days(21, 30).await, [0; 0]);
    assert_eq!(days(30, 31).await, [3]);
    assert_eq!(days(31, 32).await, [0; 0]);
}

#[tokio::test]
async fn blocks_that_are_sealed_meanwhile_are_read_from_their_segments() {
    let opened = Opened::new().await;
    let store = &opened.store;
    let sent = without_warnings(&add_blocks(store, PROJECT, 24, 20).await);
    let of_blocks = all(store).await;
    assert_eq!(seal(store, 20).await.segments, 20);
    assert_eq!(read(store, &of_blocks).await.unwrap(), sent);
    let of_segments = all(store).await;
    assert_eq!(of_segments.parts().len(), 20 + 4);
    // The same events.
    assert_eq!(of_segments.version(), of_blocks.version());
    assert_eq!(read(store, &of_segments).await.unwrap(), sent);
    let is_segment = |part: &OpenPart| matches!(part, OpenPart::Segment(_));
    let held = open_columns(store, &of_segments).await;
    assert_eq!(held.iter().filter(|part| is_segment(part)).count(), 20);
    let before: Vec<_> = held.iter().filter(|part| is_segment(part)).flat_map(events_of).collect();

    // The replaced files are removed immediately.
    while merge_once(store, 2, 10_000).await.is_some() {}
    assert_eq!(read(store, &of_segments).await, None, "merged segments are gone");
    let left = open_columns(store, &of_segments).await;
    assert!(left.len() < held.len());
    // What is open can be read to its end.
    let again: Vec<_> = held.iter().filter(|part| is_segment(part)).flat_map(events_of).collect();
    assert_eq!(again, before);
    let merged = all(store).await;
    assert!(merged.parts().len() < of_segments.parts().len());
    assert_eq!(merged.version(), of_blocks.version());
    assert_eq!(read(store, &merged).await.unwrap(), sent);
    assert_eq!(read(store, &of_blocks).await.unwrap(), sent);
    assert_eq!(store.segment_damage(), 0);
}

#[tokio::test]
async fn merged_segments_can_be_read_until_their_files_are_removed() {
    let mut opened = Opened::new().await;
    let sent = without_warnings(&add_blocks(&opened.store, PROJECT, 24, 20).await);
    seal(&opened.store, 20).await;
    // Nothing is open.
    opened = opened.reopen().await;
    let store = &opened.store;
    let before = all(store).await;
    let bounds = MergeBounds { fan_in: 2, events: 10_000 };
    let mut merged = 0;
    while merge_segments_within(store, now(), bounds).await.unwrap().is_some() {
        merged += 1;
    }
    assert!(merged > 4, "some are merged twice");
    for _ in 0..2 {
        assert_eq!(read(store, &before).await.unwrap(), sent);
    }
    remove_replaced(store, Timestamp::from_micros(NOW + DAY)).await.unwrap();
    assert_eq!(read(store, &before).await, None);
    assert_eq!(shown(store).await, sent);
    assert_eq!(store.segment_damage(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_has_each_event_once_while_blocks_are_sealed_and_merged() {
    let opened = Opened::new().await;
    let sent = without_warnings(&add_blocks(&opened.store, PROJECT, 84, 20).await);
    let store = opened.store.clone();
    let changing = tokio::spawn({
        let store = store.clone();
        async move {
            seal(&store, 20).await;
            while merge_once(&store, 2, 10_000).await.is_some() {}
        }
    });
    let mut rounds = 0;
    while !changing.is_finished() {
        let snapshot = all(&store).await;
        let events: u64 = snapshot.parts().iter().map(Part::events).sum();
        assert_eq!(events, sent.len() as u64);
        if let Some(found) = read(&store, &snapshot).await {
            assert!(found == sent, "round {rounds}");
        }
        rounds += 1;
    }
    changing.await.unwrap();
    assert_eq!(shown(&store).await, sent);
    assert_eq!(store.segment_damage(), 0);
}

#[tokio::test]
async fn segments_that_are_removed_for_their_age_are_gone() {
    let opened = Opened::new().await;
    let store = &opened.store;
    let mut sent = Vec::new();
    for (number, day) in (0..).zip([1, 2, 3, 20]) {
        sent.push(add_at(&opened, 0, number * 10 + 1, day * DAY).await);
    }
    seal(store, 10).await;
    let before = all(store).await;
    assert_eq!(read(store, &before).await.unwrap(), sent.concat());
    let held = open(store, &before, before.parts().last().unwrap()).await.unwrap();
    let day = Timestamp::from_micros(3 * DAY);
    assert_eq!(drop_old(store, PROJECT, day, &[]).await.unwrap().segments, 2);
    assert_eq!(read(store, &before).await, None);
    assert_eq!(events_of(&held), sent[0], "its file is open");
    let after = all(store).await;
    assert_ne!(after.version(), before.version());
    assert_eq!(read(store, &after).await.unwrap(), sent[2..].concat());
    assert_eq!(store.segment_damage(), 0);
}

#[tokio::test]
async fn erased_events_are_rows_to_omit_until_they_are_removed() {
    let opened = Opened::new().await;
    let store = &opened.store;
    // A segment, a closed block and an open one.
    let mut sent = add(store, &["ada", "bob"], vec![person(None), pointer()]).await;
    assert_eq!(seal(store, 2).await.segments, 0, "it is open");
    sent.extend(add(store, &["bob", "a-1", "bob"], Vec::new()).await);
    assert_eq!(seal(store, 2).await.segments, 1);
    sent.extend(add(store, &["ada", "bob"], Vec::new()).await);
    let others: Vec<_> = sent.iter().filter(|event| event.distinct_id == "bob").cloned().collect();
    let before = all(store).await;
    assert_eq!(before.parts().len(), 3);
    assert_eq!(read(store, &before).await.unwrap(), sent);
    let closed = (0, 3);
    open_columns(store, &before).await;
    assert!(store.blocks.columns(PROJECT, closed).is_some());
    assert!(!before.has_later_erasures(store));

    erase(store, "ada", true).await.unwrap();
    assert!(before.has_later_erasures(store));
    assert!(store.blocks.columns(PROJECT, closed).is_none(), "it has a text of the person");
    let pending = all(store).await;
    assert!(!pending.has_later_erasures(store));
    assert_ne!(pending.version(), before.version());
    let (people, _) = people::of(store, PROJECT).await.unwrap();
    for _ in 0..2 {
        // From the storage, and from memory.
        let open = open_columns(store, &pending).await;
        let erased = open.iter().map(erased_rows).sum::<usize>();
        let parts = open.iter().enumerate();
        let numbered = parts.map(|(at, part)| erased_by_number(&pending, &people, at, part));
        assert_eq!((erased, numbered.sum::<usize>()), (3, 3));
    }
    assert_eq!(read(store, &pending).await.unwrap(), others);

    erase_stored(store, now()).await.unwrap();
    let after = all(store).await;
    assert_ne!(after.version(), pending.version());
    let open = open_columns(store, &after).await;
    assert_eq!((open.len(), open.iter().map(erased_rows).sum::<usize>()), (3, 0));
    assert_eq!(read(store, &after).await.unwrap(), others);
    // The segment of these snapshots was rewritten.
    assert_eq!(read(store, &pending).await, None);
    // Later events of the same distinct id are those of another person.
    sent = add(store, &["ada"], Vec::new()).await;
    let expected = [others, sent].concat();
    assert_eq!(shown(store).await, expected);
}

fn erased_rows(part: &OpenPart) -> usize {
    let count = |rows: Option<Bits>| rows.map_or(0, |rows| rows.count());
    match part {
        OpenPart::Block(block) => count(block.erased_rows()),
        OpenPart::Segment(segment) => {
            let groups = segment.columns().groups().iter();
            groups.map(|group| count(segment.erased_rows(*group).unwrap())).sum()
        }
    }
}

/// The rows of a part that are erased by the numbers of their distinct ids.
fn erased_by_number(
    snapshot: &EventSnapshot,
    people: &People,
    at: usize,
    part: &OpenPart,
) -> usize {
    let count = |arrivals: &[u64], texts: &[Vec<u8>]| {
        let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        let (mut ids, mut rows) = (Vec::new(), Bits::default());
        people.numbers(&texts, &mut ids).unwrap();
        rows.reset(arrivals.len());
        snapshot.erased_rows(at, arrivals, &ids, people, &mut rows);
        let first = arrivals.iter().min().unwrap();
        assert!(snapshot.may_have_erased(at, *first) || rows.count() == 0);
        rows.count()
    };
    match part {
        OpenPart::Block(block) => {
            let Codes { codes, values } = block.columns().distinct_ids();
            let texts: Vec<Vec<u8>> =
                codes.iter().map(|code| values[*code as usize].to_vec()).collect();
            count(block.columns().arrivals(), &texts)
        }
        OpenPart::Segment(segment) => {
            let of_group = |group: &RowGroup| {
                let mut reader = segment.columns().group(*group);
                let (mut arrivals, mut texts) = (Vec::new(), Vec::new());
                reader.numbers(&ColumnName::Arrival, &mut arrivals).unwrap();
                let see = |_: u32, text: &[u8]| {
                    texts.push(text.to_vec());
                    ControlFlow::Continue(())
                };
                reader.each_text(&ColumnName::DistinctId, see).unwrap();
                let arrivals: Vec<u64> = arrivals.into_iter().map(i64::cast_unsigned).collect();
                count(&arrivals, &texts)
            };
            segment.columns().groups().iter().map(of_group).sum()
        }
    }
}

/// The error of each part that cannot be opened.
async fn failures(store: &Store) -> Vec<Error> {
    let snapshot = all(store).await;
    let mut failures = Vec::new();
    for part in snapshot.parts() {
        failures.extend(open_part(store, &snapshot, part, Needed::Columns).await.err());
    }
    failures
}

/// A block that cannot be sealed is between segments, and after a merge within one.
#[tokio::test]
async fn a_damaged_block_is_a_part_that_cannot_be_opened() {
    let opened = Opened::new().await;
    let store = &opened.store;
    add_blocks(store, PROJECT, 24, 20).await;
    // The third block of the first partition, of five that are closed.
    let (key, mut value) = stored_of(store, "event_block").await.remove(2);
    value.truncate(value.len() - 20);
    overwrite(store, &key, value).await;
    assert_eq!(failures(store).await.len(), 1);
    seal(store, 40).await;
    assert_eq!(failures(store).await.len(), 1);
    while merge_once(store, 2, 10_000).await.is_some() {}
    // Of the first partition the damaged block and the open one, of the others a closed block
    // and the open one.
    assert_eq!(records(store, "event_block").await, 4 * 2);
    let failures = failures(store).await;
    assert!(matches!(&failures[..], [Error::Shape { .. }]), "{failures:?}");
}

#[tokio::test]
async fn a_damaged_segment_is_an_error() {
    let mut opened = Opened::new().await;
    let sent = without_warnings(&add_blocks(&opened.store, PROJECT, 8, 20).await);
    seal(&opened.store, 20).await;
    let file = opened.segment_files().remove(0);
    let middle = usize::try_from(std::fs::metadata(&file).unwrap().len() / 2).unwrap();
    let before = all(&opened.store).await;
    let held = open_columns(&opened.store, &before).await;
    // While it is open.
    flip(&file, middle);
    let mut failed = 0;
    for part in &held {
        let OpenPart::Segment(segment) = part else { continue };
        let Err(error) = read_properties(segment) else { continue };
        let error = open_replaced(&opened.store, &before, segment, error).await.unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
        assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
        failed += 1;
    }
    assert_eq!((failed, opened.store.segment_damage()), (1, 1));
    // They hold the engine.
    drop((held, before));
    // When it is opened.
    opened = opened.reopen().await;
    let failures = failures(&opened.store).await;
    assert!(matches!(&failures[..], [Error::Damaged { .. }]), "{failures:?}");
    opened = opened.reopen_after(|_| flip(&file, middle)).await;
    assert_eq!(shown(&opened.store).await, sent);
    // A file that is missing is damage, too, and no change of the catalog.
    opened = opened.reopen_after(|_| std::fs::remove_file(&file).unwrap()).await;
    let failures = self::failures(&opened.store).await;
    assert!(matches!(&failures[..], [Error::Damaged { .. }]), "{failures:?}");
}
