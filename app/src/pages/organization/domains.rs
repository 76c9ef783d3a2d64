//! The page with the domains of an organization: the list, and the form that adds one.

use futures::future::try_join;
use leptos::prelude::*;
use serde_json::json;
use weir_model::domains::{DomainDetails, SsoEnforcement, VERIFIED_ELSEWHERE};

use super::{FOR_ADMINISTRATORS, Tabs};
use crate::pages::id_in_path;
use crate::server_fns::domains::{AddDomain, DomainsView, list_domains};
use crate::server_fns::organizations::{OrganizationView, get_organization};
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::download::DownloadCsv;
use crate::ui::empty::{Empty, ReadOnly};
use crate::ui::field::Field;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};
use crate::ui::table::{Column, Table, TableRow, cell, truncated_link};

const TITLE: &str = "Domains";

#[component]
pub(crate) fn Domains() -> impl IntoView {
    page(
        TITLE,
        id_in_path,
        |id| try_join(get_organization(id.clone()), list_domains(id)),
        |id, (organization, domains_view)| draw(id, organization, domains_view),
    )
}

fn draw(id: String, organization: OrganizationView, domains_view: DomainsView) -> AnyView {
    let DomainsView { domains, may_change } = domains_view;
    let download = (!domains.is_empty()).then(|| view! { <DownloadCsv /> });
    let list = if domains.is_empty() {
        view! { <NoDomains /> }.into_any()
    } else {
        let rows: Vec<TableRow> = domains.iter().map(|details| row(&id, details)).collect();
        view! { <Table caption="Domains" columns=columns() rows=rows /> }.into_any()
    };
    view! {
        <PageHead title=TITLE within=organization.name>{download}</PageHead>
        <Tabs id=id.clone() />
        <p class="lead">
            "Prove that a domain is yours, and choose how users with an address of it sign in."
        </p>
        {list}
        <Section id="adding" title="Add a domain">
            {if may_change {
                view! { <AddForm id=id /> }.into_any()
            } else {
                view! { <ReadOnly why=FOR_ADMINISTRATORS /> }.into_any()
            }}
        </Section>
    }
    .into_any()
}

fn columns() -> Vec<Column> {
    ["Domain", "Ownership", "Just-in-time provisioning", "Single sign-on", "SAML"]
        .map(Column::text)
        .into()
}

fn row(id: &str, details: &DomainDetails) -> TableRow {
    let domain = &details.domain;
    let href = format!("/organizations/{id}/domains/{}", domain.id);
    let name = domain.domain.clone();
    let jit_provisioning = if domain.jit_provisioning_enabled { "On" } else { "Off" };
    let required_method = match domain.sso_enforcement {
        SsoEnforcement::Off => "Any sign-in method".to_owned(),
        SsoEnforcement::Saml => "SAML only".to_owned(),
        SsoEnforcement::Provider(name) => format!("{} only", name.label()),
    };
    TableRow::new(vec![
        truncated_link(href, name),
        ownership_status(details),
        cell(jit_provisioning),
        cell(required_method),
        cell(if domain.has_saml { "Configured" } else { "-" }),
    ])
}

/// The status of the ownership of a domain: verified, not verified yet, or lost.
pub(super) fn ownership_status(details: &DomainDetails) -> AnyView {
    let domain = &details.domain;
    let is_verified_elsewhere =
        domain.warnings.iter().any(|warning| warning.code == VERIFIED_ELSEWHERE);
    let (tone, label) = match (domain.is_verified, details.is_suspended) {
        (_, true) => (Tone::Bad, "Record missing, rules suspended"),
        (true, false) if details.verification_failing_since.is_some() => {
            (Tone::Warn, "Verified, record missing")
        }
        (true, false) => (Tone::Good, "Verified"),
        (false, false) if is_verified_elsewhere => (Tone::Bad, "Verified by another organization"),
        (false, false) => (Tone::Quiet, "Not verified yet"),
    };
    view! { <Status tone=tone label=label /> }.into_any()
}

#[component]
fn AddForm(id: String) -> impl IntoView {
    let add = form_action::<AddDomain>();
    let result = form_result(add);
    let call = ApiCall {
        method: "POST",
        path: format!("/api/organizations/{id}/domains/"),
        scope: "organization:write",
        body: Some(json!({"domain": "{domain}"})),
    };
    view! {
        <ActionForm action=add>
            <FormFailure result=result fields=&["domain"] />
            <input type="hidden" name="id" value=id />
            <ReturnAddress />
            <Field result=result name="domain" label="Domain" max=128
                hint="Such as example.com. On its page you then prove that it is yours." />
            <Submit result=result label="Add domain" busy="Adding domain..." />
            <ApiRequest call=call />
        </ActionForm>
    }
}

/// Shown instead of an empty list: how to prove a domain, with an example.
#[component]
fn NoDomains() -> impl IntoView {
    view! {
        <Empty title="No domain yet">
            <p>"Three steps prove that a domain is yours. No other organization on this instance can claim it then:"</p>
            <ol class="domain-steps">
                <li>"Add the domain, such as " <code>"otter-tea.example"</code> "."</li>
                <li>
                    "At your DNS provider, create a TXT record. Its name is "
                    <code>"_posthog-challenge.otter-tea.example"</code>
                    ", its value a text from Weir, such as "
                    <code>"kX3f...9aQ"</code> "."
                </li>
                <li>"Come back and press Check now. Name servers can take hours to pass a new record on."</li>
            </ol>
        </Empty>
    }
}
