//! Switches to another organization or project.

use leptos::prelude::*;

use crate::server_fns::account::{OrganizationNav, SwitchProject};
use crate::ui::form_action::{ActionForm, form_action};

/// Each project is a button that leads to the project.
#[component]
pub(super) fn Switcher(
    /// The organizations with their projects.
    organizations: Vec<OrganizationNav>,
    /// The project of the page.
    project: Option<i64>,
) -> impl IntoView {
    let switch = form_action::<SwitchProject>();
    let groups = organizations
        .into_iter()
        .map(|organization| {
            let projects = organization
                .projects
                .into_iter()
                .map(|(id, name)| {
                    let here = (Some(id) == project).then_some("true");
                    let busy = format!("Opening {name}...");
                    view! {
                        <li>
                            <button type="submit" name="project" value=id.to_string() aria-current=here data-busy=busy>
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
            <a href="/organizations">"All organizations"</a>
            <a href="/organizations/new">"New organization"</a>
        </p>
    }
}
