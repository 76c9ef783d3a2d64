//! Creates a dashboard.

use leptos::prelude::*;
use serde_json::json;
use weir_model::dashboards::{DESCRIPTION_MAX, NAME_MAX};

use crate::pages::project_in_path;
use crate::server_fns::dashboards::CreateDashboard;
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::field::{Field, TextArea};
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};

const TITLE: &str = "New dashboard";

#[component]
pub(crate) fn NewDashboard() -> impl IntoView {
    page(TITLE, project_in_path, get_project, draw)
}

fn draw(project: i64, of: ProjectView) -> AnyView {
    let create = form_action::<CreateDashboard>();
    let result = form_result(create);
    let path = format!("/api/projects/{project}/dashboards/");
    let body = json!({ "name": "{name}", "description": "{description}" });
    let call = ApiCall::new("POST", path, "dashboard:write").with(body);
    view! {
        <PageHead title=TITLE within=of.name />
        <section class="card section" data-dirty-guard="">
            <ActionForm action=create>
                <FormFailure result=result fields=&["name", "description"] />
                <input type="hidden" name="project" value=project.to_string() />
                <ReturnAddress />
                <Field result=result name="name" label="Name" max=NAME_MAX autofocus=true
                    hint="All members of the organization can open and change it." />
                <TextArea result=result name="description" label="Description" rows=2 max=DESCRIPTION_MAX
                    hint="What it is for. It can be empty." />
                <Submit result=result label="Create dashboard" busy="Creating dashboard..." />
                <ApiRequest call=call />
            </ActionForm>
        </section>
        <p><a href=format!("/projects/{project}/dashboards")>"Back to dashboards"</a></p>
    }
    .into_any()
}
