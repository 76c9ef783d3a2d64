//! What source files are: what they can do, and what is wrong with them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use weir_model::plugins::{FRONTEND, SITE};
use weir_sandbox::Capabilities;
use weir_service::plugins::code::Looked;
use weir_transpile::{Page, Script, SourceError};

use crate::registry::load::entry;
use crate::registry::told;
use crate::{LOOKING, Shared};

/// What scripts can import; the sandbox provides it.
const MODULES: [&str; 5] =
    ["@posthog/plugin-scaffold", "@posthog/plugin-contrib", "crypto", "url", "node-fetch"];

/// Reads code for pages.
type Read = fn(&str) -> Result<Page, SourceError>;

impl Shared {
    /// Looks at all files. What is wrong with one is told of it; the others are
    /// looked at nevertheless.
    pub(crate) async fn look_at(&self, files: &BTreeMap<String, String>) -> Looked {
        let mut looked = Looked::default();
        if let Some((name, text)) = entry(files) {
            match self.look_at_server(name, text).await {
                Ok(found) => {
                    looked.metrics = Some(
                        found.metrics.iter().map(|(k, v)| (k.clone(), v.clone().into())).collect(),
                    );
                    looked.capabilities = Some(map(&found));
                }
                Err(fault) => drop(looked.faults.insert(name.to_owned(), fault)),
            }
        }
        let pages =
            [(FRONTEND, weir_transpile::frontend as Read), (SITE, weir_transpile::site as Read)];
        for (name, read) in pages {
            let Some(text) = files.get(name).cloned() else { continue };
            let made = match blocking(move || read(&text)).await {
                Ok(page) => Some(page.code),
                Err(fault) => {
                    looked.faults.insert(name.to_owned(), fault);
                    None
                }
            };
            match name {
                FRONTEND => looked.frontend = made,
                _ => looked.site = made,
            }
        }
        looked
    }

    async fn look_at_server(&self, name: &str, text: &str) -> Result<Capabilities, String> {
        let (file, source) = (name.to_owned(), text.to_owned());
        let script: Script = blocking(move || weir_transpile::server(&file, &source)).await?;
        let unknown = |module: &str| {
            let plain = module.strip_prefix("node:").unwrap_or(module);
            !MODULES.contains(&plain)
        };
        if let Some(import) = script.imports.iter().find(|import| unknown(&import.module)) {
            let (module, line) = (&import.module, import.line);
            return Err(format!("{name}:{line}: there is no module {module:?} here"));
        }
        let code: Arc<str> = Arc::from(script.code.as_str());
        match self.work.inspect(LOOKING, name, &code).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(told(&error, &script)),
            Err(fault) => Err(fault.to_string()),
        }
    }
}

/// Reads a source on a thread where that holds up nobody.
async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, SourceError> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(read).await {
        Ok(read) => read.map_err(|fault| fault.to_string()),
        Err(error) => {
            tracing::error!(%error, "reading the source of a plugin failed");
            Err("The source cannot be read.".to_owned())
        }
    }
}

/// Capabilities as a record has them (plugins 1).
fn map(found: &Capabilities) -> Map<String, Value> {
    let list = |names: &[String]| Value::from(names.to_vec());
    [
        ("methods", list(&found.methods)),
        ("scheduled_tasks", list(&found.scheduled_tasks)),
        ("jobs", list(&found.jobs)),
    ]
    .into_iter()
    .map(|(name, names)| (name.to_owned(), names))
    .collect()
}
