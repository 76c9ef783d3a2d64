//! What the process knows of itself: told by the server, shown to staff.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

/// Finds out what the process knows of itself.
#[derive(Clone)]
pub struct InstanceFacts(pub Arc<dyn Fn() -> BoxFuture<'static, Facts> + Send + Sync>);

/// What the process knows of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Facts {
    /// Version of the program.
    pub version: String,
    /// Seconds since it was started.
    pub up_seconds: u64,
    /// The address that people open, if it is set.
    pub public_url: Option<String>,
    /// Where the data is, and how much room it takes; `None`: in memory.
    pub disk: Option<DiskFacts>,
    /// Bytes of accepted events that cannot be read back yet.
    pub lag_bytes: u64,
    /// Whether events are taken.
    pub accepts: bool,
    /// What of the ingest log is damaged, if anything is.
    pub damage: Option<DamageFacts>,
    /// Runs of exports that are going on.
    pub export_runs: u64,
    /// Processes that run scripts of plugins.
    pub plugin_children: u64,
}

/// What of the ingest log is damaged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DamageFacts {
    /// Places that cannot be read.
    pub places: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that are missing at its end.
    pub missing_bytes: u64,
}

/// What is on the disk.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiskFacts {
    /// The data directory.
    pub directory: String,
    /// Bytes in it.
    pub all_bytes: u64,
    /// Of these the store's.
    pub store_bytes: u64,
    /// Of these the ingest log's.
    pub log_bytes: u64,
    /// Bytes that are free.
    pub free_bytes: u64,
}
