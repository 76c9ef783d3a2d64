//! Records that a batch combines with the stored ones.

use weir_model::Timestamp;
use weir_model::definitions::{EventDefinition, PropertyDefinition, PropertyKind, PropertyOwner};

use super::support::{PROJECT, batch, events, records};
use crate::events::{Apply, Position, Sample, Span, WarningCount, apply, position};
use crate::groups::{self, TypesWrite};
use crate::tests::stores;
use crate::{Error, Store, definitions, warnings};

/// The batch with this number, with one event.
fn numbered(number: u64) -> Apply {
    batch(0, number, number + 1, &events(number + 1, number + 1, "a"))
}

fn seen_event(name: &str, at: i64) -> EventDefinition {
    let at = Timestamp::from_micros(at);
    EventDefinition { name: name.to_owned(), first_at: at, last_at: at }
}

fn seen_property(kind: PropertyKind, at: i64) -> PropertyDefinition {
    let (owner, first_at) = (PropertyOwner::Event, Timestamp::from_micros(at));
    PropertyDefinition { owner, name: "p".to_owned(), kind, first_at }
}

#[tokio::test]
async fn names_keep_when_they_were_first_seen() {
    let (stores, _directory) = stores().await;
    for store in stores {
        for (number, kind) in [(0, PropertyKind::Text), (1, PropertyKind::Number)] {
            let at = i64::try_from(number).unwrap() + 5;
            let mut batch = numbered(number);
            batch.projects[0].event_names = vec![seen_event("e", at)];
            batch.projects[0].property_names = vec![seen_property(kind, at)];
            apply(&store, batch).await.unwrap();
        }
        let last_at = Timestamp::from_micros(6);
        let expected = vec![EventDefinition { last_at, ..seen_event("e", 5) }];
        assert_eq!(definitions::events(&store, PROJECT).await.unwrap(), expected);
        let expected = vec![seen_property(PropertyKind::Text, 5)];
        assert_eq!(definitions::properties(&store, PROJECT).await.unwrap(), expected);
    }
}

/// More than are read at a time, and some of them in both batches.
#[tokio::test]
async fn many_names_of_a_batch_are_stored() {
    let (stores, _directory) = stores().await;
    for store in stores {
        for (number, names) in [(0, 0..1_100), (1, 1_000..1_200)] {
            let mut batch = numbered(number);
            let names = names.map(|name| seen_event(&format!("event {name:04}"), 5));
            batch.projects[0].event_names = names.collect();
            apply(&store, batch).await.unwrap();
        }
        assert_eq!(definitions::events(&store, PROJECT).await.unwrap().len(), 1_200);
    }
}

#[tokio::test]
async fn counts_are_added_and_the_newest_samples_are_kept() {
    let (stores, _directory) = stores().await;
    for store in stores {
        for number in 0..7 {
            let at = i64::try_from(number).unwrap();
            let sample = Sample {
                code: "too_deep".to_owned(),
                received_at: at,
                detail: None,
                event: Some("e".to_owned()),
                distinct_id: None,
                payload: "{}".to_owned(),
            };
            let mut batch = numbered(number);
            batch.projects[0].warnings = vec![WarningCount {
                code: "too_deep".to_owned(),
                count: 2,
                seen: Span { from: at, to: at + 1 },
                // One batch has none.
                sample: (number != 3).then_some(sample),
            }];
            apply(&store, batch).await.unwrap();
        }
        let found = warnings::counts(&store, PROJECT).await.unwrap().remove(0);
        assert_eq!((found.count, found.first_at.micros(), found.last_at.micros()), (14, 0, 7));
        let samples: Vec<i64> =
            found.samples.iter().map(|sample| sample.received_at.micros()).collect();
        assert_eq!(samples, [6, 5, 4, 2, 1]);
    }
}

async fn with_types(
    store: &Store,
    number: u64,
    names: &[&str],
    expected: usize,
) -> Result<(), Error> {
    let mut batch = numbered(number);
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    batch.projects[0].group_types = Some(TypesWrite { names, expected });
    batch.projects[0].event_names = vec![seen_event(&format!("event {number}"), 5)];
    apply(store, batch).await
}

#[tokio::test]
async fn a_batch_from_other_group_types_is_refused_as_a_whole() {
    let (stores, _directory) = stores().await;
    for store in stores {
        with_types(&store, 0, &["company"], 0).await.unwrap();
        for expected in [0, 2] {
            let error = with_types(&store, 1, &["company", "team"], expected).await.unwrap_err();
            assert!(
                matches!(&error, Error::Refused { reason, .. } if reason == "stale group types"),
                "{error}"
            );
        }
        assert_eq!(position(&store, 0).await.unwrap(), Position::at(1));
        assert_eq!(records(&store, "event_uuid").await, 1);
        assert_eq!(definitions::events(&store, PROJECT).await.unwrap().len(), 1);
        with_types(&store, 1, &["company", "team"], 1).await.unwrap();
        assert_eq!(groups::types(&store, PROJECT).await.unwrap(), ["company", "team"]);
    }
}

/// Both write the name, so one of them is repeated.
#[tokio::test]
async fn concurrent_batches_of_two_partitions_store_one_name() {
    let (stores, _directory) = stores().await;
    for store in stores {
        let of = |partition: u16, from: u64| {
            let first = from + 1;
            let mut batch = batch(partition, 0, 10, &events(first, first + 99, "a"));
            batch.projects[0].event_names = vec![seen_event("e", i64::from(partition))];
            batch
        };
        let (one, other) = tokio::join!(apply(&store, of(0, 0)), apply(&store, of(1, 500)));
        one.and(other).unwrap();
        let found = definitions::events(&store, PROJECT).await.unwrap().remove(0);
        assert!(found.last_at.micros() <= 1);
        for partition in [0, 1] {
            assert_eq!(position(&store, partition).await.unwrap(), Position::at(10));
        }
    }
}
