//! The rows of a run in the mode COPY: first in files, then in the table.
//!
//! ```text
//! rows -> texts -> files -> bucket, a few at a time -> manifest
//!      -> BEGIN, temporary table, COPY, DELETE and INSERT … SELECT, COMMIT -> bucket cleared
//! ```
//!
//! What belongs here: that order, which values fit into a line, which files stay in the
//! bucket. What does not: statements (`Plan`, `copy`), when a file is full and the order
//! of uploads (`warehouse`).
//!
//! An interrupted run leaves nothing in the table. Its next attempt overwrites the files
//! in the bucket and removes those that it does not need.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream;
use weir_egress::Egress;

use super::copy::{Staging, meaning};
use super::{BOUNDS, LONG_JSON, Plan, TEXT_MAX};
use crate::destination::{Altered, Failure};
use crate::destinations::files::Storage as _;
use crate::destinations::postgres::{
    Credentials, Matched, Session, Target, altered, explained, fit, of,
};
use crate::destinations::warehouse::files::{Files, Fitting};
use crate::destinations::warehouse::staged::{Stage, StagedWriter};
use crate::encode::Format;
use crate::rows::{Cell, Column, Kind};

/// Upper bound of bytes in a line: the limit of COPY for one object, without its braces.
const LINE_MAX: usize = 4_000_000;
const LONG_LINE: &str = "it would make the row larger than 4 MB and was omitted";
/// Files that are removed concurrently.
const CONCURRENT: usize = 8;

/// The staged files of a run.
pub(super) struct Waiting {
    pub(super) egress: Egress,
    pub(super) credentials: Arc<Credentials>,
    pub(super) staging: Arc<Staging>,
    pub(super) plan: Plan,
    /// The directory of the files.
    pub(super) directory: String,
}

impl Waiting {
    /// The writer of a run. The bucket is first contacted with the first file.
    pub(super) fn writer(self) -> Result<StagedWriter<Self, Texts>, Failure> {
        let files = Files::new(Format::JsonLines, Texts::of(&self.plan))?;
        Ok(StagedWriter::new(self, files, false))
    }

    /// Copies the rows from the bucket into the table.
    async fn load(&self, manifest: &str) -> Result<(), Failure> {
        let mut session = Session::open(&self.egress, &self.credentials).await?;
        session.run(&format!("BEGIN; {}", self.plan.stage())).await?;
        let copy = self.staging.statement(&self.plan.names(), manifest);
        let copied = session.merge_explained(&copy, meaning).await;
        copied.map_err(|failure| explained(failure, &self.plan.columns))?;
        for statement in self.plan.merge() {
            session.merge(&statement).await?;
        }
        session.run("COMMIT").await
    }

    fn file(&self, number: u32) -> String {
        format!("{}/{number:05}.json.gz", self.directory)
    }

    fn manifest(&self) -> String {
        format!("{}/manifest", self.directory)
    }
}

#[async_trait]
impl Stage for Waiting {
    async fn upload(&self, number: u32, file: Bytes) -> Result<(), Failure> {
        self.staging.store.put(&self.file(number), vec![file]).await
    }

    async fn load_files(&self, files: u32) -> Result<(), Failure> {
        if files == 0 {
            return Ok(());
        }
        let manifest = self.manifest();
        let names: Vec<String> = (0..files).map(|number| self.file(number)).collect();
        self.staging.store.put(&manifest, vec![self.staging.manifest(&names)]).await?;
        self.load(&manifest).await?;
        self.clear(files).await;
        Ok(())
    }

    /// Also removes files that only an earlier attempt had. Remaining files do no harm,
    /// so this never fails the run.
    async fn clear(&self, files: u32) {
        let store = &self.staging.store;
        let names = (0..files).map(|number| self.file(number)).chain([self.manifest()]);
        let removing = stream::iter(names).for_each_concurrent(CONCURRENT, |name| async move {
            if let Err(failure) = store.remove(&name).await {
                tracing::warn!(%failure, name, "a file of a run stays in the bucket");
            }
        });
        removing.await;
        for number in files.. {
            let name = self.file(number);
            let removed = match store.has(&name).await {
                Ok(true) => store.remove(&name).await,
                Ok(false) => break,
                Err(failure) => Err(failure),
            };
            if let Err(failure) = removed {
                // Credentials that may only write and remove cannot look for files.
                tracing::debug!(%failure, name, "cannot look for files of an earlier try");
                break;
            }
        }
    }
}

/// Makes every cell a text or null. COPY reads every type from text, and numbers keep
/// their digits.
pub(super) struct Texts {
    columns: Vec<Column>,
    matched: Vec<Matched>,
    uuid: Option<usize>,
    altered: Vec<Altered>,
}

impl Texts {
    fn of(plan: &Plan) -> Self {
        let column =
            |column: &Matched| Column { name: column.found.name.clone(), kind: Kind::Text };
        Self {
            columns: plan.columns.iter().map(column).collect(),
            matched: plan.columns.clone(),
            uuid: plan.uuid,
            altered: Vec::new(),
        }
    }
}

impl Fitting for Texts {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn row(&mut self, row: Vec<Cell>) -> Vec<Cell> {
        let mut cells = Vec::with_capacity(self.matched.len());
        let mut line = 0;
        for column in &self.matched {
            let fitted = fit(of(&row, column), column.found.target, BOUNDS);
            let mut what = fitted.altered;
            // The name, its quotation marks, and the separators.
            line += column.found.name.len() + 6;
            let cell = match fitted.text {
                None => Cell::Null,
                Some(text) if column.found.target == Target::Json && text.len() > TEXT_MAX => {
                    what = Some(LONG_JSON);
                    Cell::Null
                }
                Some(text) => {
                    let size = written(&text);
                    if line + size > LINE_MAX {
                        what = Some(LONG_LINE);
                        Cell::Null
                    } else {
                        line += size;
                        Cell::Text(text.into_owned())
                    }
                }
            };
            cells.push(cell);
            if let Some(what) = what {
                self.altered.push(altered(&row, self.uuid, column, what));
            }
        }
        cells
    }

    fn altered(&mut self) -> Vec<Altered> {
        std::mem::take(&mut self.altered)
    }
}

/// Bytes of a text as a JSON string, without its quotation marks.
fn written(text: &str) -> usize {
    let size = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        0..=0x1f => 6,
        _ => 1,
    };
    text.bytes().map(size).sum()
}

#[cfg(test)]
mod tests;
