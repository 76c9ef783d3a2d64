//! Events that the log has and the store does not.

use std::time::Duration;

use weir_model::activity::{AuditAction, Detail, Entry, Subject};
use weir_model::events::EventQuery;
use weir_model::{MembershipId, OrganizationId, UserId};
use weir_store::erasures::{Begun, NewErasure};
use weir_store::events::Apply;
use weir_store::organizations::{self, Created, NewOrganization, OrganizationRow};
use weir_store::projects::ProjectRow;
use weir_store::{Location, Settings, persons, warnings};

use super::*;
use crate::batch::tests::batch;
use crate::tests::{seal_and_damage, start, store};

const PROJECT: ProjectId = ProjectId(1);
const NOW: weir_model::Timestamp = weir_model::Timestamp::EPOCH;

async fn make_project(store: &Store) {
    let id = OrganizationId(Uuid::from_u128(1));
    let new = NewOrganization {
        row: OrganizationRow {
            name: "Acme".to_owned(),
            slug: "acme".to_owned(),
            ..OrganizationRow::new(id, NOW)
        },
        owner: UserId(Uuid::nil()),
        membership: MembershipId(Uuid::from_u128(1)),
        project: ProjectRow::new(PROJECT, id, "Shop".to_owned(), "phc_1".to_owned(), NOW),
    };
    assert!(matches!(organizations::create(store, &new, &[]).await.unwrap(), Created::Yes));
}

/// A request that sets the number of the last event on a person.
fn batch_of(number: u64) -> Batch {
    let mut batch = batch("ada", 2);
    batch.accepted[0].properties = format!(r#"{{"$set":{{"last":{number}}}}}"#);
    batch
}

async fn ingest(directory: &Path, store: &Store, batches: &[Batch]) {
    let ingest = start(directory, store).await;
    for batch in batches {
        ingest.appender().append(PROJECT, batch.clone().into_encoded()).await.unwrap();
    }
    ingest.applied().await;
    ingest.close(Duration::from_secs(10)).await;
}

/// Appends a request that every partition passes without applying it.
async fn pass_over(directory: &Path, store: &Store, batch: Batch) {
    let positions = events::positions(store).await.unwrap();
    let arrivals = events::next_arrivals(store).await.unwrap();
    let applied = Applied::of(&positions);
    let settings = LogSettings::default();
    let log = LocalLog::open(directory, settings, arrivals, applied, store.disk()).unwrap();
    log.append(PROJECT, batch.into_encoded()).await.unwrap();
    let to = Position::at(log.end().borrow().0);
    log.close();
    for (partition, from) in (0..).zip(positions) {
        let passed = Apply { partition, from, to, projects: Vec::new() };
        events::apply(store, passed).await.unwrap();
    }
}

async fn again(directory: &Path, store: &Store, from: Offset) -> Replayed {
    replay(directory, LogSettings::default(), store, from).await.unwrap()
}

async fn stored(store: &Store) -> Vec<(Uuid, u64)> {
    let query = EventQuery { limit: 1_000, ..EventQuery::default() };
    let events = events::page(store, PROJECT, &query).await.unwrap().0;
    let mut found: Vec<_> = events.iter().map(|event| (event.uuid, event.arrival)).collect();
    found.sort_by_key(|(_, arrival)| *arrival);
    found
}

async fn last_of_ada(store: &Store) -> (serde_json::Value, Vec<String>) {
    let id = persons::first_id(PROJECT, "ada");
    let ada = persons::resolve(store, PROJECT, [id]).await.unwrap().remove(&id).unwrap();
    let properties: serde_json::Value = serde_json::from_str(&ada.properties).unwrap();
    (properties["last"].clone(), ada.distinct_ids.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_stays_as_it_is() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    make_project(&store).await;
    ingest(place.path(), &store, &[batch_of(1), batch_of(2), batch_of(3)]).await;
    let before = stored(&store).await;
    let found = again(place.path(), &store, Offset(0)).await;
    assert_eq!(found, Replayed { stored: 6, ..Replayed::default() });
    ingest(place.path(), &store, &[]).await;
    assert_eq!(stored(&store).await, before);
    assert_eq!(last_of_ada(&store).await, (3.into(), vec!["ada".to_owned()]));
    assert!(warnings::counts(&store, PROJECT).await.unwrap().is_empty(), "nothing is counted");
}

/// No service repairs it in the background.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_list_of_uuids_is_repaired_before_it_is_asked() {
    let place = tempfile::tempdir().unwrap();
    let (data, log) = (place.path().join("data"), place.path().join("log"));
    let location = Location::Directory(data.clone());
    let store = Store::open(&location, Settings::default()).await.unwrap();
    make_project(&store).await;
    ingest(&log, &store, &[batch("ada", 500)]).await;
    seal_and_damage(&data, &store).await;
    let found = again(&log, &store, Offset(0)).await;
    assert_eq!(found, Replayed { stored: 500, ..Replayed::default() });
    assert!(store.segment_damage() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_passed_over_is_applied_once_and_comes_last() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    make_project(&store).await;
    let lost = batch_of(2);
    ingest(place.path(), &store, &[batch_of(1)]).await;
    pass_over(place.path(), &store, lost.clone()).await;
    // A client sent the event twice. Both copies were passed.
    pass_over(place.path(), &store, lost.clone()).await;
    ingest(place.path(), &store, &[batch_of(3)]).await;
    let before = stored(&store).await;
    assert_eq!(before.len(), 4);

    let found = again(place.path(), &store, Offset(0)).await;
    assert_eq!(found, Replayed { stored: 6, appended: 2, ..Replayed::default() });
    ingest(place.path(), &store, &[]).await;
    let after = stored(&store).await;
    assert_eq!(after[..4], before, "order of arrival never changes");
    let uuids: Vec<_> = after[4..].iter().map(|(uuid, _)| *uuid).collect();
    assert_eq!(uuids, lost.accepted.iter().map(|event| event.uuid).collect::<Vec<_>>());
    assert_eq!(last_of_ada(&store).await.0, 2, "late as it is, it is the last that was sent");
    assert!(warnings::counts(&store, PROJECT).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_an_erased_person_do_not_come_back() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    make_project(&store).await;
    ingest(place.path(), &store, &[batch_of(1)]).await;
    pass_over(place.path(), &store, batch_of(2)).await;
    pass_over(place.path(), &store, batch("bob", 2)).await;
    let new = NewErasure {
        person: persons::first_id(PROJECT, "ada"),
        deletes_events: true,
        requested_at: weir_model::Timestamp::from_micros(1_790_000_000_000_000),
        requested_by: UserId(Uuid::nil()),
    };
    let entry = |person: weir_model::PersonId| Entry {
        id: Uuid::from_u128(9),
        organization_id: OrganizationId(Uuid::from_u128(1)),
        team_id: Some(PROJECT),
        user: None,
        personal_api_key: None,
        scim_token: None,
        activity: AuditAction::Deleted,
        scope: Subject::Person,
        item_id: person.to_string(),
        detail: Detail { name: None, changes: Vec::new() },
        created_at: NOW,
        request_id: String::new(),
    };
    let (begun, _) = erasures::begin(&store, PROJECT, &new, entry).await.unwrap();
    assert!(matches!(begun, Begun::Yes(_)), "{begun:?}");
    let found = again(place.path(), &store, Offset(0)).await;
    assert_eq!(found, Replayed { erased: 4, appended: 2, ..Replayed::default() });
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_log_no_longer_has_comes_back_from_the_copy() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    make_project(&store).await;
    ingest(place.path(), &store, &[batch_of(1)]).await;
    let lost = batch_of(2);
    let damaged = batch_of(3);
    let mut offsets = Vec::new();
    for batch in [&lost, &damaged] {
        offsets.push(events::positions(&store).await.unwrap()[0].offset);
        pass_over(place.path(), &store, batch.clone()).await;
    }
    // A program that cannot read the records copies them to `quarantine`.
    let positions = events::positions(&store).await.unwrap();
    let arrivals = events::next_arrivals(&store).await.unwrap();
    let (applied, settings) = (Applied::of(&positions), LogSettings::default());
    let log = LocalLog::open(place.path(), settings, arrivals, applied, store.disk()).unwrap();
    for offset in &offsets {
        log.quarantine(&log.read(Offset(*offset), 1).unwrap()[0]).unwrap();
    }
    drop(log);
    let copy = place.path().join("quarantine").join(format!("{:020}.bytes", offsets[1]));
    let mut bytes = std::fs::read(&copy).unwrap();
    bytes[100] ^= 0xFF;
    std::fs::write(&copy, &bytes).unwrap();

    // The log still has both records, so the copies are not read.
    let whole = again(place.path(), &store, Offset(0)).await;
    assert_eq!(whole, Replayed { stored: 2, appended: 4, ..Replayed::default() });

    for entry in std::fs::read_dir(place.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "log") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let found = again(place.path(), &store, Offset(0)).await;
    assert_eq!(found, Replayed { appended: 2, damaged: 2, ..Replayed::default() });
    ingest(place.path(), &store, &[]).await;
    let uuids: Vec<_> = stored(&store).await.into_iter().map(|(uuid, _)| uuid).skip(2).collect();
    assert_eq!(uuids, lost.accepted.iter().map(|event| event.uuid).collect::<Vec<_>>());
    assert_eq!(last_of_ada(&store).await.0, 2);

    let found = again(place.path(), &store, Offset(0)).await;
    assert_eq!(found.appended, 0, "it is stored now");
    let found = again(place.path(), &store, Offset(offsets[1])).await;
    assert_eq!((found.stored, found.damaged), (2, 2), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_what_is_before_and_what_has_no_project_is_left() {
    let (place, store) = (tempfile::tempdir().unwrap(), store().await);
    make_project(&store).await;
    pass_over(place.path(), &store, batch_of(1)).await;
    let from = events::positions(&store).await.unwrap()[0].offset;
    let gone = ProjectId(77);
    let arrivals = events::next_arrivals(&store).await.unwrap();
    let applied = Applied { lowest: Offset(from), highest: Offset(from) };
    let settings = LogSettings::default();
    let log = LocalLog::open(place.path(), settings, arrivals, applied, store.disk()).unwrap();
    log.append(PROJECT, batch_of(2).into_encoded()).await.unwrap();
    log.append(gone, batch_of(3).into_encoded()).await.unwrap();
    log.close();
    drop(log);
    let found = again(place.path(), &store, Offset(from)).await;
    assert_eq!(found, Replayed { waiting: 2, orphaned: 2, ..Replayed::default() });
}
