//! How a person wants the pages to be.

use leptos::prelude::*;
use weir_model::preferences::Preferences;

use crate::context::{enter, ui_error};
use crate::error::UiError;

/// What whoever is signed in has chosen.
#[server(prefix = "/_fn", endpoint = "get_preferences")]
pub(crate) async fn get_preferences() -> Result<Preferences, UiError> {
    let (services, ctx) = enter()?;
    services.preferences.get(&ctx).await.map_err(ui_error)
}

/// Keeps a choice. The zone is `browser`, `utc`, or the one that is `named`; a box
/// that is not ticked is not sent.
#[server(prefix = "/_fn", endpoint = "set_preferences")]
pub(crate) async fn set_preferences(
    zone: String,
    #[server(default)] named: String,
    numbers: String,
    #[server(default)] shortcuts: Option<String>,
) -> Result<(), UiError> {
    use weir_service::preferences::check;

    let (services, ctx) = enter()?;
    let zone = match zone.as_str() {
        "named" if named.trim().is_empty() => {
            return Err(UiError::field("named", "required", "Enter the name of a zone."));
        }
        "named" => named,
        "utc" => "UTC".to_owned(),
        _ => zone,
    };
    let chosen = check(&zone, &numbers, shortcuts.is_some()).map_err(|mut fault| {
        // The field in which it was entered.
        fault.attr = fault.attr.map(|attr| if attr == "zone" { "named".to_owned() } else { attr });
        UiError::Field(fault)
    })?;
    services.preferences.set(&ctx, &chosen).await.map_err(ui_error)
}
