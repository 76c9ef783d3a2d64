//! Taking up an invite.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::context::{
    add_header, anyone, enter, go, keep_session, refuse_without_session, ui_error,
};
use crate::error::UiError;

/// What the link of an invite is worth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Invitation {
    /// It can be taken up.
    Open {
        /// Address of the invited person.
        email: String,
        /// First name of the invited person; may be empty.
        first_name: String,
        /// Name of the organization.
        organization: String,
        /// First name of who invites; empty when that account is gone.
        inviter: String,
        /// Whether the invited person is signed in.
        signed_in: bool,
        /// Whether a session cannot work at this address.
        insecure: bool,
    },
    /// The address has an account: its owner signs in first.
    SignIn,
    /// It cannot be taken up; says why.
    Void(String),
}

/// What the link of this invite is worth to whoever opens it.
#[server(prefix = "/_fn", endpoint = "get_invitation")]
pub(crate) async fn get_invitation(id: String) -> Result<Invitation, UiError> {
    let (services, visit) = anyone()?;
    // The id is in the address: it must not leave with a link.
    add_header(http::header::REFERRER_POLICY, "no-referrer");
    let found = services.identity.invitation(visit.ctx.as_ref(), &id, &visit.peer).await;
    match found {
        Ok(found) => Ok(Invitation::Open {
            email: found.invitation.target_email,
            first_name: found.invitation.first_name,
            organization: found.invitation.organization_name,
            inviter: found.inviter.unwrap_or_default(),
            signed_in: visit.ctx.is_some(),
            insecure: visit.insecure,
        }),
        Err(weir_service::Error::Invalid(fault)) if fault.code == "account_exists" => {
            Ok(Invitation::SignIn)
        }
        Err(weir_service::Error::Invalid(fault)) => Ok(Invitation::Void(fault.detail)),
        Err(other) => Err(ui_error(other)),
    }
}

/// Makes an account from an invite, and signs in, or goes on to the page that says
/// that the address is to be confirmed.
#[server(prefix = "/_fn", endpoint = "sign_up")]
pub(crate) async fn sign_up(
    id: String,
    first_name: String,
    password: String,
) -> Result<(), UiError> {
    use weir_model::invites::SignUpInput;

    let (services, visit) = anyone()?;
    refuse_without_session(&visit)?;
    let input = || Ok(SignUpInput { first_name, password });
    let made = services.identity.sign_up(&id, input, &visit.peer, &visit.request_id).await;
    let (user, session) = made.map_err(ui_error)?;
    match session {
        Some(session) => {
            keep_session(&session);
            go("/");
        }
        None => go(&weir_model::accounts::LinkKind::Confirm.page(user.uuid)),
    }
    Ok(())
}

/// Takes up an invite with the account of whoever is signed in.
#[server(prefix = "/_fn", endpoint = "join_organization")]
pub(crate) async fn join_organization(id: String) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    let (_, visit) = anyone()?;
    services.identity.join(&ctx, &id, &visit.peer).await.map_err(ui_error)?;
    go("/");
    Ok(())
}
