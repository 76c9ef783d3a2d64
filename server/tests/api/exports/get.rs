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
    let stranger = app.stranger("linus").await.key(&["*"]).await;
    let home = stranger.post("/api/organizations/", &json!({"name": "Home"})).await.json();
    let foreign =
        format!("/api/organizations/{}/batch_exports/{id}/", home["id"].as_str().unwrap());
    assert_not_found(&stranger.get(&foreign).await);
    let answer = stranger.get(&path).await;
    answer.assert_error(404, "invalid_request", "not_found", "Organization not found.");
    for junk in ["x", "00000000-0000-0000-0000-000000000000", &id.replace('-', "")] {
        assert_not_found(&owner.get(&path.replace(id, junk)).await);
    }
}
