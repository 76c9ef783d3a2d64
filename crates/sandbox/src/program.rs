//! What is run: a script with everything that it is given, and how it is called.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Which script of which config this is. A changed source or config has a new
/// version; a child that holds an older one loads the new one beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProgramKey {
    /// The config.
    pub config: i64,
    /// Any number that is another one after every change.
    pub version: u64,
}

/// A script of one config with what it is given.
#[derive(Debug, Clone)]
pub struct Program {
    /// Names it in the pool.
    pub key: ProgramKey,
    /// Plain JavaScript: an ES module, CommonJS or bare functions. At most 512 KiB.
    pub source: Arc<str>,
    /// The file name that errors show, such as `index.ts`.
    pub name: String,
    /// What the functions find in `meta`.
    pub meta: Meta,
    /// What it may ask of the host.
    pub grants: Grants,
}

/// The constant part of `meta` (PLG-28). Not shown by `Debug`: there are
/// secrets in it.
#[derive(Clone)]
pub struct Meta {
    /// The text of a JSON object.
    pub config: Box<RawValue>,
    /// Files by key.
    pub attachments: BTreeMap<String, Attachment>,
    /// The plugin's name: the distinct id of what it captures without one.
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
    /// The name that it was sent with.
    pub file_name: String,
    /// Standard base64 with padding.
    pub contents: String,
}

/// What a program may ask of the host. Logs and metrics need no grant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Grants {
    /// `fetch`.
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

/// A step of a transformation.
#[derive(Debug, Clone)]
pub struct Step {
    /// What is called.
    pub program: Arc<Program>,
    /// How much time beyond 5 ms per event this step may use up in the whole request, by
    /// payer. It is passed over for an event of which one payer has nothing left.
    pub allowances: Vec<Duration>,
}

/// What kind of source is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// Code for the server: becomes a `weir_transpile::Script`.
    Server,
    /// `frontend.tsx`: becomes a `weir_transpile::Page`.
    Frontend,
    /// `site.ts`: likewise.
    Site,
}

/// How events reach a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Delivery {
    /// `onEvent` for each.
    OnEvent,
    /// `composeWebhook` for each.
    ComposeWebhook,
    /// `exportEvents` once for all; one answer for all.
    ExportEvents,
}

/// What is run by the clock.
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
