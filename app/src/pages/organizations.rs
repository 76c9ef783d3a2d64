//! The organizations of a person.

use leptos::prelude::*;

use crate::server_fns::organizations::{OrganizationView, list_organizations};
use crate::ui::icon::Icon;
use crate::ui::page_head::PageHead;
use crate::ui::panel::Panel;

/// The list.
#[component]
pub(crate) fn Organizations() -> impl IntoView {
    let data = Resource::new(|| (), |()| list_organizations());
    view! {
        <PageHead title=Signal::stored("Organizations".to_owned())>
            <a class="button button-primary" href="/organizations/new">
                <Icon name="plus" />
                "New organization"
            </a>
        </PageHead>
        <Panel data=data view=content />
    }
    .into_any()
}

fn content(found: Vec<OrganizationView>) -> AnyView {
    if found.is_empty() { nothing() } else { list(found) }
}

fn nothing() -> AnyView {
    view! {
        <div class="empty">
            <h2>"No organization yet"</h2>
            <p>"An organization holds projects and the people who work on them. Events go into a project."</p>
            <p><a class="button button-primary" href="/organizations/new">"Create your first organization"</a></p>
        </div>
    }
    .into_any()
}

fn list(found: Vec<OrganizationView>) -> AnyView {
    let rows = found.into_iter().map(|organization| {
        let projects = organization.projects.into_iter().map(|(id, name, has_events)| {
            let state = if has_events { "receives events" } else { "no event yet" };
            view! {
                <li>
                    <a href=format!("/projects/{id}/live")>{name}</a>
                    <span class="faint">{state}</span>
                </li>
            }
        });
        view! {
            <li class="card organization">
                <div class="organization-head">
                    <h2><a href=format!("/organizations/{}", organization.id)>{organization.name}</a></h2>
                    <span class="chip">{organization.level}</span>
                </div>
                <p class="faint">
                    <code>{organization.slug}</code>
                    " · "
                    {members(&organization.members)}
                </p>
                <ul class="organization-projects">{projects.collect_view()}</ul>
            </li>
        }
    });
    view! { <ul class="plain">{rows.collect_view()}</ul> }.into_any()
}

/// The number of members in words.
pub(crate) fn members(count: &str) -> String {
    if count == "1" { "1 member".to_owned() } else { format!("{count} members") }
}
