//! Creates a project in an organization.

use leptos::prelude::*;
use serde_json::json;

use super::id_in_path;
use super::project_settings::Zones;
use crate::server_fns::organizations::{OrganizationView, get_organization};
use crate::server_fns::projects::CreateProject;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::empty::ReadOnly;
use crate::ui::field::Field;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};

const TITLE: &str = "New project";

#[component]
pub(crate) fn ProjectNew() -> impl IntoView {
    page(TITLE, id_in_path, get_organization, |_, organization| draw(organization))
}

fn draw(organization: OrganizationView) -> AnyView {
    let back = format!("/organizations/{}", organization.id);
    // Changing the organization and adding a project need the same level.
    let content = match organization.may_change {
        true => view! { <section class="card section"><NewForm organization=organization.id /></section> }
            .into_any(),
        false => view! {
            <ReadOnly why="Administrators and owners of the organization can add projects." />
        }
        .into_any(),
    };
    view! {
        <PageHead title=TITLE within=organization.name.clone() />
        <p class="lead">
            {format!("Each project of {} has its own events, persons and exports.", organization.name)}
        </p>
        {content}
        <p><a href=back>"Back to the organization"</a></p>
    }
    .into_any()
}

#[component]
fn NewForm(organization: String) -> impl IntoView {
    let create = form_action::<CreateProject>();
    let result = form_result(create);
    let zone = "UTC".to_owned();
    let request = ApiCall {
        method: "POST",
        path: format!("/api/organizations/{organization}/projects/"),
        scope: "project:write",
        body: Some(json!({ "name": "{name}", "timezone": "{timezone}" })),
    };
    view! {
        <ActionForm action=create>
            <FormFailure result=result fields=&["name", "timezone"] />
            <input type="hidden" name="organization" value=organization />
            <ReturnAddress />
            <Field result=result name="name" label="Name" max=200 autofocus=true
                hint="A product, a site or a stage of one, such as Shop or Shop staging." />
            <Field result=result name="timezone" label="Time zone" max=64 value=zone list="zones"
                hint="IANA name, such as UTC or Europe/Berlin. It can be changed later." />
            <Zones />
            <Submit result=result label="Create project" busy="Creating project..." />
            <ApiRequest call=request />
        </ActionForm>
    }
}
