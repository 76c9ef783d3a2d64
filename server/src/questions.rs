//! The connection between questions about events and the server: turns, and metrics.
//!
//! What belongs here: passing calls on. What does not: answering questions
//! (`weir_service::questions`), and dividing turns among organizations (`limits`).

use async_trait::async_trait;
use weir_ingest::Ingest;
use weir_model::OrganizationId;
use weir_service::questions::{Ended, QuestionHost, Turn};

use crate::limits::{FairPermits, Limits};
use crate::metrics::Metrics;

/// Turns of questions, in which organizations alternate.
pub struct AppQuestions {
    turns: FairPermits<OrganizationId>,
    ingest: Ingest,
    metrics: Metrics,
}

impl AppQuestions {
    /// As many turns at a time as the limits say.
    pub fn new(limits: &Limits, ingest: Ingest, metrics: Metrics) -> Self {
        let turns = FairPermits::new(limits.questions, limits.questions_waiting);
        Self { turns, ingest, metrics }
    }
}

#[async_trait]
impl QuestionHost for AppQuestions {
    async fn turn(&self, organization: OrganizationId) -> Option<Turn> {
        let _waiting = Waiting::begin(&self.metrics);
        let turn = self.turns.acquire(organization).await.ok()?;
        Some(Box::new(turn))
    }

    fn lag_bytes(&self) -> u64 {
        self.ingest.lag_bytes()
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
