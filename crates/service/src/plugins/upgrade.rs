//! Newer versions of plugins (PLG-11).

use weir_model::Timestamp;
use weir_model::activity::AuditAction;
use weir_model::plugins::address::CodeSource;
use weir_model::plugins::{Group, Plugin};
use weir_store::plugins::{self as rows, NewSource, PluginRow};
use weir_store::update::{Change, Row as _};

use super::install::{self, FetchedCode};
use super::source::{file_of, noted_file, refuse_lost_group};
use super::{Changeable, Plugins, audit_entry, changes, require_owner};
use crate::Result;
use crate::ctx::OrgCtx;
use crate::policy::{self, Action};

/// A plugin that was checked for a newer version.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The plugin after the check.
    pub plugin: Plugin,
    /// Why the check failed; then the plugin is unchanged.
    pub fault: Option<String>,
}

impl Plugins {
    /// Looks up the newest version of a plugin and stores it. A plugin that is edited
    /// here or comes from the catalogue has none.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope);
    /// [`Error::Forbidden`](crate::Error::Forbidden) when the organization is not
    /// allowed to install plugins; [`Error::NotFound`](crate::Error::NotFound), also
    /// for a plugin of another organization.
    pub async fn check_for_updates(
        &self,
        org: &OrgCtx,
        group: Group,
        plugin: &str,
    ) -> Result<Checked> {
        let Changeable(row, _) = self.own(org, group, plugin, Action::ReadPlugins).await?;
        let Some(CodeSource::Address(address)) = install::source_of(&row)? else {
            return Ok(Checked { plugin: self.show(row).await?, fault: None });
        };
        let token = install::token_of(&self.core, &row)?;
        match self.code.latest(&address, token.as_deref()).await {
            Ok(latest) => {
                let (store, now) = (&self.core.store, org.ctx.now);
                rows::note_latest(store, org.organization, row.id, latest.as_deref(), now).await?;
                let row = self.read_again(org, row.id).await?;
                Ok(Checked { plugin: self.show(row).await?, fault: None })
            }
            Err(fault) => {
                Ok(Checked { plugin: self.show(row).await?, fault: Some(fault.to_string()) })
            }
        }
    }

    /// Fetches the newest code of a plugin and replaces its present code. A plugin that
    /// is edited here stays as it is.
    ///
    /// # Errors
    /// As [`Self::check_for_updates`], and
    /// [`Error::SignInAgain`](crate::Error::SignInAgain);
    /// [`Error::Invalid`](crate::Error::Invalid) when there is no usable code, or it
    /// belongs to another group; [`Error::Forbidden`](crate::Error::Forbidden) also for
    /// a caller who is not allowed to offer plugins, when this one is offered to all
    /// organizations, or was and others still use it;
    /// [`Error::Unavailable`](crate::Error::Unavailable) when many plugins of the caller
    /// wait to be checked already.
    pub async fn upgrade(&self, org: &OrgCtx, group: Group, plugin: &str) -> Result<Plugin> {
        let Changeable(found, _) = self.own(org, group, plugin, Action::WritePlugins).await?;
        let Some(source) = install::source_of(&found)? else { return self.show(found).await };
        policy::recent_if_person(&org.ctx)?;
        self.may_change(org, &found).await?;
        let token = install::token_of(&self.core, &found)?;
        let fetched = install::from_source(&*self.code, &source, token.as_deref()).await?;
        let (store, fetched) = (&self.core.store, &fetched);
        let change = |before: PluginRow| async move {
            require_owner(org, &before)?;
            self.may_change(org, &before).await?;
            let files = rows::files(store, before.id).await?;
            let change = fetched.change(&files)?;
            let mut row = filled(before.clone(), fetched, org.ctx.now);
            let user = org.ctx.user();
            let build = install::analyse(&*self.code, user, &mut row, &fetched.files).await?;
            refuse_lost_group(group, &before, &row, file_of(&fetched.files, &change))?;
            let mut noted = changes(Some(&before), &row);
            for (name, text) in &change {
                noted = noted_file(noted, name, files.get(name), text.as_ref());
            }
            if noted.is_empty() {
                let (entries, with) = (Vec::new(), NewSource::default());
                return Ok((Change { row: before, entries, with }, ()));
            }
            let entries = vec![audit_entry(org, &row, AuditAction::Updated, noted)];
            row.touch(org.ctx.now);
            let with = NewSource { change, build: Some(build) };
            Ok((Change { row, entries, with }, ()))
        };
        let (row, ()) = self.write_change(found.id, change).await?;
        self.show(row).await
    }
}

/// The record with the fields from its code. Fields that the code does not have stay.
pub(super) fn filled(before: PluginRow, fetched: &FetchedCode, now: Timestamp) -> PluginRow {
    let manifest = fetched.manifest.clone();
    let tag = fetched.tag.clone().or(before.tag);
    let has_versions = fetched.tag.is_some();
    PluginRow {
        name: manifest.name.or(before.name),
        description: manifest.description.or(before.description),
        config_schema: manifest.config_schema.or(before.config_schema),
        public_jobs: manifest.public_jobs.or(before.public_jobs),
        capabilities: fetched.capabilities.clone().or(before.capabilities),
        latest_tag: fetched.tag.clone().or(before.latest_tag),
        latest_tag_checked_at: has_versions.then_some(now).or(before.latest_tag_checked_at),
        tag,
        ..before
    }
}
