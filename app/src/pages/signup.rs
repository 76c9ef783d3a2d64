//! Accepts an invite: shows the inviting user and the organization, and creates a user or
//! uses the signed-in one. Explains what to do when the link is no longer valid.

use leptos::prelude::*;

use super::entrance::{Entrance, InsecureNote, KnownAddress};
use super::id_in_path;
use crate::local_path;
use crate::server_fns::signup::{
    Invitation, InviteContent, JoinOrganization, SignOutToJoin, SignUp, get_invitation,
};
use crate::ui::alert::Alert;
use crate::ui::field::Field;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::password::PasswordField;

/// Fields that show their own errors.
const FIELDS: &[&str] = &["first_name", "password"];

const TITLE: &str = "Join an organization";

/// The page for an invite.
#[component]
pub(crate) fn SignUpPage() -> impl IntoView {
    let content = page(TITLE, id_in_path, get_invitation, draw);
    view! { <Entrance>{content}</Entrance> }.into_any()
}

fn draw(id: String, invitation: Invitation) -> AnyView {
    let content = match invitation {
        Invitation::Open { says, email, first_name, signed_in, insecure } => {
            let organization = says.organization.clone();
            let form = match signed_in {
                true => {
                    view! { <JoinForm id=id email=email organization=organization /> }.into_any()
                }
                false => view! {
                    <NewAccountForm id=id email=email first_name=first_name insecure=insecure />
                }
                .into_any(),
            };
            view! {
                {message(says)}
                {form}
            }
            .into_any()
        }
        Invitation::SignIn(says) => view! {
            {message(says)}
            {sign_in(&id)}
        }
        .into_any(),
        Invitation::OtherAddress { invited, present } => {
            view! { <OtherAddress id=id invited=invited present=present /> }.into_any()
        }
        Invitation::AlreadyMember => {
            void("You belong to this organization already.", "There is nothing left to do.")
        }
        Invitation::Expired => void(
            "This invite has expired: its link worked for three days.",
            "Ask the person who invited you for a new one.",
        ),
        Invitation::Unknown => void(
            "This link is unknown or no longer valid. An invite ends when it is accepted, revoked, or sent again with another link.",
            "Check that you have the whole link, and the latest one. If it still fails, ask the person who invited you.",
        ),
    };
    view! {
        <PageHead title=TITLE />
        {content}
    }
    .into_any()
}

fn invited(inviter: &str) -> String {
    if inviter.is_empty() {
        "You are invited to join ".to_owned()
    } else {
        format!("{inviter} invited you to join ")
    }
}

/// The content of the invite.
fn message(says: InviteContent) -> AnyView {
    let InviteContent { inviter, organization, level, message } = says;
    let message = (!message.is_empty()).then(|| {
        view! {
            <dt>"Message"</dt>
            <dd>{lines(&message)}</dd>
        }
    });
    view! {
        <p class="lead">{invited(&inviter)} <strong>{organization}</strong> "."</p>
        <dl class="facts">
            <dt>"Your level"</dt>
            <dd>{level}</dd>
            {message}
        </dl>
    }
    .into_any()
}

/// Text of a user: without markup and links, with its line breaks.
fn lines(text: &str) -> AnyView {
    let line = |(at, line): (usize, &str)| {
        view! {
            {(at > 0).then(|| view! { <br /> })}
            {line.to_owned()}
        }
        .into_any()
    };
    text.lines().enumerate().map(line).collect_view().into_any()
}

/// The text for an invalid link: the reason, and what helps.
fn void(why: &'static str, what_helps: &'static str) -> AnyView {
    view! {
        <Alert kind="warning">
            <p>{why}</p>
            <p>{what_helps}</p>
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

/// The text for a signed-in user whose address is not the invited one.
#[component]
fn OtherAddress(id: String, invited: String, present: String) -> impl IntoView {
    let action = form_action::<SignOutToJoin>();
    let result = form_result(action);
    view! {
        <Alert kind="warning">
            <p>
                "This invite is for " <strong class="wrap">{invited}</strong> ". You are signed in as "
                <strong class="wrap">{present}</strong> "."
            </p>
            <p>
                "To accept it, sign out and continue with the address that was invited. Or ask the person who invited you to invite the address that you are signed in with."
            </p>
        </Alert>
        <ActionForm action=action>
            <FormFailure result=result />
            <input type="hidden" name="id" value=id />
            <ReturnAddress />
            <Submit result=result label="Sign out and continue" busy="Signing out..." />
        </ActionForm>
        <p><a href="/">"Stay signed in"</a></p>
    }
}

#[component]
fn JoinForm(id: String, email: String, organization: String) -> impl IntoView {
    let action = form_action::<JoinOrganization>();
    let result = form_result(action);
    view! {
        <p>"You are signed in as " <strong>{email}</strong> "."</p>
        <ActionForm action=action>
            <FormFailure result=result />
            <input type="hidden" name="id" value=id />
            <ReturnAddress />
            <Submit result=result label="Join" busy="Joining..." />
        </ActionForm>
        <p class="hint">"You will see the projects of " {organization} " next to your own."</p>
    }
}

#[component]
fn NewAccountForm(id: String, email: String, first_name: String, insecure: bool) -> impl IntoView {
    let action = form_action::<SignUp>();
    let result = form_result(action);
    view! {
        {insecure.then(|| view! { <InsecureNote /> })}
        <ActionForm action=action>
            <FormFailure result=result fields=FIELDS />
            <input type="hidden" name="id" value=id />
            <ReturnAddress />
            // The invite names the address.
            <KnownAddress email=email />
            <Field result=result name="first_name" label="First name" autocomplete="given-name" max=128
                value=first_name autofocus=true />
            <PasswordField result=result autocomplete="new-password"
                hint="At least 12 characters. A few unrelated words are easy to remember." />
            <Submit result=result label="Create account and join" busy="Creating account..." />
        </ActionForm>
    }
}
