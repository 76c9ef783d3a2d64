//! Adding a plugin (PLG-3).
//!
//! What belongs here: from the input of a new plugin to its record, its source and the audit
//! entry. What does not: fetching and inspecting code (`install`).

use std::collections::BTreeMap;

use weir_model::PluginId;
use weir_model::activity::AuditAction;
use weir_model::errors::FieldError;
use weir_model::plugins::address::CodeSource;
use weir_model::plugins::{Group, PLUGINS_MAX, Plugin, PluginInput, PluginType, SentArchive};
use weir_store::ids;
use weir_store::plugins::{self as rows, Created, NewSource, PluginRow};

use super::install::{self, FetchedCode};
use super::{Plugins, URL_TAKEN, audit_entry, changes, patched, source, upgrade};
use crate::Result;
use crate::ctx::OrgCtx;
use crate::error::{Error, NOT_FOUND};
use crate::policy;
use crate::sealing::{SealedField, SealedLocation};

/// The name of the access token of an address in audit entries.
const TOKEN: &str = "private_token";

impl Plugins {
    /// Adds a plugin, with the code at its address or in its archive. Its code must belong to
    /// this group. A sent field has precedence over the same field from the code.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Forbidden`]; [`Error::SignInAgain`] where
    /// there is code; [`Error::Invalid`], also when there is no usable code, or it
    /// belongs to another group: at `url` or `archive`; and when the organization has the
    /// maximum number of plugins; [`Error::Unavailable`] when many plugins of the caller
    /// wait to be checked already.
    pub async fn create(&self, org: &OrgCtx, group: Group, input: PluginInput) -> Result<Plugin> {
        self.add(org, group, false, input).await
    }

    /// Like [`Self::create`], for pages, which find a plugin in any group: code of
    /// another group is accepted and added there.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub async fn install(&self, org: &OrgCtx, group: Group, input: PluginInput) -> Result<Plugin> {
        self.add(org, group, true, input).await
    }

    async fn add(
        &self,
        org: &OrgCtx,
        group: Group,
        any_group: bool,
        input: PluginInput,
    ) -> Result<Plugin> {
        self.may_install(org).await?;
        let PluginInput { url, archive, fields } = input;
        let is_global = fields.is_global.clone().required("is_global")?.unwrap_or(false);
        if is_global {
            self.may_offer(org).await?;
        }
        if url.is_some() || archive.is_some() {
            policy::recent_if_person(&org.ctx)?;
        }
        let fetched = self.fetch_code(url.as_ref(), archive).await?;
        let kind = fetched.as_ref().map_or(PluginType::Source, |fetched| fetched.kind);
        let empty = self.empty_row(org, group, url.as_ref(), kind, is_global).await?;
        let mut new_source = NewSource::default();
        let row = match &fetched {
            None => patched(&empty, fields, None),
            Some(fetched) => {
                new_source.change = fetched.change(&BTreeMap::new())?;
                let filled = upgrade::filled(empty, fetched, org.ctx.now);
                let mut row = patched(&filled, fields, None);
                let user = org.ctx.user();
                let build = install::analyse(&*self.code, user, &mut row, &fetched.files).await?;
                new_source.build = Some(build);
                if any_group && !row.groups().contains(&group) {
                    row.created_group = row.groups().first().copied();
                } else {
                    source::refuse_other_group(group, &row, fetched)?;
                }
                row
            }
        };
        self.store_new(org, row, &new_source).await
    }

    /// The code of a new plugin. `None`: members write it in Weir.
    async fn fetch_code(
        &self,
        url: Option<&CodeSource>,
        archive: Option<SentArchive>,
    ) -> Result<Option<FetchedCode>> {
        match (archive, url) {
            (Some(archive), _) => install::from_archive(&*self.code, archive).await.map(Some),
            (None, Some(source)) => {
                let token = match source {
                    CodeSource::Address(address) => address.private_token.as_deref(),
                    CodeSource::Catalogue(_) => None,
                };
                install::from_source(&*self.code, source, token).await.map(Some)
            }
            (None, None) => Ok(None),
        }
    }

    /// The record of a new plugin, without the fields that its code and the caller set.
    async fn empty_row(
        &self,
        org: &OrgCtx,
        group: Group,
        url: Option<&CodeSource>,
        kind: PluginType,
        is_global: bool,
    ) -> Result<PluginRow> {
        let now = org.ctx.now;
        let id = rows::next_number(&self.core.store).await?;
        let (tag, private_token) = match url {
            Some(CodeSource::Address(address)) => {
                let token = address.private_token.as_deref();
                (address.tag.clone(), self.sealed_token(org, id, token).await?)
            }
            Some(CodeSource::Catalogue(_)) | None => (None, None),
        };
        let empty = || Some(serde_json::Map::new());
        Ok(PluginRow {
            id,
            organization: org.organization,
            created_group: Some(group),
            is_analysed: false,
            plugin_type: Some(kind),
            name: None,
            description: None,
            url: url.map(CodeSource::url),
            private_token,
            icon: None,
            config_schema: empty(),
            tag,
            latest_tag: None,
            latest_tag_checked_at: None,
            is_global,
            was_global: is_global,
            capabilities: empty(),
            metrics: empty(),
            public_jobs: empty(),
            created_at: now,
            updated_at: now,
            revision: ids::time_ordered(now),
        })
    }

    /// The access token of an address as it is stored.
    async fn sealed_token(
        &self,
        org: &OrgCtx,
        id: PluginId,
        token: Option<&str>,
    ) -> Result<Option<String>> {
        let Some(token) = token else { return Ok(None) };
        let location = SealedLocation::new(SealedField::PluginToken, id, org.organization);
        Ok(Some(self.core.sealer.seal(&location, token.as_bytes()).await?))
    }

    /// Stores a new plugin with its source and the audit entry.
    async fn store_new(
        &self,
        org: &OrgCtx,
        row: PluginRow,
        new_source: &NewSource,
    ) -> Result<Plugin> {
        let mut changes = changes(None, &row);
        if row.private_token.is_some() {
            changes = changes.secret(TOKEN);
        }
        let installed = audit_entry(org, &row, AuditAction::Installed, changes);
        match rows::create(&self.core.store, &row, new_source, PLUGINS_MAX, &[installed]).await? {
            Created::Yes => self.show(row).await,
            Created::TooMany => {
                let detail = format!(
                    "An organization may have at most {PLUGINS_MAX} plugins. Delete one first."
                );
                Err(FieldError::body("invalid_input", detail).into())
            }
            Created::UrlTaken => Err(FieldError::body("invalid_input", URL_TAKEN).into()),
            Created::OrganizationGone => Err(Error::NotFound(NOT_FOUND)),
        }
    }
}
