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
    state: Mutex<LaneState>,
}

#[derive(Debug, Default)]
struct LaneState {
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
pub(super) struct LaneGuard<'a> {
    state: MutexGuard<'a, LaneState>,
    settings: &'a Arc<PoolSettings>,
    common: &'a Common,
}

impl Lane {
    /// Waits for exclusive use of the lane.
    pub(super) async fn guard<'a>(
        &'a self,
        settings: &'a Arc<PoolSettings>,
        common: &'a Common,
    ) -> LaneGuard<'a> {
        LaneGuard { state: self.state.lock().await, settings, common }
    }
}

impl LaneGuard<'_> {
    /// The child process of the lane, started if there is none.
    pub(super) async fn take(&mut self) -> Result<Child, Fault> {
        if self.common.closed.load(Ordering::Acquire) {
            return Err(Fault::ShutDown);
        }
        let mut child = match self.state.child.take() {
            Some(child) => child,
            None => self.start().await?,
        };
        child.guard();
        Ok(child)
    }

    async fn start(&mut self) -> Result<Child, Fault> {
        let child = Child::start(self.settings, &self.common.alive).await?;
        if std::mem::replace(&mut self.state.is_used, true) {
            self.common.replaced.fetch_add(1, Ordering::Relaxed);
        }
        Ok(child)
    }

    /// The child process, if there is one.
    pub(super) fn take_running(&mut self) -> Option<Child> {
        self.state.child.take()
    }

    /// Returns the child process for the next request.
    pub(super) fn put(&mut self, child: Child) {
        self.state.child = Some(child);
    }
}
