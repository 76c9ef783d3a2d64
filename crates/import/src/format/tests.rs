use std::path::PathBuf;

use serde_json::{Value, json};
use weir_model::Timestamp;

use super::Format;
use crate::defect::DefectKind;
use crate::event::{Event, Rules};

fn lines(name: &str) -> Vec<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

fn judge(format: Format, line: &str) -> (Option<Event>, Vec<DefectKind>) {
    let rules =
        Rules { now: Timestamp::parse("2026-06-01T10:00:00Z").unwrap(), undated_as_now: false };
    let (event, defects) = format.draft(line).unwrap().finish(&rules);
    (event, defects.into_iter().map(|defect| defect.kind).collect())
}

fn event(format: Format, line: &str) -> Event {
    let (event, defects) = judge(format, line);
    assert!(defects.is_empty(), "{defects:?}");
    event.unwrap()
}

fn events(format: Format, name: &str) -> Vec<(Event, Value)> {
    let event = |line: &String| {
        let event = event(format, line);
        let sent = serde_json::from_str(&event.text).unwrap();
        (event, sent)
    };
    lines(name).iter().map(event).collect()
}

/// Asserts that the members are present; `null` means absent.
#[track_caller]
fn assert_has(found: &Value, expected: Value) {
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&found[name], value, "{name} in {found:#}");
    }
}

#[test]
fn the_format_is_found_from_the_content() {
    for (name, expected) in [
        ("events.jsonl", Format::Jsonl),
        ("posthog.jsonl", Format::Posthog),
        ("mixpanel.jsonl", Format::Mixpanel),
        ("amplitude.jsonl", Format::Amplitude),
    ] {
        let lines = lines(name);
        let found = Format::of(lines.iter().map(String::as_bytes));
        assert_eq!(found, expected, "{name}");
        let with_junk = [&b"\xff\xfe"[..], b"[1]", b"{"].into_iter();
        let found = Format::of(with_junk.chain(lines.iter().map(String::as_bytes)));
        assert_eq!(found, expected, "{name}");
    }
    assert_eq!(Format::of([&b"not json"[..]].into_iter()), Format::Jsonl);
}

#[test]
fn posthog_rows() {
    let found = events(Format::Posthog, "posthog.jsonl");
    let (first, second) = (&found[0].1, &found[1].1);
    assert_has(
        first,
        json!({
            "event": "$autocapture", "distinct_id": "user-7",
            "uuid": "018e0a7c-aaaa-7000-8000-000000000001",
            "timestamp": "2024-03-04T10:11:12.345678Z",
            "person_id": null, "person_properties": null,
        }),
    );
    assert_has(
        &first["properties"],
        json!({
            "$elements_chain": "button.primary:text=\"Pay\"",
            "$current_url": "https://shop.example/cart",
            "$ip": "203.0.113.9", "$geoip_disable": true,
        }),
    );
    assert!(found[0].0.text.contains("\"count\":12345678901234567890"));
    assert_has(
        &second["properties"],
        json!({
            "$set": {"plan": "gold"}, "$set_once": {"first_seen": "2024-03-04"},
            "$ip": "203.0.113.9", "$elements_chain": null, "$geoip_disable": null,
        }),
    );
}

#[test]
fn posthog_rows_with_person_updates_as_text() {
    let row = |set: &str, set_once: &str| {
        format!(
            r#"{{"uuid":"018e0a7c-aaaa-7000-8000-000000000003","event":"paid","properties":{{}},
                "timestamp":"2024-03-04T10:12:00Z","distinct_id":"u","elements_chain":"",
                "set":{set},"set_once":{set_once}}}"#
        )
    };
    let text = row(r#""{\"n\":12345678901234567890.10}""#, r#""{\"first\":1}""#);
    let sent = event(Format::Posthog, &text).text;
    assert!(sent.contains(r#""$set":{"n":12345678901234567890.10}"#), "{sent}");
    assert!(sent.contains(r#""$set_once":{"first":1}"#), "{sent}");
    for empty in ["null", "\"\"", "\" \"", "\"null\"", "{}", "\"{}\"", "[]", "\"[]\""] {
        let sent = event(Format::Posthog, &row(empty, empty)).text;
        assert!(!sent.contains("$set"), "{sent}");
    }
    let (found, defects) = judge(Format::Posthog, &row("7", "\"{\""));
    assert_eq!(defects, [DefectKind::InvalidPersonUpdate; 2]);
    assert!(!found.unwrap().text.contains("$set"));
}

#[test]
fn rows_with_few_columns_keep_their_person_updates() {
    let line = |uuid: &str, updates: &str| {
        format!(
            r#"{{{uuid}"event":"paid","distinct_id":"u","timestamp":"2024-03-04T10:12:00Z",
                "properties":{{}},{updates}}}"#
        )
    };
    let uuid = r#""uuid":"018e0a7c-aaaa-7000-8000-000000000003","#;
    for (uuid, expected) in [(uuid, Format::Posthog), ("", Format::Jsonl)] {
        for updates in [
            r#""set":"{\"plan\":\"pro\"}","set_once":"{\"first\":1}""#,
            r#""set":{"plan":"pro"},"set_once":{"first":1}"#,
        ] {
            let line = line(uuid, updates);
            let format = Format::of([line.as_bytes()].into_iter());
            assert_eq!(format, expected, "{line}");
            let sent: Value = serde_json::from_str(&event(format, &line).text).unwrap();
            let updates = json!({"$set": {"plan": "pro"}, "$set_once": {"first": 1}});
            assert_has(&sent["properties"], updates);
        }
        let line = line(uuid, r#""set":"null","set_once":"null""#);
        let format = Format::of([line.as_bytes()].into_iter());
        let sent = event(format, &line).text;
        assert!(!sent.contains("$set"), "{sent}");
    }
}

#[test]
fn updates_in_the_properties_win_over_columns() {
    let line = r#"{"event":"paid","distinct_id":"u","timestamp":"2024-03-04T10:12:00Z",
        "properties":{"$set":{"plan":"gold"}},"set":"{\"plan\":\"pro\"}"}"#;
    let sent: Value = serde_json::from_str(&event(Format::Jsonl, line).text).unwrap();
    assert_eq!(sent["properties"]["$set"], json!({"plan": "gold"}));
}

#[test]
fn mixpanel_lines() {
    let found = events(Format::Mixpanel, "mixpanel.jsonl");
    let (first, second, third) = (&found[0].1, &found[1].1, &found[2].1);
    assert_has(
        first,
        json!({"event": "$pageview", "distinct_id": "user-3", "timestamp": "2024-03-04T10:00:00Z"}),
    );
    assert_eq!(
        first["properties"],
        json!({
            "$current_url": "https://shop.example/shoes?size=42", "$host": "shop.example",
            "$pathname": "/shoes", "title": "Shoes", "$browser": "Firefox",
            "current_url_protocol": "https:", "current_url_search": "?size=42",
            "$geoip_city_name": "Ulm", "$geoip_subdivision_1_name": "Baden-Württemberg",
            "$geoip_country_code": "DE", "$lib": "web", "$geoip_disable": true,
            "$distinct_id_before_identity": "$device:77aa",
        })
    );
    let link = found[0].0.link.as_ref().unwrap();
    assert_eq!((&*link.before, &*link.distinct_id), ("$device:77aa", "user-3"));
    let said: Value = serde_json::from_str(&link.to_json()).unwrap();
    assert_has(
        &said,
        json!({
            "event": "$identify", "distinct_id": "user-3", "timestamp": "2024-03-04T10:00:00Z",
            "properties": {"$anon_distinct_id": "$device:77aa", "$geoip_disable": true},
        }),
    );
    assert_eq!(second["event"], "Added to cart");
    assert!(found[1].0.text.contains("\"price\":49.90"));
    assert_has(third, json!({"event": "$identify", "distinct_id": "user-3"}));
    assert_eq!(third["properties"]["$anon_distinct_id"], "77aa");
}

/// Name, distinct id and the merged id; and the defects.
fn joined(event: &str, properties: Value) -> (String, Vec<DefectKind>) {
    let mut properties = properties;
    properties["time"] = json!(1_709_546_400);
    let line = json!({"event": event, "properties": properties}).to_string();
    let (found, defects) = judge(Format::Mixpanel, &line);
    let sent: Value = serde_json::from_str(&found.unwrap().text).unwrap();
    let other = sent["properties"].get("alias").or(sent["properties"].get("$anon_distinct_id"));
    let [name, id] = ["event", "distinct_id"].map(|name| sent[name].as_str().unwrap());
    (format!("{name} {id} {}", other.unwrap_or(&Value::Null)), defects)
}

#[test]
fn mixpanel_joins_ids() {
    const NOT: &[DefectKind] = &[DefectKind::IdsNotJoined];
    for (name, properties, expected, defects) in [
        (
            "$merge",
            json!({"distinct_id": "b", "$distinct_ids": ["a", "b"]}),
            r#"$merge_dangerously b "a""#,
            &[][..],
        ),
        (
            "$merge",
            json!({"$distinct_ids": ["a", "b"], "alias": "x"}),
            r#"$merge_dangerously a "b""#,
            &[],
        ),
        ("$merge", json!({"distinct_id": "a", "$distinct_ids": ["a"]}), "$merge a null", NOT),
        (
            "$merge",
            json!({"distinct_id": "a", "$distinct_ids": ["a", "b", "c"]}),
            "$merge a null",
            NOT,
        ),
        ("$merge", json!({"distinct_id": "a"}), "$merge a null", NOT),
        (
            "$merge",
            json!({"distinct_id": "a", "$distinct_ids": ["a", "undefined"]}),
            r#"$merge_dangerously a "undefined""#,
            NOT,
        ),
        ("$create_alias", json!({"distinct_id": "a", "alias": "b"}), r#"$create_alias a "b""#, &[]),
        ("$create_alias", json!({"distinct_id": "a"}), "$create_alias a null", NOT),
        ("$create_alias", json!({"distinct_id": "a", "alias": "a"}), r#"$create_alias a "a""#, NOT),
        ("$identify", json!({"$identified_id": "a", "$anon_id": "b"}), r#"$identify a "b""#, &[]),
        ("$identify", json!({"distinct_id": "a", "$anon_id": ""}), r#"$identify a """#, NOT),
    ] {
        let (found, noted) = joined(name, properties);
        assert_eq!((found.as_str(), &noted[..]), (expected, defects), "{name}");
    }
}

#[test]
fn mixpanel_knows_an_event_again() {
    let [line, ..] = &lines("mixpanel.jsonl")[..] else { panic!("no lines") };
    let uuid = |line: &str| event(Format::Mixpanel, line).uuid;
    // Another export: milliseconds, another final id, another processing time.
    let again = line
        .replace("1709546400,", "1709546400000,")
        .replace("\"user-3\"", "\"user-4\"")
        .replace("1709546401500", "1709546999999");
    assert_eq!(uuid(line), uuid(&again));
    assert_ne!(uuid(line), uuid(&line.replace("a1b2c3", "a1b2c9")));
    assert_ne!(uuid(line), uuid(&line.replace("1709546400,", "1709546401,")));
}

#[test]
fn amplitude_lines() {
    let found = events(Format::Amplitude, "amplitude.jsonl");
    let (first, second, third) = (&found[0].1, &found[1].1, &found[2].1);
    assert_has(
        first,
        json!({
            "event": "$pageview", "distinct_id": "dev-9",
            "uuid": "5b6c7d8e-0001-11ee-8000-000000000001",
            "timestamp": "2024-03-04T10:00:00.123000Z",
        }),
    );
    assert_has(
        &first["properties"],
        json!({
            "$current_url": "https://shop.example/shoes?size=42",
            "[Amplitude] Page URL": "https://shop.example/shoes",
            "$pathname": "/shoes", "$host": "shop.example", "$referrer": "https://search.example/",
            "$browser": "Chrome", "$browser_version": "122", "$os": "Mac", "$device_type": "Desktop",
            "$device_id": "dev-9", "$ip": "203.0.113.20", "$geoip_city_name": "Ulm",
            "$geoip_country_name": "Germany", "$geoip_disable": true, "$locale": "German",
            "$amplitude_session_id": 1_709_546_390_000_u64, "$amplitude_event_id": 11,
            "$set_once": {"$initial_utm_source": "newsletter"}, "$set": null, "$groups": null,
            "processed_time": null, "app": null,
        }),
    );
    let session = first["properties"]["$session_id"].as_str().unwrap();
    assert_eq!(session, second["properties"]["$session_id"]);
    assert_eq!(session.split('-').nth(2).unwrap().chars().next(), Some('7'));
    assert_eq!(found[0].0.link, None);

    assert_has(second, json!({"event": "Log in", "distinct_id": "user-9"}));
    assert_has(
        &second["properties"],
        json!({"$set": {"plan": "gold"}, "$groups": {"company": "acme", "team": "blue"}}),
    );
    let link = found[1].0.link.as_ref().unwrap();
    assert_eq!((&*link.before, &*link.distinct_id), ("dev-9", "user-9"));

    assert_has(third, json!({"event": "$screen", "distinct_id": "user-9"}));
    assert_has(
        &third["properties"],
        json!({
            "$screen_name": "Checkout", "$os": "ios", "$os_version": "17.3",
            "$device_type": "Mobile", "$device_name": "Apple iPhone", "$app_version": "4.2.0",
            "$session_id": null, "$browser": null,
        }),
    );
}

#[test]
fn amplitude_knows_an_event_again() {
    let lines = lines("amplitude.jsonl");
    let uuid = |line: &str| event(Format::Amplitude, line).uuid;
    let by_insert_id = lines[2].replace("\"version_name\":\"4.2.0\",", "");
    assert_eq!(uuid(&lines[2]), uuid(&by_insert_id));
    assert_ne!(uuid(&lines[2]), uuid(&lines[2].replace("i-3", "i-4")));
    assert_ne!(uuid(&lines[2]), uuid(&lines[2].replace("phone-1", "phone-2")));
}
