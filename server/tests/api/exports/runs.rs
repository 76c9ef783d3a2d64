//! `…/batch_exports/{id}/runs/`, and the runs in the representation of their export.

use super::*;

const ENDED: &str = "Only what is starting or running can be cancelled.";

fn ids_of(list: &Value) -> Vec<String> {
    let results = list["results"].as_array().unwrap();
    results.iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_has_one_of_ten_statuses() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (export, path) = made(&app, &owner, &paused()).await;
    for (at, status) in (0..).zip(Status::ALL) {
        ran(&app, &export, at, status).await;
    }
    let shown = owner.get(&path).await.json();
    let runs = shown["latest_runs"].as_array().unwrap();
    let newest_first: Vec<&str> = runs.iter().map(|run| run["status"].as_str().unwrap()).collect();
    assert_eq!(
        newest_first,
        [
            "ContinuedAsNew",
            "Terminated",
            "TimedOut",
            "Cancelled",
            "FailedBilling",
            "FailedRetryable",
            "Failed",
            "Completed",
            "Running",
            "Starting",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_pages_of_a_hundred_newest_first() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (export, path) = made(&app, &owner, &paused()).await;
    let mut expected = Vec::new();
    for at in 0..103 {
        expected.push(ran(&app, &export, at - 1_000, Status::Completed).await.id.to_string());
    }
    expected.reverse();
    let first = owner.get(&format!("{path}runs/?status=Completed")).await.json();
    assert_eq!(ids_of(&first), expected[..100]);
    assert_eq!(first["previous"], Value::Null);
    let next = first["next"].as_str().unwrap();
    assert!(next.contains("status=Completed") && next.contains("cursor="), "{next}");
    let (_, next) = next.split_once("/api/").unwrap();
    let second = owner.get(&format!("/api/{next}")).await.json();
    assert_eq!((ids_of(&second).as_slice(), &second["next"]), (&expected[100..], &Value::Null));
    // In reverse order, without the slash, and below the project.
    let project = format!("{}{}/runs", project_path(&app), export["id"].as_str().unwrap());
    let oldest = owner.get(&format!("{project}?ordering=created_at")).await.json();
    assert_eq!(ids_of(&oldest)[0], expected[102]);
    let (_, next) = oldest["next"].as_str().unwrap().split_once("/api/").unwrap();
    let rest = owner.get(&format!("/api/{next}")).await.json();
    assert_eq!(
        (ids_of(&rest), &rest["next"]),
        (vec![expected[2].clone(), expected[1].clone(), expected[0].clone()], &Value::Null)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_covers_a_week_by_default() {
    const DAY: i64 = 24 * 3600;
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (export, path) = made(&app, &owner, &paused()).await;
    let old = ran(&app, &export, -8 * DAY, Status::Completed).await;
    let failed = ran(&app, &export, -3 * DAY, Status::Failed).await;
    let done = ran(&app, &export, -2 * DAY, Status::Completed).await;
    let last = ran(&app, &export, -DAY, Status::TimedOut).await;
    let list = async |query: &str| {
        let answer = owner.get(&format!("{path}runs/?{query}")).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        ids_of(&answer.json())
    };
    let all = |runs: &[&Run]| runs.iter().map(|run| run.id.to_string()).collect::<Vec<_>>();
    assert_eq!(list("").await, all(&[&last, &done, &failed]));
    assert_eq!(list("after=2026-05-01T00:00:00Z").await, all(&[&last, &done, &failed, &old]));
    // The bounds themselves are included.
    let (from, to) = (failed.created_at, done.created_at);
    assert_eq!(list(&format!("after={from}&before={to}")).await, all(&[&done, &failed]));
    assert_eq!(list("status=Failed").await, all(&[&failed]));
    assert_eq!(list("status=Failed&status=TimedOut").await, all(&[&last, &failed]));
    assert_eq!(list("status=Failed,TimedOut&status=").await, all(&[&last, &failed]));
    assert_eq!(list("status=Running").await, Vec::<String>::new());
    // By interval, with bounds for intervals.
    let by = "ordering=data_interval_start";
    assert_eq!(list(by).await, all(&[&failed, &done, &last]));
    assert_eq!(list(&format!("{by}&after=2026-05-01T00:00:00Z")).await.len(), 3);
    let start = old.data_interval_start.unwrap();
    let wanted = format!("{by}&start={start}&end={}", done.data_interval_end);
    assert_eq!(list(&wanted).await, all(&[&old, &failed, &done]));
    assert_eq!(list("ordering=-data_interval_start").await, all(&[&last, &done, &failed]));
    assert_eq!(list("ordering=unknown").await, all(&[&last, &done, &failed]));

    let refused = async |query: &str| owner.get(&format!("{path}runs/?{query}")).await;
    let time = "Datetime has wrong format. Use one of these formats instead: \
                YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].";
    assert_invalid(&refused("after=soon").await, Some("after"), "invalid_input", time);
    let choice = "\"failed\" is not a valid choice.";
    assert_invalid(&refused("status=failed").await, Some("status"), "invalid_choice", choice);
    let cursor = refused("cursor=x").await;
    cursor.assert_error(404, "invalid_request", "not_found", "Invalid cursor");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_of_its_export_only() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (export, path) = made(&app, &owner, &paused()).await;
    let (_, other) = made(&app, &owner, &paused()).await;
    let made = Run {
        records_completed: Some(7),
        records_total_count: Some(9),
        latest_error: Some("TimedOut: No answer.".to_owned()),
        ..run(&export, -60, Status::Failed)
    };
    create_run(app.store(), &made).await;
    let shown = owner.get(&format!("{path}runs/{}/", made.id)).await.json();
    assert_eq!(shown, serde_json::to_value(&made).unwrap());
    let fields: Vec<&str> = shown.as_object().unwrap().keys().map(String::as_str).collect();
    // The fields of the protocol, `failing_since` and `next_try_at`.
    assert_eq!(fields.len(), 14, "{fields:?}");
    assert_eq!(owner.get(&path).await.json()["latest_runs"], json!([shown]));
    for wrong in [other.as_str(), &path.replace(export["id"].as_str().unwrap(), "x")] {
        assert_not_found(&owner.get(&format!("{wrong}runs/{}/", made.id)).await);
        assert_not_found(
            &owner.post(&format!("{wrong}runs/{}/cancel/", made.id), &json!({})).await,
        );
        assert_not_found(&owner.post(&format!("{wrong}runs/{}/retry/", made.id), &json!({})).await);
        assert_not_found(&owner.get(&format!("{wrong}runs/{}/logs/", made.id)).await);
    }
    let outsider = app.outsider("linus").await.key(&["*"]).await;
    let answer = outsider.get(&format!("{path}runs/")).await;
    answer.assert_error(404, "invalid_request", "not_found", "Organization not found.");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_not_ended_can_be_cancelled_once() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (export, path) = made(&app, &owner, &paused()).await;
    let starting = ran(&app, &export, -60, Status::Starting).await;
    let cancel =
        async |run: &Run| owner.post(&format!("{path}runs/{}/cancel/", run.id), &json!({})).await;
    let answer = cancel(&starting).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"cancelled": true})));
    let shown = owner.get(&format!("{path}runs/{}/", starting.id)).await.json();
    assert_eq!(shown["status"], "Cancelled");
    assert_eq!(shown["finished_at"], "2026-05-28T20:26:40Z");
    assert_invalid(&cancel(&starting).await, None, "invalid_input", ENDED);
    for status in [Status::Completed, Status::Failed, Status::TimedOut] {
        let ended = ran(&app, &export, -30, status).await;
        assert_invalid(&cancel(&ended).await, None, "invalid_input", ENDED);
    }
    let log = format!("/api/organizations/{}/activity_log/", app.organization());
    let entry = owner.get(&log).await.json()["results"][0].clone();
    assert_eq!((&entry["activity"], &entry["item_id"]), (&json!("updated"), &export["id"]));
    let changes = entry["detail"]["changes"].as_array().unwrap();
    assert_eq!(changes[0]["after"], json!(starting.id));
    assert_eq!(
        (&changes[1]["before"], &changes[1]["after"]),
        (&json!("Starting"), &json!("Cancelled"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_retried_whatever_became_of_it() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (export, path) = made(&app, &owner, &paused()).await;
    for status in [Status::Completed, Status::Failed, Status::Cancelled, Status::Running] {
        let run = ran(&app, &export, -60, status).await;
        let answer = owner.post(&format!("{path}runs/{}/retry/", run.id), &json!({})).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        let body = answer.json();
        assert_eq!(body.as_object().unwrap().len(), 1);
        let started = owner
            .get(&format!("{path}backfills/{}/", body["backfill_id"].as_str().unwrap()))
            .await
            .json();
        assert_eq!(started["start_at"], json!(run.data_interval_start));
        assert_eq!(started["end_at"], json!(run.data_interval_end));
        assert_eq!(started["progress"]["total_runs"], 1);
        // The run is unchanged.
        let shown = owner.get(&format!("{path}runs/{}/", run.id)).await.json();
        assert_eq!(shown["status"], status.text());
    }
    let log = format!("/api/organizations/{}/activity_log/", app.organization());
    let entry = owner.get(&log).await.json()["results"][0].clone();
    assert_eq!(entry["activity"], "triggered");
    assert_eq!(entry["detail"]["changes"][0]["field"], "retried_run");
    let run = ran(&app, &export, -60, Status::Failed).await;
    let retry = format!("{path}runs/{}/retry/", run.id);
    assert_eq!(owner.post(&retry, &json!({})).await.status, 200);
    let (status, _, code, ..) = owner.post(&retry, &json!({})).await.error();
    assert_eq!((status, code.as_str()), (429, "too_many_concurrent_backfills"));
}
