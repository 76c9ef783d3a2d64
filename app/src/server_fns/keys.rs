//! Personal API keys.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::context::{anyone, enter, enter_with_token, go, ui_error};
use crate::error::UiError;

/// Under this name a new value waits for the page that shows it.
const FLASH: &str = "new key";

/// A key as pages show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyView {
    /// Id.
    pub(crate) id: String,
    /// What it is for.
    pub(crate) label: String,
    /// First and last characters.
    pub(crate) mask: String,
    /// What it may do.
    pub(crate) scopes: Vec<String>,
    /// When it was created.
    pub(crate) created_at: String,
    /// When it was last used.
    pub(crate) last_used_at: Option<String>,
    /// When it stops working.
    pub(crate) expires_at: Option<String>,
    /// Whether that time is over.
    pub(crate) expired: bool,
}

/// An offer for how long a new key works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Expiry {
    /// Days; 0: for ever.
    pub(crate) days: u16,
    /// The last day, such as 18 Feb 2027.
    pub(crate) until: Option<String>,
}

/// A new value, to be shown once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Revealed {
    /// The value; `None` when it was shown before.
    pub(crate) value: Option<String>,
    /// Scheme and host of the API.
    pub(crate) host: String,
}

/// The keys of the person.
#[server(prefix = "/_fn", endpoint = "list_keys")]
pub(crate) async fn list_keys() -> Result<Vec<KeyView>, UiError> {
    let (services, ctx) = enter()?;
    let found = services.keys.list(&ctx).await.map_err(ui_error)?;
    let shown = |key: weir_model::keys::PersonalKey| KeyView {
        id: key.id.0,
        label: key.label,
        mask: key.mask_value.unwrap_or_default(),
        scopes: key.scopes.iter().map(ToString::to_string).collect(),
        created_at: key.created_at.to_string(),
        last_used_at: key.last_used_at.map(|time| time.to_string()),
        expired: key.expires_at.is_some_and(|end| end <= ctx.now),
        expires_at: key.expires_at.map(|time| time.to_string()),
    };
    Ok(found.into_iter().map(shown).collect())
}

/// What the form for a new key offers. Asks for a recent sign-in beforehand, so
/// that nothing typed is lost to it.
#[server(prefix = "/_fn", endpoint = "get_key_offer")]
pub(crate) async fn get_key_offer() -> Result<Vec<Expiry>, UiError> {
    let (_, ctx) = enter()?;
    weir_service::policy::recent_person_only(&ctx).map_err(ui_error)?;
    let until = |days: i64| ctx.now.plus_seconds(days * 24 * 60 * 60).to_chrono();
    let offer = |days: u16| Expiry {
        days,
        until: (days > 0).then(|| until(days.into()).format("%-d %b %Y").to_string()),
    };
    Ok([7, 30, 90, 365, 0].into_iter().map(offer).collect())
}

/// Creates a key and leads to the page that shows its value.
#[server(prefix = "/_fn", endpoint = "create_key")]
pub(crate) async fn create_key(
    label: String,
    preset: String,
    // One per object, empty for none.
    #[server(default)] scopes: Vec<String>,
    days: u16,
) -> Result<(), UiError> {
    use weir_service::keys::check_input;

    let (services, ctx, token) = enter_with_token()?;
    let scopes = of_preset(&preset, scopes);
    let expires_at = (days > 0).then(|| ctx.now.plus_seconds(i64::from(days) * 24 * 60 * 60));
    let input = check_input(&label, &scopes, &[], &[], expires_at).map_err(UiError::Field)?;
    let key = services.keys.create(&ctx, input).await.map_err(ui_error)?;
    let value = key.value.unwrap_or_default();
    services.identity.put_flash(&ctx, &token, FLASH, &value).await.map_err(ui_error)?;
    go("/account/keys/reveal");
    Ok(())
}

/// Gives a key a new value and leads to the page that shows it.
#[server(prefix = "/_fn", endpoint = "roll_key")]
pub(crate) async fn roll_key(id: String) -> Result<(), UiError> {
    let (services, ctx, token) = enter_with_token()?;
    let key = services.keys.roll(&ctx, &weir_model::KeyId(id)).await.map_err(ui_error)?;
    let value = key.value.unwrap_or_default();
    services.identity.put_flash(&ctx, &token, FLASH, &value).await.map_err(ui_error)?;
    go("/account/keys/reveal");
    Ok(())
}

/// The new value, the first time it is asked for.
#[server(prefix = "/_fn", endpoint = "reveal_key")]
pub(crate) async fn reveal_key() -> Result<Revealed, UiError> {
    let (services, ctx, token) = enter_with_token()?;
    let (_, visit) = anyone()?;
    let value = services.identity.take_flash(&ctx, &token, FLASH).await.map_err(ui_error)?;
    Ok(Revealed { value, host: visit.origin })
}

/// Revokes a key.
#[server(prefix = "/_fn", endpoint = "revoke_key")]
pub(crate) async fn revoke_key(id: String) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    services.keys.delete(&ctx, &weir_model::KeyId(id)).await.map_err(ui_error)?;
    Ok(())
}

/// The scopes that a preset stands for; `custom` takes what was chosen.
fn of_preset(preset: &str, chosen: Vec<String>) -> Vec<String> {
    use weir_model::scopes::{Scope, ScopeObject};

    match preset {
        "all" => vec![Scope::All.to_string()],
        "read" => ScopeObject::OFFERED.iter().map(|o| Scope::read(*o).to_string()).collect(),
        _ => chosen.into_iter().filter(|scope| !scope.is_empty()).collect(),
    }
}
