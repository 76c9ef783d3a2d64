//! A lane: one child process at a time, one request at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tokio::sync::{Mutex, MutexGuard};

use super::PoolSettings;
use super::child::Child;
use crate::error::Fault;

/// The slot of a child process.
#[derive(Debug, Default)]
pub(super) struct Lane {
    place: Mutex<Place>,
}

#[derive(Debug, Default)]
struct Place {
    child: Option<Child>,
    /// Whether it ever had a child process.
    is_used: bool,
}

/// State that all lanes of a pool share.
#[derive(Debug, Default)]
pub(super) struct Common {
    /// Whether the pool is closed: no child process is started any more.
    pub(super) closed: AtomicBool,
    /// Number of running child processes.
    pub(super) alive: Arc<AtomicUsize>,
    /// Number of child processes that replaced another one.
    pub(super) replaced: AtomicU64,
}

/// Exclusive use of a lane. A child process that was taken and not put back is ended,
/// because its state is unknown.
pub(super) struct Turn<'a> {
    place: MutexGuard<'a, Place>,
    settings: &'a Arc<PoolSettings>,
    common: &'a Common,
}

impl Lane {
    /// Waits for exclusive use of the lane.
    pub(super) async fn turn<'a>(
        &'a self,
        settings: &'a Arc<PoolSettings>,
        common: &'a Common,
    ) -> Turn<'a> {
        Turn { place: self.place.lock().await, settings, common }
    }
}

impl Turn<'_> {
    /// The child process of the lane, started if there is none.
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

    /// The child process, if there is one.
    pub(super) fn take_running(&mut self) -> Option<Child> {
        self.place.child.take()
    }

    /// Returns the child process for the next request.
    pub(super) fn put(&mut self, child: Child) {
        self.place.child = Some(child);
    }
}
