//! POST `…/batch_exports/{id}/pause/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn pausing_notes_when_and_does_so_once() {
    let (app, clock) = app().await;
    let owner = owner(&app).await;
    let (before, path) = made(&app, &owner, &s3()).await;
    clock.advance(60);
    let pause = format!("{path}pause/");
    // Fields of an export are ignored here.
    let answer = owner.post(&pause, &json!({"name": "Other", "interval": "never"})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let paused = answer.json();
    let mut expected = before.clone();
    expected["paused"] = json!(true);
    expected["last_paused_at"] = json!("2026-05-28T20:27:40Z");
    expected["last_updated_at"] = json!("2026-05-28T20:27:40Z");
    assert_eq!(paused, expected);
    clock.advance(60);
    assert_eq!(owner.post(&pause, &json!({})).await.json(), paused);
    assert_eq!(owner.get(&path).await.json(), paused);
    let reader = app.owner().key(&["batch_export:read"]).await;
    let detail = "API key missing required scope 'batch_export:write'";
    let answer = reader.post(&pause, &json!({})).await;
    answer.assert_error(403, "authentication_error", "permission_denied", detail);
}
