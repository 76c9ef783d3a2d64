//! The settings that xtask shares with cargo-leptos: `[[workspace.metadata.leptos]]` in the
//! root `Cargo.toml`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use toml::{Table, Value};

pub(crate) struct Conventions(Table);

impl Conventions {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let file: Table = fs::read_to_string(root.join("Cargo.toml"))?.parse()?;
        let metadata = file.get("workspace").and_then(|workspace| workspace.get("metadata"));
        let apps = metadata.and_then(|metadata| metadata.get("leptos")).and_then(Value::as_array);
        let app = apps.and_then(|apps| apps.first()).and_then(Value::as_table);
        Ok(Self(app.context("no `[[workspace.metadata.leptos]]` in Cargo.toml")?.clone()))
    }

    /// A setting that is a text.
    pub(crate) fn text(&self, name: &str) -> Result<&str> {
        let value = self.0.get(name).and_then(Value::as_str);
        value.with_context(|| format!("no text `{name}` in `[[workspace.metadata.leptos]]`"))
    }

    /// A setting that is a list of texts.
    pub(crate) fn list(&self, name: &str) -> Result<Vec<&str>> {
        let values = self.0.get(name).and_then(Value::as_array);
        let values = values.and_then(|values| values.iter().map(Value::as_str).collect());
        values.with_context(|| format!("no list `{name}` in `[[workspace.metadata.leptos]]`"))
    }
}
