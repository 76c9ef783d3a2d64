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
    /// The backups. `None`: the data is in memory.
    pub backups: Option<BackupFacts>,
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

/// Backups of the instance.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BackupFacts {
    /// The backups that the server makes itself, if it makes any.
    pub schedule: Option<BackupSchedule>,
    /// The last backup that is known.
    pub last: Option<LastBackupFacts>,
    /// Why the last attempt of the server failed, if no backup was made since.
    pub failure: Option<BackupFailure>,
    /// Whether the server is making a backup.
    pub is_running: bool,
}

/// Backups that the server makes itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BackupSchedule {
    /// The directory of backups, or the address of the bucket.
    pub directory: String,
    /// Seconds between two backups.
    pub every_seconds: u64,
    /// How many backups stay there; `None`: all of them.
    pub keep: Option<u64>,
}

/// The last backup.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LastBackupFacts {
    /// The directory of backups, or the address of the bucket.
    pub directory: String,
    /// When it began, RFC 3339.
    pub began_at: String,
    /// Seconds since then.
    pub age_seconds: u64,
    /// Milliseconds until it was stored.
    pub took_ms: u64,
    /// Bytes of all of its files.
    pub bytes: u64,
    /// Bytes of it that no earlier backup there had.
    pub new_bytes: u64,
}

/// A backup that failed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BackupFailure {
    /// When it began, RFC 3339.
    pub at: String,
    /// The error.
    pub reason: String,
}
