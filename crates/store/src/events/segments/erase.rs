//! Removing the events of erased persons from blocks that are not sealed, and from segments.
//!
//! A block keeps its id. A block that has no event any more goes away, with its summary and
//! what leads to it. Uuids stay, so that an event that is sent again is still refused: the
//! index says of an event of an open block that it was erased, and the summary of a sealed
//! block says that its events may be at lower indexes than the runs say.
//!
//! A segment is written again as in a merge (`merge`): the new file is complete before one
//! transaction replaces the old row by its row. That transaction changes summaries
//! and counts too. The old file is removed later. A crash leaves files without rows, which
//! the next start removes, or pointers that are missing although their events, which are not
//! shown, still exist.
//!
//! An open block may be in the memory of its consumer. Its head says how often events were
//! erased from it, and a batch that was planned from another state is refused
//! (`events/apply`).
//!
//! What belongs here: removing events. What does not: which events those are (`erasures`),
//! and the order of the work (`erasures/work`).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use surrealdb::types::{Bytes, SurrealValue};
use weir_model::{ProjectId, Timestamp};
use weir_segments::{BlockRows, OwnedEvent, Segment, Written, segment};

use super::catalog::{self, SealedSegment, Segments as Catalog};
use super::files::Unlisted;
use super::read::stored;
use super::retention::{add_removed, unsealed};
use super::seal::options;
use super::{change, lock, objects, read, table};
use crate::counts::{EventCounts, Subtracted, Uncounted};
use crate::db::{Failure, Operation};
use crate::disk::DiskLevel;
use crate::erasures::{Erased, note_removed};
use crate::events::apply::Head;
use crate::events::block::{BlockBuilder, Span, StoredEvent, Summary, decode};
use crate::events::read::BlockRef;
use crate::events::uuids::{self, ERASED, Place, Placed};
use crate::events::{PARTITIONS, keys};
use crate::transaction::{Keyspace, Row, RowKey, Transaction};
use crate::{Error, Result, Store};

/// Events that are erased from a segment at a time. Their counts and pointers are in memory,
/// and their counts are changed in one transaction.
const MOST: usize = 20_000;
/// Summaries that one transaction reads.
const SUMMARIES_AT_A_TIME: u32 = 128;
/// Pointers that one transaction removes.
const CHUNK: usize = 1_000;

const SUMMARY: Operation = Operation::read("summary of a block to erase from");
const SUMMARIES: Operation = Operation::read("summaries of blocks to erase from");
const BLOCK: Operation =
    Operation::delete("erase events of a block").within(Duration::from_secs(60));
const POINTERS: Operation = Operation::delete("erase pointers to events");
const SEGMENT: Operation =
    Operation::delete("erase events of a segment").within(Duration::from_secs(120));

#[derive(SurrealValue)]
struct BlockRow {
    data: Bytes,
}

#[derive(SurrealValue)]
struct FileRow {
    file: String,
}

/// What erasing leaves of a block.
struct Rest {
    kept: Vec<StoredEvent>,
    gone: Vec<StoredEvent>,
    /// The events of each erasure.
    of_erasures: BTreeMap<usize, i64>,
    /// Pointers to the block that no event needs any more: width and bucket.
    pointers: Vec<(i64, i64)>,
}

impl Rest {
    fn of((partition, _): BlockRef, events: Vec<StoredEvent>, erased: &Erased) -> Self {
        let (mut kept, mut gone, mut of_erasures) = (Vec::new(), Vec::new(), BTreeMap::new());
        for event in events {
            match erased.taken_by(partition, event.arrival, &event.distinct_id) {
                Some(erasure) => {
                    *of_erasures.entry(erasure).or_default() += 1;
                    gone.push(event);
                }
                None => kept.push(event),
            }
        }
        let mut pointers = Vec::new();
        for width in keys::WIDTHS {
            let buckets = |events: &[StoredEvent]| -> BTreeSet<i64> {
                events.iter().map(|event| keys::bucket(event.timestamp, width)).collect()
            };
            let (needed, before) = (buckets(&kept), buckets(&gone));
            pointers.extend(before.difference(&needed).map(|bucket| (width, *bucket)));
        }
        Self { kept, gone, of_erasures, pointers }
    }

    /// Counts the events that went away, as far as they are counted. Those of all events of
    /// a person went away with it.
    fn subtract(
        &self,
        counts: &mut EventCounts,
        project: ProjectId,
        block_ref: BlockRef,
        uncounted: &Uncounted,
    ) {
        let is_counted = |event: &&StoredEvent| !uncounted.contains(block_ref, event.arrival);
        let counted = self.gone.iter().filter(is_counted);
        counted.for_each(|event| counts.add_stored_to_groups(project, event));
    }

    /// The keys of pointers that no event needs any more.
    fn pointer_keys(
        &self,
        keyspace: Keyspace,
        project: ProjectId,
        (partition, first): BlockRef,
    ) -> Result<Vec<Vec<u8>>> {
        let key = |(width, bucket): &(i64, i64)| {
            let id = keys::time(project, *width, *bucket, partition, first);
            Ok(keyspace.key(id)?.into_bytes())
        };
        self.pointers.iter().map(key).collect()
    }
}

/// Removes the erased events of all blocks of a project that are not sealed.
///
/// # Errors
/// [`Error::Shape`] when a block is damaged, after the others are done; errors of the store.
pub(crate) async fn erase_blocks(
    store: &Store,
    project: ProjectId,
    erased: &Arc<Erased>,
) -> Result<()> {
    let mut damage = Ok(());
    for partition in 0..PARTITIONS {
        let end = erased.bound(partition).saturating_add(1);
        for first in unsealed(store, project, partition, (0, end)).await? {
            match erase_if_concerned(store, project, (partition, first), erased).await {
                Err(error @ Error::Shape { .. }) => damage = damage.and(Err(error)),
                done => done?,
            }
        }
    }
    damage
}

async fn erase_if_concerned(
    store: &Store,
    project: ProjectId,
    block_ref: BlockRef,
    erased: &Arc<Erased>,
) -> Result<()> {
    let (partition, first) = block_ref;
    let id = keys::summary(project, partition, first);
    let summary = store.db.get_one::<Summary>(SUMMARY, id).await?;
    // A block without a summary is being removed.
    if !summary.is_some_and(|summary| erased.may_concern(&summary)) {
        return Ok(());
    }
    let erased = Arc::clone(erased);
    let work =
        move |store: Store| async move { erase_block(&store, project, block_ref, erased).await };
    change(store, work).await
}

async fn erase_block(
    store: &Store,
    project: ProjectId,
    block_ref: BlockRef,
    erased: Arc<Erased>,
) -> Result<()> {
    let keyspace = store.db.keyspace().await?;
    let uncounted = Arc::new(Uncounted::of(store, project).await?);
    let work = move |tx: Transaction| {
        let (erased, uncounted) = (Arc::clone(&erased), Arc::clone(&uncounted));
        async move {
            let block = OpenBlock { keyspace, project, block_ref };
            block.erase(&tx, &erased, &uncounted).await
        }
    };
    if store.db.transact(BLOCK, (), work).await? {
        store.blocks.forget(project);
    }
    Ok(())
}

/// A block that is not sealed.
struct OpenBlock {
    keyspace: Keyspace,
    project: ProjectId,
    block_ref: BlockRef,
}

impl OpenBlock {
    /// Returns whether it had erased events.
    async fn erase(
        &self,
        tx: &Transaction,
        erased: &Erased,
        uncounted: &Uncounted,
    ) -> Result<bool, Failure> {
        let Self { keyspace, project, block_ref } = *self;
        let (partition, first) = block_ref;
        let block = keyspace.key(keys::block(project, partition, first))?;
        // It may be sealed or removed meanwhile.
        let Some(row) = tx.get_for_update::<BlockRow>(&block).await? else { return Ok(false) };
        let rest = Rest::of(block_ref, decode(&row.data)?, erased);
        if rest.gone.is_empty() {
            return Ok(false);
        }
        let head = keys::head(project, partition);
        let found: Option<Head> = tx.get_for_update(&keyspace.key(head.clone())?).await?;
        if let Some(mut found) = found
            && u64::try_from(found.newest).ok() == Some(first)
        {
            found.erased = Some(found.erased.unwrap_or(0).saturating_add(1));
            tx.set(&keyspace.row(head, found.into_value())?).await?;
        }
        let summary = keys::summary(project, partition, first);
        match BlockBuilder::remainder(project, first, &rest.kept)? {
            Some(remainder) => {
                let (data, content) = remainder.finish()?;
                let data = BlockRow { data: Bytes::from(data) };
                let id = keys::block(project, partition, first);
                tx.set(&keyspace.row(id, data.into_value())?).await?;
                tx.set(&keyspace.row(summary, content.into_value())?).await?;
            }
            None => {
                let gone = [keyspace.key(summary)?, block].map(RowKey::into_bytes);
                tx.delete(&gone).await?;
            }
        }
        tx.delete(&rest.pointer_keys(keyspace, project, block_ref)?).await?;
        let place =
            |uuid, index| Placed { project, uuid, place: Place { partition, first, index } };
        let kept = (0..).zip(&rest.kept).map(|(index, event)| place(event.uuid, index));
        let gone = rest.gone.iter().map(|event| place(event.uuid, ERASED));
        let places: Vec<Placed> = kept.chain(gone).collect();
        for entry in uuids::entries(keyspace, &places)? {
            tx.put(&entry).await?;
        }
        let mut counts = EventCounts::default();
        rest.subtract(&mut counts, project, block_ref, uncounted);
        Subtracted::of(keyspace, project, &counts)?.write(tx).await?;
        add_removed(tx, keyspace, project, rest.gone.len() as u64).await?;
        note(tx, keyspace, project, erased, &rest.of_erasures).await?;
        Ok(true)
    }
}

/// Counts the removed events in the reports of their erasures.
async fn note(
    tx: &Transaction,
    keyspace: Keyspace,
    project: ProjectId,
    erased: &Erased,
    of_erasures: &BTreeMap<usize, i64>,
) -> Result<(), Failure> {
    for (at, events) in of_erasures {
        if let Some(one) = erased.pending.get(*at) {
            note_removed(tx, keyspace, project, one.id, (*events, 0)).await?;
        }
    }
    Ok(())
}

/// The segments of a project that may have erased events and whose files are not among
/// `checked`.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn segments_to_check(
    store: &Store,
    project: ProjectId,
    erased: &Erased,
    checked: &HashSet<String>,
) -> Result<Vec<SealedSegment>> {
    let (mut found, mut all) = (Vec::new(), Catalog::of(store, project).await?);
    while let Some(some) = all.next(store).await? {
        found.extend(some.into_iter().filter(|sealed| {
            sealed.first <= erased.bound(sealed.partition) && !checked.contains(&sealed.file)
        }));
    }
    Ok(found)
}

/// Removes the erased events of a segment. Returns its new file, if that needs no check.
///
/// # Errors
/// [`Error::DiskLow`] when the disk is low, [`Error::Bucket`] when the bucket cannot be used,
/// [`Error::Damaged`] when the segment is damaged, and other errors of files and of the store.
pub(crate) async fn erase_segment(
    store: &Store,
    sealed: SealedSegment,
    erased: &Arc<Erased>,
    now: Timestamp,
) -> Result<Option<String>> {
    let erased = Arc::clone(erased);
    let work = move |store: Store| async move { rewrite(&store, sealed, erased, now).await };
    change(store, work).await
}

/// The number of segments of a project.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn segment_count(store: &Store, project: ProjectId) -> Result<u64> {
    let (mut count, mut all) = (0, Catalog::of(store, project).await?);
    while let Some(some) = all.next(store).await? {
        count += some.len() as u64;
    }
    Ok(count)
}

/// Whether there are files that a merge or an erasure has replaced, which readers of the
/// table of a project may still need.
pub(crate) fn has_replaced(store: &Store, project: ProjectId) -> bool {
    let segments = &store.segments;
    let of_project = format!("{project}/");
    let is_tidy = segments.objects.as_ref().is_none_or(objects::Objects::is_tidy);
    !is_tidy || lock(&segments.replaced).iter().any(|(name, _)| name.starts_with(&of_project))
}

/// Whether the store has files. One in memory has none.
pub(crate) fn has_files(store: &Store) -> bool {
    store.segments.files.is_some()
}

/// What is written instead of a segment.
struct Rewritten {
    /// `None`: no event is left.
    new: Option<(Unlisted, Written, Segment)>,
    blocks: Changed,
}

/// The blocks of a segment that had erased events.
struct Changed {
    project: ProjectId,
    partition: u16,
    erased: Arc<Erased>,
    uncounted: Uncounted,
    /// The summaries of the blocks, by their first arrival numbers. `None`: no event is left.
    summaries: Vec<(u64, Option<Summary>)>,
    pointers: Vec<(u64, Vec<(i64, i64)>)>,
    counts: EventCounts,
    of_erasures: BTreeMap<usize, i64>,
    events: usize,
    /// Whether more events are to be erased than at a time.
    is_partial: bool,
    failure: Option<Error>,
}

impl Changed {
    /// The events of a block that stay.
    fn keep(&mut self, block: BlockRows, events: Vec<OwnedEvent>) -> Vec<OwnedEvent> {
        let (partition, erased) = (self.partition, Arc::clone(&self.erased));
        let is_gone =
            |event: &OwnedEvent| erased.takes(partition, event.arrival, &event.distinct_id);
        if !events.iter().any(is_gone) {
            return events;
        }
        if self.events >= MOST || self.failure.is_some() {
            self.is_partial = true;
            return events;
        }
        let block_ref = (partition, block.first);
        let rest = Rest::of(block_ref, events.into_iter().map(stored).collect(), &erased);
        self.events += rest.gone.len();
        for (erasure, events) in &rest.of_erasures {
            *self.of_erasures.entry(*erasure).or_default() += events;
        }
        rest.subtract(&mut self.counts, self.project, block_ref, &self.uncounted);
        match BlockBuilder::remainder(self.project, block.first, &rest.kept) {
            Ok(remainder) => {
                let erased = Some(true);
                let summary = remainder.map(|block| Summary { erased, ..block.summary() });
                self.summaries.push((block.first, summary));
            }
            Err(error) => self.failure = Some(error),
        }
        self.pointers.push((block.first, rest.pointers));
        rest.kept.into_iter().map(owned).collect()
    }

    fn pointer_keys(&self, keyspace: Keyspace) -> Result<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        for (first, pointers) in &self.pointers {
            for (width, bucket) in pointers {
                let id = keys::time(self.project, *width, *bucket, self.partition, *first);
                found.push(keyspace.key(id)?.into_bytes());
            }
        }
        Ok(found)
    }
}

/// Writes a segment again without erased events. Returns the name of the new file if it has
/// no erased events any more.
async fn rewrite(
    store: &Store,
    sealed: SealedSegment,
    erased: Arc<Erased>,
    now: Timestamp,
) -> Result<Option<String>> {
    let end = sealed.first.saturating_add(1);
    let listed = catalog::newest_before(store, sealed.project, sealed.partition, end).await?;
    // It may have been merged or removed meanwhile. Another segment then has its events.
    if listed.as_ref() != Some(&sealed) || !may_concern(store, &sealed, &erased).await? {
        return Ok(None);
    }
    if store.db.disk().check() == DiskLevel::Low {
        return Err(Error::DiskLow);
    }
    let mut written = write(store, &sealed, &erased).await;
    if let Err(Error::Damaged { .. }) = &written
        && objects::fetch_again(store, &sealed).await?.is_some()
    {
        written = write(store, &sealed, &erased).await;
    }
    let Rewritten { new, mut blocks } = written?;
    if let Some(error) = blocks.failure.take() {
        return Err(error);
    }
    // Fingerprints of different distinct ids may be the same.
    if blocks.events == 0 {
        return Ok(None);
    }
    swap(store, sealed, new, blocks, now).await
}

/// Whether the segment may have erased events, by the summaries of its blocks.
async fn may_concern(store: &Store, sealed: &SealedSegment, erased: &Erased) -> Result<bool> {
    let SealedSegment { project, partition, first, last, .. } = *sealed;
    let id = |first| keys::summary(project, partition, first);
    let range = store.db.keyspace().await?.range(id(first), id(last.saturating_add(1)))?;
    let (mut rest, most) = (Some(range), SUMMARIES_AT_A_TIME);
    while let Some(summaries) = store.db.next_rows::<Summary>(SUMMARIES, &mut rest, most).await? {
        if summaries.iter().any(|summary| erased.may_concern(summary)) {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn write(store: &Store, sealed: &SealedSegment, erased: &Arc<Erased>) -> Result<Rewritten> {
    let segments = &store.segments;
    let Some(files) = segments.files.clone() else { return Err(Error::Stopped) };
    let SealedSegment { project, partition, first, last, .. } = *sealed;
    let open = read::open(store, sealed).await?;
    let input = open.ok_or_else(|| read::absent(store, sealed))?;
    let options = options(catalog::columns(store, project).await?);
    let mut blocks = Changed {
        project,
        partition,
        erased: Arc::clone(erased),
        uncounted: Uncounted::of(store, project).await?,
        summaries: Vec::new(),
        pointers: Vec::new(),
        counts: EventCounts::default(),
        of_erasures: BTreeMap::new(),
        events: 0,
        is_partial: false,
        failure: None,
    };
    let written = segments.blocking(files.path(&sealed.file), move || {
        let file = files.new_segment(project, partition, (first, last))?;
        let path = file.path();
        let keep = |block, events| blocks.keep(block, events);
        let new = match segment::rewrite(&input, &path, &options, keep)? {
            Some(written) => {
                let open = Segment::open(&path, written.bytes, &written.sums)?;
                Some((file, written, open))
            }
            None => None,
        };
        Ok(Rewritten { new, blocks })
    });
    let written = written.await?.map_err(|error| segments.error(error))?;
    let rows = written.new.as_ref().map_or(0, |(_, written, _)| written.rows);
    if rows.saturating_add(written.blocks.events as u64) != sealed.rows {
        let path = segments.files.as_ref().map(|files| files.path(&sealed.file));
        let detail = format!("{} has another number of events", sealed.file);
        return Err(segments.damaged(path.unwrap_or_default(), detail));
    }
    Ok(written)
}

/// What one transaction changes, encoded.
struct Swap {
    keyspace: Keyspace,
    project: ProjectId,
    row: RowKey,
    /// The file that the row must name.
    file: String,
    set: Vec<Row>,
    gone: Vec<Vec<u8>>,
    subtracted: Subtracted,
    events: u64,
    erased: Arc<Erased>,
    of_erasures: BTreeMap<usize, i64>,
}

impl Swap {
    async fn write(&self, tx: &Transaction) -> Result<(), Failure> {
        let Self { keyspace, project, .. } = *self;
        let found: Option<FileRow> = tx.get_for_update(&self.row).await?;
        // It may run twice, and subtracts once.
        if found.is_none_or(|found| found.file != self.file) {
            return Ok(());
        }
        tx.delete(&self.gone).await?;
        for row in &self.set {
            tx.set(row).await?;
        }
        self.subtracted.write(tx).await?;
        add_removed(tx, keyspace, project, self.events).await?;
        note(tx, keyspace, project, &self.erased, &self.of_erasures).await
    }
}

/// Replaces the old file by the new one.
async fn swap(
    store: &Store,
    old: SealedSegment,
    new: Option<(Unlisted, Written, Segment)>,
    blocks: Changed,
    now: Timestamp,
) -> Result<Option<String>> {
    let segments = &store.segments;
    let keyspace = store.db.keyspace().await?;
    let (project, partition) = (old.project, old.partition);
    // Before the events: what leads to an event that is not shown is not needed.
    for some in blocks.pointer_keys(keyspace)?.chunks(CHUNK) {
        store.db.delete_keys(POINTERS, some.to_vec()).await?;
    }
    let mut columns = catalog::columns(store, project).await?;
    let (mut set, mut gone) = (Vec::new(), vec![old.sums_key(keyspace)?.into_bytes()]);
    for (first, summary) in &blocks.summaries {
        let id = keys::summary(project, partition, *first);
        match summary {
            Some(summary) => {
                set.push(keyspace.row(id, summary.clone().into_value())?);
            }
            None => gone.push(keyspace.key(id)?.into_bytes()),
        }
    }
    let (mut sealed, mut opened, mut uploaded) = (None, None, None);
    match new {
        Some((file, written, open)) => {
            let path = file.path();
            uploaded = Some(objects::upload(store, file.name(), &path, written.bytes).await?);
            let segment = SealedSegment {
                rows: written.rows,
                bytes: written.bytes,
                file: file.keep(),
                times: Span { from: written.from_time, to: written.to_time },
                sealed_at: now.micros(),
                ..old.clone()
            };
            set.push(segment.row(keyspace)?);
            set.push(segment.sums_row(keyspace, written.sums)?);
            set.extend(catalog::add_columns(&mut columns, written.typed, keyspace, project)?);
            (sealed, opened) = (Some(segment), Some(open));
        }
        None => gone.push(old.key(keyspace)?.into_bytes()),
    }
    let log = table::begin(store, project);
    let swap = Arc::new(Swap {
        keyspace,
        project,
        row: old.key(keyspace)?,
        file: old.file.clone(),
        set,
        gone,
        subtracted: Subtracted::of(keyspace, project, &blocks.counts)?,
        events: blocks.events as u64,
        erased: blocks.erased,
        of_erasures: blocks.of_erasures,
    });
    let work = move |tx: Transaction| {
        let swap = Arc::clone(&swap);
        async move { swap.write(&tx).await }
    };
    store.db.transact(SEGMENT, (), work).await?;
    if let Some(uploaded) = uploaded {
        uploaded.named();
    }
    store.blocks.forget(project);
    let file = sealed.as_ref().map(|segment| segment.file.clone());
    if let (Some(file), Some(open)) = (&file, opened) {
        lock(&segments.open).insert(file.clone(), open);
    }
    log.commit(store, columns, std::slice::from_ref(&old), sealed.as_slice(), now).await;
    segments.close([&old.file]);
    lock(&segments.replaced).push((old.file, now.micros()));
    Ok(file.filter(|_| !blocks.is_partial))
}

fn owned(event: StoredEvent) -> OwnedEvent {
    let StoredEvent {
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
    OwnedEvent {
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
