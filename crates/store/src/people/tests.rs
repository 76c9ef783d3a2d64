//! Maps in memory, and what is new for them. `events/tests/segments/people.rs` has a store.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::thread;

use uuid::Uuid;
use weir_model::PersonId;

use super::*;
use crate::Error;
use crate::persons::first_id;

const PROJECT: ProjectId = ProjectId(7);
const OTHER: ProjectId = ProjectId(8);
const LONG: Duration = Duration::from_secs(600);

fn id(number: usize) -> PersonId {
    PersonId(Uuid::from_u128(number as u128))
}

fn merge(from: &str, into: &str) -> Merge {
    (first_id(PROJECT, from), first_id(PROJECT, into))
}

fn numbers(people: &People, names: &[&str]) -> Vec<u32> {
    let texts: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
    let mut numbers = Vec::new();
    people.numbers(&texts, &mut numbers).unwrap();
    numbers
}

/// Whether these distinct ids are the person that the last of them created.
fn are_one(people: &People, view: &PersonView, names: &[&str]) -> bool {
    let expected = names.last().map(|name| first_id(PROJECT, name));
    let numbers = numbers(people, names);
    numbers.into_iter().all(|number| people.person_id(view.person(number)) == expected)
}

fn view(people: &People) -> PersonView {
    people.view(Feed::new(1).position())
}

#[test]
fn a_distinct_id_keeps_its_number() {
    let people = People::of(PROJECT, 100);
    assert_eq!(numbers(&people, &["a", "b", "a", "é"]), [0, 1, 0, 2]);
    assert_eq!(numbers(&people, &["c", "a", "é", "b"]), [3, 0, 2, 1]);
    let mut into = vec![9];
    people.numbers(&[b"b", b"d"], &mut into).unwrap();
    assert_eq!(into, [9, 1, 4], "numbers are appended");
    assert_eq!(people.person_id(2), Some(first_id(PROJECT, "é")));
    assert_eq!(people.person_id(5), None);
}

#[test]
fn threads_get_the_same_numbers() {
    const NAMES: usize = 300;
    let people = People::of(PROJECT, NAMES);
    let names: Vec<String> = (0..NAMES).map(|number| format!("user-{number}")).collect();
    let found: Vec<Vec<u32>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let (people, names) = (&people, &names);
                scope.spawn(move || {
                    let mut found = vec![u32::MAX; NAMES];
                    for at in (0..NAMES).map(|at| (at + thread * 70) % NAMES) {
                        found[at] = numbers(people, &[&names[at]])[0];
                    }
                    found
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(found.iter().all(|numbers| *numbers == found[0]));
    let mut all = found[0].clone();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..300_u32));
}

#[test]
fn a_view_says_who_was_one_person_when_it_was_made() {
    let people = People::of(PROJECT, 100);
    // Of some ids no event was read before they were merged.
    numbers(&people, &["b", "c"]);
    people.merge(&[merge("a", "b")]).unwrap();
    let first = view(&people);
    assert!(are_one(&people, &first, &["a", "b"]));
    assert!(are_one(&people, &first, &["c"]) && are_one(&people, &first, &["d"]));
    people.merge(&[merge("b", "c"), merge("a", "c"), merge("d", "c")]).unwrap();
    assert!(are_one(&people, &first, &["a", "b"]));
    assert!(are_one(&people, &first, &["c"]) && are_one(&people, &first, &["d"]));
    let second = view(&people);
    assert!(are_one(&people, &second, &["a", "b", "d", "c"]));
    assert!(are_one(&people, &second, &["e"]));
    // The same merges may come again.
    people.merge(&[merge("a", "b"), merge("b", "c"), merge("a", "c")]).unwrap();
    assert!(are_one(&people, &view(&people), &["a", "b", "d", "c"]));
}

#[test]
fn long_chains_and_rings_have_an_end() {
    const LINKS: usize = 20_000;
    let forwards: Vec<Merge> = (0..LINKS).map(|at| (id(at), id(at + 1))).collect();
    let backwards: Vec<Merge> = forwards.iter().rev().copied().collect();
    for chain in [forwards, backwards] {
        let people = People::of(PROJECT, LINKS + 1);
        people.merge(&chain).unwrap();
        let seen = view(&people);
        let mut roots = (0..=LINKS).map(|at| seen.person(u32::try_from(at).unwrap()));
        assert!(roots.all(|root| people.person_id(root) == Some(id(LINKS))));
        // Damaged data.
        people.merge(&[(id(LINKS), id(0)), (id(5), id(5))]).unwrap();
        view(&people);
    }
}

#[test]
fn a_map_has_a_bound() {
    let people = People::of(PROJECT, 3);
    people.merge(&[merge("a", "b")]).unwrap();
    assert!(!people.has_space());
    numbers(&people, &["c", "a"]);
    let refused = people.numbers(&[b"a", b"d"], &mut Vec::new()).unwrap_err();
    assert!(matches!(refused, Error::TooLarge { .. }), "{refused}");
    let refused = people.merge(&[merge("d", "a")]).unwrap_err();
    assert!(matches!(refused, Error::TooLarge { .. }), "{refused}");
    assert!(are_one(&people, &view(&people), &["a", "b"]));
}

#[test]
fn an_id_takes_few_bytes() {
    const IDS: usize = 100_000;
    let people = People::of(PROJECT, IDS);
    let names: Vec<String> = (0..IDS).map(|number| format!("user-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.chunks(1_000).for_each(|some| drop(numbers(&people, some)));
    view(&people);
    assert!(people.bytes() < 70 * IDS, "{}", people.bytes());
}

#[test]
fn a_feed_has_the_last_merges() {
    let merges: Vec<Merge> = (0..8_192).map(|at| (id(at), id(at + 1))).collect();
    let mut feed = Feed::new(1);
    let begin = feed.position();
    feed.add(2, &merges, Outcome::Committed);
    assert_eq!(feed.since(begin), Some(merges));
    let end = feed.position();
    feed.add(3, &[(id(1), id(2)), (id(3), id(4))], Outcome::Committed);
    assert_eq!(feed.since(begin), None, "the first ones are not here any more");
    assert_eq!(feed.since(end), Some(vec![(id(1), id(2)), (id(3), id(4))]));
    assert_eq!(feed.since(feed.position()), Some(Vec::new()));
    assert!(feed.is_of(end) && !Feed::new(2).is_of(end));
}

/// The number of the merges that are new after the change, if they are known.
fn new_after(maps: &Arc<PeopleMaps>, change: impl FnOnce(&Arc<PeopleMaps>)) -> Option<usize> {
    let before = maps.find(PROJECT, Instant::now()).position;
    change(maps);
    let state = maps.state();
    state.projects.get(&PROJECT).unwrap().feed.since(before).map(|merges| merges.len())
}

fn begin(maps: &Arc<PeopleMaps>) -> Arc<Ticket> {
    maps.begin_merges(vec![(PROJECT, vec![merge("a", "b")])]).unwrap()
}

#[test]
fn merges_are_new_if_their_transaction_was_committed() {
    let maps = Arc::<PeopleMaps>::default();
    let refused = |reason: &str| Error::Refused { statement: "test", reason: reason.to_owned() };
    for (done, expected) in [
        (Ok(()), Some(1)),
        (Err(refused("stale person")), Some(0)),
        (Err(Error::Exists { statement: "test", detail: String::new() }), Some(0)),
        (Err(refused("position")), None),
        (Err(Error::Conflict { statement: "test", attempts: 16 }), None),
        (Err(Error::Timeout { statement: "test", seconds: 60 }), None),
    ] {
        assert_eq!(new_after(&maps, |maps| begin(maps).end(&done)), expected, "{done:?}");
    }
    assert_eq!(new_after(&maps, |maps| drop(begin(maps))), None, "its caller was dropped");
    let other = |maps: &Arc<PeopleMaps>| {
        maps.begin_merges(vec![(OTHER, vec![merge("a", "b")])]).unwrap().end(&Ok(()));
    };
    assert_eq!(new_after(&maps, other), Some(0));
    assert!(!maps.state().projects.contains_key(&OTHER), "no question was asked about it");
    assert!(maps.begin_merges(Vec::new()).is_none());
}

/// An erasure may have removed the merges before the feed began.
#[test]
fn merges_of_a_transaction_from_before_the_feed_are_read() {
    let maps = Arc::<PeopleMaps>::default();
    let ticket = begin(&maps);
    assert_eq!(new_after(&maps, |_| ticket.end(&Ok(()))), None);
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn a_question_waits_for_the_transactions_before_it() {
    let maps = Arc::<PeopleMaps>::default();
    let ticket = begin(&maps);
    let held_by_transaction = Arc::clone(&ticket);
    assert!(!maps.settled(PROJECT, Duration::ZERO).await);
    assert!(maps.settled(OTHER, Duration::ZERO).await);
    let mut settled = pin!(maps.settled(PROJECT, LONG));
    assert!(poll(settled.as_mut()).is_pending());
    let later = maps.begin_removal(PROJECT);
    ticket.end(&Ok(()));
    assert!(poll(settled.as_mut()).is_pending());
    drop(held_by_transaction);
    assert!(settled.await);
    assert!(!maps.settled(PROJECT, Duration::ZERO).await);
    drop(later);
    assert!(maps.settled(PROJECT, Duration::ZERO).await);
}

/// A map that is kept, and that a question has.
fn kept(maps: &PeopleMaps, project: ProjectId, used: Instant) -> Arc<People> {
    let position = maps.find(project, used).position;
    let people = Arc::new(People::of(project, 9));
    maps.keep(project, &people, position);
    people
}

fn has_map(maps: &PeopleMaps, project: ProjectId) -> bool {
    maps.state().projects.get(&project).is_some_and(|found| found.map.is_some())
}

#[test]
fn unused_maps_are_dropped() {
    let maps = PeopleMaps::default();
    let now = Instant::now();
    let people = kept(&maps, PROJECT, now);
    drop(kept(&maps, OTHER, now + Duration::from_secs(1)));
    maps.drop_unused(now + PAUSE, BYTES);
    assert!(has_map(&maps, PROJECT) && has_map(&maps, OTHER));
    drop(people);
    maps.drop_unused(now + PAUSE, BYTES);
    assert!(!has_map(&maps, PROJECT) && has_map(&maps, OTHER));
    // Of two that are too large together, the last used one stays.
    drop(kept(&maps, PROJECT, now));
    let bytes = maps.state().projects.get(&OTHER).unwrap().bytes();
    maps.drop_unused(now, 2 * bytes);
    assert!(has_map(&maps, PROJECT) && has_map(&maps, OTHER));
    maps.drop_unused(now, 2 * bytes - 1);
    assert!(!has_map(&maps, PROJECT) && has_map(&maps, OTHER));
    maps.drop_unused(now + LONG + LONG, BYTES);
    assert!(maps.state().projects.is_empty());
}

#[test]
fn a_map_from_before_a_removal_is_not_kept() {
    let maps = Arc::<PeopleMaps>::default();
    let people = kept(&maps, PROJECT, Instant::now());
    let before = maps.find(PROJECT, Instant::now()).position;
    let removal = maps.begin_removal(PROJECT);
    assert!(has_map(&maps, PROJECT));
    drop(removal);
    assert!(!has_map(&maps, PROJECT));
    maps.keep(PROJECT, &people, before);
    assert!(!has_map(&maps, PROJECT));
    let after = maps.find(PROJECT, Instant::now()).position;
    assert_ne!(before, after);
    maps.keep(PROJECT, &people, before);
    assert!(!has_map(&maps, PROJECT));
    maps.keep(PROJECT, &people, after);
    maps.forget(PROJECT);
    assert!(!has_map(&maps, PROJECT));
}

#[test]
fn numbers_lead_to_first_ids_and_back() {
    let people = People::of(PROJECT, 9);
    let mut numbers = Vec::new();
    people.numbers(&[&b"ada"[..], &b"bob"[..]], &mut numbers).unwrap();
    let [ada, bob, cyd] = ["ada", "bob", "cyd"].map(|id| first_id(PROJECT, id));
    let mut seen = Vec::new();
    people.each_first_id(&[numbers[1], u32::MAX], |at, id| seen.push((at, id)));
    assert_eq!(seen, [(0, bob)]);
    let mut found = Vec::new();
    people.each_number(&[(cyd, 7), (ada, 5)], |number, time| found.push((number, time))).unwrap();
    assert_eq!(found, [(2, 7), (0, 5)]);
    // The distinct id of a known first id gets its number.
    people.numbers(&[&b"cyd"[..]], &mut numbers).unwrap();
    assert_eq!(numbers, [0, 1, 2]);
}
