//! The signals that stop a command.
//!
//! What belongs here: waiting for them. What does not: what the service does then (`serve`).

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The stop signals SIGTERM and SIGINT.
pub(crate) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Option<Signal>,
}

impl StopSignals {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: None,
        })
    }

    /// The same with SIGHUP, for a command that removes something when its terminal is closed.
    pub(crate) fn with_hangup() -> std::io::Result<Self> {
        Ok(Self { hangup: Some(signal(SignalKind::hangup())?), ..Self::new()? })
    }

    pub(crate) async fn stop(&mut self) {
        let Self { terminate, interrupt, hangup } = self;
        let hung_up = async {
            match hangup {
                Some(hangup) => _ = hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = hung_up => {}
        }
    }
}
