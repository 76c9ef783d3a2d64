//! Taking up an invite.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::context::{
    add_header, anyone, enter, forget_session, go, keep_session, refuse_without_session, ui_error,
};
use crate::error::UiError;
use crate::local_path::encode;

/// What the link of an invite is worth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Invitation {
    /// It can be taken up.
    Open {
        /// What it says.
        says: Says,
        /// Address of the invited person.
        email: String,
        /// First name of the invited person; may be empty.
        first_name: String,
        /// Whether the invited person is signed in.
        signed_in: bool,
        /// Whether a session cannot work at this address.
        insecure: bool,
    },
    /// The address has an account: its owner signs in first.
    SignIn(Says),
    /// Whoever is signed in has another address.
    OtherAddress {
        /// Address of the invited person.
        invited: String,
        /// Address of whoever is signed in.
        present: String,
    },
    /// Whoever is signed in is a member already.
    AlreadyMember,
    /// Its time is over.
    Expired,
    /// There is no such invite, or not any more.
    Unknown,
}

/// What an invite says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Says {
    /// First name of who invites; empty when that account is gone.
    pub(crate) inviter: String,
    /// Name of the organization.
    pub(crate) organization: String,
    /// What the person will be.
    pub(crate) level: String,
    /// Words of the inviter; may be empty.
    pub(crate) message: String,
}

impl From<weir_service::identity::Shown> for Says {
    fn from(shown: weir_service::identity::Shown) -> Self {
        Self {
            inviter: shown.inviter.unwrap_or_default(),
            organization: shown.invitation.organization_name,
            level: shown.level.text().to_owned(),
            message: shown.message.unwrap_or_default(),
        }
    }
}

/// What the link of this invite is worth to whoever opens it.
#[server(prefix = "/_fn", endpoint = "get_invitation")]
pub(crate) async fn get_invitation(id: String) -> Result<Invitation, UiError> {
    use weir_service::identity::InviteLink;

    let (services, visit) = anyone()?;
    // The token is in the address: it must not leave with a link.
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

/// Ends the session and leads back to the invite, for the person whom it is for.
#[server(prefix = "/_fn", endpoint = "sign_out_to_join")]
pub(crate) async fn sign_out_to_join(id: String) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    services.identity.sign_out(&ctx).await.map_err(ui_error)?;
    forget_session();
    go(&format!("/signup/{}", encode(&id)));
    Ok(())
}
