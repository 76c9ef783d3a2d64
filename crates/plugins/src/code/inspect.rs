//! Inspecting source files: their capabilities and their faults.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use weir_model::plugins::{FRONTEND, SITE};
use weir_model::{OrganizationId, UserId};
use weir_sandbox::{Capabilities, Source};
use weir_service::plugins::code::{Busy, Inspected};
use weir_transpile::{Page, Script};

use crate::Shared;
use crate::registry::load::{entry, stored};
use crate::registry::message;

/// Modules that scripts can import. The sandbox provides them.
const MODULES: [&str; 5] =
    ["@posthog/plugin-scaffold", "@posthog/plugin-contrib", "crypto", "url", "node-fetch"];

impl Shared {
    /// Inspects all files. A fault of one file is reported with it; the other files are
    /// inspected nevertheless.
    pub(crate) async fn inspect(
        &self,
        user: UserId,
        organization: OrganizationId,
        files: &BTreeMap<String, String>,
    ) -> Result<Inspected, Busy> {
        let mut inspected = Inspected::default();
        let slot = self.inspections.acquire(user, organization).await?;
        if let Some((name, _)) = entry(files) {
            let compiled = match self.compile(slot.lane, files).await {
                Ok(compiled) => {
                    inspected.server = stored(&compiled);
                    compiled
                }
                Err(fault) => Err(fault.to_string()),
            };
            let found = match compiled {
                Ok(script) => self.inspect_server(slot.lane, name, &script).await,
                Err(fault) => Err(fault),
            };
            match found {
                Ok(found) => {
                    inspected.metrics = Some(
                        found.metrics.iter().map(|(k, v)| (k.clone(), v.clone().into())).collect(),
                    );
                    inspected.capabilities = Some(map(&found));
                }
                Err(fault) => drop(inspected.faults.insert(name.to_owned(), fault)),
            }
        }
        for (name, kind) in [(FRONTEND, Source::Frontend), (SITE, Source::Site)] {
            let Some(text) = files.get(name) else { continue };
            let made = self.work.compile::<Page>(slot.lane, kind, name, text).await;
            let made = match made.unwrap_or_else(|fault| Err(fault.to_string())) {
                Ok(page) => Some(page.code),
                Err(fault) => {
                    inspected.faults.insert(name.to_owned(), fault);
                    None
                }
            };
            match kind {
                Source::Frontend => inspected.frontend = made,
                Source::Site | Source::Server => inspected.site = made,
            }
        }
        Ok(inspected)
    }

    async fn inspect_server(
        &self,
        lane: usize,
        name: &str,
        script: &Script,
    ) -> Result<Capabilities, String> {
        let unknown = |module: &str| {
            let plain = module.strip_prefix("node:").unwrap_or(module);
            !MODULES.contains(&plain)
        };
        if let Some(import) = script.imports.iter().find(|import| unknown(&import.module)) {
            let (module, line) = (&import.module, import.line);
            return Err(format!("{name}:{line}: there is no module {module:?} here"));
        }
        let code: Arc<str> = Arc::from(script.code.as_str());
        match self.work.inspect(lane, name, &code).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(message(&error, script)),
            Err(fault) => Err(fault.to_string()),
        }
    }
}

/// Capabilities in the form of a record (PLG-3).
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
