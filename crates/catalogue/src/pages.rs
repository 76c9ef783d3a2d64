//! Checks that every entry has a documentation page with all its settings, and that the
//! examples of the page are true.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use weir_model::time::Timestamp;

use crate::entry::{Code, Direction, ItemKind, Source, StepDependencies};
use crate::event::{Flow, StepEvent};
use crate::locate::Locate;
use crate::sources::engine::Running;
use crate::{catalogue, find, find_url, testing};

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|_| panic!("{path} is missing"))
}

#[test]
fn every_entry_has_a_page_that_names_every_setting() {
    let list = read("docs/catalogue/README.md");
    for entry in catalogue() {
        let row = format!("({}.md) | {} |", entry.id, entry.description);
        assert!(list.contains(&row), "{} is not listed with its description", entry.id);
        let page = read(&entry.page());
        assert!(page.starts_with(&format!("# {}\n", entry.name)), "{}", entry.id);
        assert!(page.contains("## Limits"), "{}", entry.id);
        for item in entry.items {
            let row = format!("| `{}` | {}. {} ", item.key, item.name, item.hint);
            assert!(page.contains(&row), "{}: {}", entry.id, item.key);
        }
    }
}

/// The JSON after a label of a page.
fn labelled(example: &str, label: &str) -> Option<Value> {
    let block = example.split_once(&format!("{label}:\n\n```json\n"))?.1;
    let text = block.split_once("```")?.0;
    Some(serde_json::from_str(text).unwrap_or_else(|fault| panic!("{fault}: {text}")))
}

#[test]
fn the_examples_of_pages_are_true() {
    for entry in catalogue() {
        let page = read(&entry.page());
        let examples: Vec<&str> = page.split("\nSettings:").skip(1).collect();
        assert!(!examples.is_empty() || entry.direction == Direction::Frontend, "{}", entry.id);
        for example in examples {
            let example = format!("Settings:{example}");
            let config = labelled(&example, "Settings").unwrap();
            let before = labelled(&example, "Before").unwrap();
            entry.check(&testing::map(&config)).unwrap();
            let expected = if example.contains("The event is dropped.") {
                Value::Null
            } else if example.contains("The event stays as it is.") {
                before.clone()
            } else {
                labelled(&example, "After").or_else(|| labelled(&example, "Request")).unwrap()
            };
            let after = match entry.code {
                Code::Native(_) => native(entry.id, &config, &before),
                Code::Source(Source { methods, .. }) => {
                    Running::new(entry.id, &config).call(methods.first().unwrap(), &before)
                }
            };
            assert_eq!(after, expected, "{}", entry.id);
        }
    }
}

struct Weirland;

impl Locate for Weirland {
    fn locate(&self, _: IpAddr) -> Vec<(&'static str, String)> {
        let text = |text: &str| Value::from(text).to_string();
        vec![
            ("city_name", text("Weirhaven")),
            ("country_name", text("Weirland")),
            ("country_code", text("WR")),
        ]
    }
}

fn native(id: &str, config: &Value, before: &Value) -> Value {
    let dependencies = StepDependencies { locate: Some(Arc::new(Weirland)) };
    let step = testing::step_with(id, config, &dependencies).unwrap();
    let properties = before["properties"].to_string();
    let text = |name: &str| before[name].as_str().unwrap();
    let when = before["timestamp"].as_str().and_then(Timestamp::parse);
    let when = when.unwrap_or(Timestamp::EPOCH);
    let mut event =
        StepEvent::new(text("event"), text("distinct_id"), None, when, &properties).unwrap();
    if step.apply(&mut event) == Flow::Drop {
        return Value::Null;
    }
    let mut after = before.clone();
    after["distinct_id"] = Value::from(event.distinct_id());
    after["properties"] = serde_json::from_str(&event.properties_text()).unwrap();
    after
}

#[test]
fn icons_are_symbols_of_the_app() {
    let sprite = read("public/icons.svg");
    for icon in catalogue().iter().filter_map(|entry| entry.icon) {
        assert!(sprite.contains(&format!("id=\"{icon}\"")), "{icon}");
    }
}

#[test]
fn ids_and_settings_are_there_once() {
    let mut ids = std::collections::HashSet::new();
    for entry in catalogue() {
        assert!(ids.insert(entry.id), "{}", entry.id);
        assert_eq!(find(entry.id).unwrap().id, entry.id);
        assert_eq!(find_url(&entry.url()).unwrap().id, entry.id);
        let mut keys = std::collections::HashSet::new();
        for item in entry.items {
            assert!(keys.insert(item.key) && !item.name.is_empty(), "{}: {}", entry.id, item.key);
            match item.kind {
                ItemKind::Choice(choices) => assert!(choices.contains(&item.default)),
                ItemKind::Json if !item.default.is_empty() => {
                    serde_json::from_str::<Value>(item.default).unwrap();
                }
                ItemKind::Json | ItemKind::Text => {}
            }
            assert!(!item.secret || item.default.is_empty());
        }
        weir_model::plugins::schema::read("config_schema", &entry.config_schema()).unwrap();
    }
    assert!(find("missing").is_none());
    assert!(find_url("https://example.org/location").is_none());
}

#[test]
fn a_config_of_defaults_says_what_is_missing_or_is_of_use() {
    for entry in catalogue() {
        let without = entry.items.iter().any(|item| item.required && item.default.is_empty());
        match entry.check(&Map::new()) {
            Ok(()) => assert!(!without, "{}", entry.id),
            Err(fault) => assert!(entry.items.iter().any(|item| item.key == fault.key)),
        }
        let is_native = matches!(entry.code, Code::Native(_));
        assert_eq!(is_native, entry.files().is_empty(), "{}", entry.id);
    }
}

#[test]
fn what_the_list_shows() {
    let listed = find("webhook").unwrap().listed();
    assert_eq!(listed["url"], "inline:webhook");
    assert_eq!(listed["type"], "data_out");
    assert_eq!(find("location").unwrap().capabilities()["methods"][0], "processEvent");
    // An app for pages has no keys.
    assert_eq!(find("notification-bar").unwrap().capabilities(), serde_json::json!({}));
}
