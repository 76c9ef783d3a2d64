//! The mode INSERT: rows as statements, in one transaction.
//!
//! What belongs here: when a statement is full, and the order of the statements. What
//! does not: the text of statements (`Plan`).

use async_trait::async_trait;

use super::Plan;
use crate::destination::{Altered, Failure, Writer};
use crate::destinations::postgres::{Session, explained};
use crate::rows::Batch;

/// Bytes of a statement: a quarter of the limit, because one row can be large.
const STATEMENT: usize = 4 << 20;

/// The writer of one run.
pub(super) struct InsertWriter {
    session: Session,
    plan: Plan,
    /// The statement that is being built.
    next: String,
    altered: Vec<Altered>,
}

impl InsertWriter {
    /// Begins the transaction.
    pub(super) async fn begin(mut session: Session, plan: Plan) -> Result<Self, Failure> {
        session.run(&format!("BEGIN; {}", plan.stage())).await?;
        Ok(Self { session, plan, next: String::new(), altered: Vec::new() })
    }

    async fn send(&mut self) -> Result<(), Failure> {
        if self.next.is_empty() {
            return Ok(());
        }
        let sql = std::mem::take(&mut self.next);
        let ran = self.session.run(&sql).await;
        ran.map_err(|failure| explained(failure, &self.plan.columns))
    }
}

#[async_trait]
impl Writer for InsertWriter {
    async fn write(&mut self, batch: Batch) -> Result<(), Failure> {
        for row in &batch.rows {
            match self.next.is_empty() {
                true => self.next.push_str(&self.plan.head()),
                false => self.next.push(','),
            }
            self.plan.push_row(&mut self.next, row, &mut self.altered);
            if self.next.len() >= STATEMENT {
                self.send().await?;
            }
        }
        Ok(())
    }

    fn altered(&mut self) -> Vec<Altered> {
        std::mem::take(&mut self.altered)
    }

    async fn finish(&mut self) -> Result<(), Failure> {
        self.send().await?;
        for statement in self.plan.merge() {
            self.session.merge(&statement).await?;
        }
        self.session.run("COMMIT").await
    }

    async fn abort(&mut self) {
        self.next.clear();
        self.session.hang_up();
    }
}
