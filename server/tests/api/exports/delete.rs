//! DELETE `…/batch_exports/{id}/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn it_is_gone_everywhere() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (export, path) = made(&app, &owner, &s3()).await;
    let answer = owner.delete(&path).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    assert_not_found(&owner.get(&path).await);
    assert_not_found(&owner.delete(&path).await);
    assert_not_found(&owner.patch(&path, &json!({"name": ""})).await);
    for action in ["backfill", "pause", "unpause"] {
        assert_not_found(&owner.post(&format!("{path}{action}/"), &json!({})).await);
    }
    for list in [super::path(&app), project_path(&app)] {
        assert_eq!(owner.get(&list).await.json()["count"], 0);
    }
    let log = format!("/api/organizations/{}/activity_log/", app.organization());
    let newest = owner.get(&log).await.json()["results"][0].clone();
    assert_eq!((&newest["activity"], &newest["item_id"]), (&json!("deleted"), &export["id"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_the_organization_takes_them_along() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let home = owner.post("/api/organizations/", &json!({"name": "Home"})).await.json();
    let home = format!("/api/organizations/{}/", home["id"].as_str().unwrap());
    let path = format!("{home}batch_exports/");
    let made = owner.post(&path, &postgres()).await.json();
    assert_eq!(owner.delete(&home).await.status, 204);
    let id = weir_model::BatchExportId(made["id"].as_str().unwrap().parse().unwrap());
    let of = weir_model::OrganizationId(
        home.trim_end_matches('/').rsplit('/').next().unwrap().parse().unwrap(),
    );
    assert!(weir_store::exports::rows(app.store(), of, &[id]).await.unwrap().is_empty());
    let left = weir_store::exports::Of::Organization(of);
    assert!(weir_store::exports::ordered(app.store(), left).await.unwrap().is_empty());
}
