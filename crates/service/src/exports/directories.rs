//! Directories of the server that exports write to: organizations share none, so that
//! nobody replaces the files of others or hides its own among them.
//!
//! What belongs here: whose a directory is. What does not: staying below the operator's
//! directory, and links in it (`weir-export`).

use serde_json::{Map, Value};
use unicode_normalization::UnicodeNormalization as _;
use weir_model::errors::FieldError;
use weir_model::exports::destinations::DestinationType;
use weir_model::exports::prefix::Template;
use weir_model::{BatchExportId, OrganizationId};
use weir_store::exports as rows;

use super::{Exports, config};
use crate::Result;

/// The kind of destination that has a directory.
const LOCAL: &str = "LocalDirectory";

/// The path of a config; none: it has none, or one that no file can be written below.
/// Not every disk tells names apart by case or by how an accent is written, so names
/// that differ in nothing else are one. No brace and no slash comes from that.
fn path(config: &Map<String, Value>) -> Option<Template> {
    let path: String = config.get("path").and_then(Value::as_str)?.nfd().collect();
    Template::parse(&path.to_uppercase().to_lowercase().nfd().collect::<String>()).ok()
}

impl Exports {
    /// Whether a destination of an organization shares no directory with one of another
    /// organization: with any, or with those that were there before an export.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn has_own_directory(
        &self,
        organization: OrganizationId,
        export: Option<BatchExportId>,
        kind: &DestinationType,
        config: &Map<String, Value>,
    ) -> Result<bool> {
        let Some(own) = path(config).filter(|_| kind.name == LOCAL) else { return Ok(true) };
        let all = rows::all(&self.core.store).await?.into_iter();
        let others = all.filter(|row| row.kind == LOCAL && row.organization != organization);
        for other in others.filter(|row| export.is_none_or(|export| row.id < export)) {
            if path(&config::shown(&other)?).is_some_and(|other| other.overlaps(&own)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Refuses a directory that is another organization's. Whoever stores it holds
    /// [`Exports::directories`] from before this until afterwards.
    pub(super) async fn check_directory(
        &self,
        organization: OrganizationId,
        kind: &DestinationType,
        config: &Map<String, Value>,
    ) -> Result<()> {
        if self.has_own_directory(organization, None, kind, config).await? {
            return Ok(());
        }
        let detail = "This directory, or one above or inside it, is used by another organization. \
                      Enter another path.";
        Err(FieldError::new("destination__config__path", "invalid_input", detail).into())
    }
}
