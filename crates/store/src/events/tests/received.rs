//! Events that had arrived at a given time.

use weir_model::Timestamp;

use super::support::{PROJECT, batch, events, store};
use crate::events::{apply, last_before};

#[tokio::test]
async fn a_moment_lies_between_arrivals() {
    let store = store().await;
    let mut all = events(1, 400, "a");
    for event in &mut all {
        event.received_at = i64::try_from(event.arrival).unwrap() / 2 * 10;
    }
    // Two partitions, alternating every fifty events.
    for (round, some) in (0_u64..).zip(all.chunks(50)) {
        let (partition, at) = (u16::try_from(round % 2).unwrap(), round / 2);
        apply(&store, batch(partition, at, at + 1, some)).await.unwrap();
    }
    let last =
        async |micros| last_before(&store, PROJECT, Timestamp::from_micros(micros)).await.unwrap();
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
    let guards: [Vec<_>; 2] =
        [1, 0].map(|rest| all.iter().filter(|event| event.arrival % 2 == rest).cloned().collect());
    apply(&store, batch(0, 0, 1, &guards[0][..5])).await.unwrap();
    apply(&store, batch(1, 0, 1, &guards[1])).await.unwrap();
    let last =
        async |micros| last_before(&store, PROJECT, Timestamp::from_micros(micros)).await.unwrap();
    assert_eq!((last(10).await, last(15).await), (0, 10));
    apply(&store, batch(0, 1, 2, &guards[0][5..])).await.unwrap();
    assert_eq!((last(15).await, last(21).await), (10, 20));
}
