//! Shows new recovery codes exactly once.

use leptos::prelude::*;

use crate::server_fns::second_factor::reveal_recovery_codes;
use crate::ui::alert::Alert;
use crate::ui::code_figure::CodeFigure;
use crate::ui::page::{PageHead, page_of_secrets};

const TITLE: &str = "Your recovery codes";

/// The codes, or a text that they were already shown.
#[component]
pub(crate) fn RecoveryCodes() -> impl IntoView {
    page_of_secrets(
        TITLE,
        || (),
        |()| reveal_recovery_codes(),
        |(), codes| {
            let content = match codes {
                Some(codes) => shown(codes),
                None => gone(),
            };
            view! {
                <PageHead title=TITLE />
                {content}
            }
            .into_any()
        },
    )
}

fn shown(codes: String) -> AnyView {
    view! {
        <section class="card section reveal">
            <Alert kind="warning">
                <p>
                    "Store them now, but not on the phone with your authenticator app. They are shown only once. If you lose the phone, each code signs you in one time."
                </p>
            </Alert>
            <div class="recovery-codes">
                <CodeFigure caption="Recovery codes" what="recovery codes" text=codes />
            </div>
            <p><a class="button button-primary" href="/account/security">"I have stored them"</a></p>
        </section>
    }
    .into_any()
}

fn gone() -> AnyView {
    view! {
        <div class="empty">
            <p>"There are no codes to show: they were shown before, or none were created."</p>
            <p>"If you did not store them, create new codes. The old codes stop working then."</p>
            <p><a class="button button-primary" href="/account/security">"Go to security"</a></p>
        </div>
    }
    .into_any()
}
