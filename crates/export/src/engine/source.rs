//! The rows of a run, made ahead of sending them.
//!
//! ```text
//! scan (blocks read ahead) -> persons -> chunks of events -> channel
//! a chunk: rows made part by part, each when the channel has space
//! ```
//!
//! What belongs here: selecting, joining and making rows in bounded memory, for any
//! events, persons and query. What does not: rows of persons (`persons`), sending them
//! (`attempt`).
//!
//! Rows are made on threads for blocking work. The threads of the runtime poll the
//! schedule and talk to destinations, and must not wait for a query.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use uuid::Uuid;
use weir_model::exports::ExportModel;
use weir_model::{ProjectId, Timestamp};
use weir_query::WorkLimitReached;
use weir_store::Store;
use weir_store::events::{Scan, Selection, StoredEvent};
use weir_store::exports::runs::RunRow;

use super::people::People;
use super::persons;
use crate::columns::Columns;
use crate::destination::{Altered, Failure};
use crate::rows::{Batch, Cell, EventWithPerson};

/// Chunks that wait to be sent. Each of them has one part that is finished or being made.
const AHEAD: usize = 2;
/// Bytes of rows after which a part ends. With their persons and a query, rows can be
/// many times larger than their events.
const PART_BYTES: usize = 4 << 20;

/// Rows, with counts of their events.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) batch: Batch,
    /// Bytes of the events, or of the rows of persons.
    pub(super) bytes: u64,
    /// Rows that were too large.
    pub(super) altered: Vec<Altered>,
    /// Events without a row, because the condition takes too long for them.
    pub(super) skipped: Skipped,
}

/// Events that were skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Skipped {
    pub(super) count: u64,
    /// The id of one of them.
    pub(super) sample: Option<Uuid>,
}

impl Skipped {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.sample = self.sample.or(other.sample);
    }
}

/// Rows that were requested.
pub(super) enum PendingRows {
    /// The rows are being made.
    Stream(PartStream),
    /// The rows are finished.
    Finished(Part),
}

/// The parts of a chunk whose rows are being made.
pub(super) struct PartStream {
    parts: mpsc::Receiver<Part>,
    maker: JoinHandle<Result<(), JoinError>>,
}

/// The rows of a run.
pub(super) struct Source {
    pending: mpsc::Receiver<PendingRows>,
    /// The chunk that is being read.
    current: Option<PartStream>,
    /// The task that finds the events. `None`: it has ended.
    finder: Option<JoinHandle<Result<(), Failure>>>,
    skipped: Skipped,
}

/// What rows to make.
pub(super) struct RowsRequest {
    pub(super) store: Store,
    pub(super) project: ProjectId,
    pub(super) model: ExportModel,
    /// The events, or the events whose persons are exported.
    pub(super) selection: Selection,
    pub(super) columns: Arc<Columns>,
    /// Persons whose ids are in memory at a time.
    pub(super) persons: usize,
    /// When the attempt began.
    pub(super) now: Timestamp,
}

impl Source {
    /// Starts to make rows.
    pub(super) fn begin(request: RowsRequest) -> Self {
        let (sender, pending) = mpsc::channel(AHEAD);
        let finder = tokio::spawn(async move {
            match request.model {
                ExportModel::Events => make(&request, &sender).await,
                ExportModel::Persons => persons::make(&request, &sender).await,
            }
        });
        Self { pending, current: None, finder: Some(finder), skipped: Skipped::default() }
    }

    /// The events that were skipped so far.
    pub(super) fn skipped(&self) -> Skipped {
        self.skipped
    }

    /// The next rows, or `None` after the last ones. A task that ended early is an error,
    /// so its rows never pass for all.
    pub(super) async fn next(&mut self) -> Result<Option<Part>, Failure> {
        loop {
            let part = match self.next_of_current().await? {
                Some(part) => part,
                None => match self.pending.recv().await {
                    Some(PendingRows::Finished(part)) => part,
                    Some(PendingRows::Stream(stream)) => {
                        self.current = Some(stream);
                        continue;
                    }
                    None => {
                        let Some(finder) = self.finder.take() else { return Ok(None) };
                        finder.await.map_err(not_made)??;
                        return Ok(None);
                    }
                },
            };
            self.skipped.add(part.skipped);
            if !part.batch.rows.is_empty() {
                return Ok(Some(part));
            }
        }
    }

    /// The next part of the present chunk, or `None` after its last part.
    async fn next_of_current(&mut self) -> Result<Option<Part>, Failure> {
        let Some(current) = &mut self.current else { return Ok(None) };
        if let Some(part) = current.parts.recv().await {
            return Ok(Some(part));
        }
        if let Some(taken) = self.current.take() {
            taken.maker.await.map_err(not_made)?.map_err(not_made)?;
        }
        Ok(None)
    }
}

fn not_made(error: JoinError) -> Failure {
    tracing::error!(%error, "rows of an export could not be made");
    Failure::retryable("Internal", "Rows could not be made. The log of Weir says why.")
}

async fn make(request: &RowsRequest, sender: &mpsc::Sender<PendingRows>) -> Result<(), Failure> {
    let RowsRequest { store, project, selection, columns, now, .. } = request;
    let mut scan = Scan::begin(store, *project, selection.clone()).await.map_err(of_store)?;
    let mut people = columns.needs_person().then(|| People::new(store.clone(), *project));
    while let Some(events) = scan.next().await.map_err(of_store)? {
        let mut events = VecDeque::from(events);
        while !events.is_empty() {
            let records = match &mut people {
                Some(people) => people.join(&mut events).await.map_err(of_store)?,
                None => {
                    events.drain(..).map(|event| EventWithPerson { event, person: None }).collect()
                }
            };
            // The receiver is gone, because the run was interrupted.
            let Ok(permit) = sender.reserve().await else { return Ok(()) };
            let (columns, now) = (Arc::clone(columns), now.micros());
            let chunk =
                RecordChunk { columns, project: *project, now, records: records.into_iter() };
            permit.send(PendingRows::Stream(chunk.begin()));
        }
    }
    Ok(())
}

/// Events whose rows are made together.
struct RecordChunk {
    columns: Arc<Columns>,
    project: ProjectId,
    now: i64,
    records: std::vec::IntoIter<EventWithPerson>,
}

impl RecordChunk {
    /// Starts to make its rows.
    fn begin(self) -> PartStream {
        let (sender, parts) = mpsc::channel(1);
        PartStream { parts, maker: tokio::spawn(self.make(sender)) }
    }

    async fn make(self, sender: mpsc::Sender<Part>) -> Result<(), JoinError> {
        let mut rest = self;
        while !rest.records.as_slice().is_empty() {
            let Ok(permit) = sender.reserve().await else { break };
            let channel = sender.clone();
            let made = tokio::task::spawn_blocking(move || {
                let part = rest.part(|| channel.is_closed());
                (rest, part)
            });
            let (left, part) = made.await?;
            rest = left;
            permit.send(part);
        }
        Ok(())
    }

    /// The next part. No records are left after the last part. Ends early if the receiver
    /// is gone.
    fn part(&mut self, is_cut: impl Fn() -> bool) -> Part {
        let (mut rows, mut arrivals, mut altered) = (Vec::new(), Vec::new(), Vec::new());
        let (mut bytes, mut made, mut skipped) = (0, 0, Skipped::default());
        while made < PART_BYTES && !is_cut() {
            let Some(record) = self.records.next() else { break };
            let row = match self.columns.row_if_included(self.project, self.now, &record) {
                Ok(Some(row)) => row,
                Ok(None) => continue,
                Err(WorkLimitReached) => {
                    skipped.add(Skipped { count: 1, sample: Some(record.event.uuid) });
                    continue;
                }
            };
            bytes += size_of(&record.event);
            made += row.cells.iter().map(Cell::size).sum::<usize>();
            rows.push(row.cells);
            arrivals.push(record.event.arrival);
            altered.extend(row.altered);
        }
        Part { batch: Batch { rows, arrivals: Some(arrivals) }, bytes, altered, skipped }
    }
}

/// Bytes of an event in the counts of runs: its texts, and the rest of its record.
fn size_of(event: &StoredEvent) -> u64 {
    const RECORD: usize = 64;
    let texts = [&event.event, &event.distinct_id, &event.properties, &event.elements_chain];
    (RECORD + texts.into_iter().map(String::len).sum::<usize>()) as u64
}

/// An error of the store, as members see it.
pub(super) fn of_store(error: weir_store::Error) -> Failure {
    tracing::warn!(%error, "the events of an export could not be read");
    match error {
        weir_store::Error::Shape { .. } | weir_store::Error::Damaged { .. } => Failure::permanent(
            "DamagedData",
            "Stored events could not be read. The log of Weir says which.",
        ),
        _ => Failure::retryable("StoreUnavailable", "The events could not be read just now."),
    }
}

/// The selection of a run. `config` has the settings of its destination.
pub(super) fn selection(row: &RunRow, config: &Map<String, Value>) -> Selection {
    let names = |key: &str| -> HashSet<String> {
        let names = config.get(key).and_then(Value::as_array).into_iter().flatten();
        names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    Selection {
        after: row.after,
        up_to: row.up_to,
        time: row.time(),
        except: row.except.clone(),
        include: names("include_events"),
        exclude: names("exclude_events"),
    }
}

#[cfg(test)]
mod tests;
