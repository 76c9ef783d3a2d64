//! The SAML provider of a domain: its settings, and the test of the connection.

use leptos::prelude::*;
use serde_json::json;
use weir_model::sso::ConnectionTest;

use super::domain_rules::{patch, warning};
use crate::server_fns::domains::{DomainView, SIGN_IN_URL, SaveSaml};
use crate::ui::alert::Alert;
use crate::ui::api_request::ApiRequest;
use crate::ui::field::{Check, TextArea, TextLine};
use crate::ui::form::{FormFailure, ReturnAddress, ShownValues, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};
use crate::ui::table::{Column, Table, TableRow, cell};
use crate::ui::time::Time;

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
        certificates_end_soon,
        next_certificate_expired,
        may_change,
        test,
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
            {certificates_end_soon.then(|| view! {
                <Alert kind="warning">
                    <p>"The certificate expires soon, and members can then no longer sign in with SAML. Before that, enter the provider's next one under Second certificate."</p>
                </Alert>
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
            "saml_sign_requests": "{saml_sign_requests}",
        }),
    );
    let by_key = warning(&domain, "saml_entity_id");
    let unreadable = |attr: &str| {
        let found = domain.warnings.iter().find(|warning| warning.attr == attr);
        found.map(|warning| warning.detail.clone())
    };
    let (unreadable, next_unreadable) =
        (unreadable("saml_x509_cert"), unreadable("saml_x509_cert_next"));
    let entity = domain.saml_entity_id.unwrap_or_default();
    let acs = domain.saml_acs_url.unwrap_or_default();
    let certificate = domain.saml_x509_cert.unwrap_or_default();
    let next = domain.saml_x509_cert_next.unwrap_or_default();
    let has_next = !next.is_empty();
    let signs = domain.saml_sign_requests;
    let is_refused = result.field_error("confirmed_name").is_some();
    let name_of_domain = domain.domain;
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
                    <FormFailure result=result fields=&["saml_entity_id", "saml_acs_url", "saml_x509_cert", "saml_x509_cert_next", "confirmed_name"] />
                    <input type="hidden" name="id" value=id />
                    <input type="hidden" name="domain" value=domain.id.to_string() />
                    <ReturnAddress />
                    <TextLine result=result name="saml_entity_id" label="Entity id" value=entity max=512
                        hint="The provider's identifier. Okta: Issuer. Entra: Microsoft Entra Identifier. Google: Entity ID. Keycloak: the realm's address." />
                    <TextLine result=result name="saml_acs_url" label=SIGN_IN_URL value=acs max=512
                        hint="Where users sign in at the provider. Okta: Sign on URL. Entra: Login URL. Google: SSO URL. Keycloak: the realm's address and /protocol/saml. The API calls it saml_acs_url." />
                    <TextArea result=result name="saml_x509_cert" label="X.509 certificate" value=certificate rows=6 max=65_536 code=true
                        hint="In PEM format, or only its base64 text." />
                    <details class="help" open=has_next>
                        <summary>"Second certificate"</summary>
                        <TextArea result=result name="saml_x509_cert_next" label="Second certificate" value=next rows=6 max=65_536 code=true
                            hint="While the provider changes its certificate, both are accepted. Later move this one up and empty this field." />
                    </details>
                    <Check result=result name="saml_sign_requests" label="Sign requests to the provider"
                        hint="Only if the provider asks for it. Weir makes a key for this domain when you save. Then give the provider the certificate or the metadata from Set up single sign-on, Another provider."
                        checked=signs />
                    {unreadable.map(|why| unused("Certificate: ", why))}
                    {next_unreadable.map(|why| unused("Second certificate: ", why))}
                    {is_refused.then(|| view! {
                        <TextLine result=result name="confirmed_name" label="Name of the domain, to save it anyway" max=128
                            hint=format!("Type {name_of_domain}") />
                    })}
                    <p class="hint">
                        "Saved by an administrator, these settings sign in everyone but owners; saved with an API key, only members. When an owner checks them and presses Save SAML, they sign in owners too. "
                        <a href="/help/single-sign-on#who-may-set-a-provider-up">"Who may set a provider up"</a>
                    </p>
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
                <dt>{SIGN_IN_URL}</dt>
                <dd class="wrap">{or_none(acs)}</dd>
            </dl>
        }
        .into_any()
    };
    view! {
        <Section id="saml" title="SAML provider" hint="Users with an address of the domain sign in through it once the domain is verified. Enter what the provider shows, all three fields. An empty field removes its value.">
            {by_key}
            {facts}
            {form}
            {test_section(test_link, test)}
        </Section>
    }
}

/// The warning about a certificate that cannot be read.
fn unused(which: &'static str, why: String) -> AnyView {
    view! {
        <Alert kind="warning">
            <p>{which} {why} " The text is stored as it is. No member can sign in with it."</p>
        </Alert>
    }
    .into_any()
}

/// The test of the connection, and its last result.
fn test_section(link: String, test: Option<ConnectionTest>) -> AnyView {
    let can_test = !link.is_empty();
    if !can_test && test.is_none() {
        return ().into_any();
    }
    view! {
        <h3>"Test"</h3>
        {can_test.then(|| view! {
            <p>"You sign in at the provider, and come back to this page. No account and no session is changed."</p>
            <p><a class="button" href=link rel="external">"Test the connection"</a></p>
        })}
        {test.map(report)}
    }
    .into_any()
}

/// Whether the answer passed every check, whichever user it was about.
pub(super) fn has_passed(test: &ConnectionTest) -> bool {
    !test.checks.is_empty() && test.checks.iter().all(|check| check.passed == Some(true))
}

/// Each check with its result, and what the provider sent.
fn report(test: ConnectionTest) -> AnyView {
    let passed = has_passed(&test);
    let ConnectionTest { at, checks, attributes, outcome, works } = test;
    let kind = if works { "note" } else { "warning" };
    let columns = vec![Column::text("Check"), Column::text("Result")];
    let rows = checks.into_iter().map(|check| {
        let result = match check.passed {
            Some(true) => view! { <Status tone=Tone::Good label="Passed" /> }.into_any(),
            Some(false) => view! { <Status tone=Tone::Bad label="Failed" /> }.into_any(),
            None => view! { <Status tone=Tone::Quiet label="Not reached" /> }.into_any(),
        };
        let why = (!check.detail.is_empty()).then(|| view! { <p class="hint">{check.detail}</p> });
        TableRow::new(vec![cell(check.name), cell(view! { <div>{result}{why}</div> })])
    });
    let rows: Vec<TableRow> = rows.collect();
    let (has_checks, has_sent) = (!rows.is_empty(), !attributes.is_empty());
    let sent = attributes.into_iter().map(|(name, values)| {
        view! { <dt class="wrap">{name}</dt><dd class="wrap">{values.join(", ")}</dd> }
    });
    let sent = sent.collect_view();
    view! {
        <Alert kind=kind>
            <p>
                {(passed && !works).then(|| view! { <strong>"All checks passed, but this person could not sign in. "</strong> })}
                {outcome}
            </p>
        </Alert>
        <p>"Last test: " <Time iso=at.to_string() /></p>
        {has_checks.then(|| view! {
            <Table caption="Checks of the last test" columns=columns rows=rows />
            <h4>"What the provider sent"</h4>
            {match has_sent {
                true => view! { <dl class="facts">{sent}</dl> }.into_any(),
                false => view! {
                    <p>"It is shown once the signature is verified and the name id and the attributes are read. Until then, anyone may have written it."</p>
                }.into_any(),
            }}
        })}
    }
    .into_any()
}

fn or_none(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}
