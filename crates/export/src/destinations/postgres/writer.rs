//! Writes the rows of a run into the table.
//!
//! What belongs here: sending rows, and the order of the statements. What does not: the
//! statements (`Plan`), the connection (`session`).
//!
//! Events are copied directly into the table, part by part, each after a savepoint: that
//! is half the work of a temporary table. If a part violates a unique key, because an
//! earlier run wrote the same events, it is rolled back. This part and all later ones go
//! into the temporary table, from which they replace the present rows.

use std::pin::Pin;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::SinkExt as _;
use tokio_postgres::CopyInSink;
use weir_model::exports::ExportModel;

use super::coerce::fit;
use super::session::{CONSTRAINT, Session, answered};
use super::table::explained;
use super::{BOUNDS, Plan, STAGE, altered, of};
use crate::destination::{Altered, Failure, Writer};
use crate::rows::Batch;

/// Bytes that are sent at a time.
const CHUNK: usize = 256 << 10;
/// Bytes of a part. They are kept until the server has accepted the whole part.
const PART: usize = 8 << 20;

/// The writer of one run.
pub(super) struct PostgresWriter {
    session: Session,
    plan: Plan,
    copy: Option<Pin<Box<CopyInSink<Bytes>>>>,
    /// The bytes of the present part that were sent directly into the table. `None`: all
    /// further rows go into the temporary table.
    part: Option<Vec<Bytes>>,
    next: BytesMut,
    altered: Vec<Altered>,
}

impl PostgresWriter {
    /// Begins the transaction.
    pub(super) async fn begin(session: Session, plan: Plan) -> Result<Self, Failure> {
        // A distinct id can occur twice in a run, and only newer rows replace others.
        let part = match plan.model {
            ExportModel::Events => Some(Vec::new()),
            ExportModel::Persons => None,
        };
        let (next, altered) = (BytesMut::new(), Vec::new());
        let mut writer = Self { session, plan, copy: None, part, next, altered };
        match writer.part {
            Some(_) => writer.session.run("BEGIN").await?,
            None => writer.session.run(&format!("BEGIN; {}", writer.plan.stage())).await?,
        }
        writer.begin_copy().await?;
        Ok(writer)
    }

    async fn begin_copy(&mut self) -> Result<(), Failure> {
        let table = match self.part {
            Some(_) => {
                self.session.run("SAVEPOINT part").await?;
                self.plan.table.as_str()
            }
            None => STAGE,
        };
        self.copy = Some(self.session.copy(&self.plan.copy(table)).await?);
        Ok(())
    }

    /// Sends the encoded rows.
    async fn send(&mut self) -> Result<(), Failure> {
        let bytes = self.next.split().freeze();
        let sent = match &mut self.part {
            None => 0,
            Some(part) => {
                part.push(bytes.clone());
                part.iter().map(Bytes::len).sum()
            }
        };
        if !self.feed(bytes).await? {
            return self.flush().await;
        }
        if sent >= PART {
            if !self.end_copy().await? {
                return self.flush().await;
            }
            self.session.run("RELEASE SAVEPOINT part").await?;
            self.part = Some(Vec::new());
            self.begin_copy().await?;
        }
        Ok(())
    }

    /// Sends bytes. Returns `false` if a row of the part is in the table already.
    async fn feed(&mut self, bytes: Bytes) -> Result<bool, Failure> {
        let Some(copy) = &mut self.copy else { return Err(ended()) };
        match answered(copy.feed(bytes)).await? {
            Ok(()) => Ok(true),
            // The answer to the whole COPY has the reason.
            Err(error) => match self.end_copy().await? {
                true => Err(self.session.failure(error).await),
                false => Ok(false),
            },
        }
    }

    /// Ends the COPY. Returns `false` if a row of the part is in the table already.
    async fn end_copy(&mut self) -> Result<bool, Failure> {
        let Some(mut copy) = self.copy.take() else { return Err(ended()) };
        let Err(error) = answered(copy.as_mut().finish()).await? else { return Ok(true) };
        let failure = self.session.failure(error).await;
        match failure.class == CONSTRAINT && self.part.is_some() {
            true => Ok(false),
            false => Err(explained(failure, &self.plan.columns)),
        }
    }

    /// Rolls a part back and sends it to the temporary table.
    async fn flush(&mut self) -> Result<(), Failure> {
        let part = self.part.take().unwrap_or_default();
        let sql = format!("ROLLBACK TO SAVEPOINT part; {}", self.plan.stage());
        self.session.run(&sql).await?;
        self.begin_copy().await?;
        for bytes in part {
            self.feed(bytes).await?;
        }
        Ok(())
    }
}

fn ended() -> Failure {
    Failure::retryable("Internal", "The run was ended before.")
}

#[async_trait]
impl Writer for PostgresWriter {
    async fn write(&mut self, batch: Batch) -> Result<(), Failure> {
        for row in &batch.rows {
            for (at, column) in self.plan.columns.iter().enumerate() {
                if at > 0 {
                    self.next.extend_from_slice(b"\t");
                }
                let fitted = fit(of(row, column), column.found.target, BOUNDS);
                match &fitted.text {
                    Some(text) => push_copied(&mut self.next, text),
                    None => self.next.extend_from_slice(b"\\N"),
                }
                if let Some(what) = fitted.altered {
                    self.altered.push(altered(row, self.plan.uuid, column, what));
                }
            }
            self.next.extend_from_slice(b"\n");
            if self.next.len() >= CHUNK {
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
        if !self.end_copy().await? {
            self.flush().await?;
            self.end_copy().await?;
        }
        if self.part.is_none() {
            self.session.merge(&self.plan.insert()).await?;
        }
        self.session.run("COMMIT").await
    }

    async fn abort(&mut self) {
        self.copy = None;
        self.session.hang_up();
    }
}

/// Appends a value in the text format of COPY.
fn push_copied(out: &mut BytesMut, text: &str) {
    let mut from = 0;
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let escaped: &[u8] = match byte {
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            _ => continue,
        };
        out.extend_from_slice(bytes.get(from..at).unwrap_or_default());
        out.extend_from_slice(escaped);
        from = at + 1;
    }
    out.extend_from_slice(bytes.get(from..).unwrap_or_default());
}
