//! A new organization.

use leptos::prelude::*;

use crate::server_fns::organizations::CreateOrganization;
use crate::ui::field::Field;
use crate::ui::form::{Back, FormFailure, Submit, sent};
use crate::ui::page::PageHead;

/// The form.
#[component]
pub(crate) fn OrganizationNew() -> impl IntoView {
    let action = ServerAction::<CreateOrganization>::new();
    let sent = sent(action);
    view! {
        <PageHead title="New organization" />
        <section class="card">
            <ActionForm action=action>
                <FormFailure sent=sent fields=&["name"] />
                <Back />
                <Field sent=sent name="name" label="Name" autocomplete="organization" max=64 autofocus=true
                    hint="It comes with a first project, ready for events." />
                <Submit sent=sent label="Create organization" busy="Creating organization..." />
            </ActionForm>
        </section>
        <p><a href="/organizations">"Back to organizations"</a></p>
    }
    .into_any()
}
