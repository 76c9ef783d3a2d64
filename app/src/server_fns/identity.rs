//! Signing in and out.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
#[cfg(feature = "ssr")]
use weir_service::Services;
#[cfg(feature = "ssr")]
use weir_service::identity::{Confirming, NewSession, takes_passkeys};

#[cfg(feature = "ssr")]
use crate::context::{
    Visit, anyone, ask_second_factor, enter, forget_session, go, keep_session, keep_theme,
    refuse_without_session, ui_error,
};
use crate::error::UiError;
use crate::local_path::encode;
use crate::theme::Theme;

/// Data of the sign-in page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignInView {
    /// Whether the instance has a user.
    pub(crate) is_set_up: bool,
    /// Whether a session cannot work at this address.
    pub(crate) insecure: bool,
    /// Whether a passkey can be used at this address.
    pub(crate) takes_passkeys: bool,
    /// The providers: label and address.
    pub(crate) providers: Vec<(String, String)>,
    /// What the page asks for.
    pub(crate) step: SignInStep,
}

/// What visitors read in place of the name SAML, which administrators know.
pub(crate) const SAML_LABEL: &str = "single sign-on";
/// The code of a wrong password.
#[cfg(feature = "ssr")]
const WRONG_PASSWORD: &str = "invalid_credentials";
/// The refusal of any password where a provider is required.
#[cfg(feature = "ssr")]
const NO_PASSWORD: &str = "Your organization accepts no password. Confirm through its provider, or ask the operator for a new link.";

/// A step of the sign-in page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SignInStep {
    Address,
    Password {
        /// The address; empty: it is asked for together with the password.
        email: String,
        /// Whether the domain of the address has a SAML provider too.
        has_saml: bool,
    },
    /// The provider that the domain of the address requires.
    Provider {
        email: String,
        /// The name of the provider.
        label: String,
        /// Where the browser leaves for it.
        href: String,
    },
}

/// Where the browser leaves for a provider. With the address of the visitor, administrators
/// of its domain learn why a sign-in was refused.
#[cfg(feature = "ssr")]
pub(crate) fn provider_href(name: &str, email: &str, next: &str) -> String {
    let email = if email.is_empty() { String::new() } else { format!("email={}&", encode(email)) };
    format!("/login/{name}/?{email}next={}", encode(next))
}

/// Where the browser leaves for the SAML provider of an address.
pub(crate) fn saml_href(email: &str, next: &str) -> String {
    format!("/login/saml/?email={}&next={}", encode(email), encode(next))
}

/// What the page that confirms the identity of the user shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgainView {
    pub(crate) email: String,
    /// A provider through which the user can confirm: its name and address.
    pub(crate) provider: Option<(String, String)>,
    /// Whether the user has a password that may be used.
    pub(crate) has_password: bool,
    /// Whether the user has a passkey that may be used, and browsers use passkeys at this
    /// address.
    pub(crate) has_passkey: bool,
    /// Whether a link of the operator opened the session.
    pub(crate) by_operator: bool,
}

/// Returns the data of the sign-in page. A signed-in user is redirected to `next`.
#[server(prefix = "/_fn", endpoint = "get_sign_in_view")]
pub(crate) async fn get_sign_in_view(
    next: String,
    #[server(default)] email: String,
) -> Result<SignInView, UiError> {
    use weir_model::domains::SsoEnforcement;

    let (services, visit) = anyone()?;
    if visit.ctx.is_some() {
        go(&next);
    }
    let is_set_up = services.identity.is_set_up().await.map_err(ui_error)?;
    let offered = services.providers.offered().await.map_err(ui_error)?;
    let asks = services.providers.is_used().await.map_err(ui_error)?;
    let step = match (asks, email.trim()) {
        (false, _) => SignInStep::Password { email: String::new(), has_saml: false },
        (true, "") => SignInStep::Address,
        (true, email) => {
            let found = services.identity.precheck(email, &visit.peer).await.map_err(ui_error)?;
            let email = email.to_owned();
            match found.sso_enforcement {
                Some(SsoEnforcement::Provider(name)) => {
                    let label = offered.iter().find(|(offered, _)| *offered == name);
                    let label = label.map_or_else(|| name.label(), |(_, label)| label).to_owned();
                    let href = provider_href(name.text(), &email, &next);
                    SignInStep::Provider { email, label, href }
                }
                Some(SsoEnforcement::Saml) => {
                    let href = saml_href(&email, &next);
                    SignInStep::Provider { email, label: SAML_LABEL.to_owned(), href }
                }
                Some(SsoEnforcement::Off) | None => {
                    SignInStep::Password { email, has_saml: found.saml_available }
                }
            }
        }
    };
    let providers =
        offered.iter().map(|(name, label)| (label.clone(), provider_href(name.text(), "", &next)));
    let providers = providers.collect();
    Ok(SignInView {
        is_set_up,
        insecure: visit.insecure,
        takes_passkeys: visit.keeps_sessions && takes_passkeys(&visit.origin),
        providers,
        step,
    })
}

/// Returns how the signed-in user confirms their identity.
#[server(prefix = "/_fn", endpoint = "get_again_view")]
pub(crate) async fn get_again_view(next: String) -> Result<AgainView, UiError> {
    use weir_model::sso::Connection;

    let (services, ctx) = enter()?;
    let (_, visit) = anyone()?;
    let Confirming { email, provider, has_password, has_passkey, by_operator } =
        services.identity.confirming(&ctx).await.map_err(ui_error)?;
    let provider = provider.map(|(connection, label)| match connection {
        Connection::Provider(name) => (label, provider_href(name.text(), &email, &next)),
        Connection::Saml(_) => (SAML_LABEL.to_owned(), saml_href(&email, &next)),
    });
    let has_passkey = has_passkey && takes_passkeys(&visit.origin);
    Ok(AgainView { email, provider, has_password, has_passkey, by_operator })
}

/// Signs in with a link of the operator, and redirects to the first page.
#[server(prefix = "/_fn", endpoint = "sign_in_by_link")]
pub(crate) async fn sign_in_by_link(id: String, token: String) -> Result<(), UiError> {
    let (services, visit) = anyone()?;
    refuse_without_session(&visit)?;
    let identity = &services.identity;
    let opened = identity.use_sign_in_link(&id, &token, &visit.peer, &visit.request_id).await;
    let session = opened.map_err(ui_error)?;
    set_session_cookies(&services, &session, &visit, "/").await
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
    set_session_cookies(&services, &session, &visit, &next).await
}

/// Sets the cookies of a new session and redirects to `next`.
#[cfg(feature = "ssr")]
pub(crate) async fn set_session_cookies(
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
                weir_service::Error::Invalid(fault) if fault.code == WRONG_PASSWORD => {
                    let detail = "This is not the password of your account.";
                    UiError::field("password", &fault.code, detail)
                }
                weir_service::Error::Invalid(fault) if fault.code == "sso_enforced" => {
                    UiError::form(&fault.code, NO_PASSWORD)
                }
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
