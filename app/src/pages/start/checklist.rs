//! The steps after the first event. Completed steps are ticked, and users can hide the
//! list.

use leptos::prelude::*;

use crate::server_fns::project_start::{ChecklistView, HideChecklist};
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::icon::Icon;

/// The checklist, or the button that shows it again.
#[component]
pub(super) fn Checklist(
    /// Number of the project.
    project: i64,
    /// Id of its organization.
    organization: String,
    /// Which steps are complete.
    list: ChecklistView,
) -> impl IntoView {
    let hide = form_action::<HideChecklist>();
    let result = form_result(hide);
    let ChecklistView { teammate, read_only_key, export, hidden } = list;
    let (button, busy) = match hidden {
        true => ("Show the checklist", "Showing..."),
        false => ("Hide this list", "Hiding..."),
    };
    let steps = (!hidden).then(|| {
        let done = [teammate, read_only_key, export].into_iter().filter(|done| *done).count();
        view! {
            <p class="hint">{format!("{done} of 3 done")}</p>
            <ul class="checklist">
                {step(teammate, format!("/organizations/{organization}/invites"), "Invite a teammate",
                    "Share the events with your team.")}
                {step(read_only_key, "/account/keys/new".to_owned(), "Create a read-only API key",
                    "For scripts and dashboards that read what is stored.")}
                {step(export, format!("/organizations/{organization}/exports"), "Add an export",
                    "Copies events to the place where you analyse them.")}
            </ul>
            <ul class="next-list">
                <li><a href=format!("/projects/{project}/events")>"Watch events arrive"</a></li>
                <li><a href=format!("/projects/{project}/settings")>"Name the project and set its time zone"</a></li>
            </ul>
        }
    });
    view! {
        <section class="next" aria-labelledby="next">
            <h2 id="next">"Next"</h2>
            <FormFailure result=result />
            {steps}
            <ActionForm action=hide>
                <input type="hidden" name="id" value=project.to_string() />
                <input type="hidden" name="hidden" value=(!hidden).to_string() />
                <ReturnAddress />
                <button type="submit" class="button button-quiet" data-busy=busy>{button}</button>
            </ActionForm>
        </section>
    }
    .into_any()
}

fn step(done: bool, href: String, label: &'static str, why: &'static str) -> AnyView {
    let mark = match done {
        true => view! { <Icon name="check" /><span class="hidden">"Done: "</span> }.into_any(),
        false => view! { <span aria-hidden="true">"○"</span> }.into_any(),
    };
    view! {
        <li>
            {mark}
            <a href=href>{label}</a>
            <span class="hint">{why}</span>
        </li>
    }
    .into_any()
}
