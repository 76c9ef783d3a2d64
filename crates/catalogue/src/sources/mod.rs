//! The entries in JavaScript: what they are called and what their configs must be.
//! Their code stands in `sources/`, one folder each.
//!
//! What belongs here: what has to be checked when a config is saved. What does not:
//! running JavaScript; the tests do it as the plugins' child does.

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

/// The address of a destination. Whether it may be dialled is decided when it is.
fn address(config: &Config<'_>, key: &'static str) -> Result<Url, ConfigError> {
    // The address may be a secret, so the fault does not repeat it.
    let wrong = || ConfigError::new(key, "This must be an address that begins with https://.");
    let url = Url::parse(&config.needed(key)?).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ConfigError::new(key, "Name and password are not possible in an address."));
    }
    Ok(url)
}
