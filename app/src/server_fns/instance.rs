//! The instance, for staff.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::context::{enter, facts, ui_error};
use crate::error::UiError;
use crate::facts::Facts;

/// What staff sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InstanceView {
    /// What the process knows of itself.
    pub(crate) facts: Facts,
    /// Whether mail is sent.
    pub(crate) sends_mail: bool,
    /// Accounts.
    pub(crate) users: u64,
    /// Organizations.
    pub(crate) organizations: u64,
    /// Projects.
    pub(crate) projects: u64,
    /// Events that can be read back.
    pub(crate) events: u64,
}

/// The instance as it is now. For others than staff there is none.
#[server(prefix = "/_fn", endpoint = "get_instance")]
pub(crate) async fn get_instance() -> Result<InstanceView, UiError> {
    let (services, ctx) = enter()?;
    let counts = services.instance.counts(&ctx).await.map_err(ui_error)?;
    Ok(InstanceView {
        facts: facts().await?,
        sends_mail: services.identity.sends_mail(),
        users: counts.users,
        organizations: counts.organizations,
        projects: counts.projects,
        events: counts.events,
    })
}

/// Lets staff pass to what else only staff sees. For others there is nothing.
#[server(prefix = "/_fn", endpoint = "enter_instance")]
pub(crate) async fn enter_instance() -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    services.instance.enter(&ctx).await.map_err(ui_error)
}
