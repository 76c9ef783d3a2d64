//! The domains of an organization: the list, and adding one.

use futures::future::try_join;
use leptos::prelude::*;
use serde_json::json;
use weir_model::domains::{DomainDetails, SsoEnforcement};

use super::{ADMINISTRATORS, Tabs};
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
use crate::ui::table::{Column, Table, TableRow, cell, cut_link};

const TITLE: &str = "Domains";

#[component]
pub(crate) fn Domains() -> impl IntoView {
    page(
        TITLE,
        id_in_path,
        |id| try_join(get_organization(id.clone()), list_domains(id)),
        |id, (organization, found)| draw(id, organization, found),
    )
}

fn draw(id: String, organization: OrganizationView, found: DomainsView) -> AnyView {
    let file = (!found.domains.is_empty()).then(|| view! { <DownloadCsv /> });
    let list = if found.domains.is_empty() {
        view! { <Explanation /> }.into_any()
    } else {
        let rows: Vec<TableRow> = found.domains.iter().map(|one| row(&id, one)).collect();
        view! { <Table caption="Domains" columns=columns() rows=rows /> }.into_any()
    };
    view! {
        <PageHead title=TITLE within=organization.name>{file}</PageHead>
        <Tabs id=id.clone() />
        <p class="lead">
            "Prove that a domain is yours, and choose how users with an address of it sign in."
        </p>
        {list}
        <Section id="adding" title="Add a domain">
            {if found.may_change {
                view! { <AddForm id=id /> }.into_any()
            } else {
                view! { <ReadOnly why=ADMINISTRATORS /> }.into_any()
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
    let joining = if domain.jit_provisioning_enabled { "On" } else { "Off" };
    let way = match domain.sso_enforcement {
        SsoEnforcement::Off => "Any sign-in method".to_owned(),
        SsoEnforcement::Saml => "SAML only".to_owned(),
        SsoEnforcement::Provider(name) => format!("{} only", name.label()),
    };
    TableRow::new(vec![
        cut_link(href, name),
        ownership(details),
        cell(joining),
        cell(way),
        cell(if domain.has_saml { "Configured" } else { "-" }),
    ])
}

/// The badge for verified and unverified domains.
pub(super) fn ownership(details: &DomainDetails) -> AnyView {
    let (tone, label) = match (details.domain.is_verified, details.is_suspended) {
        (_, true) => (Tone::Bad, "Record missing, rules suspended"),
        (true, false) if details.verification_failing_since.is_some() => {
            (Tone::Warn, "Verified, record missing")
        }
        (true, false) => (Tone::Good, "Verified"),
        (false, false)
            if details.domain.warnings.iter().any(|warning| warning.attr == "domain") =>
        {
            (Tone::Bad, "Verified by another organization")
        }
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
                hint="Such as example.com. It is yours once you have proved it." />
            <Submit result=result label="Add domain" busy="Adding domain..." />
            <ApiRequest call=call />
        </ActionForm>
    }
}

/// Instructions with an example.
#[component]
fn Explanation() -> impl IntoView {
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
