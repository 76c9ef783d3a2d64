//! Reading sealed blocks.
//!
//! A segment may be merged or removed between reading its row and opening its file. The
//! catalog is then read again. A file that is open stays readable, whatever happens to its
//! name.

use std::io::ErrorKind;
use std::path::PathBuf;

use weir_model::ProjectId;
use weir_segments::{BlockRows, Error as FileError, OwnedEvent, Segment};

use super::catalog::{self, SealedSegment};
use super::{lock, objects};
use crate::events::block::StoredEvent;
use crate::events::read::BlockRef;
use crate::{Result, Store};

/// The events of a sealed block; `None`: the block is in no segment.
///
/// # Errors
/// [`crate::Error::Damaged`] when the file is missing or damaged.
pub(in crate::events) async fn block(
    store: &Store,
    project: ProjectId,
    block_ref: BlockRef,
) -> Result<Option<Vec<StoredEvent>>> {
    let Some(found) = find(store, project, block_ref).await? else { return Ok(None) };
    let BlockRows { row, rows, .. } = found.rows;
    let events = found.read(store, move |segment| segment.block(row, rows)).await?;
    Ok(Some(events.into_iter().map(stored).collect()))
}

/// One event of a sealed block, by its index; `None`: there is none.
///
/// # Errors
/// As [`block`].
pub(in crate::events) async fn event(
    store: &Store,
    project: ProjectId,
    block_ref: BlockRef,
    index: u32,
) -> Result<Option<StoredEvent>> {
    let Some(found) = find(store, project, block_ref).await? else { return Ok(None) };
    let BlockRows { row, rows, .. } = found.rows;
    if index >= rows {
        return Ok(None);
    }
    let event = found.read(store, move |segment| segment.row(row + u64::from(index)));
    event.await.map(stored).map(Some)
}

/// A block that was found in a segment.
struct InSegment {
    segment: Segment,
    sealed: SealedSegment,
    rows: BlockRows,
}

impl InSegment {
    /// As [`read_from`].
    async fn read<T: Send + 'static>(
        self,
        store: &Store,
        work: impl Fn(&Segment) -> Result<T, FileError> + Clone + Send + 'static,
    ) -> Result<T> {
        read_from(store, &self.sealed, self.segment, work).await
    }
}

/// Reads a part of a segment. If the local copy is damaged, another one is read.
pub(super) async fn read_from<T: Send + 'static>(
    store: &Store,
    sealed: &SealedSegment,
    segment: Segment,
    work: impl Fn(&Segment) -> Result<T, FileError> + Clone + Send + 'static,
) -> Result<T> {
    let (segments, path) = (&store.segments, path_of(store, sealed));
    let again = work.clone();
    let mut done = segments.blocking(path.clone(), move || work(&segment)).await?;
    if matches!(done, Err(FileError::Damaged { .. }))
        && let Some(segment) = objects::fetch_again(store, sealed).await?
    {
        done = segments.blocking(path, move || again(&segment)).await?;
    }
    done.map_err(|error| segments.error(error))
}

/// The segment with a block, and the rows of the block.
async fn find(
    store: &Store,
    project: ProjectId,
    (partition, first): BlockRef,
) -> Result<Option<InSegment>> {
    if store.segments.files.is_none() {
        return Ok(None);
    }
    let mut missing: Option<String> = None;
    loop {
        let end = first.saturating_add(1);
        let sealed = catalog::newest_before(store, project, partition, end).await?;
        let Some(sealed) = sealed.filter(|sealed| sealed.last >= first) else { return Ok(None) };
        if let Some(segment) = open(store, &sealed).await? {
            let blocks = segment.blocks();
            let at = blocks.binary_search_by_key(&first, |block| block.first).ok();
            let rows = at.and_then(|at| blocks.get(at)).copied();
            return Ok(rows.map(|rows| InSegment { segment, sealed, rows }));
        }
        // The name of a file is never used again: if the catalog still names it, it was not
        // merged.
        if missing.is_some_and(|missing| missing == sealed.file) {
            return Err(absent(store, &sealed));
        }
        missing = Some(sealed.file);
    }
}

/// Opens a segment, and fetches it first if it is in the bucket alone; `None`: its file or
/// its checksums do not exist.
pub(super) async fn open(store: &Store, sealed: &SealedSegment) -> Result<Option<Segment>> {
    let segments = &store.segments;
    let Some(files) = &segments.files else { return Ok(None) };
    if let Some(objects) = &segments.objects {
        objects.used(&sealed.file);
    }
    if let Some(segment) = lock(&segments.open).get(&sealed.file) {
        return Ok(Some(segment.clone()));
    }
    let Some(sums) = catalog::sums(store, &sealed.file).await? else { return Ok(None) };
    let path = files.path(&sealed.file);
    let (file, bytes, of) = (path.clone(), sealed.bytes, sums.clone());
    let opened = segments.blocking(path.clone(), move || Segment::open(&file, bytes, &of));
    let segment = match opened.await? {
        Ok(segment) => segment,
        Err(FileError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            match objects::fetch(store, sealed, &sums).await? {
                Some(segment) => segment,
                None => return Ok(None),
            }
        }
        Err(error @ FileError::Damaged { .. }) => {
            match objects::fetch_again(store, sealed).await? {
                Some(segment) => segment,
                None => return Err(segments.error(error)),
            }
        }
        Err(error) => return Err(segments.error(error)),
    };
    lock(&segments.open).insert(sealed.file.clone(), segment.clone());
    Ok(Some(segment))
}

/// The error for a segment whose file does not exist.
pub(super) fn absent(store: &Store, sealed: &SealedSegment) -> crate::Error {
    let path = path_of(store, sealed);
    let detail = format!("{} does not exist, or its checksums", path.display());
    store.segments.damaged(path, detail)
}

fn path_of(store: &Store, sealed: &SealedSegment) -> PathBuf {
    match &store.segments.files {
        Some(files) => files.path(&sealed.file),
        None => sealed.file.clone().into(),
    }
}

pub(super) fn stored(event: OwnedEvent) -> StoredEvent {
    let OwnedEvent {
        arrival,
        uuid,
        event,
        distinct_id,
        timestamp,
        received_at,
        properties,
        elements_chain,
        historical,
        warnings,
    } = event;
    StoredEvent {
        arrival,
        uuid,
        event,
        distinct_id,
        timestamp,
        received_at,
        properties,
        elements_chain,
        historical,
        warnings,
    }
}
