//! Uploads that run concurrently with the run.
//!
//! What belongs here: the number of uploads, and the first failure. What does not: the
//! uploads themselves (`staged`).

use tokio::task::JoinSet;

use crate::destination::Failure;

/// Upper bound of concurrent uploads. Each has its file in memory.
const MOST: usize = 2;

/// Concurrent uploads. Dropping it ends all of them.
#[derive(Default)]
pub(super) struct Uploads(JoinSet<Result<(), Failure>>);

impl Uploads {
    /// Starts an upload. Waits first while there are too many.
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

    /// Waits for all uploads.
    pub(super) async fn all(&mut self) -> Result<(), Failure> {
        while !self.0.is_empty() {
            self.next().await?;
        }
        Ok(())
    }

    /// Cancels all uploads, and waits until they have ended.
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
