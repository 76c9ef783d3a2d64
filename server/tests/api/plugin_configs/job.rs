//! POST `…/pipeline_transformation_configs/{id}/job/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_job_waits_to_be_run() {
    let (app, clock) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (config, one) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    let path = format!("{one}job/");
    let full = json!({"job": {"type": "import", "payload": {"day": 1}, "operation": "stop"}});
    for body in [json!({"job": {"type": "import"}}), full] {
        let answer = owner.post(&path, &body).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        assert_eq!(answer.json()["id"], config["id"]);
        clock.advance(1);
    }
    let triggered = |operation: &str| {
        let changes = json!({"job": [null, "import"], "operation": [null, operation]});
        ("job_triggered".to_owned(), changes)
    };
    let entries = audit_entries(&app, &owner, &config).await;
    assert_eq!(entries[1..], [triggered("start"), triggered("stop")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_job_nothing_happens() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (config, one) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    for body in [json!({}), json!({"job": null}), json!({"plugin": 1, "order": 9, "name": "N"})] {
        let answer = owner.post(&format!("{one}job/"), &body).await;
        assert_eq!((answer.status, answer.json()), (200, config.clone()), "{body}");
    }
    assert_eq!(audit_entries(&app, &owner, &config).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (config, one) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    for (job, attr, code, detail) in [
        (json!({}), "job__type", "required", "This field is required."),
        (json!({"payload": {}}), "job__type", "required", "This field is required."),
        (json!({"type": null}), "job__type", "null", "This field may not be null."),
        (json!({"type": 7}), "job__type", "invalid_input", "Not a valid string."),
        (
            json!({"type": "export"}),
            "job__type",
            "invalid_choice",
            "\"export\" is not a valid choice.",
        ),
        (
            json!("import"),
            "job__non_field_errors",
            "invalid_input",
            "Invalid data. Expected a dictionary, but got str.",
        ),
        (
            json!({"type": "import", "payload": [1]}),
            "job__payload",
            "not_a_dict",
            "Expected a dictionary of items but got type \"list\".",
        ),
    ] {
        let answer = owner.post(&format!("{one}job/"), &json!({"job": job})).await;
        assert_invalid(&answer, Some(attr), code, detail);
    }
    assert_eq!(audit_entries(&app, &owner, &config).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_the_code_has_will_do_too() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let source = "export function onEvent() {}\nexport const jobs = { brew() {} }";
    let plugin = written(&app, &owner, &json!({"index.js": source})).await;
    let (_, one) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    let job = |kind: &str| json!({"job": {"type": kind}});
    assert_eq!(owner.post(&format!("{one}job/"), &job("brew")).await.status, 200);
    let answer = owner.post(&format!("{one}job/"), &job("stir")).await;
    assert_invalid(&answer, Some("job__type"), "invalid_choice", "\"stir\" is not a valid choice.");
}
