//! Log lines on standard error: as text or as JSON, filtered by a setting.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};

/// The filter cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the log filter `{filter}` is not usable")]
pub struct BadFilter {
    filter: String,
    #[source]
    source: tracing_subscriber::filter::ParseError,
}

/// Starts logging for the whole process.
///
/// # Errors
/// [`BadFilter`].
pub fn start(config: &Config) -> Result<(), BadFilter> {
    let filter = EnvFilter::builder()
        .parse(&config.log)
        .map_err(|source| BadFilter { filter: config.log.clone(), source })?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // Fails only when logging was started before, as in tests; then it goes on as it is.
    let _ = match config.log_format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "{panic}");
    }));
    Ok(())
}
