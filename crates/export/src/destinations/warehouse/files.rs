//! Rows as files that are staged.
//!
//! What belongs here: when a file is full. What does not: its format (`encode`), which
//! values fit (`shape`, or another [`Fitting`]).

use bytes::Bytes;

use super::shape::Shape;
use crate::destination::{Altered, Failure};
use crate::encode::{Codec, Encoder, FileKind, Format};
use crate::rows::{Cell, Column};

/// Bytes at which a file is full: large enough for a warehouse to load efficiently, and
/// small enough to keep a few files in memory.
const FULL: u64 = 24 << 20;

/// Adapts rows to the destination before they are written.
pub(in crate::destinations) trait Fitting: Send + 'static {
    /// The columns of the files.
    fn columns(&self) -> &[Column];

    /// A row as it is written, with a cell for each of the columns.
    fn row(&mut self, row: Vec<Cell>) -> Vec<Cell>;

    /// The rows that were altered since the last call.
    fn altered(&mut self) -> Vec<Altered>;
}

impl Fitting for Shape {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn row(&mut self, row: Vec<Cell>) -> Vec<Cell> {
        Self::row(self, row)
    }

    fn altered(&mut self) -> Vec<Altered> {
        Self::altered(self)
    }
}

/// The writer of the files.
pub(in crate::destinations) struct Files<S = Shape> {
    /// `None` during an operation, and permanently after a failed one.
    work: Option<Work<S>>,
}

struct Work<S> {
    kind: FileKind,
    shape: S,
    file: Option<Encoder>,
    full: u64,
}

impl<S: Fitting> Files<S> {
    /// Begins the first file, in this format.
    pub(in crate::destinations) fn new(format: Format, shape: S) -> Result<Self, Failure> {
        let codec = match format {
            Format::JsonLines => Codec::Gzip,
            Format::Parquet => Codec::Zstd,
        };
        let kind = FileKind::new(format, Some(codec)).ok_or_else(interrupted)?;
        Ok(Self { work: Some(Work { kind, shape, file: None, full: FULL }) })
    }

    /// The columns of the files.
    pub(in crate::destinations) fn columns(&self) -> &[Column] {
        self.work.as_ref().map_or(&[], |work| work.shape.columns())
    }

    /// Adds rows. Returns the file if it is full.
    pub(in crate::destinations) async fn add(
        &mut self,
        rows: Vec<Vec<Cell>>,
    ) -> Result<Option<Bytes>, Failure> {
        self.apart(move |work| work.add(rows)).await
    }

    /// The rest of the rows as a file. `None` if there are no rows.
    pub(in crate::destinations) async fn rest(&mut self) -> Result<Option<Bytes>, Failure> {
        self.apart(Work::rest).await
    }

    /// The rows that were altered since the last call.
    pub(in crate::destinations) fn altered(&mut self) -> Vec<Altered> {
        self.work.as_mut().map(|work| work.shape.altered()).unwrap_or_default()
    }

    /// Runs an operation on a thread for blocking work.
    async fn apart(
        &mut self,
        what: impl FnOnce(&mut Work<S>) -> Result<Option<Bytes>, Failure> + Send + 'static,
    ) -> Result<Option<Bytes>, Failure> {
        let mut work = self.work.take().ok_or_else(interrupted)?;
        let working = tokio::task::spawn_blocking(move || {
            let done = what(&mut work);
            (work, done)
        });
        let (work, done) = working.await.map_err(|_| interrupted())?;
        self.work = Some(work);
        done
    }
}

fn interrupted() -> Failure {
    Failure::retryable("Interrupted", "The writing of a file was interrupted.")
}

impl<S: Fitting> Work<S> {
    fn add(&mut self, rows: Vec<Vec<Cell>>) -> Result<Option<Bytes>, Failure> {
        if rows.is_empty() {
            return Ok(None);
        }
        let rows: Vec<Vec<Cell>> = rows.into_iter().map(|row| self.shape.row(row)).collect();
        let mut file = match self.file.take() {
            Some(file) => file,
            None => Encoder::new(self.kind, self.shape.columns())?,
        };
        file.write(&rows)?;
        let is_full = file.size() >= self.full;
        self.file = Some(file);
        if is_full { self.rest() } else { Ok(None) }
    }

    fn rest(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some(file) = self.file.take() else { return Ok(None) };
        Ok(Some(file.finish()?.concat().into()))
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::destinations::warehouse::shape::Json;
    use crate::rows::Kind;

    #[tokio::test]
    async fn a_full_file_is_given_away_and_the_next_begins() {
        let column = Column { name: "a".to_owned(), kind: Kind::Integer };
        let shape = Shape::new(&[column], |_| Some(Json::Text)).unwrap();
        let mut files = Files::new(Format::Parquet, shape).unwrap();
        assert_eq!(files.rest().await.unwrap(), None);
        assert_eq!(files.add(Vec::new()).await.unwrap(), None);
        assert_eq!(files.rest().await.unwrap(), None);
        assert_eq!(files.add(vec![vec![Cell::Integer(1)]]).await.unwrap(), None);
        assert!(files.rest().await.unwrap().is_some());
        files.work.as_mut().unwrap().full = 1;
        assert!(files.add(vec![vec![Cell::Integer(2)]]).await.unwrap().is_some());
        assert_eq!(files.rest().await.unwrap(), None);
    }
}
