//! The second factor: the second step of the sign-in, set-up, recovery codes, turning it
//! off.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
#[cfg(feature = "ssr")]
use weir_model::errors::FieldError;
#[cfg(feature = "ssr")]
use weir_service::identity::{NewSession, takes_passkeys};
#[cfg(feature = "ssr")]
use weir_service::{Ctx, Services};

#[cfg(feature = "ssr")]
use super::identity::set_session_cookies;
#[cfg(feature = "ssr")]
use crate::context::{
    Visit, anyone, enter, enter_with_token, forget_pending, go, keep_session, redirect_with_notice,
    refuse_without_session, ui_error,
};
use crate::error::UiError;
use crate::local_path;

/// The key under which recovery codes are kept for the page that shows them.
const FLASH: &str = "recovery codes";
/// The page where the second factor is turned on and off.
const SECURITY: &str = "/account/security";
/// The page that shows recovery codes.
const CODES: &str = "/account/security/codes";

/// A sign-in that waits for the second factor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SecondStep {
    /// Number of wrong codes.
    pub(crate) failures: u64,
    /// Whether the user has an authenticator app.
    pub(crate) has_app: bool,
    /// Whether the user has a passkey, and browsers use passkeys at this address.
    pub(crate) has_passkey: bool,
}

/// Returns the sign-in that waits for a code. Without one, redirects to the sign-in page,
/// or to `next` if the user is signed in.
#[server(prefix = "/_fn", endpoint = "get_second_step")]
pub(crate) async fn get_second_step(next: String) -> Result<SecondStep, UiError> {
    let (services, visit) = anyone()?;
    let token = visit.pending.as_deref().unwrap_or_default();
    if let Some(waiting) = services.identity.waiting(token).await.map_err(ui_error)? {
        return Ok(SecondStep {
            failures: waiting.failures,
            has_app: waiting.has_app,
            has_passkey: waiting.has_passkey && takes_passkeys(&visit.origin),
        });
    }
    match (visit.ctx.is_some(), token.is_empty()) {
        (true, _) => go(&next),
        (false, true) => go(&format!("/login?next={}", local_path::encode(&next))),
        (false, false) => go(&too_late(&next)),
    }
    Err(UiError::SignIn)
}

/// Completes a sign-in with a code, and redirects to `next`.
#[server(prefix = "/_fn", endpoint = "end_sign_in")]
pub(crate) async fn end_sign_in(code: String, next: String) -> Result<(), UiError> {
    end_with(&code, "code", &next).await
}

/// Completes a sign-in with a recovery code, and redirects to `next`.
#[server(prefix = "/_fn", endpoint = "end_sign_in_recovering")]
pub(crate) async fn end_sign_in_recovering(
    recovery_code: String,
    next: String,
) -> Result<(), UiError> {
    end_with(&recovery_code, "recovery_code", &next).await
}

#[cfg(feature = "ssr")]
async fn end_with(code: &str, field: &str, next: &str) -> Result<(), UiError> {
    let (services, visit) = anyone()?;
    refuse_without_session(&visit)?;
    let token = visit.pending.as_deref().unwrap_or_default();
    let session = match services.identity.end_sign_in(token, code, &visit.peer).await {
        Ok(session) => session,
        Err(error) => return end_failed(error, next, |error| at_code(error, field)),
    };
    set_session_cookies(&services, &session, &visit, next).await?;
    forget_pending();
    Ok(())
}

/// Handles the error of a second step. If the sign-in does not wait any more, redirects to
/// the sign-in page.
#[cfg(feature = "ssr")]
pub(crate) fn end_failed(
    error: weir_service::Error,
    next: &str,
    shown: impl FnOnce(weir_service::Error) -> UiError,
) -> Result<(), UiError> {
    match error {
        weir_service::Error::Invalid(fault) if fault.code == "2fa_expired" => {
            forget_pending();
            go(&too_late(next));
            Ok(())
        }
        other => Err(shown(other)),
    }
}

/// The sign-in page with the message that the previous sign-in timed out.
fn too_late(next: &str) -> String {
    format!("/login?late=yes&next={}", local_path::encode(next))
}

/// Converts an error. An error about the code is moved to its field.
#[cfg(feature = "ssr")]
fn at_code(error: weir_service::Error, field: &str) -> UiError {
    match error {
        weir_service::Error::Invalid(fault) if fault.code == "2fa_invalid" => {
            let fault = FieldError::new(field, &fault.code, fault.detail);
            ui_error(weir_service::Error::Invalid(fault))
        }
        other => ui_error(other),
    }
}

/// The state of a user's second factor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FactorView {
    /// Time since when it is on. `None`: it is off.
    pub(crate) since: Option<String>,
    /// Whether there is an authenticator app.
    pub(crate) has_app: bool,
    /// Number of remaining recovery codes.
    pub(crate) codes_left: usize,
    /// Names of the organizations that require it.
    pub(crate) demanded_by: Vec<String>,
}

/// Returns the state of the user's second factor.
#[server(prefix = "/_fn", endpoint = "get_second_factor")]
pub(crate) async fn get_second_factor() -> Result<FactorView, UiError> {
    let (services, ctx) = enter()?;
    let found = services.identity.second_factor(&ctx).await.map_err(ui_error)?;
    Ok(FactorView {
        since: found.since.map(|since| since.to_string()),
        has_app: found.has_app,
        codes_left: found.codes_left,
        demanded_by: found.demanded_by,
    })
}

/// Starts the set-up of a second factor and redirects to its page.
#[server(prefix = "/_fn", endpoint = "begin_second_factor")]
pub(crate) async fn begin_second_factor() -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    services.identity.begin_second_factor(&ctx).await.map_err(ui_error)?;
    go("/account/security/two-step");
    Ok(())
}

/// Cancels the set-up of a second factor.
#[server(prefix = "/_fn", endpoint = "cancel_second_factor")]
pub(crate) async fn cancel_second_factor() -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    services.identity.cancel_second_factor(&ctx).await.map_err(ui_error)?;
    go(SECURITY);
    Ok(())
}

/// A second factor that is not confirmed yet. It has no `Debug`, because it contains a
/// secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EnrolmentView {
    /// The secret for codes, in base32.
    pub(crate) secret: String,
    /// The QR code for an authenticator app. `None` if its content is too long.
    pub(crate) qr: Option<QrView>,
    /// Time at which the set-up expires.
    pub(crate) expires_at: String,
}

/// A QR code. It has no `Debug`, because it contains a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QrView {
    /// Width and height in modules, with the margin.
    pub(crate) side: i32,
    /// SVG path of the dark modules.
    pub(crate) modules: String,
}

/// Returns the second factor that is not confirmed yet, if there is one.
#[server(prefix = "/_fn", endpoint = "get_enrolment")]
pub(crate) async fn get_enrolment() -> Result<Option<EnrolmentView>, UiError> {
    use crate::qr::{otpauth, qr_code};

    let (services, ctx) = enter()?;
    let found = services.identity.enrolment(&ctx).await.map_err(ui_error)?;
    Ok(found.map(|enrolment| EnrolmentView {
        qr: qr_code(&otpauth(&enrolment.secret, &enrolment.email))
            .map(|(side, modules)| QrView { side, modules }),
        secret: enrolment.secret,
        expires_at: enrolment.expires_at.to_string(),
    }))
}

/// Confirms a second factor with a code and redirects to the page with recovery codes.
#[server(prefix = "/_fn", endpoint = "confirm_second_factor")]
pub(crate) async fn confirm_second_factor(code: String) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    let (_, visit) = anyone()?;
    let identity = &services.identity;
    let confirmed = identity.confirm_second_factor(&ctx, &code, &visit.peer).await;
    let confirmed = confirmed.map_err(|error| at_code(error, "code"))?;
    keep_session(&confirmed.session);
    show_codes(&services, &confirmed.session, &visit, &confirmed.codes).await
}

/// Redirects to the page that shows new recovery codes, in a session that was just opened.
#[cfg(feature = "ssr")]
pub(crate) async fn show_codes(
    services: &Services,
    session: &NewSession,
    visit: &Visit,
    codes: &[String],
) -> Result<(), UiError> {
    let opened = services.identity.session(&session.token, visit.request_id.clone());
    match opened.await.map_err(ui_error)? {
        Some(ctx) => keep_codes(services, &ctx, &session.token, codes).await,
        // Another change has ended the session.
        None => {
            go(CODES);
            Ok(())
        }
    }
}

/// Keeps new recovery codes for the page that shows them, and redirects there.
#[cfg(feature = "ssr")]
pub(crate) async fn keep_codes(
    services: &Services,
    ctx: &Ctx,
    token: &str,
    codes: &[String],
) -> Result<(), UiError> {
    let text = codes.join("\n");
    services.identity.put_flash(ctx, token, FLASH, &text).await.map_err(ui_error)?;
    go(CODES);
    Ok(())
}

/// Replaces all recovery codes and redirects to the page that shows the new ones.
#[server(prefix = "/_fn", endpoint = "renew_recovery_codes")]
pub(crate) async fn renew_recovery_codes(code: String) -> Result<(), UiError> {
    let (services, ctx, token) = enter_with_token()?;
    let (_, visit) = anyone()?;
    let renewed = services.identity.renew_recovery_codes(&ctx, &code, &visit.peer).await;
    let codes = renewed.map_err(|error| at_code(error, "code"))?;
    keep_codes(&services, &ctx, &token, &codes).await
}

/// Returns the new recovery codes on the first call only.
#[server(prefix = "/_fn", endpoint = "reveal_recovery_codes")]
pub(crate) async fn reveal_recovery_codes() -> Result<Option<String>, UiError> {
    let (services, ctx, token) = enter_with_token()?;
    services.identity.take_flash(&ctx, &token, FLASH).await.map_err(ui_error)
}

/// Removes the authenticator app, which turns the second factor off unless there are
/// passkeys.
#[server(prefix = "/_fn", endpoint = "disable_second_factor")]
pub(crate) async fn disable_second_factor(last_code: String) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    let (_, visit) = anyone()?;
    let identity = &services.identity;
    let ended = identity.disable_second_factor(&ctx, &last_code, &visit.peer).await;
    keep_session(&ended.map_err(|error| at_code(error, "last_code"))?);
    let is_on = !identity.own_passkeys(&ctx).await.map_err(ui_error)?.is_empty();
    redirect_with_notice(
        SECURITY,
        match is_on {
            true => "The authenticator app is removed. All other sessions have ended.",
            false => "Two-step sign-in is off. All other sessions have ended.",
        },
    );
    Ok(())
}
