//! The home page of a project, and where `/` leads.

use serde_json::json;
use weir_testkit::TestApp;

use crate::stored::send;
use crate::traffic::function;
use crate::web::{page, session};

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_counts_events_names_and_persons() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    send(
        &app,
        json!([{"event": "paid", "distinct_id": "ada"}, {"event": "paid", "distinct_id": "grace"},
               {"event": "opened", "distinct_id": "ada"}, {"event": "of no one"}]),
    )
    .await;
    let body = format!("project={}", app.project());
    let found = function(&app, &cookie, "get_overview", &body).await.json();
    for period in ["today", "month"] {
        let counts = (&found[period]["accepted"], &found[period]["dropped"]);
        assert_eq!(counts, (&json!(3), &json!(1)), "{found}");
    }
    let by_name = json!({"names": [["paid", 2], ["opened", 1]], "others": 0});
    assert_eq!(found["by_name"], by_name);
    assert_eq!((&found["active"], &found["is_least"]), (&json!(2), &json!(false)));
    for failing in ["failing_exports", "failing_transformations", "failing_others"] {
        assert_eq!(found[failing], json!(0), "{failing}");
    }
    assert!(!found["changes"].as_array().unwrap().is_empty());
    let overview = format!("/projects/{}", app.project());
    assert_eq!(page(&app, &overview, &cookie).await.status, 200);
    let start = page(&app, "/", &cookie).await;
    assert_eq!(start.header("location"), Some(overview.as_str()));
}
