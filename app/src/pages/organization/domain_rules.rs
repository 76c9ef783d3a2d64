//! Sign-in rules of a domain: automatic membership, the required way of signing in, and
//! the SAML provider.

use leptos::prelude::*;
use serde_json::{Value, json};
use weir_model::sso::SamlTrial;

use super::named;
use crate::server_fns::domains::{DomainView, EnforceSso, SaveSaml, SetProvisioning, SiteView};
use crate::ui::alert::Alert;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::copy::CopyValue;
use crate::ui::field::{Check, Choice, Select, TextArea, TextLine};
use crate::ui::form::{FormFailure, ReturnAddress, ShownValues, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::number::counted;
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};
use crate::ui::table::{Column, Table, TableRow, cell};
use crate::ui::time::Time;

/// Who joins automatically.
const JOINING: &str = "Applies to the SAML provider of the domain, to the provider that the domain requires, and to Google where it requires none.";
/// What a required way of signing in changes.
const BINDING: &str = "A domain can require one way of signing in. Passwords and other providers then work no longer for its addresses.";
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
    view! { <Section id="provisioning" title="Just-in-time provisioning" hint=JOINING>{content}</Section> }
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
    let DomainView { details, may_change, touched, touches_you, ways, proved, free_owners, .. } =
        domain;
    let domain = details.domain;
    let proofs = proofs(&ways, &proved, &touched);
    let name_of_domain = domain.domain.clone();
    let is_refused = result.field_error("confirmed_name").is_some();
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
    let you = match (touches_you, free_owners.is_empty()) {
        (false, _) => {
            "Your own address is of another domain, so you can still sign in with your password."
        }
        (true, false) => {
            "You are among them. Another owner has an address elsewhere and keeps every way of signing in."
        }
        (true, true) => {
            "You are among them, and no owner has an address elsewhere. Sign in this way yourself before you require it."
        }
    };
    let content = if may_change {
        view! {
            <Alert kind="note">
                {whom}
                <p>{you}</p>
                {proofs}
                <p>
                    "When you save, their sessions that were opened in another way end. Their API keys continue to work. If no member can sign in any more, the operator makes a link on the host with "
                    <code>"weir user sign-in-link --email ADDRESS"</code> "."
                </p>
            </Alert>
            <ActionForm action=enforce>
                <FormFailure result=result fields=&["sso_enforcement", "confirmed_name"] />
                <input type="hidden" name="id" value=id />
                <input type="hidden" name="domain" value=domain.id.to_string() />
                <ReturnAddress />
                <Select result=result name="sso_enforcement" label="People with an address of the domain sign in"
                    choices=choices value=present />
                {is_refused.then(|| view! {
                    <TextLine result=result name="confirmed_name" label="Name of the domain, to require it anyway" max=128
                        hint=format!("Type {name_of_domain}") />
                })}
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
    view! { <Section id="sign-in" title="Single sign-on" hint=BINDING>{content}</Section> }
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
    let DomainView {
        details,
        certificate_expired,
        next_certificate_expired,
        may_change,
        site,
        trial,
        test_link,
        ..
    } = domain;
    let domain = details.domain;
    let next_expires = details.saml_next_certificate_expires_at.map(|time| time.to_string());
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
                {next_expires.map(|iso| view! {
                    <dt>{if next_certificate_expired { "Second certificate expired" } else { "Second certificate valid until" }}</dt>
                    <dd><Time iso=iso /></dd>
                })}
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
            "saml_x509_cert_next": "{saml_x509_cert_next}",
        }),
    );
    let warning = domain.warnings.iter().find(|warning| warning.attr == "saml_x509_cert");
    let warning = warning.map(|warning| warning.detail.clone());
    let entity = domain.saml_entity_id.unwrap_or_default();
    let acs = domain.saml_acs_url.unwrap_or_default();
    let certificate = domain.saml_x509_cert.unwrap_or_default();
    let next = domain.saml_x509_cert_next.unwrap_or_default();
    let has_next = !next.is_empty();
    let shows = [
        ("saml_entity_id", &entity),
        ("saml_acs_url", &acs),
        ("saml_x509_cert", &certificate),
        ("saml_x509_cert_next", &next),
    ];
    let shows = shows.map(|(name, value)| (name.to_owned(), value.clone())).to_vec();
    let form = if may_change {
        view! {
            <div data-dirty-guard="">
                <ActionForm action=save>
                    <ShownValues result=result values=shows />
                    <FormFailure result=result fields=&["saml_entity_id", "saml_acs_url", "saml_x509_cert", "saml_x509_cert_next"] />
                    <input type="hidden" name="id" value=id />
                    <input type="hidden" name="domain" value=domain.id.to_string() />
                    <ReturnAddress />
                    <TextLine result=result name="saml_entity_id" label="Entity id" value=entity max=512
                        hint="The provider's identifier. Okta: Issuer. Entra: Microsoft Entra Identifier. Google: Entity ID. Keycloak: the realm's address." />
                    <TextLine result=result name="saml_acs_url" label="ACS URL" value=acs max=512
                        hint="The provider's sign-in address. Okta: Sign on URL. Entra: Login URL. Google: SSO URL. Keycloak: the realm's address and /protocol/saml." />
                    <TextArea result=result name="saml_x509_cert" label="X.509 certificate" value=certificate rows=6 max=65_536 code=true
                        hint="In PEM format, or only its base64 text." />
                    <details class="help" open=has_next>
                        <summary>"Second certificate"</summary>
                        <TextArea result=result name="saml_x509_cert_next" label="Second certificate" value=next rows=6 max=65_536 code=true
                            hint="While the provider changes its certificate, both are accepted. Later move this one up and empty this field." />
                    </details>
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
        <Section id="saml" title="SAML provider" hint="Users with an address of the domain sign in through it once the domain is verified. Enter all three fields. An empty field removes its value.">
            {may_change.then(|| guide(site))}
            {facts}
            {form}
            {test(test_link, trial)}
        </Section>
    }
}

/// Who of the affected members has signed in through each provider, and who may not be able
/// to.
fn proofs(
    ways: &[(String, String, bool)],
    proved: &[(String, Vec<String>)],
    touched: &[String],
) -> AnyView {
    if touched.is_empty() {
        return ().into_any();
    }
    let line = |(value, name, _): &(String, String, bool)| {
        let known = proved.iter().find(|(sso, _)| sso == value);
        let known = known.map(|(_, members)| members.as_slice()).unwrap_or_default();
        let missing: Vec<String> =
            touched.iter().filter(|address| !known.contains(address)).cloned().collect();
        let text = match missing.len() {
            0 => "every affected member has signed in this way.".to_owned(),
            count if known.is_empty() => {
                let members = counted_text(count);
                format!(
                    "no affected member has signed in this way yet, so it is not proved for {members}."
                )
            }
            count => format!("not proved for {}:", counted_text(count)),
        };
        let names = (!missing.is_empty() && !known.is_empty()).then(|| named(&missing));
        view! { <li><strong>{name.clone()}</strong>": " {text} {names}</li> }
    };
    let usable = ways.iter().filter(|(value, _, is_here)| !value.is_empty() && *is_here);
    let lines = usable.map(line).collect_view();
    view! { <ul>{lines}</ul> }.into_any()
}

fn counted_text(count: usize) -> String {
    if count == 1 { "one member".to_owned() } else { format!("{count} members") }
}

/// What to enter at the identity provider.
fn guide(site: SiteView) -> AnyView {
    let names = [
        (
            "Okta",
            "Single sign-on URL",
            "Audience URI (SP Entity ID)",
            "Name ID format: EmailAddress",
        ),
        (
            "Entra",
            "Reply URL (Assertion Consumer Service URL)",
            "Identifier (Entity ID)",
            "Unique User Identifier: user.mail",
        ),
        ("Google", "ACS URL", "Entity ID", "Name ID: Basic Information > Primary email"),
        (
            "Keycloak",
            "Valid redirect URIs and Master SAML Processing URL",
            "Client ID",
            "Name ID format: email, and Sign assertions: On",
        ),
    ];
    let columns = vec![
        Column::text("Provider"),
        Column::text("ACS URL is called"),
        Column::text("Entity id is called"),
        Column::text("Also set"),
    ];
    let rows = names.map(|(name, acs, entity, also)| {
        TableRow::new(vec![cell(name), cell(acs), cell(entity), cell(also)])
    });
    view! {
        <p>"Create an application for SAML 2.0 at the identity provider, and enter there:"</p>
        <dl class="facts">
            <dt>"ACS URL"</dt><dd><CopyValue text=site.acs_url what="ACS URL" /></dd>
            <dt>"Entity id"</dt><dd><CopyValue text=site.entity_id what="entity id" /></dd>
            <dt>"Metadata"</dt>
            <dd><a href=site.metadata.clone() rel="external">{site.metadata.clone()}</a></dd>
        </dl>
        <details class="help">
            <summary>"What Okta, Entra, Google and Keycloak call these"</summary>
            <Table caption="Names of the fields" columns=columns rows=rows.into_iter().collect() />
        </details>
        <p><a href="/help/single-sign-on">"Set up single sign-on step by step"</a></p>
        <p>"Then enter what the provider shows:"</p>
    }
    .into_any()
}

/// The test of the connection, and its last result.
fn test(link: String, trial: Option<SamlTrial>) -> AnyView {
    let can_test = !link.is_empty();
    if !can_test && trial.is_none() {
        return ().into_any();
    }
    view! {
        <h3>"Test"</h3>
        {can_test.then(|| view! {
            <p>"You sign in at the provider, and come back to this page. No account and no session is changed."</p>
            <p><a class="button" href=link rel="external">"Test the connection"</a></p>
        })}
        {trial.map(report)}
    }
    .into_any()
}

/// Each check with its result, and what the provider sent.
fn report(trial: SamlTrial) -> AnyView {
    let SamlTrial { at, checks, attributes, outcome, works } = trial;
    let kind = if works { "note" } else { "warning" };
    let columns = vec![Column::text("Check"), Column::text("Result"), Column::text("Why")];
    let rows = checks.into_iter().map(|check| {
        let result = match check.passed {
            Some(true) => view! { <Status tone=Tone::Good label="Passed" /> }.into_any(),
            Some(false) => view! { <Status tone=Tone::Bad label="Failed" /> }.into_any(),
            None => view! { <Status tone=Tone::Quiet label="Not reached" /> }.into_any(),
        };
        TableRow::new(vec![cell(check.name), result, cell(check.detail)])
    });
    let rows: Vec<TableRow> = rows.collect();
    let sent = attributes.into_iter().map(|(name, values)| {
        view! { <dt class="wrap">{name}</dt><dd class="wrap">{values.join(", ")}</dd> }
    });
    let sent = sent.collect_view();
    view! {
        <Alert kind=kind><p>{outcome}</p></Alert>
        <p>"Last test: " <Time iso=at.to_string() /></p>
        <Table caption="Checks of the last test" columns=columns rows=rows />
        <h4>"What the provider sent"</h4>
        <dl class="facts">{sent}</dl>
    }
    .into_any()
}

fn or_none(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}
