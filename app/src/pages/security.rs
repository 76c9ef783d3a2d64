//! Security of the user: password, second factor, sessions.

mod password;
mod sessions;
mod two_step;

use futures::future::try_join;
use leptos::prelude::*;

use super::account_nav::AccountNav;
use crate::server_fns::second_factor::{FactorView, get_second_factor};
use crate::server_fns::security::list_sessions;
use crate::ui::alert::Alert;
use crate::ui::page::{PageHead, page};

const TITLE: &str = "Security";

#[component]
pub(crate) fn Security() -> impl IntoView {
    page(
        TITLE,
        || (),
        |()| try_join(get_second_factor(), list_sessions()),
        |(), (factor, open)| {
            view! {
                <PageHead title=TITLE />
                <AccountNav />
                <Demand factor=factor.clone() />
                <two_step::TwoStepSection factor=factor />
                <password::PasswordSection />
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
