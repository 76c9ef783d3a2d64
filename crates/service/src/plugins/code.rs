//! The interface of services to the code of plugins: inspecting, fetching and trying
//! it.
//!
//! What belongs here: the interface and the types of its answers. What does not:
//! running code, archives, other hosts (`weir-plugins`).

use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Map, Value};
use weir_model::json::JsonText;
use weir_model::plugin_configs::DryStep;
use weir_model::plugins::address::Address;
use weir_model::{OrganizationId, ProjectId, UserId};
use weir_store::plugin_runtime::registry::ConfigWithSource;

use crate::error::Error;

/// The interface to inspecting, fetching and running the code of plugins.
#[async_trait]
pub trait PluginCode: Send + Sync {
    /// Inspects source files, from name to text, and loads them where they can have no
    /// effect. Faults are reported for their file. Files of one user, and files of one
    /// organization, are inspected one after another, so that they delay only themselves.
    ///
    /// # Errors
    /// [`Busy`] without waiting, if many calls of this user wait already.
    async fn inspect(
        &self,
        user: UserId,
        organization: OrganizationId,
        files: &BTreeMap<String, String>,
    ) -> Result<Inspected, Busy>;

    /// Fetches source files from another host. `token` opens a private address.
    ///
    /// # Errors
    /// Why there are none, for people. The text never repeats data of another host.
    async fn fetch(&self, address: &Address, token: Option<&str>) -> Result<Fetched, CodeFault>;

    /// The newest version at an address; `None`: it has no versions.
    ///
    /// # Errors
    /// As [`fetch`](Self::fetch).
    async fn latest(
        &self,
        address: &Address,
        token: Option<&str>,
    ) -> Result<Option<String>, CodeFault>;

    /// Decompresses an archive: a zip or a compressed tar, recognized by its first
    /// bytes.
    ///
    /// # Errors
    /// The fault of the archive, for people.
    async fn extract(&self, archive: Bytes) -> Result<Fetched, CodeFault>;

    /// Sends an event through transformations. No result is stored.
    ///
    /// # Errors
    /// [`Busy`] without waiting, if many calls of this user wait already.
    async fn dry_run(&self, run: DryTrial) -> Result<Vec<DryStep>, Busy>;
}

/// Many calls of this user wait for running code already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy;

impl From<Busy> for Error {
    fn from(Busy: Busy) -> Self {
        Self::Unavailable("many of your plugins are waiting to be checked already")
    }
}

/// The result of inspecting source files.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Inspected {
    /// The capabilities of the code for the server: `methods`, `scheduled_tasks` and
    /// `jobs`; none: it could not be loaded, or there is none.
    pub capabilities: Option<Map<String, Value>>,
    /// The metrics that it declares.
    pub metrics: Option<Map<String, Value>>,
    /// The faults, from the name of a file to a sentence with line and column.
    pub faults: BTreeMap<String, String>,
    /// The text of the module with the page in the app.
    pub frontend: Option<String>,
    /// The text of an expression with the code of the site app.
    pub site: Option<String>,
    /// The code for the server in the form in which it is run.
    pub server: Option<String>,
}

/// Source files from another host or an archive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fetched {
    /// All text files, from the path below the plugin's folder to the text.
    pub files: BTreeMap<String, String>,
    /// The version of the files.
    pub tag: Option<String>,
}

/// Why there is no code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodeFault {
    /// The other host did not send it.
    #[error("{0}")]
    Unreachable(String),
    /// It was received, but cannot be used.
    #[error("{0}")]
    Unusable(String),
}

/// The input of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct DryTrial {
    /// Who tries.
    pub user: UserId,
    /// The project whose configs are tried.
    pub project: ProjectId,
    /// The configs in their order, enabled or not.
    pub configs: Vec<ConfigWithSource>,
    /// The event: an object with `uuid`, `event`, `distinct_id`, `timestamp` and
    /// `properties`.
    pub event: JsonText,
}
