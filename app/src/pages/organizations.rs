//! The organizations of the user.

use leptos::prelude::*;
use serde_json::json;

use crate::server_fns::organizations::{OrganizationView, SwitchOrganization, list_organizations};
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::download::DownloadCsv;
use crate::ui::empty::Empty;
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, FormAction, form_action};
use crate::ui::icon::Icon;
use crate::ui::page::{PageHead, page};
use crate::ui::status::Chip;

#[component]
pub(crate) fn Organizations() -> impl IntoView {
    page("Organizations", || (), |()| list_organizations(), |(), found| draw(found))
}

fn draw(found: Vec<OrganizationView>) -> AnyView {
    let switch = form_action::<SwitchOrganization>();
    let switched = form_result(switch);
    let file = (!found.is_empty()).then(|| view! { <DownloadCsv /> });
    let content = if found.is_empty() { nothing() } else { list(found, switch) };
    view! {
        <PageHead title="Organizations">
            {file}
            <a class="button button-primary" href="/organizations/new">
                <Icon name="plus" />
                "New organization"
            </a>
        </PageHead>
        <FormFailure result=switched />
        {content}
    }
    .into_any()
}

fn nothing() -> AnyView {
    view! {
        <Empty title="No organization yet">
            <p>"An organization holds projects and the people who work on them. Events go into a project."</p>
            <p><a class="button button-primary" href="/organizations/new">"Create your first organization"</a></p>
        </Empty>
    }
    .into_any()
}

fn list(found: Vec<OrganizationView>, switch: FormAction<SwitchOrganization>) -> AnyView {
    let other = found.iter().find(|organization| !organization.is_current).map(|organization| {
        let call = ApiCall::new("PATCH", "/api/users/@me/".to_owned(), "user:write");
        let call = call.with(json!({"set_current_organization": organization.id}));
        view! { <ApiRequest call=call of=format!("switch to {}", organization.name) /> }
    });
    let rows = found.into_iter().map(|organization| {
        let id = organization.id.clone();
        let here = organization.is_current.then(|| view! { <Chip label="Current" /> });
        let switching = (!organization.is_current).then(|| {
            let (value, name) = (id.clone(), organization.name.clone());
            view! {
                <div class="organization-foot">
                    <ActionForm action=switch>
                        <input type="hidden" name="id" value=value />
                        <ReturnAddress />
                        <button type="submit" class="button" data-busy="Switching...">
                            "Switch"<span class="hidden">" to " {name}</span>
                        </button>
                    </ActionForm>
                </div>
            }
        });
        let projects = organization.projects.into_iter().map(|(id, name, has_events)| {
            // The most useful page of the project.
            let (page, state) = match has_events {
                true => ("", "Receives events"),
                false => ("/start", "No event yet"),
            };
            view! {
                <li>
                    <a href=format!("/projects/{id}{page}")>{name}</a>
                    <span class="faint">{state}</span>
                </li>
            }
        });
        view! {
            <li class="card organization">
                <div class="organization-head">
                    <h2><a href=format!("/organizations/{}", organization.id)>{organization.name}</a></h2>
                    <span class="chips">{here}<Chip label=organization.level /></span>
                </div>
                <p class="faint">
                    <code>{organization.slug}</code>
                    " · "
                    <a href=format!("/organizations/{id}/members")>{members(&organization.members)}</a>
                </p>
                <ul class="organization-projects">{projects.collect_view()}</ul>
                {switching}
            </li>
        }
    });
    view! {
        <ul class="plain">{rows.collect_view()}</ul>
        {other}
    }
    .into_any()
}

/// The number of members in words.
pub(crate) fn members(count: &str) -> String {
    if count == "1" { "1 member".to_owned() } else { format!("{count} members") }
}
