//! Preferences of a user.

use leptos::prelude::*;
use weir_model::preferences::Preferences;

#[cfg(feature = "ssr")]
use crate::context::{enter, ui_error};
use crate::error::UiError;

/// Returns the preferences of the signed-in user.
#[server(prefix = "/_fn", endpoint = "get_preferences")]
pub(crate) async fn get_preferences() -> Result<Preferences, UiError> {
    let (services, ctx) = enter()?;
    services.preferences.get(&ctx).await.map_err(ui_error)
}

/// Stores preferences. The zone is `browser`, `utc`, or the value of `named`. Browsers do
/// not send unticked boxes.
#[server(prefix = "/_fn", endpoint = "set_preferences")]
pub(crate) async fn set_preferences(
    #[server(default)] seen: String,
    zone: String,
    #[server(default)] named: String,
    numbers: String,
    // Missing: the height stays.
    #[server(default)] rows: Option<String>,
    #[server(default)] shortcuts: Option<String>,
) -> Result<(), UiError> {
    use weir_service::preferences::check;

    use crate::edits::Edits;

    let (services, ctx) = enter()?;
    let present = services.preferences.get(&ctx).await.map_err(ui_error)?;
    let (stored_zone, stored_name) = zone_fields(&present);
    let mut edits = Edits::of(&seen);
    // The two fields of the zone are one value.
    let is_own_zone = edits.is_own("zone", "Time zone", &zone, stored_zone);
    let is_own_name = edits.is_own("named", "Name of the time zone", &named, stored_name);
    let (zone, named) = match is_own_zone || is_own_name {
        true => (zone, named),
        false => (stored_zone.to_owned(), stored_name.to_owned()),
    };
    let stored_numbers = present.numbers.word();
    let numbers = edits
        .text("numbers", "Numbers", &numbers, stored_numbers)
        .apply(stored_numbers.to_owned(), String::new());
    let stored_rows = present.rows.word();
    let rows = edits
        .text("rows", "Table rows", rows.as_deref().unwrap_or(stored_rows), stored_rows)
        .apply(stored_rows.to_owned(), String::new());
    let shortcuts = edits
        .tick("shortcuts", "Single-key shortcuts", shortcuts.is_some(), present.shortcuts)
        .apply(present.shortcuts, false);
    edits.check()?;
    let zone = match zone.as_str() {
        "named" if named.trim().is_empty() => {
            return Err(UiError::field("named", "required", "Enter the name of a zone."));
        }
        "named" => named,
        "utc" => "UTC".to_owned(),
        _ => zone,
    };
    let chosen = check(&zone, &numbers, &rows, shortcuts).map_err(|mut fault| {
        // The field in which the user entered the zone.
        fault.attr = fault.attr.map(|attr| if attr == "zone" { "named".to_owned() } else { attr });
        UiError::Field(fault)
    })?;
    services.preferences.set(&ctx, &chosen).await.map_err(ui_error)
}

/// Sets the height of table rows.
#[server(prefix = "/_fn", endpoint = "set_table_rows")]
pub(crate) async fn set_table_rows(rows: String) -> Result<(), UiError> {
    use weir_model::preferences::TableRows;

    let (services, ctx) = enter()?;
    let unknown = || UiError::field("rows", "invalid_choice", "Choose a height.");
    let rows = TableRows::from_word(&rows).ok_or_else(unknown)?;
    let present = services.preferences.get(&ctx).await.map_err(ui_error)?;
    let chosen = Preferences { rows, ..present };
    services.preferences.set(&ctx, &chosen).await.map_err(ui_error)
}

/// The form values of a time zone: the choice, and the name of another zone.
pub(crate) fn zone_fields(chosen: &Preferences) -> (&'static str, &str) {
    use weir_model::preferences::Zone;

    match &chosen.zone {
        Zone::Browser => ("browser", ""),
        Zone::Named(name) if name == "UTC" => ("utc", ""),
        Zone::Named(name) => ("named", name),
    }
}
