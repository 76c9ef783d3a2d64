//! POST `…/batch_exports/{id}/backfill/`.

use super::*;
use crate::stored::send;

#[tokio::test(flavor = "multi_thread")]
async fn a_past_range_is_exported_again() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (export, path) = made(&app, &owner, &with(s3(), "paused", json!(true))).await;
    let backfill = format!("{path}backfill/");
    let answer = owner
        .post(&backfill, &json!({"start_at": "2026-05-01", "end_at": "2026-05-04T12:00:00+00:00"}))
        .await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let mut body = answer.json();
    let started = body.as_object_mut().unwrap().remove("backfill_id").unwrap();
    // The export is unchanged, and the bounds are not its own.
    assert_eq!(body, export);
    let found = stored(&app, &export).await;
    assert_eq!((json!(found[0].id), found[0].progress.unwrap().total_runs), (started, 4));
    let log = format!("/api/organizations/{}/activity_log/", app.organization());
    assert_eq!(owner.get(&log).await.json()["results"][0]["activity"], "triggered");

    // From the first event to the last interval boundary.
    assert_eq!(owner.post(&backfill, &json!({})).await.status, 200);
    let found = stored(&app, &export).await;
    let whole = found.iter().find(|row| row.start_at.is_none()).unwrap();
    assert_eq!((whole.end_at.to_string().as_str(), whole.progress), ("2026-05-28T00:00:00Z", None));
}

#[tokio::test(flavor = "multi_thread")]
async fn bounds_are_checked() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (_, path) = made(&app, &owner, &s3()).await;
    let backfill = format!("{path}backfill/");
    let form = "Write the bounds of a backfill as ISO 8601 times with an offset, such as \
                2026-08-01T00:00:00+00:00, or as dates.";
    for (body, attr, detail) in [
        (json!({"start_at": "2026-05-01T00:00:00"}), "start_at", form),
        (json!({"start_at": "yesterday"}), "start_at", form),
        (json!({"end_at": ""}), "end_at", form),
        (
            json!({"end_at": "2026-05-29"}),
            "end_at",
            "The end of a backfill must not be in the future.",
        ),
        (
            json!({"start_at": "2026-05-02", "end_at": "2026-05-01"}),
            "start_at",
            "The start of a backfill must be before its end.",
        ),
    ] {
        let answer = owner.post(&backfill, &body).await;
        assert_invalid(&answer, Some(attr), "invalid_input", detail);
    }
    let answer = owner.post(&backfill, &json!({"start_at": []})).await;
    assert_invalid(&answer, Some("start_at"), "invalid_input", "Not a valid string.");
}

#[tokio::test(flavor = "multi_thread")]
async fn five_run_at_a_time() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    // A backfill without events ends when the engine checks it.
    let event = json!({"event": "a", "distinct_id": "b", "timestamp": "2026-05-10T00:00:00Z"});
    send(&app, json!([event])).await;
    let (_, path) = made(&app, &owner, &s3()).await;
    let backfill = format!("{path}backfill/");
    for _ in 0..5 {
        assert_eq!(owner.post(&backfill, &json!({"start_at": "2026-05-01"})).await.status, 200);
    }
    let answer = owner.post(&backfill, &json!({"start_at": "2026-05-01"})).await;
    let detail = "The project has 5 backfills that are not done yet. Wait for one of them, or \
                  cancel it.";
    answer.assert_error(429, "throttled_error", "too_many_concurrent_backfills", detail);
    assert_eq!(answer.header("retry-after"), Some("60"));
}

/// A client sends back the object that it has read.
#[tokio::test(flavor = "multi_thread")]
async fn the_window_of_an_export_is_no_bound_of_its_backfill() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let window = with(s3(), "start_at", json!("2026-05-20T00:00:00Z"));
    let window = with(window, "end_at", json!("2026-12-31T00:00:00Z"));
    let (export, path) = made(&app, &owner, &window).await;
    let answer = owner.post(&format!("{path}backfill/"), &export).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let found = stored(&app, &export).await;
    let bounds = (found[0].start_at, found[0].end_at.to_string());
    assert_eq!(bounds, (None, "2026-05-28T00:00:00Z".to_owned()));
    // A changed bound in it has an effect.
    let begins = with(export, "start_at", json!("2026-05-25T00:00:00Z"));
    let answer = owner.post(&format!("{path}backfills/"), &begins).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    let late = with(begins, "end_at", json!("2027-01-01T00:00:00Z"));
    let answer = owner.post(&format!("{path}backfill/"), &late).await;
    let detail = "The end of a backfill must not be in the future.";
    assert_invalid(&answer, Some("end_at"), "invalid_input", detail);
}
