//! Properties that hold for every step and every event.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use serde_json::{Value, json};
use weir_model::time::Timestamp;

use crate::entry::{Code, Step, StepDependencies};
use crate::event::{Flow, StepEvent};
use crate::locate::Locate;
use crate::{catalogue, testing};

struct FixedLocation;

impl Locate for FixedLocation {
    fn locate(&self, _: IpAddr) -> Vec<(&'static str, String)> {
        vec![("country_code", "\"WR\"".to_owned())]
    }
}

fn config(id: &str) -> Value {
    match id {
        "hash-properties" => json!({"salt": "s", "fields": "distinct_id,email,a.b"}),
        "property-filter" => json!({"properties": "a.b,email", "includeSetProperties": "Yes"}),
        "drop-events" => json!({"filter": {"properties": [
            {"property": "a.b", "operator": "gt", "value": 5},
        ]}}),
        "event-filter" => json!({"events": "$page*"}),
        "filter-out" => json!({"filters": [
            {"property": "email", "operator": "not_regex", "value": "x+"},
        ]}),
        "downsampling" => json!({"percentage": "50"}),
        "currency" => json!({"currency": "EUR", "rates": {"USD": 2}}),
        "schema-enforcer" => json!({"schemas": {"*": {
            "properties": {"a": {"type": "object"}, "email": {"maxLength": 3}},
        }}}),
        _ => json!({}),
    }
}

/// JSON text with names and values that steps use, and unusual ones.
fn object() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        "\\PC{0,12}",
        Just("https://e.org/1/x?token=1#a".to_owned()),
        Just("a@example.org 4111111111111111".to_owned()),
        Just("203.0.113.7".to_owned()),
        Just("Mozilla/5.0 (X11; Linux) Firefox/121.0 Googlebot".to_owned()),
        Just("USD".to_owned()),
    ];
    let value = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("1e999".to_owned()),
        Just("-12345678901234567890.50".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        text.prop_map(|text| Value::from(text).to_string()),
    ];
    let name = prop::sample::select(vec![
        "a",
        "b",
        "a.b",
        "email",
        "$ip",
        "$current_url",
        "$set",
        "$set_once",
        "amount",
        "currency",
        "$raw_user_agent",
        "distinct_id",
        "$geoip_disable",
        "ü\"\\",
        "",
    ]);
    let members = |value: BoxedStrategy<String>| {
        prop::collection::vec((name.clone(), value), 0..8).prop_map(|members| {
            let members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{}: {value}", Value::from(*name)))
                .collect();
            format!("{{{}}}", members.join(" , "))
        })
    };
    let inner = value.clone().prop_recursive(4, 32, 6, {
        let name = name.clone();
        move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4)
                    .prop_map(|values| format!("[{}]", values.join(","))),
                prop::collection::vec((name.clone(), inner), 0..4).prop_map(|members| {
                    let members: Vec<String> = members
                        .iter()
                        .map(|(name, value)| format!("{}:{value}", Value::from(*name)))
                        .collect();
                    format!("{{{}}}", members.join(","))
                }),
            ]
        }
    });
    members(inner.boxed())
}

static STEPS: LazyLock<Vec<(&'static str, Box<dyn Step>)>> = LazyLock::new(|| {
    let dependencies = StepDependencies { locate: Some(Arc::new(FixedLocation)) };
    let native = catalogue().iter().filter(|entry| matches!(entry.code, Code::Native(_)));
    native
        .map(|entry| {
            (entry.id, testing::step_with(entry.id, &config(entry.id), &dependencies).unwrap())
        })
        .collect()
});

proptest! {
    #[test]
    fn no_event_breaks_a_step(
        object in object(),
        name in "\\PC{0,8}",
        id in "\\PC{0,8}",
        micros in any::<i64>(),
    ) {
        // A member that no step has a reason to change.
        let marked = match object.as_str() {
            "{}" => r#"{"zz": 12345678901234567890.10}"#.to_owned(),
            other => format!(r#"{}, "zz": 12345678901234567890.10}}"#, &other[..other.len() - 1]),
        };
        for (entry, step) in STEPS.iter() {
            let when = Timestamp::from_micros(micros);
            let mut event =
                StepEvent::new(&*name, &*id, Some("203.0.113.7"), when, &marked).unwrap();
            if step.apply(&mut event) == Flow::Drop {
                prop_assert!(*entry != "location");
                continue;
            }
            let after = event.properties_text().into_owned();
            prop_assert!(after.contains("12345678901234567890.10"), "{}: {}", entry, after);
            if !event.is_changed() {
                prop_assert_eq!(&after, &marked);
            }
            // The output is valid input of the next step.
            prop_assert!(
                StepEvent::new(&*name, &*id, None, when, &after).is_ok(),
                "{}: {}", entry, after
            );
        }
    }
}
