//! A batch is written once and as a whole.

use uuid::Uuid;
use weir_model::PersonId;

use super::support::{PROJECT, ada, batch, event, events, query, records, store};
use crate::events::{
    NewBlock, Position, Span, WarningCount, apply, head, next_arrivals, open_block, page, position,
    stored_uuids,
};
use crate::persons::PersonWrite;
use crate::tests::all_stores;
use crate::warnings::{Affected, AffectedBuilder};
use crate::{ByteBudget, Error, Store, persons, warnings};

#[tokio::test]
async fn a_batch_is_applied_once() {
    let store = store().await;
    let first = events(1, 3, "a");
    apply(&store, batch(0, 0, 10, &first)).await.unwrap();
    assert_eq!(position(&store, 0).await.unwrap(), Position::at(10));

    let again = apply(&store, batch(0, 0, 10, &first)).await.unwrap_err();
    assert!(matches!(&again, Error::Refused { reason, .. } if reason == "position"), "{again}");
    // The same events at another position are refused as a whole.
    let twice = apply(&store, batch(0, 10, 20, &first)).await.unwrap_err();
    assert!(matches!(twice, Error::Exists { .. }), "{twice}");
    assert_eq!(position(&store, 0).await.unwrap(), Position::at(10));

    let uuids: Vec<Uuid> = events(1, 5, "a").iter().map(|e| e.uuid).collect();
    assert_eq!(stored_uuids(&store, PROJECT, &uuids).await.unwrap().len(), 3);
    assert_eq!(next_arrivals(&store).await.unwrap().get(&7), Some(&4));
}

/// Both begin at the same position, so the events of one must not count.
#[tokio::test]
async fn of_two_concurrent_batches_from_one_position_one_is_applied() {
    let (stores, _directory) = all_stores().await;
    for store in stores {
        let one = apply(&store, batch(0, 0, 10, &events(1, 300, "a")));
        let other = apply(&store, batch(0, 0, 20, &events(301, 600, "b")));
        let (one, other) = tokio::join!(one, other);
        assert_ne!(one.is_ok(), other.is_ok());
        let applied = if one.is_ok() { 10 } else { 20 };
        let refused = one.and(other).unwrap_err();
        assert!(
            matches!(&refused, Error::Refused { reason, .. } if reason == "position"),
            "{refused}"
        );
        assert_eq!(position(&store, 0).await.unwrap(), Position::at(applied));
        assert_eq!(records(&store, "event_uuid").await, 300);
    }
}

#[tokio::test]
async fn an_open_block_is_filled_further() {
    let store = store().await;
    apply(&store, batch(0, 0, 1, &events(1, 2, "a"))).await.unwrap();
    let head = head(&store, PROJECT, 0).await.unwrap().unwrap();
    let mut block = open_block(&store, PROJECT, 0, &head).await.unwrap().unwrap();
    let third = event(3, "a");
    assert_eq!(block.push(&third).unwrap(), 2);
    let (data, summary) = block.finish().unwrap();
    let mut next = batch(0, 1, 2, std::slice::from_ref(&third));
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
    let (stores, _directory) = all_stores().await;
    for store in stores {
        persons_and_warnings_are_written_with_the_events_in(store).await;
    }
}

async fn persons_and_warnings_are_written_with_the_events_in(store: Store) {
    let id = persons::first_id(PROJECT, "a");
    let person = |expected, version, properties: &str| PersonWrite {
        id,
        state: ada(properties),
        expected,
        version,
    };
    let mut first = batch(0, 0, 1, &events(1, 1, "a"));
    first.projects[0].persons = vec![person(None, 0, "{}")];
    first.projects[0].head.samples = 2;
    let seen = Span { from: 3, to: 4 };
    first.projects[0].warnings =
        vec![WarningCount { code: "missing_event_name".to_owned(), count: 2, seen, sample: None }];
    let mut dropped = AffectedBuilder::begin(0);
    for received_at in 0..2 {
        let event = Affected {
            codes: vec!["missing_event_name".to_owned()],
            is_stored: false,
            received_at,
            detail: Some("dropped by a (config 1)".to_owned()),
            event: None,
            distinct_id: Some("a".to_owned()),
            uuid: None,
            payload: "{}".to_owned(),
        };
        dropped.push(&event).unwrap();
    }
    first.projects[0].affected = vec![dropped.finish().unwrap()];
    apply(&store, first).await.unwrap();

    let mut second = batch(0, 1, 2, &events(2, 2, "a"));
    second.projects[0].persons = vec![person(Some(0), 1, r#"{"a":1}"#)];
    apply(&store, second).await.unwrap();
    let mut stale = batch(0, 2, 3, &events(3, 3, "a"));
    stale.projects[0].persons = vec![person(Some(0), 1, "{}")];
    let error = apply(&store, stale).await.unwrap_err();
    assert!(matches!(&error, Error::Refused { reason, .. } if reason == "stale person"), "{error}");

    let ids = [id, PersonId(Uuid::nil())];
    let found = persons::by_ids(&store, PROJECT, &ids, &mut ByteBudget::of(9_999)).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].version, &found[0].state), (1, &ada(r#"{"a":1}"#)));
    let counts = warnings::counts(&store, PROJECT).await.unwrap();
    assert_eq!((counts[0].count, counts[0].first_at.micros()), (2, 3));
    let samples = warnings::dropped(&store, PROJECT, 9).await.unwrap();
    assert_eq!(
        samples.iter().map(|s| s.key.as_str()).collect::<Vec<_>>(),
        ["drop-0-1", "drop-0-0"]
    );
}
