//! When days and weeks of an export begin: `timezone`, `offset_day`, `offset_hour`.

use super::*;

/// The three fields of an export.
fn offsets(export: &Value) -> (&Value, &Value, &Value) {
    (&export["timezone"], &export["offset_day"], &export["offset_hour"])
}

#[tokio::test(flavor = "multi_thread")]
async fn days_and_weeks_begin_where_it_is_said() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let mut body = with(s3(), "interval", json!("week"));
    body["timezone"] = json!("America/New_York");
    body["offset_day"] = json!(5);
    body["offset_hour"] = json!("9");
    let (export, path) = made(&app, &owner, &body).await;
    let expected = (&json!("America/New_York"), &json!(5), &json!(9));
    assert_eq!(offsets(&export), expected);
    assert_eq!(offsets(&owner.get(&path).await.json()), expected);
    // A change of another field keeps them.
    let renamed = owner.patch(&path, &json!({"name": "Fridays"})).await.json();
    assert_eq!(offsets(&renamed), expected);

    // A daily export has an hour, an hourly one has neither.
    let days = owner.patch(&path, &json!({"interval": "day"})).await.json();
    assert_eq!(offsets(&days), (&json!("America/New_York"), &Value::Null, &json!(9)));
    let both = json!({"interval": "week", "offset_day": 0, "timezone": "Asia/Tokyo"});
    let weeks = owner.patch(&path, &both).await.json();
    assert_eq!(offsets(&weeks), (&json!("Asia/Tokyo"), &json!(0), &json!(9)));
    let hours = owner.patch(&path, &json!({"interval": "hour"})).await.json();
    assert_eq!(offsets(&hours), (&json!("Asia/Tokyo"), &Value::Null, &Value::Null));
    let cleared = json!({"timezone": null, "offset_hour": null});
    let cleared = owner.patch(&path, &cleared).await.json();
    assert_eq!(offsets(&cleared), (&json!("UTC"), &Value::Null, &Value::Null));

    let log = format!("/api/organizations/{}/activity_log/", app.organization());
    let entry = owner.get(&log).await.json()["results"][0].clone();
    let changes = entry["detail"]["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(
        (&changes[0]["field"], &changes[0]["before"]),
        (&json!("timezone"), &json!("Asia/Tokyo"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offset_that_cannot_be_is_a_fault_of_its_field() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (export, path) = made(&app, &owner, &with(s3(), "interval", json!("day"))).await;
    let no_day = "Only the interval `week` begins on a day.";
    let no_hour = "Only the intervals `day` and `week` begin at an hour.";
    let most = |most: i64| format!("Ensure this value is less than or equal to {most}.");
    let least = "Ensure this value is greater than or equal to 0.".to_owned();
    let number = "A valid integer is required.".to_owned();
    for (interval, field, value, code, detail) in [
        ("week", "offset_day", json!(7), "invalid_input", most(6)),
        ("week", "offset_day", json!(-1), "invalid_input", least.clone()),
        ("week", "offset_day", json!("Monday"), "invalid_input", number.clone()),
        ("week", "offset_hour", json!(24), "invalid_input", most(23)),
        ("day", "offset_hour", json!(-1), "invalid_input", least),
        ("day", "offset_hour", json!(1.5), "invalid_input", number),
        ("day", "offset_day", json!(0), "invalid_input", no_day.to_owned()),
        ("hour", "offset_day", json!(1), "invalid_input", no_day.to_owned()),
        ("hour", "offset_hour", json!(0), "invalid_input", no_hour.to_owned()),
        ("every 5 minutes", "offset_hour", json!(3), "invalid_input", no_hour.to_owned()),
        (
            "day",
            "timezone",
            json!("Europe/Nowhere"),
            "invalid_choice",
            "\"Europe/Nowhere\" is not a valid choice.".to_owned(),
        ),
        (
            "day",
            "timezone",
            json!("europe/berlin"),
            "invalid_choice",
            "\"europe/berlin\" is not a valid choice.".to_owned(),
        ),
    ] {
        let body = with(with(s3(), "interval", json!(interval)), field, value.clone());
        assert_invalid(&owner.post(&super::path(&app), &body).await, Some(field), code, &detail);
        let patch = json!({"interval": interval, field: value});
        assert_invalid(&owner.patch(&path, &patch).await, Some(field), code, &detail);
    }
    // No part of it was stored.
    assert_eq!(owner.get(&path).await.json(), export);
}
