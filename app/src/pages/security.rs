//! Security of the user: password, second factor, sessions.

mod linked;
mod password;
mod sessions;
mod two_step;

use futures::future::try_join3;
use leptos::prelude::*;

use super::account_nav::AccountNav;
use super::in_query;
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
        |_| try_join3(get_second_factor(), list_sessions(), list_linked_accounts()),
        |error_code, (factor, open, linked)| {
            view! {
                <PageHead title=TITLE />
                <AccountNav />
                <Demand factor=factor.clone() />
                <two_step::TwoStepSection factor=factor />
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
                    ". Turn it on to open the pages there. API keys continue to work."
                </p>
            </Alert>
        }
    })
}
