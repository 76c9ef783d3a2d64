//! Threads for work that nobody waits for: applying what was acknowledged.
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
/// Of the scale of `nice`: when every processor is busy, such a thread gets a
/// tenth of what a thread that serves connections gets.
const NICENESS: i32 = 10;

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
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .enable_all()
            .thread_name("background")
            .worker_threads(std::thread::available_parallelism().map_or(2, usize::from))
            .thread_stack_size(STACK)
            .on_thread_start(step_back)
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
fn step_back() {
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::warn!(%error, "a background thread keeps the common priority");
    }
}
