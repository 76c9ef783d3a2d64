//! The plugins of the catalogue in JavaScript: their descriptions and the checks of their
//! configs. Their code is in `crates/catalogue/sources`.
//!
//! What belongs here: checks before a config is saved. What does not: running JavaScript
//! (`weir-sandbox`); the tests run it with `engine`.

pub(crate) mod first_time_events;
pub(crate) mod notification_bar;
pub(crate) mod semver_flattener;
pub(crate) mod slack_message;
pub(crate) mod taxonomy;
pub(crate) mod url_parameters;
pub(crate) mod webhook;

#[cfg(test)]
pub(crate) mod engine;

use url::Url;

use crate::config::{Config, ConfigError};

/// The URL of a destination. Whether connections to it are allowed is decided when it
/// is used.
fn destination_url(config: &Config<'_>, key: &'static str) -> Result<Url, ConfigError> {
    // The URL may be a secret, so the fault does not repeat it.
    let wrong =
        || ConfigError::new(key, "This must be an address that begins with https:// or http://.");
    let url = Url::parse(&config.needed(key)?).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ConfigError::new(key, "Name and password are not possible in an address."));
    }
    Ok(url)
}
