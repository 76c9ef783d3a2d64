//! Facts about the process: what the instance page shows to staff. The server collects them.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

/// The function of the server that collects the facts.
#[derive(Clone)]
pub struct ProcessFactsCollector(
    pub Arc<dyn Fn() -> BoxFuture<'static, ProcessFacts> + Send + Sync>,
);

/// Facts about the process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProcessFacts {
    /// Version of the program.
    pub version: String,
    /// Seconds since the start of the process.
    pub up_seconds: u64,
    /// The public address of the instance, if it is configured.
    pub public_url: Option<String>,
    /// Days until the certificate of this server expires, negative afterwards. `None`: it
    /// has none.
    pub certificate_days: Option<i64>,
    /// The data directory and its sizes. `None`: the data is in memory.
    pub disk: Option<DiskFacts>,
    /// Bytes of the log that are acknowledged and not yet applied.
    pub lag_bytes: u64,
    /// Whether capture accepts events.
    pub accepts_events: bool,
    /// Damage of the ingest log, if there is any.
    pub damage: Option<DamageFacts>,
    /// Number of runs of exports in progress.
    pub export_runs: u64,
    /// Number of child processes for scripts of plugins, idle ones too.
    pub plugin_children: u64,
}

/// Damage of the ingest log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DamageFacts {
    /// Number of copies in `log/quarantine`: damaged ranges, and records that this version
    /// cannot read.
    pub copies: u64,
    /// Size of these copies, in bytes.
    pub bytes: u64,
    /// Bytes of the log that were in no segment at the last start: before, between or after
    /// the segments that it found.
    pub missing_bytes: u64,
}

/// Sizes on disk.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiskFacts {
    /// Path of the data directory.
    pub directory: String,
    /// Size of the data directory, in bytes.
    pub all_bytes: u64,
    /// Bytes of the store in it, with event segments.
    pub store_bytes: u64,
    /// Bytes of the ingest log in it.
    pub log_bytes: u64,
    /// Free bytes of the file system.
    pub free_bytes: u64,
}
