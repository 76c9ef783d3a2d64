//! What comes back from a request.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::ScriptError;

/// What became of an event.
#[derive(Debug)]
pub enum Outcome {
    /// It is this now: an object with text `event` and `distinct_id` and an object
    /// `properties`, not deeper than 64.
    Kept(Box<RawValue>),
    /// It is what it was, byte for byte.
    Unchanged,
    /// A step returned nothing.
    Dropped {
        /// Which, counted from 0.
        step: usize,
    },
}

/// A step that failed. The event went on as it was before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Which, counted from 0.
    pub step: usize,
    /// Why.
    pub error: ScriptError,
}

/// An event that went through steps.
#[derive(Debug)]
pub struct Transformed {
    /// What became of it.
    pub outcome: Outcome,
    /// The steps that failed, in order.
    pub failures: Vec<Failure>,
    /// What each step has cost, in microseconds: its time, loading that took long, and
    /// processes that ended for it. 0 for those that did not run.
    pub micros: Vec<u32>,
    /// The steps that had used up their allowance before, and were not called.
    pub passed_over: Vec<usize>,
}

/// An HTTP request that `composeWebhook` asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    /// Where to, as written.
    pub url: String,
    /// `POST` where the script says nothing.
    pub method: String,
    /// Names in lower case; JSON content type where the script says nothing.
    pub headers: BTreeMap<String, String>,
    /// The body as text.
    pub body: Option<String>,
}

/// What became of an event at a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivered {
    /// Done.
    Done,
    /// Send this; `None` where the script wants nothing sent.
    Webhook(Option<Webhook>),
    /// It failed; `error.retry` tells whether another try may help.
    Failed(ScriptError),
}

/// What a plugin can do (PLG-3).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Names of exported functions that the service calls.
    pub methods: Vec<String>,
    /// Those that are called by the clock.
    pub scheduled_tasks: Vec<String>,
    /// Names below `jobs`.
    pub jobs: Vec<String>,
    /// Metrics with `sum`, `min` or `max`.
    pub metrics: BTreeMap<String, String>,
}
