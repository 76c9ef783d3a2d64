//! The frame around every page of whoever is signed in: navigation at the side,
//! at the top on small screens.

use leptos::prelude::*;
use leptos_router::components::Outlet;
use leptos_router::hooks::use_location;

use crate::server_fns::account::{Place, SwitchProject, Viewer, get_viewer};
use crate::server_fns::identity::SignOut;
use crate::ui::icon::Icon;
use crate::ui::menu::Menu;

/// The sign of the product, beside its name.
#[component]
pub(crate) fn Mark() -> impl IntoView {
    view! {
        <svg class="mark" aria-hidden="true" focusable="false">
            <use href="/icons.svg#mark"></use>
        </svg>
    }
}

/// Navigation and the page.
#[component]
pub(crate) fn Frame() -> impl IntoView {
    let path = use_location().pathname.get_untracked();
    // Without a viewer the page itself says what is wrong.
    let rail = Suspend::new(async move {
        get_viewer().await.ok().map(|viewer| view! { <Rail viewer=viewer path=path /> })
    });
    view! {
        <div class="frame">
            <header class="rail">
                <a class="brand" href="/" aria-label="Weir, start"><Mark /> <span>"Weir"</span></a>
                {rail}
            </header>
            <main id="main" tabindex="-1">
                <Outlet />
            </main>
        </div>
    }
    .into_any()
}

#[component]
fn Rail(viewer: Viewer, path: String) -> impl IntoView {
    let Viewer { name, email, organizations, project, .. } = viewer;
    // What is not there, or not for this person, has no pages to go to.
    let may_see = |id: &i64| {
        organizations.iter().any(|place| place.projects.iter().any(|(known, _)| known == id))
    };
    let project = project_of(&path).filter(may_see).or(project.filter(may_see));
    let current = current(&organizations, project);
    let link = |href: String, icon, label| {
        view! { <NavLink at=path.clone() href=href icon=icon label=label /> }
    };
    let of_project = project.map(|id| {
        [
            link(format!("/projects/{id}/start"), "start", "Start"),
            link(format!("/projects/{id}/live"), "live", "Live"),
            link(format!("/projects/{id}/health"), "health", "Health"),
            link(format!("/projects/{id}/settings"), "settings", "Settings"),
        ]
        .collect_view()
    });
    view! {
        <Menu class="switch" label=current>
            <Switcher organizations=organizations project=project />
        </Menu>
        <nav class="nav" aria-label="Main">
            {of_project.map(|links| view! { <div class="nav-group">{links}</div> })}
            <div class="nav-group">
                {link("/organizations".to_owned(), "organization", "Organizations")}
                {link("/account/keys".to_owned(), "key", "API keys")}
            </div>
        </nav>
        <AccountMenu name=name email=email />
    }
    .into_any()
}

/// Where one is.
fn current(organizations: &[Place], project: Option<i64>) -> AnyView {
    let found = organizations.iter().find_map(|place| {
        let (_, name) = place.projects.iter().find(|(id, _)| Some(*id) == project)?;
        Some((place.name.clone(), name.clone()))
    });
    let (organization, name) =
        found.unwrap_or_else(|| ("No project".to_owned(), "Choose one".to_owned()));
    view! {
        <span class="switch-label">
            <span class="switch-organization">{organization}</span>
            <span class="switch-project">{name}</span>
        </span>
    }
    .into_any()
}

/// All projects, each a button that leads there.
#[component]
fn Switcher(organizations: Vec<Place>, project: Option<i64>) -> impl IntoView {
    let switch = ServerAction::<SwitchProject>::new();
    let groups = organizations
        .into_iter()
        .map(|place| {
            let projects = place
                .projects
                .into_iter()
                .map(|(id, name)| {
                    let here = (Some(id) == project).then_some("true");
                    view! {
                        <li>
                            <button type="submit" name="project" value=id.to_string() aria-current=here>
                                {name}
                            </button>
                        </li>
                    }
                })
                .collect_view();
            view! {
                <p class="menu-title">
                    <a href=format!("/organizations/{}", place.id)>{place.name}</a>
                </p>
                <ul>{projects}</ul>
            }
        })
        .collect_view();
    view! {
        <ActionForm action=switch>{groups}</ActionForm>
        <p class="menu-foot"><a href="/organizations/new">"New organization"</a></p>
    }
}

#[component]
fn AccountMenu(name: String, email: String) -> impl IntoView {
    let sign_out = ServerAction::<SignOut>::new();
    let label = view! {
        <Icon name="account" />
        <span class="account-name">{name}</span>
    }
    .into_any();
    view! {
        <Menu class="account" label=label>
            <p class="menu-title">{email}</p>
            <ul>
                <li><a href="/account">"Account"</a></li>
            </ul>
            <ActionForm action=sign_out>
                <button type="submit">"Sign out"</button>
            </ActionForm>
        </Menu>
    }
}

#[component]
fn NavLink(at: String, href: String, icon: &'static str, label: &'static str) -> impl IntoView {
    let below = at.strip_prefix(&href).is_some_and(|rest| rest.starts_with('/'));
    let current = if at == href { Some("page") } else { below.then_some("true") };
    view! {
        <a class="nav-link" href=href aria-current=current>
            <Icon name=icon />
            {label}
        </a>
    }
}

/// The project that an address is about.
fn project_of(path: &str) -> Option<i64> {
    path.strip_prefix("/projects/")?.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::project_of;

    #[test]
    fn projects_of_addresses() {
        assert_eq!(project_of("/projects/12/live"), Some(12));
        assert_eq!(project_of("/projects/x/live"), None);
        assert_eq!(project_of("/organizations"), None);
    }
}
