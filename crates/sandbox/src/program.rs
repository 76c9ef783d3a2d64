//! Programs: a script with its inputs and grants, and the kinds of calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Identifies a script of a config. A changed source or config has a new version; a child
/// process with an older version loads the new one in addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProgramKey {
    /// The id of the plugin config.
    pub config: i64,
    /// A number that changes with every change.
    pub version: u64,
}

/// A script of one config with its inputs.
#[derive(Debug, Clone)]
pub struct Program {
    /// Identifies it in the pool.
    pub key: ProgramKey,
    /// Plain JavaScript: an ES module, CommonJS or bare functions. At most 512 KiB.
    pub source: Arc<str>,
    /// The file name in errors, such as `index.ts`.
    pub name: String,
    /// The content of `meta` for its functions.
    pub meta: Meta,
    /// The calls that it may make to the host.
    pub grants: Grants,
}

/// The constant part of `meta` (PLG-28). `Debug` does not print it, because it contains
/// secrets.
#[derive(Clone)]
pub struct Meta {
    /// JSON text of an object.
    pub config: Box<RawValue>,
    /// Files by key.
    pub attachments: BTreeMap<String, Attachment>,
    /// The name of the plugin: the default distinct id of captured events.
    pub plugin: String,
}

impl std::fmt::Debug for Meta {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meta").field("plugin", &self.plugin).finish_non_exhaustive()
    }
}

/// A file of a config.
#[derive(Clone, Serialize, Deserialize)]
pub struct Attachment {
    /// MIME type.
    pub content_type: String,
    /// The file name of the upload.
    pub file_name: String,
    /// Standard base64 with padding.
    pub contents: String,
}

/// The calls that a program may make to the host. Logs and metrics need no grant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Grants {
    /// `fetch`, to hosts that egress allows.
    pub fetch: bool,
    /// `meta.storage` and `meta.utils.cursor`.
    pub storage: bool,
    /// `meta.cache`.
    pub cache: bool,
    /// `posthog.capture`.
    pub capture: bool,
    /// `meta.jobs`.
    pub jobs: bool,
    /// `meta.geoip`.
    pub geoip: bool,
}

/// The call of one transformation with the events of a request.
#[derive(Debug, Clone)]
pub struct TransformationCall {
    /// The program of the transformation.
    pub program: Arc<Program>,
    /// Time beyond 5 ms per event that the program may use up in the whole request, by
    /// payer. It is skipped for an event if one of its payers has nothing left.
    pub allowances: Vec<Duration>,
}

/// The kind of source to compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// Server code, compiled to `weir_transpile::Script`.
    Server,
    /// `frontend.tsx`, compiled to `weir_transpile::Page`.
    Frontend,
    /// `site.ts`, compiled to `weir_transpile::Page`.
    Site,
}

/// The function of a destination plugin that receives stored events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeliveryFunction {
    /// `onEvent`, for each event.
    OnEvent,
    /// `composeWebhook`, for each event.
    ComposeWebhook,
    /// `exportEvents`, once for all events, with one result for all.
    ExportEvents,
}

/// A scheduled function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    /// `runEveryMinute`.
    EveryMinute,
    /// `runEveryHour`.
    EveryHour,
    /// `runEveryDay`.
    EveryDay,
}

impl Task {
    /// The name of the export.
    pub fn export(self) -> &'static str {
        match self {
            Self::EveryMinute => "runEveryMinute",
            Self::EveryHour => "runEveryHour",
            Self::EveryDay => "runEveryDay",
        }
    }
}
