//! Sequences of events that have the same result in any order of arrival (ING-11,
//! ING-56).

use std::cell::Cell;

use proptest::prelude::*;

use super::*;

/// Sends the events in many orders, in one request and in one request per event, each
/// time to another project. `ends` checks the result.
fn in_any_order(story: &[AcceptedEvent], ends: impl AsyncFn(&Store, ProjectId)) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(16 << 20)
        .build()
        .unwrap();
    let (directory, store, ingest) = runtime.block_on(async {
        let (directory, store) = (tempfile::tempdir().unwrap(), store().await);
        let ingest = start(directory.path(), &store).await;
        (directory, store, ingest)
    });
    let next = Cell::new(1);
    let config = ProptestConfig { cases: 40, failure_persistence: None, ..Default::default() };
    let order = Just((0..story.len()).collect::<Vec<_>>()).prop_shuffle();
    proptest!(config, |(order in order, concurrently in any::<bool>())| {
        let project = ProjectId(next.replace(next.get() + 1));
        let events: Vec<_> = order.iter().map(|index| story[*index].clone()).collect();
        runtime.block_on(async {
            if concurrently {
                append(&ingest, project, events).await;
                ingest.applied().await;
            } else {
                tell(&ingest, project, &events).await;
            }
            assert_eq!(codes(&store, project).await, [], "nothing is refused");
            ends(&store, project).await;
        });
    });
    runtime.block_on(ingest.close(Duration::from_secs(10)));
    drop(directory);
}

/// Asserts that there is one person with these ids and properties, first seen at this
/// time.
async fn assert_one(
    store: &Store,
    project: ProjectId,
    ids: &[&str],
    known: &[(&str, Value)],
    first_seen: i64,
) {
    let all = everybody(store, project).await;
    assert_eq!(all.len(), 1, "one person: {all:?}");
    let one = &all[0];
    assert_eq!(sorted_ids(one), ids);
    assert!(one.is_identified);
    assert_eq!(one.created_at.micros(), NOON + first_seen, "the first event with a profile");
    let known = known.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    assert_eq!(properties(one), known.collect());
    for id in ids {
        assert_eq!(person(store, project, id).await.unwrap().id, one.id, "{id}");
    }
}

/// A visitor views pages, signs in and continues, as a browser sends it.
#[test]
fn rule_11_an_identify_story_ends_the_same_in_any_order() {
    let anonymous = json!({"$process_person_profile": false, "$current_url": "https://a/"});
    let story = [
        event("$pageview", "anon", 0, &anonymous),
        event("$pageview", "anon", 1_000, &json!({"$set": {"seen": true}})),
        event(
            "$identify",
            "ada",
            2_000,
            &json!({"$anon_distinct_id": "anon", "$set": {"plan": "pro"}, "$set_once": {"from": "ad"}}),
        ),
        event("buy", "ada", 3_000, &json!({"$process_person_profile": true, "$set": {"paid": 7}})),
        event("buy", "anon", 4_000, &json!({"late": true})),
    ];
    in_any_order(&story, async |store, project| {
        let known = [
            ("from", json!("ad")),
            ("paid", json!(7)),
            ("plan", json!("pro")),
            ("seen", json!(true)),
        ];
        assert_one(store, project, &["ada", "anon"], &known, 1_000).await;
    });
}

/// A signed-in user gets a second id, and events come under all three ids.
#[test]
fn an_alias_story_ends_the_same_in_any_order() {
    let story = [
        event("$pageview", "anon", 500, &json!({"$set": {"seen": true}})),
        event("$identify", "ada", 1_000, &json!({"$anon_distinct_id": "anon"})),
        event("import", "crm-7", 2_000, &json!({"$set_once": {"from": "crm"}})),
        event("$create_alias", "ada", 3_000, &json!({"alias": "crm-7", "$set": {"linked": 1}})),
        event("buy", "ada", 4_000, &json!({"$set": {"paid": 7}})),
        event("renew", "crm-7", 5_000, &json!({"$set": {"term": 2}})),
    ];
    in_any_order(&story, async |store, project| {
        let known = [
            ("from", json!("crm")),
            ("linked", json!(1)),
            ("paid", json!(7)),
            ("seen", json!(true)),
            ("term", json!(2)),
        ];
        assert_one(store, project, &["ada", "anon", "crm-7"], &known, 500).await;
    });
}

/// Several senders describe and use groups. The first type gets the lower index, so the
/// order may show in the indexes and nowhere else.
#[test]
fn a_group_story_ends_the_same_in_any_order() {
    let identify = |sender: &str, kind: &str, key: &str, set: Value, at| {
        let properties = json!({"$group_type": kind, "$group_key": key, "$group_set": set});
        event("$groupidentify", sender, at, &properties)
    };
    let story = [
        event("buy", "ada", 0, &json!({"$groups": {"company": "acme", "team": "core"}})),
        identify("ada", "company", "acme", json!({"name": "Acme"}), 2_000),
        identify("eve", "company", "acme", json!({"size": 11}), 1_000),
        identify("kim", "company", "tea", json!({"name": "Tea"}), 3_000),
        identify("eve", "team", "core", Value::Null, 4_000),
        event("leave", "kim", 5_000, &json!({"$groups": {"company": "tea"}})),
    ];
    in_any_order(&story, async |store, project| {
        let types = groups::types(store, project).await.unwrap();
        assert_eq!(types.len(), 2, "{types:?}");
        let index = |kind: &str| {
            u8::try_from(types.iter().position(|name| name == kind).expect("a type")).unwrap()
        };
        let mut found = Vec::new();
        for kind in ["company", "team"] {
            let page = groups::page(
                store,
                project,
                index(kind),
                None,
                10,
                ScanLimits::records(100),
                |_| true,
            );
            for group in page.await.unwrap().groups {
                let held: Value = serde_json::from_str(&group.properties).unwrap();
                found.push((kind, group.key, held, group.created_at.micros() - NOON));
            }
        }
        found.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let expected = [
            ("company", "acme".to_owned(), json!({"name": "Acme", "size": 11}), 1_000),
            ("company", "tea".to_owned(), json!({"name": "Tea"}), 3_000),
            ("team", "core".to_owned(), json!({}), 4_000),
        ];
        assert_eq!(found, expected);
        let stored = events::arrivals(store, project, None, 100).await.unwrap().events;
        assert_eq!(stored.len(), 6);
        for (name, kind, key) in
            [("buy", "company", "acme"), ("buy", "team", "core"), ("leave", "company", "tea")]
        {
            let event = stored.iter().find(|event| event.event == name).expect(name);
            let held: Value = serde_json::from_str(&event.properties).unwrap();
            assert_eq!(held[format!("$group_{}", index(kind))], key, "{name}");
        }
    });
}
