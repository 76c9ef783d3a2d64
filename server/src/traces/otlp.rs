//! The body of a request to a collector, and its answer: OTLP over HTTP, as JSON.
//!
//! What belongs here: the names of that format. What does not: sending (`exporter`).

use serde_json::{Value as Json, json};

use super::queue::{Content, Finished, Kind, Place, Value};

/// The media type of bodies.
pub(super) const MEDIA_TYPE: &str = "application/json";

/// Attributes of the process.
pub(super) fn resource(instance: &str) -> Json {
    json!({
        "attributes": [
            {"key": "service.name", "value": {"stringValue": "weir"}},
            {"key": "service.version", "value": {"stringValue": env!("CARGO_PKG_VERSION")}},
            {"key": "service.instance.id", "value": {"stringValue": instance}},
        ]
    })
}

/// A request with spans of the process.
pub(super) fn request(resource: &Json, spans: &[Finished]) -> Json {
    let spans: Vec<Json> = spans.iter().map(span).collect();
    let scope = json!({"scope": {"name": "weir"}, "spans": spans});
    json!({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]})
}

fn span(finished: &Finished) -> Json {
    let Finished { place, began, took, content } = finished;
    let Place { trace, span, parent } = place;
    let Content { name, kind, is_failed, attributes } = content;
    // Times are numbers of 64 bits, which JSON has as texts.
    let began = u128::try_from(began.micros()).unwrap_or(0) * 1_000;
    let ended = began + took.as_nanos();
    let attributes: Vec<Json> = attributes.iter().map(attribute).collect();
    let kind = match kind {
        Kind::Internal => 1,
        Kind::Server => 2,
    };
    let status = if *is_failed { json!({"code": 2}) } else { json!({}) };
    let mut json = json!({
        "traceId": format!("{trace:032x}"),
        "spanId": format!("{span:016x}"),
        "name": name,
        "kind": kind,
        "startTimeUnixNano": began.to_string(),
        "endTimeUnixNano": ended.to_string(),
        "attributes": attributes,
        "status": status,
    });
    if let Some(parent) = parent {
        json["parentSpanId"] = format!("{parent:016x}").into();
    }
    json
}

fn attribute((key, value): &(&'static str, Value)) -> Json {
    let value = match value {
        Value::Text(text) => json!({"stringValue": text}),
        Value::Whole(number) => json!({"intValue": number.to_string()}),
        Value::Flag(flag) => json!({"boolValue": flag}),
    };
    json!({"key": key, "value": value})
}

/// How many spans the collector did not take, of an answer with success.
pub(super) fn rejected(answer: &[u8]) -> u64 {
    let answer: Json = serde_json::from_slice(answer).unwrap_or_default();
    let count = &answer["partialSuccess"]["rejectedSpans"];
    let as_text = || count.as_str().and_then(|text| text.parse().ok());
    count.as_u64().or_else(as_text).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::time::Duration;

    use weir_model::Timestamp;

    use super::*;

    #[test]
    fn spans_have_the_names_of_the_format() {
        let finished = Finished {
            place: Place { trace: 0xab, span: 0xcd, parent: Some(0xef) },
            began: Timestamp::from_micros(1_780_000_000_000_001),
            took: Duration::from_nanos(2_500),
            content: Content {
                name: Cow::Borrowed("GET /a"),
                kind: Kind::Server,
                is_failed: true,
                attributes: vec![
                    ("text", Value::Text("b".to_owned())),
                    ("number", Value::Whole(3)),
                    ("flag", Value::Flag(false)),
                ],
            },
        };
        let request = request(&resource("one"), &[finished]);
        let resource = &request["resourceSpans"][0]["resource"]["attributes"];
        assert_eq!(resource[0]["value"]["stringValue"], "weir");
        assert_eq!(resource[2]["value"]["stringValue"], "one");
        let expected = json!({
            "traceId": "000000000000000000000000000000ab",
            "spanId": "00000000000000cd",
            "parentSpanId": "00000000000000ef",
            "name": "GET /a",
            "kind": 2,
            "startTimeUnixNano": "1780000000000001000",
            "endTimeUnixNano": "1780000000000003500",
            "attributes": [
                {"key": "text", "value": {"stringValue": "b"}},
                {"key": "number", "value": {"intValue": "3"}},
                {"key": "flag", "value": {"boolValue": false}},
            ],
            "status": {"code": 2},
        });
        assert_eq!(request["resourceSpans"][0]["scopeSpans"][0]["spans"], json!([expected]));
    }

    #[test]
    fn rejected_spans_are_read_from_the_answer() {
        for (answer, count) in [
            (r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"no"}}"#, 3),
            (r#"{"partialSuccess":{"rejectedSpans":4}}"#, 4),
            (r#"{"partialSuccess":{}}"#, 0),
            ("{}", 0),
            ("", 0),
            ("accepted", 0),
            (r#"{"partialSuccess":{"rejectedSpans":-1}}"#, 0),
        ] {
            assert_eq!(rejected(answer.as_bytes()), count, "{answer}");
        }
    }
}
