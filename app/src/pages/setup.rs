//! Set-up of an empty instance: the first user, organization and project in one form. The
//! server prints the link to this page.

use leptos::prelude::*;

use super::entrance::{Entrance, InsecureNote};
use super::in_query;
use crate::server_fns::setup::{SetUp, SetupLink, check_setup_link};
use crate::ui::alert::Alert;
use crate::ui::field::Field;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::password::PasswordField;

/// Fields that show their own errors.
const FIELDS: &[&str] = &["first_name", "email", "password", "organization", "project"];

const TITLE: &str = "Set up Weir";

/// The set-up form.
#[component]
pub(crate) fn Setup() -> impl IntoView {
    let content = page(
        TITLE,
        || in_query("token"),
        check_setup_link,
        |token, link| {
            let content = match link {
                SetupLink::Valid { insecure } => {
                    view! { <SetupForm token=token insecure=insecure /> }.into_any()
                }
                SetupLink::Expired => void("This link has expired.").into_any(),
                SetupLink::Unknown => {
                    void("This link does not work. Only the link that was printed last works.")
                        .into_any()
                }
            };
            view! {
                <PageHead title=TITLE />
                {content}
            }
            .into_any()
        },
    );
    view! { <Entrance>{content}</Entrance> }.into_any()
}

fn void(why: &'static str) -> impl IntoView {
    view! {
        <Alert kind="warning">
            <p>{why}</p>
        </Alert>
        <p>"Print a new one on the machine that Weir runs on:"</p>
        <pre class="block"><code>"weir setup-link"</code></pre>
    }
}

#[component]
fn SetupForm(token: String, insecure: bool) -> impl IntoView {
    let action = form_action::<SetUp>();
    let result = form_result(action);
    view! {
        <p class="lead">
            "This makes you the owner of this instance. It stays on your machine; nothing is sent anywhere."
        </p>
        {insecure.then(|| view! { <InsecureNote /> })}
        <ActionForm action=action>
            <FormFailure result=result fields=FIELDS />
            <input type="hidden" name="token" value=token />
            <ReturnAddress />
            <Field result=result name="first_name" label="First name" autocomplete="given-name" max=150 autofocus=true />
            <Field result=result name="email" label="E-mail address" kind="email" autocomplete="username" max=254
                hint="You sign in with it. No mail is sent." />
            <PasswordField result=result autocomplete="new-password"
                hint="At least 12 characters. A few unrelated words are easy to remember." />
            <div class="pair">
                <Field result=result name="organization" label="Organization" autocomplete="organization" max=64
                    value="My organization".to_owned() />
                <Field result=result name="project" label="First project" max=200
                    value="My project".to_owned() />
            </div>
            <p class="hint">"Both names can be changed later."</p>
            <Submit result=result label="Set up Weir" busy="Setting up Weir..." />
        </ActionForm>
    }
}
