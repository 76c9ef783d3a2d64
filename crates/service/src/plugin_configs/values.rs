//! The values of a config in the forms that are shown and stored: shown values as JSON,
//! secrets and attachments sealed.

use serde_json::{Map, Value, json};
use uuid::Uuid;
use weir_model::OrganizationId;
use weir_model::plugin_configs::settings::Settings;
use weir_model::plugin_configs::{
    ANY_MEDIA, OnFailure, PluginConfig, PluginConfigFields, SECRET, Texted,
};
use weir_store::plugin_configs::{AttachmentRow, ConfigRow};
use weir_store::plugins::PluginRow;
use zeroize::Zeroizing;

use crate::Result;
use crate::error::Error;
use crate::plugins::catalogue;
use crate::sealing::{SealedField, SealedLocation, Sealer};

/// The values of a config, with opened secrets.
#[derive(Default, PartialEq)]
pub(super) struct Opened {
    /// The values that are shown.
    pub(super) shown: Map<String, Value>,
    pub(super) secrets: Map<String, Value>,
}

impl Opened {
    /// The values of a stored config.
    pub(super) fn of(sealer: &Sealer, row: &ConfigRow) -> Result<Self> {
        let shown = read(&row.values)?;
        let Some(sealed) = &row.secrets else {
            return Ok(Self { shown, secrets: Map::new() });
        };
        let plain = sealer.open(&location(row), sealed)?;
        let broken = |_| Error::Internal("opened secrets are no JSON".to_owned());
        let secrets = serde_json::from_slice(plain.bytes()).map_err(broken)?;
        Ok(Self { shown, secrets })
    }

    /// All values.
    pub(super) fn all(&self) -> Map<String, Value> {
        let mut all = self.shown.clone();
        all.extend(self.secrets.clone());
        all
    }

    /// Seals the secrets and puts all values into a row.
    pub(super) async fn store(&self, sealer: &Sealer, row: &mut ConfigRow) -> Result<()> {
        row.values = json_text(&self.shown)?;
        row.secret_keys = self.secrets.keys().cloned().collect();
        row.secrets = match self.secrets.is_empty() {
            true => None,
            false => {
                let secrets = Zeroizing::new(json_text(&self.secrets)?);
                Some(sealer.seal(&location(row), secrets.as_bytes()).await?)
            }
        };
        Ok(())
    }
}

fn location(row: &ConfigRow) -> SealedLocation {
    SealedLocation::new(SealedField::PluginConfigSecrets, row.id, row.organization)
}

/// The sealing place of an attachment's contents.
pub(super) fn location_of_attachment(organization: OrganizationId, uid: Uuid) -> SealedLocation {
    SealedLocation::new(SealedField::PluginAttachment, uid, organization)
}

fn json_text(values: &Map<String, Value>) -> Result<String> {
    serde_json::to_string(values).map_err(|error| Error::Internal(error.to_string()))
}

pub(super) fn read(text: &str) -> Result<Map<String, Value>> {
    let broken = |error| Error::Internal(format!("a stored text is not what it was: {error}"));
    serde_json::from_str(text).map_err(broken)
}

/// A config as the API shows it, without the record of its plugin.
pub(super) fn shown(row: &ConfigRow, plugin: &PluginRow) -> Result<PluginConfig> {
    let settings = Settings::of(plugin.config_schema.as_ref());
    let mut values = read(&row.values)?;
    // A setting that became a secret after its value was stored is a secret too.
    for (key, value) in &mut values {
        if settings.hides(key, value) {
            *value = Value::from(SECRET);
        }
    }
    values.extend(row.secret_keys.iter().map(|key| (key.clone(), Value::from(SECRET))));
    for attachment in &row.attachments {
        values.insert(attachment.key.clone(), shown_attachment(attachment, &settings));
    }
    let described = row.description.clone().or_else(|| plugin.description.clone());
    Ok(PluginConfig {
        id: row.id,
        plugin: row.plugin,
        fields: PluginConfigFields {
            enabled: row.enabled,
            order: row.order,
            config: Texted::Value(values),
            name: super::name(row, plugin).map(str::to_owned),
            description: described,
            deleted: row.deleted,
            on_failure: on_failure(row, plugin),
            ..PluginConfigFields::none(row.project)
        },
        created_at: row.created_at,
        updated_at: row.updated_at,
    })
}

/// The treatment of events that a config cannot be run for.
pub fn on_failure(row: &ConfigRow, plugin: &PluginRow) -> OnFailure {
    let usual = || match catalogue::of_url(plugin.url.as_deref()) {
        Some(entry) if entry.protects() => OnFailure::HoldThenDrop,
        _ => OnFailure::StoreUnchanged,
    };
    row.on_failure.unwrap_or_else(usual)
}

/// An attachment as the value of its setting. It is shown as a secret if it was one
/// when it was stored, or if its setting is one now.
pub(super) fn shown_attachment(attachment: &AttachmentRow, settings: &Settings<'_>) -> Value {
    if attachment.secret || settings.is_secret(&attachment.key) {
        return json!({
            "uid": attachment.uid, "saved": true, "size": -1, "name": SECRET, "type": ANY_MEDIA,
        });
    }
    json!({
        "uid": attachment.uid, "saved": true, "size": attachment.size,
        "name": attachment.name, "type": attachment.media_type,
    })
}
