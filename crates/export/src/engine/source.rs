//! What a run exports: its events as rows, made ahead of what sends them.
//!
//! ```text
//! scan (blocks read ahead) -> persons -> rows (made beside each other) -> channel
//! ```
//!
//! What belongs here: selecting, joining, making rows, in bounded memory. What
//! does not: rows of persons (`persons`), sending them (`attempt`).

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use weir_model::exports::ExportModel;
use weir_model::{ProjectId, Timestamp};
use weir_store::Store;
use weir_store::events::{Scan, Selection, StoredEvent, TimeStretch, size};
use weir_store::exports::runs::RunRow;

use super::people::People;
use super::persons;
use crate::columns::Columns;
use crate::destination::Failure;
use crate::rows::{Batch, Record};

/// Batches that wait to be sent, finished or being made.
const AHEAD: usize = 4;

/// Rows and what they are made of.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) batch: Batch,
    /// Bytes of the events, or of the rows of persons.
    pub(super) bytes: u64,
}

/// Rows on their way.
pub(super) enum Coming {
    /// They are being made.
    Making(JoinHandle<Part>),
    /// They are made.
    Made(Part),
}

/// Where a run's rows come from.
pub(super) struct Source {
    parts: mpsc::Receiver<Result<Coming, Failure>>,
}

/// What rows are made of.
pub(super) struct Making {
    pub(super) store: Store,
    pub(super) project: ProjectId,
    pub(super) model: ExportModel,
    /// The events, or those whose persons are exported.
    pub(super) selection: Selection,
    pub(super) columns: Arc<Columns>,
    /// Persons whose ids are in memory at a time.
    pub(super) persons: usize,
    /// When the attempt began.
    pub(super) now: Timestamp,
}

impl Source {
    /// Begins to make rows.
    pub(super) fn begin(making: Making) -> Self {
        let (sender, parts) = mpsc::channel(AHEAD);
        tokio::spawn(async move {
            let made = match making.model {
                ExportModel::Events => make(&making, &sender).await,
                ExportModel::Persons => persons::make(&making, &sender).await,
            };
            if let Err(failure) = made {
                // Nobody is there: the run was cut short.
                let _ = sender.send(Err(failure)).await;
            }
        });
        Self { parts }
    }

    /// The next rows; none: these were all.
    pub(super) async fn next(&mut self) -> Result<Option<Part>, Failure> {
        loop {
            let Some(part) = self.parts.recv().await.transpose()? else { return Ok(None) };
            let part = match part {
                Coming::Made(part) => part,
                Coming::Making(part) => part.await.map_err(|error| {
                    tracing::error!(%error, "rows of an export could not be made");
                    let message = "Rows could not be made. The log of Weir says why.";
                    Failure::retryable("Internal", message)
                })?,
            };
            if !part.batch.rows.is_empty() {
                return Ok(Some(part));
            }
        }
    }
}

async fn make(
    making: &Making,
    sender: &mpsc::Sender<Result<Coming, Failure>>,
) -> Result<(), Failure> {
    let Making { store, project, selection, columns, now, .. } = making;
    let mut scan = Scan::begin(store, *project, selection.clone()).await.map_err(of_store)?;
    let mut people = columns.needs_person().then(|| People::new(store.clone(), *project));
    while let Some(events) = scan.next().await.map_err(of_store)? {
        let records = match &mut people {
            Some(people) => people.join(events).await.map_err(of_store)?,
            None => events.into_iter().map(|event| Record { event, person: None }).collect(),
        };
        let (columns, project, now) = (Arc::clone(columns), *project, now.micros());
        let Ok(place) = sender.reserve().await else { return Ok(()) };
        let making = tokio::spawn(async move { part(&columns, project, now, records) });
        place.send(Ok(Coming::Making(making)));
    }
    Ok(())
}

fn part(columns: &Columns, project: ProjectId, now: i64, records: Vec<Record>) -> Part {
    let mut rows = Vec::with_capacity(records.len());
    let mut arrivals = Vec::with_capacity(records.len());
    let mut bytes = 0;
    for record in records {
        if let Some(row) = columns.row_if_taken(project, now, &record) {
            bytes += size_of(&record.event);
            rows.push(row);
            arrivals.push(record.event.arrival);
        }
    }
    Part { batch: Batch { rows, arrivals: Some(arrivals) }, bytes }
}

fn size_of(event: &StoredEvent) -> u64 {
    size(event) as u64
}

/// A fault of our own store, as people read it.
pub(super) fn of_store(error: weir_store::Error) -> Failure {
    tracing::warn!(%error, "the events of an export could not be read");
    match error {
        weir_store::Error::Shape { .. } => Failure::last(
            "DamagedData",
            "Stored events could not be read. The log of Weir says which.",
        ),
        _ => Failure::retryable("StoreUnavailable", "The events could not be read just now."),
    }
}

/// What a run exports; `config`: the settings of its destination.
pub(super) fn selection(row: &RunRow, config: &Map<String, Value>) -> Selection {
    let names = |key: &str| -> HashSet<String> {
        let names = config.get(key).and_then(Value::as_array).into_iter().flatten();
        names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    let time = row.by_time.then(|| TimeStretch {
        start: row.run.data_interval_start.map_or(i64::MIN, Timestamp::micros),
        end: row.run.data_interval_end.micros(),
    });
    Selection {
        after: row.after,
        up_to: row.up_to,
        time,
        include: names("include_events"),
        exclude: names("exclude_events"),
    }
}
