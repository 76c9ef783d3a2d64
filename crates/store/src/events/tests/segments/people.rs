//! The map of persons says what their records say, also while batches are applied and persons
//! are erased.

use std::sync::Arc;
use std::time::{Duration, Instant};

use uuid::Uuid;
use weir_model::PersonId;

use super::super::support::{PROJECT, event};
use super::counts::{Random, after_polls, name, store_more};
use super::erasing::{self, erase};
use super::support::Opened;
use crate::bind::bind;
use crate::db::Statement;
use crate::events::purge;
use crate::people;
use crate::persons::{Facts, Merged, PersonState, PersonWrite, first_id, resolve_merged};
use crate::{Error, Store};

const IDS: usize = 24;

/// What is stored of persons.
struct Model {
    /// By distinct id, the version of its record.
    versions: Vec<Option<i64>>,
    /// By distinct id, the one whose person it leads to.
    roots: Vec<usize>,
}

impl Model {
    fn new(ids: usize) -> Self {
        Self { versions: vec![None; ids], roots: (0..ids).collect() }
    }

    fn write(&mut self, id: usize, state: PersonState) -> PersonWrite {
        let expected = self.versions[id];
        let version = expected.map_or(0, |version| version + 1);
        self.versions[id] = Some(version);
        PersonWrite { id: first_id(PROJECT, &name(id)), state, expected, version }
    }

    fn person(&mut self, root: usize) -> PersonWrite {
        let others = (0..self.roots.len()).filter(|id| *id != root && self.roots[*id] == root);
        let facts = Facts {
            distinct_ids: std::iter::once(root).chain(others).map(name).collect(),
            properties: "{}".to_owned(),
            created_at: 1,
            is_identified: false,
        };
        self.write(root, PersonState::Person(facts))
    }

    fn pointer(&mut self, id: usize, into: usize) -> PersonWrite {
        let into = first_id(PROJECT, &name(into));
        self.write(id, PersonState::Merged(Merged { into, at: 1, by: Uuid::nil() }))
    }

    fn merge(&mut self, from: usize, into: usize) -> Vec<PersonWrite> {
        self.roots.iter_mut().filter(|root| **root == from).for_each(|root| *root = into);
        vec![self.pointer(from, into), self.person(into)]
    }

    /// The records of the person and of its pointers have another version.
    fn erase(&mut self, person: usize) {
        for id in 0..self.roots.len() {
            if self.roots[id] == person {
                self.roots[id] = id;
                self.versions[id] = self.versions[id].map(|version| version + 1);
            }
        }
    }

    async fn compare(&self, store: &Store) {
        let found = persons(store, self.roots.len()).await;
        assert_eq!(found, ids(&self.roots));
        let first_ids = ids(&(0..self.roots.len()).collect::<Vec<_>>());
        let stored = resolve_merged(store, PROJECT, first_ids.iter().copied()).await.unwrap();
        for (first_id, found) in first_ids.iter().zip(found) {
            // An erased person has no record.
            assert_eq!(*stored.get(first_id).unwrap_or(first_id), found);
        }
    }
}

fn ids(of: &[usize]) -> Vec<PersonId> {
    of.iter().map(|id| first_id(PROJECT, &name(*id))).collect()
}

/// The persons of the first distinct ids, as the map says.
async fn persons(store: &Store, ids: usize) -> Vec<PersonId> {
    let (people, view) = people::of(store, PROJECT).await.unwrap();
    let names: Vec<String> = (0..ids).map(name).collect();
    let texts: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
    let mut numbers = Vec::new();
    people.numbers(&texts, &mut numbers).unwrap();
    let person = |number: &u32| people.person_id(view.person(*number)).unwrap();
    numbers.iter().map(person).collect()
}

/// Each is the person from before or after what was done at the same time.
fn assert_between(found: &[PersonId], before: &[usize], after: &[usize]) {
    for (found, (before, after)) in found.iter().zip(ids(before).iter().zip(ids(after))) {
        assert!(found == before || *found == after);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_map_says_what_the_records_of_persons_say() {
    let (mut erasures, mut merges) = (0, 0);
    for seed in 1..=3 {
        let opened = Opened::new().await;
        let store = &opened.store;
        let (mut random, mut model) = (Random(seed), Model::new(IDS));
        for round in 0..20_u64 {
            let before = model.roots.clone();
            let (mut batches, mut changed): (_, Vec<usize>) = (Vec::new(), Vec::new());
            for _ in 0..4 {
                let mut writes = Vec::new();
                let [one, other] = [random.below(IDS), random.below(IDS)];
                let is_free = |id: usize| before[id] == id && !changed.contains(&id);
                if one != other && is_free(one) && is_free(other) {
                    changed.extend([one, other]);
                    writes.extend(model.merge(one, other));
                    merges += 1;
                }
                // A chain becomes shorter.
                let id = random.below(IDS);
                if before[id] != id && !changed.contains(&id) {
                    changed.push(id);
                    writes.push(model.pointer(id, before[id]));
                }
                batches.push(writes);
            }
            let batches: [Vec<PersonWrite>; 4] = batches.try_into().unwrap();
            let [first, second, third, fourth] = batches;
            let new = |at: u64| [event(round * 4 + at, &name(random_id(round, at)))];
            let (one, two, three, four) = (new(1), new(2), new(3), new(4));
            let (one, two, three, four, found) = tokio::join!(
                store_more(store, 0, &one, first),
                store_more(store, 1, &two, second),
                store_more(store, 2, &three, third),
                store_more(store, 3, &four, fourth),
                persons(store, IDS),
            );
            [one, two, three, four].into_iter().for_each(|done| done.unwrap());
            assert_between(&found, &before, &model.roots);
            model.compare(store).await;
            if random.below(3) == 0 {
                let before = model.roots.clone();
                let person = before[random.below(IDS)];
                let is_with_events = random.below(2) == 0;
                let named = name(person);
                let erasing = erase(store, &named, is_with_events);
                let (erased, found) = tokio::join!(erasing, persons(store, IDS));
                if erased.is_some() {
                    model.erase(person);
                    erasures += 1;
                }
                assert_between(&found, &before, &model.roots);
                model.compare(store).await;
            }
        }
    }
    assert!(merges > 20 && erasures > 3, "{merges} merges, {erasures} erasures");
}

fn random_id(round: u64, at: u64) -> usize {
    usize::try_from(round * 7 + at * 5).unwrap() % IDS
}

#[tokio::test]
async fn after_more_merges_than_the_feed_has_all_are_read() {
    const MANY: usize = 8_300;
    let opened = Opened::new().await;
    let store = &opened.store;
    assert_eq!(persons(store, 3).await, ids(&[0, 1, 2]));
    let (mut model, mut arrival) = (Model::new(MANY), 0);
    for some in [1..100, 100..MANY] {
        let writes = some.map(|id| model.pointer(id, 0)).collect();
        arrival += 1;
        store_more(store, 0, &[event(arrival, "user-1")], writes).await.unwrap();
    }
    let (people, view) = people::of(store, PROJECT).await.unwrap();
    let root = first_id(PROJECT, &name(0));
    for id in 0..MANY {
        let mut numbers = Vec::new();
        people.numbers(&[name(id).as_bytes()], &mut numbers).unwrap();
        assert_eq!(people.person_id(view.person(numbers[0])), Some(root), "{id}");
    }
}

/// A batch whose caller is dropped may be stored later.
#[tokio::test]
async fn merges_of_a_batch_whose_caller_has_left_are_not_missing() {
    let opened = Opened::new().await;
    let store = &opened.store;
    let mut model = Model::new(1_000);
    let person = model.person(0);
    store_more(store, 0, &[event(1, "user-0")], vec![person]).await.unwrap();
    let mut stored_later = 0;
    for polls in 0.. {
        let from = polls + 1;
        let writes = vec![model.pointer(from, 0)];
        let new = [event(1 + from as u64, "user-0")];
        let stored = after_polls(store_more(store, 0, &new, writes), polls).await;
        let first_ids = ids(&(0..=from).collect::<Vec<_>>());
        let resolve =
            async || resolve_merged(store, PROJECT, first_ids.iter().copied()).await.unwrap();
        let before = resolve().await;
        let found = persons(store, from + 1).await;
        let after = resolve().await;
        for (first_id, found) in first_ids.iter().zip(&found) {
            let [before, after] = [&before, &after].map(|of| of.get(first_id).unwrap_or(first_id));
            assert!(found == before || found == after, "{polls}");
        }
        if let Some(stored) = stored {
            stored.unwrap();
            break;
        }
        stored_later += usize::from(found[from] == found[0]);
    }
    assert!(stored_later > 0);
}

#[tokio::test]
async fn a_map_goes_away_with_merges_and_after_a_pause() {
    let opened = Opened::new().await;
    let store = &opened.store;
    let writes = vec![erasing::person(None), erasing::pointer()];
    erasing::add(store, &["ada", "a-1"], writes).await;
    let made = async || {
        let (people, view) = people::of(store, PROJECT).await.unwrap();
        let mut numbers = Vec::new();
        people.numbers(&[b"ada", b"a-1"], &mut numbers).unwrap();
        let is_one = view.person(numbers[0]) == view.person(numbers[1]);
        (Arc::downgrade(&people), is_one)
    };
    let (map, is_one) = made().await;
    assert!(is_one);
    assert!(made().await.0.ptr_eq(&map), "made once");
    people::drop_unused(store, Instant::now());
    assert!(map.upgrade().is_some());
    people::drop_unused(store, Instant::now() + Duration::from_secs(600));
    assert!(map.upgrade().is_none());
    let (map, is_one) = made().await;
    assert!(is_one);
    erase(store, "ada", false).await.unwrap();
    assert!(map.upgrade().is_none());
    let (map, is_one) = made().await;
    assert!(!is_one);
    purge(store, PROJECT).await.unwrap();
    assert!(map.upgrade().is_none());
}

#[tokio::test]
async fn there_is_no_map_before_all_merges_are_counted() {
    const UNCOUNTED: Statement = Statement::write(
        "test",
        "CREATE type::record('event_count_cursor', [$project, 6]) SET next = 0, last = 0;",
    );
    let opened = Opened::new().await;
    opened.store.db.run(UNCOUNTED, bind! { project: PROJECT.0 }).await.unwrap();
    let refused = people::of(&opened.store, PROJECT).await.unwrap_err();
    assert!(matches!(refused, Error::Making { .. }), "{refused}");
}
