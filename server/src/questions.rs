//! The connection between questions about events and the server: permits, and metrics.
//!
//! What belongs here: passing calls on. What does not: answering questions
//! (`weir_service::questions`), and dividing permits among askers (`limits`).

use async_trait::async_trait;
use weir_ingest::Ingest;
use weir_service::questions::{Asker, Ended, QuestionHost, QuestionPermit};

use crate::limits::{FairPermits, Limits};
use crate::metrics::Metrics;

/// Permits for questions: waiting askers take turns.
pub struct AppQuestions {
    permits: FairPermits<Asker>,
    ingest: Ingest,
    metrics: Metrics,
}

impl AppQuestions {
    /// As many permits as the limits say.
    pub fn new(limits: &Limits, ingest: Ingest, metrics: Metrics) -> Self {
        let permits = FairPermits::new(limits.questions, limits.questions_waiting);
        Self { permits, ingest, metrics }
    }
}

#[async_trait]
impl QuestionHost for AppQuestions {
    async fn permit(&self, asker: Asker) -> Option<QuestionPermit> {
        let _waiting = Waiting::begin(&self.metrics);
        let permit = self.permits.acquire(asker).await.ok()?;
        Some(Box::new(permit))
    }

    fn lag_bytes(&self) -> u64 {
        self.ingest.live_lag_bytes()
    }

    fn ended(&self, ended: Ended) {
        self.metrics.count_question(ended);
    }
}

/// A question that waits, until it is dropped.
struct Waiting<'a>(&'a Metrics);

impl<'a> Waiting<'a> {
    fn begin(metrics: &'a Metrics) -> Self {
        metrics.query_waiting.inc();
        Self(metrics)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.query_waiting.dec();
    }
}
