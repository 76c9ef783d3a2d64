//! Sign-in rules of a domain: automatic membership, and the required way of signing in.

use leptos::prelude::*;
use serde_json::{Value, json};
use weir_model::domains::{Domain, SignInImpact, WayImpact};

use super::named;
use crate::server_fns::domains::{DomainView, EnforceSso, SetProvisioning};
use crate::ui::alert::Alert;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::field::{Check, Choice, Select, TextLine};
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::number::counted;
use crate::ui::sections::Section;

/// Who joins automatically.
const JOINING: &str = "New people join through the provider that the domain requires. Where it requires none, they join through its SAML provider and through each provider of the instance that has verified the address. There, people who have an account join through SAML and Google only.";
/// What a required way of signing in changes.
const BINDING: &str = "A domain can require one sign-in method. Passwords and other providers then no longer work for its addresses.";
/// Why an unverified domain has no rules.
const UNVERIFIED: &str = "Verify the domain first.";

/// The request that changes the domain.
pub(super) fn patch(id: &str, domain: &str, body: Value) -> ApiCall {
    ApiCall {
        method: "PATCH",
        path: format!("/api/organizations/{id}/domains/{domain}/"),
        scope: "organization:write",
        body: Some(body),
    }
}

/// The warning about a stored field; `None`: there is none.
pub(super) fn warning(domain: &Domain, attr: &str) -> Option<AnyView> {
    let found = domain.warnings.iter().find(|warning| warning.attr == attr)?;
    let detail = found.detail.clone();
    Some(view! { <Alert kind="warning"><p>{detail}</p></Alert> }.into_any())
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
    let by_key = warning(&domain, "jit_provisioning_enabled");
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
                    <Submit result=result label="Save just-in-time provisioning" busy="Saving just-in-time provisioning..." saved="Saved" />
                    <ApiRequest call=call />
                })}
            </ActionForm>
        }
        .into_any()
    } else {
        view! { <p>{if enabled { "On" } else { "Off" }}</p> }.into_any()
    };
    view! {
        <Section id="provisioning" title="Just-in-time provisioning" hint=JOINING>
            {by_key}
            {content}
        </Section>
    }
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
    let DomainView { details, may_change, impact, ways, .. } = domain;
    let is_suspended = details.is_suspended;
    let domain = details.domain;
    let by_key = warning(&domain, "sso_enforcement");
    let acts = may_change && domain.is_verified && !is_suspended;
    let locks_out = acts.then(|| lock_out(&domain, &impact)).flatten();
    let preview = preview(&impact, &ways);
    let SignInImpact { members, includes_you, owners_elsewhere, .. } = impact;
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
                (false, _) if value == "saml" => choice.disabled("its settings are not complete"),
                (false, _) => choice.disabled("not set up on this instance"),
                (true, false) if !value.is_empty() => choice.disabled(UNVERIFIED),
                (true, _) => choice,
            }
        })
        .collect();
    let name = ways.into_iter().find(|(value, ..)| *value == present).map(|(_, name, _)| name);
    let whom = match members.len() {
        0 => view! { <p>"No member has an address of this domain now."</p> }.into_any(),
        1 => view! { <p>"It affects one member:"</p>{named(&members)} }.into_any(),
        count => {
            let total = counted(count as u64, "member", "members");
            view! { <p>"It affects " {total} ":"</p>{named(&members)} }.into_any()
        }
    };
    let you = match (includes_you, owners_elsewhere.is_empty()) {
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
                {preview}
                <p>
                    "When you require a sign-in method, all sessions of these addresses that began with another one end. API keys continue to work. If no member can sign in any more, the operator makes a link on the host with "
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
    view! {
        <Section id="sign-in" title="Single sign-on" hint=BINDING>
            {by_key}
            {locks_out}
            {content}
        </Section>
    }
}

/// The warning about a required way of signing in that no owner is known to be able to use.
/// The API has it in the answer to the change alone, and the page as long as it is true.
fn lock_out(domain: &Domain, impact: &SignInImpact) -> Option<AnyView> {
    let is_it =
        |way: &&WayImpact| way.sso_enforcement == domain.sso_enforcement && way.locks_out_owners;
    let way = impact.ways.iter().find(is_it)?;
    let members = named(&way.unproved);
    let warning = view! {
        <Alert kind="warning">
            <p>
                <strong>"Perhaps no owner can sign in."</strong>
                " Every owner has an address of this domain, and none of them has signed in this way with these settings. These members may not be able to sign in any more:"
            </p>
            {members}
            <p>"Let an owner sign in this way, or change what the domain requires."</p>
        </Alert>
    };
    Some(warning.into_any())
}

/// Who could no longer sign in, for each way that the domain could require.
fn preview(impact: &SignInImpact, ways: &[(String, String, bool)]) -> AnyView {
    if impact.members.is_empty() {
        return ().into_any();
    }
    let line = |way: &WayImpact| {
        let value = way.sso_enforcement.text();
        let name = ways.iter().find(|(known, ..)| known == value).map(|(_, name, _)| name.clone());
        let who = match (way.unproved.len(), way.proved.is_empty()) {
            (0, _) => view! { "every affected member has signed in this way." }.into_any(),
            (_, true) => {
                view! { "no affected member has signed in this way yet, so perhaps none of them could sign in." }
                    .into_any()
            }
            (_, false) => {
                view! { "these members have not signed in this way yet, so perhaps they could not sign in:" {named(&way.unproved)} }
                    .into_any()
            }
        };
        let owners = way.locks_out_owners.then_some(" No owner is known to be able to sign in.");
        view! { <li><strong>{name}</strong> ": " {who} {owners}</li> }
    };
    view! {
        <p>"If you require:"</p>
        <ul>{impact.ways.iter().map(line).collect_view()}</ul>
    }
    .into_any()
}
