//! `…/batch_exports/{id}/backfills/`.

use super::*;
use crate::web::{page, session};

#[tokio::test(flavor = "multi_thread")]
async fn a_backfill_is_started_and_shown() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (export, path) = made(&app, &owner, &paused()).await;
    let bounds = json!({"start_at": "2026-05-01", "end_at": "2026-05-04T12:00:00+00:00"});
    let answer = owner.post(&format!("{path}backfills/"), &bounds).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    let started = answer.json();
    assert_eq!(started.as_object().unwrap().len(), 1);
    let id = started["backfill_id"].as_str().unwrap();
    let shown = owner.get(&format!("{path}backfills/{id}/")).await.json();
    assert_eq!(
        shown,
        json!({
            "id": id,
            "team": app.project(),
            "batch_export": export["id"],
            "start_at": "2026-05-01T00:00:00Z",
            "end_at": "2026-05-04T12:00:00Z",
            "status": "Starting",
            "created_at": "2026-05-28T20:26:40Z",
            "finished_at": null,
            "last_updated_at": "2026-05-28T20:26:40Z",
            "progress": {"total_runs": 4, "finished_runs": 0, "progress": 0.0},
            "total_records_count": null,
            "adjusted_start_at": null,
        })
    );
    let list = owner.get(&format!("{path}backfills")).await.json();
    assert_eq!(list, json!({"next": null, "previous": null, "results": [shown]}));
    // The other path for backfills has the same rules.
    let answer = owner.post(&format!("{path}backfills/"), &json!({"start_at": "soon"})).await;
    let (status, _, code, _, attr) = answer.error();
    let expected = (400, "invalid_input", Some("start_at"));
    assert_eq!((status, code.as_str(), attr.as_deref()), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_pages_of_fifty_newest_first() {
    let (app, clock) = app().await;
    let owner = owner(&app).await;
    let (export, path) = made(&app, &owner, &paused()).await;
    let backfills = format!("{path}backfills/");
    let mut expected = Vec::new();
    for _ in 0..52 {
        clock.advance(1);
        let answer = owner.post(&backfills, &json!({"start_at": "2026-05-01"})).await;
        let id = answer.json()["backfill_id"].as_str().unwrap().to_owned();
        let cancelled = owner.post(&format!("{backfills}{id}/cancel/"), &json!({})).await;
        assert_eq!(cancelled.status, 200, "{:?}", cancelled.body);
        expected.push(id);
    }
    expected.reverse();
    let ids = |list: &Value| -> Vec<String> {
        let results = list["results"].as_array().unwrap();
        results.iter().map(|backfill| backfill["id"].as_str().unwrap().to_owned()).collect()
    };
    let first = owner.get(&backfills).await.json();
    assert_eq!((ids(&first).as_slice(), &first["previous"]), (&expected[..50], &Value::Null));
    let (_, next) = first["next"].as_str().unwrap().split_once("/api/").unwrap();
    let second = owner.get(&format!("/api/{next}")).await.json();
    assert_eq!((ids(&second).as_slice(), &second["next"]), (&expected[50..], &Value::Null));
    // The file of the page has all of them.
    let id = export["id"].as_str().unwrap();
    let file = format!("/_csv/organizations/{}/exports/{id}/backfill", app.organization());
    let file = page(&app, &file, &session(&app).await).await.text();
    assert!(file.replace('"', "").starts_with("id,start,end,status,"), "{file}");
    assert_eq!(file.lines().count(), 53, "{file}");
    let cursor = owner.get(&format!("{backfills}?cursor=x")).await;
    cursor.assert_error(404, "invalid_request", "not_found", "Invalid cursor");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_not_ended_can_be_cancelled_once() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (export, path) = made(&app, &owner, &paused()).await;
    let (_, other) = made(&app, &owner, &paused()).await;
    let answer = owner.post(&format!("{path}backfills/"), &json!({})).await.json();
    let id = answer["backfill_id"].as_str().unwrap();
    assert_not_found(&owner.get(&format!("{other}backfills/{id}/")).await);
    assert_not_found(&owner.post(&format!("{other}backfills/{id}/cancel/"), &json!({})).await);
    let cancel = format!("{path}backfills/{id}/cancel/");
    let answer = owner.post(&cancel, &json!({})).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"cancelled": true})));
    let shown = owner.get(&format!("{path}backfills/{id}/")).await.json();
    assert_eq!((&shown["status"], &shown["progress"]), (&json!("Cancelled"), &Value::Null));
    assert_eq!(shown["finished_at"], "2026-05-28T20:26:40Z");
    let detail = "Only what is starting or running can be cancelled.";
    assert_invalid(&owner.post(&cancel, &json!({})).await, None, "invalid_input", detail);
    let log = format!("/api/organizations/{}/activity_log/", app.organization());
    let entry = owner.get(&log).await.json()["results"][0].clone();
    assert_eq!((&entry["activity"], &entry["item_id"]), (&json!("updated"), &export["id"]));
    assert_eq!(entry["detail"]["changes"][1]["field"], "backfill_status");
}
