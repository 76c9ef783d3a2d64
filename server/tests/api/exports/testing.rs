//! `…/batch_exports/test/`, `…/run_test_step_new/`, `…/{id}/run_test_step/`.

use super::*;
use weir_model::exports::config::SEND_AGAIN;
use weir_model::exports::destinations;

/// An instance that may connect to addresses of this machine.
async fn reaching() -> TestApp {
    let clock = Clock::fixed(Timestamp::from_micros(NOW));
    let settings = |config: &mut weir_server::config::Config| {
        config.egress_allow = "127.0.0.1".parse().unwrap();
    };
    TestApp::with_settings_at(clock, settings).await.set_up().await
}

fn http(receiver: &TestApp, token: &str) -> Value {
    let url = format!("http://{}/batch/", receiver.address());
    json!({"type": "HTTP", "config": {"url": url, "token": token}})
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_has_a_test() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    for path in [path(&app), project_path(&app)] {
        for kind in destinations::NAMES {
            let answer = owner.get(&format!("{path}test/?destination={kind}")).await;
            assert_eq!(answer.status, 200, "{:?}", answer.body);
            let body = answer.json();
            let steps = body["steps"].as_array().unwrap();
            assert_eq!(steps.is_empty(), kind == "NoOp", "{kind}");
            for step in steps {
                assert_eq!(step["result"], Value::Null);
                assert!(!step["name"].as_str().unwrap().is_empty());
            }
        }
    }
    let answer = owner.get(&format!("{}test/", path(&app))).await;
    let required = "This field is required.";
    assert_invalid(&answer, Some("destination"), "required", required);
    let answer = owner.get(&format!("{}test/?destination=Ftp", path(&app))).await;
    let choice = "\"Ftp\" is not a valid choice.";
    assert_invalid(&answer, Some("destination"), "invalid_choice", choice);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_destination_is_tried_step_by_step() {
    let (app, receiver) = (reaching().await, TestApp::with_owner().await);
    let owner = owner(&app).await;
    let path = format!("{}run_test_step_new/", path(&app));
    let run = async |destination: &Value, step: Value| {
        owner.post(&path, &json!({"destination": destination, "step": step})).await
    };
    let good = http(&receiver, receiver.project_key());
    for step in [0, 1] {
        let answer = run(&good, json!(step)).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        assert_eq!(answer.json()["result"], json!({"status": "Passed", "message": null}));
    }
    let names = owner.get(&format!("{}test/?destination=HTTP", super::path(&app))).await.json();
    // No server listens there any more.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{gone}/batch/");
    let closed = json!({"type": "HTTP", "config": {"url": url, "token": "phc_x"}});
    let second = run(&closed, json!("1")).await.json();
    assert_eq!(second["name"], names["steps"][1]["name"]);
    assert_eq!(second["result"]["status"], "Failed");
    assert!(!second["result"]["message"].as_str().unwrap().is_empty());

    // An address that is not allowed is not contacted.
    let inner = json!({"type": "HTTP", "config": {"url": "http://10.1.2.3/batch/", "token": "t"}});
    assert_eq!(run(&inner, json!(0)).await.json()["result"]["status"], "Failed");

    // Fields of an export may be sent too. Without a step the first one runs.
    let whole = json!({"name": "n", "interval": "day", "destination": good});
    assert_eq!(owner.post(&path, &whole).await.json()["result"]["status"], "Passed");
    let nowhere = json!({"type": "NoOp", "config": {}});
    let skipped = run(&nowhere, json!(0)).await.json();
    assert_eq!((&skipped["name"], &skipped["result"]["status"]), (&Value::Null, &json!("Skipped")));

    let of = |model: &str| json!({"destination": good, "model": model});
    assert_eq!(owner.post(&path, &of("events")).await.json()["result"]["status"], "Passed");
    let detail = "\"people\" is not a valid choice.";
    assert_invalid(
        &owner.post(&path, &of("people")).await,
        Some("model"),
        "invalid_choice",
        detail,
    );

    let steps = "This test has the steps 0 to 1.";
    assert_invalid(&run(&good, json!(2)).await, Some("step"), "invalid_input", steps);
    let required = "This field is required.";
    let answer = run(&json!({"type": "HTTP", "config": {}}), json!(0)).await;
    assert_invalid(&answer, Some("destination__config__url"), "required", required);
    let answer = owner.post(&path, &json!({})).await;
    assert_invalid(&answer, Some("destination"), "required", required);
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_an_export_are_tried_only_where_it_goes() {
    let (app, receiver) = (reaching().await, TestApp::with_owner().await);
    let other = TestApp::with_owner().await;
    let owner = owner(&app).await;
    let body = with(paused(), "destination", http(&receiver, receiver.project_key()));
    let (export, path) = made(&app, &owner, &body).await;
    let run = async |body: Value| owner.post(&format!("{path}run_test_step/"), &body).await;
    let passed = json!({"status": "Passed", "message": null});
    assert_eq!(run(json!({"step": 1})).await.json()["result"], passed);
    let config = |config: Value| json!({"step": 1, "destination": {"config": config}});
    let answer = run(config(json!({"exclude_events": ["x"]}))).await.json();
    assert_eq!(answer["result"], passed);
    // Another address does not get the secrets of this one.
    let elsewhere = http(&other, "x")["config"]["url"].clone();
    let answer = run(config(json!({"url": elsewhere}))).await;
    assert_invalid(&answer, Some("destination__config__token"), "required", SEND_AGAIN);
    let sent = json!({"url": elsewhere, "token": other.project_key()});
    assert_eq!(run(config(sent)).await.json()["result"], passed);
    let nowhere = json!({"destination": {"type": "NoOp", "config": {}}});
    assert_eq!(run(nowhere).await.json()["result"]["status"], "Skipped");
    // The export is unchanged.
    assert_eq!(owner.get(&path).await.json(), export);
    let missing = path.replace(export["id"].as_str().unwrap(), "x");
    assert_not_found(&owner.post(&format!("{missing}run_test_step/"), &json!({})).await);
}
