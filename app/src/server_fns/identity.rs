//! Signing in and out.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
#[cfg(feature = "ssr")]
use weir_service::Services;
#[cfg(feature = "ssr")]
use weir_service::identity::NewSession;

#[cfg(feature = "ssr")]
use crate::context::{
    Visit, anyone, ask_second_factor, enter, forget_session, go, keep_session, keep_theme,
    refuse_without_session, ui_error,
};
use crate::error::UiError;
use crate::theme::Theme;

/// Data of the sign-in page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignInView {
    /// Whether the instance has a user.
    pub(crate) is_set_up: bool,
    /// Whether a session cannot work at this address.
    pub(crate) insecure: bool,
}

/// Returns the data of the sign-in page. A signed-in user is redirected to `next`.
#[server(prefix = "/_fn", endpoint = "get_sign_in_view")]
pub(crate) async fn get_sign_in_view(next: String) -> Result<SignInView, UiError> {
    let (services, visit) = anyone()?;
    if visit.ctx.is_some() {
        go(&next);
    }
    let is_set_up = services.identity.is_set_up().await.map_err(ui_error)?;
    Ok(SignInView { is_set_up, insecure: visit.insecure })
}

/// Signs in and redirects to `next`. Redirects to another page if the e-mail address must
/// be confirmed first, or if a second factor is required. A code in the same request
/// avoids the wait that failed attempts of others can cause.
#[server(prefix = "/_fn", endpoint = "sign_in")]
pub(crate) async fn sign_in(
    email: String,
    password: String,
    next: String,
    #[server(default)] code: String,
) -> Result<(), UiError> {
    let (services, visit) = anyone()?;
    refuse_without_session(&visit)?;
    let identity = &services.identity;
    let signed_in = match code.trim() {
        "" => identity.sign_in(&email, &password, &visit.peer).await,
        code => identity.sign_in_with_code(&email, &password, code, &visit.peer).await,
    };
    let session = match signed_in {
        Err(weir_service::Error::NotConfirmed { user }) => {
            go(&weir_model::user_links::LinkKind::Confirm.page(user));
            return Ok(());
        }
        Err(weir_service::Error::SecondFactor(pending)) => {
            ask_second_factor(&pending, &next);
            return Ok(());
        }
        other => other.map_err(ui_error)?,
    };
    come_in(&services, &session, &visit, &next).await
}

/// Sets the cookies of a new session and redirects to `next`.
#[cfg(feature = "ssr")]
pub(crate) async fn come_in(
    services: &Services,
    session: &NewSession,
    visit: &Visit,
    next: &str,
) -> Result<(), UiError> {
    keep_session(session);
    let opened = services.identity.session(&session.token, visit.request_id.clone());
    if let Some(ctx) = opened.await.map_err(ui_error)? {
        // The theme may have been chosen on another device.
        let me = services.users.me(&ctx).await.map_err(ui_error)?;
        keep_theme(Theme::from_word(me.theme_mode.as_deref().unwrap_or_default()));
    }
    go(next);
    Ok(())
}

/// Confirms the identity of the signed-in user, and redirects to `next`.
#[server(prefix = "/_fn", endpoint = "sign_in_again")]
pub(crate) async fn sign_in_again(password: String, next: String) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    let (_, visit) = anyone()?;
    refuse_without_session(&visit)?;
    let session =
        services.identity.sign_in_again(&ctx, &password, &visit.peer).await.map_err(|error| {
            match error {
                weir_service::Error::Invalid(fault) => UiError::field(
                    "password",
                    &fault.code,
                    "This is not the password of your account.",
                ),
                other => ui_error(other),
            }
        })?;
    keep_session(&session);
    go(&next);
    Ok(())
}

/// Ends the session.
#[server(prefix = "/_fn", endpoint = "sign_out")]
pub(crate) async fn sign_out() -> Result<(), UiError> {
    if let Ok((services, ctx)) = enter() {
        services.identity.sign_out(&ctx).await.map_err(ui_error)?;
    }
    forget_session();
    go("/login");
    Ok(())
}
