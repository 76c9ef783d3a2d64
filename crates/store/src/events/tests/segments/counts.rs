//! Event counts are those of the stored events, on every layer and after every step.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use uuid::Uuid;
use weir_model::persons::{PersonOrder, PersonRef};
use weir_model::{PersonId, ProjectId, Timestamp};

use super::super::support::{PROJECT, batch, event, records};
use super::removing::add_at;
use super::support::{Opened, drop_old, merge_once, now, seal};
use crate::bind::bind;
use crate::counts::{self, Counting, PersonCounts, Progress};
use crate::db::Statement;
use crate::events::{
    Head, LIVE_PARTITIONS, Selection, StoredEvent, apply, count, head, historical_partition,
    live_partition, position, purge,
};
use crate::persons::{Merged, PersonState, PersonWrite, first_id};
use crate::transaction::Transaction;
use crate::transaction::tests::stored_of;
use crate::{Error, Store};

const DAY: i64 = 86_400_000_000;
const IDS: usize = 12;
const KEYS: [&str; 3] = ["acme", "umbrella", "7"];

/// Random numbers that are the same in every run.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

pub(super) fn name(id: usize) -> String {
    format!("user-{id}")
}

fn person(ids: &[usize]) -> PersonRef {
    PersonRef {
        id: first_id(PROJECT, &name(ids[0])),
        distinct_ids: ids.iter().map(|id| name(*id)).collect(),
        properties: "{}".to_owned(),
        created_at: Timestamp::EPOCH,
        is_identified: false,
    }
}

/// What is stored: events, and which id was merged into which.
#[derive(Default)]
struct Model {
    events: Vec<(usize, Option<usize>, bool, i64)>,
    into: BTreeMap<usize, usize>,
}

/// Number of events, first and last time.
type Sum = (u64, i64, i64);

impl Model {
    fn root(&self, mut id: usize) -> usize {
        while let Some(into) = self.into.get(&id) {
            id = *into;
        }
        id
    }

    /// The sums of all persons, of all events or of those of a group.
    fn persons(&self, group: Option<usize>) -> BTreeMap<usize, Sum> {
        let mut sums: BTreeMap<usize, Sum> = BTreeMap::new();
        for (id, key, _, time) in &self.events {
            if group.is_none() || group == *key {
                let sum = sums.entry(self.root(*id)).or_insert((0, i64::MAX, i64::MIN));
                *sum = (sum.0 + 1, sum.1.min(*time), sum.2.max(*time));
            }
        }
        sums.retain(|root, _| self.is_person(*root));
        sums
    }

    fn is_person(&self, root: usize) -> bool {
        self.into.values().any(|into| *into == root)
            || self.events.iter().any(|(id, _, profile, _)| *profile && self.root(*id) == root)
    }

    async fn compare(&self, store: &Store) {
        let roots: Vec<usize> = (0..IDS).filter(|id| !self.into.contains_key(id)).collect();
        let persons: Vec<PersonRef> = roots
            .iter()
            .map(|root| {
                let others = (0..IDS).filter(|id| id != root && self.root(*id) == *root);
                person(&[*root].into_iter().chain(others).collect::<Vec<_>>())
            })
            .collect();
        let found = counts::of_persons(store, PROJECT, &persons).await.unwrap().unwrap();
        for (root, found) in roots.iter().zip(found) {
            let all = self.events.iter().filter(|(id, ..)| self.root(*id) == *root);
            let times: Vec<i64> = all.map(|(.., time)| *time).collect();
            let expected = PersonCounts {
                events: times.len() as u64,
                first: times.iter().min().copied(),
                last: times.iter().max().copied(),
                is_complete: true,
            };
            assert_eq!(found, expected, "{root}");
        }
        for (group, key) in KEYS.into_iter().enumerate() {
            let found = counts::members(store, PROJECT, 0, key).await.unwrap().unwrap();
            assert!(found.is_complete);
            let mut expected: Vec<(PersonId, Sum)> = self
                .persons(Some(group))
                .into_iter()
                .map(|(root, sum)| (first_id(PROJECT, &name(root)), sum))
                .collect();
            expected.sort_by_key(|(id, sum)| (std::cmp::Reverse(sum.0), id.0));
            let found = found.members.iter().map(|member| {
                let counts = member.counts;
                (member.person, (counts.events, counts.first.unwrap(), counts.last.unwrap()))
            });
            assert_eq!(found.collect::<Vec<_>>(), expected, "{key}");
        }
        for order in PersonOrder::NAMES {
            self.compare_order(store, order).await;
        }
    }

    async fn compare_order(&self, store: &Store, name_of_order: &str) {
        let order = PersonOrder::named(name_of_order).unwrap();
        let ranking = counts::made(store, PROJECT, order, now(), 5).await.unwrap();
        let mut expected: Vec<(i64, Uuid)> = self
            .persons(None)
            .into_iter()
            .map(|(root, (events, first, last))| {
                let key = match name_of_order.trim_start_matches('-') {
                    "event_count" => i64::try_from(events).unwrap(),
                    "first_seen" => first,
                    _ => last,
                };
                let key = if name_of_order.starts_with('-') { -key } else { key };
                (key, first_id(PROJECT, &name(root)).0)
            })
            .collect();
        expected.sort_unstable();
        assert_eq!((ranking.all, ranking.is_complete), (expected.len(), true));
        expected.truncate(5);
        let found: Vec<Uuid> = ranking.persons.iter().map(|id| id.0).collect();
        let expected: Vec<Uuid> = expected.into_iter().map(|(_, id)| id).collect();
        assert_eq!(found, expected, "{name_of_order}");
    }
}

/// Applies a batch of events after those that are stored.
pub(super) async fn store_more(
    store: &Store,
    partition: u16,
    events: &[StoredEvent],
    persons: Vec<PersonWrite>,
) -> Result<(), Error> {
    let at = position(store, partition).await.unwrap().offset;
    let mut write = batch(partition, at, at + 1, events);
    write.projects[0].persons = persons;
    let before = head(store, PROJECT, partition).await.unwrap().unwrap_or(Head::empty());
    let of = &mut write.projects[0].head;
    of.count += before.count;
    of.strays |= before.strays;
    apply(store, write).await
}

/// Random batches with random merges, on all layers.
#[tokio::test]
async fn counts_are_those_of_the_stored_events() {
    let (mut opened, mut random, mut model) = (Opened::new().await, Random(7), Model::default());
    let (mut arrival, mut last) = (0, None::<Vec<StoredEvent>>);
    for round in 0..60 {
        let partition = match random.below(5) {
            4 => historical_partition(PROJECT),
            other => u16::try_from(other).unwrap(),
        };
        let mut batch = Vec::new();
        let mut new = Vec::new();
        for _ in 0..=random.below(12) {
            arrival += 1;
            let mut id = random.below(IDS);
            // Now and then a transformation has changed the id.
            while partition < LIVE_PARTITIONS
                && random.below(8) > 0
                && live_partition(PROJECT, &name(id)) != partition
            {
                id = random.below(IDS);
            }
            let group = Some(random.below(2 * KEYS.len())).filter(|key| *key < KEYS.len());
            let profile = random.below(3) > 0;
            let time = i64::try_from(random.below(1_000_000)).unwrap() - 500_000;
            let group_text = match group {
                Some(2) => r#","$group_0":7"#.to_owned(),
                Some(key) => format!(r#","$group_0":"{}""#, KEYS[key]),
                None => String::new(),
            };
            let profile_text = if profile { "" } else { r#","$process_person_profile":false"# };
            batch.push(StoredEvent {
                uuid: super::support::uuid(arrival),
                timestamp: time,
                properties: format!(r#"{{"n":1{group_text}{profile_text}}}"#),
                ..event(arrival, &name(id))
            });
            new.push((id, group, profile, time));
        }
        let mut merges = Vec::new();
        let (from, into) = (model.root(random.below(IDS)), model.root(random.below(IDS)));
        if from != into && random.below(6) == 0 {
            let merged =
                Merged { into: first_id(PROJECT, &name(into)), at: 0, by: Uuid::from_u128(1) };
            let (id, state) = (first_id(PROJECT, &name(from)), PersonState::Merged(merged));
            merges.push(PersonWrite { id, state, expected: None, version: 0 });
            model.into.insert(from, into);
        }
        store_more(&opened.store, partition, &batch, merges).await.unwrap();
        model.events.extend(new);
        if let Some(last) = last.replace(batch).filter(|_| random.below(3) == 0) {
            let again = store_more(&opened.store, partition, &last, Vec::new()).await.unwrap_err();
            assert!(matches!(again, Error::Exists { .. }), "{again}");
        }
        match random.below(8) {
            0 => drop(seal(&opened.store, 5).await),
            1 => drop(merge_once(&opened.store, 2, 1_000).await),
            2 => opened = opened.reopen().await,
            _ => {}
        }
        if round % 10 == 9 {
            model.compare(&opened.store).await;
        }
    }
    assert!(model.into.len() > 2 && model.persons(Some(0)).len() > 2);
    assert!(!opened.segment_files().is_empty());
}

/// What a program from before counts has left: no counts, and migration 21.
async fn forget_counts(store: &Store) {
    let keys: Vec<Vec<u8>> =
        stored_of(store, "event_count").await.into_iter().map(|(key, _)| key).collect();
    let keys = std::sync::Arc::new(keys);
    let work = move |tx: Transaction| {
        let keys = std::sync::Arc::clone(&keys);
        async move { tx.delete(&keys).await }
    };
    store.db.transact(crate::db::Operation::write("test"), (), work).await.unwrap();
    const BEFORE: Statement = Statement::write(
        "test",
        "DELETE migration:22; REMOVE TABLE event_count; REMOVE TABLE event_count_cursor;",
    );
    store.db.run(BEFORE, bind! {}).await.unwrap();
}

#[tokio::test]
async fn events_from_before_an_upgrade_are_counted_while_others_are_stored() {
    let (mut opened, mut model) = (Opened::new().await, Model::default());
    let mut arrival = 0;
    let mut more = |partition: u16, model: &mut Model| {
        let is_own = |id: &usize| live_partition(PROJECT, &name(*id)) == partition;
        let mut ids: Vec<usize> = (0..IDS).filter(is_own).collect();
        if ids.is_empty() {
            // Historical events, and some whose id was changed.
            ids.extend(0..IDS);
        }
        let mut events = Vec::new();
        for id in ids {
            arrival += 1;
            let group = usize::try_from(arrival % 2).unwrap();
            let properties = format!(r#"{{"$group_0":"{}"}}"#, KEYS[group]);
            let new = StoredEvent {
                uuid: super::support::uuid(arrival),
                properties,
                ..event(arrival, &name(id))
            };
            model.events.push((id, Some(group), true, new.timestamp));
            events.push(new);
        }
        events
    };
    let partitions = [0, 1, 2, 3, historical_partition(PROJECT)];
    for _ in 0..6 {
        for partition in partitions {
            let events = more(partition, &mut model);
            store_more(&opened.store, partition, &events, Vec::new()).await.unwrap();
        }
        seal(&opened.store, 9).await;
    }
    let merged = Merged { into: first_id(PROJECT, &name(1)), at: 0, by: Uuid::from_u128(1) };
    let merge = PersonWrite {
        id: first_id(PROJECT, &name(0)),
        state: PersonState::Merged(merged),
        expected: None,
        version: 0,
    };
    model.into.insert(0, 1);
    let events = more(0, &mut model);
    store_more(&opened.store, 0, &events, vec![merge]).await.unwrap();
    assert!(!opened.segment_files().is_empty());
    forget_counts(&opened.store).await;
    opened = opened.reopen().await;

    assert_eq!(counts::of_persons(&opened.store, PROJECT, &[]).await.unwrap(), None);
    assert_eq!(counts::members(&opened.store, PROJECT, 0, KEYS[0]).await.unwrap(), None);
    let (mut counting, mut steps) = (Counting::default(), 0);
    loop {
        // A step may be interrupted anywhere.
        let step = after_polls(counting.step(&opened.store), steps % 40).await;
        if matches!(step, Some(Ok(Progress::Done))) {
            break;
        }
        steps += 1;
        assert!(steps < 2_000);
        if counts::of_persons(&opened.store, PROJECT, &[]).await.unwrap().is_some() {
            assert_eq!(records(&opened.store, "event_count_cursor").await, 0);
        }
        if steps % 8 == 0 && steps < 40 {
            let partition = partitions[steps / 8 % partitions.len()];
            let events = more(partition, &mut model);
            store_more(&opened.store, partition, &events, Vec::new()).await.unwrap();
            seal(&opened.store, 9).await;
            opened = opened.reopen().await;
        }
    }
    model.compare(&opened.store).await;
    assert_eq!(records(&opened.store, "event_count_cursor").await, 0);
}

/// A removal for age does not wait for the counting of earlier events.
#[tokio::test]
async fn events_that_are_removed_before_they_are_counted_are_not_subtracted() {
    let whose = PersonRef { distinct_ids: vec!["a".to_owned()], ..person(&[0]) };
    // A step counts four of the ten blocks.
    for steps in 0..4 {
        let mut opened = Opened::new().await;
        for (number, day) in (0..).zip([1, 2, 3, 4, 5, 6, 7, 8, 20, 20]) {
            add_at(&opened, 0, number * 10 + 1, day * DAY).await;
        }
        seal(&opened.store, 10).await;
        forget_counts(&opened.store).await;
        opened = opened.reopen().await;
        // The open block has events from before and after the upgrade.
        add_at(&opened, 0, 101, 21 * DAY).await;
        let mut counting = Counting::default();
        for _ in 0..steps {
            assert_ne!(counting.step(&opened.store).await.unwrap(), Progress::Done);
        }
        let before = Timestamp::from_micros(9 * DAY);
        let dropped = drop_old(&opened.store, PROJECT, before, &[]).await.unwrap();
        assert_eq!(dropped.events, 80, "{steps}");
        while counting.step(&opened.store).await.unwrap() != Progress::Done {}
        let found = counts::of_persons(&opened.store, PROJECT, std::slice::from_ref(&whose)).await;
        assert_eq!(found.unwrap().unwrap()[0].events, 30, "{steps}");
    }
}

/// Polls a future a number of times and drops it then.
pub(super) async fn after_polls<T>(future: impl Future<Output = T>, polls: usize) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

/// The removal is interrupted after each of its steps, and continued.
#[tokio::test]
async fn removed_events_are_subtracted_once() {
    let mut opened = Opened::new().await;
    for (number, day) in (0..).zip([1, 2, 3, 4, 20]) {
        add_at(&opened, 0, number * 10 + 1, day * DAY).await;
    }
    seal(&opened.store, 10).await;
    merge_once(&opened.store, 2, 1_000).await.unwrap();
    let whose = PersonRef { distinct_ids: vec!["a".to_owned()], ..person(&[0]) };
    let counted = async |store: &Store| {
        let found = counts::of_persons(store, PROJECT, std::slice::from_ref(&whose)).await;
        found.unwrap().unwrap()[0]
    };
    let first = counted(&opened.store).await;
    assert_eq!((first.events, first.first), (50, Some(DAY)));
    let mut seen = vec![50];
    for polls in 0.. {
        let before = Timestamp::from_micros(9 * DAY);
        let removing = drop_old(&opened.store, PROJECT, before, &[]);
        let is_done = after_polls(removing, polls).await.is_some();
        opened = opened.reopen().await;
        let all = Selection { up_to: 1_000, ..Selection::default() };
        let stored = count(&opened.store, PROJECT, all).await.unwrap();
        assert_eq!(counted(&opened.store).await.events, stored);
        seen.push(stored);
        if is_done {
            break;
        }
    }
    seen.dedup();
    // A step that has begun ends also when the removal is dropped, so two steps may be seen as
    // one.
    let is_in_steps = seen.is_sorted_by(|one, next| one > next)
        && seen.iter().all(|stored| stored % 10 == 0)
        && seen.len() > 2;
    assert!(is_in_steps && seen.last() == Some(&10), "{seen:?}");
    let last = counted(&opened.store).await;
    assert_eq!((last.first, last.last), (first.first, first.last), "seen stays as it was");
}

#[tokio::test]
async fn a_purge_removes_the_counts_of_its_project_alone() {
    let opened = Opened::new().await;
    for project in [PROJECT, ProjectId(8)] {
        let at = position(&opened.store, 0).await.unwrap().offset;
        let first = at * 10 + 1;
        let events: Vec<_> =
            (first..first + 3).map(|n| event(n, &name(usize::try_from(n).unwrap()))).collect();
        let mut write = batch(0, at, at + 1, &events);
        write.projects[0].project = project;
        apply(&opened.store, write).await.unwrap();
    }
    let before = stored_of(&opened.store, "event_count").await;
    assert_eq!(before.len(), 6);
    purge(&opened.store, ProjectId(8)).await.unwrap();
    assert_eq!(stored_of(&opened.store, "event_count").await, before[..3]);
    purge(&opened.store, PROJECT).await.unwrap();
    assert_eq!(records(&opened.store, "event_count").await, 0);
}
