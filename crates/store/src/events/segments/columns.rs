//! Segments that are open to be read column by column.
//!
//! A merge or an erasure replaces the file of a segment, and the new file has other groups of
//! rows. So a reader that knows the old file reads the old one: to its end if it is open, and
//! if a merge has replaced it, until it is removed. Otherwise the segment is gone for the
//! reader, who then asks again which segments there are.
//!
//! What belongs here: opening, and what is kept open. What does not: which segments a
//! question reads (`events/columns`), and their values (`weir-segments`).

use std::io::ErrorKind;
use std::sync::Arc;

use weir_segments::{Columns, Error as FileError, Segment, TypedColumn};

use super::catalog::{self, SealedSegment};
use super::read::{absent, open, read_from};
use super::{lock, objects};
use crate::{Result, Store};

/// The columns of a segment, which is fetched first if it is in the bucket alone. `known` are
/// the typed columns of the project. `None`: the segment is gone.
///
/// # Errors
/// [`crate::Error::Damaged`] when the file is missing or damaged, and errors of the bucket and
/// of the store.
pub(in crate::events) async fn open_columns(
    store: &Store,
    sealed: &SealedSegment,
    known: &[TypedColumn],
) -> Result<Option<Arc<Columns>>> {
    let segments = &store.segments;
    let kept = lock(&segments.columns).get(&sealed.file).map(Arc::clone);
    if let Some(columns) = kept {
        if let Some(objects) = &segments.objects {
            objects.used(&sealed.file);
        }
        return Ok(Some(columns));
    }
    let segment = match open(store, sealed).await? {
        Some(segment) => Some(segment),
        None => open_merged(store, sealed).await?,
    };
    if let Some(segment) = segment {
        return keep(store, sealed, segment, known).await.map(Some);
    }
    match is_listed(store, sealed).await? {
        true => Err(absent(store, sealed)),
        false => Ok(None),
    }
}

/// The same after a group of rows could not be read because of `error`: the columns of a sound
/// copy, if the local one was damaged and there is another.
///
/// # Errors
/// `error` as one of the store, which is logged and counted, if there is no sound copy; and
/// those of [`open_columns`].
pub(in crate::events) async fn open_columns_again(
    store: &Store,
    sealed: &SealedSegment,
    known: &[TypedColumn],
    error: FileError,
) -> Result<Arc<Columns>> {
    if matches!(error, FileError::Damaged { .. })
        && let Some(segment) = objects::fetch_again(store, sealed).await?
    {
        return keep(store, sealed, segment, known).await;
    }
    Err(store.segments.error(error))
}

/// Opens the file of a segment that a merge has replaced; `None`: it is not here any more.
async fn open_merged(store: &Store, sealed: &SealedSegment) -> Result<Option<Segment>> {
    let segments = &store.segments;
    let sums = lock(&segments.former_sums).get(&sealed.file).cloned();
    let (Some(files), Some(sums)) = (&segments.files, sums) else { return Ok(None) };
    let (path, bytes) = (files.path(&sealed.file), sealed.bytes);
    let file = path.clone();
    let opened = segments.blocking(path, move || Segment::open(&file, bytes, &sums));
    match opened.await? {
        Err(FileError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some).map_err(|error| segments.error(error)),
    }
}

/// Reads the columns of an open segment, and keeps them open.
async fn keep(
    store: &Store,
    sealed: &SealedSegment,
    segment: Segment,
    known: &[TypedColumn],
) -> Result<Arc<Columns>> {
    let known = known.to_vec();
    let work = move |segment: &Segment| segment.columns(&known);
    let columns = Arc::new(read_from(store, sealed, segment, work).await?);
    lock(&store.segments.columns).insert(sealed.file.clone(), Arc::clone(&columns));
    Ok(columns)
}

/// Whether the catalog has this file.
async fn is_listed(store: &Store, sealed: &SealedSegment) -> Result<bool> {
    let end = sealed.first.saturating_add(1);
    let found = catalog::newest_before(store, sealed.project, sealed.partition, end).await?;
    Ok(found.is_some_and(|found| found.file == sealed.file))
}
