//! Threads for background work: applying acknowledged events, exporting stored events,
//! calling plugins and answering questions.
//!
//! What belongs here: the runtime of that work and its priority. What does not: the work
//! itself (`weir-ingest`, `weir-export`, `weir-plugins`, `weir-answer`).
//!
//! Applying an event costs several times as much as accepting it. On the threads that
//! serve connections it would make clients wait, although their events are safe already.

use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

/// Stack of a thread that runs queries. They recurse deeply, most of all in builds
/// without optimisation.
pub const STACK: usize = 10 << 20;

/// The kinds of background work. Each has its own threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Applying acknowledged events to the store.
    Applying,
    /// Writing events to export destinations.
    Exporting,
    /// Calling plugins.
    Plugins,
    /// Answering questions about events.
    Questions,
}

impl Work {
    const fn name(self) -> &'static str {
        match self {
            Self::Applying => "background",
            Self::Exporting => "exports",
            Self::Plugins => "plugins",
            Self::Questions => "questions",
        }
    }

    /// Priority on the scale of `nice`. When every processor is busy, a thread that
    /// applies events gets a tenth of the time of a thread that serves connections. A
    /// thread that exports, delivers or answers questions gets a tenth of that.
    const fn niceness(self) -> i32 {
        match self {
            Self::Applying => 10,
            Self::Exporting | Self::Plugins | Self::Questions => 19,
        }
    }
}

/// A runtime with as many threads as there are processors, at a lower priority than the
/// others. Dropping it ends the runtime without waiting for its tasks.
#[derive(Debug)]
pub struct Background {
    handle: Handle,
    /// `None` only while the value is dropped.
    runtime: Option<Runtime>,
}

impl Background {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system cannot start them.
    pub fn start(work: Work) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .enable_all()
            .thread_name(work.name())
            .worker_threads(std::thread::available_parallelism().map_or(2, usize::from))
            .thread_stack_size(STACK)
            .on_thread_start(move || lower_priority(work))
            .build()?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    /// Handle to spawn work with.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Dropping a runtime is not allowed where futures run. Shutting it down in the
        // background is.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Lowers the priority of the calling thread; on Linux it belongs to the thread. A
/// failure changes only how long clients wait, so it is logged.
fn lower_priority(work: Work) {
    if let Err(error) = rustix::process::setpriority_process(None, work.niceness()) {
        tracing::warn!(%error, "a background thread keeps the common priority");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_of_its_threads_step_back() {
        let threads = Background::start(Work::Exporting).unwrap();
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let of_worker = threads.handle().spawn(async move { niceness() }).await.unwrap();
        let of_blocking = threads.handle().spawn_blocking(niceness).await.unwrap();
        assert_eq!((of_worker, of_blocking), (19, 19));
    }
}
