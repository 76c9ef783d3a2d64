//! Merging neighbouring segments, so that there are few files.
//!
//! The new file is written and synced first. One transaction replaces the rows of the old
//! files by its row, and one commit of the log shows it to other engines (`table`). The old
//! files are removed later, because other engines may still read an older version of the
//! table. A reader that has found an old row and no file reads the catalog again.
//!
//! What belongs here: which segments are merged. What does not: how (`weir-segments`), and
//! merging runs (`runs`).

use std::path::Path;
use std::sync::Arc;

use weir_model::{ProjectId, Timestamp};
use weir_segments::{Segment, Written, segment};

use super::catalog::{self, SealedSegment, Segments};
use super::objects::Objects;
use super::runs::remove;
use super::seal::options;
use super::{change, lock, objects, read, table};
use crate::db::Operation;
use crate::disk::DiskLevel;
use crate::events::block::Span;
use crate::transaction::Transaction;
use crate::{Error, Result, Store};

/// Neighbours of one level that are merged into one of the next level.
const FAN_IN: usize = 16;
/// Most events of a merged segment.
const EVENTS: u64 = 1 << 20;
/// Most bytes in the files of the segments of one merge.
const BYTES: u64 = 512 << 20;
/// Most time between the latest events of the segments of one merge, microseconds. Retention
/// removes a segment when its latest event is old enough, so a larger value keeps old events
/// for longer.
const SPREAD: i64 = 31 * 86_400_000_000;

/// How long files that a merge or an erasure has replaced are kept at least, microseconds.
const KEPT_FOR: i64 = 600_000_000;

const MERGE: Operation = Operation::write("merge event segments");

/// Bounds of a merged segment.
#[derive(Debug, Clone, Copy)]
pub(in crate::events) struct Bounds {
    /// Neighbours of one level that are merged.
    pub(in crate::events) fan_in: usize,
    /// Events of a segment.
    pub(in crate::events) events: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { fan_in: FAN_IN, events: EVENTS }
    }
}

/// The segments that a call of [`merge_segments`] merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergedSegments {
    /// The number of segments that were merged.
    pub segments: usize,
    /// The number of events in them.
    pub events: u64,
    /// Bytes of the new file.
    pub bytes: u64,
}

/// Merges neighbouring segments into one, of about a million events at most. `None`: no
/// segments are to be merged.
///
/// Each call continues after the segments of the call before. After the last segment, the
/// calls begin again at the first, until a pass over all segments merges none.
///
/// # Errors
/// [`Error::DiskLow`] when the disk is low, [`Error::File`] when a file cannot be read or
/// written, and errors of the store. The next call continues after these segments. A damaged
/// segment stays as it is.
pub async fn merge_segments(store: &Store, now: Timestamp) -> Result<Option<MergedSegments>> {
    merge_segments_within(store, now, Bounds::default()).await
}

pub(in crate::events) async fn merge_segments_within(
    store: &Store,
    now: Timestamp,
    bounds: Bounds,
) -> Result<Option<MergedSegments>> {
    let is_usable = |objects: &Objects| objects.is_usable();
    if store.segments.files.is_none() || !store.segments.objects.as_ref().is_none_or(is_usable) {
        return Ok(None);
    }
    change(store, move |store| async move {
        while let Some(group) = due(&store, bounds).await? {
            if store.db.disk().check() == DiskLevel::Low {
                return Err(Error::DiskLow);
            }
            let mut merged = merge_group(&store, &group, now).await;
            if let Err(Error::Damaged { file, .. }) = &merged
                && fetch_again(&store, &group, file).await?
            {
                merged = merge_group(&store, &group, now).await;
            }
            match merged {
                Ok(done) => {
                    lock(&store.segments.merge_progress).has_merged = true;
                    return Ok(Some(done));
                }
                Err(error) => {
                    let names = group.iter().map(|segment| &segment.file);
                    store.segments.leave_out(error, names)?;
                }
            }
        }
        Ok(None)
    })
    .await
}

/// The progress of a pass over all segments.
#[derive(Debug, Default)]
pub(super) struct MergeProgress {
    /// Project, partition and last arrival number of the segments that were merged last.
    after: Option<(ProjectId, u16, u64)>,
    /// Whether the pass has merged segments, so that there may be more of the next level.
    has_merged: bool,
}

/// The next segments that are to be merged. `None`: a pass over all segments merged none.
async fn due(store: &Store, bounds: Bounds) -> Result<Option<Vec<SealedSegment>>> {
    loop {
        let after = lock(&store.segments.merge_progress).after;
        let group = due_after(store, bounds, after).await?;
        let mut progress = lock(&store.segments.merge_progress);
        progress.after = group
            .as_ref()
            .and_then(|group| group.last())
            .map(|segment| (segment.project, segment.partition, segment.last));
        if group.is_some() || !std::mem::take(&mut progress.has_merged) {
            return Ok(group);
        }
    }
}

/// The first segments that are to be merged, of those after `after`.
async fn due_after(
    store: &Store,
    bounds: Bounds,
    after: Option<(ProjectId, u16, u64)>,
) -> Result<Option<Vec<SealedSegment>>> {
    let mut all = match after {
        Some(after) => Segments::after(store, after).await?,
        None => Segments::all(store).await?,
    };
    let mut group: Vec<SealedSegment> = Vec::new();
    while let Some(some) = all.next(store).await? {
        for next in some {
            let of = |segment: &SealedSegment| (segment.project, segment.partition, segment.level);
            let is_neighbour = group.last().is_some_and(|last| of(last) == of(&next));
            let events: u64 = group.iter().map(|segment| segment.rows).sum();
            let bytes: u64 = group.iter().map(|segment| segment.bytes).sum();
            let latest = || group.iter().map(|segment| segment.times.to);
            let (oldest, newest) = (latest().min(), latest().max());
            let is_near = oldest.is_none_or(|at| next.times.to.saturating_sub(at) <= SPREAD)
                && newest.is_none_or(|at| at.saturating_sub(next.times.to) <= SPREAD);
            let fits =
                is_near && events + next.rows <= bounds.events && bytes + next.bytes <= BYTES;
            if is_neighbour && !fits && group.len() > 1 {
                return Ok(Some(group));
            }
            if !is_neighbour || !fits {
                group.clear();
            }
            if store.segments.is_unreadable(&next.file) {
                group.clear();
                continue;
            }
            group.push(next);
            if group.len() >= bounds.fan_in {
                return Ok(Some(group));
            }
        }
    }
    Ok(None)
}

/// Whether the damaged file was a local copy of one of these segments, and was replaced.
async fn fetch_again(store: &Store, group: &[SealedSegment], damaged: &Path) -> Result<bool> {
    let Some(files) = &store.segments.files else { return Ok(false) };
    match group.iter().find(|sealed| files.path(&sealed.file) == damaged) {
        Some(sealed) => Ok(objects::fetch_again(store, sealed).await?.is_some()),
        None => Ok(false),
    }
}

/// Writes the file of one merge and replaces the rows of a group of segments.
async fn merge_group(
    store: &Store,
    group: &[SealedSegment],
    now: Timestamp,
) -> Result<MergedSegments> {
    let segments = &store.segments;
    let (Some(files), Some(first), Some(last)) = (&segments.files, group.first(), group.last())
    else {
        return Err(Error::Stopped);
    };
    let mut inputs = Vec::with_capacity(group.len());
    for sealed in group {
        let open = read::open(store, sealed).await?;
        inputs.push(open.ok_or_else(|| read::absent(store, sealed))?);
    }
    let (of, project, partition) = (files.clone(), first.project, first.partition);
    let range = (first.first, last.last);
    let mut columns = catalog::columns(store, project).await?;
    let options = options(columns.clone());
    let written = segments.blocking(files.path(""), move || {
        let file = of.new_segment(project, partition, range)?;
        let path = file.path();
        let inputs: Vec<&Segment> = inputs.iter().collect();
        let written = segment::merge(&inputs, &path, &options)?;
        let open = Segment::open(&path, written.bytes, &written.sums)?;
        Ok((file, written, open))
    });
    let (file, written, open) = written.await?.map_err(|error| segments.error(error))?;
    let Written { rows, bytes, from_time, to_time, typed, sums, .. } = written;
    if rows != group.iter().map(|segment| segment.rows).sum::<u64>() {
        let path = file.path();
        let detail = format!("{} has another number of events", path.display());
        return Err(segments.damaged(path, detail));
    }
    let uploaded = objects::upload(store, file.name(), &file.path(), bytes).await?;
    let merged = SealedSegment {
        project,
        partition,
        first: first.first,
        last: last.last,
        rows,
        bytes,
        file: file.keep(),
        times: Span { from: from_time, to: to_time },
        sealed_at: now.micros(),
        level: first.level.saturating_add(1),
    };
    let keyspace = store.db.keyspace().await?;
    let mut new = vec![merged.row(keyspace)?, merged.sums_row(keyspace, sums)?];
    new.extend(catalog::add_columns(&mut columns, typed, keyspace, project)?);
    let (new, log) = (Arc::new(new), table::begin(store, project));
    // The first one has the id of the new row.
    let old = group.iter().skip(1).map(|segment| Ok(segment.key(keyspace)?.into_bytes()));
    let mut old = old.collect::<Result<Vec<_>>>()?;
    for segment in group {
        old.push(segment.sums_key(keyspace)?.into_bytes());
    }
    let old = Arc::new(old);
    let work = move |tx: Transaction| {
        let (new, old) = (Arc::clone(&new), Arc::clone(&old));
        async move {
            tx.delete(&old).await?;
            for row in new.iter() {
                tx.set(row).await?;
            }
            Ok(())
        }
    };
    let replaced = group.iter().map(|segment| &segment.file);
    // Before the catalog loses them.
    let mut former = Vec::with_capacity(group.len());
    for file in replaced.clone() {
        former.extend(catalog::sums(store, file).await?.map(|sums| (file.clone(), sums)));
    }
    lock(&segments.former_sums).extend(former);
    if let Err(error) = store.db.transact(MERGE, (), work).await {
        segments.forget_sums(replaced);
        return Err(error);
    }
    uploaded.named();
    lock(&segments.open).insert(merged.file.clone(), open);
    log.commit(store, columns, group, &[merged], now).await;
    segments.close(replaced.clone());
    let replaced = replaced.map(|file| (file.clone(), now.micros()));
    lock(&segments.replaced).extend(replaced);
    Ok(MergedSegments { segments: group.len(), events: rows, bytes })
}

/// Removes files that a merge replaced more than [`KEPT_FOR`] ago. A start removes all of them.
pub(in crate::events) async fn remove_replaced(store: &Store, now: Timestamp) -> Result<()> {
    let is_due = |_: &str, at: i64| now.micros().saturating_sub(at) >= KEPT_FOR;
    remove(store, store.segments.take_replaced(is_due)).await
}
