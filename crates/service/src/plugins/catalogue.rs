//! The catalogue of plugins that can be installed.
//!
//! What belongs here: the record of a catalogue entry. What does not: the entries
//! (`weir-catalogue`), plugins of organizations (`plugins`).
//!
//! Installing an entry makes it visible: it creates a record of the organization with
//! the address `inline:<id>`.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_catalogue::{Code, Entry};
use weir_model::errors::FieldError;
use weir_model::plugins::overview::CatalogueEntry;
use weir_model::plugins::source::Manifest;
use weir_model::plugins::{PluginType, address, schema};

use super::install::FetchedCode;
use crate::Result;
use crate::error::Error;

/// All entries, in the order of the list.
pub(super) fn entries() -> Vec<CatalogueEntry> {
    weir_catalogue::catalogue().iter().map(|entry| listed(entry)).collect()
}

fn listed(entry: &Entry) -> CatalogueEntry {
    CatalogueEntry {
        name: entry.name.to_owned(),
        url: entry.url(),
        description: entry.description.to_owned(),
        icon: entry.icon.map(str::to_owned),
        verified: true,
        maintainer: weir_catalogue::MAINTAINER.to_owned(),
        display_on_website_lib: true,
        kind: entry.direction.text().to_owned(),
    }
}

/// The entry with this address of a plugin.
pub(crate) fn of_url(url: Option<&str>) -> Option<&'static Entry> {
    url.and_then(weir_catalogue::find_url)
}

/// The code and the manifest of an entry, for installing it.
pub(super) fn code_of(id: &str) -> Result<FetchedCode> {
    let missing = || {
        let detail = format!("The catalogue has no plugin \"{id}\".");
        FieldError::new(address::FIELD, "invalid_input", detail)
    };
    let entry = weir_catalogue::find(id).ok_or_else(missing)?;
    let broken = |fault: FieldError| Error::Internal(format!("entry {id}: {}", fault.detail));
    let manifest = Manifest {
        name: Some(entry.name.to_owned()),
        description: Some(entry.description.to_owned()),
        main: None,
        config_schema: Some(schema::read(schema::FIELD, &entry.config_schema()).map_err(broken)?),
        public_jobs: None,
    };
    let files = entry.files().iter().map(|file| (file.name.to_owned(), file.text.to_owned()));
    let capabilities = match (entry.code, entry.capabilities()) {
        (Code::Native(_), Value::Object(capabilities)) => Some(capabilities),
        _ => None,
    };
    Ok(FetchedCode {
        kind: PluginType::Inline,
        attr: address::FIELD,
        tag: None,
        files: files.collect::<BTreeMap<String, String>>(),
        manifest,
        capabilities,
    })
}
