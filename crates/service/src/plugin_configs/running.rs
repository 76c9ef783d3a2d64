//! What running plugins needs of configs: their opened values, and disabling a config
//! that keeps failing.

use std::sync::Arc;

use serde_json::{Map, Value};
use uuid::Uuid;
use weir_model::activity::{AuditAction, Subject};
use weir_model::mail::MailContent;
use weir_store::plugin_configs::{self as rows, ConfigRow};
use weir_store::{plugin_runtime, plugins};

use super::name;
use super::values::{Opened, location_of_attachment};
use crate::activity::{self, About, Changes};
use crate::{Clock, Core, Result, mail};

/// The opened values of a config. It has no `Debug`, because some are secrets.
pub struct OpenedValues {
    /// Its settings, with secrets.
    pub values: Map<String, Value>,
    /// The files that were uploaded for settings.
    pub attachments: Vec<OpenedAttachment>,
}

/// An opened attachment. It has no `Debug`, because it can be a secret.
pub struct OpenedAttachment {
    /// The setting of the attachment.
    pub key: String,
    /// Name of the file.
    pub name: String,
    /// The media type that was sent with the file.
    pub media_type: String,
    /// The contents of the file.
    pub contents: Vec<u8>,
}

/// What running plugins may do with configs. It is made without the other services,
/// because those that try code need the running plugins.
#[derive(Clone)]
pub struct RunningConfigs {
    core: Arc<Core>,
}

impl RunningConfigs {
    /// Creates it over the same state as the services.
    #[must_use]
    pub fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The clock of all services.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.core.clock
    }

    /// The values of a config, for running its plugin.
    ///
    /// # Errors
    /// When a secret cannot be opened; any failure of the store.
    pub async fn open(&self, row: &ConfigRow) -> Result<OpenedValues> {
        let values = Opened::of(&self.core.sealer, row)?.all();
        let uids: Vec<Uuid> = row.attachments.iter().map(|one| one.uid).collect();
        let found = rows::attached(&self.core.store, row.organization, &uids).await?;
        let mut attachments = Vec::with_capacity(found.len());
        for (attachment, sealed) in row.attachments.iter().zip(found) {
            // It was removed since the config was read.
            let Some(sealed) = sealed else { continue };
            let location = location_of_attachment(row.organization, attachment.uid);
            attachments.push(OpenedAttachment {
                key: attachment.key.clone(),
                name: attachment.name.clone(),
                media_type: attachment.media_type.clone(),
                contents: self.core.sealer.open(&location, &sealed)?.bytes().to_vec(),
            });
        }
        Ok(OpenedValues { values, attachments })
    }

    /// Disables a config that keeps failing, unless it has changed since it was read.
    /// `message` is the reason, for the config and the log. `false`: it is disabled
    /// already, was changed since, or is deleted.
    pub async fn switch_off(&self, row: &ConfigRow, message: &str) -> Result<bool> {
        let (store, now) = (&self.core.store, self.core.clock.now());
        let found = plugins::rows(store, &[row.plugin]).await?;
        let Some(plugin) = found.into_iter().next() else { return Ok(false) };
        let plugin_name = name(row, &plugin);
        let changes =
            Changes::none().field("enabled", &true, &false).field("reason", &None, &Some(message));
        let about = About {
            subject: Subject::PluginConfig,
            id: row.id.to_string(),
            name: plugin_name,
            project: Some(row.project),
        };
        let entry =
            activity::own_entry(now, row.organization, about, AuditAction::Disabled, changes);
        let news = |organization, project| MailContent::PluginDisabled {
            plugin: plugin_name.map_or_else(|| row.plugin.to_string(), str::to_owned),
            project,
            organization,
            error: message.to_owned(),
        };
        let mails = mail::to_administrators(store, row.organization, row.project, news).await?;
        let letters = self.core.mailing.rows(now, mails);
        let entries = [entry];
        let switched = plugin_runtime::switch_off(store, row, now, message, &letters, &entries);
        let is_off = switched.await?;
        if is_off && !letters.is_empty() {
            self.core.mailing.wake();
        }
        Ok(is_off)
    }
}
