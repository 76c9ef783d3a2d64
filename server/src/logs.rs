//! Log lines on standard error: as text or as JSON, filtered by a setting.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::config::{Config, LogFormat};

/// Filters that hold whatever the setting says: at its finer levels the driver of
/// databases writes statements down, with the rows and the keys in them.
const ALWAYS: [&str; 2] = ["tokio_postgres=off", "tokio_postgres::simple_query=off"];

/// The filter cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the log filter `{filter}` is not usable")]
pub struct BadFilter {
    filter: String,
    #[source]
    source: ParseError,
}

/// Starts logging for the whole process.
///
/// # Errors
/// [`BadFilter`].
pub fn start(config: &Config) -> Result<(), BadFilter> {
    let filter =
        filter(&config.log).map_err(|source| BadFilter { filter: config.log.clone(), source })?;
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

fn filter(setting: &str) -> Result<EnvFilter, ParseError> {
    let mut filter = EnvFilter::builder().parse(setting)?;
    for always in ALWAYS {
        filter = filter.add_directive(always.parse()?);
    }
    Ok(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_databases_are_never_written_down() {
        for setting in ["trace", "tokio_postgres=trace", "tokio_postgres::simple_query=debug"] {
            let text = filter(setting).unwrap().to_string();
            for always in ALWAYS {
                assert!(text.split(',').any(|directive| directive == always), "{text}");
            }
            assert!(!text.contains("tokio_postgres=trace"), "{text}");
            assert!(!text.contains("simple_query=debug"), "{text}");
        }
    }
}
