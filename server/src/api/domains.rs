//! `/api/organizations/{organization_id}/domains/` (API-37, API-38).

use axum::Json;
use axum::extract::State;
use serde_json::json;
use weir_model::Patch;
use weir_model::domains::{
    self as model, CERTIFICATE_MAX, DOMAIN_MAX, Domain, DomainInput, DomainPatch, SAML_TEXT_MAX,
    SSO_ENFORCEMENT_MAX, SamlPatch, SignInImpact, SsoEnforcement,
};
use weir_model::errors::FieldError;
use weir_model::pagination::{Envelope, Paged};

use crate::api::{Created, NoContent};
use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, Authorized, InOrganization, PathParams};
use crate::http::guards::{MembersRead, OrganizationRead, OrganizationWrite};
use crate::http::input::{Fields, Input};
use crate::http::pagination::Listing;

/// The domains that the organization claims, ordered by name.
pub async fn list_domains(
    auth: Authorized<OrganizationRead, InOrganization>,
    State(app): State<App>,
    listing: Listing,
) -> ApiResult<Json<Envelope<Domain>>> {
    let paged = app.services.domains.list(&auth.ctx, listing.page()).await?;
    let results = paged.results.into_iter().map(|details| details.domain).collect();
    Ok(Json(listing.envelope(Paged { count: paged.count, results })))
}

/// Claim a domain. `jit_provisioning_enabled` and `sso_enforcement` are validated and not
/// stored. The answer has `false` and an empty text, because only a verified domain can
/// have other values.
pub async fn create_domain(
    auth: Authorized<OrganizationWrite, InOrganization>,
    State(app): State<App>,
    body: ApiJson<DomainInput>,
) -> ApiResult<Created<Domain>> {
    Ok(Created(app.services.domains.create(&auth.ctx, body.unchecked()).await?))
}

/// One domain.
pub async fn get_domain(
    auth: Authorized<OrganizationRead, InOrganization>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<Domain>> {
    Ok(Json(app.services.domains.get(&auth.ctx, path.get("domain_id")?).await?.domain))
}

/// Change some fields. A new name is a new claim with a new challenge.
pub async fn update_domain(
    auth: Authorized<OrganizationWrite, InOrganization>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<DomainPatch>,
) -> ApiResult<Json<Domain>> {
    let domains = &app.services.domains;
    let changeable = domains.changeable(&auth.ctx, path.get("domain_id")?).await?;
    Ok(Json(domains.update(&auth.ctx, changeable, body.checked()?).await?))
}

/// Change the fields that are sent. The name is required.
pub async fn replace_domain(
    auth: Authorized<OrganizationWrite, InOrganization>,
    State(app): State<App>,
    path: PathParams,
    body: ApiJson<Replacement>,
) -> ApiResult<Json<Domain>> {
    let domains = &app.services.domains;
    let changeable = domains.changeable(&auth.ctx, path.get("domain_id")?).await?;
    let Replacement(patch) = body.checked()?;
    Ok(Json(domains.update(&auth.ctx, changeable, patch).await?))
}

/// Delete a domain together with its rules for signing in.
pub async fn delete_domain(
    auth: Authorized<OrganizationWrite, InOrganization>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<NoContent> {
    let domains = &app.services.domains;
    let changeable = domains.changeable(&auth.ctx, path.get("domain_id")?).await?;
    domains.delete(&auth.ctx, changeable).await?;
    Ok(NoContent)
}

/// Which members the rules for signing in affect, and who of them could not sign in any more
/// if the domain required a way of signing in. Nothing is changed.
pub async fn get_domain_impact(
    auth: Authorized<MembersRead, InOrganization>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<SignInImpact>> {
    Ok(Json(app.services.domains.impact(&auth.ctx, path.get("domain_id")?).await?))
}

/// Look for the TXT record that proves the domain. A missing record is not an error:
/// `is_verified` is then `false`. The body is ignored.
pub async fn verify_domain(
    auth: Authorized<OrganizationWrite, InOrganization>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<Domain>> {
    let domains = &app.services.domains;
    let changeable = domains.changeable(&auth.ctx, path.get("domain_id")?).await?;
    Ok(Json(domains.verify(&auth.ctx, changeable).await?))
}

/// The body of PUT: a change that must name the domain.
#[derive(Debug)]
pub struct Replacement(DomainPatch);

impl Input for DomainInput {
    const EXAMPLE: &'static str =
        r#"{"domain": "tea.example.com", "saml_entity_id": "https://idp.example.com/metadata"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let domain = required_name(fields)?;
        // Validated but not stored: only a verified domain can have them.
        fields.boolean("jit_provisioning_enabled")?;
        if let Patch::Set(text) = enforcement(fields)? {
            SsoEnforcement::parse(&text)?;
        }
        Ok(Self { domain, saml: saml(fields)? })
    }
}

impl Input for DomainPatch {
    const EXAMPLE: &'static str = r#"{"saml_entity_id": "https://idp.example.com/metadata"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let domain = fields.text("domain", DOMAIN_MAX)?.try_map(|name| model::name(&name))?;
        fields.refine("domain", name_schema);
        Ok(Self {
            domain,
            jit_provisioning_enabled: fields.boolean("jit_provisioning_enabled")?,
            sso_enforcement: enforcement(fields)?,
            saml: saml(fields)?,
            confirmed_name: None,
        })
    }
}

impl Input for Replacement {
    const EXAMPLE: &'static str =
        r#"{"domain": "tea.example.com", "saml_acs_url": "https://idp.example.com/sso"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let domain = required_name(fields)?;
        Ok(Self(DomainPatch { domain: Patch::Set(domain), ..DomainPatch::read(fields)? }))
    }
}

fn required_name(fields: &Fields) -> Result<String, FieldError> {
    let name = fields.required_text("domain", DOMAIN_MAX)?;
    fields.refine("domain", name_schema);
    model::name(&name)
}

fn name_schema() -> serde_json::Value {
    json!({"pattern": r"^([a-z0-9]+(-+[a-z0-9]+)*\.)+[a-z]{2,}$"})
}

/// A text of the right length. The values are checked later, when it is known that the
/// domain can have one.
fn enforcement(fields: &Fields) -> Result<Patch<String>, FieldError> {
    let text = fields.optional_text("sso_enforcement", SSO_ENFORCEMENT_MAX)?;
    let known = SsoEnforcement::KNOWN.map(|known| known.text().to_owned());
    fields.refine("sso_enforcement", || json!({"examples": known}));
    Ok(text)
}

fn saml(fields: &Fields) -> Result<SamlPatch, FieldError> {
    Ok(SamlPatch {
        entity_id: fields.nullable_text("saml_entity_id", SAML_TEXT_MAX)?,
        acs_url: fields.nullable_text("saml_acs_url", SAML_TEXT_MAX)?,
        x509_cert: fields.nullable_text_as_sent("saml_x509_cert", CERTIFICATE_MAX)?,
        x509_cert_next: fields.nullable_text_as_sent("saml_x509_cert_next", CERTIFICATE_MAX)?,
        sign_requests: fields.nullable_boolean("saml_sign_requests")?,
    })
}
