//! Threads for work that nobody waits for: applying what was acknowledged, and
//! exporting what was applied.
//!
//! What belongs here: the runtime of that work and its priority. What does not:
//! the work itself.
//!
//! Applying an event costs several times what taking it does. On the threads
//! that serve connections it would make clients wait for what is safe already.

use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

/// Stack of a thread that runs queries: they recurse deeply, most of all in
/// builds without optimisation.
pub const STACK: usize = 10 << 20;

/// What threads work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Events that were acknowledged become readable.
    Applying,
    /// Events go to destinations.
    Exporting,
    /// Plugins are called.
    Plugins,
}

impl Work {
    const fn name(self) -> &'static str {
        match self {
            Self::Applying => "background",
            Self::Exporting => "exports",
            Self::Plugins => "plugins",
        }
    }

    /// Of the scale of `nice`: when every processor is busy, a thread that applies
    /// gets a tenth of what a thread that serves connections gets, and one that
    /// exports or delivers a tenth of that.
    const fn niceness(self) -> i32 {
        match self {
            Self::Applying => 10,
            Self::Exporting | Self::Plugins => 19,
        }
    }
}

/// A runtime with as many threads as there are processors, below the others in
/// priority. Ends with its value, without waiting for what runs on it.
#[derive(Debug)]
pub struct Background {
    handle: Handle,
    /// Until the value is dropped.
    runtime: Option<Runtime>,
}

impl Background {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn start(work: Work) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .enable_all()
            .thread_name(work.name())
            .worker_threads(std::thread::available_parallelism().map_or(2, usize::from))
            .thread_stack_size(STACK)
            .on_thread_start(move || step_back(work))
            .build()?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    /// Where to put work.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Dropping a runtime is not allowed where futures run; this is.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Lowers the priority of the calling thread: on Linux it is one of threads.
/// Without it everything works, only less smoothly.
fn step_back(work: Work) {
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
