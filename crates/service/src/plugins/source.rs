//! Source files of plugins: reading and changing them (plugins 4).

use std::collections::BTreeMap;

use weir_model::activity::Deed;
use weir_model::plugins::source::{self as model, Manifest};
use weir_model::plugins::{Group, MANIFEST, Plugin, SourceChange};
use weir_store::plugins::{self as rows, PluginRow};

use super::{Changeable, Plugins, TRIES, busy, changes, told, touched};
use crate::Result;
use crate::activity::{self, Changes};
use crate::ctx::OrgCtx;
use crate::policy::{self, Action};

/// A plugin with its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// The plugin.
    pub plugin: Plugin,
    /// Its files, from name to text.
    pub files: BTreeMap<String, String>,
    /// What is wrong with them, from the name of a file to a sentence.
    pub faults: BTreeMap<String, String>,
}

impl Plugins {
    /// The source of a plugin.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope);
    /// [`Error::Forbidden`](crate::Error::Forbidden) when the organization may not
    /// install plugins; [`Error::NotFound`](crate::Error::NotFound), also for a
    /// plugin of another one.
    pub async fn source(&self, org: &OrgCtx, group: Group, plugin: &str) -> Result<Source> {
        let Changeable(row) = self.own(org, group, plugin, Action::ReadPlugins).await?;
        let files = rows::files(&self.core.store, row.id).await?;
        self.whole(row, files).await
    }

    /// The plugin of this id, for changing its source.
    ///
    /// # Errors
    /// As [`Self::source`], and [`Error::SignInAgain`](crate::Error::SignInAgain);
    /// [`Error::Forbidden`](crate::Error::Forbidden) also for a plugin that is
    /// offered to all organizations, and a caller who may offer none.
    pub async fn editable(&self, org: &OrgCtx, group: Group, plugin: &str) -> Result<Changeable> {
        let Changeable(row) = self.own(org, group, plugin, Action::WritePlugins).await?;
        policy::recent_if_person(&org.ctx)?;
        if row.is_global {
            self.may_offer(org).await?;
        }
        Ok(Changeable(row))
    }

    /// Changes source files; what is not named stays. A new `plugin.json` gives
    /// the record its name and its `config_schema`; one that cannot be read is
    /// kept all the same, and the answer says what is wrong with it.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) when there would be too much
    /// source; [`Error::NotFound`](crate::Error::NotFound) when the plugin was
    /// deleted meanwhile.
    pub async fn update_source(
        &self,
        org: &OrgCtx,
        editable: Changeable,
        change: SourceChange,
    ) -> Result<Source> {
        let Changeable(mut before) = editable;
        let store = &self.core.store;
        for _ in 0..TRIES {
            if before.is_global {
                self.may_offer(org).await?;
            }
            let files = rows::files(store, before.id).await?;
            let after_files = model::changed(&files, &change)?;
            if after_files == files {
                return self.whole(before, files).await;
            }
            let after = touched(org, described(&before, &files, &after_files));
            let mut noted = changes(Some(&before), &after);
            for (name, _) in &change {
                noted = noted_file(noted, name, files.get(name), after_files.get(name));
            }
            let updated = told(org, &after, Deed::Updated, noted);
            if rows::save(store, before.revision, &after, &change, &[updated]).await? {
                return self.whole(after, after_files).await;
            }
            before = self.again(org, before.id).await?;
        }
        Err(busy())
    }

    async fn whole(&self, row: PluginRow, files: BTreeMap<String, String>) -> Result<Source> {
        let faults = model::faults(&files);
        Ok(Source { plugin: self.show(row).await?, files, faults })
    }
}

/// The record as a changed `plugin.json` describes it. An unchanged one does not
/// undo what was entered since.
fn described(
    before: &PluginRow,
    files: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> PluginRow {
    let mut row = before.clone();
    let text = after.get(MANIFEST).filter(|text| files.get(MANIFEST) != Some(*text));
    // What is wrong with it is told by `faults`.
    if let Some(Ok(Manifest { name, config_schema })) = text.map(|text| model::manifest(text)) {
        row.name = name.or(row.name);
        row.config_schema = config_schema.or(row.config_schema);
    }
    row
}

/// Notes which text a file had and has, by its hash: texts are long, and the log
/// is kept for ever.
fn noted_file(
    changes: Changes,
    name: &str,
    before: Option<&String>,
    after: Option<&String>,
) -> Changes {
    let hash = |text: &String| activity::hash(text);
    changes.field(name, &before.map(hash), &after.map(hash))
}
