//! Source files of plugins: reading and changing them (PLG-10).

use std::collections::BTreeMap;

use weir_catalogue::Code;
use weir_model::activity::AuditAction;
use weir_model::errors::FieldError;
use weir_model::plugins::source::{self as model, Manifest};
use weir_model::plugins::{Group, MANIFEST, Plugin, SourceChange};
use weir_store::plugins::build::{self, Build};
use weir_store::plugins::{self as rows, NewSource, PluginRow};
use weir_store::update::{Change, Row as _};

use super::install::{self, FetchedCode};
use super::{Changeable, Plugins, audit_entry, catalogue, changes, require_owner};
use crate::Result;
use crate::activity::{self, Changes};
use crate::ctx::OrgCtx;
use crate::policy::{self, Action};

/// The message for changing a step of the service.
const BUILT_IN: &str = "This plugin is a part of the service and has no source.";

/// A plugin with its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// The plugin that has the files.
    pub plugin: Plugin,
    /// Its files, from name to text.
    pub files: BTreeMap<String, String>,
    /// The faults of the files, from the name of a file to a sentence.
    pub faults: BTreeMap<String, String>,
}

impl Plugins {
    /// The source of a plugin.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope);
    /// [`Error::Forbidden`](crate::Error::Forbidden) when the organization is not
    /// allowed to install plugins; [`Error::NotFound`](crate::Error::NotFound), also
    /// for a plugin of another organization.
    pub async fn source(&self, org: &OrgCtx, group: Group, plugin: &str) -> Result<Source> {
        let Changeable(row, _) = self.own(org, group, plugin, Action::ReadPlugins).await?;
        let files = rows::files(&self.core.store, row.id).await?;
        self.stored(row, files).await
    }

    /// The plugin with this id, for changing its source.
    ///
    /// # Errors
    /// As [`Self::source`], and [`Error::SignInAgain`](crate::Error::SignInAgain);
    /// [`Error::Forbidden`](crate::Error::Forbidden) also for a caller who is not
    /// allowed to offer plugins, when this one is offered to all organizations, or was
    /// and others still use it.
    pub async fn editable(&self, org: &OrgCtx, group: Group, plugin: &str) -> Result<Changeable> {
        let editable = self.own(org, group, plugin, Action::WritePlugins).await?;
        policy::recent_if_person(&org.ctx)?;
        self.may_change(org, &editable.0).await?;
        Ok(editable)
    }

    /// Changes source files; files that are not named stay. A new `plugin.json` sets
    /// the name, `config_schema` and `public_jobs` of the record. The code is inspected
    /// for its capabilities. Files that cannot be read or loaded are stored too, and
    /// the answer contains their faults.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) when there would be too much source,
    /// the plugin is a part of the service, or the code belongs to another group than
    /// the group of the request; [`Error::NotFound`](crate::Error::NotFound) when the
    /// plugin was deleted at the same time;
    /// [`Error::Unavailable`](crate::Error::Unavailable) when many plugins of the caller
    /// wait to be checked already.
    pub async fn update_source(
        &self,
        org: &OrgCtx,
        editable: Changeable,
        change: SourceChange,
    ) -> Result<Source> {
        let Changeable(found, group) = editable;
        if catalogue::of_url(found.url.as_deref())
            .is_some_and(|entry| matches!(entry.code, Code::Native(_)))
        {
            return Err(FieldError::body("invalid_input", BUILT_IN).into());
        }
        let (store, wanted) = (&self.core.store, &change);
        let change = |before: PluginRow| async move {
            require_owner(org, &before)?;
            self.may_change(org, &before).await?;
            let files = rows::files(store, before.id).await?;
            let after_files = model::changed(&files, wanted)?;
            if after_files == files {
                let (entries, with) = (Vec::new(), NewSource::default());
                return Ok((Change { row: before, entries, with }, (files, None)));
            }
            let mut row = described(&before, &files, &after_files);
            let user = org.ctx.user();
            let build = install::analyse(&*self.code, user, &mut row, &after_files).await?;
            refuse_lost_group(group, &before, &row, file_of(&after_files, wanted))?;
            let mut noted = changes(Some(&before), &row);
            for (name, _) in wanted {
                noted = noted_file(noted, name, files.get(name), after_files.get(name));
            }
            let entries = vec![audit_entry(org, &row, AuditAction::Updated, noted)];
            let faults = build.faults.clone();
            let with = NewSource { change: wanted.clone(), build: Some(build) };
            row.touch(org.ctx.now);
            Ok((Change { row, entries, with }, (after_files, Some(faults))))
        };
        let (row, (files, faults)) = self.write_change(found.id, change).await?;
        match faults {
            Some(faults) => Ok(Source { plugin: self.show(row).await?, files, faults }),
            None => self.stored(row, files).await,
        }
    }

    /// A plugin with its source as it is stored.
    async fn stored(&self, row: PluginRow, files: BTreeMap<String, String>) -> Result<Source> {
        // Source that was written long ago was never inspected.
        let found = build::get(&self.core.store, row.id).await?;
        let faults = found.map_or_else(|| model::faults(&files), |Build { faults, .. }| faults);
        Ok(Source { plugin: self.show(row).await?, files, faults })
    }
}

/// Refuses a change that would remove a plugin from the group of the request or from
/// the one that it was created through, because its URL would stop working.
pub(super) fn refuse_lost_group(
    group: Group,
    before: &PluginRow,
    after: &PluginRow,
    attr: &str,
) -> Result<(), FieldError> {
    let is_home = |made: &Group| before.groups().contains(made);
    let mut homes = before.created_group.filter(is_home).into_iter().chain([group]);
    let shown = after.groups();
    let Some(left) = homes.find(|home| !shown.contains(home)) else { return Ok(()) };
    let detail =
        format!("A plugin stays in its group: {} Make another plugin for other code.", needs(left));
    Err(FieldError::new(attr, "invalid_input", detail))
}

/// Refuses to create a plugin through a group that its code does not belong to.
pub(super) fn refuse_other_group(
    group: Group,
    row: &PluginRow,
    fetched: &FetchedCode,
) -> Result<(), FieldError> {
    let shown = row.groups();
    if shown.contains(&group) {
        return Ok(());
    }
    let others: Vec<&str> = shown.iter().map(|other| other.text()).collect();
    let file = server_file(&fetched.files).map(|file| format!("{file}: ")).unwrap_or_default();
    let needs = needs(group);
    let detail = format!("{file}{needs} Make this plugin through {}.", others.join(" or "));
    Err(FieldError::new(fetched.attr, "invalid_input", detail))
}

/// The functions that code of a group exports, as a sentence.
fn needs(group: Group) -> String {
    let exports = match group {
        Group::Destinations => "`onEvent` or `composeWebhook`, or `processEvent` alone",
        Group::FrontendApps => "no function that the server calls, or `processEvent` alone",
        Group::ImportApps => "a scheduled task, or no function that events are given to",
    };
    format!("code of {} exports {exports}.", group.text())
}

fn server_file(files: &BTreeMap<String, String>) -> Option<&'static str> {
    let is_there = |name: &&str| files.get(*name).is_some_and(|text| !text.trim().is_empty());
    model::SERVER.into_iter().find(is_there)
}

/// The file at which a change of source is refused: the file for the server, or the one
/// that was changed.
pub(super) fn file_of<'a>(files: &BTreeMap<String, String>, change: &'a SourceChange) -> &'a str {
    let changed = || change.iter().map(|(name, _)| name.as_str()).next();
    server_file(files).or_else(changed).unwrap_or("non_field_errors")
}

/// The record with the fields of a changed `plugin.json`. An unchanged one does not
/// overwrite fields that were changed since.
fn described(
    before: &PluginRow,
    files: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> PluginRow {
    let mut row = before.clone();
    let text = after.get(MANIFEST).filter(|text| files.get(MANIFEST) != Some(*text));
    // Its faults are in `faults`.
    if let Some(Ok(Manifest { name, config_schema, public_jobs, .. })) =
        text.map(|text| model::manifest(text))
    {
        row.name = name.or(row.name);
        row.config_schema = config_schema.or(row.config_schema);
        row.public_jobs = public_jobs.or(row.public_jobs);
    }
    row
}

/// Adds the hashes of a file's texts before and after: texts are long, and the log is
/// kept forever.
pub(super) fn noted_file(
    changes: Changes,
    name: &str,
    before: Option<&String>,
    after: Option<&String>,
) -> Changes {
    let hash = |text: &String| activity::hash(text);
    changes.field(name, &before.map(hash), &after.map(hash))
}
