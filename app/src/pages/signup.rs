//! Taking up an invite: who invites to what, and either a new account or the
//! one that is signed in.

use leptos::prelude::*;

use super::entrance::{Entrance, InsecureNote, KnownAddress};
use super::id_in_path;
use crate::local_path;
use crate::server_fns::signup::{Invitation, JoinOrganization, SignUp, get_invitation};
use crate::ui::alert::Alert;
use crate::ui::field::Field;
use crate::ui::form::{Back, FormFailure, Submit, sent};
use crate::ui::page::{PageHead, page};
use crate::ui::password::PasswordField;

/// Fields that show their own faults.
const FIELDS: &[&str] = &["first_name", "password"];

const TITLE: &str = "Join an organization";

/// Taking up an invite.
#[component]
pub(crate) fn SignUpPage() -> impl IntoView {
    let id = id_in_path();
    let content = page(TITLE, async move {
        let content = match get_invitation(id.clone()).await? {
            Invitation::Open { email, first_name, organization, inviter, signed_in, insecure } => {
                let form = match signed_in {
                    true => {
                        view! { <JoinForm id=id email=email organization=organization.clone() /> }
                            .into_any()
                    }
                    false => view! {
                        <NewAccountForm id=id email=email first_name=first_name insecure=insecure />
                    }
                    .into_any(),
                };
                view! {
                    <p class="lead">{invited(&inviter)} <strong>{organization}</strong> "."</p>
                    {form}
                }
                .into_any()
            }
            Invitation::SignIn => sign_in(&id),
            Invitation::Void(why) => void(why),
        };
        Ok(view! {
            <PageHead title=TITLE />
            {content}
        }
        .into_any())
    });
    view! { <Entrance>{content}</Entrance> }.into_any()
}

fn invited(inviter: &str) -> String {
    if inviter.is_empty() {
        "You are invited to join ".to_owned()
    } else {
        format!("{inviter} invited you to join ")
    }
}

fn void(why: String) -> AnyView {
    view! {
        <Alert kind="warning">
            <p>{why}</p>
        </Alert>
        <p><a href="/">"Go to Weir"</a></p>
    }
    .into_any()
}

fn sign_in(id: &str) -> AnyView {
    let next = local_path::encode(&format!("/signup/{id}"));
    view! {
        <Alert kind="note">
            <p>"You have an account already. Sign in with it to join."</p>
        </Alert>
        <p><a class="button button-primary" href=format!("/login?next={next}")>"Sign in"</a></p>
    }
    .into_any()
}

#[component]
fn JoinForm(id: String, email: String, organization: String) -> impl IntoView {
    let action = ServerAction::<JoinOrganization>::new();
    let sent = sent(action);
    view! {
        <p>"You are signed in as " <strong>{email}</strong> "."</p>
        <ActionForm action=action>
            <FormFailure sent=sent />
            <input type="hidden" name="id" value=id />
            <Back />
            <Submit sent=sent label="Join" busy="Joining..." />
        </ActionForm>
        <p class="hint">"You will see the projects of " {organization} " next to your own."</p>
    }
}

#[component]
fn NewAccountForm(id: String, email: String, first_name: String, insecure: bool) -> impl IntoView {
    let action = ServerAction::<SignUp>::new();
    let sent = sent(action);
    view! {
        {insecure.then(|| view! { <InsecureNote /> })}
        <ActionForm action=action>
            <FormFailure sent=sent fields=FIELDS />
            <input type="hidden" name="id" value=id />
            <Back />
            // The invite says which address it is for.
            <KnownAddress email=email />
            <Field sent=sent name="first_name" label="First name" autocomplete="given-name" max=128
                value=first_name autofocus=true />
            <PasswordField sent=sent autocomplete="new-password"
                hint="At least 12 characters. A few unrelated words are easy to keep." />
            <Submit sent=sent label="Create account and join" busy="Creating account..." />
        </ActionForm>
    }
}
