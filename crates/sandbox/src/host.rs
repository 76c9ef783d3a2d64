//! Calls from a plugin's script to Weir, such as `fetch` and storage. The parent process
//! checks the grant (`pool::exchange`) and answers.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

use crate::program::Program;

/// Severity of a log line.
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

/// The operation of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricOp {
    /// The value is added.
    Increment,
    /// The smaller value is kept.
    Min,
    /// The larger value is kept.
    Max,
}

/// A call of a script. A call without a result returns null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostCall {
    /// Returns the stored value, or null.
    StorageGet {
        /// The key in the storage of the config.
        key: String,
    },
    /// Stores a value.
    StorageSet {
        /// The key in the storage of the config.
        key: String,
        /// Any JSON.
        value: Value,
    },
    /// Removes a value.
    StorageDel {
        /// The key in the storage of the config.
        key: String,
    },
    /// Returns the cached value, or null.
    CacheGet {
        /// The key in the cache of the config.
        key: String,
    },
    /// Sets a value.
    CacheSet {
        /// The key in the cache of the config.
        key: String,
        /// Any JSON.
        value: Value,
        /// Time to live in seconds.
        ttl: Option<f64>,
    },
    /// Adds one; returns the new value.
    CacheIncr {
        /// The key in the cache of the config.
        key: String,
    },
    /// Sets the time to live; returns whether the key exists.
    CacheExpire {
        /// The key in the cache of the config.
        key: String,
        /// Time to live in seconds.
        ttl: f64,
    },
    /// Adds values at the start of a list; returns its length.
    CacheLpush {
        /// The key of the list in the cache of the config.
        key: String,
        /// JSON values, added one after another at the start, so that the last one is
        /// first.
        values: Vec<Value>,
    },
    /// Returns a part of the list, both ends included, negative from the end.
    CacheLrange {
        /// The key of the list in the cache of the config.
        key: String,
        /// Index of the first element.
        start: i64,
        /// Index of the last element.
        end: i64,
    },
    /// Returns the length of the list.
    CacheLlen {
        /// The key of the list in the cache of the config.
        key: String,
    },
    /// Removes elements at the start and returns them.
    CacheLpop {
        /// The key of the list in the cache of the config.
        key: String,
        /// Number of elements.
        count: u32,
    },
    /// Removes equal elements; returns their number.
    CacheLrem {
        /// The key of the list in the cache of the config.
        key: String,
        /// As in Redis: the sign is the direction, 0 means all.
        count: i64,
        /// The element.
        value: Value,
    },
    /// Sets a stored counter (`meta.utils.cursor`). Not a pagination cursor.
    CursorInit {
        /// The key of the counter.
        key: String,
        /// The first value of the counter.
        value: f64,
    },
    /// Increments a stored counter atomically; returns the new value.
    CursorIncrement {
        /// The key of the counter.
        key: String,
        /// The increment.
        by: f64,
    },
    /// Sends an HTTP request. The result is `{status, headers, body}`, with the body as
    /// text.
    Fetch {
        /// The URL, as the script passed it.
        url: String,
        /// The method, in upper case.
        method: String,
        /// Headers, names in lower case.
        headers: BTreeMap<String, String>,
        /// The body as text; `None`: the request has none.
        body: Option<String>,
    },
    /// Captures an event.
    Capture {
        /// Its name.
        event: String,
        /// Its distinct id: by default the name of the plugin.
        distinct_id: String,
        /// ISO text of the event time.
        timestamp: Option<String>,
        /// An object.
        properties: Value,
    },
    /// Starts a job, now or later.
    JobEnqueue {
        /// The name of the function in the script's `jobs` object.
        name: String,
        /// Any JSON.
        payload: Value,
        /// Delay in milliseconds.
        after_ms: f64,
    },
    /// Changes a metric. No reply is sent to the script.
    Metric {
        /// The name of the metric, as the script declared it.
        name: String,
        /// The operation.
        op: MetricOp,
        /// The operand of the operation.
        value: f64,
    },
    /// Writes a log line. No reply is sent to the script.
    Log {
        /// How serious the script calls the line.
        level: LogLevel,
        /// The text, truncated.
        message: String,
    },
    /// Returns the location of an IP address as a record of a `MaxMind` city database, or
    /// null. The script gets keys in JavaScript style (`isoCode`).
    Geoip {
        /// The IP address.
        ip: String,
    },
}

/// Answers calls, in the parent process.
#[async_trait]
pub trait ScriptHost: Send + Sync {
    /// Answers a call that the program was granted. An error rejects the promise in the
    /// script, so it is a message for members. `Log` and `Metric` are passed here too;
    /// no reply to them is sent to the script.
    async fn call(&self, program: &Program, call: HostCall) -> Result<Value, String>;
}

/// Refuses all calls, for inspecting code and for tests.
#[derive(Debug, Clone, Copy)]
pub struct NoHost;

#[async_trait]
impl ScriptHost for NoHost {
    async fn call(&self, _program: &Program, _call: HostCall) -> Result<Value, String> {
        Err("this call is not available while the code is inspected".to_owned())
    }
}
