//! The frame around every page of whoever is signed in: navigation at the side,
//! at the top on small screens.

use leptos::prelude::*;
use leptos_router::components::Outlet;
use leptos_router::hooks::use_location;

use crate::error::UiError;
use crate::server_fns::account::{Place, SwitchProject, Viewer, get_viewer};
use crate::server_fns::identity::SignOut;
use crate::ui::icon::Icon;
use crate::ui::menu::Menu;

/// Whoever is signed in, for pages within the frame.
#[derive(Clone, Copy)]
pub(crate) struct ViewerData(pub(crate) Resource<Result<Viewer, UiError>>);

/// Navigation and the page.
#[component]
pub(crate) fn Frame() -> impl IntoView {
    let data = Resource::new(|| (), |()| get_viewer());
    provide_context(ViewerData(data));
    let rail = move || {
        Suspend::new(async move { data.await.ok().map(|viewer| view! { <Rail viewer=viewer /> }) })
    };
    view! {
        <div class="frame">
            <header class="rail">
                <a class="brand" href="/">
                    <svg class="mark" aria-hidden="true" focusable="false">
                        <use_ href="/icons.svg#mark"></use_>
                    </svg>
                    "Weir"
                </a>
                <Transition>{rail}</Transition>
            </header>
            <main id="main" tabindex="-1">
                <Outlet />
            </main>
        </div>
    }
    .into_any()
}

#[component]
fn Rail(viewer: Viewer) -> impl IntoView {
    let location = use_location();
    let known = viewer.project;
    let project = Memo::new(move |_| project_of(&location.pathname.get()).or(known));
    let places = StoredValue::new(viewer.organizations.clone());
    let current = move || {
        let (organization, name) = places.with_value(|places| {
            let found = places.iter().find_map(|place| {
                let wanted = project.get();
                let of_place = place.projects.iter().find(|(id, _)| Some(*id) == wanted);
                of_place.map(|(_, name)| (place.name.clone(), name.clone()))
            });
            found.unwrap_or_else(|| ("No project".to_owned(), "Choose one".to_owned()))
        });
        view! {
            <span class="switch-label">
                <span class="switch-organization">{organization}</span>
                <span class="switch-project">{name}</span>
            </span>
        }
    };
    let of_project = move || {
        project.get().map(|id| {
            view! {
                <NavLink href=format!("/projects/{id}/start") icon="start" label="Start" />
                <NavLink href=format!("/projects/{id}/live") icon="live" label="Live" />
                <NavLink href=format!("/projects/{id}/settings") icon="settings" label="Settings" />
            }
        })
    };
    let Viewer { name, email, organizations, .. } = viewer;
    view! {
        <Menu class="switch" label=current>
            <Switcher organizations=organizations />
        </Menu>
        <nav class="nav" aria-label="Main">
            <div class="nav-group">{of_project}</div>
            <div class="nav-group">
                <NavLink href="/organizations".to_owned() icon="organization" label="Organizations" />
                <NavLink href="/account/keys".to_owned() icon="key" label="API keys" />
            </div>
        </nav>
        <AccountMenu name=name email=email />
    }
    .into_any()
}

/// All projects, each a button that leads there.
#[component]
fn Switcher(organizations: Vec<Place>) -> impl IntoView {
    let switch = ServerAction::<SwitchProject>::new();
    let groups = organizations
        .into_iter()
        .map(|place| {
            let projects = place
                .projects
                .into_iter()
                .map(|(id, name)| {
                    view! {
                        <li>
                            <button type="submit" name="project" value=id.to_string()>{name}</button>
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
    let label = move || {
        let name = name.clone();
        view! {
            <Icon name="account" />
            <span class="account-name">{name}</span>
        }
    };
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
fn NavLink(href: String, icon: &'static str, label: &'static str) -> impl IntoView {
    let location = use_location();
    let target = href.clone();
    let current = move || {
        let path = location.pathname.get();
        let below = path.strip_prefix(&target).is_some_and(|rest| rest.starts_with('/'));
        if path == target { Some("page") } else { below.then_some("true") }
    };
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
