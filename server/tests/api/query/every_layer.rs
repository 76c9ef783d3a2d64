//! Questions about events in every layer of the store.

use serde_json::{Value, json};
use weir_server::config::Config;
use weir_testkit::TestApp;

use super::sql::sql;
use super::{each, post, series, trends};
use crate::layers::{assert_all_layers, in_all_layers, large_requests, on_disk};

#[tokio::test(flavor = "multi_thread")]
async fn events_count_in_every_layer_of_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let settings = |config: &mut Config| on_disk(config, &folder);
    let app = TestApp::with_settings_and_options(settings, large_requests).await.set_up().await;
    let caller = app.owner().key(&["query:read"]).await;
    let sent = in_all_layers(&app).await.len();
    let mut sum = series("layer", "sum");
    sum["math_property"] = json!("number");
    let question = json!({
        "kind": "TrendsQuery", "series": [series("layer", "total"), series("layer", "dau"), sum],
        "interval": "day", "trendsFilter": {"display": "BoldNumber"},
        "dateRange": {"date_from": "2026-05-27", "date_to": "2026-05-27"},
    });
    let answer = post(&app, &caller, &json!({"query": question})).await.json();
    let total: usize = (0..sent).sum();
    assert_eq!(each(&answer, "aggregated_value"), [&json!(sent), &json!(1), &json!(total)]);
    assert_all_layers(&app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_have_events_of_every_layer_of_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let settings = |config: &mut Config| on_disk(config, &folder);
    let app = TestApp::with_settings_and_options(settings, large_requests).await.set_up().await;
    let caller = app.owner().key(&["query:read"]).await;
    let sent = in_all_layers(&app).await;
    let total: usize = (0..sent.len()).sum();
    let text = "SELECT count(), sum(properties.number), uniq(uuid), uniq(person_id) FROM events \
                WHERE event = 'layer'";
    let answer = sql(&app, &caller, text).await;
    assert_eq!(answer["results"], json!([[sent.len(), total, sent.len(), 1]]));
    let list = json!({"kind": "EventsQuery", "select": ["uuid", "properties.number"],
        "event": "layer", "limit": 100});
    let answer = post(&app, &caller, &json!({"query": list})).await.json();
    let newest = sent.iter().enumerate().rev();
    let expected: Vec<Value> =
        newest.map(|(number, uuid)| json!([uuid, number.to_string()])).collect();
    assert_eq!(answer["results"], json!(expected));
    assert_all_layers(&app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_events_end_a_question_instead_of_missing_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let settings = |config: &mut Config| on_disk(config, &folder);
    let app = TestApp::with_settings_and_options(settings, large_requests).await.set_up().await;
    let caller = app.owner().key(&["query:read"]).await;
    in_all_layers(&app).await;
    let mut damaged = 0;
    let project = folder.path().join(format!("data/segments/{}", app.project()));
    let partitions = std::fs::read_dir(project).unwrap();
    for partition in partitions.map(|entry| entry.unwrap().path()) {
        // Names of partitions are numbers. The table has files beside them.
        let name = partition.file_name().unwrap().to_str().unwrap().to_owned();
        if name.parse::<u16>().is_err() {
            continue;
        }
        for file in std::fs::read_dir(&partition).unwrap() {
            let file = file.unwrap().path();
            let mut bytes = std::fs::read(&file).unwrap();
            let end = bytes.len() - 8;
            bytes[4..end].fill(0x55);
            std::fs::write(&file, bytes).unwrap();
            damaged += 1;
        }
    }
    assert!(damaged > 0, "there are segments");
    let mut question = trends(series("layer", "dau"));
    question["dateRange"] = json!({"date_from": "2026-05-27", "date_to": "2026-05-27"});
    let answer = post(&app, &caller, &json!({"query": question})).await;
    let detail = "Stored events that the answer needs are damaged. Without them it would be wrong.";
    answer.assert_error(500, "server_error", "damaged_events", detail);
    // Days without these events have their answer.
    question["dateRange"] = json!({"date_from": "2026-06-01", "date_to": "2026-06-02"});
    let answer = post(&app, &caller, &json!({"query": question})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
}
