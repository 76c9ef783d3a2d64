//! Accepting an invite.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::context::{
    add_header, anyone, enter, forget_session, go, keep_session, refuse_without_session, ui_error,
};
use crate::error::UiError;
use crate::local_path::encode;

/// The state of the link of an invite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Invitation {
    /// The invite can be accepted.
    Open {
        /// The content of the invite.
        says: InviteContent,
        /// E-mail address of the invited user.
        email: String,
        /// First name of the invited user. Can be empty.
        first_name: String,
        /// Whether the invited user is signed in.
        signed_in: bool,
        /// Whether a session cannot work at this address.
        insecure: bool,
    },
    /// The address belongs to a user, who must sign in first.
    SignIn(InviteContent),
    /// The signed-in user has another address.
    OtherAddress {
        /// E-mail address of the invited user.
        invited: String,
        /// E-mail address of the signed-in user.
        present: String,
    },
    /// The signed-in user is already a member.
    AlreadyMember,
    /// The invite has expired.
    Expired,
    /// The invite does not exist, or no longer exists.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InviteContent {
    /// First name of the inviting user. Empty if that user is deleted.
    pub(crate) inviter: String,
    /// Name of the organization.
    pub(crate) organization: String,
    /// The level that the new member will have.
    pub(crate) level: String,
    /// The message of the inviting user. Can be empty.
    pub(crate) message: String,
}

#[cfg(feature = "ssr")]
impl From<weir_service::identity::Shown> for InviteContent {
    fn from(shown: weir_service::identity::Shown) -> Self {
        Self {
            inviter: shown.inviter.unwrap_or_default(),
            organization: shown.invitation.organization_name,
            level: shown.level.text().to_owned(),
            message: shown.message.unwrap_or_default(),
        }
    }
}

/// Checks the link of an invite for the current visitor.
#[server(prefix = "/_fn", endpoint = "get_invitation")]
pub(crate) async fn get_invitation(id: String) -> Result<Invitation, UiError> {
    use weir_service::identity::InviteLink;

    let (services, visit) = anyone()?;
    // The address has the token. It must not be sent as referrer.
    add_header(http::header::REFERRER_POLICY, "no-referrer");
    let found = services.identity.invite_link(visit.ctx.as_ref(), &id, &visit.peer).await;
    Ok(match found.map_err(ui_error)? {
        InviteLink::Open(shown) => Invitation::Open {
            email: shown.invitation.target_email.clone(),
            first_name: shown.invitation.first_name.clone(),
            signed_in: visit.ctx.is_some(),
            insecure: visit.insecure,
            says: shown.into(),
        },
        InviteLink::SignIn(shown) => Invitation::SignIn(shown.into()),
        InviteLink::OtherAddress { invited, present } => {
            Invitation::OtherAddress { invited, present }
        }
        InviteLink::AlreadyMember => Invitation::AlreadyMember,
        InviteLink::Expired => Invitation::Expired,
        InviteLink::Unknown => Invitation::Unknown,
    })
}

/// Creates a user from an invite, and signs in or redirects to the page about confirming
/// the e-mail address.
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
        None => go(&weir_model::user_links::LinkKind::Confirm.page(user.uuid)),
    }
    Ok(())
}

/// Accepts an invite as the signed-in user.
#[server(prefix = "/_fn", endpoint = "join_organization")]
pub(crate) async fn join_organization(id: String) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    let (_, visit) = anyone()?;
    services.identity.join(&ctx, &id, &visit.peer).await.map_err(ui_error)?;
    go("/");
    Ok(())
}

/// Ends the session and redirects to the invite, for the user with the invited address.
#[server(prefix = "/_fn", endpoint = "sign_out_to_join")]
pub(crate) async fn sign_out_to_join(id: String) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    services.identity.sign_out(&ctx).await.map_err(ui_error)?;
    forget_session();
    go(&format!("/signup/{}", encode(&id)));
    Ok(())
}
