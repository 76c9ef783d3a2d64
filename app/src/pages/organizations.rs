//! The organizations of a person.

use leptos::prelude::*;

use crate::server_fns::organizations::{OrganizationView, list_organizations};
use crate::ui::icon::Icon;
use crate::ui::page::{PageHead, page};

/// The list.
#[component]
pub(crate) fn Organizations() -> impl IntoView {
    page("Organizations", async {
        let found = list_organizations().await?;
        let content = if found.is_empty() { nothing() } else { list(found) };
        Ok(view! {
            <PageHead title="Organizations">
                <a class="button button-primary" href="/organizations/new">
                    <Icon name="plus" />
                    "New organization"
                </a>
            </PageHead>
            {content}
        }
        .into_any())
    })
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
            // The page where one goes on.
            let (page, state) = match has_events {
                true => ("live", "Receives events"),
                false => ("start", "No event yet"),
            };
            view! {
                <li>
                    <a href=format!("/projects/{id}/{page}")>{name}</a>
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
