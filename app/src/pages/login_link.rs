//! The page of a link that the operator made on the host: it signs a user in.

use leptos::prelude::*;

use super::entrance::Entrance;
use super::{id_in_path, in_query};
use crate::server_fns::identity::SignInByLink;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};

const TITLE: &str = "Sign in with a link";

/// A button: opening the link alone must not use it up.
#[component]
pub(crate) fn LoginLink() -> impl IntoView {
    let content = page(
        TITLE,
        || (id_in_path(), in_query("token")),
        |_| async { Ok(()) },
        |(id, token), ()| {
            let action = form_action::<SignInByLink>();
            let result = form_result(action);
            view! {
                <PageHead title=TITLE />
                <p class="lead">"The operator of this instance made this link for you. It works once."</p>
                <ActionForm action=action>
                    <FormFailure result=result />
                    <input type="hidden" name="id" value=id />
                    <input type="hidden" name="token" value=token />
                    <ReturnAddress />
                    <Submit result=result label="Sign in" busy="Signing in..." />
                </ActionForm>
            }
            .into_any()
        },
    );
    view! { <Entrance>{content}</Entrance> }.into_any()
}
