//! Codes and texts of field validation (API-7), and lenient input (API-9).

use http::Method;
use serde_json::{Value, json};
use weir_testkit::{Caller, TestApp};

async fn refused(caller: &Caller, body: Value, code: &str, detail: &str, attr: &str) {
    let answer = caller.post("/api/organizations/", &body).await;
    answer.assert_field_error(400, "validation_error", code, detail, Some(attr));
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_organizations() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let cases = [
        (json!({}), "required", "This field is required."),
        (json!({"name": null}), "null", "This field may not be null."),
        (json!({"name": ""}), "blank", "This field may not be blank."),
        (json!({"name": "  "}), "blank", "This field may not be blank."),
        (
            json!({"name": "x".repeat(65)}),
            "max_length",
            "Ensure this field has no more than 64 characters.",
        ),
        (json!({"name": ["a"]}), "invalid_input", "Not a valid string."),
        (json!({"name": {}}), "invalid_input", "Not a valid string."),
        (json!({"name": true}), "invalid_input", "Not a valid string."),
        (
            json!({"name": "a\u{0}b"}),
            "null_characters_not_allowed",
            "Null characters are not allowed.",
        ),
    ];
    for (body, code, detail) in cases {
        refused(&caller, body, code, detail, "name").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn booleans_of_organizations() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let mails = "is_member_join_email_enabled";
    let wrong = "Must be a valid boolean.";
    for value in [json!("maybe"), json!(2), json!([]), json!({})] {
        refused(&caller, json!({"name": "a", mails: value}), "invalid_input", wrong, mails).await;
        let twice = json!({"name": "a", "enforce_2fa": value});
        refused(&caller, twice, "invalid_input", wrong, "enforce_2fa").await;
    }
    let null = "This field may not be null.";
    refused(&caller, json!({"name": "a", mails: null}), "null", null, mails).await;
    for (value, expected) in [
        (json!("Yes"), true),
        (json!(0), false),
        (json!("off"), false),
        (json!("T"), true),
        (json!(null), false),
        (json!(""), false),
        (json!("null"), false),
    ] {
        let body = json!({"name": "a", "enforce_2fa": value});
        let answer = caller.post("/api/organizations/", &body).await;
        assert_eq!(answer.json()["enforce_2fa"], json!(expected), "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_field_in_declaration_order_is_reported() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let call = caller.call(Method::POST, "/api/organizations/");
    let body = r#"{"enforce_2fa":"x","is_member_join_email_enabled":"x","name":""}"#;
    let answer = call.header("content-type", "application/json").body(body).send().await;
    assert_eq!(answer.json()["attr"], "name");
    let body = r#"{"enforce_2fa":"x","is_member_join_email_enabled":"x","name":"a"}"#;
    let call = caller.call(Method::POST, "/api/organizations/");
    let answer = call.header("content-type", "application/json").body(body).send().await;
    assert_eq!(answer.json()["attr"], "is_member_join_email_enabled");
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_trimmed_numbers_taken_and_unknown_keys_ignored() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let create = |body: Value| {
        let caller = caller.clone();
        async move { caller.post("/api/organizations/", &body).await.json() }
    };
    assert_eq!(create(json!({"name": "  Beta  "})).await["name"], "Beta");
    assert_eq!(create(json!({"name": 42})).await["name"], "42");
    let made = create(json!({
        "name": "Gamma", "id": "00000000-0000-0000-0000-000000000001", "slug": "mine",
        "membership_level": 1, "customer_id": "c", "nothing": {"a": 1},
    }))
    .await;
    assert_eq!(made["slug"], "gamma");
    assert_eq!(made["membership_level"], 15);
    assert_ne!(made["id"], "00000000-0000-0000-0000-000000000001");
    let call = caller.call(Method::POST, "/api/organizations/");
    let form = call.header("content-type", "application/x-www-form-urlencoded; charset=utf-8");
    let answer = form.body("name=Delta+%26+Co&enforce_2fa=on").send().await;
    assert_eq!((answer.status, &answer.json()["name"]), (201, &json!("Delta & Co")));
    assert_eq!(answer.json()["enforce_2fa"], true);
    let parts = "--x\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nEcho\r\n--x--\r\n";
    let call = caller.call(Method::POST, "/api/organizations/");
    let form = call.header("content-type", "multipart/form-data; boundary=x");
    let answer = form.body(parts).send().await;
    assert_eq!((answer.status, &answer.json()["name"]), (201, &json!("Echo")));
    // An empty body has no fields, whatever its media type.
    let call = caller.call(Method::POST, "/api/organizations/");
    let answer = call.header("content-type", "text/plain").send().await;
    assert_eq!(answer.json()["code"], "required");
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_projects() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let path = format!("/api/projects/{}/", app.project());
    for (body, attr, code, detail) in [
        (
            json!({"app_urls": "x"}),
            "app_urls",
            "not_a_list",
            "Expected a list of items but got type \"str\".",
        ),
        (
            json!({"app_urls": ["https://a.example", []]}),
            "app_urls__1",
            "invalid_input",
            "Not a valid string.",
        ),
        (
            json!({"week_start_day": 2}),
            "week_start_day",
            "invalid_choice",
            "\"2\" is not a valid choice.",
        ),
        (
            json!({"timezone": "nowhere"}),
            "timezone",
            "invalid_choice",
            "\"nowhere\" is not a valid choice.",
        ),
        (
            json!({"timezone": "Mars/Phobos"}),
            "timezone",
            "invalid_choice",
            "\"Mars/Phobos\" is not a valid choice.",
        ),
        (json!({"anonymize_ips": null}), "anonymize_ips", "null", "This field may not be null."),
        (
            json!({"name": "x".repeat(201)}),
            "name",
            "max_length",
            "Ensure this field has no more than 200 characters.",
        ),
    ] {
        for answer in [caller.patch(&path, &body).await, caller.post("/api/projects/", &body).await]
        {
            answer.assert_field_error(400, "validation_error", code, detail, Some(attr));
        }
    }
    // The first invalid field in the order of the resource is reported.
    let mut body = json!({
        "week_start_day": 2,
        "person_display_name_properties": "x",
        "person_processing_opt_out": "x",
        "anonymize_ips": "x",
        "app_urls": vec!["x"; 101],
        "timezone": "Mars/Phobos",
        "completed_snippet_onboarding": "x",
        "name": "",
    });
    for attr in [
        "name",
        "completed_snippet_onboarding",
        "timezone",
        "app_urls",
        "anonymize_ips",
        "person_processing_opt_out",
        "person_display_name_properties",
        "week_start_day",
    ] {
        for answer in [caller.patch(&path, &body).await, caller.post("/api/projects/", &body).await]
        {
            assert_eq!((answer.status, &answer.json()["attr"]), (400, &json!(attr)));
        }
        body.as_object_mut().unwrap().remove(attr);
    }
    let body = json!({"week_start_day": "1", "product_description": null, "name": " Shop 2 "});
    let answer = caller.patch(&path, &body).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(answer.json()["week_start_day"], 1);
    assert_eq!(answer.json()["name"], "Shop 2");
}
