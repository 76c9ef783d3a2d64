//! The token of a domain, and the levels of its groups: what an owner decides.

use weir_model::DomainId;
use weir_model::activity::AuditAction;
use weir_model::errors::FieldError;
use weir_model::mail::TokenChange;
use weir_model::pagination::{Page, Paged};
use weir_model::scim::{self as model, ScimGroup, ScimGroupPatch, ScimToken};
use weir_store::domains::{self as domain_rows, DomainRow};
use weir_store::mail::MailRow;
use weir_store::scim::{self as rows, GroupRow, TokenRow};
use weir_store::users;

use super::levels::level_of;
use super::{Scim, parse_id};
use crate::activity::{self, Changes};
use crate::ctx::OrgCtx;
use crate::domains::{about, notices};
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};
use crate::{Result, secrets};

/// A domain whose provisioning the caller may change.
#[derive(Debug)]
pub struct Changeable(DomainRow);

/// A domain whose identity provider the caller may give power over members.
#[derive(Debug)]
pub struct Provisionable(DomainRow);

impl Scim {
    /// Provisioning of a domain.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::NotFound`].
    pub async fn of_domain(&self, org: &OrgCtx, domain: &str) -> Result<model::Scim> {
        policy::check(org, Action::ReadOrganization)?;
        let row = self.find(org, domain).await?;
        let state = rows::state(&self.core.store, row.id).await?;
        let token = state.and_then(|state| state.token);
        let token = match token {
            Some(token) => Some(self.shown_token(token, None).await?),
            None => None,
        };
        Ok(model::Scim { path: model::path(row.id), token })
    }

    /// Proves that there is this domain and that the actor may make tokens for it, and set
    /// the levels of its groups.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Forbidden`] below owner; [`Error::SignInAgain`];
    /// [`Error::NotFound`].
    pub async fn provisionable(&self, org: &OrgCtx, domain: &str) -> Result<Provisionable> {
        policy::check(org, Action::ManageProvisioning)?;
        policy::recent_if_person(&org.ctx)?;
        Ok(Provisionable(self.find(org, domain).await?))
    }

    /// Proves that there is this domain and that the actor may revoke its token.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Forbidden`] below administrator;
    /// [`Error::SignInAgain`]; [`Error::NotFound`].
    pub async fn changeable(&self, org: &OrgCtx, domain: &str) -> Result<Changeable> {
        policy::check(org, Action::ManageDomains)?;
        policy::recent_if_person(&org.ctx)?;
        Ok(Changeable(self.find(org, domain).await?))
    }

    /// Makes a token, in place of the one before. Only this answer contains its value.
    ///
    /// # Errors
    /// [`Error::Invalid`] with `verification_required`; [`Error::NotFound`] when the domain
    /// was deleted at the same time.
    pub async fn create_token(&self, org: &OrgCtx, of: Provisionable) -> Result<ScimToken> {
        let Provisionable(row) = of;
        if row.verified_at.is_none() {
            let detail = "The domain must be verified first.";
            return Err(FieldError::body("verification_required", detail).into());
        }
        let secret = secrets::scim_token()?;
        let token = TokenRow {
            hash: secret.hash(),
            mask: secret.mask(),
            created_by: org.ctx.user(),
            created_at: org.ctx.now,
            used_at: None,
        };
        let store = &self.core.store;
        let before = rows::state(store, row.id).await?.and_then(|state| state.token);
        let before = before.map(|token| token.mask);
        let action = if before.is_some() { AuditAction::Rotated } else { AuditAction::Created };
        let changes = Changes::none().field("scim_token", &before, &Some(token.mask.clone()));
        let entry = activity::entry(&org.ctx, row.organization, about(&row), action, changes);
        let change = if before.is_some() { TokenChange::Replaced } else { TokenChange::Made };
        let mails = self.token_mails(org, &row, change).await?;
        if !rows::set_token(store, row.organization, row.id, &token, &mails, &[entry]).await? {
            return Err(Error::NotFound(NOT_FOUND));
        }
        self.core.mailing.wake();
        self.shown_token(token, Some(secret.reveal())).await
    }

    /// Revokes the token. Users and groups stay.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none.
    pub async fn revoke_token(&self, org: &OrgCtx, of: Changeable) -> Result<()> {
        let Changeable(row) = of;
        let store = &self.core.store;
        let token = rows::state(store, row.id).await?.and_then(|state| state.token);
        let token = token.ok_or(Error::NotFound(NOT_FOUND))?;
        let changes = Changes::none().field("scim_token", &Some(&token.mask), &None);
        let action = AuditAction::Deleted;
        let entry = activity::entry(&org.ctx, row.organization, about(&row), action, changes);
        let mails = self.token_mails(org, &row, TokenChange::Revoked).await?;
        rows::revoke(store, row.id, &token.hash, &mails, &[entry]).await?;
        self.core.mailing.wake();
        Ok(())
    }

    async fn token_mails(
        &self,
        org: &OrgCtx,
        row: &DomainRow,
        change: TokenChange,
    ) -> Result<Vec<MailRow>> {
        let notice = notices::to_owners(&self.core, row.organization, Some(org)).await?;
        Ok(self.core.mailing.rows(org.ctx.now, notice.of_token(row, change, org.ctx.now)))
    }

    async fn shown_token(&self, token: TokenRow, value: Option<String>) -> Result<ScimToken> {
        let maker = users::get(&self.core.store, token.created_by).await?;
        Ok(ScimToken {
            value,
            mask_value: token.mask,
            created_by: maker.map(|user| user.email),
            created_at: token.created_at,
            last_used_at: token.used_at,
        })
    }

    /// The groups of a domain, oldest first.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::NotFound`].
    pub async fn list_groups(
        &self,
        org: &OrgCtx,
        domain: &str,
        page: Page,
    ) -> Result<Paged<ScimGroup>> {
        policy::check(org, Action::ReadOrganization)?;
        let row = self.find(org, domain).await?;
        let all = rows::groups(&self.core.store, row.id).await?;
        let Paged { count, results } = page.of(all);
        let mut shown = Vec::with_capacity(results.len());
        for group in results {
            shown.push(self.shown_group(row.id, group).await?);
        }
        Ok(Paged { count, results: shown })
    }

    /// One group.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::NotFound`].
    pub async fn get_group(&self, org: &OrgCtx, domain: &str, group: &str) -> Result<ScimGroup> {
        policy::check(org, Action::ReadOrganization)?;
        let row = self.find(org, domain).await?;
        let found = self.find_group(row.id, group).await?;
        self.shown_group(row.id, found).await
    }

    /// Changes the level that the members of a group get, and the levels of those that it
    /// has.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Unavailable`].
    pub async fn update_group(
        &self,
        org: &OrgCtx,
        of: Provisionable,
        group: &str,
        patch: ScimGroupPatch,
    ) -> Result<ScimGroup> {
        let Provisionable(row) = of;
        let before = self.find_group(row.id, group).await?;
        let present = level_of(&before);
        let level = patch.level.over(present);
        if level != present {
            self.set_group_level(org, &row, before.id, level).await?;
        }
        let after = self.find_group(row.id, group).await?;
        self.shown_group(row.id, after).await
    }

    async fn shown_group(&self, domain: DomainId, row: GroupRow) -> Result<ScimGroup> {
        let members = rows::members(&self.core.store, domain, row.id).await?;
        Ok(ScimGroup {
            id: row.id,
            level: level_of(&row),
            display_name: row.display_name,
            external_id: row.external_id,
            member_count: members.len() as u64,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }

    async fn find_group(&self, domain: DomainId, group: &str) -> Result<GroupRow> {
        self.group_at(domain, group).await?.ok_or(Error::NotFound(NOT_FOUND))
    }

    async fn find(&self, org: &OrgCtx, domain: &str) -> Result<DomainRow> {
        let id = parse_id(domain).map(DomainId).ok_or(Error::NotFound(NOT_FOUND))?;
        let found = domain_rows::get(&self.core.store, org.organization, id).await?;
        found.ok_or(Error::NotFound(NOT_FOUND))
    }
}
