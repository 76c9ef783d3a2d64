//! Stores with events in open blocks, closed blocks and segments.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use uuid::Uuid;
use weir_model::{ProjectId, Timestamp};

use super::super::support::{PROJECT, batch, event};
use crate::bind::bind;
use crate::db::Statement;
use crate::events::segments::{MergeBounds, merge_segments_within, remove_replaced};
use crate::events::{
    Dropped, EventBounds, LIVE_PARTITIONS, MergedSegments, Old, SealBounds, SealReport,
    StoredEvent, apply, drop_older, historical_partition, live_partition, seal_all,
};
use crate::{Error, Location, Settings, Store};

/// Another project than [`PROJECT`].
pub(super) const OTHER: ProjectId = ProjectId(8);

const ADD_PROJECT: Statement =
    Statement::write("test", "CREATE type::record('project', $project) SET number = $project;");

/// In the year 2026, microseconds.
pub(super) const NOW: i64 = 1_787_322_000_000_000;
const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// An open store and its directory.
pub(super) struct Opened {
    pub(super) store: Store,
    pub(super) directory: TempDir,
    settings: Settings,
}

impl Opened {
    pub(super) async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    /// A new store with these settings.
    pub(super) async fn with(settings: Settings) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path(), &settings).await.unwrap();
        for project in [PROJECT, OTHER] {
            store.db.run(ADD_PROJECT, bind! { project: project.0 }).await.unwrap();
        }
        Self { store, directory, settings }
    }

    /// Closes the store and opens it again, with nothing in memory.
    pub(super) async fn reopen(self) -> Self {
        self.reopen_after(|_| {}).await
    }

    /// The same, with a change of its files in between.
    pub(super) async fn reopen_after(self, change: impl FnOnce(&Path)) -> Self {
        let settings = self.settings.clone();
        let directory = self.close().await;
        change(&directory.path().join("segments"));
        let store = open_with(directory.path(), &settings).await.unwrap();
        Self { store, directory, settings }
    }

    /// Closes the store and opens it again, with other settings.
    pub(super) async fn reopen_with(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self.reopen().await
    }

    /// Closes the store.
    pub(super) async fn close(self) -> TempDir {
        let Self { store, directory, .. } = self;
        store.close().await.unwrap();
        directory
    }

    /// The files of segments and runs, sorted.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        files(&self.directory.path().join("segments"))
    }

    /// The directory of the table of a project.
    pub(super) fn table(&self, project: ProjectId) -> PathBuf {
        self.directory.path().join(format!("segments/{project}"))
    }

    /// The files of segments, sorted.
    pub(super) fn segment_files(&self) -> Vec<PathBuf> {
        let mut files = self.files();
        files.retain(|file| file.extension().is_some_and(|name| name == "parquet"));
        files
    }

    /// The files of runs, sorted.
    pub(super) fn run_files(&self) -> Vec<PathBuf> {
        let mut files = self.files();
        files.retain(|file| file.extension().is_some_and(|name| name == "run"));
        files
    }
}

/// Opens a store that was closed.
pub(super) async fn open_again(directory: &Path) -> Result<Store, Error> {
    open_with(directory, &Settings::default()).await
}

/// The same with settings.
pub(super) async fn open_with(directory: &Path, settings: &Settings) -> Result<Store, Error> {
    let began = Instant::now();
    loop {
        match open(directory, settings).await {
            // Tasks of the engine still end.
            Err(Error::InUse { .. } | Error::Open { .. })
                if began.elapsed() < Duration::from_secs(60) =>
            {
                tokio::task::yield_now().await;
            }
            opened => return opened,
        }
    }
}

async fn open(directory: &Path, settings: &Settings) -> Result<Store, Error> {
    Store::open(&Location::Directory(directory.to_owned()), settings.clone()).await
}

/// The files below a directory, sorted. Those of the logs of tables are omitted.
pub(super) fn files(directory: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.ends_with("_delta_log") {
                continue;
            }
            if path.is_dir() { directories.push(path) } else { all.push(path) }
        }
    }
    all.sort();
    all
}

pub(super) fn now() -> Timestamp {
    Timestamp::from_micros(NOW)
}

/// Seals as soon as `events` wait in a partition.
pub(super) async fn seal(store: &Store, events: u64) -> SealReport {
    let bounds = SealBounds { events, age: i64::MAX, ..SealBounds::default() };
    let report = seal_all(store, now(), usize::MAX, bounds).await.unwrap();
    assert!(report.failure.is_none(), "{:?}", report.failure);
    report
}

/// Merges `fan_in` neighbours, once, and removes the files that this replaces.
pub(super) async fn merge_once(
    store: &Store,
    fan_in: usize,
    events: u64,
) -> Option<MergedSegments> {
    let bounds = MergeBounds { fan_in, events };
    let done = merge_segments_within(store, now(), bounds).await.unwrap();
    remove_replaced(store, Timestamp::from_micros(NOW + DAY)).await.unwrap();
    done
}

/// Removes the segments with events before a time, unless they have unread events.
pub(super) async fn drop_old(
    store: &Store,
    project: ProjectId,
    before: Timestamp,
    unread: &[EventBounds],
) -> Result<Dropped, Error> {
    let old = Old { before, unread: unread.to_vec() };
    drop_older(store, project, now(), async { Ok(Some(old)) }).await
}

/// The uuid of the event with this arrival number. Neighbours are far apart.
pub(super) fn uuid(arrival: u64) -> Uuid {
    Uuid::from_u128(u128::from(arrival).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835))
}

/// Two distinct ids of each live partition.
pub(super) fn ids(partition: u16) -> [String; 2] {
    let ids = (0..).map(|number| format!("user-{number}"));
    let mut ids = ids.filter(|id| live_partition(PROJECT, id) == partition);
    [ids.next().unwrap(), ids.next().unwrap()]
}

/// An event with everything that an event can have.
pub(super) fn full_event(arrival: u64, partition: u16) -> StoredEvent {
    let number = i64::try_from(arrival).unwrap();
    let live = ids(partition % LIVE_PARTITIONS);
    // Blocks of 37 events, every fourth of which spans days.
    let after = match (arrival / 37).is_multiple_of(4) {
        true => number % 60 * DAY / 3,
        false => number * SECOND,
    };
    let timestamp = if arrival == 100 { -14_450_000_000 * SECOND } else { NOW + after };
    StoredEvent {
        uuid: uuid(arrival),
        event: format!("event {}", arrival % 5),
        distinct_id: live[usize::from(arrival.is_multiple_of(3))].clone(),
        timestamp,
        received_at: NOW + number * SECOND,
        properties: format!(
            r#"{{"n":{arrival},"größe":{}.50,"$lib":"web","list":[1,null],"big":12345678901234567890}}"#,
            arrival % 7
        ),
        elements_chain: if arrival.is_multiple_of(11) { "a:nth-child=\"1\"" } else { "" }
            .to_owned(),
        historical: partition >= LIVE_PARTITIONS,
        warnings: match arrival % 13 {
            0 => vec!["clamped_future".to_owned(), "distinct_id_cut".to_owned()],
            _ => Vec::new(),
        },
        ..event(arrival, "")
    }
}

/// Adds `blocks` blocks of `size` events, in turn in three live partitions and the
/// historical one. Returns the events.
pub(super) async fn add_blocks(
    store: &Store,
    project: ProjectId,
    blocks: u64,
    size: u64,
) -> Vec<StoredEvent> {
    let heads = crate::events::heads(store, project).await.unwrap();
    let last = heads.values().map(|head| head.last).max().unwrap_or(0);
    let mut next = u64::try_from(last).unwrap() + 1;
    let mut all = Vec::new();
    for number in 0..blocks {
        let partition =
            [0, 1, 3, historical_partition(PROJECT)][usize::try_from(number % 4).unwrap()];
        let events: Vec<_> = (next..next + size).map(|n| full_event(n, partition)).collect();
        next += size;
        let from = crate::events::position(store, partition).await.unwrap().offset;
        let mut write = batch(partition, from, from + 1, &events);
        write.projects[0].project = project;
        let head = &mut write.projects[0].head;
        if let Some(before) = crate::events::head(store, project, partition).await.unwrap() {
            head.from_time = before.from_time.min(head.from_time);
            head.to_time = before.to_time.max(head.to_time);
            head.count += before.count;
        }
        apply(store, write).await.unwrap();
        all.extend(events);
    }
    all
}
