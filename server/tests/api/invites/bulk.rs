//! POST `…/invites/bulk/`.

use serde_json::{Value, json};
use weir_model::organizations::Level;
use weir_testkit::TestApp;

use super::{member, owner, path};

fn people(count: usize) -> Vec<Value> {
    (0..count).map(|n| json!({"target_email": format!("p{n}@mail.example")})).collect()
}

fn emails(invites: &Value) -> Vec<&str> {
    let invites = invites.as_array().unwrap().iter();
    invites.map(|invite| invite["target_email"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_answered_with_a_list_and_one_object_with_one() {
    let app = TestApp::with_owner().await;
    let caller = owner(&app).await;
    let bulk = format!("{}bulk/", path(&app));
    let count = async || caller.get(&path(&app)).await.json()["count"].as_u64().unwrap();

    let answer = caller.post(&bulk, &json!([])).await;
    assert_eq!((answer.status, answer.json()), (200, json!([])));
    let answer = caller.post(&bulk, &json!(people(20))).await;
    assert_eq!(answer.status, 200);
    let expected: Vec<String> = (0..20).map(|n| format!("p{n}@mail.example")).collect();
    assert_eq!(emails(&answer.json()), expected);
    assert_eq!(count().await, 20);

    let answer = caller.post(&bulk, &json!(people(21))).await;
    let detail = "A maximum of 20 invites can be sent in a single request.";
    answer.assert_field_error(400, "validation_error", "max_length", detail, None);
    let mut bad = people(21);
    bad[0] = json!(7);
    assert_eq!(caller.post(&bulk, &json!(bad)).await.json()["code"], "max_length");

    let answer = caller.post(&bulk, &json!({"target_email": "one@mail.example"})).await;
    assert_eq!((answer.status, &answer.json()["target_email"]), (200, &json!("one@mail.example")));
    let form = caller
        .call(http::Method::POST, &bulk)
        .header("content-type", "application/x-www-form-urlencoded")
        .body("target_email=form%40mail.example");
    assert_eq!(form.send().await.json()["target_email"], "form@mail.example");
    assert_eq!(count().await, 22);
    for body in [json!("x"), json!(7), json!(true), Value::Null] {
        let answer = caller.post(&bulk, &body).await;
        let detail = "This endpoint needs an array of data for bulk invite creation.";
        answer.assert_field_error(400, "validation_error", "invalid_input", detail, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_or_none() {
    let app = TestApp::with_owner().await;
    let caller = owner(&app).await;
    let bulk = format!("{}bulk/", path(&app));
    let good = json!({"target_email": "good@mail.example"});
    for (second, status, code, attr) in [
        (json!({"target_email": "bad"}), 400, "invalid_input", Some("1__target_email")),
        (json!({}), 400, "required", Some("1__target_email")),
        (
            json!({"target_email": "a@b.example", "first_name": "x".repeat(31)}),
            400,
            "max_length",
            Some("1__first_name"),
        ),
        (json!("text"), 400, "invalid_input", Some("1__non_field_errors")),
        (json!({"target_email": "ada@mail.example"}), 400, "invalid_input", None),
    ] {
        let answer = caller.post(&bulk, &json!([good, second])).await;
        let (found, _, found_code, _, found_attr) = answer.error();
        assert_eq!((found, found_code.as_str(), found_attr.as_deref()), (status, code, attr));
        assert_eq!(caller.get(&path(&app)).await.json()["count"], 0);
    }
    let member = member(&app, "linus", Level::Member).await;
    let above = json!([good, {"target_email": "a@b.example", "level": 8}]);
    assert_eq!(member.post(&bulk, &above).await.status, 403);
    assert_eq!(caller.get(&path(&app)).await.json()["count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_one_address_the_last_remains() {
    let app = TestApp::with_owner().await;
    let caller = owner(&app).await;
    let twice = json!([
        {"target_email": "grace@mail.example", "first_name": "first"},
        {"target_email": "linus@mail.example"},
        {"target_email": "GRACE@mail.example", "first_name": "last"},
    ]);
    let answer = caller.post(&format!("{}bulk", path(&app)), &twice).await.json();
    assert_eq!(answer.as_array().unwrap().len(), 3);
    let list = caller.get(&path(&app)).await.json();
    assert_eq!(list["count"], 2);
    let results = list["results"].as_array().unwrap();
    let grace = results.iter().find(|one| one["target_email"] == "GRACE@mail.example").unwrap();
    assert_eq!((&grace["first_name"], &grace["id"]), (&json!("last"), &answer[2]["id"]));
}
