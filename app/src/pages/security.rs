//! Security of the user: password, second factor, passkeys, sessions.

mod linked;
mod passkeys;
mod password;
mod sessions;
mod two_step;

use futures::future::try_join4;
use leptos::prelude::*;

use super::account_nav::AccountNav;
use super::in_query;
use crate::server_fns::passkeys::list_passkeys;
use crate::server_fns::second_factor::{FactorView, get_second_factor};
use crate::server_fns::security::{list_linked_accounts, list_sessions};
use crate::ui::alert::Alert;
use crate::ui::page::{PageHead, page};

const TITLE: &str = "Security";

#[component]
pub(crate) fn Security() -> impl IntoView {
    page(
        TITLE,
        || in_query("error_code"),
        |_| {
            let (factor, passkeys) = (get_second_factor(), list_passkeys());
            try_join4(factor, passkeys, list_sessions(), list_linked_accounts())
        },
        |error_code, (factor, passkeys, open, linked)| {
            let has_passkeys = !passkeys.passkeys.is_empty();
            view! {
                <PageHead title=TITLE />
                <AccountNav />
                <Demand factor=factor.clone() />
                <two_step::TwoStepSection factor=factor has_passkeys=has_passkeys />
                <passkeys::PasskeysSection view=passkeys />
                <password::PasswordSection />
                <linked::LinkedSection linked=linked error_code=error_code />
                <sessions::SessionsSection sessions=open />
            }
            .into_any()
        },
    )
}

/// Names the organizations that require a second factor, while it is off.
#[component]
fn Demand(factor: FactorView) -> impl IntoView {
    let demanded = factor.since.is_none() && !factor.demanded_by.is_empty();
    demanded.then(|| {
        view! {
            <Alert kind="warning">
                <p>
                    "Two-step sign-in is required by " <strong>{factor.demanded_by.join(", ")}</strong>
                    ". Turn it on, or add a passkey, to open the pages there. API keys continue to work."
                </p>
            </Alert>
        }
    })
}
