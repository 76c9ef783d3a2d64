//! The log filter of a running service: SIGHUP applies the setting `log` again.
//!
//! What belongs here: when the setting is read. What does not: how it is read (`config`),
//! and the filter (`logs`).

use std::fs::File;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task;

use crate::config::{Config, ConfigError};
use crate::logs::{self, with_causes};

/// The terminal of a process. A process without one cannot open it.
const TERMINAL: &str = "/dev/tty";

/// Receives SIGHUP. `None` for a service in a terminal: there the signal says that the
/// terminal was closed, and ends the process. Standard input may be redirected, so it
/// does not show whether there is a terminal.
pub(super) fn hangups() -> io::Result<Option<Signal>> {
    if File::open(TERMINAL).is_ok() { Ok(None) } else { signal(SignalKind::hangup()).map(Some) }
}

/// Applies the setting after each signal, forever. A fault is logged, and the present
/// filter stays.
pub(super) async fn follow<F>(mut hangups: Signal, settings: F)
where
    F: Fn() -> Result<Config, ConfigError> + Clone + Send + Sync + 'static,
{
    while hangups.recv().await.is_some() {
        // Not on a thread that serves requests, because reading the file blocks it.
        let read = task::spawn_blocking(settings.clone()).await;
        let Ok(read) = read.inspect_err(|error| tracing::error!(%error, "reading settings failed"))
        else {
            continue;
        };
        match apply(read) {
            Ok(filter) => tracing::info!(filter = filter.as_str(), "applied the setting `log`"),
            Err(error) => tracing::error!(%error, "the setting `log` was not applied"),
        }
    }
}

/// Applies the setting, and returns the filter or the reason why it was not applied.
fn apply(read: Result<Config, ConfigError>) -> Result<String, String> {
    let filter = read.map_err(|error| with_causes(&error))?.log;
    logs::change_filter(&filter).map_err(|error| with_causes(&error))?;
    Ok(filter)
}
