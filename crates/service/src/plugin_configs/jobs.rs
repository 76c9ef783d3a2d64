//! Jobs of plugins, started by a user (PLG-19).

use serde_json::{Map, Value};
use weir_model::activity::AuditAction;
use weir_model::plugin_configs::{JOBS_MAX, JobInput, PluginConfig};
use weir_model::{plugins, validate};
use weir_store::ids;
use weir_store::plugin_configs::jobs::{self as rows, Added, JobRow};
use weir_store::plugins::PluginRow;

use super::{PluginConfigs, audit_entry};
use crate::Result;
use crate::activity::Changes;
use crate::ctx::ProjectCtx;
use crate::error::{Error, NOT_FOUND};
use crate::unchecked::Unchecked;

/// How many characters of a job's name a fault repeats.
const SHOWN: usize = 64;
/// The key of the payload with the operation of the job.
const OPERATION: &str = "$operation";

impl PluginConfigs {
    /// Stores a job for the plugin to run.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`]; [`Error::Invalid`] where the
    /// organization is not allowed to configure plugins, or the plugin has no such job;
    /// [`Error::TooMany`] when a hundred jobs wait.
    pub async fn job(
        &self,
        project: &ProjectCtx,
        config: &str,
        job: impl Into<Unchecked<'_, Option<JobInput>>>,
    ) -> Result<PluginConfig> {
        let row = self.writable(project, config).await?;
        let Some(JobInput { kind, payload, operation }) = job.into().read()? else {
            return self.show(&row).await;
        };
        let plugin = self.plugin(&row).await?;
        if !offers(&plugin, &kind) {
            let named: String = kind.chars().take(SHOWN).collect();
            return Err(validate::invalid_choice("job__type", &named).into());
        }
        // The payload can be anything, so the log does not repeat it.
        let changes = Changes::none().field("job", &None, &Some(&kind)).field(
            "operation",
            &None,
            &Some(&operation),
        );
        let now = project.org.ctx.now;
        let job = JobRow {
            id: ids::time_ordered(now),
            config: row.id,
            kind,
            payload: stored(payload, operation)?,
            created_at: now,
            run_at: None,
        };
        let entry = audit_entry(project, &row, &plugin, AuditAction::JobTriggered, changes);
        let store = &self.core.store;
        match rows::add(store, project.project, &job, JOBS_MAX, &[entry]).await? {
            Added::Yes => self.show(&row).await,
            Added::TooMany => Err(Error::TooMany {
                code: "too_many_jobs",
                detail: format!("{JOBS_MAX} jobs of this config wait to be run already."),
            }),
            Added::NoConfig => Err(Error::NotFound(NOT_FOUND)),
        }
    }
}

/// Whether a plugin has this job, according to its manifest or its code.
fn offers(plugin: &PluginRow, kind: &str) -> bool {
    let is_public = plugin.public_jobs.as_ref().is_some_and(|jobs| jobs.contains_key(kind));
    let found = plugin.capabilities.as_ref().and_then(|all| all.get("jobs")?.as_array());
    is_public || found.is_some_and(|jobs| jobs.iter().any(|job| job == kind))
}

/// The stored payload of a job, with its operation.
fn stored(mut payload: Map<String, Value>, operation: String) -> Result<String> {
    payload.insert(OPERATION.to_owned(), Value::from(operation));
    let payload = plugins::object("job__payload", payload)?;
    serde_json::to_string(&payload).map_err(|error| Error::Internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::stored;

    #[test]
    fn a_job_finds_what_is_to_be_done_beside_its_payload() {
        let stored = |payload: &Value| {
            let payload: Map<String, Value> = payload.as_object().unwrap().clone();
            stored(payload, "stop".to_owned())
        };
        let found: Value = serde_json::from_str(&stored(&json!({"day": 1})).unwrap()).unwrap();
        assert_eq!(found, json!({"$operation": "stop", "day": 1}));
        assert!(stored(&json!({"x": "x".repeat(65_536)})).is_err());
    }
}
