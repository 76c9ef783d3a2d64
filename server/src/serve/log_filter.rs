//! The log filter of a running service: SIGHUP applies the setting `log` again.
//!
//! What belongs here: when the setting is read. What does not: how it is read (`config`),
//! and the filter (`logs`).

use std::io::{self, IsTerminal as _};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task;

use crate::config::{Config, ConfigError};
use crate::logs;

/// Receives SIGHUP. `None` for a service in a terminal: there the signal says that the
/// terminal was closed, and ends the process.
pub(super) fn hangups() -> io::Result<Option<Signal>> {
    if io::stdin().is_terminal() { Ok(None) } else { signal(SignalKind::hangup()).map(Some) }
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
        match read {
            Ok(config) => match logs::change_filter(&config.log) {
                Ok(()) => tracing::info!(filter = config.log.as_str(), "applied the setting `log`"),
                Err(error) => tracing::error!(%error, "the setting `log` was not applied"),
            },
            Err(error) => tracing::error!(%error, "the setting `log` was not applied"),
        }
    }
}
