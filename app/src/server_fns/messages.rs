//! Notices of the session.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::context::{enter, ui_error};
use crate::error::UiError;

/// A notice in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MessageView {
    /// Time of the notice.
    pub(crate) at: String,
    /// Text of the notice.
    pub(crate) text: String,
}

/// Lists the notices of this session, newest first.
#[server(prefix = "/_fn", endpoint = "list_messages")]
pub(crate) async fn list_messages() -> Result<Vec<MessageView>, UiError> {
    let (services, ctx) = enter()?;
    let found = services.messages.list(&ctx).await.map_err(ui_error)?.into_iter();
    Ok(found.map(|one| MessageView { at: one.at.to_string(), text: one.text }).collect())
}
