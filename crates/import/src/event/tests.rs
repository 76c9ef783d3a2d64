use serde_json::{Value, json};
use weir_model::Timestamp;

use super::{Event, Rules};
use crate::defect::{Defect, DefectKind};
use crate::format::Format;

const RULES: Rules = Rules { now: Timestamp::EPOCH, undated_as_now: false };

fn rules() -> Rules {
    Rules { now: Timestamp::parse("2026-06-01T10:00:00Z").unwrap(), ..RULES }
}

fn judge(line: &Value, rules: &Rules) -> (Option<Event>, Vec<DefectKind>) {
    let line = line.to_string();
    let (event, defects) = match Format::Jsonl.draft(&line) {
        Ok(draft) => draft.finish(rules),
        Err(defect) => (None, vec![defect]),
    };
    (event, defects.into_iter().map(|Defect { kind, .. }| kind).collect())
}

/// A valid line with some members replaced; `null` removes a member.
fn line(changes: Value) -> Value {
    let mut line = json!({
        "event": "paid", "distinct_id": "u", "timestamp": "2026-01-01T00:00:00Z",
        "properties": {"amount": 1},
    });
    for (name, value) in changes.as_object().unwrap() {
        line[name] = value.clone();
    }
    line
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn flaws_of_a_line() {
    let many: Value =
        (0..10_001).map(|n| (format!("k{n}"), json!(n))).collect::<serde_json::Map<_, _>>().into();
    for (changes, expected) in [
        (json!({}), vec![]),
        (json!({"event": null}), vec![DefectKind::MissingEventName]),
        (json!({"event": ""}), vec![DefectKind::MissingEventName]),
        (json!({"event": 7}), vec![DefectKind::EventNameNotText]),
        (json!({"event": "$snapshot"}), vec![DefectKind::NotAnEvent]),
        (json!({"distinct_id": null}), vec![DefectKind::MissingDistinctId]),
        (json!({"distinct_id": " \t"}), vec![DefectKind::MissingDistinctId]),
        (json!({"uuid": "x"}), vec![DefectKind::InvalidUuid]),
        (json!({"uuid": 7}), vec![DefectKind::InvalidUuid]),
        (json!({"properties": [1]}), vec![DefectKind::InvalidProperties]),
        (json!({"properties": "[1]"}), vec![DefectKind::InvalidProperties]),
        (json!({"properties": [], "$set": [], "$set_once": "[]"}), vec![]),
        (json!({"$set": "{\"a\":1}", "$set_once": ""}), vec![]),
        (
            json!({"event": "$identify", "properties": {"$process_person_profile": false}}),
            vec![DefectKind::ProfileSwitchedOff],
        ),
        (
            json!({"event": "$groupidentify", "properties": {"$group_set": 7}}),
            vec![DefectKind::InvalidGroupSet],
        ),
        (json!({"event": "$groupidentify", "properties": {"$group_set": []}}), vec![]),
        (
            json!({"event": "$groupidentify", "properties": {"$group_key": "k".repeat(401)}}),
            vec![DefectKind::GroupKeyTooLong],
        ),
        (json!({"properties": {"$process_person_profile": false, "$group_set": 7}}), vec![]),
        (json!({"timestamp": null}), vec![DefectKind::MissingTimestamp]),
        (json!({"timestamp": ""}), vec![DefectKind::MissingTimestamp]),
        (json!({"timestamp": "yesterday"}), vec![DefectKind::InvalidTimestamp]),
        (json!({"timestamp": "2026-06-02T09:00:01Z"}), vec![DefectKind::FutureTimestamp]),
        (json!({"properties": {"a": "x".repeat(1 << 20)}}), vec![DefectKind::EventTooLarge]),
        (json!({"properties": {"a": nested(63)}}), vec![DefectKind::TooDeep]),
        (json!({"$set": {"a": nested(63)}}), vec![DefectKind::TooDeep]),
        (json!({"properties": many}), vec![DefectKind::TooManyKeys]),
        (
            json!({"event": null, "distinct_id": null, "timestamp": null}),
            vec![
                DefectKind::MissingEventName,
                DefectKind::MissingDistinctId,
                DefectKind::MissingTimestamp,
            ],
        ),
    ] {
        let (event, defects) = judge(&line(changes.clone()), &rules());
        assert_eq!(defects, expected, "{:.200}", changes.to_string());
        assert_eq!(event.is_some(), expected.is_empty());
    }
}

#[test]
fn what_is_sent_all_the_same() {
    let long = "ä".repeat(201);
    let (event, defects) = judge(&line(json!({"event": long, "distinct_id": long})), &rules());
    assert_eq!(defects, [DefectKind::EventNameCut, DefectKind::DistinctIdCut]);
    let event: Value = serde_json::from_str(&event.unwrap().text).unwrap();
    assert_eq!(event["event"], "ä".repeat(200));
    assert_eq!(event["distinct_id"], "ä".repeat(200));

    for id in ["null", "Anonymous", "'undefined'", "0", "[object Object]"] {
        let (event, defects) = judge(&line(json!({"distinct_id": id})), &rules());
        assert_eq!(
            (event.is_some(), defects),
            (true, vec![DefectKind::PlaceholderDistinctId]),
            "{id}"
        );
    }

    let (event, defects) = judge(&line(json!({"$set": 7, "$set_once": {"a": 1}})), &rules());
    assert_eq!(defects, [DefectKind::InvalidPersonUpdate]);
    assert!(event.unwrap().text.ends_with(r#","$set_once":{"a":1}}"#));

    let (event, defects) =
        judge(&line(json!({"timestamp": null})), &Rules { undated_as_now: true, ..rules() });
    assert_eq!(defects, [DefectKind::TimeOfImport]);
    assert!(!event.unwrap().text.contains("timestamp"));
}

#[test]
fn limits_are_those_of_capture() {
    let fits = line(json!({"properties": {"a": nested(62)}, "$set": {"a": nested(62)}}));
    assert_eq!(judge(&fits, &rules()).1, []);
    let at_limit = line(json!({"timestamp": "2026-06-02T09:00:00Z", "event": "e".repeat(200)}));
    assert_eq!(judge(&at_limit, &rules()).1, []);
}

#[test]
fn the_event_that_is_sent() {
    let given = r#"{"uuid":"5D0A0F4E-6F0C-4D3E-9A53-0C5F1B0A7E11","event":"a\"b","distinct_id":42,
        "timestamp":"2026-01-01 01:00:00.5+01:00","$set":{"plan":"x"},"ignored":1,
        "properties":{"big":12345678901234567890123,"exact":1.10,"escaped":"\u00e4"}}"#;
    let given = given.replace('\n', " ");
    let (event, defects) = Format::Jsonl.draft(&given).unwrap().finish(&rules());
    assert!(defects.is_empty());
    assert_eq!(
        event.unwrap().text,
        concat!(
            r#"{"event":"a\"b","distinct_id":"42","uuid":"5d0a0f4e-6f0c-4d3e-9a53-0c5f1b0a7e11","#,
            r#""timestamp":"2026-01-01T00:00:00.500000Z","properties":{"#,
            r#""big":12345678901234567890123,"exact":1.10,"escaped":"\u00e4","$geoip_disable":true},"#,
            r#""$set":{"plan":"x"}}"#
        )
    );
}

#[test]
fn a_distinct_id_may_stand_in_the_properties() {
    for changes in [
        json!({"distinct_id": null, "properties": {"distinct_id": "inner"}}),
        json!({"distinct_id": null, "$distinct_id": "inner", "properties": {"distinct_id": "x"}}),
        json!({"distinct_id": "inner", "$distinct_id": "x"}),
    ] {
        let (event, _) = judge(&line(changes), &rules());
        let event: Value = serde_json::from_str(&event.unwrap().text).unwrap();
        assert_eq!(event["distinct_id"], "inner");
    }
}

#[test]
fn a_place_is_not_looked_up_for_the_importing_machine() {
    for (properties, disabled) in [
        (json!({}), json!(true)),
        (json!({"$ip": "203.0.113.7"}), Value::Null),
        (json!({"$ip": "203.0.113.7", "$geoip_city_name": "Ulm"}), json!(true)),
        (json!({"$geoip_disable": false}), json!(false)),
    ] {
        let (event, _) = judge(&line(json!({"properties": properties})), &rules());
        let event: Value = serde_json::from_str(&event.unwrap().text).unwrap();
        assert_eq!(event["properties"]["$geoip_disable"], disabled, "{properties}");
    }
}

#[test]
fn the_same_content_has_the_same_uuid_in_any_spelling() {
    let uuid = |text: &str| Format::Jsonl.draft(text).unwrap().finish(&rules()).0.unwrap().uuid;
    let one = r#"{"event":"a","distinct_id":"u","timestamp":"2026-01-01T00:00:00Z","properties":{"x":1,"y":"ä"}}"#;
    let same = r#"{ "properties": {"y":"\u00e4", "x":1}, "uuid":"", "timestamp":1767225600, "distinct_id":"u", "event":"a"}"#;
    assert_eq!(uuid(one), uuid(same));
    for other in [
        one.replace("\"a\"", "\"b\""),
        one.replace("\"u\"", "\"v\""),
        one.replace("00:00Z", "01:00Z"),
        one.replace(":1,", ":2,"),
        one.replace("\"event\"", "\"$set\":{\"a\":1},\"event\""),
    ] {
        assert_ne!(uuid(one), uuid(&other), "{other}");
    }
    // A fixed value: an import in ten years must find the events of today again.
    assert_eq!(uuid(one).to_string(), "c46be288-0c92-52ec-a06a-157af51bf971");
}
