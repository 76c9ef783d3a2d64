//! The page with the numbers of a site: they are those of the API.

use serde_json::{Value, json};
use weir_testkit::TestApp;

use crate::stored::send;
use crate::traffic::function;
use crate::web::{page, session};

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_site_has_the_numbers_of_the_api() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let view = |id: &str, path: &str, browser: &str| {
        let properties = json!({"$pathname": path, "$session_id": id, "$browser": browser, "utm_source": "news"});
        json!({"event": "$pageview", "distinct_id": id, "properties": properties})
    };
    let events =
        [view("ada", "/", "Chrome"), view("ada", "/tea", "Chrome"), view("bob", "/", "Firefox")];
    send(&app, json!(events)).await;
    let project = app.project();
    let ask = async |more: &str| -> Value {
        let answer = function(&app, &cookie, "get_web", &format!("project={project}{more}")).await;
        assert_eq!(answer.status, 200, "{more}: {:?}", answer.body);
        answer.json()
    };
    let found = ask("").await;
    let values: Vec<&Value> =
        found["numbers"].as_array().unwrap().iter().map(|number| &number["value"]).collect();
    let caller = app.owner().key(&["query:read"]).await;
    let body = json!({"query": {"kind": "WebOverviewQuery"}});
    let of_api = caller.post(&format!("/api/projects/{project}/query/"), &body).await.json();
    let results = of_api["results"].as_array().unwrap();
    for (at, (value, result)) in values.iter().zip(results).enumerate() {
        assert_eq!(value.as_f64(), result["value"].as_f64(), "{at}");
    }
    let counts = [0, 1, 2].map(|at| values[at].as_f64());
    assert_eq!(counts, [Some(2.0), Some(3.0), Some(2.0)]);
    assert_eq!((&found["live"], &found["is_least"]), (&json!(2), &json!(false)));
    let last = found["visitors"].as_array().unwrap().last().unwrap();
    assert_eq!(last[1], 2, "{last}");
    let rows = |table: usize| -> Vec<(Value, Value, Value)> {
        let rows = found["tables"][table]["rows"].as_array().unwrap().iter();
        rows.map(|row| (row["value"].clone(), row["visitors"].clone(), row["views"].clone()))
            .collect()
    };
    let row =
        |value: &str, visitors: u64, views: u64| (json!(value), json!(visitors), json!(views));
    assert_eq!(rows(0), [row("/", 2, 2), row("/tea", 1, 1)]);
    assert!(rows(3).is_empty());

    // Each table has its choices, and each value is a filter.
    let found =
        ask("&selection[pages]=exit&selection[sources]=source&selection[browser]=Chrome").await;
    let first = |table: usize| found["tables"][table]["rows"][0].clone();
    assert_eq!((&first(0)["value"], &first(0)["views"]), (&json!("/tea"), &json!(2)));
    assert_eq!((&first(1)["value"], &first(1)["visitors"]), (&json!("news"), &json!(1)));
    assert_eq!(found["numbers"][0]["value"].as_f64(), Some(1.0));
    let found = ask("&selection[entry]=/tea&selection[range]=dStart").await;
    assert_eq!(found["numbers"][2]["value"].as_f64(), Some(0.0));
    let midnight = found["visitors"][0][0].as_str().unwrap();
    assert!(midnight.ends_with(" 00:00"), "{midnight}");

    let shown = page(&app, &format!("/projects/{project}/web?browser=Chrome"), &cookie).await;
    assert_eq!(shown.status, 200);
    let text = shown.text();
    assert!(text.contains("Remove the filter Browser: Chrome"), "{text}");
    assert!(text.contains("page=/tea"), "{text}");
}
