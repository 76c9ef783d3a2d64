//! Lists of the persons behind numbers, asked over HTTP.

use serde_json::{Value, json};
use weir_testkit::{Caller, TestApp};

use crate::query::{DAYS, berlin, fill, post, series, trends};
use crate::stored::send;

fn dated(mut question: Value) -> Value {
    question["dateRange"] = json!({"date_from": DAYS[0], "date_to": DAYS[2]});
    question
}

/// The answer to a question for the persons of a number.
async fn list(app: &TestApp, caller: &Caller, source: &Value, members: &Value) -> Value {
    let mut query = json!({"kind": "ActorsQuery", "source": source});
    query.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    let answer = post(app, caller, &json!({"query": query})).await;
    assert_eq!(answer.status, 200, "{query}: {:?}", answer.body);
    answer.json()
}

fn insight(source: Value, members: &Value) -> Value {
    let mut node = json!({"kind": "InsightActorsQuery", "source": dated(source)});
    node.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    node
}

/// The distinct ids of the persons of a list, sorted.
fn ids(answer: &Value) -> Vec<Vec<String>> {
    let rows = answer["results"].as_array().unwrap().iter();
    let mut ids: Vec<Vec<String>> = rows
        .map(|row| {
            let ids = row[0]["distinct_ids"].as_array().unwrap().iter();
            let mut ids: Vec<String> = ids.map(|id| id.as_str().unwrap().to_owned()).collect();
            ids.sort();
            ids
        })
        .collect();
    ids.sort();
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn each_number_leads_to_its_persons() {
    let (app, caller) = berlin().await;
    fill(&app).await;
    let view = || json!({"kind": "EventsNode", "event": "$pageview"});
    let ada = ["ada", "anon"].map(str::to_owned).to_vec();
    let bob = vec!["bob".to_owned()];
    let both = vec![ada.clone(), bob.clone()];
    let views = || trends(series("$pageview", "dau"));
    let mut pages = views();
    pages["breakdownFilter"] = json!({"breakdown": "page", "breakdown_type": "event"});
    let funnel = json!({"kind": "FunnelsQuery", "series": [series("buy", "total"), view()]});
    let step = |step: i64| json!({"kind": "FunnelsActorsQuery", "source": dated(funnel.clone()), "funnelStep": step});
    let entity = json!({"id": "$pageview", "type": "events"});
    let retention = || {
        json!({"kind": "RetentionQuery", "retentionFilter": {
            "retentionType": "retention_recurring", "period": "Day", "totalIntervals": 3,
            "targetEntity": entity, "returningEntity": entity,
        }})
    };
    let lifecycle = || json!({"kind": "LifecycleQuery", "series": [view()], "interval": "day"});
    let stickiness = || json!({"kind": "StickinessQuery", "series": [view()], "interval": "day"});
    let paths = json!({"kind": "PathsQuery", "pathsFilter": {
        "includeEventTypes": ["$pageview"], "pathStartKey": "1_https://shop.example/home",
        "pathEndKey": "2_https://shop.example/tea",
    }});
    for (source, expected) in [
        (insight(views(), &json!({"day": DAYS[0]})), vec![ada.clone()]),
        (insight(views(), &json!({"day": DAYS[1]})), both.clone()),
        (insight(pages.clone(), &json!({"breakdown": "tea"})), vec![bob.clone()]),
        (insight(pages, &json!({"day": DAYS[2], "breakdown": "home"})), vec![bob.clone()]),
        (step(1), both.clone()),
        (step(2), both.clone()),
        (step(-2), vec![]),
        (insight(retention(), &json!({"interval": 1})), both.clone()),
        (insight(retention(), &json!({"interval": 1, "appearance": 1})), vec![bob.clone()]),
        (insight(lifecycle(), &json!({"day": DAYS[2], "status": "dormant"})), vec![ada]),
        (insight(lifecycle(), &json!({"day": DAYS[1], "status": "new"})), vec![bob.clone()]),
        (insight(stickiness(), &json!({"day": 2})), both),
        (insight(paths, &json!({})), vec![bob]),
    ] {
        let answer = list(&app, &caller, &source, &json!({})).await;
        assert_eq!(ids(&answer), expected, "{source}");
        assert_eq!(answer["actors_count"], json!(expected.len()), "{source}");
        assert_eq!((&answer["hasMore"], &answer["limit"]), (&json!(false), &json!(100)));
        assert_eq!(answer["columns"], json!(["actor", "id", "created_at"]));
        assert_eq!((&answer["types"], &answer["hogql"]), (&Value::Null, &Value::Null));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_persons_has_pages_counts_and_records() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["query:read"]).await;
    let event = |id: &str, properties: Value| json!({"event": "order", "distinct_id": id, "properties": properties});
    let company = |key: &str| json!({"$groups": {"company": key}});
    let set = json!({"$set": {"tier": "gold"}, "$groups": {"company": "acme"}});
    let silent = json!({"$process_person_profile": false});
    send(
        &app,
        json!([
            event("ada", set),
            event("ada", company("corp")),
            event("bob", company("acme")),
            event("eve", silent),
            {"event": "$groupidentify", "distinct_id": "ada", "properties":
                {"$group_type": "company", "$group_key": "acme", "$group_set": {"size": 12}}},
        ]),
    )
    .await;
    let source = json!({"kind": "InsightActorsQuery", "source": trends(series("order", "total"))});
    let members = json!({"select": ["person", "event_count"], "orderBy": ["event_count DESC"]});
    let answer = list(&app, &caller, &source, &members).await;
    assert_eq!(answer["actors_count"], 3);
    assert_eq!(answer["results"][0][0]["properties"]["tier"], "gold");
    assert_eq!(answer["results"][0][1], 2);
    // The events of Eve came without a person.
    assert_eq!(answer["missing_actors_count"], 1);
    let rows = answer["results"].as_array().unwrap();
    let eve = rows.iter().find(|row| row[0]["distinct_ids"] == json!(["eve"])).unwrap();
    assert_eq!((&eve[0]["created_at"], &eve[1]), (&Value::Null, &json!(1)));

    let mut found = Vec::new();
    for (offset, has_more) in [(0, true), (2, false)] {
        let members = json!({"select": ["id"], "limit": 2, "offset": offset});
        let page = list(&app, &caller, &source, &members).await;
        assert_eq!((&page["hasMore"], &page["offset"]), (&json!(has_more), &json!(offset)));
        found.extend(page["results"].as_array().unwrap().clone());
    }
    let all = list(&app, &caller, &source, &json!({"select": ["id"]})).await;
    assert_eq!(all["results"], json!(found));

    let mut groups = series("order", "unique_group");
    groups["math_group_type_index"] = json!(0);
    let source = json!({"kind": "InsightActorsQuery", "source": trends(groups)});
    let answer = list(&app, &caller, &source, &json!({"select": ["group", "event_count"]})).await;
    let acme = &answer["results"][0];
    assert_eq!((&acme[0]["group_key"], &acme[1]), (&json!("acme"), &json!(2)));
    assert_eq!(acme[0]["group_properties"], json!({"size": 12}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_is_not_there_is_refused() {
    let (app, caller) = berlin().await;
    fill(&app).await;
    for (members, attr) in
        [(json!({"day": "2020-01-01"}), "source__day"), (json!({"series": 7}), "source__series")]
    {
        let source = insight(trends(series("buy", "total")), &members);
        let query = json!({"kind": "ActorsQuery", "source": source});
        let (status, _, _, detail, at) =
            post(&app, &caller, &json!({"query": query})).await.error();
        assert_eq!((status, at.as_deref()), (400, Some(attr)), "{detail}");
    }
    for site in [
        json!({"kind": "WebOverviewQuery"}),
        json!({"kind": "WebStatsTableQuery", "breakdownBy": "Page"}),
        json!({"kind": "WebTrendsQuery", "metrics": ["UniqueUsers"]}),
    ] {
        let query = json!({"kind": "ActorsQuery", "source": insight(site, &json!({}))});
        let answer = post(&app, &caller, &json!({"query": query})).await;
        let detail = "The persons behind numbers of a site cannot be listed.";
        let attr = Some("source__source__kind");
        answer.assert_field_error(400, "validation_error", "invalid_choice", detail, attr);
    }
}
