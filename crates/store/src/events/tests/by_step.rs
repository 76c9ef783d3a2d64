//! Counts by event time, from summaries.

use std::time::Duration;

use super::support::{PROJECT, batch, events, store};
use crate::events::{TimeSteps, apply, by_step};

const SECOND: i64 = 1_000_000;
const WITHIN: Duration = Duration::from_secs(60);

fn steps(start: i64, length: i64, count: usize) -> TimeSteps {
    TimeSteps { start: start * SECOND, length: length * SECOND, count }
}

#[tokio::test]
async fn blocks_are_divided_over_the_steps_of_their_events() {
    let store = store().await;
    let found = async |steps| by_step(&store, PROJECT, steps, WITHIN).await.unwrap();
    assert_eq!(found(steps(0, 10, 3)).await, Some(vec![0, 0, 0]));
    // An event in each second from 1 to 40.
    apply(&store, batch(0, 0, 1, &events(1, 40, "a"))).await.unwrap();
    let counts = found(steps(0, 10, 5)).await.unwrap();
    assert_eq!(counts.iter().sum::<u64>(), 40);
    assert!(counts.iter().take(4).all(|count| (9..=11).contains(count)), "{counts:?}");
    // Only what is in the range.
    let counts = found(steps(20, 10, 1)).await.unwrap();
    assert!((9..=11).contains(&counts[0]), "{counts:?}");
    assert_eq!(found(steps(1_000, 10, 2)).await, Some(vec![0, 0]));
    let late = by_step(&store, PROJECT, steps(0, 10, 5), Duration::ZERO).await.unwrap();
    assert_eq!(late, None, "it takes too long");
}

#[tokio::test]
async fn a_block_over_days_is_divided_over_its_seconds() {
    let store = store().await;
    let day = 86_400;
    let mut some = events(1, 3, "a");
    some[1].timestamp = day * SECOND;
    some[2].timestamp = (day + 5) * SECOND;
    apply(&store, batch(0, 0, 1, &some)).await.unwrap();
    let counts = by_step(&store, PROJECT, steps(0, day, 3), WITHIN).await.unwrap();
    assert_eq!(counts, Some(vec![1, 2, 0]));
}
