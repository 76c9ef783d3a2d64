//! Mails to owners about changes of a domain that decide how members sign in (SSO-35).
//!
//! What belongs here: which changes, and who is notified. What does not: the texts
//! (`weir-mail`).

use weir_model::domains::SsoEnforcement;
use weir_model::mail::{Mail, MailContent, SignInChange, TokenChange};
use weir_model::organizations::Level;
use weir_model::{OrganizationId, Timestamp};
use weir_store::domains::DomainRow;
use weir_store::organizations;
use weir_store::users::{self, UserRow};

use super::{CONFIRMED, has_saml};
use crate::ctx::OrgCtx;
use crate::{Core, Result, mail, members};

/// Who is notified, and what the mails say about the change except its fields.
#[derive(Clone, Default)]
pub(crate) struct Notice {
    owners: Vec<UserRow>,
    organization: String,
    by: Option<String>,
}

/// The owners of an organization. `actor`: the caller who makes the change; `None`: the
/// operator, or the instance itself.
pub(crate) async fn to_owners(
    core: &Core,
    organization: OrganizationId,
    actor: Option<&OrgCtx>,
) -> Result<Notice> {
    if !core.mailing.is_open() {
        return Ok(Notice::default());
    }
    let store = &core.store;
    let owners = members::notified_owners(core, organization).await?;
    let home = organizations::get(store, organization).await?;
    let by = match actor {
        Some(org) => users::get(store, org.ctx.user()).await?.map(|user| user.email),
        None => None,
    };
    Ok(Notice { owners, organization: home.map(|home| home.name).unwrap_or_default(), by })
}

impl Notice {
    /// The mails about a change of the rules or of the provider. None if it changes nothing
    /// for members who sign in.
    pub(super) fn of_change(&self, before: &DomainRow, after: &DomainRow) -> Vec<Mail> {
        let path = page(after);
        if before.domain != after.domain && before.verified_at.is_some() {
            let change = SignInChange::DomainRenamed {
                domain: after.domain.clone(),
                before: before.domain.clone(),
                organization: self.organization.clone(),
            };
            return self.mails(&change, &path, after.updated_at);
        }
        let mut fields = fields(before, after);
        let ranks = |row: &DomainRow| (row.provider_rank, row.rules_rank);
        if fields.is_empty() && ranks(before) != ranks(after) {
            // A caller of a higher level stands for what is stored (SSO-45).
            fields.push(CONFIRMED.to_owned());
        }
        if fields.is_empty() {
            return Vec::new();
        }
        let change = SignInChange::DomainRules {
            domain: after.domain.clone(),
            organization: self.organization.clone(),
            fields,
        };
        self.mails(&change, &path, after.updated_at)
    }

    /// The mails about a domain whose stored SAML provider acts from now on.
    pub(super) fn of_verification(&self, row: &DomainRow, now: Timestamp) -> Vec<Mail> {
        if !has_saml(row) {
            return Vec::new();
        }
        let change = SignInChange::DomainVerified {
            domain: row.domain.clone(),
            organization: self.organization.clone(),
        };
        self.mails(&change, &page(row), now)
    }

    /// The mails about rules that are suspended, or in force again.
    pub(super) fn of_suspension(
        &self,
        row: &DomainRow,
        is_suspended: bool,
        now: Timestamp,
    ) -> Vec<Mail> {
        let change = SignInChange::RulesSuspended {
            domain: row.domain.clone(),
            organization: self.organization.clone(),
            is_suspended,
        };
        self.mails(&change, &page(row), now)
    }

    /// The mails about the last certificate of the SAML provider, which expires soon.
    pub(super) fn of_certificate(
        &self,
        row: &DomainRow,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> Vec<Mail> {
        let change = SignInChange::CertificateExpires {
            domain: row.domain.clone(),
            organization: self.organization.clone(),
            expires_at,
        };
        self.mails(&change, &page(row), now)
    }

    /// The mails about the token of a domain.
    pub(crate) fn of_token(
        &self,
        row: &DomainRow,
        change: TokenChange,
        now: Timestamp,
    ) -> Vec<Mail> {
        let change = SignInChange::ScimToken {
            domain: row.domain.clone(),
            organization: self.organization.clone(),
            change,
        };
        self.mails(&change, &page(row), now)
    }

    /// The mails about the level that a group gives.
    pub(crate) fn of_group(
        &self,
        row: &DomainRow,
        group: &str,
        level: Option<Level>,
        now: Timestamp,
    ) -> Vec<Mail> {
        let change = SignInChange::GroupLevel {
            domain: row.domain.clone(),
            organization: self.organization.clone(),
            group: group.to_owned(),
            level,
        };
        self.mails(&change, &page(row), now)
    }

    /// The mails about a user whom the identity provider of a domain deactivated.
    pub(crate) fn of_deactivation(
        &self,
        row: &DomainRow,
        email: &str,
        now: Timestamp,
    ) -> Vec<Mail> {
        let change = SignInChange::UserDeactivated {
            domain: row.domain.clone(),
            organization: self.organization.clone(),
            email: email.to_owned(),
        };
        let path = format!("/organizations/{}/members", row.organization);
        self.mails(&change, &path, now)
    }

    /// The mails about a domain that is removed. None if it has no rules and no provider.
    pub(super) fn of_removal(&self, row: &DomainRow, now: Timestamp) -> Vec<Mail> {
        let plain = DomainRow {
            jit_provisioning_enabled: false,
            sso_enforcement: SsoEnforcement::Off,
            saml_entity_id: None,
            saml_acs_url: None,
            saml_x509_cert: None,
            saml_x509_cert_next: None,
            saml_sign_requests: false,
            ..row.clone()
        };
        if row.verified_at.is_none() || fields(row, &plain).is_empty() {
            return Vec::new();
        }
        let change = SignInChange::DomainRemoved {
            domain: row.domain.clone(),
            organization: self.organization.clone(),
        };
        let path = format!("/organizations/{}/domains", row.organization);
        self.mails(&change, &path, now)
    }

    fn mails(&self, change: &SignInChange, path: &str, at: Timestamp) -> Vec<Mail> {
        let news = |owner: &UserRow| MailContent::SignInChanged {
            first_name: owner.first_name.clone(),
            change: change.clone(),
            by: self.by.clone(),
            at,
            path: path.to_owned(),
        };
        self.owners.iter().map(|owner| mail::to(&owner.email, news(owner))).collect()
    }
}

/// The page of a domain.
fn page(row: &DomainRow) -> String {
    format!("/organizations/{}/domains/{}", row.organization, row.id)
}

/// The fields of the API that decide how members sign in and that differ.
fn fields(before: &DomainRow, after: &DomainRow) -> Vec<String> {
    let differ = [
        ("sso_enforcement", before.sso_enforcement != after.sso_enforcement),
        (
            "jit_provisioning_enabled",
            before.jit_provisioning_enabled != after.jit_provisioning_enabled,
        ),
        ("saml_entity_id", before.saml_entity_id != after.saml_entity_id),
        ("saml_acs_url", before.saml_acs_url != after.saml_acs_url),
        ("saml_x509_cert", before.saml_x509_cert != after.saml_x509_cert),
        ("saml_x509_cert_next", before.saml_x509_cert_next != after.saml_x509_cert_next),
        ("saml_sign_requests", before.saml_sign_requests != after.saml_sign_requests),
    ];
    differ
        .into_iter()
        .filter(|(_, is_changed)| *is_changed)
        .map(|(name, _)| name.to_owned())
        .collect()
}
