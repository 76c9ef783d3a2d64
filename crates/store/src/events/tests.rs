//! Applying and reading back, on a real engine in memory.

use surrealdb::types::RecordId;
use uuid::Uuid;
use weir_model::definitions::{EventDefinition, PropertyDefinition, PropertyKind, PropertyOwner};
use weir_model::events::EventQuery;
use weir_model::{PersonId, ProjectId, Timestamp};

use super::block::tests::event;
use super::*;
use crate::bind::bind;
use crate::db::Statement;
use crate::groups::{GroupWrite, TypesWrite};
use crate::persons::{PersonState, PersonWrite};
use crate::{Error, Location, Settings, Store, persons, warnings};

const PROJECT: ProjectId = ProjectId(7);

async fn store() -> Store {
    Store::open(&Location::Memory, Settings::default()).await.unwrap()
}

/// A stretch of `events` as one block.
fn stretch(partition: u16, from: u64, to: u64, events: &[StoredEvent]) -> Apply {
    let (from, to) = (Position::at(from), Position::at(to));
    let mut block = BlockBuilder::begin(PROJECT, &events[0]).unwrap();
    let mut uuids = vec![(events[0].uuid, events[0].arrival, 0)];
    for event in &events[1..] {
        let index = block.push(event).unwrap();
        uuids.push((event.uuid, events[0].arrival, index));
    }
    let (data, summary) = block.finish().unwrap();
    let added_times = events.iter().map(|e| e.timestamp).collect();
    let head = Head {
        newest: i64::try_from(events[0].arrival).unwrap(),
        last: summary.last,
        count: summary.count,
        // Reaches back over earlier stretches of the same partition.
        from_time: 0,
        to_time: summary.to_time,
        samples: 0,
    };
    let block = NewBlock { first: events[0].arrival, data, summary, added_times };
    let write = ProjectWrite {
        blocks: vec![block],
        uuids,
        head,
        is_first: true,
        ..ProjectWrite::new(PROJECT)
    };
    Apply { partition, from, to, projects: vec![write] }
}

fn ada(properties: &str) -> PersonState {
    PersonState::Person(persons::Facts {
        distinct_ids: vec!["a".to_owned()],
        properties: properties.to_owned(),
        created_at: 5,
        is_identified: false,
    })
}

/// Records of a table.
async fn count(store: &Store, table: &str) -> usize {
    const ALL: Statement = Statement::read("test", "SELECT VALUE id FROM type::table($table);");
    let vars = bind! { table: table.to_owned() };
    store.db.run(ALL, vars).await.unwrap().rows::<RecordId>(0).unwrap().len()
}

fn query(limit: usize) -> EventQuery {
    EventQuery { limit, ..EventQuery::default() }
}

/// Arrival numbers `from..=to`, all about `distinct_id`.
fn events(from: u64, to: u64, distinct_id: &str) -> Vec<StoredEvent> {
    (from..=to).map(|n| event(n, distinct_id)).collect()
}

#[tokio::test]
async fn a_stretch_is_applied_once() {
    let store = store().await;
    let first = events(1, 3, "a");
    apply(&store, stretch(0, 0, 10, &first)).await.unwrap();
    assert_eq!(position(&store, 0).await.unwrap(), Position::at(10));

    let again = apply(&store, stretch(0, 0, 10, &first)).await.unwrap_err();
    assert!(matches!(&again, Error::Refused { reason, .. } if reason == "position"), "{again}");
    // The same events at another position: refused as a whole.
    let twice = apply(&store, stretch(0, 10, 20, &first)).await.unwrap_err();
    assert!(matches!(twice, Error::Exists { .. }), "{twice}");
    assert_eq!(position(&store, 0).await.unwrap(), Position::at(10));

    let uuids: Vec<Uuid> = events(1, 5, "a").iter().map(|e| e.uuid).collect();
    assert_eq!(stored_uuids(&store, PROJECT, &uuids).await.unwrap().len(), 3);
    assert_eq!(next_arrivals(&store).await.unwrap().get(&7), Some(&4));
}

#[tokio::test]
async fn pages_come_newest_first_across_blocks_and_partitions() {
    let store = store().await;
    apply(&store, stretch(0, 0, 1, &events(1, 40, "a"))).await.unwrap();
    apply(&store, stretch(1, 0, 1, &events(41, 90, "b"))).await.unwrap();
    apply(&store, stretch(0, 1, 2, &events(91, 100, "a"))).await.unwrap();

    let mut seen = Vec::new();
    let mut next = query(7);
    loop {
        let (part, more) = page(&store, PROJECT, &next).await.unwrap();
        seen.extend(part.iter().map(|e| e.arrival));
        let Some(last) = part.last().filter(|_| more) else { break };
        next.before = Some(Timestamp::from_micros(last.timestamp));
        next.before_uuid = Some(last.uuid);
    }
    assert_eq!(seen, (1..=100).rev().collect::<Vec<_>>());

    let arrivals = arrivals(&store, PROJECT, None, 30).await.unwrap();
    let numbers: Vec<u64> = arrivals.events.iter().map(|e| e.arrival).collect();
    assert_eq!(numbers, (71..=100).rev().collect::<Vec<_>>());
    assert!(arrivals.more);
}

#[tokio::test]
async fn arrivals_of_a_partition_that_is_silent_are_found_too() {
    let store = store().await;
    // One old event in a partition, then many in another, in several blocks.
    apply(&store, stretch(1, 0, 1, &events(1, 1, "b"))).await.unwrap();
    for block in 0..5_u64 {
        let first = 10_000 * (block + 1);
        let block = stretch(0, block, block + 1, &events(first, first + 9, "a"));
        apply(&store, block).await.unwrap();
    }
    // A head without events: only skips were counted there.
    let mut nothing = stretch(2, 0, 1, &events(1, 1, "c"));
    nothing.projects[0].blocks.clear();
    nothing.projects[0].uuids.clear();
    nothing.projects[0].head = Head::empty();
    apply(&store, nothing).await.unwrap();

    let of = async |before, limit| {
        let page = arrivals(&store, PROJECT, before, limit).await.unwrap();
        let numbers: Vec<u64> = page.events.iter().map(|event| event.arrival).collect();
        (numbers, page.more)
    };
    assert_eq!(of(None, 3).await, (vec![50_009, 50_008, 50_007], true));
    assert_eq!(of(Some(50_001), 2).await, (vec![50_000, 40_009], true));
    assert_eq!(of(Some(10_001), 5).await, (vec![10_000, 1], false));
    assert_eq!(of(Some(1), 5).await, (vec![], false));
    let (everything, more) = of(None, 100).await;
    assert_eq!((everything.len(), more), (51, false));
}

#[tokio::test]
async fn pages_of_large_events_are_shorter() {
    let store = store().await;
    let mut large = events(1, 40, "a");
    for event in &mut large {
        event.properties = format!(r#"{{"x":"{}"}}"#, "x".repeat(1_000_000));
    }
    apply(&store, stretch(0, 0, 1, &large)).await.unwrap();
    let (first, more) = page(&store, PROJECT, &query(100)).await.unwrap();
    assert!(more && (16..20).contains(&first.len()), "{}", first.len());
    let last = first.last().unwrap();
    let next = EventQuery {
        before: Some(Timestamp::from_micros(last.timestamp)),
        before_uuid: Some(last.uuid),
        ..query(100)
    };
    let (second, _) = page(&store, PROJECT, &next).await.unwrap();
    assert_eq!(second[0].arrival + 1, last.arrival);
}

#[tokio::test]
async fn filters() {
    let store = store().await;
    let partition = live_partition(PROJECT, "a");
    apply(&store, stretch(partition, 0, 1, &events(1, 30, "a"))).await.unwrap();
    let others = live_partition(PROJECT, "b");
    let from = if others == partition { 1 } else { 0 };
    apply(&store, stretch(others, from, 2, &events(31, 60, "b"))).await.unwrap();

    let of = |query: EventQuery| {
        let store = store.clone();
        async move {
            let (found, _) = page(&store, PROJECT, &query).await.unwrap();
            found.iter().map(|e| e.arrival).collect::<Vec<_>>()
        }
    };
    let by_id = EventQuery { distinct_id: Some("a".to_owned()), ..query(3) };
    assert_eq!(of(by_id).await, [30, 29, 28]);
    let by_name = EventQuery { event: Some("event 1".to_owned()), ..query(2) };
    assert_eq!(of(by_name).await, [58, 55]);
    let by_uuid = EventQuery { uuid: Some(Uuid::from_u128(17)), ..query(2) };
    assert_eq!(of(by_uuid).await, [17]);
    let between = EventQuery {
        after: Some(Timestamp::from_micros(10_000_000)),
        before: Some(Timestamp::from_micros(13_000_000)),
        ..query(10)
    };
    assert_eq!(of(between).await, [12, 11]);
    let nobody = EventQuery { distinct_id: Some("nobody".to_owned()), ..query(3) };
    assert_eq!(of(nobody).await, Vec::<u64>::new());
    let (elsewhere, _) = page(&store, ProjectId(8), &query(5)).await.unwrap();
    assert!(elsewhere.is_empty());
}

#[tokio::test]
async fn an_open_block_is_filled_further() {
    let store = store().await;
    apply(&store, stretch(0, 0, 1, &events(1, 2, "a"))).await.unwrap();
    let head = head(&store, PROJECT, 0).await.unwrap().unwrap();
    let mut block = open_block(&store, PROJECT, 0, &head).await.unwrap().unwrap();
    let third = event(3, "a");
    assert_eq!(block.push(&third).unwrap(), 2);
    let (data, summary) = block.finish().unwrap();
    let mut next = stretch(0, 1, 2, std::slice::from_ref(&third));
    next.projects[0].uuids = vec![(third.uuid, 1, 2)];
    next.projects[0].head.newest = 1;
    next.projects[0].blocks =
        vec![NewBlock { first: 1, data, summary, added_times: vec![third.timestamp] }];
    apply(&store, next).await.unwrap();
    let (found, _) = page(&store, PROJECT, &query(10)).await.unwrap();
    assert_eq!(found.iter().map(|e| e.arrival).collect::<Vec<_>>(), [3, 2, 1]);
}

#[tokio::test]
async fn persons_and_warnings_are_written_with_the_events() {
    let store = store().await;
    let id = persons::first_id(PROJECT, "a");
    let person = |expected, version, properties: &str| PersonWrite {
        id,
        state: ada(properties),
        expected,
        version,
    };
    let mut first = stretch(0, 0, 1, &events(1, 1, "a"));
    first.projects[0].persons = vec![person(None, 0, "{}")];
    first.projects[0].head.samples = 2;
    let seen = Span { from: 3, to: 4 };
    first.projects[0].warnings =
        vec![WarningCount { code: "missing_event_name".to_owned(), count: 2, seen, sample: None }];
    first.projects[0].samples = (0..2)
        .map(|n| Sample {
            code: "missing_event_name".to_owned(),
            received_at: n,
            event: None,
            distinct_id: Some("a".to_owned()),
            payload: "{}".to_owned(),
        })
        .collect();
    apply(&store, first).await.unwrap();

    let mut second = stretch(0, 1, 2, &events(2, 2, "a"));
    second.projects[0].persons = vec![person(Some(0), 1, r#"{"a":1}"#)];
    apply(&store, second).await.unwrap();
    let mut stale = stretch(0, 2, 3, &events(3, 3, "a"));
    stale.projects[0].persons = vec![person(Some(0), 1, "{}")];
    let error = apply(&store, stale).await.unwrap_err();
    assert!(matches!(&error, Error::Refused { reason, .. } if reason == "stale person"), "{error}");

    let found = persons::by_ids(&store, PROJECT, &[id, PersonId(Uuid::nil())]).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].version, &found[0].state), (1, &ada(r#"{"a":1}"#)));
    let counts = warnings::counts(&store, PROJECT).await.unwrap();
    assert_eq!((counts[0].count, counts[0].first_at.micros()), (2, 3));
    let samples = warnings::samples(&store, PROJECT).await.unwrap();
    assert_eq!(
        samples.iter().map(|s| s.key.as_str()).collect::<Vec<_>>(),
        ["drop-0-1", "drop-0-0"]
    );
}

#[tokio::test]
async fn a_purge_removes_everything_of_a_project_and_nothing_else() {
    const TABLES: [&str; 12] = [
        "event_block",
        "event_summary",
        "event_time",
        "event_uuid",
        "event_head",
        "person",
        "event_group",
        "group_types",
        "event_definition",
        "property_definition",
        "ingestion_warning",
        "ingestion_sample",
    ];
    let store = store().await;
    let fill = async |project: ProjectId, from: u64| {
        let mut write = stretch(0, from, from + 1, &events(1, 40, "a"));
        let part = &mut write.projects[0];
        part.project = project;
        part.persons = vec![PersonWrite {
            id: persons::first_id(project, "a"),
            state: ada("{}"),
            expected: None,
            version: 0,
        }];
        let seen = Span { from: 3, to: 4 };
        part.warnings =
            vec![WarningCount { code: "too_deep".to_owned(), count: 1, seen, sample: None }];
        part.groups = vec![GroupWrite {
            index: 0,
            key: "acme".to_owned(),
            properties: "{}".to_owned(),
            created_at: 5,
            expected: None,
            version: 0,
        }];
        part.group_types = Some(TypesWrite { names: vec!["company".to_owned()], expected: 0 });
        let (first_at, last_at) = (Timestamp::from_micros(1), Timestamp::from_micros(2));
        part.event_names = vec![EventDefinition { name: "buy".to_owned(), first_at, last_at }];
        part.property_names = vec![PropertyDefinition {
            owner: PropertyOwner::Event,
            name: "price".to_owned(),
            kind: PropertyKind::Number,
            first_at,
        }];
        part.head.samples = 1;
        part.samples = vec![Sample {
            code: "too_deep".to_owned(),
            received_at: 1,
            event: None,
            distinct_id: None,
            payload: "{}".to_owned(),
        }];
        apply(&store, write).await.unwrap();
    };
    let counted = async || {
        let mut counts = Vec::new();
        for table in TABLES {
            counts.push(count(&store, table).await);
        }
        counts
    };
    fill(PROJECT, 0).await;
    let one = counted().await;
    assert!(one.iter().all(|count| *count > 0), "{one:?}");
    fill(ProjectId(8), 1).await;
    purge(&store, PROJECT).await.unwrap();
    assert_eq!(counted().await, one);
    purge(&store, PROJECT).await.unwrap();
    purge(&store, ProjectId(8)).await.unwrap();
    assert_eq!(counted().await, vec![0; TABLES.len()]);
}

#[tokio::test]
async fn pages_of_an_import_that_is_not_sorted_are_complete_and_in_order() {
    const DAY: u64 = 86_400;
    let store = store().await;
    let mut sent = Vec::new();
    for block in 0..40_u64 {
        let mut part = events(block * 50 + 1, block * 50 + 50, "a");
        for event in &mut part {
            // Anywhere within three years, several within a second.
            let second = event.arrival * 7_919 % 1_913 * DAY / 2 + event.arrival % 3;
            event.timestamp = i64::try_from(second * 1_000_000 + event.arrival % 7).unwrap();
            event.event = format!("event {}", event.arrival % 11);
        }
        sent.extend(part.iter().map(|event| (event.timestamp, event.uuid)));
        let mut write = stretch(4, block, block + 1, &part);
        write.projects[0].head.to_time = sent.iter().map(|(at, _)| *at).max().unwrap();
        apply(&store, write).await.unwrap();
    }
    sent.sort_unstable_by(|left, right| right.cmp(left));
    let walk = async |first: EventQuery| {
        let (mut seen, mut next) = (Vec::new(), first);
        loop {
            let (part, more) = page(&store, PROJECT, &next).await.unwrap();
            seen.extend(part.iter().map(|event| (event.timestamp, event.uuid)));
            let Some(last) = part.last().filter(|_| more) else { return seen };
            next.before = Some(Timestamp::from_micros(last.timestamp));
            next.before_uuid = Some(last.uuid);
        }
    };
    assert_eq!(walk(query(173)).await, sent);
    let named = EventQuery { event: Some("event 4".to_owned()), ..query(31) };
    let of_name = |(_, uuid): &&(i64, Uuid)| uuid.as_u128() % 11 == 4;
    assert_eq!(walk(named).await, sent.iter().filter(of_name).copied().collect::<Vec<_>>());
    let (after, before) = (sent[900].0, sent[400].0);
    let between = EventQuery {
        after: Some(Timestamp::from_micros(after)),
        before: Some(Timestamp::from_micros(before)),
        ..query(5_000)
    };
    let expected: Vec<_> =
        sent.iter().filter(|(at, _)| *at > after && *at < before).copied().collect();
    assert_eq!(walk(between).await, expected);
}

/// Two hundred records in no order of their ids, each of another version than its
/// neighbours, and the versions that they were left at.
fn versions() -> impl Iterator<Item = (i64, i64)> {
    (0..200).map(|n| (n * 77 % 200, n * 31 % 17))
}

#[tokio::test]
async fn of_many_persons_one_that_is_stale_or_missing_refuses_all() {
    let store = store().await;
    let id = |n: i64| PersonId(Uuid::from_u128(u128::try_from(n).unwrap() << 100));
    let write = |(n, before): (i64, i64), expected: Option<i64>| PersonWrite {
        id: id(n),
        state: ada("{}"),
        expected,
        version: expected.map_or(before, |_| before + 1),
    };
    let at = |offset: u64, persons: Vec<PersonWrite>| {
        let mut write = stretch(0, offset, offset + 1, &events(offset + 1, offset + 1, "a"));
        write.projects[0].persons = persons;
        write
    };
    let created = versions().map(|row| write(row, None)).collect();
    apply(&store, at(0, created)).await.unwrap();
    let changes = versions().map(|row| write(row, Some(row.1))).collect();
    apply(&store, at(1, changes)).await.unwrap();
    let ids: Vec<PersonId> = versions().map(|(n, _)| id(n)).collect();
    let stored = async || {
        let found = persons::by_ids(&store, PROJECT, &ids).await.unwrap();
        let mut found: Vec<_> = found.iter().map(|row| (row.id, row.version)).collect();
        found.sort_unstable();
        found
    };
    let mut after: Vec<_> = versions().map(|(n, before)| (id(n), before + 1)).collect();
    after.sort_unstable();
    assert_eq!(stored().await, after);

    let again: Vec<_> =
        versions().map(|(n, before)| write((n, before + 1), Some(before + 1))).collect();
    let (mut stale, mut missing) = (again.clone(), again.clone());
    stale[100].expected = stale[100].expected.map(|version| version - 1);
    missing[100].id = id(200);
    for refused in [stale, missing] {
        let error = apply(&store, at(2, refused)).await.unwrap_err();
        assert!(
            matches!(&error, Error::Refused { reason, .. } if reason == "stale person"),
            "{error}"
        );
        assert_eq!(stored().await, after, "nothing was written");
        assert_eq!(position(&store, 0).await.unwrap(), Position::at(2));
    }
    apply(&store, at(2, again)).await.unwrap();
}

#[tokio::test]
async fn of_many_groups_one_that_is_stale_or_missing_refuses_all() {
    let store = store().await;
    let write = |(n, before): (i64, i64), expected: Option<i64>| GroupWrite {
        index: 0,
        key: format!("group {n}"),
        properties: "{}".to_owned(),
        created_at: 5,
        expected,
        version: expected.map_or(before, |_| before + 1),
    };
    let at = |offset: u64, groups: Vec<GroupWrite>| {
        let mut write = stretch(0, offset, offset + 1, &events(offset + 1, offset + 1, "a"));
        write.projects[0].groups = groups;
        write
    };
    let created = versions().map(|row| write(row, None)).collect();
    apply(&store, at(0, created)).await.unwrap();
    let changes = versions().map(|row| write(row, Some(row.1))).collect();
    apply(&store, at(1, changes)).await.unwrap();
    let again: Vec<_> =
        versions().map(|(n, before)| write((n, before + 1), Some(before + 1))).collect();
    let (mut stale, mut missing) = (again.clone(), again.clone());
    stale[100].expected = stale[100].expected.map(|version| version - 1);
    missing[100].key = "nobody".to_owned();
    for refused in [stale, missing] {
        let error = apply(&store, at(2, refused)).await.unwrap_err();
        assert!(
            matches!(&error, Error::Refused { reason, .. } if reason == "stale group"),
            "{error}"
        );
        assert_eq!(position(&store, 0).await.unwrap(), Position::at(2));
        assert_eq!(count(&store, "event_group").await, 200);
    }
    // It finds all of them as they were left: nothing was written.
    apply(&store, at(2, again)).await.unwrap();
}

/// All events of a selection, by a scan.
async fn scanned(store: &Store, selection: Selection) -> Vec<u64> {
    let counted = count_selected(store, selection.clone()).await;
    let mut scan = Scan::begin(store, PROJECT, selection).await.unwrap();
    let mut numbers = Vec::new();
    while let Some(events) = scan.next().await.unwrap() {
        assert!(!events.is_empty());
        numbers.extend(events.iter().map(|event| event.arrival));
    }
    assert_eq!(counted, numbers.len() as u64, "{numbers:?}");
    numbers
}

async fn count_selected(store: &Store, selection: Selection) -> u64 {
    super::count(store, PROJECT, selection).await.unwrap()
}

fn arrived(after: u64, up_to: u64) -> Selection {
    Selection { after, up_to, ..Selection::default() }
}

fn names(names: &[&str]) -> std::collections::HashSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn a_scan_merges_partitions_in_order_of_arrival() {
    let store = store().await;
    // Blocks of four partitions, in turns of 1, 2, 3 ... events.
    let (mut next, mut position) = (1, [0; 4]);
    let mut turn = 0;
    while next <= 3_000 {
        let partition = turn % 4;
        let to = next + (turn as u64 * 7) % 90;
        let at = position[partition];
        let stretch =
            stretch(u16::try_from(partition).unwrap(), at, at + 1, &events(next, to, "a"));
        apply(&store, stretch).await.unwrap();
        position[partition] += 1;
        (next, turn) = (to + 1, turn + 1);
    }
    let last = next - 1;
    assert_eq!(scanned(&store, arrived(0, last)).await, (1..=last).collect::<Vec<_>>());
    for (after, up_to) in [(0, 1), (17, 18), (500, 1_777), (2_990, last), (5, 5), (last, last)] {
        let expected: Vec<u64> = (after + 1..=up_to).collect();
        assert_eq!(scanned(&store, arrived(after, up_to)).await, expected, "{after} {up_to}");
    }
    // Names are `event 0`, `event 1` and `event 2` in turns.
    let some = Selection { include: names(&["event 1", "x"]), ..arrived(10, 2_000) };
    let expected: Vec<u64> = (11..=2_000).filter(|n| n % 3 == 1).collect();
    assert_eq!(scanned(&store, some).await, expected);
    let others = Selection { exclude: names(&["event 1"]), ..arrived(10, 2_000) };
    let expected: Vec<u64> = (11..=2_000).filter(|n| n % 3 != 1).collect();
    assert_eq!(scanned(&store, others).await, expected);
    let none = Selection { include: names(&["x"]), ..arrived(0, last) };
    assert_eq!(scanned(&store, none).await, Vec::<u64>::new());
    // Event number n happened in second n.
    let time = Some(TimeStretch { start: 100_000_000, end: 1_700_000_000 });
    let some = Selection { time, ..arrived(150, 1_500) };
    assert_eq!(scanned(&store, some).await, (151..=1_500).collect::<Vec<_>>());
    let some = Selection { time, ..arrived(0, last) };
    assert_eq!(scanned(&store, some).await, (100..=1_699).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_scan_of_event_time_finds_what_is_not_sorted() {
    let store = store().await;
    let mut all = events(1, 2_000, "a");
    // Spread over a year, without order.
    for event in &mut all {
        event.timestamp = (i64::try_from(event.arrival).unwrap() * 7_919 % 365) * 86_400_000_000;
    }
    for (block, some) in (0..).zip(all.chunks(500)) {
        apply(&store, stretch(0, block, block + 1, some)).await.unwrap();
    }
    let day = 86_400_000_000;
    let time = TimeStretch { start: 100 * day, end: 107 * day };
    let within = |event: &&StoredEvent| event.timestamp >= time.start && event.timestamp < time.end;
    let expected: Vec<u64> = all.iter().filter(within).map(|event| event.arrival).collect();
    assert!(expected.len() > 20);
    let selection = Selection { time: Some(time), ..arrived(0, 2_000) };
    assert_eq!(scanned(&store, selection).await, expected);
}

#[tokio::test]
async fn a_moment_lies_between_arrivals() {
    let store = store().await;
    let mut all = events(1, 400, "a");
    for event in &mut all {
        event.received_at = i64::try_from(event.arrival).unwrap() / 2 * 10;
    }
    // Two partitions, in turns of fifty.
    for (turn, some) in (0_u64..).zip(all.chunks(50)) {
        let (partition, at) = (u16::try_from(turn % 2).unwrap(), turn / 2);
        apply(&store, stretch(partition, at, at + 1, some)).await.unwrap();
    }
    let last = async |micros| {
        super::last_before(&store, PROJECT, Timestamp::from_micros(micros)).await.unwrap()
    };
    assert_eq!(last(0).await, 0);
    for time in [1, 5, 10, 740, 995, 1_999, 2_000] {
        let expected = all.iter().position(|event| event.received_at >= time).unwrap() as u64;
        assert_eq!(last(time).await, expected, "{time}");
    }
    assert_eq!(last(2_001).await, 400);
}

#[tokio::test]
async fn what_is_not_yet_applied_lies_behind_the_moment() {
    let store = store().await;
    let mut all = events(1, 20, "a");
    for event in &mut all {
        event.received_at = if event.arrival <= 10 { 10 } else { 20 };
    }
    // The other partition has 12, 14 and so on, which are applied first.
    let turns: [Vec<_>; 2] =
        [1, 0].map(|rest| all.iter().filter(|event| event.arrival % 2 == rest).cloned().collect());
    apply(&store, stretch(0, 0, 1, &turns[0][..5])).await.unwrap();
    apply(&store, stretch(1, 0, 1, &turns[1])).await.unwrap();
    let last = async |micros| {
        super::last_before(&store, PROJECT, Timestamp::from_micros(micros)).await.unwrap()
    };
    assert_eq!((last(10).await, last(15).await), (0, 10));
    apply(&store, stretch(0, 1, 2, &turns[0][5..])).await.unwrap();
    assert_eq!((last(15).await, last(21).await), (10, 20));
}
