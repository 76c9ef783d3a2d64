//! Sequences of events about persons and groups, through the log into the store.

mod order;
mod transforming;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;
use weir_model::groups::Group;
use weir_model::persons::PersonRef;
use weir_model::{PersonId, ProjectId};
use weir_store::persons::PersonState;
use weir_store::{ByteBudget, ScanLimits, Store, definitions, events, groups, persons, warnings};

use crate::Ingest;
use crate::batch::Batch;
use crate::location::Locations;
use crate::location::tests::places;
use crate::tests::{POISON, Sizes, start, start_transforming, start_with, store};
use weir_capture::AcceptedEvent;

const NOON: i64 = 1_780_000_000_000_000;

/// An event with its own time.
fn event(name: &str, distinct_id: &str, at: i64, properties: &Value) -> AcceptedEvent {
    AcceptedEvent {
        uuid: Uuid::new_v4(),
        event: name.to_owned(),
        distinct_id: distinct_id.to_owned(),
        timestamp: NOON + at,
        properties: properties.to_string(),
        elements_chain: String::new(),
        warnings: Vec::new(),
    }
}

async fn append(ingest: &Ingest, project: ProjectId, events: Vec<AcceptedEvent>) {
    let batch = Batch { accepted: events, ..Batch::new(NOON, false) };
    ingest.appender().append(project, batch.into_encoded()).await.unwrap();
}

/// One request per event, each applied before the next.
async fn tell(ingest: &Ingest, project: ProjectId, story: &[AcceptedEvent]) {
    for event in story {
        append(ingest, project, vec![event.clone()]).await;
        ingest.applied().await;
    }
}

async fn person(store: &Store, project: ProjectId, distinct_id: &str) -> Option<PersonRef> {
    let id = persons::first_id(project, distinct_id);
    persons::resolve(store, project, [id]).await.unwrap().remove(&id).map(Arc::unwrap_or_clone)
}

/// The group with this key, of the first type.
async fn group(store: &Store, project: ProjectId, key: &str) -> Group {
    let found = groups::by_keys(store, project, &[(0, key)], &mut ByteBudget::of(1)).await;
    found.unwrap().remove(0).group
}

async fn everybody(store: &Store, project: ProjectId) -> Vec<PersonRef> {
    persons::page(store, project, None, 100, ScanLimits::records(1_000), |_| true)
        .await
        .unwrap()
        .persons
}

fn properties(person: &PersonRef) -> BTreeMap<String, Value> {
    let mut properties: BTreeMap<String, Value> = serde_json::from_str(&person.properties).unwrap();
    properties.remove("$creator_event_uuid");
    properties
}

fn sorted_ids(person: &PersonRef) -> Vec<String> {
    let mut ids = person.distinct_ids.clone();
    ids.sort();
    ids
}

async fn codes(store: &Store, project: ProjectId) -> Vec<(String, u64)> {
    let counts = warnings::counts(store, project).await.unwrap();
    counts.into_iter().map(|counted| (counted.code, counted.count)).collect()
}

/// The rows of ING-49: the state before, the event, the surviving person.
#[tokio::test(flavor = "multi_thread")]
async fn merges_follow_the_table() {
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(directory.path(), &store).await;
    let seen = |id: &str, n: i64| event("seen", id, n, &json!({"$set": {"from": id, id: true}}));
    let identify = |id: &str, anon: &str, n| {
        event("$identify", id, n, &json!({"$anon_distinct_id": anon, "$set": {"last": "identify"}}))
    };
    let alias = |id: &str, alias: &str, n| event("$create_alias", id, n, &json!({"alias": alias}));
    let force =
        |id: &str, alias: &str, n| event("$merge_dangerously", id, n, &json!({"alias": alias}));

    // Events, and for every distinct id the one whose record its person is.
    type Case = (&'static str, Vec<AcceptedEvent>, Vec<(&'static str, &'static str)>);
    let cases: Vec<Case> = vec![
        ("neither known", vec![identify("u", "a", 0)], vec![("u", "u"), ("a", "u")]),
        ("main known", vec![seen("u", 0), identify("u", "a", 1)], vec![("u", "u"), ("a", "u")]),
        ("other known", vec![seen("a", 0), identify("u", "a", 1)], vec![("u", "a"), ("a", "a")]),
        (
            "both known",
            vec![seen("a", 0), seen("u", 1), identify("u", "a", 2)],
            vec![("u", "u"), ("a", "u")],
        ),
        (
            "same person",
            vec![identify("u", "a", 0), identify("u", "a", 1)],
            vec![("u", "u"), ("a", "u")],
        ),
        (
            "the anonymous one is another person already",
            vec![identify("v", "a", 0), seen("u", 1), identify("u", "a", 2)],
            vec![("u", "u"), ("a", "v"), ("v", "v")],
        ),
        (
            "alias: the alias is the main one",
            vec![seen("u", 0), seen("b", 1), alias("u", "b", 2)],
            vec![("u", "b"), ("b", "b")],
        ),
        (
            "alias after sign-in",
            vec![identify("u", "a", 0), alias("u", "b", 1)],
            vec![("u", "u"), ("a", "u"), ("b", "u")],
        ),
        (
            "alias of two who are identified",
            vec![identify("u", "a", 0), identify("w", "b", 1), alias("u", "w", 2)],
            vec![("u", "u"), ("w", "w")],
        ),
        (
            "by force",
            vec![identify("u", "a", 0), identify("w", "b", 1), force("u", "w", 2)],
            vec![("u", "u"), ("a", "u"), ("w", "u"), ("b", "u")],
        ),
        (
            "one after another",
            vec![
                seen("a", 0),
                seen("b", 1),
                seen("c", 2),
                identify("b", "a", 3),
                force("c", "b", 4),
            ],
            vec![("a", "c"), ("b", "c"), ("c", "c")],
        ),
    ];
    for (number, (case, story, expected)) in (1..).zip(cases) {
        let project = ProjectId(number);
        tell(&ingest, project, &story).await;
        for (distinct_id, holder) in expected {
            let found = person(&store, project, distinct_id).await.expect(case);
            assert_eq!(found.id, persons::first_id(project, holder), "{case}: {distinct_id}");
        }
        let refused =
            ["the anonymous one is another person already", "alias of two who are identified"];
        let expected =
            refused.contains(&case).then(|| ("cannot_merge_already_identified".to_owned(), 1));
        assert_eq!(codes(&store, project).await, Vec::from_iter(expected), "{case}");
    }
    ingest.close(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_unites_properties_ids_and_time() {
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(directory.path(), &store).await;
    let project = ProjectId(1);
    let story = [
        event("seen", "a", 0, &json!({"$set": {"both": "a", "only_a": 1}})),
        event("seen", "u", 1_000, &json!({"$set": {"both": "u", "only_u": 2}})),
        event(
            "$identify",
            "u",
            2_000,
            &json!({"$anon_distinct_id": "a", "$set_once": {"only_a": 9, "new": 3}}),
        ),
    ];
    tell(&ingest, project, &story).await;
    let united = person(&store, project, "a").await.unwrap();
    assert_eq!(united.id, persons::first_id(project, "u"));
    assert_eq!(sorted_ids(&united), ["a", "u"]);
    assert_eq!(united.created_at.micros(), NOON);
    assert!(united.is_identified);
    let expected = json!({"both": "u", "only_a": 1, "only_u": 2, "new": 3});
    assert_eq!(json!(properties(&united)), expected);
    assert_eq!(everybody(&store, project).await.len(), 1);
    ingest.close(Duration::from_secs(10)).await;
}

/// Also where the survivor is as new as the merge. Exports of persons find newer records
/// by the version.
#[tokio::test(flavor = "multi_thread")]
async fn a_survivor_has_a_greater_version_than_who_went() {
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(directory.path(), &store).await;
    let project = ProjectId(1);
    let version = async |distinct_id: &str| {
        let id = persons::first_id(project, distinct_id);
        let found = persons::resolve_versioned(&store, project, [id]).await.unwrap();
        let found = &found[&id];
        (found.person.id, found.version)
    };
    tell(&ingest, project, &[event("seen", "anon", 0, &json!({}))]).await;
    let (anon, before) = version("anon").await;
    let together = vec![
        event("seen", "ada", 1_000, &json!({})),
        event("$identify", "ada", 2_000, &json!({"$anon_distinct_id": "anon"})),
    ];
    append(&ingest, project, together).await;
    ingest.applied().await;
    let (ada, after) = version("anon").await;
    assert_eq!(ada, persons::first_id(project, "ada"));
    assert!(after > before, "{after} after {before}");
    let resolve_merged =
        persons::resolve_merged(&store, project, [anon, PersonId(Uuid::nil())]).await.unwrap();
    assert_eq!(resolve_merged.into_iter().collect::<Vec<_>>(), [(anon, ada)]);
    ingest.close(Duration::from_secs(10)).await;
}

/// Many partitions change and merge the same few persons at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_merges_lose_nothing() {
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(directory.path(), &store).await;
    let project = ProjectId(1);
    let mut sent = Vec::new();
    for n in 0..60_i64 {
        let own = format!("device-{n}");
        let mark = json!({"$set": {own.as_str(): n}});
        sent.push(event("seen", &own, n, &mark));
        sent.push(event("$identify", "ada", n, &json!({"$anon_distinct_id": own})));
        sent.push(event("seen", &own, n, &json!({"$set": {format!("late-{n}"): n}})));
    }
    for events in sent.chunks(7) {
        append(&ingest, project, events.to_vec()).await;
    }
    ingest.applied().await;
    let all = everybody(&store, project).await;
    assert_eq!(all.len(), 1, "all are one person");
    assert_eq!(all[0].distinct_ids.len(), 61);
    assert_eq!(properties(&all[0]).len(), 120, "no change was lost");
    assert_eq!(codes(&store, project).await, []);
    let heads = events::heads(&store, project).await.unwrap();
    assert_eq!(heads.values().map(|head| head.count).sum::<i64>(), 180);
    ingest.close(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_are_made_by_groupidentify_alone() {
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(directory.path(), &store).await;
    let project = ProjectId(1);
    let identify = |kind: &str, key: Value, set: Value, at| {
        let properties = json!({"$group_type": kind, "$group_key": key, "$group_set": set});
        event("$groupidentify", "sender", at, &properties)
    };
    let mut story = vec![
        event("buy", "ada", 0, &json!({"$groups": {"company": "acme", "team": 7}})),
        identify("company", json!("acme"), json!({"name": "Acme", "size": 10}), 1_000),
        identify("company", json!("acme"), json!({"size": 11}), 500),
        identify("team", json!(7), json!(null), 2_000),
        event("buy", "ada", 3_000, &json!({"$groups": "acme"})),
        // No groups and no changes, in the form that PHP writes.
        event("buy", "ada", 3_500, &json!({"$groups": [], "$set": [], "$set_once": []})),
        identify("company", json!("acme"), json!([]), 3_600),
    ];
    for kind in ["c", "d", "e", "f"] {
        story.push(identify(kind, json!("x"), json!({}), 4_000));
    }
    tell(&ingest, project, &story).await;

    assert_eq!(groups::types(&store, project).await.unwrap(), ["company", "team", "c", "d", "e"]);
    let acme = group(&store, project, "acme").await;
    let held: Value = serde_json::from_str(&acme.properties).unwrap();
    assert_eq!(held, json!({"name": "Acme", "size": 11}));
    assert_eq!(acme.created_at.micros(), NOON + 500);
    let teams = groups::page(&store, project, 1, None, 10, ScanLimits::records(100), |_| true)
        .await
        .unwrap()
        .groups;
    assert_eq!(teams.iter().map(|team| team.key.as_str()).collect::<Vec<_>>(), ["7"]);
    assert_eq!(
        codes(&store, project).await,
        [("invalid_groups".to_owned(), 1), ("too_many_group_types".to_owned(), 1)]
    );
    let bought = events::arrivals(&store, project, None, 100).await.unwrap().events;
    let first = bought.iter().find(|event| event.arrival == 1).unwrap();
    let held: Value = serde_json::from_str(&first.properties).unwrap();
    assert_eq!((&held["$group_0"], &held["$group_1"]), (&json!("acme"), &json!("7")));
    ingest.close(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn group_types_are_numbered_in_the_order_of_their_first_use() {
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(directory.path(), &store).await;
    let project = ProjectId(1);
    let mut first = event("buy", "ada", 0, &json!({}));
    first.properties =
        r#"{"$groups":{"workspace":"w","company":"c","":"x","team":" "}}"#.to_owned();
    tell(&ingest, project, &[first]).await;
    assert_eq!(groups::types(&store, project).await.unwrap(), ["workspace", "company"]);
    assert_eq!(codes(&store, project).await, [("invalid_groups".to_owned(), 1)]);
    ingest.close(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_property_of_a_group_can_be_replaced() {
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(directory.path(), &store).await;
    let project = ProjectId(1);
    let identify = |letter: &str, length| {
        let set = json!({"large": letter.repeat(length)});
        let properties = json!({"$group_type": "company", "$group_key": "acme", "$group_set": set});
        event("$groupidentify", "sender", 0, &properties)
    };
    tell(&ingest, project, &[identify("a", 300_000), identify("b", 300_000)]).await;
    assert_eq!(codes(&store, project).await, []);
    tell(&ingest, project, &[identify("c", 600_000)]).await;
    assert_eq!(codes(&store, project).await, [("group_too_large".to_owned(), 1)]);
    let acme = group(&store, project, "acme").await;
    assert!(acme.properties.contains("bbb"));
    ingest.close(Duration::from_secs(10)).await;
}

/// An event that asks for something impossible leaves a warning.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_ignored_in_silence() {
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(directory.path(), &store).await;
    let story = [
        event("$create_alias", "ada", 0, &json!({})),
        event("$merge_dangerously", "ada", 0, &json!({"alias": null})),
        event("$groupidentify", "ada", 0, &json!({"$group_type": "company"})),
        event("$identify", "ada", 0, &json!({"$anon_distinct_id": "a\u{fffd}b"})),
    ];
    tell(&ingest, ProjectId(1), &story).await;
    assert_eq!(
        codes(&store, ProjectId(1)).await,
        [
            ("group_without_key".to_owned(), 1),
            ("illegal_merge_id".to_owned(), 1),
            ("merge_without_id".to_owned(), 2),
        ]
    );
    ingest.close(Duration::from_secs(10)).await;
}

/// An id that several visitors share joins no persons, in either direction.
#[tokio::test(flavor = "multi_thread")]
async fn visitors_without_cookies_are_never_merged() {
    const DAY: &str = "cookieless_7c9e6679-7425-50de-944b-e07fc1f90ae7";
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(directory.path(), &store).await;
    let mut story = Vec::new();
    for id in [DAY, "$posthog_cookieless"] {
        story.extend([
            event("seen", id, 0, &json!({})),
            event("$identify", "ada", 1, &json!({"$anon_distinct_id": id})),
            event("$create_alias", "ada", 2, &json!({"alias": id})),
            event("$create_alias", id, 3, &json!({"alias": "ada"})),
            event("$merge_dangerously", "ada", 4, &json!({"alias": id})),
            event("$merge_dangerously", id, 5, &json!({"alias": "ada"})),
        ]);
    }
    tell(&ingest, ProjectId(1), &story).await;
    let mut ids: Vec<_> = everybody(&store, ProjectId(1)).await.iter().map(sorted_ids).collect();
    ids.sort();
    assert_eq!(ids, [vec!["$posthog_cookieless"], vec!["ada"], vec![DAY]]);
    assert_eq!(codes(&store, ProjectId(1)).await, [("illegal_merge_id".to_owned(), 10)]);
    ingest.close(Duration::from_secs(10)).await;
}

/// An import keeps its order, for any distinct ids of its events.
#[tokio::test(flavor = "multi_thread")]
async fn an_import_keeps_its_order_across_distinct_ids() {
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(directory.path(), &store).await;
    for number in 1..=20 {
        let project = ProjectId(number);
        let mut events = vec![event("$identify", "u", 0, &json!({"$anon_distinct_id": "a"}))];
        events.extend((0..50).map(|n| {
            let id = if n % 2 == 0 { "a" } else { "u" };
            event("step", id, n, &json!({"$set": {"last": n}}))
        }));
        let batch = Batch { accepted: events, ..Batch::new(NOON, true) };
        ingest.appender().append(project, batch.into_encoded()).await.unwrap();
    }
    ingest.applied().await;
    for number in 1..=20 {
        let found = person(&store, ProjectId(number), "a").await.unwrap();
        assert_eq!(properties(&found)["last"], 49, "project {number}");
    }
    ingest.close(Duration::from_secs(10)).await;
}

/// Tiny properties take many times their text in memory.
#[tokio::test(flavor = "multi_thread")]
async fn batches_are_bounded_by_the_memory_of_their_persons_and_groups() {
    const EVENTS: usize = 40;
    // Names of `null` are not recorded, which would take long.
    let many: Vec<String> = (0..10_000).map(|n| format!(r#""{n}":null"#)).collect();
    let many = format!("{{{}}}", many.join(","));
    let of_person: fn(usize, &str) -> (String, String) =
        |n, set| (format!("d{n}"), format!(r#"{{"$set":{set}}}"#));
    let of_group: fn(usize, &str) -> (String, String) = |n, set| {
        let group = format!(r#""$group_type":"company","$group_key":"{n}","$group_set":{set}"#);
        ("d".to_owned(), format!("{{{group}}}"))
    };
    for (name, of) in [("$set", of_person), ("$groupidentify", of_group)] {
        let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
        // Properties that the events add, and properties that are stored already.
        for set in [many.as_str(), r#"{"last":1}"#] {
            let sizes = Arc::new(Sizes::default());
            let ingest = start_transforming(directory.path(), &store, sizes.clone()).await;
            let events = (0..EVENTS).map(|n| {
                let (distinct_id, properties) = of(n, set);
                let named = event(name, &distinct_id, 0, &Value::Null);
                AcceptedEvent { properties, ..named }
            });
            // Events of an import are in one partition.
            let batch = Batch { accepted: events.collect(), ..Batch::new(NOON, true) };
            ingest.appender().append(ProjectId(1), batch.into_encoded()).await.unwrap();
            ingest.applied().await;
            let sizes = sizes.take();
            assert_eq!(sizes[0], EVENTS);
            assert!(sizes.len() > 2, "{name} in one batch: {sizes:?}");
            ingest.close(Duration::from_secs(10)).await;
        }
        let stored = match name {
            "$set" => person(&store, ProjectId(1), "d39").await.unwrap().properties,
            _ => group(&store, ProjectId(1), "39").await.properties,
        };
        assert_eq!(stored.matches("\":null").count(), 10_000, "{name}");
    }
}

/// After a read of a chain of merges, the chain is one step long.
#[tokio::test(flavor = "multi_thread")]
async fn chains_of_merges_are_shortened() {
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(directory.path(), &store).await;
    let project = ProjectId(1);
    let mut story: Vec<_> =
        (0..8).map(|n| event("seen", &format!("d{n}"), n, &json!({}))).collect();
    story.extend((0..7).map(|n| {
        event("$create_alias", &format!("d{n}"), 10, &json!({"alias": format!("d{}", n + 1)}))
    }));
    story.push(event("seen", "d0", 20, &json!({})));
    tell(&ingest, project, &story).await;
    let ids = ["d0", "d7"].map(|id| persons::first_id(project, id));
    let found = persons::by_ids(&store, project, &ids[..1], &mut ByteBudget::of(9_999)).await;
    let first = found.unwrap().remove(0);
    let PersonState::Merged(merged) = first.state else { panic!("d0 was merged") };
    assert_eq!(merged.into, ids[1]);
    assert_eq!(person(&store, project, "d0").await.unwrap().distinct_ids.len(), 8);
    ingest.close(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_spoke_to_processing_is_not_stored() {
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(directory.path(), &store).await;
    let project = ProjectId(1);
    let story = [
        event("a", "ada", 0, &json!({"$process_person_profile": true, "$set": {"x": 1}, "n": 1})),
        event("b", "eve", 1, &json!({"$process_person_profile": false, "$set": {"x": 1}, "n": 2})),
    ];
    tell(&ingest, project, &story).await;
    let stored = events::arrivals(&store, project, None, 10).await.unwrap().events;
    let held: BTreeMap<&str, Value> = stored
        .iter()
        .map(|event| (event.event.as_str(), serde_json::from_str(&event.properties).unwrap()))
        .collect();
    assert_eq!(held["a"], json!({"$set": {"x": 1}, "n": 1}));
    assert_eq!(held["b"], json!({"$process_person_profile": false, "n": 2}));
    assert!(person(&store, project, "eve").await.is_none());
    ingest.close(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_in_use_are_noted_once() {
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(directory.path(), &store).await;
    let project = ProjectId(1);
    let properties =
        json!({"price": 2.5, "when": "2026-06-01", "none": null, "$set": {"plan": "pro"}});
    for n in 0..3 {
        tell(&ingest, project, &[event("buy", "ada", n, &properties)]).await;
    }
    let names: Vec<_> = definitions::events(&store, project).await.unwrap();
    assert_eq!(names.iter().map(|seen| seen.name.as_str()).collect::<Vec<_>>(), ["buy"]);
    let found = definitions::properties(&store, project).await.unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|seen| (seen.owner.text(), seen.name.as_str(), seen.kind.text()))
        .collect();
    assert_eq!(
        found,
        [
            ("event", "price", "Numeric"),
            ("event", "when", "DateTime"),
            ("person", "plan", "String")
        ]
    );
    ingest.close(Duration::from_secs(10)).await;
}

/// An event that makes processing fail must not stop the events after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_poison_event_is_skipped_and_shown() {
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let ingest = start(directory.path(), &store).await;
    let project = ProjectId(1);
    let mut events: Vec<_> = (0..40).map(|n| event("buy", "ada", n, &json!({"n": n}))).collect();
    events.insert(17, event(POISON, "ada", 0, &json!({"bad": true})));
    append(&ingest, project, events).await;
    append(&ingest, project, vec![event("buy", "ada", 99, &json!({}))]).await;
    ingest.applied().await;
    let stored = events::arrivals(&store, project, None, 100).await.unwrap().events;
    assert_eq!(stored.len(), 41);
    assert!(stored.iter().all(|event| event.event == "buy"));
    let counts = warnings::counts(&store, project).await.unwrap();
    assert_eq!((counts[0].code.as_str(), counts[0].count), ("not_processed", 1));
    assert_eq!(counts[0].samples[0].payload, r#"{"bad":true}"#);
    ingest.close(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_and_persons_get_the_location_of_the_address() {
    let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
    let locations = Locations::open(&places()).unwrap();
    let ingest = start_with(directory.path(), &store, Some(locations)).await;
    let project = ProjectId(1);
    let address = "203.0.113.7";
    let story = [
        event("a", "ada", 0, &json!({"$ip": address})),
        event("b", "eve", 1, &json!({"$ip": address, "$geoip_disable": true})),
        event("c", "kim", 2, &json!({"$ip": "198.51.100.1"})),
    ];
    tell(&ingest, project, &story).await;
    let stored = events::arrivals(&store, project, None, 10).await.unwrap().events;
    let country = |text: &str| {
        let held: Value = serde_json::from_str(text).unwrap();
        held.get("$geoip_country_code").cloned()
    };
    for event in &stored {
        let expected = (event.event == "a").then(|| json!("WR"));
        assert_eq!(country(&event.properties), expected, "{}", event.event);
    }
    let ada = properties(&person(&store, project, "ada").await.unwrap());
    assert_eq!(ada["$geoip_city_name"], "Weirhaven");
    assert_eq!(ada["$initial_geoip_city_name"], "Weirhaven");
    assert!(properties(&person(&store, project, "eve").await.unwrap()).is_empty());
    ingest.close(Duration::from_secs(10)).await;
}

#[test]
fn persons_of_different_projects_differ() {
    let ids: Vec<PersonId> =
        [1, 2].into_iter().map(|n| persons::first_id(ProjectId(n), "ada")).collect();
    assert_ne!(ids[0], ids[1]);
}
