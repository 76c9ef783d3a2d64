//! GET `…/pipeline_transformation_configs/{id}/logs/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_runs_so_nothing_was_written() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (_, one) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    let answer = owner.get(&format!("{one}logs/")).await;
    let nothing = json!({"count": 0, "next": null, "previous": null, "results": []});
    assert_eq!((answer.status, answer.json()), (200, nothing));
}
