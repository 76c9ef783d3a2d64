//! Pages from blocks in memory are those from the storage.

use weir_model::events::EventQuery;

use super::support::{PROJECT, batch, event, events, query};
use crate::Store;
use crate::events::{
    Added, Apply, NewBlock, StoredEvent, apply, arrivals, head, live_partition, open_block, page,
    purge, share,
};
use crate::tests::{all_stores, stores};

/// A batch that adds an event to the newest block, and the event as a consumer shares it.
pub(super) async fn added(store: &Store, from: u64, new: &StoredEvent) -> (Apply, Added) {
    let head = head(store, PROJECT, 0).await.unwrap().unwrap();
    let mut block = open_block(store, PROJECT, 0, &head).await.unwrap().unwrap();
    let begin = block.bytes();
    let index = block.push(new).unwrap();
    let added = Added::of(&block, index, begin, new.arrival);
    let (data, summary) = block.finish().unwrap();
    let mut next = batch(0, from, from + 1, std::slice::from_ref(new));
    let write = &mut next.projects[0];
    let first = u64::try_from(head.newest).unwrap();
    write.uuids = vec![(new.uuid, first, index)];
    write.head.newest = head.newest;
    write.blocks = vec![NewBlock { first, data, summary, added_times: vec![new.timestamp] }];
    (next, added)
}

async fn pages(store: &Store) -> [Vec<u64>; 2] {
    let (by_time, more) = page(store, PROJECT, &query(5)).await.unwrap();
    let by_arrival = arrivals(store, PROJECT, None, 5).await.unwrap();
    assert_eq!(more, by_arrival.more);
    [by_time, by_arrival.events].map(|events| events.iter().map(|e| e.arrival).collect())
}

#[tokio::test]
async fn readers_see_every_committed_event_and_no_other() {
    let (stores, _directory) = all_stores().await;
    for store in stores {
        let same = |numbers: &[u64]| [numbers.to_vec(), numbers.to_vec()];
        apply(&store, batch(0, 0, 1, &events(1, 3, "a"))).await.unwrap();
        assert_eq!(pages(&store).await, same(&[3, 2, 1]));
        // In memory as far as 3.
        let (fourth, _) = added(&store, 1, &event(4, "a")).await;
        assert_eq!(pages(&store).await, same(&[3, 2, 1]));
        apply(&store, fourth).await.unwrap();
        assert_eq!(pages(&store).await, same(&[4, 3, 2, 1]));

        // The same with a consumer that shares.
        let (fifth, of_fifth) = added(&store, 2, &event(5, "a")).await;
        apply(&store, fifth).await.unwrap();
        share(&store, PROJECT, 0, vec![of_fifth]);
        assert_eq!(pages(&store).await, same(&[5, 4, 3, 2, 1]));

        // A refused batch is not shared, and its events are elsewhere afterwards.
        let (mut refused, _) = added(&store, 9, &event(6, "a")).await;
        assert!(apply(&store, refused.clone()).await.is_err());
        assert_eq!(pages(&store).await, same(&[5, 4, 3, 2, 1]));
        (refused, _) = added(&store, 3, &event(7, "a")).await;
        apply(&store, refused).await.unwrap();
        assert_eq!(pages(&store).await, same(&[7, 5, 4, 3, 2]));

        // A further block closes the first one.
        apply(&store, batch(0, 4, 5, &events(8, 9, "a"))).await.unwrap();
        for _ in 0..2 {
            assert_eq!(pages(&store).await, same(&[9, 8, 7, 5, 4]));
        }
        purge(&store, PROJECT).await.unwrap();
        assert_eq!(pages(&store).await, same(&[]));
    }
}

#[tokio::test]
async fn pages_with_a_filter_do_not_use_summaries_that_lack_what_it_needs() {
    let mut ids = (0..).map(|n| format!("user-{n}"));
    let mut id = || ids.find(|id| live_partition(PROJECT, id) == 0).unwrap();
    let (even, odd, unused) = (id(), id(), id());
    let (stores, _directory) = stores().await;
    for store in stores {
        for block in 0..20 {
            let of = if block % 2 == 0 { &even } else { &odd };
            let events = events(block * 3 + 1, block * 3 + 3, of);
            apply(&store, batch(0, block, block + 1, &events)).await.unwrap();
        }
        let arrivals = async |query: EventQuery| {
            let (found, _) = page(&store, PROJECT, &query).await.unwrap();
            found.iter().map(|event| event.arrival).collect::<Vec<u64>>()
        };
        let all: Vec<u64> = (1..=60).rev().collect();
        let about = |arrival: &u64| ((arrival - 1) / 3).is_multiple_of(2);
        let half: Vec<u64> = all.iter().copied().filter(about).collect();
        // The first read keeps summaries and blocks.
        for _ in 0..2 {
            assert_eq!(arrivals(query(100)).await, all);
            let id = EventQuery { distinct_id: Some(even.clone()), ..query(100) };
            assert_eq!(arrivals(id).await, half);
            let id = EventQuery { distinct_id: Some(unused.clone()), ..query(100) };
            assert!(arrivals(id).await.is_empty());
            let name = EventQuery { event: Some("event 0".to_owned()), ..query(100) };
            let third: Vec<u64> = all.iter().copied().filter(|n| n % 3 == 0).collect();
            assert_eq!(arrivals(name).await, third);
        }
    }
}
