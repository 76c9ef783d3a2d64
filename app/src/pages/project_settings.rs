//! Settings of a project: the address for events, the name and time zone, how long
//! events are kept (`project_retention`), deletion.

use futures::future::try_join;
use leptos::prelude::*;
use serde_json::json;

use super::{project_in_path, project_retention};
use crate::edits::TICKED;
use crate::server_fns::projects::{
    DeleteProject, ProjectFactsView, ProjectView, UpdateProject, get_project, get_project_facts,
};
use crate::ui::alert::Alert;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::confirm::TypedConfirm;
use crate::ui::copy::CopyValue;
use crate::ui::empty::ReadOnly;
use crate::ui::field::{Field, ticked};
use crate::ui::form::{FormFailure, ReturnAddress, ShownValues, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::number::counted;
use crate::ui::page::{PageHead, page};
use crate::ui::sections::{Section, SubNav, Tab};
use crate::ui::time::{Ago, ProjectZone};

/// Suggested time zones. The field accepts any IANA name.
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

#[component]
pub(crate) fn ProjectSettings() -> impl IntoView {
    page(
        TITLE,
        || (project_in_path(), project_retention::requested_days()),
        |(id, _)| try_join(get_project(id), get_project_facts(id)),
        |(id, requested_days), (found, facts)| draw(id, found, facts, requested_days),
    )
}

fn draw(
    id: i64,
    found: ProjectView,
    facts: ProjectFactsView,
    retention: Option<String>,
) -> AnyView {
    view! {
        <PageHead title=TITLE within=found.name.clone() />
        <ProjectZone zone=found.timezone.clone() />
        {tabs(id)}
        <Settings project=found facts=facts retention=retention />
    }
    .into_any()
}

/// Links between the pages of a project's settings.
pub(super) fn tabs(project: i64) -> AnyView {
    let tab = |path: &str, label: &str| Tab::new(format!("/projects/{project}/{path}"), label);
    let tabs =
        vec![tab("settings", "General"), tab("settings/keys", "Keys"), tab("start", "Send events")];
    view! { <SubNav label="Project settings" tabs=tabs /> }.into_any()
}

#[component]
fn Settings(
    project: ProjectView,
    facts: ProjectFactsView,
    /// The retention in the address.
    retention: Option<String>,
) -> impl IntoView {
    let retention = project_retention::section(&project, retention);
    let moment = |time: Option<String>| match time {
        Some(iso) => view! { <Ago iso=iso /> }.into_any(),
        None => "None yet".into_any(),
    };
    let (first, last) = (moment(facts.first_event_at.clone()), moment(facts.last_event_at.clone()));
    let ending = match project.may_delete {
        true => view! { <Ending project=project.clone() facts=facts /> }.into_any(),
        false => view! {
            <ReadOnly why="Administrators and owners of the organization can delete the project." />
        }
        .into_any(),
    };
    let ProjectView { id, key, host, created_at, organization, .. } = project.clone();
    view! {
        <Section id="sending" title="Sending events">
            <dl class="facts">
                <dt>"Project key"</dt>
                <dd>
                    <CopyValue text=key what="project key" />
                    <p class="hint">
                        "Safe to put into client code: it can send events and nothing else. "
                        <a href=format!("/projects/{id}/settings/keys")>"Rotate it"</a>
                    </p>
                </dd>
                <dt>"Host"</dt>
                <dd><CopyValue text=host what="host" /></dd>
                <dt>"Project id"</dt>
                <dd><CopyValue text=id.to_string() what="project id" /></dd>
                <dt>"Created"</dt>
                <dd><Ago iso=created_at /></dd>
                <dt>"First event"</dt>
                <dd>{first}</dd>
                <dt>"Last event"</dt>
                <dd>{last}</dd>
            </dl>
        </Section>
        <Section id="general" title="General">
            <div data-dirty-guard=""><General project=project /></div>
        </Section>
        {retention}
        {ending}
        <p class="hint">
            "Members and security are set for the whole organization, in the "
            <a href=format!("/organizations/{organization}")>"organization settings"</a> "."
        </p>
    }
}

#[component]
fn General(project: ProjectView) -> impl IntoView {
    let update = form_action::<UpdateProject>();
    let result = form_result(update);
    let anonymize = ticked(result, "anonymize_ips", project.anonymize_ips);
    let without_persons =
        ticked(result, "person_processing_opt_out", project.person_processing_opt_out);
    let word = |is_ticked: bool| if is_ticked { TICKED } else { "" };
    let shows = [
        ("name", project.name.as_str()),
        ("timezone", project.timezone.as_str()),
        ("anonymize_ips", word(project.anonymize_ips)),
        ("person_processing_opt_out", word(project.person_processing_opt_out)),
    ];
    let shows = shows.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let request = ApiCall {
        method: "PATCH",
        path: format!("/api/projects/{}/", project.id),
        scope: "project:write",
        body: Some(json!({
            "name": "{name}",
            "timezone": "{timezone}",
            "anonymize_ips": "{anonymize_ips}",
            "person_processing_opt_out": "{person_processing_opt_out}",
        })),
    };
    view! {
        <ActionForm action=update>
            <FormFailure result=result fields=&["name", "timezone"] />
            <input type="hidden" name="id" value=project.id.to_string() />
            <ShownValues result=result values=shows />
            <ReturnAddress />
            <Field result=result name="name" label="Name" max=200 value=project.name />
            <Field result=result name="timezone" label="Time zone" max=64 value=project.timezone list="zones"
                hint="IANA name, such as UTC or Europe/Berlin. Days in charts start in this time zone." />
            <Zones />
            <label class="choice">
                <input type="checkbox" name="anonymize_ips" value="true" checked=anonymize />
                <span>
                    "Remove client IP addresses from events"
                    <span class="hint">"Applies to new events."</span>
                </span>
            </label>
            <label class="choice">
                <input type="checkbox" name="person_processing_opt_out" value="true" checked=without_persons />
                <span>
                    "Store events without persons"
                    <span class="hint">
                        "Applies to new events: they create and change no person. "
                        "Identify, alias, merge and group calls are skipped and shown as dropped. "
                        "Existing persons stay."
                    </span>
                </span>
            </label>
            <Submit result=result label="Save settings" busy="Saving settings..." saved="Saved" />
            <ApiRequest call=request />
        </ActionForm>
    }
}

/// The suggestions, for a field with the list `zones`.
#[component]
pub(super) fn Zones() -> impl IntoView {
    let zones = ZONES.into_iter().map(|zone| view! { <option value=zone></option> }).collect_view();
    view! { <datalist id="zones">{zones}</datalist> }
}

/// Deletes the project: the consequences, and a field for the name.
#[component]
fn Ending(project: ProjectView, facts: ProjectFactsView) -> impl IntoView {
    let delete = form_action::<DeleteProject>();
    let result = form_result(delete);
    let ProjectView { id, name, .. } = project;
    let exports = u64::try_from(facts.exports).unwrap_or(u64::MAX);
    let configs = u64::try_from(facts.configs).unwrap_or(u64::MAX);
    let request = ApiCall {
        method: "DELETE",
        path: format!("/api/projects/{id}/"),
        scope: "project:write",
        body: None,
    };
    view! {
        <Section id="ending" title="Delete project" danger=true>
            <Alert kind="warning">
                <p>"This cannot be undone. It deletes:"</p>
                <ul>
                    <li>{counted(facts.events, "stored event", "stored events")} ", with persons and groups"</li>
                    {(exports > 0).then(|| view! {
                        <li>{counted(exports, "export", "exports")} ". What was delivered stays there."</li>
                    })}
                    {(configs > 0).then(|| view! {
                        <li>{counted(configs, "configured plugin", "configured plugins")}</li>
                    })}
                    <li>"Its project keys, which stop working immediately"</li>
                </ul>
            </Alert>
            <ActionForm action=delete>
                <FormFailure result=result fields=&["typed_name"] />
                <input type="hidden" name="id" value=id.to_string() />
                <ReturnAddress />
                <TypedConfirm result=result name_to_type=name label="Name of the project"
                    verb="Delete project" busy="Deleting project..." />
            </ActionForm>
            <ApiRequest call=request />
        </Section>
    }
}
