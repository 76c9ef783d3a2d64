//! The layout of pages before the sign-in: one form next to a picture of the product.

use leptos::prelude::*;

use crate::frame::Logo;
use crate::ui::alert::Alert;

/// A page with one form.
#[component]
pub(crate) fn Entrance(children: Children) -> impl IntoView {
    view! {
        <div class="entrance">
            <main id="main" class="entrance-form" tabindex="-1">
                <p class="brand"><Logo /> "Weir"</p>
                {children()}
            </main>
            <div class="entrance-picture" aria-hidden="true">
                <svg class="flow" viewBox="0 0 640 800" preserveAspectRatio="xMidYMid slice">
                    <use href="/flow.svg#flow"></use>
                </svg>
            </div>
        </div>
    }
}

/// The known address of a user, for password managers.
#[component]
pub(crate) fn KnownAddress(email: String) -> impl IntoView {
    view! {
        <div class="field">
            <label for="email">"E-mail address"</label>
            <input id="email" type="email" value=email readonly autocomplete="username" />
        </div>
    }
}

/// Explains why signing in does not work at this address.
#[component]
pub(crate) fn InsecureNote() -> impl IntoView {
    view! {
        <Alert kind="warning">
            <p>
                "Browsers keep a session only over https or on this machine. Open Weir at "
                <code>"http://127.0.0.1"</code>
                ", or put it behind https and set "
                <code>"public_url"</code>
                "."
            </p>
        </Alert>
    }
}
