//! Set-up of an empty instance.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::context::{
    add_header, anyone, go, keep_session, projects_changed, refuse_without_session, ui_error,
};
use crate::error::UiError;

/// The state of a set-up link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SetupLink {
    /// The link is valid, so the form is shown.
    Valid {
        /// Whether a session cannot work at this address.
        insecure: bool,
    },
    /// The link has expired.
    Expired,
    /// The link was used, replaced, or never issued.
    Unknown,
}

/// Checks the link with this token. Not found once the instance is set up.
#[server(prefix = "/_fn", endpoint = "check_setup_link")]
pub(crate) async fn check_setup_link(token: String) -> Result<SetupLink, UiError> {
    use weir_service::identity::SetupTokenState;

    let (services, visit) = anyone()?;
    // The address has the token. It must not be sent as referrer.
    add_header(http::header::REFERRER_POLICY, "no-referrer");
    if services.identity.is_set_up().await.map_err(ui_error)? {
        return Err(ui_error(weir_service::Error::NotFound("")));
    }
    let state = services.identity.setup_token_state(&token).await.map_err(ui_error)?;
    Ok(match state {
        SetupTokenState::Valid => SetupLink::Valid { insecure: visit.insecure },
        SetupTokenState::Expired => SetupLink::Expired,
        SetupTokenState::Unknown => SetupLink::Unknown,
    })
}

/// Creates the first user, organization and project, and signs in.
#[server(prefix = "/_fn", endpoint = "set_up")]
pub(crate) async fn set_up(
    token: String,
    first_name: String,
    email: String,
    password: String,
    organization: String,
    project: String,
) -> Result<(), UiError> {
    use weir_service::identity::SetupInput;

    let (services, visit) = anyone()?;
    refuse_without_session(&visit)?;
    let input = SetupInput { first_name, email, password, organization, project };
    let made = services.identity.setup(Some(&token), input, &visit.peer).await.map_err(
        |error| match error {
            weir_service::Error::NotFound(_) => UiError::form(
                "used",
                "This link has been used or has expired. Print a new one with weir setup-link.",
            ),
            other => ui_error(other),
        },
    )?;
    projects_changed().await;
    if let Some(session) = &made.session {
        keep_session(session);
    }
    go(&format!("/projects/{}/start", made.project));
    Ok(())
}
