//! Forms that were not run because a sign-in is missing.
//!
//! A form that requires a recent sign-in is held in the memory of this process, including
//! secrets, until its sender has confirmed the password or a passkey. Then it runs as it was sent. A
//! form whose session has ended is not held: its page shows the entered values again
//! (`kept_input`), and the user who has signed in checks them before sending.
//!
//! What belongs here: which forms these are, and where their senders are redirected. What
//! does not: which functions require a recent sign-in (`weir-service`).

use std::time::Instant;

use axum::response::Response;
use bytes::Bytes;
use http::header;
use weir_app::form_names::KEPT;
use weir_app::local_path::encode;
use weir_model::UserId;

use super::memory::Memory;

/// The functions that confirm the identity of the user.
pub(super) const CONFIRM: [&str; 2] = ["/_fn/sign_in_again", "/_fn/sign_in_again_with_passkey"];
/// The field of its form with the name of the held form.
pub(super) const HELD: &str = "held";
/// Parameter of the sign-in page: the form was not held, because it contained a file.
pub(super) const UNSENT: &str = "unsent";
/// The message when the confirmation came too late.
pub(super) const TOO_LATE: &str = "Your password is confirmed, but nothing was changed: the form \
                                   is not kept any more. Send it again.";
/// Seconds that a form is held: as long as a sign-in waits for the second factor, and
/// some time to type.
pub(super) const SECONDS: u32 = 15 * 60;
/// Most bytes of all held forms.
const BYTES: usize = 16 << 20;

/// The sign-in that a form requires first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequiredSignIn {
    /// The session has ended.
    SignIn,
    /// The sign-in is not recent enough.
    Confirm,
}

impl RequiredSignIn {
    /// The sign-in that an answer redirects to, if any.
    pub(super) fn of(response: &Response) -> Option<Self> {
        let location = response.headers().get(header::LOCATION)?.to_str().ok()?;
        match location.split_once("?next=")?.0 {
            "/login" => Some(Self::SignIn),
            "/login/again" => Some(Self::Confirm),
            _ => None,
        }
    }
}

/// The address of the sign-in, which leads back to a page that shows the entered values.
pub(super) fn to_sign_in(back: &str) -> String {
    format!("/login?next={}", encode(&with_kept(back)))
}

/// The address of the confirmation, which runs the form held under this name.
pub(super) fn to_confirmation(back: &str, held: &str) -> String {
    format!("/login/again?next={}&{HELD}={held}", encode(back))
}

/// The address of a page that shows the entered values.
fn with_kept(back: &str) -> String {
    let sign = if back.contains('?') { '&' } else { '?' };
    format!("{back}{sign}{KEPT}=1")
}

/// A form as it was sent.
#[derive(Clone)]
pub(super) struct Sent {
    /// The path of the function.
    pub(super) path: String,
    /// The body of the form.
    pub(super) body: Bytes,
}

/// All held forms.
pub(super) struct Held(Memory<(UserId, Sent)>);

impl Default for Held {
    fn default() -> Self {
        Self(Memory::new(BYTES))
    }
}

impl Held {
    /// Holds a form of this user, and returns its name.
    pub(super) fn keep(&self, user: UserId, form: Sent) -> String {
        let size = form.path.len() + form.body.len();
        self.0.put((user, form), size, SECONDS, Instant::now())
    }

    /// Removes and returns the form of this name, if it belongs to this user.
    pub(super) fn take(&self, user: UserId, name: &str) -> Option<Sent> {
        let (owner, form) = self.0.take(name, Instant::now())?;
        (owner == user).then_some(form)
    }
}

#[cfg(test)]
mod tests {
    use axum::response::{IntoResponse, Redirect};
    use bytes::Bytes;
    use weir_model::UserId;

    use super::{Held, RequiredSignIn, Sent, to_confirmation, to_sign_in};

    #[test]
    fn doors_are_known_by_where_an_answer_leads() {
        for (location, expected) in [
            ("/login?next=/account", Some(RequiredSignIn::SignIn)),
            ("/login/again?next=/account", Some(RequiredSignIn::Confirm)),
            ("/login", None),
            ("/login?reset=done", None),
            ("/login/2fa?next=/account", None),
            ("/account?next=/login", None),
        ] {
            let response = Redirect::to(location).into_response();
            assert_eq!(RequiredSignIn::of(&response), expected, "{location}");
        }
        assert_eq!(RequiredSignIn::of(&().into_response()), None);
    }

    #[test]
    fn ways_there_lead_back() {
        assert_eq!(to_sign_in("/a"), "/login?next=/a%3F__kept%3D1");
        assert_eq!(to_sign_in("/a?b=1"), "/login?next=/a%3Fb%3D1%26__kept%3D1");
        assert_eq!(to_confirmation("/a?b=1", "x"), "/login/again?next=/a%3Fb%3D1&held=x");
    }

    #[test]
    fn a_form_is_carried_out_once_and_for_its_sender() {
        let held = Held::default();
        let user = |number| UserId(uuid::Uuid::from_u128(number));
        let form = || Sent { path: "/_fn/f".to_owned(), body: Bytes::from_static(b"a=1") };
        let name = held.keep(user(1), form());
        assert_eq!(held.take(user(1), &name).unwrap().body, "a=1");
        assert!(held.take(user(1), &name).is_none());
        let name = held.keep(user(1), form());
        assert!(held.take(user(2), &name).is_none());
        assert!(held.take(user(1), &name).is_none(), "who tries with another account ends it");
    }
}
