//! Reading and caching the persons of events.

use std::collections::VecDeque;

use weir_store::events::{Scan, Selection, StoredEvent};
use weir_store::persons::{Facts, PersonState, first_id};

use super::support::{BEGIN, Fixture, PROJECT};
use crate::engine::people::People;

const PERSONS: usize = 40;
const LARGE: usize = 512 << 10;

fn person(n: usize) -> PersonState {
    PersonState::Person(Facts {
        distinct_ids: vec![format!("person {n}")],
        properties: format!(r#"{{"n":"{n:03}","x":"{}"}}"#, "y".repeat(LARGE)),
        created_at: BEGIN * 1_000_000,
        is_identified: true,
    })
}

/// Events that alternate between large persons, and some without a person.
async fn events(fixture: &Fixture) -> VecDeque<StoredEvent> {
    for n in 0..PERSONS {
        fixture.will_write(&format!("person {n}"), 0, person(n));
    }
    fixture.arrive(130).await;
    let selection = Selection { up_to: 130, ..Selection::default() };
    let mut scan = Scan::begin(&fixture.store, PROJECT, selection).await.unwrap();
    let mut events = VecDeque::from(scan.next().await.unwrap().unwrap());
    for (n, event) in events.iter_mut().enumerate() {
        event.distinct_id = format!("person {}", n % (PERSONS + 3));
    }
    events
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_large_persons_are_joined_a_few_at_a_time() {
    let fixture = Fixture::new("every 5 minutes").await;
    let mut events = events(&fixture).await;
    let mut people = People::new(fixture.store.clone(), PROJECT);
    let mut arrivals = Vec::new();
    while !events.is_empty() {
        let records = people.join(&mut events).await.unwrap();
        let persons = records.iter().filter_map(|record| record.person.as_ref());
        assert!((1..=8).contains(&persons.count()), "four megabytes");
        for record in records {
            let event = &record.event;
            let n: usize = event.distinct_id.strip_prefix("person ").unwrap().parse().unwrap();
            let found = record.person.as_ref().map(|person| (person.id, &person.properties[..11]));
            let properties = format!(r#"{{"n":"{n:03}","#);
            let expected = (n < PERSONS)
                .then_some((first_id(PROJECT, &event.distinct_id), properties.as_str()));
            assert_eq!(found, expected);
            arrivals.push(event.arrival);
        }
    }
    assert_eq!(arrivals, (1..=130).collect::<Vec<u64>>());
}
