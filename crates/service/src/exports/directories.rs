//! Directories of the server that exports write to. Organizations do not share a
//! directory, so that none can replace the files of another, or put its own files among
//! them.
//!
//! What belongs here: which organization owns a directory. What does not: staying below
//! the operator's directory, and links in it (`weir-export`).

use serde_json::{Map, Value};
use unicode_normalization::UnicodeNormalization as _;
use weir_model::errors::FieldError;
use weir_model::exports::destinations::DestinationType;
use weir_model::exports::prefix::Template;
use weir_model::{BatchExportId, OrganizationId};
use weir_store::exports as rows;

use super::{AT_A_TIME, Exports, config};
use crate::Result;

/// The kind of destination with a directory.
const LOCAL: &str = "LocalDirectory";

/// The normalized path of a config; none: it has no path, or one below which no file
/// can be written. Some disks ignore case or how an accent is written, so names that
/// differ only in that are equal. The normalization adds neither a brace nor a slash.
fn path(config: &Map<String, Value>) -> Option<Template> {
    let path: String = config.get("path").and_then(Value::as_str)?.nfd().collect();
    Template::parse(&path.to_uppercase().to_lowercase().nfd().collect::<String>()).ok()
}

impl Exports {
    /// Whether the directory of a destination overlaps no directory of another
    /// organization. With `export` only older exports count.
    pub async fn has_own_directory(
        &self,
        organization: OrganizationId,
        export: Option<BatchExportId>,
        kind: &DestinationType,
        config: &Map<String, Value>,
    ) -> Result<bool> {
        let Some(own) = path(config).filter(|_| kind.name == LOCAL) else { return Ok(true) };
        let mut all = rows::all(&self.core.store).await?;
        all.retain(|other| export.is_none_or(|export| *other < export));
        for some in all.chunks(AT_A_TIME) {
            for (_, owner, other) in rows::configs_of_kind(&self.core.store, some, LOCAL).await? {
                let overlaps = |other: Template| other.overlaps(&own);
                if owner != organization && path(&config::read_json(&other)?).is_some_and(overlaps)
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Refuses a directory of another organization. The caller must hold the lock
    /// [`Exports::directories`] from this check until the export is stored.
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
