//! The source of a plugin's code, and the record fields that inspecting the code sets
//! (PLG-3, PLG-9).

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value};
use weir_model::UserId;
use weir_model::errors::FieldError;
use weir_model::plugins::address::{self, CodeSource};
use weir_model::plugins::source::{self as model, Manifest, SERVER};
use weir_model::plugins::{FRONTEND, PluginType, SITE, SentArchive, SourceChange};
use weir_store::plugins::PluginRow;
use weir_store::plugins::build::Build;

use super::catalogue;
use super::code::{CodeFault, Fetched, Inspected, PluginCode};
use crate::error::Error;
use crate::sealing::{self, SealedField};
use crate::{Core, Result};

/// The field with an archive.
const ARCHIVE: &str = "archive";
/// The capabilities that only the code decides.
const FROM_CODE: [&str; 3] = ["methods", "scheduled_tasks", "jobs"];

/// Code from an address or an archive.
#[derive(Debug, Clone)]
pub(super) struct FetchedCode {
    /// The kind of its source.
    pub(super) kind: PluginType,
    /// The field of the request with the source.
    pub(super) attr: &'static str,
    /// Its version.
    pub(super) tag: Option<String>,
    /// The source files that are stored.
    pub(super) files: BTreeMap<String, String>,
    pub(super) manifest: Manifest,
    /// Its capabilities, where there is no source to inspect.
    pub(super) capabilities: Option<Map<String, Value>>,
}

impl FetchedCode {
    /// The files as a change of the present ones. Too much source is a fault.
    pub(super) fn change(
        &self,
        present: &BTreeMap<String, String>,
    ) -> Result<SourceChange, FieldError> {
        let gone = present.keys().filter(|name| !self.files.contains_key(*name));
        let new = self.files.iter().filter(|(name, text)| present.get(*name) != Some(*text));
        let mut change: SourceChange = gone.map(|name| (name.clone(), None)).collect();
        change.extend(new.map(|(name, text)| (name.clone(), Some(text.clone()))));
        model::changed(present, &change)
            .map_err(|fault| FieldError { attr: Some(self.attr.to_owned()), ..fault })?;
        Ok(change)
    }
}

/// Fetches code from an address, with a token if it needs one.
pub(super) async fn from_source(
    code: &dyn PluginCode,
    source: &CodeSource,
    token: Option<&str>,
) -> Result<FetchedCode> {
    match source {
        CodeSource::Catalogue(id) => catalogue::code_of(id),
        CodeSource::Address(at) => {
            let fetched = code.fetch(at, token).await;
            of_files(PluginType::Custom, address::FIELD, fetched)
        }
    }
}

/// Decompresses code that was sent.
pub(super) async fn from_archive(
    code: &dyn PluginCode,
    archive: SentArchive,
) -> Result<FetchedCode> {
    let extracted = code.extract(Bytes::from(archive.0)).await;
    of_files(PluginType::Source, ARCHIVE, extracted)
}

fn of_files(
    kind: PluginType,
    attr: &'static str,
    fetched: Result<Fetched, CodeFault>,
) -> Result<FetchedCode> {
    let wrong = |detail: String| FieldError::new(attr, "invalid_input", detail);
    let Fetched { files, tag } = fetched.map_err(|fault| wrong(fault.to_string()))?;
    let (files, manifest) = model::of_archive(files).map_err(wrong)?;
    Ok(FetchedCode { kind, attr, tag, files, manifest, capabilities: None })
}

/// The address of a plugin's code. `None`: members edit the code in Weir.
pub(super) fn source_of(row: &PluginRow) -> Result<Option<CodeSource>> {
    let is_edited = matches!(row.plugin_type, Some(PluginType::Source | PluginType::Local));
    let Some(url) = row.url.as_deref().filter(|_| !is_edited) else { return Ok(None) };
    let broken = |fault: FieldError| Error::Internal(format!("a stored address: {}", fault.detail));
    CodeSource::read(url).map(Some).map_err(broken)
}

/// The token for the address of a plugin.
pub(super) fn token_of(core: &Core, row: &PluginRow) -> Result<Option<String>> {
    let Some(sealed) = &row.private_token else { return Ok(None) };
    let location = sealing::SealedLocation::new(SealedField::PluginToken, row.id, row.organization);
    let plain = core.sealer.open(&location, sealed)?;
    let broken = |_| Error::Internal("a decrypted token is not UTF-8".to_owned());
    String::from_utf8(plain.bytes().to_vec()).map(Some).map_err(broken)
}

/// Inspects all source files of a plugin. Their capabilities go into the record, and
/// the built code is returned. Code that cannot be loaded leaves the record as it was.
///
/// # Errors
/// [`Error::Unavailable`] if many calls of this user wait already.
pub(super) async fn analyse(
    code: &dyn PluginCode,
    user: UserId,
    row: &mut PluginRow,
    files: &BTreeMap<String, String>,
) -> Result<Build> {
    let faults = model::faults(files);
    let has_server = SERVER.iter().any(|name| files.contains_key(*name));
    let has_page = files.contains_key(FRONTEND) || files.contains_key(SITE);
    if !has_server && !has_page {
        return Ok(Build { faults, ..Build::default() });
    }
    let Inspected { capabilities, metrics, faults: code_faults, frontend, site, server } =
        code.inspect(user, row.organization, files).await?;
    let new_capabilities = match capabilities {
        Some(found) if has_server => Some(found),
        // Only pages: no capability on the server (PLG-6).
        _ if !has_server && code_faults.is_empty() => Some(Map::new()),
        _ => None,
    };
    if let Some(found) = new_capabilities {
        let mut capabilities = row.capabilities.take().unwrap_or_default();
        capabilities.retain(|name, _| !FROM_CODE.contains(&name.as_str()));
        if !(has_page && has_no_capability(&found)) {
            capabilities.extend(found);
        }
        row.capabilities = Some(capabilities);
        row.is_analysed = true;
    }
    row.metrics = metrics.or(row.metrics.take());
    Ok(Build { frontend, site, server, faults: code_faults.into_iter().chain(faults).collect() })
}

/// Whether code for the server has no capability.
fn has_no_capability(capabilities: &Map<String, Value>) -> bool {
    capabilities.values().all(|names| names.as_array().is_none_or(Vec::is_empty))
}
