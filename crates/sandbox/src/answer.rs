//! Answers to requests of the pool.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::ScriptError;

/// The result for an event.
#[derive(Debug)]
pub enum Outcome {
    /// The new event: an object with text `event` and `distinct_id` and an object
    /// `properties`, not nested deeper than 64.
    Kept(Box<RawValue>),
    /// Unchanged, byte for byte.
    Unchanged,
    /// A step dropped it by returning nothing.
    Dropped {
        /// Index of the step, counted from 0.
        step: usize,
    },
}

/// A step that failed. The event continued as it was before the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Index of the step, counted from 0.
    pub step: usize,
    /// What the script threw, or which limit it exceeded.
    pub error: ScriptError,
}

/// An event after all steps.
#[derive(Debug)]
pub struct Transformed {
    /// The result.
    pub outcome: Outcome,
    /// The steps that failed, in order.
    pub failures: Vec<Failure>,
    /// The cost of each step, in microseconds: its time, slow loading, and processes that
    /// ended because of it. 0 for steps that did not run.
    pub micros: Vec<u32>,
    /// Steps that were skipped because their allowance was used up.
    pub passed_over: Vec<usize>,
}

/// An HTTP request that `composeWebhook` returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    /// The URL, as the script returned it.
    pub url: String,
    /// The method; `POST` by default.
    pub method: String,
    /// Headers with names in lower case; the content type is JSON by default.
    pub headers: BTreeMap<String, String>,
    /// The body as text.
    pub body: Option<String>,
}

/// The result for an event at a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivered {
    /// The event is delivered.
    Done,
    /// The request to send; `None` if the script returned none.
    Webhook(Option<Webhook>),
    /// It failed; `error.retry` says whether a retry may succeed.
    Failed(ScriptError),
}

/// Capabilities of a plugin (PLG-3).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Names of exported functions that the service calls.
    pub methods: Vec<String>,
    /// Exported functions that the schedule calls.
    pub scheduled_tasks: Vec<String>,
    /// Names below `jobs`.
    pub jobs: Vec<String>,
    /// Metrics with their operation: `sum`, `min` or `max`.
    pub metrics: BTreeMap<String, String>,
}
