//! The scenario as it comes from the harness; `scenario_steps.py` has its calls.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

/// What to do, and with which project.
#[derive(Debug, Deserialize)]
pub(crate) struct Scenario {
    pub(crate) url: String,
    pub(crate) key: String,
    pub(crate) calls: Vec<Call>,
}

/// One call to the library.
#[derive(Debug, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Call {
    Client { options: Options },
    Capture(Capture),
    Identify { distinct_id: String, set: Value },
    SetOnce { distinct_id: String, set_once: Value },
    Alias { previous: String, main: String },
    Group { group_type: String, key: String, set: Value },
    Flush,
    GivenUp,
    Pause { why: String },
    Shutdown,
    Stream { event: String, distinct_ids: Vec<String>, pause: f64 },
}

/// How the client is set up; everything else as the library has it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Options {
    pub(crate) gzip: bool,
    pub(crate) historical: bool,
    /// Waits out a restart of the service.
    pub(crate) patient: bool,
    pub(crate) flush_at: Option<usize>,
    /// Another key than that of the scenario.
    pub(crate) key: Option<String>,
}

/// An event.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Capture {
    pub(crate) event: String,
    pub(crate) distinct_id: Option<String>,
    #[serde(default)]
    pub(crate) properties: BTreeMap<String, Value>,
    #[serde(default)]
    pub(crate) groups: BTreeMap<String, String>,
    pub(crate) uuid: Option<Uuid>,
    pub(crate) timestamp: Option<DateTime<Utc>>,
}
