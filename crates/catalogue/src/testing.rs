//! Test helpers: pass an event through one entry.

use serde_json::{Map, Value};
use weir_model::time::Timestamp;

use crate::config::ConfigError;
use crate::entry::{Step, StepDependencies};
use crate::event::{Flow, StepEvent};

/// 2026-03-01, a Sunday, 23:30:15 UTC.
pub(crate) const WHEN: &str = "2026-03-01T23:30:15Z";

pub(crate) fn map(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

pub(crate) fn event<'a>(name: &'a str, properties: &'a str) -> StepEvent<'a> {
    let when = Timestamp::parse(WHEN).unwrap();
    StepEvent::new(name, "user-1", None, when, properties).unwrap()
}

pub(crate) fn step(id: &str, config: &Value) -> Result<Box<dyn Step>, ConfigError> {
    step_with(id, config, &StepDependencies::default())
}

pub(crate) fn step_with(
    id: &str,
    config: &Value,
    dependencies: &StepDependencies,
) -> Result<Box<dyn Step>, ConfigError> {
    Ok(crate::find(id).unwrap().step(&map(config), dependencies)?.unwrap())
}

/// The key and the message of the fault of a config.
pub(crate) fn fault(id: &str, config: &Value) -> (&'static str, String) {
    let error = crate::find(id).unwrap().check(&map(config)).unwrap_err();
    (error.key, error.message)
}

/// The properties after the step; `None` if the event was dropped. Also checks that an
/// unchanged event counts as unchanged.
pub(crate) fn after(id: &str, config: &Value, properties: &str) -> Option<String> {
    after_named(id, config, "pageview", properties)
}

pub(crate) fn after_named(
    id: &str,
    config: &Value,
    name: &str,
    properties: &str,
) -> Option<String> {
    let step = step(id, config).unwrap();
    let mut event = event(name, properties);
    if step.apply(&mut event) == Flow::Drop {
        return None;
    }
    let text = event.properties_text().into_owned();
    assert_eq!(event.is_changed(), text != properties, "{properties} -> {text}");
    Some(text)
}

/// Asserts that a step does not change these properties.
pub(crate) fn assert_same(id: &str, config: &Value, properties: &[&str]) {
    for text in properties {
        assert_eq!(after(id, config, text).as_deref(), Some(*text));
    }
}
