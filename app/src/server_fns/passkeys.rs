//! Passkeys: listing, adding, renaming and removing them, and signing in with one.
//!
//! A function `begin_...` returns a challenge for the script `public/passkeys.js`. The script
//! sends the answer of the authenticator with the form (`ui::passkey`).

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
#[cfg(feature = "ssr")]
use weir_service::identity::{PasskeyChallenge, takes_passkeys};

#[cfg(feature = "ssr")]
use super::identity::set_session_cookies;
#[cfg(feature = "ssr")]
use super::second_factor::{end_failed, show_codes};
#[cfg(feature = "ssr")]
use crate::context::{
    anyone, enter, enter_with_token, forget_pending, go, keep_passkey, keep_session,
    redirect_with_notice, refuse_without_session, ui_error,
};
use crate::error::UiError;

/// The page that lists passkeys.
const SECURITY: &str = "/account/security";

/// A passkey as its user sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PasskeyView {
    pub(crate) id: String,
    /// The name that the user gave it.
    pub(crate) name: String,
    /// When it was added.
    pub(crate) added_at: String,
    /// When it was last used.
    pub(crate) used_at: Option<String>,
    /// When it was refused because there may be a copy.
    pub(crate) refused_at: Option<String>,
}

/// The passkeys of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PasskeysView {
    pub(crate) passkeys: Vec<PasskeyView>,
    /// Whether browsers use passkeys at this address.
    pub(crate) work_here: bool,
}

/// Lists the passkeys of the user.
#[server(prefix = "/_fn", endpoint = "list_passkeys")]
pub(crate) async fn list_passkeys() -> Result<PasskeysView, UiError> {
    let (services, ctx) = enter()?;
    let (_, visit) = anyone()?;
    let found = services.identity.own_passkeys(&ctx).await.map_err(ui_error)?;
    let shown = |passkey: weir_service::identity::OwnPasskey| PasskeyView {
        id: passkey.id,
        name: passkey.name,
        added_at: passkey.added_at.to_string(),
        used_at: passkey.used_at.map(|at| at.to_string()),
        refused_at: passkey.refused_at.map(|at| at.to_string()),
    };
    Ok(PasskeysView {
        passkeys: found.into_iter().map(shown).collect(),
        work_here: takes_passkeys(&visit.origin),
    })
}

/// Keeps the browser of a challenge, and returns the options for the script.
#[cfg(feature = "ssr")]
fn keep_challenge(challenge: PasskeyChallenge) -> String {
    keep_passkey(&challenge.browser);
    challenge.options
}

/// The error of a form without an answer: the browser runs no script, or a challenge could
/// not be made and can now.
#[cfg(feature = "ssr")]
fn unanswered() -> UiError {
    let detail = "No passkey was used yet. Press the button again. Passkeys need scripts.";
    ui_error(weir_model::errors::FieldError::body("passkey_missing", detail).into())
}

#[server(prefix = "/_fn", endpoint = "begin_adding_passkey")]
pub(crate) async fn begin_adding_passkey() -> Result<String, UiError> {
    let (services, ctx) = enter()?;
    let (_, visit) = anyone()?;
    let begun = services.identity.begin_adding_passkey(&ctx, visit.passkey_origin()).await;
    begun.map(keep_challenge).map_err(ui_error)
}

/// Adds a passkey. The first one leads to the page with recovery codes.
#[server(prefix = "/_fn", endpoint = "add_passkey")]
pub(crate) async fn add_passkey(
    name: String,
    #[server(default)] answer: String,
) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    let (_, visit) = anyone()?;
    let identity = &services.identity;
    let from = visit.passkey_origin();
    if answer.is_empty() {
        identity.begin_adding_passkey(&ctx, from).await.map_err(ui_error)?;
        return Err(unanswered());
    }
    let added = identity.add_passkey(&ctx, &name, &answer, from).await.map_err(ui_error)?;
    keep_session(&added.session);
    if added.codes.is_empty() {
        redirect_with_notice(SECURITY, "The passkey is added.");
        return Ok(());
    }
    show_codes(&services, &added.session, &visit, &added.codes).await
}

/// Gives a passkey another name.
#[server(prefix = "/_fn", endpoint = "rename_passkey")]
pub(crate) async fn rename_passkey(id: String, new_name: String) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    let renamed = services.identity.rename_passkey(&ctx, &id, &new_name).await;
    renamed.map_err(|error| match error {
        weir_service::Error::Invalid(fault) => {
            UiError::field("new_name", &fault.code, &fault.detail)
        }
        other => ui_error(other),
    })?;
    redirect_with_notice(SECURITY, "The passkey is renamed.");
    Ok(())
}

/// Removes a passkey. All other sessions end.
#[server(prefix = "/_fn", endpoint = "remove_passkey")]
pub(crate) async fn remove_passkey(id: String) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    let (_, visit) = anyone()?;
    let removed = services.identity.remove_passkey(&ctx, &id, &visit.peer).await;
    let removed = removed.map_err(ui_error)?;
    keep_session(&removed.session);
    redirect_with_notice(
        SECURITY,
        match removed.turned_off {
            true => {
                "The passkey is removed, and two-step sign-in is off. All other sessions have ended."
            }
            false => "The passkey is removed. All other sessions have ended.",
        },
    );
    Ok(())
}

#[server(prefix = "/_fn", endpoint = "begin_passkey_sign_in")]
pub(crate) async fn begin_passkey_sign_in() -> Result<String, UiError> {
    let (services, visit) = anyone()?;
    refuse_without_session(&visit)?;
    let begun = services.identity.begin_passkey_sign_in(visit.passkey_origin()).await;
    begun.map(keep_challenge).map_err(ui_error)
}

/// Signs in with a passkey and redirects to `next`.
#[server(prefix = "/_fn", endpoint = "sign_in_with_passkey")]
pub(crate) async fn sign_in_with_passkey(
    next: String,
    #[server(default)] answer: String,
) -> Result<(), UiError> {
    let (services, visit) = anyone()?;
    refuse_without_session(&visit)?;
    let (identity, from) = (&services.identity, visit.passkey_origin());
    if answer.is_empty() {
        identity.begin_passkey_sign_in(from).await.map_err(ui_error)?;
        return Err(unanswered());
    }
    let session = match identity.sign_in_with_passkey(&answer, from).await {
        Err(weir_service::Error::NotConfirmed { user }) => {
            go(&weir_model::user_links::LinkKind::Confirm.page(user));
            return Ok(());
        }
        other => other.map_err(ui_error)?,
    };
    set_session_cookies(&services, &session, &visit, &next).await
}

/// Begins the second step of a sign-in with a passkey.
#[server(prefix = "/_fn", endpoint = "begin_passkey_step")]
pub(crate) async fn begin_passkey_step() -> Result<String, UiError> {
    let (services, visit) = anyone()?;
    let token = visit.pending.as_deref().unwrap_or_default();
    let begun = services.identity.begin_passkey_step(token, visit.passkey_origin()).await;
    begun.map(keep_challenge).map_err(ui_error)
}

/// Completes a sign-in with a passkey, and redirects to `next`.
#[server(prefix = "/_fn", endpoint = "end_sign_in_with_passkey")]
pub(crate) async fn end_sign_in_with_passkey(
    next: String,
    #[server(default)] answer: String,
) -> Result<(), UiError> {
    let (services, visit) = anyone()?;
    refuse_without_session(&visit)?;
    let (identity, from) = (&services.identity, visit.passkey_origin());
    let token = visit.pending.as_deref().unwrap_or_default();
    if answer.is_empty() {
        let begun = identity.begin_passkey_step(token, from).await;
        return begun
            .map_or_else(|error| end_failed(error, &next, ui_error), |_| Err(unanswered()));
    }
    let session = match identity.end_sign_in_with_passkey(token, &answer, from).await {
        Ok(session) => session,
        Err(error) => return end_failed(error, &next, ui_error),
    };
    set_session_cookies(&services, &session, &visit, &next).await?;
    forget_pending();
    Ok(())
}

/// Begins to confirm the identity of the user with a passkey.
#[server(prefix = "/_fn", endpoint = "begin_passkey_confirmation")]
pub(crate) async fn begin_passkey_confirmation() -> Result<String, UiError> {
    let (services, ctx) = enter()?;
    let (_, visit) = anyone()?;
    let begun = services.identity.begin_passkey_confirmation(&ctx, visit.passkey_origin()).await;
    begun.map(keep_challenge).map_err(ui_error)
}

/// Confirms the identity of the signed-in user with a passkey, and redirects to `next`.
#[server(prefix = "/_fn", endpoint = "sign_in_again_with_passkey")]
pub(crate) async fn sign_in_again_with_passkey(
    next: String,
    #[server(default)] answer: String,
) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    let (_, visit) = anyone()?;
    refuse_without_session(&visit)?;
    if answer.is_empty() {
        return Err(unanswered());
    }
    let from = visit.passkey_origin();
    let session = services.identity.sign_in_again_with_passkey(&ctx, &answer, from).await;
    keep_session(&session.map_err(ui_error)?);
    go(&next);
    Ok(())
}

/// Replaces all recovery codes, and redirects to the page that shows the new ones.
#[server(prefix = "/_fn", endpoint = "renew_recovery_codes_with_passkey")]
pub(crate) async fn renew_recovery_codes_with_passkey(
    #[server(default)] answer: String,
) -> Result<(), UiError> {
    let (services, ctx, token) = enter_with_token()?;
    let (_, visit) = anyone()?;
    if answer.is_empty() {
        return Err(unanswered());
    }
    let from = visit.passkey_origin();
    let renewed = services.identity.renew_recovery_codes_with_passkey(&ctx, &answer, from).await;
    let codes = renewed.map_err(ui_error)?;
    super::second_factor::keep_codes(&services, &ctx, &token, &codes).await
}
