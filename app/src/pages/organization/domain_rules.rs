//! Sign-in rules of a domain: automatic membership, the required way of signing in, and
//! the SAML provider.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::named;
use crate::server_fns::domains::{DomainView, EnforceSso, SaveSaml, SetProvisioning};
use crate::ui::alert::Alert;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::field::{Check, Choice, Select, TextArea, TextLine};
use crate::ui::form::{FormFailure, ReturnAddress, ShownValues, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::number::counted;
use crate::ui::sections::Section;
use crate::ui::time::Time;

/// Note about automatic membership while there is no provider for signing in.
const NO_JOINING: &str = "This version of Weir has no sign-in through a provider yet. It stores this setting and returns it to API clients, but no user joins this way.";
/// The same note for the required way of signing in.
const NO_BINDING: &str = "This version of Weir has no sign-in through a provider yet, so there is \
                          none to choose: people sign in with their password.";
/// The same note for SAML.
const NO_SAML: &str = "This version of Weir has no sign-in through a provider yet. It stores these settings and returns them to API clients, but no user signs in with them. Enter all three. An empty field removes its value.";
/// Why an unverified domain has no rules.
const UNVERIFIED: &str = "Only for a verified domain.";

/// The request that changes the domain.
fn patch(id: &str, domain: &str, body: Value) -> ApiCall {
    ApiCall {
        method: "PATCH",
        path: format!("/api/organizations/{id}/domains/{domain}/"),
        scope: "organization:write",
        body: Some(body),
    }
}

/// Whether users become members when they sign in.
#[component]
pub(super) fn Provisioning(
    /// Id of the organization.
    id: String,
    domain: DomainView,
) -> impl IntoView {
    let set = form_action::<SetProvisioning>();
    let result = form_result(set);
    let DomainView { details, may_change, .. } = domain;
    let domain = details.domain;
    let why_not = if domain.is_verified { "" } else { UNVERIFIED };
    let enabled = domain.jit_provisioning_enabled;
    let call = patch(&id, &domain.id.to_string(), json!({"jit_provisioning_enabled": "{enabled}"}));
    let content = if may_change {
        view! {
            <ActionForm action=set>
                <FormFailure result=result />
                <input type="hidden" name="id" value=id />
                <input type="hidden" name="domain" value=domain.id.to_string() />
                <ReturnAddress />
                <Check result=result name="enabled" label="People with an address of the domain join when they sign in through a provider"
                    hint="They become members. A pending invite applies first, with its level."
                    checked=enabled disabled=why_not />
                {domain.is_verified.then(|| view! {
                    <Submit result=result label="Save provisioning" busy="Saving provisioning..." saved="Saved" />
                    <ApiRequest call=call />
                })}
            </ActionForm>
        }
        .into_any()
    } else {
        view! { <p>{if enabled { "On" } else { "Off" }}</p> }.into_any()
    };
    view! { <Section id="provisioning" title="Just-in-time provisioning" hint=NO_JOINING>{content}</Section> }
}

/// The required way of signing in, and the members it affects.
#[component]
pub(super) fn SignInWay(
    /// Id of the organization.
    id: String,
    domain: DomainView,
) -> impl IntoView {
    let enforce = form_action::<EnforceSso>();
    let result = form_result(enforce);
    let DomainView { details, may_change, touched, touches_you, ways, .. } = domain;
    let domain = details.domain;
    let present = domain.sso_enforcement.text().to_owned();
    let call = patch(&id, &domain.id.to_string(), json!({"sso_enforcement": "{sso_enforcement}"}));
    let is_verified = domain.is_verified;
    let choices: Vec<Choice> = ways
        .iter()
        .map(|(value, name, is_here)| {
            let choice = Choice::new(value.clone(), name.clone());
            match (*is_here, is_verified) {
                (false, _) => choice.disabled("not set up on this instance"),
                (true, false) if !value.is_empty() => choice.disabled(UNVERIFIED),
                (true, _) => choice,
            }
        })
        .collect();
    let name = ways.into_iter().find(|(value, ..)| *value == present).map(|(_, name, _)| name);
    let whom = match touched.len() {
        0 => view! { <p>"No member has an address of this domain now."</p> }.into_any(),
        1 => view! { <p>"It affects one member:"</p>{named(&touched)} }.into_any(),
        count => {
            let members = counted(count as u64, "member", "members");
            view! { <p>"It affects " {members} ":"</p>{named(&touched)} }.into_any()
        }
    };
    let you = if touches_you {
        "You are among them: before you bind people to a provider, make sure that another owner with an address elsewhere keeps a password."
    } else {
        "Your own address is of another domain, so you can still sign in with your password."
    };
    let content = if may_change {
        view! {
            <Alert kind="note">
                {whom}
                <p>{you}</p>
                <p>
                    "Members who are bound to a provider cannot sign in with their password any more. Their API keys continue to work. If no member can sign in any more, the operator releases the domain on the host with "
                    <code>"weir domain release --verified-too"</code> "."
                </p>
            </Alert>
            <ActionForm action=enforce>
                <FormFailure result=result fields=&["sso_enforcement"] />
                <input type="hidden" name="id" value=id />
                <input type="hidden" name="domain" value=domain.id.to_string() />
                <ReturnAddress />
                <Select result=result name="sso_enforcement" label="People with an address of the domain sign in"
                    choices=choices value=present />
                {is_verified.then(|| view! {
                    <Submit result=result label="Save single sign-on" busy="Saving single sign-on..." saved="Saved" />
                    <ApiRequest call=call />
                })}
                {(!is_verified).then(|| view! { <p class="hint">{UNVERIFIED}</p> })}
            </ActionForm>
        }
        .into_any()
    } else {
        view! { <p>{name}</p> }.into_any()
    };
    view! { <Section id="sign-in" title="Single sign-on" hint=NO_BINDING>{content}</Section> }
}

/// The settings of the SAML provider.
#[component]
pub(super) fn Saml(
    /// Id of the organization.
    id: String,
    domain: DomainView,
) -> impl IntoView {
    let save = form_action::<SaveSaml>();
    let result = form_result(save);
    let DomainView { details, certificate_expired, may_change, .. } = domain;
    let domain = details.domain;
    let subject = details.saml_certificate_subject;
    let expires = details.saml_certificate_expires_at.map(|time| time.to_string());
    let facts = expires.map(|iso| {
        view! {
            {certificate_expired.then(|| view! {
                <Alert kind="warning"><p>"The certificate has expired. Enter the provider's present one."</p></Alert>
            })}
            <dl class="facts">
                <dt>"Certificate of"</dt>
                <dd class="wrap"><code>{subject.unwrap_or_default()}</code></dd>
                <dt>{if certificate_expired { "Expired" } else { "Valid until" }}</dt>
                <dd><Time iso=iso /></dd>
            </dl>
        }
    });
    let call = patch(
        &id,
        &domain.id.to_string(),
        json!({
            "saml_entity_id": "{saml_entity_id}",
            "saml_acs_url": "{saml_acs_url}",
            "saml_x509_cert": "{saml_x509_cert}",
        }),
    );
    let warning = domain.warnings.iter().find(|warning| warning.attr == "saml_x509_cert");
    let warning = warning.map(|warning| warning.detail.clone());
    let entity = domain.saml_entity_id.unwrap_or_default();
    let acs = domain.saml_acs_url.unwrap_or_default();
    let certificate = domain.saml_x509_cert.unwrap_or_default();
    let shows =
        [("saml_entity_id", &entity), ("saml_acs_url", &acs), ("saml_x509_cert", &certificate)];
    let shows = shows.map(|(name, value)| (name.to_owned(), value.clone())).to_vec();
    let form = if may_change {
        view! {
            <div data-dirty-guard="">
                <ActionForm action=save>
                    <ShownValues result=result values=shows />
                    <FormFailure result=result fields=&["saml_entity_id", "saml_acs_url", "saml_x509_cert"] />
                    <input type="hidden" name="id" value=id />
                    <input type="hidden" name="domain" value=domain.id.to_string() />
                    <ReturnAddress />
                    <TextLine result=result name="saml_entity_id" label="Entity id" value=entity max=512
                        hint="The provider's identifier." />
                    <TextLine result=result name="saml_acs_url" label="ACS URL" value=acs max=512
                        hint="The provider's sign-in address." />
                    <TextArea result=result name="saml_x509_cert" label="X.509 certificate" value=certificate rows=6 max=65_536 code=true
                        hint="In PEM format, or only its base64 text." />
                    {warning.map(|why| view! {
                        <Alert kind="warning"><p>{why} " The text is stored as it is. No member can sign in with it."</p></Alert>
                    })}
                    <Submit result=result label="Save SAML" busy="Saving SAML..." saved="Saved" />
                    <ApiRequest call=call />
                </ActionForm>
            </div>
        }
        .into_any()
    } else {
        view! {
            <dl class="facts">
                <dt>"Entity id"</dt>
                <dd class="wrap">{or_none(entity)}</dd>
                <dt>"ACS URL"</dt>
                <dd class="wrap">{or_none(acs)}</dd>
            </dl>
        }
        .into_any()
    };
    view! {
        <Section id="saml" title="SAML provider" hint=NO_SAML>
            {facts}
            {form}
        </Section>
    }
}

fn or_none(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}
