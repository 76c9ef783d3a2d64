//! The menu of the signed-in user.

use leptos::prelude::*;

use super::links::ACCOUNT;
use crate::server_fns::identity::SignOut;
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::icon::Icon;
use crate::ui::menu::Menu;

/// Links to the user's own pages, and the sign-out.
#[component]
pub(super) fn AccountMenu(
    name: String,
    email: String,
    /// Whether the user may see the instance page.
    staff: bool,
    /// The address of the current page.
    at: String,
) -> impl IntoView {
    let sign_out = form_action::<SignOut>();
    let label = view! {
        <Icon name="account" />
        <span class="account-name">{name}</span>
    }
    .into_any();
    let links = ACCOUNT
        .into_iter()
        .filter_map(|entry| Some((entry.at(None, None)?, entry)))
        .map(|(href, entry)| {
            let is_current = current(&at, &href);
            view! {
                <li><a href=href aria-current=is_current data-go=entry.letter>{entry.label}</a></li>
            }
        })
        .collect_view();
    let instance = staff.then(|| {
        let is_current = current(&at, "/instance");
        view! { <li><a href="/instance" aria-current=is_current>"Instance"</a></li> }
    });
    view! {
        <Menu class="account" label=label>
            <p class="menu-title">{email}</p>
            <ul>
                {links}
                {instance}
            </ul>
            <div class="menu-foot">
                <ActionForm action=sign_out>
                    <button type="submit" data-busy="Signing out...">"Sign out"</button>
                </ActionForm>
            </div>
        </Menu>
    }
    .into_any()
}

/// The value of `aria-current`: `page` for the page itself, `true` for a page below it. By
/// its address, `/account` is a parent of the other pages, but it does not contain them.
fn current(at: &str, href: &str) -> Option<&'static str> {
    let below = at.strip_prefix(href).is_some_and(|rest| rest.starts_with('/'));
    if at == href { Some("page") } else { (below && href != "/account").then_some("true") }
}

#[cfg(test)]
mod tests {
    use super::current;

    #[test]
    fn pages_below_count() {
        assert_eq!(current("/account", "/account"), Some("page"));
        assert_eq!(current("/account/keys/new", "/account/keys"), Some("true"));
        assert_eq!(current("/account/keys", "/account"), None);
        assert_eq!(current("/helpful", "/help"), None);
    }
}
