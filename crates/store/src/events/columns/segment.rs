//! A segment that is open to be read column by column.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use weir_segments::{Bits, ColumnName, Columns, Error as FileError, RowGroup};

use super::EventSnapshot;
use crate::erasures::Erased;
use crate::events::segments::SealedSegment;

/// An open segment. Its methods that read block the thread.
pub struct OpenSegment {
    sealed: SealedSegment,
    columns: Arc<Columns>,
    erased: Option<Arc<Erased>>,
}

impl OpenSegment {
    pub(super) fn of(
        snapshot: &EventSnapshot,
        sealed: &SealedSegment,
        columns: Arc<Columns>,
    ) -> Self {
        Self { sealed: sealed.clone(), columns, erased: snapshot.erased.clone() }
    }

    pub(super) fn sealed(&self) -> &SealedSegment {
        &self.sealed
    }

    /// The name of its file.
    pub fn file(&self) -> &str {
        &self.sealed.file
    }

    /// The partition of its events.
    pub fn partition(&self) -> u16 {
        self.sealed.partition
    }

    /// Its columns.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The rows of a group that are events of erased persons. The reader must omit them.
    /// `None`: there are none. Without an erasure nothing is read.
    ///
    /// # Errors
    /// When the file cannot be read, or is damaged: see [`open_replaced`](super::open_replaced).
    pub fn erased_rows(&self, group: RowGroup) -> Result<Option<Bits>, FileError> {
        let partition = self.sealed.partition;
        let erased = self.erased.as_deref();
        let Some(erased) = erased.filter(|erased| group.arrivals.0 <= erased.bound(partition))
        else {
            return Ok(None);
        };
        let mut reader = self.columns.group(group);
        let mut arrivals = Vec::new();
        reader.numbers(&ColumnName::Arrival, &mut arrivals)?;
        let mut rows = Bits::default();
        rows.reset(arrivals.len());
        reader.each_text(&ColumnName::DistinctId, |row, text| {
            let row = row as usize;
            let arrival = arrivals.get(row).map_or(0, |arrival| arrival.cast_unsigned());
            if erased.takes(partition, arrival, &String::from_utf8_lossy(text)) {
                rows.set(row);
            }
            ControlFlow::Continue(())
        })?;
        Ok((rows.count() > 0).then_some(rows))
    }
}

impl fmt::Debug for OpenSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenSegment").field("sealed", &self.sealed).finish_non_exhaustive()
    }
}
