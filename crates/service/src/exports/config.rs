//! The settings of a destination in the forms that are sent, shown and stored: shown
//! settings as JSON, secrets sealed.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use weir_model::exports::SentConfig;
pub(super) use weir_model::exports::config::changed_secrets;
use weir_model::exports::config::{self as model, merged, split_secrets};
use weir_model::exports::destinations::DestinationType;
use weir_store::exports::ExportRow;

use crate::Result;
use crate::error::Error;
use crate::sealing::{SealedField, SealedLocation, Sealer};

/// The kind of destination with this name.
pub(super) fn kind(name: &str) -> Result<&'static DestinationType> {
    let unknown = || Error::Internal(format!("unknown kind of destination `{name}`"));
    DestinationType::of(name).ok_or_else(unknown)
}

/// The settings of a new destination, checked.
pub(super) fn complete(kind: &DestinationType, sent: &SentConfig) -> Result<Map<String, Value>> {
    Ok(model::complete(kind, &sent.0)?)
}

/// Stored settings with a change applied.
pub(super) fn changed(
    kind: &DestinationType,
    stored: &Map<String, Value>,
    sent: &SentConfig,
) -> Result<Map<String, Value>> {
    Ok(model::changed(kind, stored, &sent.0)?)
}

/// Puts settings into a row. Returns the names of its secrets.
pub(super) async fn store(
    sealer: &Sealer,
    row: &mut ExportRow,
    kind: &DestinationType,
    whole: &Map<String, Value>,
) -> Result<Vec<String>> {
    let names = changed_secrets(kind, &Map::new(), whole);
    let (shown, secrets) = split_secrets(kind, whole.clone());
    row.config = json(&shown)?;
    row.secrets = match names.is_empty() {
        true => None,
        false => {
            let secrets = zeroize::Zeroizing::new(json(&secrets)?);
            Some(sealer.seal(&location(row), secrets.as_bytes()).await?)
        }
    };
    Ok(names)
}

/// The settings of a row, with the secrets.
pub(super) fn open(sealer: &Sealer, row: &ExportRow) -> Result<Map<String, Value>> {
    let shown = shown(row)?;
    let Some(sealed) = &row.secrets else { return with_null_secrets(row, shown) };
    let plain = sealer.open(&location(row), sealed)?;
    let broken = |_| Error::Internal("opened secrets are no JSON".to_owned());
    let secrets: Map<String, Value> = serde_json::from_slice(plain.bytes()).map_err(broken)?;
    Ok(merged(shown, secrets))
}

/// Without sealed secrets all secrets are null.
fn with_null_secrets(row: &ExportRow, mut shown: Map<String, Value>) -> Result<Map<String, Value>> {
    for field in kind(&row.kind)?.fields.iter().filter(|field| field.is_secret) {
        shown.insert(field.name.to_owned(), Value::Null);
    }
    Ok(shown)
}

/// The settings of a row, without the secrets.
pub(super) fn shown(row: &ExportRow) -> Result<Map<String, Value>> {
    read_json(&row.config)
}

fn location(row: &ExportRow) -> SealedLocation {
    SealedLocation::new(SealedField::BatchExportSecrets, row.id, row.organization)
}

pub(super) fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Internal(error.to_string()))
}

pub(super) fn read_json<T: DeserializeOwned>(text: &str) -> Result<T> {
    let broken = |error| Error::Internal(format!("a stored text is not what it was: {error}"));
    serde_json::from_str(text).map_err(broken)
}
