//! Security of a user: the password and the open sessions.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::context::{
    anyone, enter, enter_with_token, keep_session, redirect_with_notice, ui_error,
};
#[cfg(feature = "ssr")]
use crate::device::device;
use crate::error::UiError;

/// The page that lists sessions.
const SECURITY: &str = "/account/security";

/// A session as its user sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionView {
    /// Id of the session.
    pub(crate) id: String,
    /// Browser and operating system.
    pub(crate) device: String,
    /// How the user signed in.
    pub(crate) way: String,
    /// IP address of the client at sign-in.
    pub(crate) address: Option<String>,
    /// Time at which the user last confirmed their identity in it.
    pub(crate) signed_in_at: String,
    /// Time of its last use.
    pub(crate) seen_at: String,
    /// Whether it is the current session.
    pub(crate) is_this: bool,
}

/// Lists the sessions of the user, the current one first.
#[server(prefix = "/_fn", endpoint = "list_sessions")]
pub(crate) async fn list_sessions() -> Result<Vec<SessionView>, UiError> {
    let (services, ctx) = enter()?;
    let found = services.identity.own_sessions(&ctx).await.map_err(ui_error)?;
    let shown = |session: weir_service::identity::OwnSession| SessionView {
        id: session.id,
        device: device(session.agent.as_deref()),
        way: session.opened_by,
        address: session.address,
        signed_in_at: session.signed_in_at.to_string(),
        seen_at: session.seen_at.to_string(),
        is_this: session.is_this,
    };
    Ok(found.into_iter().map(shown).collect())
}

#[server(prefix = "/_fn", endpoint = "end_session")]
pub(crate) async fn end_session(id: String) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    services.identity.end_session(&ctx, &id).await.map_err(ui_error)?;
    redirect_with_notice(SECURITY, "The session has ended.");
    Ok(())
}

/// An account at a provider that signs the user in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinkedView {
    pub(crate) id: String,
    /// The name of the provider.
    pub(crate) name: String,
    /// The address that the provider named last.
    pub(crate) email: String,
    /// When it was linked.
    pub(crate) linked_at: String,
    /// When it last signed the user in.
    pub(crate) used_at: String,
}

/// The accounts that are linked to the user, and the providers that can be linked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinkedAccountsView {
    pub(crate) accounts: Vec<LinkedView>,
    /// Label and address of each provider.
    pub(crate) providers: Vec<(String, String)>,
}

/// Lists the linked accounts of the user.
#[server(prefix = "/_fn", endpoint = "list_linked_accounts")]
pub(crate) async fn list_linked_accounts() -> Result<LinkedAccountsView, UiError> {
    use weir_service::identity::{Identity, LinkedAccount};

    let (services, ctx, token) = enter_with_token()?;
    let found = services.identity.linked_accounts(&ctx).await.map_err(ui_error)?;
    let offered = services.providers.offered().await.map_err(ui_error)?;
    let shown = |account: LinkedAccount| LinkedView {
        id: account.id,
        name: account.name,
        email: account.email.unwrap_or_default(),
        linked_at: account.linked_at.to_string(),
        used_at: account.used_at.to_string(),
    };
    let proof = Identity::login_link_proof(&token);
    let link = |(name, label): (weir_model::sso::ProviderName, String)| {
        (label, format!("/login/{name}/?purpose=link&proof={proof}&next={SECURITY}"))
    };
    Ok(LinkedAccountsView {
        accounts: found.into_iter().map(shown).collect(),
        providers: offered.into_iter().map(link).collect(),
    })
}

/// Removes a linked account of the user.
#[server(prefix = "/_fn", endpoint = "unlink_account")]
pub(crate) async fn unlink_account(id: String) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    services.identity.unlink(&ctx, &id).await.map_err(ui_error)?;
    redirect_with_notice(SECURITY, "The linked account is removed.");
    Ok(())
}

/// Ends all sessions except the current one.
#[server(prefix = "/_fn", endpoint = "end_other_sessions")]
pub(crate) async fn end_other_sessions() -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    services.identity.end_other_sessions(&ctx).await.map_err(ui_error)?;
    redirect_with_notice(SECURITY, "All other sessions have ended.");
    Ok(())
}

/// Changes the password. All other sessions end.
#[server(prefix = "/_fn", endpoint = "change_password")]
pub(crate) async fn change_password(
    current_password: String,
    password: String,
) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    let (_, visit) = anyone()?;
    let identity = &services.identity;
    let changed = identity.change_password(&ctx, &current_password, &password, &visit.peer).await;
    keep_session(&changed.map_err(ui_error)?);
    Ok(())
}
