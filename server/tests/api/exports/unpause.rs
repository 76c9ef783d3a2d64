//! POST `…/batch_exports/{id}/unpause/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_missed_is_exported_when_asked_for() {
    let (app, clock) = app().await;
    let owner = owner(&app).await;
    let (export, path) = made(&app, &owner, &with(s3(), "interval", json!("hour"))).await;
    let unpause = format!("{path}unpause/");
    // The export is not paused, so nothing happens.
    assert_eq!(owner.post(&unpause, &json!({"backfill": true})).await.json(), export);

    owner.post(&format!("{path}pause/"), &json!({})).await;
    clock.advance(2 * 3600);
    let answer = owner.post(&unpause, &json!({"backfill": "maybe"})).await;
    assert_invalid(&answer, Some("backfill"), "invalid_input", "Must be a valid boolean.");
    let answer = owner.post(&unpause, &json!({"backfill": true})).await.json();
    assert_eq!(
        (&answer["paused"], &answer["last_paused_at"]),
        (&json!(false), &json!("2026-05-28T20:26:40Z"))
    );
    let found = stored(&app, &export).await;
    assert_eq!(found.len(), 1);
    assert_eq!(answer["backfill_id"], json!(found[0].id));
    // Paused at 20:26:40: the interval since 20:00 had no run either.
    assert_eq!(found[0].start_at, Timestamp::parse("2026-05-28T20:00:00Z"));
    assert_eq!(found[0].end_at, Timestamp::from_micros(NOW).plus_seconds(2 * 3600));
    assert_eq!(found[0].progress.unwrap().total_runs, 3);
    // Intervals that ended during the pause have no other runs.
    let row = weir_store::exports::find(app.store(), id(&export)).await.unwrap().unwrap();
    let pause = row.backfilled.0.unwrap();
    assert_eq!((Some(pause.since), pause.until), (row.last_paused_at, found[0].end_at));

    owner.post(&format!("{path}pause/"), &json!({})).await;
    let answer = owner.post(&unpause, &json!({})).await.json();
    assert_eq!((&answer["paused"], answer.get("backfill_id")), (&json!(false), None));
    let found = stored(&app, &export).await;
    assert_eq!(found.len(), 1);
}
