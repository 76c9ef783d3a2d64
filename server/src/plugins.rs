//! The connection between plugins and the service: the dependencies of plugins.
//!
//! What belongs here: passing calls on, and appending events of plugins to the log. What
//! does not: when and how plugins run (`weir-plugins`), what disabling means and who is
//! notified (`weir-service`).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use weir_capture::{Context, CookielessKey, Decision, RawEvent, decide, drop_over_limit};
use weir_ingest::Appender;
use weir_ingest::batch::Batch;
use weir_model::Timestamp;
use weir_plugins::{Attachment, Captured, OpenedConfig, PluginServices};
use weir_service::limits::{Admission, Limiter};
use weir_service::plugin_configs::RunningConfigs;
use weir_store::plugin_configs::ConfigRow;
use weir_store::plugins::PluginRow;
use weir_store::{Store, projects};

use crate::metrics::Metrics;

/// Longest wait for the log.
const APPEND: Duration = Duration::from_secs(10);

/// The service, as plugins use it.
pub struct AppPluginServices {
    configs: RunningConfigs,
    store: Store,
    log: Appender,
    limiter: Arc<Limiter>,
    metrics: Metrics,
}

impl AppPluginServices {
    /// Creates the services. Events of plugins go to `log`, within the limits of `limiter`.
    pub fn new(
        configs: RunningConfigs,
        store: Store,
        log: Appender,
        limiter: Arc<Limiter>,
        metrics: Metrics,
    ) -> Self {
        Self { configs, store, log, limiter, metrics }
    }
}

#[async_trait]
impl PluginServices for AppPluginServices {
    fn now(&self) -> Timestamp {
        self.configs.clock().now()
    }

    fn uptime(&self) -> Duration {
        self.configs.clock().uptime()
    }

    async fn applied(&self) {
        self.log.applied().await;
    }

    async fn open(&self, config: &ConfigRow, _plugin: &PluginRow) -> Result<OpenedConfig, String> {
        let opened = self.configs.open(config).await.map_err(|error| {
            tracing::error!(config = %config.id, %error, "settings cannot be opened");
            "The stored settings cannot be opened. Enter them again.".to_owned()
        })?;
        let attachments = opened.attachments.into_iter().map(|attachment| {
            let opened = Attachment {
                content_type: attachment.media_type,
                file_name: attachment.name,
                contents: STANDARD.encode(&attachment.contents),
            };
            (attachment.key, opened)
        });
        Ok(OpenedConfig { config: opened.values, attachments: attachments.collect() })
    }

    async fn switch_off(&self, config: &ConfigRow, message: &str) -> bool {
        match self.configs.switch_off(config, message).await {
            Ok(true) => tracing::warn!(config = %config.id, "a failing plugin was disabled"),
            Ok(false) => {}
            Err(error) => {
                tracing::error!(config = %config.id, %error, "a failing plugin was not disabled");
                return false;
            }
        }
        true
    }

    async fn capture(&self, event: Captured) -> Result<(), String> {
        let not_now = || "the event cannot be accepted at this time".to_owned();
        let project = projects::find(&self.store, event.project).await.map_err(|error| {
            tracing::error!(%error, "an event of a plugin was not accepted");
            not_now()
        })?;
        let project = project.ok_or_else(|| "the project is gone".to_owned())?;
        let received_at = self.now();
        let context = Context {
            received_at: received_at.to_chrono(),
            sent_at: None,
            project: event.project.0,
            client_address: None,
            engage: false,
            person_processing_opt_out: project.person_processing_opt_out,
            cookieless_key: CookielessKey::Missing,
        };
        let text = json!({
            "event": event.event,
            "distinct_id": event.distinct_id,
            "timestamp": event.timestamp,
            "properties": event.properties,
        })
        .to_string();
        let raw = RawEvent::parse(&text).map_err(|fault| fault.to_string())?;
        let organization = project.brief.organization;
        let admission = self.limiter.admit(organization, 1);
        self.metrics.count_admission(admission, 1);
        let over = match admission {
            Admission::Take | Admission::Warn(_) => None,
            Admission::Drop(limit) => limit.drop_reason(),
            Admission::Reject(over) => {
                let label = over.limit.label();
                return Err(format!("the organization has reached its limit: {label}"));
            }
        };
        let decision = match over {
            Some(reason) => drop_over_limit(&raw, reason, &context),
            None => decide(&raw, &context),
        };
        let mut batch = Batch::new(received_at.micros(), event.historical);
        match decision {
            Decision::Accept(accepted) => batch.accepted.push(accepted),
            Decision::Drop(dropped) if Some(dropped.reason) == over => batch.push_dropped(dropped),
            Decision::Drop(dropped) => return Err(dropped.reason.sentence().to_owned()),
        }
        let accepted = batch.accepted.len() as u64;
        let appended =
            tokio::time::timeout(APPEND, self.log.append(event.project, batch.into_encoded()));
        match appended.await {
            Ok(Ok(())) => {
                self.limiter.count(organization, accepted);
                if let Some(reason) = over {
                    self.metrics.count_drops(reason, 1);
                }
                Ok(())
            }
            Ok(Err(_)) | Err(_) => Err(not_now()),
        }
    }
}
