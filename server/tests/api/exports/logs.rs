//! `…/batch_exports/{id}/logs/` and `…/runs/{id}/logs/`.

use super::*;
use weir_model::exports::{LogLevel, LogLine};
use weir_store::exports::logs;

async fn wrote(app: &TestApp, run: &Run, second: i64, level: LogLevel, message: &str) {
    let line = LogLine {
        log_source_id: run.batch_export,
        instance_id: run.id,
        timestamp: run.created_at.plus_seconds(second),
        level,
        message: message.to_owned(),
    };
    logs::add(app.store(), &line, 0).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_up_to_a_thousand_lines() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (export, path) = made(&app, &owner, &paused()).await;
    // A run keeps two hundred lines.
    let mut written = 0;
    for hour in 1..=3 {
        let run = ran(&app, &export, -3600 * hour, Status::Completed).await;
        for second in 0..180 {
            wrote(&app, &run, second, LogLevel::Info, "a line").await;
            written += 1;
        }
    }
    let whole = owner.get(&format!("{path}logs/?limit=1000&offset=0")).await.json();
    assert_eq!(messages(&whole).len(), written);
    assert_eq!((&whole["count"], &whole["next"]), (&json!(written), &Value::Null));
}

fn messages(list: &Value) -> Vec<&str> {
    let results = list["results"].as_array().unwrap();
    results.iter().map(|line| line["message"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_shown_newest_first_and_narrowed() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (export, path) = made(&app, &owner, &paused()).await;
    let (_, other) = made(&app, &owner, &paused()).await;
    let first = ran(&app, &export, -7200, Status::Completed).await;
    let second = ran(&app, &export, -3600, Status::Failed).await;
    wrote(&app, &first, 1, LogLevel::Info, "Exporting 7 events").await;
    wrote(&app, &first, 2, LogLevel::Debug, "A file of 12 bytes").await;
    wrote(&app, &second, 1, LogLevel::Warning, "Tried AGAIN").await;
    wrote(&app, &second, 2, LogLevel::Error, "Given up").await;

    let whole = owner.get(&format!("{path}logs/")).await.json();
    assert_eq!(
        whole["results"][0],
        json!({
            "log_source_id": export["id"],
            "instance_id": second.id,
            "timestamp": second.created_at.plus_seconds(2),
            "level": "ERROR",
            "message": "Given up",
        })
    );
    let all = ["Given up", "Tried AGAIN", "A file of 12 bytes", "Exporting 7 events"];
    assert_eq!(messages(&whole), all);
    assert_eq!((&whole["count"], &whole["next"]), (&json!(4), &Value::Null));
    let of_run = owner.get(&format!("{path}runs/{}/logs", first.id)).await.json();
    assert_eq!(messages(&of_run), all[2..]);
    let last = second.created_at.plus_seconds(2);
    for (query, expected) in [
        (format!("instance_id={}", second.id), &all[..2]),
        ("limit=1".to_owned(), &all[..1]),
        ("limit=0".to_owned(), &all[..]),
        ("limit=9999".to_owned(), &all[..]),
        ("level=ERROR&level=warn".to_owned(), &all[..2]),
        ("level=error,WARNING".to_owned(), &all[..2]),
        ("search=tried+again".to_owned(), &all[1..2]),
        // The bounds themselves are excluded.
        (format!("after={}", second.created_at.plus_seconds(1)), &all[..1]),
        (format!("before={last}&limit=2"), &all[1..3]),
    ] {
        let list = owner.get(&format!("{path}logs/?{query}")).await.json();
        assert_eq!(messages(&list), expected, "{query}");
    }
    assert_eq!(messages(&owner.get(&format!("{other}logs/")).await.json()), Vec::<&str>::new());
    for (query, attr, code) in [
        ("level=FATAL", "level", "invalid_choice"),
        ("after=soon", "after", "invalid_input"),
        ("instance_id=x", "instance_id", "invalid_input"),
    ] {
        let (status, _, found, _, at) = owner.get(&format!("{path}logs/?{query}")).await.error();
        assert_eq!((status, found.as_str(), at.as_deref()), (400, code, Some(attr)));
    }
    // The log lines are deleted with the export.
    assert_eq!(owner.delete(&path).await.status, 204);
    assert_not_found(&owner.get(&format!("{path}logs/")).await);
}
