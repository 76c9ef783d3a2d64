//! One domain: verification, sign-in rules, removal.

use futures::future::try_join;
use leptos::prelude::*;

use super::domain_rules::{Provisioning, SignInWay, warning};
use super::domain_saml::Saml;
use super::domain_scim::Scim;
use super::domain_setup::SetUp;
use super::domains::ownership_status;
use super::{FOR_ADMINISTRATORS, Tabs};
use crate::pages::{id_in_path, in_path};
use crate::server_fns::domains::{CheckDomain, DomainView, RemoveDomain, get_domain};
use crate::server_fns::organizations::{OrganizationView, get_organization};
use crate::ui::alert::Alert;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::confirm::TypedConfirm;
use crate::ui::copy::CopyValue;
use crate::ui::empty::ReadOnly;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::number::counted;
use crate::ui::page::{PageHead, page};
use crate::ui::sections::Section;
use crate::ui::time::{Ago, Time};

/// The title until the name is known.
const TITLE: &str = "Domain";

#[component]
pub(crate) fn Domain() -> impl IntoView {
    page(
        TITLE,
        || (id_in_path(), in_path("domain")),
        |(id, domain)| try_join(get_organization(id.clone()), get_domain(id, domain)),
        |(id, _), (organization, found)| draw(id, organization, found),
    )
}

fn draw(id: String, organization: OrganizationView, found: DomainView) -> AnyView {
    let name = found.details.domain.domain.clone();
    view! {
        <PageHead title=name within=organization.name />
        <Tabs id=id.clone() />
        {(!found.may_change).then(|| view! { <ReadOnly why=FOR_ADMINISTRATORS /> })}
        <Ownership id=id.clone() domain=found.clone() />
        {found.may_change.then(|| view! { <SetUp domain=found.clone() /> })}
        <Saml id=id.clone() domain=found.clone() />
        <Provisioning id=id.clone() domain=found.clone() />
        <SignInWay id=id.clone() domain=found.clone() />
        <Scim id=id.clone() domain=found.clone() />
        {found.may_change.then(|| view! { <Removal id=id domain=found /> })}
    }
    .into_any()
}

/// The DNS record that proves ownership, and the result of the last check.
#[component]
fn Ownership(id: String, domain: DomainView) -> impl IntoView {
    let DomainView { details, may_change, .. } = domain;
    let state = ownership_status(&details);
    let is_verified = details.domain.is_verified;
    let what_to_do = if is_verified {
        "Keep this TXT record. Weir checks it every day."
    } else {
        "Create this TXT record at your DNS provider, then check it."
    };
    let failing = details.verification_failing_since.map(|since| {
        let consequence = if details.is_suspended {
            "Until it is found again, the rules below have no effect."
        } else {
            "After seven days without it, the rules below have no effect until it is found again."
        };
        view! {
            <Alert kind="warning">
                <p>"The record has not been found since " <Time iso=since.to_string() /> ". " {consequence}</p>
            </Alert>
        }
    });
    let elsewhere = warning(&details.domain, "domain");
    let value = details.domain.verification_challenge.clone();
    let checked = details.checked_at.map(|time| time.to_string());
    let answer = details.last_answer.clone();
    let next = match details.next_check_at {
        Some(time) => view! { <Ago iso=time.to_string() /> }.into_any(),
        None => "None: until the domain is verified, Weir checks only when you ask.".into_any(),
    };
    let domain = details.domain.id.to_string();
    view! {
        <Section id="ownership" title="Ownership">
            <p>{state}</p>
            {failing}
            {elsewhere}
            <p>{what_to_do}</p>
            <dl class="facts">
                <dt>"Name"</dt>
                <dd><CopyValue text=details.challenge_name what="record name" /></dd>
                <dt>"Type"</dt>
                <dd><code>"TXT"</code></dd>
                <dt>"Value"</dt>
                <dd><CopyValue text=value what="record value" /></dd>
                <dt>"Last check"</dt>
                <dd>
                    {match checked {
                        Some(iso) => view! { <Ago iso=iso /> }.into_any(),
                        None => "Never".into_any(),
                    }}
                </dd>
                {answer.map(|answer| view! {
                    <dt>"Answer of the name servers"</dt>
                    <dd class="wrap domain-answer">{answer}</dd>
                })}
                <dt>"Next automatic check"</dt>
                <dd>{next}</dd>
            </dl>
            {(!is_verified).then(|| view! {
                <p class="hint">"A new record can take hours to reach all name servers."</p>
            })}
            {may_change.then(|| view! { <CheckForm id=id domain=domain /> })}
        </Section>
    }
}

/// A request about the domain, without a body.
fn call(method: &'static str, id: &str, rest: &str) -> ApiCall {
    ApiCall {
        method,
        path: format!("/api/organizations/{id}/domains/{rest}/"),
        scope: "organization:write",
        body: None,
    }
}

#[component]
fn CheckForm(id: String, domain: String) -> impl IntoView {
    let check = form_action::<CheckDomain>();
    let result = form_result(check);
    let call = call("POST", &id, &format!("{domain}/verify"));
    view! {
        <ActionForm action=check>
            <FormFailure result=result />
            <input type="hidden" name="id" value=id />
            <input type="hidden" name="domain" value=domain />
            <ReturnAddress />
            <Submit result=result label="Check now" busy="Asking name servers..." saved="Checked" />
            <ApiRequest call=call />
        </ActionForm>
    }
}

/// Removes the domain: the consequences, and a field for the name.
#[component]
fn Removal(id: String, domain: DomainView) -> impl IntoView {
    let remove = form_action::<RemoveDomain>();
    let result = form_result(remove);
    let DomainView { details, impact, scim, .. } = domain;
    let of_domain = details.domain;
    let bound = !of_domain.sso_enforcement.text().is_empty();
    let members = match impact.members.len() {
        0 => view! { <p>"No member has an address of this domain."</p> }.into_any(),
        1 => view! { <p>"One member has an address of this domain and stays a member."</p> }.into_any(),
        count => view! {
            <p>{counted(count as u64, "member", "members")} " have an address of this domain and stay members."</p>
        }
        .into_any(),
    };
    let call = call("DELETE", &id, &of_domain.id.to_string());
    view! {
        <Section id="removal" title="Remove domain" danger=true>
            <Alert kind="warning">
                <p>"Removing the domain ends:"</p>
                <ul>
                    <li>"Your ownership. Another organization can then verify it, and adding it again needs a new record."</li>
                    {of_domain.jit_provisioning_enabled.then(|| view! {
                        <li>"Just-in-time provisioning. Users with an address of this domain no longer join by signing in."</li>
                    })}
                    {bound.then(|| view! {
                        <li>"The required way of signing in. Members with an address of this domain can sign in any way again."</li>
                    })}
                    {scim.token.is_some().then(|| view! {
                        <li>"Provisioning. The token of the identity provider and its groups are removed, and users whom it deactivated stay deactivated."</li>
                    })}
                    {of_domain.has_saml.then(|| view! { <li>"The SAML settings."</li> })}
                </ul>
                {members}
            </Alert>
            <ActionForm action=remove>
                <FormFailure result=result fields=&["typed_name"] />
                <input type="hidden" name="id" value=id />
                <input type="hidden" name="domain" value=of_domain.id.to_string() />
                <ReturnAddress />
                <TypedConfirm result=result name_to_type=of_domain.domain label="Name of the domain"
                    verb="Remove domain" busy="Removing domain..." />
            </ActionForm>
            <ApiRequest call=call />
        </Section>
    }
}
