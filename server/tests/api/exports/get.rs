//! GET `…/batch_exports/{id}/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn one_export_by_either_path() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (export, path) = made(&app, &owner, &s3()).await;
    assert_eq!(owner.get(&path).await.json(), export);
    let id = export["id"].as_str().unwrap();
    assert_eq!(owner.get(&format!("{}{id}", project_path(&app))).await.json(), export);
    let upper = path.replace(id, &id.to_uppercase());
    assert_eq!(owner.get(&upper).await.json(), export);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_elsewhere_is_not_here() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (export, path) = made(&app, &owner, &s3()).await;
    let id = export["id"].as_str().unwrap();
    let outsider = app.outsider("linus").await.key(&["*"]).await;
    let home = outsider.post("/api/organizations/", &json!({"name": "Home"})).await.json();
    let foreign =
        format!("/api/organizations/{}/batch_exports/{id}/", home["id"].as_str().unwrap());
    assert_not_found(&outsider.get(&foreign).await);
    let answer = outsider.get(&path).await;
    answer.assert_error(404, "invalid_request", "not_found", "Organization not found.");
    for junk in ["x", "00000000-0000-0000-0000-000000000000", &id.replace('-', "")] {
        assert_not_found(&owner.get(&path.replace(id, junk)).await);
    }
}

/// A run whose attempts fail has not ended, but its export is failing.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_says_since_when_it_fails_and_when_it_is_tried_again() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (export, path) = made(&app, &owner, &s3()).await;
    for name in ["latest_error", "failing_since", "next_try_at"] {
        assert_eq!(export.get(name), Some(&Value::Null), "{name}");
    }
    let completed = ran(&app, &export, 1, Status::Completed).await;
    let (since, next) =
        (completed.created_at.plus_seconds(60), completed.created_at.plus_seconds(180));
    let error = "ConnectionRefused: No connection is accepted at this host and port.";
    let retried = Run {
        latest_error: Some(error.to_owned()),
        failing_since: Some(since),
        next_try_at: Some(next),
        ..run(&export, 3_601, Status::Running)
    };
    create_run(app.store(), &retried).await;
    let shown = owner.get(&path).await.json();
    for shown in [
        &shown,
        &shown["latest_runs"][0],
        &owner.get(&super::path(&app)).await.json()["results"][0],
    ] {
        assert_eq!(shown["latest_error"], error);
        assert_eq!(shown["failing_since"], since.to_string());
        assert_eq!(shown["next_try_at"], next.to_string());
    }
}
