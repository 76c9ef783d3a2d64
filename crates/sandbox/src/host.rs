//! What a script may ask for while it runs. The parent answers.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

use crate::program::Program;

/// How a line of the log is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// `console.debug`.
    Debug,
    /// `console.log`.
    Log,
    /// `console.info`.
    Info,
    /// `console.warn`.
    Warn,
    /// `console.error`.
    Error,
}

/// How a metric changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricOp {
    /// The value is added.
    Increment,
    /// The smaller one stays.
    Min,
    /// The larger one stays.
    Max,
}

/// A wish of a script. What has no meaning of its own in the answer gives null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostCall {
    /// The stored value, or null.
    StorageGet {
        /// The key.
        key: String,
    },
    /// Stores a value.
    StorageSet {
        /// The key.
        key: String,
        /// Any JSON.
        value: Value,
    },
    /// Removes a value.
    StorageDel {
        /// The key.
        key: String,
    },
    /// The value, or null.
    CacheGet {
        /// The key.
        key: String,
    },
    /// Sets a value.
    CacheSet {
        /// The key.
        key: String,
        /// Any JSON.
        value: Value,
        /// Seconds to live.
        ttl: Option<f64>,
    },
    /// Adds one; gives the new value.
    CacheIncr {
        /// The key.
        key: String,
    },
    /// Gives a time to live; tells whether the key exists.
    CacheExpire {
        /// The key.
        key: String,
        /// Seconds to live.
        ttl: f64,
    },
    /// Adds in front; gives the length.
    CacheLpush {
        /// The key.
        key: String,
        /// Texts, the last of them comes to the front.
        values: Vec<Value>,
    },
    /// A part of the list, both ends included, negative from the end.
    CacheLrange {
        /// The key.
        key: String,
        /// The first.
        start: i64,
        /// The last.
        end: i64,
    },
    /// The length.
    CacheLlen {
        /// The key.
        key: String,
    },
    /// Takes from the front; gives what was taken.
    CacheLpop {
        /// The key.
        key: String,
        /// How many.
        count: u32,
    },
    /// Removes equal elements; gives how many.
    CacheLrem {
        /// The key.
        key: String,
        /// As in Redis: sign is the direction, 0 is all.
        count: i64,
        /// The element.
        value: Value,
    },
    /// Sets a cursor.
    CursorInit {
        /// The key.
        key: String,
        /// Its value.
        value: f64,
    },
    /// Adds to a cursor at once; gives the new value.
    CursorIncrement {
        /// The key.
        key: String,
        /// What is added.
        by: f64,
    },
    /// An HTTP request. The answer is `{status, headers, body}`, the body as text.
    Fetch {
        /// The address, as written.
        url: String,
        /// The method, in upper case.
        method: String,
        /// Headers, names in lower case.
        headers: BTreeMap<String, String>,
        /// The body.
        body: Option<String>,
    },
    /// An event of the plugin's own.
    Capture {
        /// Its name.
        event: String,
        /// Its distinct id: the plugin's name where the script gave none.
        distinct_id: String,
        /// ISO text.
        timestamp: Option<String>,
        /// An object.
        properties: Value,
    },
    /// Runs a job, now or later.
    JobEnqueue {
        /// The export below `jobs`.
        name: String,
        /// Any JSON.
        payload: Value,
        /// Milliseconds from now on.
        after_ms: f64,
    },
    /// Changes a metric. No answer.
    Metric {
        /// Its name.
        name: String,
        /// How.
        op: MetricOp,
        /// The value.
        value: f64,
    },
    /// A line of the log. No answer.
    Log {
        /// The level.
        level: LogLevel,
        /// The text, cut.
        message: String,
    },
    /// The location of an address, as MaxMind's city record, or null. The script gets
    /// its keys in the form of its language (`isoCode`).
    Geoip {
        /// The address.
        ip: String,
    },
}

/// The side of the parent that answers calls.
#[async_trait]
pub trait Host: Send + Sync {
    /// Answers a call of a program that was granted it. An error is what the promise
    /// in the script is rejected with, so it is said in words for members.
    /// `Log` and `Metric` are called too; what they answer is not sent.
    async fn call(&self, program: &Program, call: HostCall) -> Result<Value, String>;
}

/// A host that refuses everything, for analysing and for tests.
#[derive(Debug, Clone, Copy)]
pub struct NoHost;

#[async_trait]
impl Host for NoHost {
    async fn call(&self, _program: &Program, _call: HostCall) -> Result<Value, String> {
        Err("there is nothing to ask here".to_owned())
    }
}
