//! Links in mails: confirming an e-mail address and resetting a password, and requesting
//! these mails.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::context::{
    add_header, anyone, ask_second_factor, go, keep_browser, keep_session, refuse_without_session,
    ui_error,
};
use crate::error::UiError;

/// The state of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Link {
    /// The link is valid.
    Works {
        /// The address that the mail was sent to.
        email: String,
        /// Whether a session cannot work at this address.
        insecure: bool,
        /// Whether users must confirm their address before they can sign in.
        must_confirm: bool,
    },
    /// The link is invalid. The text says why.
    Void(String),
    /// The address has no token: the mail was sent.
    OnItsWay,
    /// The address has no token, and the instance sends no mail.
    NoMail,
}

/// Checks the link that confirms an address.
#[server(prefix = "/_fn", endpoint = "check_confirmation")]
pub(crate) async fn check_confirmation(id: String, token: String) -> Result<Link, UiError> {
    check(weir_model::user_links::LinkKind::Confirm, &id, &token).await
}

/// Checks the link that resets a password.
#[server(prefix = "/_fn", endpoint = "check_reset")]
pub(crate) async fn check_reset(id: String, token: String) -> Result<Link, UiError> {
    check(weir_model::user_links::LinkKind::Reset, &id, &token).await
}

#[cfg(feature = "ssr")]
async fn check(
    kind: weir_model::user_links::LinkKind,
    id: &str,
    token: &str,
) -> Result<Link, UiError> {
    let (services, visit) = anyone()?;
    // The address has the token. It must not be sent as referrer.
    add_header(http::header::REFERRER_POLICY, "no-referrer");
    if token.is_empty() {
        let sends_mail = services.identity.sends_mail();
        return Ok(if sends_mail { Link::OnItsWay } else { Link::NoMail });
    }
    match services.identity.check_link(kind, id, token, &visit.peer).await {
        Ok(link) => Ok(Link::Works {
            email: link.email,
            insecure: visit.insecure,
            must_confirm: link.must_confirm,
        }),
        Err(weir_service::Error::Invalid(fault)) => Ok(Link::Void(fault.detail)),
        Err(other) => Err(ui_error(other)),
    }
}

/// Confirms an address, and signs the user in or redirects to the second factor.
#[server(prefix = "/_fn", endpoint = "confirm_address")]
pub(crate) async fn confirm_address(id: String, token: String) -> Result<(), UiError> {
    let (services, visit) = anyone()?;
    refuse_without_session(&visit)?;
    let confirmed = services.identity.confirm(&id, &token, &visit.peer, &visit.request_id).await;
    match confirmed {
        Err(weir_service::Error::SecondFactor(pending)) => ask_second_factor(&pending, "/"),
        other => {
            keep_session(&other.map_err(ui_error)?);
            go("/");
        }
    }
    Ok(())
}

/// Sends the mail that confirms an address again.
#[server(prefix = "/_fn", endpoint = "ask_confirmation")]
pub(crate) async fn ask_confirmation(id: String) -> Result<(), UiError> {
    let (services, visit) = anyone()?;
    services.identity.ask_confirmation(&id, &visit.peer).await.map_err(ui_error)
}

/// Whether the instance can send mails that reset a password.
#[server(prefix = "/_fn", endpoint = "can_reset")]
pub(crate) async fn can_reset() -> Result<bool, UiError> {
    let (services, _) = anyone()?;
    Ok(services.identity.sends_mail())
}

/// Sends the mail that resets a password.
#[server(prefix = "/_fn", endpoint = "ask_reset")]
pub(crate) async fn ask_reset(email: String) -> Result<(), UiError> {
    let (services, visit) = anyone()?;
    let fault = |fault| ui_error(weir_service::Error::Invalid(fault));
    let email = weir_model::validate::email("email", &email).map_err(fault)?;
    services.identity.ask_reset(&email, &visit.peer).await.map_err(ui_error)?;
    go("/reset?sent=yes");
    Ok(())
}

/// Sets a new password and redirects to the sign-in.
#[server(prefix = "/_fn", endpoint = "reset_password")]
pub(crate) async fn reset_password(
    id: String,
    token: String,
    password: String,
) -> Result<(), UiError> {
    let (services, visit) = anyone()?;
    let identity = &services.identity;
    let set = identity.reset_password(&id, &token, &password, &visit.peer, &visit.request_id);
    keep_browser(&set.await.map_err(ui_error)?.browser);
    go("/login?reset=done");
    Ok(())
}
