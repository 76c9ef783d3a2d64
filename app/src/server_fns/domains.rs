//! Domains of organizations.

#![allow(clippy::too_many_arguments, reason = "the fields of a form")]

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::domains::{DomainDetails, SignInImpact};
use weir_model::sso::ConnectionTest;

#[cfg(feature = "ssr")]
use crate::context::{anyone, enter_organization, go, redirect_with_notice, ui_error};
use crate::error::UiError;
use crate::server_fns::scim::ScimView;

/// The label of `saml_acs_url`. The ACS URL is an address of Weir.
pub(crate) const SIGN_IN_URL: &str = "Single sign-on URL of the identity provider";

/// The domains of an organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DomainsView {
    /// The domains, sorted by name.
    pub(crate) domains: Vec<DomainDetails>,
    /// Whether the user may change them.
    pub(crate) may_change: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DomainView {
    pub(crate) details: DomainDetails,
    /// Provisioning by the identity provider.
    pub(crate) scim: ScimView,
    /// Weir as a service provider: entity id and address of answers.
    pub(crate) site: SiteView,
    /// The result of the last test of the SAML connection.
    pub(crate) test: Option<ConnectionTest>,
    /// The link that tests the connection; empty: the user may not.
    pub(crate) test_link: String,
    /// Whether the second SAML certificate has expired.
    pub(crate) next_certificate_expired: bool,
    /// Whom its rules for signing in affect.
    pub(crate) impact: SignInImpact,
    /// Whether the SAML certificate has expired.
    pub(crate) certificate_expired: bool,
    /// Whether no SAML certificate is valid in thirty days any more, although one is now.
    pub(crate) certificates_end_soon: bool,
    /// Whether the user may change the domain.
    pub(crate) may_change: bool,
    /// The sign-in methods that a domain can require: value in the API, name, and
    /// whether this instance supports it.
    pub(crate) ways: Vec<(String, String, bool)>,
}

/// What an identity provider must know of this instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SiteView {
    pub(crate) entity_id: String,
    pub(crate) acs_url: String,
    /// The link to the metadata of the domain.
    pub(crate) metadata: String,
    /// The address that providers of the instance send users back to, with `NAME` for the
    /// name of the provider.
    pub(crate) redirect_uri: String,
}

/// Lists the domains of an organization.
#[server(prefix = "/_fn", endpoint = "list_domains")]
pub(crate) async fn list_domains(id: String) -> Result<DomainsView, UiError> {
    use weir_model::pagination::{MAX_LIMIT, Page};
    use weir_service::policy::Action;

    let (services, org) = enter_organization(&id).await?;
    let page = Page { limit: MAX_LIMIT, offset: 0 };
    let found = services.domains.list(&org, page).await.map_err(ui_error)?;
    let may_change = org.level >= Action::ManageDomains.level();
    Ok(DomainsView { domains: found.results, may_change })
}

/// Returns one domain.
#[server(prefix = "/_fn", endpoint = "get_domain")]
pub(crate) async fn get_domain(id: String, domain: String) -> Result<DomainView, UiError> {
    use weir_model::domains::SsoEnforcement;
    use weir_service::domains::{CERTIFICATE_SOON_DAYS, SignInMethod};
    use weir_service::identity::Identity;
    use weir_service::policy::Action;
    use weir_service::sso::SamlServiceProvider;

    use crate::local_path::encode;

    let (services, org) = enter_organization(&id).await?;
    let (_, visit) = anyone()?;
    let details = services.domains.get(&org, &domain).await.map_err(ui_error)?;
    let impact = services.domains.impact(&org, &domain).await.map_err(ui_error)?;
    let expires_at = details.saml_certificate_expires_at;
    let next_expires_at = details.saml_next_certificate_expires_at;
    let last = expires_at.max(next_expires_at);
    let soon = org.ctx.now.plus_seconds(CERTIFICATE_SOON_DAYS * 24 * 60 * 60);
    let methods = services.domains.sign_in_methods(&org, &domain).await.map_err(ui_error)?;
    let choice = |SignInMethod { sso, label, is_set_up }: SignInMethod| {
        let name = match sso {
            SsoEnforcement::Off => "Any sign-in method".to_owned(),
            SsoEnforcement::Provider(_) => format!("{label} only"),
            SsoEnforcement::Saml => "The domain's SAML provider only".to_owned(),
        };
        (sso.text().to_owned(), name, is_set_up)
    };
    let may_change = org.level >= Action::ManageDomains.level();
    let domain_id = details.domain.id;
    let test = match may_change {
        true => services.identity.last_test(&org, domain_id).await.map_err(ui_error)?,
        false => None,
    };
    let page = encode(&format!("/organizations/{id}/domains/{domain_id}#saml"));
    let test_link = match &visit.token {
        Some(token) if may_change && details.domain.has_saml => format!(
            "/login/saml/?purpose=test&organization={id}&domain={domain_id}&proof={}&next={page}",
            Identity::login_link_proof(token)
        ),
        _ => String::new(),
    };
    let SamlServiceProvider { entity_id, acs_url } = SamlServiceProvider::at(&visit.origin);
    let scim = super::scim::view(&services, &org, &domain).await?;
    Ok(DomainView {
        scim,
        site: SiteView {
            metadata: format!("{entity_id}?domain={domain_id}"),
            redirect_uri: format!("{}/complete/NAME/", visit.origin),
            entity_id,
            acs_url,
        },
        test,
        test_link,
        next_certificate_expired: next_expires_at.is_some_and(|end| end <= org.ctx.now),
        impact,
        details,
        certificate_expired: expires_at.is_some_and(|end| end <= org.ctx.now),
        certificates_end_soon: last.is_some_and(|end| end > org.ctx.now && end <= soon),
        may_change,
        ways: methods.into_iter().map(choice).collect(),
    })
}

/// The error for a domain that is already claimed. The text of the API is a fixed
/// contract and does not help users.
const TAKEN: &str = "This domain is claimed already. If it is not in the list above, another organization on this instance has verified it. The operator of the instance can release it.";

/// Claims a domain and redirects to its page.
#[server(prefix = "/_fn", endpoint = "add_domain")]
pub(crate) async fn add_domain(id: String, domain: String) -> Result<(), UiError> {
    use weir_model::domains::{DomainInput, SamlPatch};

    let (services, org) = enter_organization(&id).await?;
    let domain = domain.trim().to_lowercase();
    let input = DomainInput { domain, saml: SamlPatch::default() };
    let made = services.domains.create(&org, input).await.map_err(|error| match error {
        weir_service::Error::Invalid(fault) if fault.code == "unique" => {
            UiError::field("domain", &fault.code, TAKEN)
        }
        other => ui_error(other),
    })?;
    go(&format!("/organizations/{id}/domains/{}", made.id));
    Ok(())
}

/// Looks up the DNS record of a domain.
#[server(prefix = "/_fn", endpoint = "check_domain")]
pub(crate) async fn check_domain(id: String, domain: String) -> Result<(), UiError> {
    let (services, org) = enter_organization(&id).await?;
    let changeable = services.domains.changeable(&org, &domain).await.map_err(ui_error)?;
    services.domains.look(&org, changeable).await.map_err(ui_error)?;
    Ok(())
}

/// Sets whether users with an address of the domain become members when they sign in
/// through a provider.
#[server(prefix = "/_fn", endpoint = "set_provisioning")]
pub(crate) async fn set_provisioning(
    id: String,
    domain: String,
    #[server(default)] enabled: Option<String>,
) -> Result<(), UiError> {
    use weir_model::Patch;
    use weir_model::domains::DomainPatch;

    let patch = DomainPatch {
        jit_provisioning_enabled: Patch::Set(enabled.is_some()),
        ..DomainPatch::default()
    };
    update(&id, &domain, patch).await
}

/// Sets how users with an address of the domain must sign in.
#[server(prefix = "/_fn", endpoint = "enforce_sso")]
pub(crate) async fn enforce_sso(
    id: String,
    domain: String,
    #[server(default)] sso_enforcement: String,
    #[server(default)] confirmed_name: String,
) -> Result<(), UiError> {
    use weir_model::Patch;
    use weir_model::domains::DomainPatch;

    let patch = DomainPatch {
        sso_enforcement: Patch::Set(sso_enforcement),
        confirmed_name: Some(confirmed_name),
        ..DomainPatch::default()
    };
    update(&id, &domain, patch).await
}

/// Saves the settings of a domain's SAML provider. Empty fields are removed.
#[server(prefix = "/_fn", endpoint = "save_saml")]
pub(crate) async fn save_saml(
    id: String,
    domain: String,
    #[server(default)] seen: String,
    #[server(default)] saml_entity_id: String,
    #[server(default)] saml_acs_url: String,
    #[server(default)] saml_x509_cert: String,
    #[server(default)] saml_x509_cert_next: String,
    #[server(default)] saml_sign_requests: Option<String>,
    #[server(default)] confirmed_name: String,
) -> Result<(), UiError> {
    use weir_model::domains::{CERTIFICATE_MAX, DomainPatch, SAML_TEXT_MAX, SamlPatch};
    use weir_model::{Patch, validate};

    use crate::edits::Edits;

    let (services, org) = enter_organization(&id).await?;
    let now = services.domains.get(&org, &domain).await.map_err(ui_error)?.domain;
    let mut edits = Edits::of(&seen);
    let mut read = |name: &str, label: &str, text: &str, most: usize, now: Option<&str>| {
        if !edits.is_own(name, label, text, now.unwrap_or_default()) {
            // A value that the sender saw is sent along: an owner confirms it.
            let is_seen = text.replace("\r\n", "\n") == now.unwrap_or_default();
            let seen = now.filter(|_| is_seen);
            return Ok(seen.map_or(Patch::Keep, |seen| Patch::Set(seen.to_owned())));
        }
        let text = validate::optional_text(name, text, most).map_err(UiError::Field)?;
        Ok::<_, UiError>(if text.is_empty() { Patch::Clear } else { Patch::Set(text) })
    };
    let (entity, acs) = (now.saml_entity_id.as_deref(), now.saml_acs_url.as_deref());
    let certificate = now.saml_x509_cert.as_deref();
    let next = now.saml_x509_cert_next.as_deref();
    let saml = SamlPatch {
        entity_id: read("saml_entity_id", "Entity id", &saml_entity_id, SAML_TEXT_MAX, entity)?,
        acs_url: read("saml_acs_url", SIGN_IN_URL, &saml_acs_url, SAML_TEXT_MAX, acs)?,
        x509_cert: read(
            "saml_x509_cert",
            "X.509 certificate",
            &saml_x509_cert,
            CERTIFICATE_MAX,
            certificate,
        )?,
        x509_cert_next: read(
            "saml_x509_cert_next",
            "Second certificate",
            &saml_x509_cert_next,
            CERTIFICATE_MAX,
            next,
        )?,
        sign_requests: Patch::Set(saml_sign_requests.is_some()),
    };
    edits.check()?;
    let confirmed_name = Some(confirmed_name);
    update(&id, &domain, DomainPatch { saml, confirmed_name, ..DomainPatch::default() }).await
}

#[cfg(feature = "ssr")]
async fn update(
    id: &str,
    domain: &str,
    patch: weir_model::domains::DomainPatch,
) -> Result<(), UiError> {
    let (services, org) = enter_organization(id).await?;
    let changeable = services.domains.changeable(&org, domain).await.map_err(ui_error)?;
    services.domains.update(&org, changeable, patch).await.map_err(ui_error)?;
    Ok(())
}

/// Removes a domain if its name was typed.
#[server(prefix = "/_fn", endpoint = "remove_domain")]
pub(crate) async fn remove_domain(
    id: String,
    domain: String,
    typed_name: String,
) -> Result<(), UiError> {
    let (services, org) = enter_organization(&id).await?;
    let present = services.domains.get(&org, &domain).await.map_err(ui_error)?.domain.domain;
    if typed_name.trim() != present {
        let detail = format!("Type the name exactly: {present}");
        return Err(UiError::field("typed_name", "mismatch", &detail));
    }
    let changeable = services.domains.changeable(&org, &domain).await.map_err(ui_error)?;
    services.domains.delete(&org, changeable).await.map_err(ui_error)?;
    redirect_with_notice(
        &format!("/organizations/{id}/domains"),
        &format!("{present} is removed."),
    );
    Ok(())
}
