//! Stop requests: the first ends the import in order, the second ends it immediately.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Reports whether a signal was received.
#[derive(Debug, Clone)]
pub(crate) struct Stop(watch::Receiver<u32>);

impl Stop {
    /// Listens for SIGINT and SIGTERM from now on.
    pub(crate) fn on_signals() -> io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let (requested, stop) = watch::channel(0);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    () = requested.closed() => return,
                }
                requested.send_modify(|count| *count += 1);
            }
        });
        Ok(Self(stop))
    }

    /// Without signals.
    #[cfg(test)]
    pub(crate) fn never() -> Self {
        Self(watch::channel(0).1)
    }

    /// Whether a stop was requested.
    pub(crate) fn is_requested(&self) -> bool {
        *self.0.borrow() > 0
    }

    /// Waits for a stop request.
    pub(crate) async fn requested(&self) {
        self.times(1).await;
    }

    /// Waits for a second stop request.
    pub(crate) async fn insisted(&self) {
        self.times(2).await;
    }

    async fn times(&self, count: u32) {
        let mut stop = self.0.clone();
        // Without a sender there are no more requests.
        if stop.wait_for(|requested| *requested >= count).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
