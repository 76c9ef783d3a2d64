use surrealdb::types::Bytes;
use weir_model::outcomes::{DropReason, Warning};
use weir_model::warnings::{AffectedCursor, AffectedQuery};
use weir_model::{ProjectId, Timestamp};

use super::{
    Affected, AffectedBuilder, AffectedPage, DAY, DAYS, FULL_BYTES, KEPT, forget, key, one, open,
    page, purge,
};
use crate::bind::bind;
use crate::db::Statement;
use crate::events::{Apply, Head, Position, ProjectWrite, apply};
use crate::{Location, Settings, Store};

const PROJECT: ProjectId = ProjectId(7);
const DROPPED: &str = DropReason::MissingDistinctId.code();
const ALTERED: &str = Warning::InvalidTimestamp.code();

fn affected(received_at: i64, code: &str) -> Affected {
    Affected {
        codes: vec![code.to_owned()],
        is_stored: code == ALTERED,
        received_at,
        detail: None,
        event: Some(format!("event {received_at}")),
        distinct_id: None,
        uuid: None,
        payload: "{}".to_owned(),
    }
}

async fn store() -> Store {
    Store::open(&Location::Memory, Settings::default()).await.unwrap()
}

/// Writes blocks of `each` events into a partition, from number `first` on.
async fn write(store: &Store, partition: u16, first: i64, each: usize, events: &[Affected]) {
    let from = crate::events::position(store, partition).await.unwrap();
    let to = Position::at(from.offset + 1);
    let mut write = ProjectWrite::new(PROJECT);
    for (number, some) in (first..).step_by(each).zip(events.chunks(each)) {
        let mut block = AffectedBuilder::begin(number);
        some.iter().for_each(|event| block.push(event).unwrap());
        write.affected.push(block.finish().unwrap());
    }
    write.head = Head::empty();
    apply(store, Apply { partition, from, to, projects: vec![write] }).await.unwrap();
}

async fn walk(store: &Store, first: AffectedQuery) -> Vec<i64> {
    let (mut query, mut seen) = (first, Vec::new());
    loop {
        let AffectedPage { found, more, .. } = page(store, PROJECT, &query).await.unwrap();
        assert!(found.len() <= query.limit);
        seen.extend(found.iter().map(|(_, event)| event.received_at));
        let Some((last, _)) = found.last().filter(|_| more) else { return seen };
        (query.behind, query.offset) = (Some(*last), 0);
    }
}

#[tokio::test]
async fn one_event_is_found_by_its_number() {
    let store = store().await;
    let all: Vec<Affected> = (1..=5).map(|at| affected(at, DROPPED)).collect();
    write(&store, 1, 0, 2, &all).await;
    let at = async |partition, number| {
        let found = one(&store, PROJECT, partition, number).await.unwrap();
        found.map(|event| event.received_at)
    };
    assert_eq!((at(1, 0).await, at(1, 3).await, at(1, 4).await), (Some(1), Some(4), Some(5)));
    assert_eq!((at(1, 5).await, at(0, 0).await, at(1, -1).await), (None, None, None));
}

#[tokio::test]
async fn pages_go_over_blocks_and_partitions_newest_first() {
    let store = store().await;
    let code = |n: i64| if n % 3 == 0 { ALTERED } else { DROPPED };
    // Two partitions at the same times, some of which are equal.
    let one: Vec<_> = (0..100).map(|n| affected(n / 2, code(n))).collect();
    let two: Vec<_> = (0..60).map(|n| affected(n, code(n))).collect();
    write(&store, 0, 0, 7, &one).await;
    write(&store, 4, 0, 9, &two).await;
    let mut all: Vec<i64> = one.iter().chain(&two).map(|event| event.received_at).collect();
    all.sort_unstable_by(|left, right| right.cmp(left));

    let query = |limit| AffectedQuery { limit, ..AffectedQuery::default() };
    for limit in [1, 8, 500] {
        assert_eq!(walk(&store, query(limit)).await, all, "{limit}");
    }
    for offset in [1, 59, 159, 160, 400] {
        let seen = walk(&store, AffectedQuery { offset, ..query(11) }).await;
        assert_eq!(seen, all.get(offset..).unwrap_or_default(), "{offset}");
    }
    let of_code = AffectedQuery { code: Some(ALTERED.to_owned()), ..query(5) };
    assert_eq!(walk(&store, of_code).await.len(), 34 + 20);
    let dropped = AffectedQuery { is_dropped: true, ..query(5) };
    assert_eq!(walk(&store, dropped).await.len(), 66 + 40);
    let at = Timestamp::from_micros;
    let between = AffectedQuery { after: Some(at(10)), before: Some(at(13)), ..query(4) };
    assert_eq!(walk(&store, between).await, [12, 12, 12, 11, 11, 11]);
    let elsewhere = page(&store, ProjectId(8), &query(5)).await.unwrap();
    assert_eq!(elsewhere, AffectedPage::default());
}

#[tokio::test]
async fn the_last_block_is_filled_further() {
    let store = store().await;
    write(&store, 0, 40, 9, &[affected(1, DROPPED), affected(2, DROPPED)]).await;
    let mut block = open(&store, PROJECT, 0, 40).await.unwrap().unwrap();
    assert!(!block.is_full(3));
    assert!(block.is_full(2 + DAY), "what came a day later goes into another block");
    block.push(&affected(3, DROPPED)).unwrap();
    let mut write = ProjectWrite::new(PROJECT);
    write.affected = vec![block.finish().unwrap()];
    let (from, to) = (Position::at(1), Position::at(2));
    apply(&store, Apply { partition: 0, from, to, projects: vec![write] }).await.unwrap();
    let query = AffectedQuery { limit: 9, ..AffectedQuery::default() };
    let AffectedPage { found, .. } = page(&store, PROJECT, &query).await.unwrap();
    let numbers: Vec<_> = found.iter().map(|(AffectedCursor { number, .. }, _)| *number).collect();
    assert_eq!(numbers, [42, 41, 40]);
    assert!(open(&store, PROJECT, 0, 41).await.unwrap().is_none());
    let large = Affected { payload: "x".repeat(FULL_BYTES), ..affected(4, DROPPED) };
    block.push(&large).unwrap();
    assert!(block.is_full(4));
}

#[tokio::test]
async fn a_damaged_block_is_counted_and_hides_no_other() {
    const DAMAGE: Statement = Statement::write("damage a block", "UPDATE $id SET data = $data;");
    let store = store().await;
    let code = |n: i64| if n < 20 { ALTERED } else { DROPPED };
    let events: Vec<_> = (0..50).map(|n| affected(n, code(n))).collect();
    write(&store, 0, 0, 10, &events).await;
    let query = AffectedQuery { limit: 100, ..AffectedQuery::default() };
    let dropped = AffectedQuery { is_dropped: true, ..query.clone() };
    let seen = async |query: &AffectedQuery| {
        let page = page(&store, PROJECT, query).await.unwrap();
        (page.found.len(), page.unreadable)
    };
    for (first, all, of_dropped) in [(0, (40, 10), (30, 0)), (30, (30, 20), (20, 10))] {
        let id = key("affected_block", PROJECT, 0, first);
        let data = Bytes::from(b"no block".to_vec());
        store.db.run(DAMAGE, bind! { id: id, data: data }).await.unwrap();
        assert_eq!(seen(&query).await, all, "{first}");
        // A block that has only altered events is not opened for dropped ones.
        assert_eq!(seen(&dropped).await, of_dropped, "{first}");
    }
    let live = crate::warnings::dropped(&store, PROJECT, 100).await.unwrap();
    assert_eq!(live.len(), 20);
    let small = AffectedQuery { limit: 3, ..query };
    assert_eq!(walk(&store, small).await.len(), 30);
}

#[tokio::test]
async fn the_latest_are_kept_for_a_time() {
    let store = store().await;
    let each = 20_000;
    let events: Vec<_> = (0..KEPT + 30_000).map(|n| affected(n, DROPPED)).collect();
    write(&store, 1, 0, each, &events).await;
    let all = || walk(&store, AffectedQuery { limit: 50_000, ..AffectedQuery::default() });
    forget(&store, PROJECT, Timestamp::from_micros(1)).await.unwrap();
    let kept = all().await.len();
    assert!(kept >= 100_000 && kept < 100_000 + each, "{kept}");
    let days = DAYS * DAY;
    forget(&store, PROJECT, Timestamp::from_micros(days + 60_000)).await.unwrap();
    let oldest = all().await.pop().unwrap();
    assert!(oldest <= 60_000 && oldest > 60_000 - 20_001, "{oldest}");
    purge(&store, PROJECT).await.unwrap();
    assert_eq!(all().await, Vec::<i64>::new());
}
