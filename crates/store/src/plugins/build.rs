//! Results of compiling the source of a plugin: the code of its pages, and the faults of
//! its files.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `plugin_build` | plugin | the texts, and the faults as JSON text |

use std::collections::{BTreeMap, BTreeSet};

use surrealdb::types::SurrealValue;
use weir_model::PluginId;

use super::shape;
use crate::bind::bind;
use crate::db::Statement;
use crate::{Error, Result, Store};

/// The result of compiling the source of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Build {
    /// The module of its page in the app.
    pub frontend: Option<String>,
    /// The function for visited pages.
    pub site: Option<String>,
    /// Its code for the server in the form that is run, which only the compiler knows.
    pub server: Option<String>,
    /// The faults, from the name of a file to a sentence.
    pub faults: BTreeMap<String, String>,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct Stored {
    frontend: Option<String>,
    site: Option<String>,
    server: Option<String>,
    faults: String,
}

impl TryFrom<&Build> for Stored {
    type Error = Error;

    fn try_from(build: &Build) -> Result<Self> {
        Ok(Self {
            frontend: build.frontend.clone(),
            site: build.site.clone(),
            server: build.server.clone(),
            faults: serde_json::to_string(&build.faults).map_err(|error| shape(&error))?,
        })
    }
}

const GET: Statement =
    Statement::read("plugin build", "SELECT * FROM type::record('plugin_build', $plugin);");

/// The result of compiling the source of a plugin; `None` when it was not compiled yet.
pub async fn get(store: &Store, plugin: PluginId) -> Result<Option<Build>> {
    let found = store.db.run(GET, bind! { plugin: plugin.0 }).await?.row::<Stored>(0)?;
    let build = |stored: Stored| -> Result<Build> {
        Ok(Build {
            frontend: stored.frontend,
            site: stored.site,
            server: stored.server,
            faults: serde_json::from_str(&stored.faults).map_err(|error| shape(&error))?,
        })
    };
    found.map(build).transpose()
}

// The texts are not read, because they are long.
const WITH_SITE: Statement = Statement::read(
    "plugin builds with a site",
    "RETURN $plugins.map(|$plugin| {
         plugin: $plugin,
         has_site: (SELECT VALUE site FROM ONLY type::record('plugin_build', $plugin)) != NONE,
     });",
);

#[derive(Debug, SurrealValue)]
struct WithSite {
    plugin: i64,
    has_site: bool,
}

/// Which of these plugins have code for visited pages.
pub(crate) async fn with_site(store: &Store, plugins: &[PluginId]) -> Result<BTreeSet<PluginId>> {
    if plugins.is_empty() {
        return Ok(BTreeSet::new());
    }
    let ids: Vec<i64> = plugins.iter().map(|plugin| plugin.0).collect();
    let found = store.db.run(WITH_SITE, bind! { plugins: ids }).await?.rows::<WithSite>(0)?;
    let found = found.into_iter().filter(|one| one.has_site);
    Ok(found.map(|one| PluginId(one.plugin)).collect())
}
