//! A lane: one child at a time, one request at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tokio::sync::{Mutex, MutexGuard};

use super::PoolSettings;
use super::child::Child;
use crate::error::Fault;

/// A place for a child.
#[derive(Debug, Default)]
pub(super) struct Lane {
    place: Mutex<Place>,
}

#[derive(Debug, Default)]
struct Place {
    child: Option<Child>,
    /// Whether there ever was one.
    is_used: bool,
}

/// What all lanes of a pool share.
#[derive(Debug, Default)]
pub(super) struct Common {
    /// Nothing is started any more.
    pub(super) closed: AtomicBool,
    /// Children that there are.
    pub(super) alive: Arc<AtomicUsize>,
    /// Those that took the place of another one.
    pub(super) replaced: AtomicU64,
}

/// A lane that nobody else uses meanwhile. A child that was taken and not put back
/// ends: nobody knows in what state it is.
pub(super) struct Turn<'a> {
    place: MutexGuard<'a, Place>,
    settings: &'a Arc<PoolSettings>,
    common: &'a Common,
}

impl Lane {
    /// Waits for its turn.
    pub(super) async fn turn<'a>(
        &'a self,
        settings: &'a Arc<PoolSettings>,
        common: &'a Common,
    ) -> Turn<'a> {
        Turn { place: self.place.lock().await, settings, common }
    }
}

impl Turn<'_> {
    /// The child of the lane, started where there is none.
    pub(super) async fn take(&mut self) -> Result<Child, Fault> {
        if self.common.closed.load(Ordering::Acquire) {
            return Err(Fault::ShutDown);
        }
        let mut child = match self.place.child.take() {
            Some(child) => child,
            None => self.start().await?,
        };
        child.turn();
        Ok(child)
    }

    async fn start(&mut self) -> Result<Child, Fault> {
        let child = Child::start(self.settings, &self.common.alive).await?;
        if std::mem::replace(&mut self.place.is_used, true) {
            self.common.replaced.fetch_add(1, Ordering::Relaxed);
        }
        Ok(child)
    }

    /// The child, if there is one.
    pub(super) fn take_running(&mut self) -> Option<Child> {
        self.place.child.take()
    }

    /// Gives the child back for the next request.
    pub(super) fn put(&mut self, child: Child) {
        self.place.child = Some(child);
    }
}
