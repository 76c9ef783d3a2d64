//! Settings of a project, with its key.

use leptos::prelude::*;

use super::project_in_path;
use crate::server_fns::projects::{ProjectView, UpdateProject, get_project};
use crate::ui::copy::CopyValue;
use crate::ui::field::{Field, initial};
use crate::ui::form::{Back, FormFailure, Submit, sent};
use crate::ui::page::{PageHead, page};
use crate::ui::time::Time;

/// Suggestions; any IANA name can be entered.
pub(super) const ZONES: [&str; 16] = [
    "UTC",
    "Africa/Johannesburg",
    "America/Chicago",
    "America/Los_Angeles",
    "America/New_York",
    "America/Sao_Paulo",
    "Asia/Dubai",
    "Asia/Kolkata",
    "Asia/Shanghai",
    "Asia/Singapore",
    "Asia/Tokyo",
    "Australia/Sydney",
    "Europe/Berlin",
    "Europe/Lisbon",
    "Europe/London",
    "Europe/Paris",
];

const TITLE: &str = "Project settings";

/// The settings.
#[component]
pub(crate) fn ProjectSettings() -> impl IntoView {
    let id = project_in_path();
    page(TITLE, async move {
        let found = get_project(id).await?;
        Ok(view! {
            <PageHead title=TITLE within=found.name.clone() />
            <Settings project=found />
        }
        .into_any())
    })
}

#[component]
fn Settings(project: ProjectView) -> impl IntoView {
    let update = ServerAction::<UpdateProject>::new();
    let sent = sent(update);
    let anonymize = ticked("anonymize_ips", project.anonymize_ips);
    let without_persons = ticked("person_processing_opt_out", project.person_processing_opt_out);
    let zones = ZONES.into_iter().map(|zone| view! { <option value=zone></option> }).collect_view();
    view! {
        <section class="card" aria-labelledby="sending">
            <h2 id="sending">"Sending events"</h2>
            <dl class="facts">
                <dt>"Project key"</dt>
                <dd>
                    <CopyValue text=project.key what="project key" />
                    <p class="hint">"Safe to put into client code: it can send events and nothing else."</p>
                </dd>
                <dt>"Host"</dt>
                <dd><CopyValue text=project.host what="host" /></dd>
                <dt>"Project id"</dt>
                <dd><CopyValue text=project.id.to_string() what="project id" /></dd>
                <dt>"Created"</dt>
                <dd><Time iso=project.created_at /></dd>
            </dl>
        </section>
        <section class="card" aria-labelledby="general">
            <h2 id="general">"General"</h2>
            <ActionForm action=update>
                <FormFailure sent=sent fields=&["name", "timezone"] />
                <input type="hidden" name="id" value=project.id.to_string() />
                <Back />
                <Field sent=sent name="name" label="Name" max=200 value=project.name />
                <Field sent=sent name="timezone" label="Time zone" max=64 value=project.timezone list="zones"
                    hint="IANA name, such as UTC or Europe/Berlin. Days of charts and exports begin by it." />
                <datalist id="zones">{zones}</datalist>
                <label class="choice">
                    <input type="checkbox" name="anonymize_ips" value="true" checked=anonymize />
                    <span>
                        "Leave client addresses out of events"
                        <span class="hint">"Applies to events from now on."</span>
                    </span>
                </label>
                <label class="choice">
                    <input type="checkbox" name="person_processing_opt_out" value="true" checked=without_persons />
                    <span>
                        "Store events without persons"
                        <span class="hint">
                            "Applies to events from now on: they make and change no person. "
                            "Identify, alias, merge and group calls are skipped and shown as dropped. "
                            "Persons that there are stay."
                        </span>
                    </span>
                </label>
                <Submit sent=sent label="Save settings" busy="Saving settings..." saved="Saved" />
            </ActionForm>
        </section>
        <p class="hint">
            "Projects go with their organization: see "
            <a href=format!("/organizations/{}", project.organization)>"organization settings"</a> "."
        </p>
    }
}

/// Whether a box begins ticked: as it was sent if the form failed, else as it is
/// stored. A box that is not ticked is not sent, so the name tells whether the
/// form was.
fn ticked(name: &str, stored: bool) -> bool {
    match initial("name", String::new()).is_empty() {
        true => stored,
        false => initial(name, String::new()) == "true",
    }
}
