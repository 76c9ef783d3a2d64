//! Work on its way while the run goes on.
//!
//! What belongs here: how much at a time, and the first failure. What does not:
//! what the work is.

use tokio::task::JoinSet;

use crate::destination::Failure;

/// Uploads on their way at a time: each holds its file in memory.
const MOST: usize = 2;

/// Uploads on their way. Dropped, all of them end.
#[derive(Default)]
pub(super) struct Beside(JoinSet<Result<(), Failure>>);

impl Beside {
    /// Begins a work, after waiting while too many are on their way.
    pub(super) async fn begin(
        &mut self,
        work: impl Future<Output = Result<(), Failure>> + Send + 'static,
    ) -> Result<(), Failure> {
        while self.0.len() >= MOST {
            self.next().await?;
        }
        self.0.spawn(work);
        Ok(())
    }

    /// Waits for all of them.
    pub(super) async fn all(&mut self) -> Result<(), Failure> {
        while !self.0.is_empty() {
            self.next().await?;
        }
        Ok(())
    }

    /// Ends all of them, and waits until they have.
    pub(super) async fn end(&mut self) {
        self.0.shutdown().await;
    }

    async fn next(&mut self) -> Result<(), Failure> {
        match self.0.join_next().await {
            None => Ok(()),
            Some(Ok(done)) => done,
            Some(Err(_)) => Err(Failure::retryable("Interrupted", "An upload was interrupted.")),
        }
    }
}
