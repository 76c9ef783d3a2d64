//! Switches to another organization or project.

use leptos::prelude::*;

use super::nav_target::NavTarget;
use crate::server_fns::account::{OrganizationNav, SwitchProject};
use crate::ui::form_action::{ActionForm, form_action};

/// Each project is a button that leads to the project.
#[component]
pub(super) fn Switcher(
    /// The organizations with their projects.
    organizations: Vec<OrganizationNav>,
    /// The organization and project of the page.
    target: NavTarget,
) -> impl IntoView {
    let project = target.project.map(|(id, _)| id);
    let new_project = target.organization.map(|(id, _)| {
        view! { <a href=format!("/organizations/{id}/projects/new")>"New project"</a> }
    });
    let switch = form_action::<SwitchProject>();
    let groups = organizations
        .into_iter()
        .map(|organization| {
            let projects = organization
                .projects
                .into_iter()
                .map(|(id, name)| {
                    let current = (Some(id) == project).then_some("true");
                    let busy = format!("Opening {name}...");
                    view! {
                        <li>
                            <button type="submit" name="project" value=id.to_string() aria-current=current data-busy=busy>
                                {name}
                            </button>
                        </li>
                    }
                })
                .collect_view();
            view! {
                <p class="menu-title">
                    <a href=format!("/organizations/{}", organization.id)>{organization.name}</a>
                </p>
                <ul>{projects}</ul>
            }
        })
        .collect_view();
    view! {
        <ActionForm action=switch>{groups}</ActionForm>
        <p class="menu-foot">
            {new_project}
            <a href="/organizations/new">"New organization"</a>
            <a href="/organizations">"All organizations"</a>
        </p>
    }
    .into_any()
}
