//! Creates an organization.

use leptos::prelude::*;
use serde_json::json;

use crate::server_fns::organizations::CreateOrganization;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::field::Field;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};

const TITLE: &str = "New organization";

#[component]
pub(crate) fn OrganizationNew() -> impl IntoView {
    page(TITLE, || (), |()| async { Ok(()) }, |(), ()| draw())
}

fn draw() -> AnyView {
    let action = form_action::<CreateOrganization>();
    let result = form_result(action);
    let call = ApiCall {
        method: "POST",
        path: "/api/organizations/".to_owned(),
        scope: "organization:write",
        body: Some(json!({"name": "{name}"})),
    };
    view! {
        <PageHead title=TITLE />
        <section class="card section">
            <ActionForm action=action>
                <FormFailure result=result fields=&["name"] />
                <ReturnAddress />
                <Field result=result name="name" label="Name" autocomplete="organization" max=64 autofocus=true
                    hint="It comes with a first project, ready for events." />
                <Submit result=result label="Create organization" busy="Creating organization..." />
                <ApiRequest call=call />
            </ActionForm>
        </section>
        <p><a href="/organizations">"Back to organizations"</a></p>
    }
    .into_any()
}
