//! Erasing persons: from open and closed blocks, segments and merged segments, also when the
//! process ends in between.

use std::time::Duration;

use uuid::Uuid;
use weir_model::activity::{AuditAction, Detail, Entry, Subject};
use weir_model::erasures::{Erasure, ErasureState};
use weir_model::events::EventQuery;
use weir_model::{OrganizationId, PersonId, Timestamp, UserId};

use super::super::support::{PROJECT, batch, query, records};
use super::columns::shown;
use super::support::{NOW, Opened, merge_once, now, seal};
use crate::erasures::{
    Begun, FILE, NewErasure, begin, erase_stored, finish, note_log_end, of_person, without_log_end,
};
use crate::events::block::tests::event;
use crate::events::segments::remove_replaced;
use crate::events::{
    Begin, StoredEvent, apply, heads, page, position, removed, see_each, skip, stored_uuids,
};
use crate::persons::{
    Facts, Merged, PersonState, PersonWrite, first_id, resolve, resolve_versioned,
};
use crate::transaction::tests::{overwrite, stored_of};
use crate::warnings::{self, Affected, AffectedBuilder};
use crate::{Error, Store};

/// The distinct ids of the person that is erased.
const ADA: [&str; 2] = ["ada", "a-1"];

pub(super) fn person(version: Option<i64>) -> PersonWrite {
    PersonWrite {
        id: first_id(PROJECT, "ada"),
        state: PersonState::Person(Facts {
            distinct_ids: ADA.map(str::to_owned).into(),
            properties: r#"{"email":"ada@mail.example"}"#.to_owned(),
            created_at: 1,
            is_identified: true,
        }),
        expected: version,
        version: version.map_or(0, |version| version + 1),
    }
}

pub(super) fn pointer() -> PersonWrite {
    let merged = Merged { into: first_id(PROJECT, "ada"), at: 1, by: Uuid::nil() };
    let (id, state) = (first_id(PROJECT, "a-1"), PersonState::Merged(merged));
    PersonWrite { id, state, expected: None, version: 0 }
}

/// Adds a block with an event of each of these distinct ids, after those that there are.
pub(super) async fn add(
    store: &Store,
    ids: &[&str],
    persons: Vec<PersonWrite>,
) -> Vec<StoredEvent> {
    let before = heads(store, PROJECT).await.unwrap().remove(&0);
    let last = before.as_ref().map_or(0, |head| u64::try_from(head.last).unwrap());
    let some: Vec<StoredEvent> = (last + 1..)
        .zip(ids)
        .map(|(arrival, id)| StoredEvent {
            properties: r#"{"$group_0":"acme"}"#.to_owned(),
            ..event(arrival, id)
        })
        .collect();
    let at = position(store, 0).await.unwrap().offset;
    let mut write = batch(0, at, at + 1, &some);
    write.projects[0].persons = persons;
    if let Some(before) = before {
        let head = &mut write.projects[0].head;
        head.count += before.count;
        head.erased = before.erased;
    }
    apply(store, write).await.unwrap();
    some
}

fn entry(person: PersonId) -> Entry {
    Entry {
        id: crate::ids::time_ordered(now()),
        organization_id: OrganizationId(Uuid::nil()),
        team_id: Some(PROJECT),
        user: None,
        personal_api_key: None,
        scim_token: None,
        activity: AuditAction::Deleted,
        scope: Subject::Person,
        item_id: person.to_string(),
        detail: Detail { name: None, changes: Vec::new() },
        created_at: now(),
        request_id: String::new(),
    }
}

pub(super) async fn erase(
    store: &Store,
    distinct_id: &str,
    deletes_events: bool,
) -> Option<Erasure> {
    let new = NewErasure {
        person: first_id(PROJECT, distinct_id),
        deletes_events,
        requested_at: now(),
        requested_by: UserId(Uuid::nil()),
    };
    match begin(store, PROJECT, &new, entry).await.unwrap().0 {
        Begun::Yes(erasure) => Some(*erasure),
        Begun::NoPerson => None,
        other => panic!("{other:?}"),
    }
}

/// Every reader shows these events and no others.
async fn assert_shown(
    store: &Store,
    sent: &[StoredEvent],
    is_shown: impl Fn(&StoredEvent) -> bool,
) {
    let mut expected: Vec<&StoredEvent> = sent.iter().filter(|event| is_shown(event)).collect();
    expected.sort_by_key(|event| std::cmp::Reverse(event.timestamp));
    let found = page(store, PROJECT, &query(1_000)).await.unwrap().0;
    assert_eq!(found.iter().collect::<Vec<_>>(), expected);
    let uuids: Vec<Uuid> = sent.iter().map(|event| event.uuid).collect();
    let mut seen = Vec::new();
    see_each(store, PROJECT, &uuids, |event| seen.push(event.clone())).await.unwrap();
    seen.sort_by_key(|event| std::cmp::Reverse(event.timestamp));
    assert_eq!(seen.iter().collect::<Vec<_>>(), expected);
    let columns = shown(store).await;
    assert_eq!(columns.iter().rev().collect::<Vec<_>>(), expected);
    for event in sent {
        let query = EventQuery { uuid: Some(event.uuid), ..query(1) };
        let found = page(store, PROJECT, &query).await.unwrap().0;
        assert_eq!(found.first(), is_shown(event).then_some(event), "{}", event.arrival);
    }
    // An event that is sent again is a duplicate, also one that was erased.
    let mut stored = stored_uuids(store, PROJECT, &uuids).await.unwrap();
    stored.sort_unstable();
    let mut uuids = uuids;
    uuids.sort_unstable();
    assert_eq!(stored, uuids);
}

fn is_of_others(event: &StoredEvent) -> bool {
    !ADA.contains(&event.distinct_id.as_str())
}

/// As many events are shown as were stored and not removed.
async fn assert_counts(store: &Store, removed_events: u64) {
    assert_eq!(removed(store, PROJECT).await.unwrap(), removed_events);
    let counted: i64 = heads(store, PROJECT).await.unwrap().values().map(|head| head.count).sum();
    let shown = page(store, PROJECT, &query(1_000)).await.unwrap().0.len() as u64;
    assert_eq!(u64::try_from(counted).unwrap() - removed_events, shown);
}

pub(super) async fn state(store: &Store) -> Erasure {
    of_person(store, PROJECT, first_id(PROJECT, "ada")).await.unwrap().unwrap()
}

/// Removes replaced files, and lets the log and the database end the work.
async fn finish_all(store: &Store) {
    remove_replaced(store, Timestamp::from_micros(NOW + 86_400_000_000)).await.unwrap();
    let in_log = without_log_end(store).await.unwrap();
    note_log_end(store, in_log, 100).await.unwrap();
    assert!(finish(store, now(), 99, true).await.unwrap());
    assert_eq!(state(store).await.state(), ErasureState::Clearing, "the log has its events");
    assert!(!finish(store, now(), 100, true).await.unwrap());
    assert_eq!(state(store).await.state(), ErasureState::Done);
}

#[tokio::test]
async fn a_person_goes_away_from_every_layer_and_others_stay() {
    let mut opened = Opened::new().await;
    let store = &opened.store;
    // A segment, a closed block of this person alone, and an open block.
    let mut sent =
        add(store, &["ada", "bob", "a-1", "bob", "ada"], vec![person(None), pointer()]).await;
    sent.extend(add(store, &["ada", "ada"], Vec::new()).await);
    sent.extend(add(store, &["bob", "ada", "bob"], Vec::new()).await);
    assert_eq!(seal(store, 5).await.segments, 1);
    let erasure = erase(store, "a-1", true).await.unwrap();
    assert_eq!(erasure.person, first_id(PROJECT, "ada"));
    assert_eq!((erasure.state(), erasure.segments_left), (ErasureState::Pending, 1));
    assert_shown(store, &sent, is_of_others).await;
    let ids = ADA.map(|id| first_id(PROJECT, id));
    assert!(resolve(store, PROJECT, ids).await.unwrap().is_empty());
    assert_eq!(erase(store, "ada", true).await, None, "there is no person any more");
    assert_eq!(of_person(store, PROJECT, ids[1]).await.unwrap().unwrap().id, erasure.id);

    // The next process continues.
    opened = opened.reopen().await;
    assert_shown(&opened.store, &sent, is_of_others).await;
    erase_stored(&opened.store, now()).await.unwrap();
    for _ in 0..2 {
        let store = &opened.store;
        assert_shown(store, &sent, is_of_others).await;
        assert_counts(store, 6).await;
        assert_eq!(records(store, "event_block").await, 1);
        assert_eq!(records(store, "event_summary").await, 2);
        let done = state(store).await;
        assert_eq!((done.events, done.segments_left), (6, 0));
        assert_eq!(done.state(), ErasureState::Clearing);
        opened = opened.reopen().await;
    }
    let store = &opened.store;
    assert_eq!(opened.segment_files().len(), 1, "the old file went away");
    finish_all(store).await;
    assert_shown(store, &sent, is_of_others).await;
    assert_eq!(records(store, "erasure_ids").await, 0);
    assert_eq!(records(store, "erasure_pending").await, 0);
    // Only the events of another person are counted within the group.
    let members = crate::counts::members(store, PROJECT, 0, "acme").await.unwrap().unwrap();
    assert_eq!(members.members.len(), 1);
    assert_eq!(members.members[0].person, first_id(PROJECT, "bob"));

    // The same distinct id later is a new person with a higher version.
    let later = add(store, &["ada"], vec![PersonWrite { expected: Some(1), ..person(Some(1)) }]);
    sent.extend(later.await);
    let found = resolve_versioned(store, PROJECT, [first_id(PROJECT, "ada")]).await.unwrap();
    assert_eq!(found.values().next().unwrap().version, 2);
    let last = sent.len() as u64;
    assert_shown(store, &sent, |event| is_of_others(event) || event.arrival == last).await;
}

/// An offset of a page counts the events that are shown, also while the others are stored.
#[tokio::test]
async fn erased_events_are_not_passed_over_by_an_offset() {
    let opened = Opened::new().await;
    let store = &opened.store;
    let sent = add(store, &["bob"; 70], vec![person(None), pointer()]).await;
    add(store, &["ada"; 50], Vec::new()).await;
    erase(store, "ada", true).await.unwrap();
    for is_removed in [false, true] {
        for offset in [1, 11, 70] {
            let patience = Duration::from_secs(60);
            let found = skip(store, PROJECT, &query(1), offset, patience).await.unwrap();
            let last = &sent[70 - usize::try_from(offset).unwrap()];
            let expected = Begin::Behind { time: last.timestamp, uuid: last.uuid };
            assert_eq!(found, expected, "{offset} {is_removed}");
        }
        erase_stored(store, now()).await.unwrap();
    }
}

#[tokio::test]
async fn a_batch_that_was_planned_before_the_erasure_is_refused() {
    let opened = Opened::new().await;
    let store = &opened.store;
    let sent = add(store, &["ada", "bob"], vec![person(None), pointer()]).await;
    erase(store, "ada", true).await.unwrap();
    let before = heads(store, PROJECT).await.unwrap().remove(&0).unwrap();
    erase_stored(store, now()).await.unwrap();
    let at = position(store, 0).await.unwrap().offset;
    // The consumer has the open block with both events in memory.
    let added = event(3, "bob");
    let mut stale = batch(0, at, at + 1, &[sent.clone(), vec![added]].concat());
    stale.projects[0].head.erased = before.erased;
    stale.projects[0].uuids.drain(..2);
    let refused = apply(store, stale).await.unwrap_err();
    let Error::Refused { reason, .. } = &refused else { panic!("{refused}") };
    assert_eq!(reason, "stale block");
    assert_shown(store, &sent, is_of_others).await;
}

#[tokio::test]
async fn merged_segments_are_rewritten_and_merged_again() {
    let mut opened = Opened::new().await;
    let mut sent = add(&opened.store, &["ada", "bob"], vec![person(None), pointer()]).await;
    for ids in [["bob", "bob"], ["a-1", "bob"], ["ada", "ada"], ["bob", "ada"]] {
        sent.extend(add(&opened.store, &ids, Vec::new()).await);
    }
    assert_eq!(seal(&opened.store, 2).await.segments, 4);
    merge_once(&opened.store, 2, 1_000).await.unwrap();
    erase(&opened.store, "ada", true).await.unwrap();
    erase_stored(&opened.store, now()).await.unwrap();
    assert_shown(&opened.store, &sent, is_of_others).await;
    assert_counts(&opened.store, 5).await;
    // All blocks are in segments that merge as before.
    while merge_once(&opened.store, 2, 1_000).await.is_some() {}
    opened = opened.reopen().await;
    assert_shown(&opened.store, &sent, is_of_others).await;
    assert_counts(&opened.store, 5).await;
}

#[tokio::test]
async fn a_damaged_block_does_not_keep_segments_from_being_erased() {
    let opened = Opened::new().await;
    let store = &opened.store;
    add(store, &["ada", "bob"], vec![person(None), pointer()]).await;
    add(store, &["bob", "ada"], Vec::new()).await;
    assert_eq!(seal(store, 2).await.segments, 1);
    // The open block.
    let (key, mut value) = stored_of(store, "event_block").await.remove(0);
    value.truncate(value.len() - 20);
    overwrite(store, &key, value).await;
    erase(store, "ada", true).await.unwrap();
    let failed = erase_stored(store, now()).await.unwrap_err();
    assert!(matches!(failed, Error::Shape { .. }), "{failed}");
    let report = state(store).await;
    assert_eq!((report.events, report.segments_left), (1, 0));
    assert_eq!(report.state(), ErasureState::Failed);
}

#[tokio::test]
async fn without_its_events_a_person_alone_goes_away() {
    let opened = Opened::new().await;
    let store = &opened.store;
    let sent = add(store, &["ada", "bob", "a-1"], vec![person(None), pointer()]).await;
    erase(store, "ada", false).await.unwrap();
    erase_stored(store, now()).await.unwrap();
    assert_shown(store, &sent, |_| true).await;
    assert_counts(store, 0).await;
    assert!(resolve(store, PROJECT, [first_id(PROJECT, "a-1")]).await.unwrap().is_empty());
    assert!(without_log_end(store).await.unwrap().is_empty(), "its events stay in the log too");
    assert!(finish(store, now(), 0, true).await.unwrap());
    assert_eq!(state(store).await.state(), ErasureState::Done);
}

#[tokio::test]
async fn an_erasure_is_listed_for_backups_before_it_is_done() {
    let opened = Opened::new().await;
    let store = &opened.store;
    add(store, &["ada"], vec![person(None), pointer()]).await;
    // The list cannot be written.
    let list = opened.directory.path().join(FILE);
    std::fs::create_dir(&list).unwrap();
    erase(store, "ada", false).await.unwrap();
    erase_stored(store, now()).await.unwrap();
    let failed = finish(store, now(), 0, true).await.unwrap_err();
    assert!(matches!(failed, Error::File { .. }), "{failed}");
    assert_eq!(state(store).await.state(), ErasureState::Clearing);
    std::fs::remove_dir(&list).unwrap();
    finish(store, now(), 0, true).await.unwrap();
    assert_eq!(state(store).await.state(), ErasureState::Done);
    assert_eq!(std::fs::read_to_string(&list).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn samples_of_an_erased_person_lose_what_they_say() {
    let opened = Opened::new().await;
    let store = &opened.store;
    add(store, &["ada"], vec![person(None), pointer()]).await;
    let sample = |distinct_id: Option<&str>, payload: &str| Affected {
        codes: vec!["missing_event_name".to_owned()],
        is_stored: false,
        received_at: NOW - 1,
        detail: Some("why".to_owned()),
        event: Some("e".to_owned()),
        distinct_id: distinct_id.map(str::to_owned),
        uuid: None,
        payload: payload.to_owned(),
    };
    let all = [
        sample(Some("a-1"), "{}"),
        sample(None, r#"{"distinct_id":"ada"}"#),
        sample(Some("bob"), r#"{"distinct_id":"bob"}"#),
    ];
    let mut block = AffectedBuilder::begin(0);
    all.iter().for_each(|one| block.push(one).unwrap());
    let at = position(store, 0).await.unwrap().offset;
    let mut write = batch(0, at, at + 1, &[event(2, "bob")]);
    write.projects[0].affected = vec![block.finish().unwrap()];
    apply(store, write).await.unwrap();
    erase(store, "ada", true).await.unwrap();
    erase_stored(store, now()).await.unwrap();
    let kept = async |number| warnings::one(store, PROJECT, 0, number).await.unwrap().unwrap();
    for number in [0, 1] {
        let found = kept(number).await;
        assert_eq!((found.codes.len(), found.received_at), (1, NOW - 1));
        assert_eq!((found.distinct_id, found.event, found.detail), (None, None, None));
        assert_eq!(found.payload, "");
    }
    assert_eq!(kept(2).await, all[2]);
    assert_eq!(state(store).await.samples, 2);
}
