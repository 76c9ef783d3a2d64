//! Provisioning of a domain: the address and the token for the identity provider, and the
//! levels that its groups give.

use leptos::prelude::*;
use serde_json::json;

use crate::pages::{id_in_path, in_path};
use crate::server_fns::domains::DomainView;
use crate::server_fns::scim::{
    CreateScimToken, GroupView, RevealedToken, RevokeScimToken, ScimView, SetScimLevel, TokenView,
    reveal_scim_token,
};
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::confirm::Confirm;
use crate::ui::copy::CopyValue;
use crate::ui::field::{Choice, Select};
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::number::grouped;
use crate::ui::page::{PageHead, page_of_secrets};
use crate::ui::reveal::{not_revealed, revealed};
use crate::ui::sections::Section;
use crate::ui::table::{Column, Table, TableRow, cell, truncated};
use crate::ui::time::Ago;

/// What the section is for.
const HINT: &str = "The identity provider adds, changes and deactivates members with an address of the domain, by SCIM 2.0.";
/// What happens to a deactivated user.
const OWNERS: &str = "Only owners make a token.";

const EFFECT: &str = "A user whom it deactivates is signed out immediately, loses the API keys that reach no other organization, and cannot sign in. The last owner is never deactivated.";
/// Title of the page with a new token.
const NEW_TOKEN: &str = "Your new SCIM token";

/// The request about provisioning, without a body.
fn call(method: &'static str, id: &str, domain: &str, rest: &str) -> ApiCall {
    ApiCall {
        method,
        path: format!("/api/organizations/{id}/domains/{domain}/scim/{rest}/"),
        scope: "organization:write",
        body: None,
    }
}

/// Address, token and groups.
#[component]
pub(super) fn Scim(
    /// Id of the organization.
    id: String,
    domain: DomainView,
) -> impl IntoView {
    let DomainView { details, may_change, scim, .. } = domain;
    let of_domain = details.domain;
    let ScimView { url, token, groups, group_count, may_provision } = scim;
    let name = of_domain.id.to_string();
    if !of_domain.is_verified {
        return view! {
            <Section id="scim" title="Provisioning" hint=HINT>
                <p class="hint">"Verify the domain first, in " <a href="#ownership">"Ownership"</a> "."</p>
            </Section>
        }
        .into_any();
    }
    let has_token = token.is_some();
    view! {
        <Section id="scim" title="Provisioning" hint=HINT>
            <p>{EFFECT}</p>
            <dl class="facts">
                <dt>"SCIM address"</dt>
                <dd><CopyValue text=url what="SCIM address" /></dd>
                {facts(token)}
            </dl>
            {may_change.then(|| view! {
                <TokenForms id=id.clone() domain=name.clone() has_token=has_token may_create=may_provision />
                <p><a href="/help/provisioning">"Set up provisioning step by step"</a></p>
            })}
            <h3>"Groups"</h3>
            {table(&groups, group_count)}
            {(may_provision && !groups.is_empty()).then(|| view! {
                <LevelForm id=id domain=name groups=groups />
            })}
        </Section>
    }
    .into_any()
}

fn facts(token: Option<TokenView>) -> AnyView {
    let Some(TokenView { mask, made_by, created_at, used_at }) = token else {
        return view! { <dt>"Token"</dt><dd>"None, so the identity provider is refused."</dd> }
            .into_any();
    };
    view! {
        <dt>"Token"</dt>
        <dd><code>{mask}</code></dd>
        <dt>"Made by"</dt>
        <dd>{made_by.unwrap_or_else(|| "A former user".to_owned())}</dd>
        <dt>"Made"</dt>
        <dd><Ago iso=created_at /></dd>
        <dt>"Last used"</dt>
        <dd>
            {match used_at {
                Some(iso) => view! { <Ago iso=iso /> }.into_any(),
                None => "Never".into_any(),
            }}
        </dd>
    }
    .into_any()
}

/// Makes and revokes the token.
#[component]
fn TokenForms(
    id: String,
    domain: String,
    has_token: bool,
    /// Whether the caller may make a token. Administrators only revoke it.
    may_create: bool,
) -> impl IntoView {
    let create = form_action::<CreateScimToken>();
    let result = form_result(create);
    let (of_create, of_domain) = (id.clone(), domain.clone());
    let create_call = call("POST", &id, &domain, "token");
    let label = if has_token { "Replace token" } else { "Create token" };
    let form = view! {
        <ActionForm action=create>
            <FormFailure result=result />
            <input type="hidden" name="id" value=of_create />
            <input type="hidden" name="domain" value=of_domain />
            <ReturnAddress />
            <Submit result=result label=label busy="Creating token..." />
            <ApiRequest call=create_call />
        </ActionForm>
    };
    if !has_token {
        return match may_create {
            true => form.into_any(),
            false => view! { <p class="hint">{OWNERS}</p> }.into_any(),
        };
    }
    let revoke = form_action::<RevokeScimToken>();
    let revoked = form_result(revoke);
    let revoke_call = call("DELETE", &id, &domain, "token");
    view! {
        <div class="buttons">
            {may_create.then(|| view! {
                <Confirm button="Replace token">
                    <p>"The present token stops working immediately. Enter the new one at the identity provider."</p>
                    {form}
                </Confirm>
            })}
            <Confirm button="Revoke token" danger=true>
                <p>"The identity provider is refused immediately. Users and groups stay as they are."</p>
                <ActionForm action=revoke>
                    <FormFailure result=revoked />
                    <input type="hidden" name="id" value=id />
                    <input type="hidden" name="domain" value=domain />
                    <ReturnAddress />
                    <Submit result=revoked label="Revoke token now" busy="Revoking token..." />
                    <ApiRequest call=revoke_call />
                </ActionForm>
            </Confirm>
        </div>
    }
    .into_any()
}

fn table(groups: &[GroupView], count: u64) -> AnyView {
    if groups.is_empty() {
        return view! {
            <p class="hint">"The identity provider has sent no groups yet. Groups can give levels to their members."</p>
        }
        .into_any();
    }
    let columns =
        vec![Column::text("Group"), Column::text("Members"), Column::text("Level of members")];
    let row = |group: &GroupView| {
        TableRow::new(vec![
            truncated(group.name.clone()),
            cell(grouped(group.members)),
            cell(level(group.level)),
        ])
    };
    let rows: Vec<TableRow> = groups.iter().map(row).collect();
    let rest = count.saturating_sub(groups.len() as u64);
    view! {
        <Table caption="Groups of the identity provider" columns=columns rows=rows />
        {(rest > 0).then(|| view! {
            <p class="hint">{grouped(rest)} " more groups are in the API only."</p>
        })}
    }
    .into_any()
}

fn level(level: Option<i64>) -> &'static str {
    match level {
        Some(8) => "Administrator",
        Some(_) => "Member",
        None => "Unchanged",
    }
}

/// Sets the level that a group gives.
#[component]
fn LevelForm(id: String, domain: String, groups: Vec<GroupView>) -> impl IntoView {
    let set = form_action::<SetScimLevel>();
    let result = form_result(set);
    let request = ApiCall {
        body: Some(json!({"level": "{group_level}"})),
        ..call("PATCH", &id, &domain, "groups/{group}")
    };
    let choices = groups.into_iter().map(|group| Choice::new(group.id, group.name)).collect();
    let levels = vec![
        Choice::new("", "Unchanged"),
        Choice::new("1", "Member"),
        Choice::new("8", "Administrator"),
    ];
    view! {
        <ActionForm action=set>
            <FormFailure result=result fields=&["group", "group_level"] />
            <input type="hidden" name="id" value=id />
            <input type="hidden" name="domain" value=domain />
            <ReturnAddress />
            <Select result=result name="group" label="Group" choices=choices />
            <Select result=result name="group_level" label="Level of its members" choices=levels
                hint="The highest level of all groups of a member counts. Owners stay owners." />
            <Submit result=result label="Save level" busy="Saving level..." saved="Saved" />
            <ApiRequest call=request />
        </ActionForm>
    }
    .into_any()
}

/// Shows a new token exactly once.
#[component]
pub(crate) fn DomainToken() -> impl IntoView {
    page_of_secrets(
        NEW_TOKEN,
        || (id_in_path(), in_path("domain")),
        |(id, domain)| reveal_scim_token(id, domain),
        |(id, domain), RevealedToken { value, url }| {
            let back = format!("/organizations/{id}/domains/{domain}#scim");
            let content = match value {
                Some(value) => {
                    let used_for = view! {
                        <p>"Enter it at the identity provider, with this address:"</p>
                        <p><CopyValue text=url what="SCIM address" /></p>
                    };
                    revealed(value, "token", used_for.into_any(), back)
                }
                None => {
                    let without = view! { <p>"If you did not store it, replace it."</p> };
                    not_revealed("token", without.into_any(), back, "Go to the domain")
                }
            };
            view! {
                <PageHead title=NEW_TOKEN />
                {content}
            }
            .into_any()
        },
    )
}
