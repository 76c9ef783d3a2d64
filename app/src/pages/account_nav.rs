//! Links between the pages of the user's own account.

use leptos::prelude::*;

use crate::ui::sections::{SubNav, Tab};

/// The pages of the account: address and label.
const PAGES: [(&str, &str); 5] = [
    ("/account", "Profile"),
    ("/account/security", "Security"),
    ("/account/preferences", "Preferences"),
    ("/account/keys", "API keys"),
    ("/account/messages", "Messages"),
];

/// Links to the pages of the account.
#[component]
pub(crate) fn AccountNav() -> impl IntoView {
    let tabs = PAGES.into_iter().map(|(href, label)| Tab::new(href, label)).collect::<Vec<_>>();
    view! { <SubNav label="Account" tabs=tabs /> }
}
