//! Ending a question early: its client has cancelled it, or has left.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::sync::Notify;
use weir_answer::Cancel;

/// Whether a question is to end, before and while it is computed.
#[derive(Debug, Default)]
pub(super) struct Stop {
    is_set: AtomicBool,
    /// What its threads read. `None`: they have not begun.
    cancel: OnceLock<Arc<Cancel>>,
    changed: Notify,
}

impl Stop {
    pub(super) fn stop(&self) {
        self.is_set.store(true, Ordering::SeqCst);
        if let Some(cancel) = self.cancel.get() {
            cancel.cancel();
        }
        // It is kept for a question that does not wait yet.
        self.changed.notify_one();
    }

    /// What the threads of the question are to read. Later calls return the first one.
    pub(super) fn begin(&self, until: Instant) -> Arc<Cancel> {
        let cancel = Arc::clone(self.cancel.get_or_init(|| Arc::new(Cancel::at(until))));
        // Otherwise `stop` may have come too early to find it.
        if self.is_set.load(Ordering::SeqCst) {
            cancel.cancel();
        }
        cancel
    }

    /// Returns when the question is to end.
    pub(super) async fn stopped(&self) {
        while !self.is_set.load(Ordering::SeqCst) {
            self.changed.notified().await;
        }
    }
}

/// Ends a question when it is dropped.
pub(super) struct StopWhenDropped(pub(super) Arc<Stop>);

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        self.0.stop();
    }
}
