//! Deletes an organization: the consequences, and a field for the name.

use leptos::prelude::*;

use crate::pages::organizations::members;
use crate::server_fns::organizations::{DeleteOrganization, OrganizationView};
use crate::ui::alert::Alert;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::confirm::TypedConfirm;
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::number::grouped;
use crate::ui::sections::Section;

/// The last section of the settings.
#[component]
pub(super) fn Ending(
    organization: OrganizationView,
    /// Deleted objects besides projects: number and kind.
    stake: Vec<(usize, String)>,
    /// Whether this is the only organization of the user.
    is_only: bool,
) -> impl IntoView {
    let delete = form_action::<DeleteOrganization>();
    let result = form_result(delete);
    let projects = organization
        .projects
        .iter()
        .map(|(_, name, has_events)| {
            let what =
                if *has_events { "with its key and all of its events" } else { "with its key" };
            view! { <li>"The project " <strong>{name.clone()}</strong> " " {what}</li> }
        })
        .collect_view();
    let others = stake
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| view! { <li>{format!("{} {what}", grouped(count as u64))}</li> })
        .collect_view();
    let call = ApiCall {
        method: "DELETE",
        path: format!("/api/organizations/{}/", organization.id),
        scope: "organization:write",
        body: None,
    };
    view! {
        <Section id="ending" title="Delete organization" danger=true>
            <Alert kind="warning">
                <p>"This cannot be undone. It deletes:"</p>
                <ul>
                    {projects}
                    {others}
                    <li>"The membership of " {members(&organization.members)}</li>
                </ul>
                <p>"Project keys stop working immediately."</p>
                {is_only.then(|| view! {
                    <p>"This is your only organization: afterwards you belong to none, and can create another."</p>
                })}
            </Alert>
            <ActionForm action=delete>
                <FormFailure result=result fields=&["typed_name"] />
                <input type="hidden" name="id" value=organization.id />
                <ReturnAddress />
                <TypedConfirm result=result name_to_type=organization.name label="Name of the organization"
                    verb="Delete organization" busy="Deleting organization..." />
            </ActionForm>
            <ApiRequest call=call />
        </Section>
    }
}
