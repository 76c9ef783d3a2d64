//! What services need of the code of plugins: looking at it, fetching it, trying
//! it.
//!
//! What belongs here: the questions and the forms of their answers. What does not:
//! running anything, archives, other hosts (`weir-plugins`).

use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Map, Value};
use weir_model::json::JsonText;
use weir_model::plugin_configs::DryStep;
use weir_model::plugins::address::Address;
use weir_model::{OrganizationId, ProjectId};
use weir_store::plugin_runtime::registry::Enabled;

/// Whoever can read and run the code of plugins.
#[async_trait]
pub trait PluginCode: Send + Sync {
    /// Looks at source files, from name to text, and loads them where nothing can
    /// happen. Never fails: what is wrong is told of the file that it is in. Those of
    /// one organization are looked at one after another, so that it holds up itself
    /// alone.
    async fn look(&self, organization: OrganizationId, files: &BTreeMap<String, String>) -> Looked;

    /// Fetches source files from another host. `token` opens a private place.
    ///
    /// # Errors
    /// Why there are none, for people. Never says what another host wrote.
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

    /// Unpacks an archive: a zip or a packed tar, as its first bytes say.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    async fn unpack(&self, archive: Bytes) -> Result<Fetched, CodeFault>;

    /// Sends an event through transformations. Nothing of it is kept.
    async fn dry_run(&self, run: DryTrial) -> Vec<DryStep>;
}

/// What was found in source files.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Looked {
    /// What the code for the server can do: `methods`, `scheduled_tasks` and `jobs`;
    /// none: it could not be loaded, or there is none.
    pub capabilities: Option<Map<String, Value>>,
    /// The metrics that it declares.
    pub metrics: Option<Map<String, Value>>,
    /// What is wrong, from the name of a file to a sentence with line and column.
    pub faults: BTreeMap<String, String>,
    /// The text of a module with the page in the app.
    pub frontend: Option<String>,
    /// The text of an expression with the code for visited pages.
    pub site: Option<String>,
    /// The code for the server as it is run, in a form of its own.
    pub server: Option<String>,
}

/// Source files from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fetched {
    /// All text files, from the path below the plugin's folder to the text.
    pub files: BTreeMap<String, String>,
    /// The version that they are of.
    pub tag: Option<String>,
}

/// Why there is no code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodeFault {
    /// The other host did not give it.
    #[error("{0}")]
    Unreachable(String),
    /// It is there, but cannot be used.
    #[error("{0}")]
    Unusable(String),
}

/// What is to be tried.
#[derive(Debug, Clone, PartialEq)]
pub struct DryTrial {
    /// The project.
    pub project: ProjectId,
    /// The configs in their order, whether they are enabled or not.
    pub configs: Vec<Enabled>,
    /// The event: an object with `uuid`, `event`, `distinct_id`, `timestamp` and
    /// `properties`.
    pub event: JsonText,
}
