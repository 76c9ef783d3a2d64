//! The connection between the engine of batch exports and the service: the dependencies
//! of the engine, and testing destinations for the API and the pages.
//!
//! What belongs here: passing calls on. What does not: when and what is exported
//! (`weir-export`), what pausing means and who is notified (`weir-service`).

use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::time::timeout;
use weir_app::destination_test::{StepOutcome, TriedStep};
use weir_egress::Egress;
use weir_export::destination::{Destination, Failure};
use weir_export::destinations::{self, Dependencies};
use weir_export::engine::ExportServices;
use weir_model::exports::Run;
use weir_model::exports::addresses::Address;
use weir_model::exports::destinations::DestinationType;
use weir_model::{BatchExportId, OrganizationId, Timestamp};
use weir_service::exports::{HostPolicy, Trial};
use weir_store::exports::ExportRow;

use crate::app::App;

/// Timeout of one step of a test. It is shorter than the timeout of a request, so that
/// the client gets an answer.
pub(crate) const STEP_TIME: Duration = Duration::from_secs(20);
/// Timeout of all steps of a test that run in one request.
const STEPS_TIME: Duration = Duration::from_secs(25);

/// The egress rules, as exports check them when an address is entered.
pub struct EgressHostPolicy(pub Egress);

impl HostPolicy for EgressHostPolicy {
    fn refuses(&self, host: &str) -> bool {
        self.0.never_dials(host)
    }

    fn fault(&self, address: &Address) -> Option<String> {
        let judged = match address {
            Address::Host(host) => self.0.judge_host(host),
            Address::Url(url) => self.0.judge_url(url),
        };
        judged.err().map(|refused| format!("This address cannot be used: {refused}."))
    }
}

/// The service, as the engine of exports uses it.
pub struct AppExportServices {
    app: App,
    dependencies: Dependencies,
}

impl AppExportServices {
    /// Creates the services of this application.
    pub fn new(app: App) -> Self {
        let dependencies = app.dependencies();
        Self { app, dependencies }
    }
}

#[async_trait]
impl ExportServices for AppExportServices {
    fn now(&self) -> Timestamp {
        self.app.services.clock.now()
    }

    fn uptime(&self) -> Duration {
        self.app.services.clock.uptime()
    }

    async fn applied(&self) {
        self.app.ingest.applied().await;
    }

    async fn config(&self, export: &ExportRow) -> Result<Map<String, Value>, Failure> {
        match self.app.services.exports.whole_config(export) {
            Ok((kind, config)) => {
                let (organization, export) = (export.organization, Some(export.id));
                own_directory(&self.app, organization, export, kind, &config.0).await?;
                Ok(config.0)
            }
            Err(error) => {
                tracing::error!(export = %export.id, %error, "settings cannot be opened");
                Err(Failure::permanent(
                    "UnreadableSettings",
                    "The stored settings of the destination cannot be opened. Enter them again.",
                ))
            }
        }
    }

    fn destination(
        &self,
        kind: &str,
        config: &Map<String, Value>,
    ) -> Result<Box<dyn Destination>, Failure> {
        destinations::open(kind, config, &self.dependencies)
    }

    async fn failed(&self, export: &ExportRow, run: &Run) {
        if let Err(error) = self.app.services.exports.notify_failed(export, run).await {
            tracing::error!(run = %run.id, %error, "no mail was stored for a failed run");
        }
    }

    async fn pause(&self, export: &ExportRow, failed: u32, of: u32, reason: Option<&str>) {
        match self.app.services.exports.pause_failing(export, failed, of, reason).await {
            Ok(_) => tracing::warn!(export = %export.id, failed, of, "an export was paused"),
            Err(error) => {
                tracing::error!(export = %export.id, %error, "a failing export was not paused");
            }
        }
    }
}

/// Refuses a directory of the server that another organization uses, or used in an
/// earlier export. Stored exports may be older than this rule.
async fn own_directory(
    app: &App,
    organization: OrganizationId,
    export: Option<BatchExportId>,
    kind: &DestinationType,
    config: &Map<String, Value>,
) -> Result<(), Failure> {
    let exports = &app.services.exports;
    match exports.has_own_directory(organization, export, kind, config).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::permanent(
            "DirectoryTaken",
            "The directory, or one above or inside it, is used by another organization.",
        )),
        Err(error) => {
            tracing::warn!(%error, "the owner of an export directory is unknown");
            Err(Failure::retryable("StoreUnavailable", "The directory could not be checked now."))
        }
    }
}

/// Runs one step of the test of a destination.
pub(crate) async fn try_step(
    app: &App,
    trial: &Trial,
    step: usize,
    time: Duration,
) -> Result<(), Failure> {
    own_directory(app, trial.organization, None, trial.kind, &trial.config.0).await?;
    let destination = destinations::open(trial.kind.name, &trial.config.0, &app.dependencies())?;
    match timeout(time, destination.test(step, trial.model)).await {
        Ok(outcome) => outcome,
        Err(_elapsed) => {
            let detail = format!("There was no answer within {} seconds.", time.as_secs());
            Err(Failure::retryable("TimedOut", detail))
        }
    }
}

/// Runs the steps of the test of a destination until one fails.
pub(crate) async fn try_all(app: &App, trial: &Trial) -> Vec<TriedStep> {
    let begun = Instant::now();
    let mut tried: Vec<TriedStep> = Vec::new();
    for (step, name) in destinations::steps(trial.kind.name).iter().enumerate() {
        let outcome = if tried.last().is_some_and(|last| last.outcome != StepOutcome::Passed) {
            StepOutcome::Skipped
        } else {
            let time = STEPS_TIME.saturating_sub(begun.elapsed()).min(STEP_TIME);
            match try_step(app, trial, step, time).await {
                Ok(()) => StepOutcome::Passed,
                Err(failure) => StepOutcome::Failed(failure.to_string()),
            }
        };
        tried.push(TriedStep { name: (*name).to_owned(), outcome });
    }
    tried
}
