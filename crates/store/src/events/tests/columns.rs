//! Snapshots of events that are not sealed.

use std::ops::ControlFlow;

use super::shared::added;
use super::support::{PROJECT, batch, event, events};
use crate::Store;
use crate::events::{
    EventSnapshot, Needed, OpenPart, Part, TimeRange, apply, open_part, purge, snapshot,
};
use crate::tests::all_stores;

async fn all(store: &Store) -> EventSnapshot {
    snapshot(store, PROJECT, TimeRange::ALL).await.unwrap()
}

/// The arrival numbers of the events of a snapshot. `None`: a block is gone.
async fn arrivals(store: &Store, snapshot: &EventSnapshot) -> Option<Vec<u64>> {
    let mut found = Vec::new();
    for part in snapshot.parts() {
        let mut by_need = Vec::new();
        for needed in [Needed::Columns, Needed::Events] {
            let OpenPart::Block(block) = open_part(store, snapshot, part, needed).await.unwrap()?
            else {
                panic!("nothing is sealed");
            };
            if needed == Needed::Events {
                let mut arrivals = Vec::new();
                block
                    .each_event(|_, event| {
                        arrivals.push(event.arrival);
                        ControlFlow::Continue(())
                    })
                    .unwrap();
                assert_eq!(arrivals, block.columns().arrivals());
            }
            by_need.push(block.columns().arrivals().to_vec());
        }
        assert_eq!(by_need[0], by_need[1]);
        found.append(&mut by_need[0]);
    }
    found.sort_unstable();
    Some(found)
}

#[tokio::test]
async fn an_open_block_has_the_events_of_its_snapshot_alone() {
    let (stores, _directory) = all_stores().await;
    for store in stores {
        apply(&store, batch(0, 0, 1, &events(1, 3, "a"))).await.unwrap();
        let first = all(&store).await;
        assert_eq!(first.parts().iter().map(Part::events).collect::<Vec<_>>(), [3]);
        let (fourth, _) = added(&store, 1, &event(4, "a")).await;
        apply(&store, fourth).await.unwrap();
        let second = all(&store).await;
        assert_ne!(first.version(), second.version());
        // The block is closed now.
        apply(&store, batch(0, 2, 3, &events(5, 6, "a"))).await.unwrap();
        let third = all(&store).await;
        for _ in 0..2 {
            for (snapshot, last) in [(&first, 3), (&second, 4), (&third, 6)] {
                let expected: Vec<u64> = (1..=last).collect();
                assert_eq!(arrivals(&store, snapshot).await, Some(expected));
            }
        }
        purge(&store, PROJECT).await.unwrap();
        assert_eq!(arrivals(&store, &third).await, None);
        assert!(all(&store).await.parts().is_empty());
    }
}
