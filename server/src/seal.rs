//! `weir seal`: moves all stored events into files, so that other programs can read them.
//! It works on the data directory while no server runs, because a server fills the newest
//! blocks further.

use std::path::PathBuf;

use weir_service::Clock;
use weir_store::Store;
use weir_store::events::{self, PersonSnapshots, SealBounds, SealReport};

use crate::config::{Config, StoreKind};
use crate::log_tools::has_store;
use crate::serve::open_store;

/// Segments that are sealed before small ones are merged.
const SEALED: usize = 64;

/// Why the events were not sealed.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// A store in memory has no files.
    #[error("a store in memory has no files")]
    InMemory,
    /// The data directory has no store.
    #[error("there is no store in the data directory `{0}`")]
    NoStore(PathBuf),
    /// The store or a file cannot be used.
    #[error(transparent)]
    Store(#[from] weir_store::Error),
}

/// Seals all stored events, writes snapshots of persons if requested, and returns the line to
/// print.
///
/// # Errors
/// [`SealError`] with the reason. What was sealed before stays sealed.
pub async fn run(config: &Config, with_persons: bool) -> Result<String, SealError> {
    if config.store == StoreKind::Memory {
        return Err(SealError::InMemory);
    }
    if !has_store(config) {
        return Err(SealError::NoStore(config.data.clone()));
    }
    let store = open_store(config).await?;
    let done = seal_and_write(&store, with_persons).await;
    store.close_at_end().await?;
    let (report, persons) = done?;
    Ok(outcome(&report, persons.as_ref()))
}

/// The line for what was done.
fn outcome(report: &SealReport, persons: Option<&PersonSnapshots>) -> String {
    let SealReport { segments, events, damaged, .. } = report;
    let mut text = match segments {
        0 if *damaged > 0 => "Moved no events into files".to_owned(),
        0 => "All stored events are in files already".to_owned(),
        1 => format!("Moved {events} events into a file"),
        _ => format!("Moved {events} events into {segments} files"),
    };
    if *damaged > 0 {
        text += &format!("; damaged blocks that stay in the database: {damaged}");
    }
    if let Some(PersonSnapshots { projects, persons }) = persons {
        text += &format!("; persons written: {persons}, of projects: {projects}");
    }
    text
}

async fn seal_and_write(
    store: &Store,
    with_persons: bool,
) -> Result<(SealReport, Option<PersonSnapshots>), weir_store::Error> {
    let report = seal(store).await?;
    let persons = match with_persons {
        true => Some(events::write_persons(store, Clock::default().now()).await?),
        false => None,
    };
    Ok((report, persons))
}

async fn seal(store: &Store) -> Result<SealReport, weir_store::Error> {
    let mut all = SealReport::default();
    loop {
        let now = Clock::default().now();
        let sealed = events::seal_all(store, now, SEALED, SealBounds::ALL).await?;
        all.events += sealed.events;
        all.segments += sealed.segments;
        while events::merge_segments(store, now).await?.is_some() {}
        if !sealed.is_limited {
            all.damaged = sealed.damaged;
            return sealed.failure.map_or(Ok(all), Err);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_blocks_are_not_called_moved() {
        let line = |segments, events, damaged| {
            outcome(&SealReport { segments, events, damaged, ..SealReport::default() }, None)
        };
        assert_eq!(line(0, 0, 0), "All stored events are in files already");
        assert_eq!(line(1, 20, 0), "Moved 20 events into a file");
        let damaged = "damaged blocks that stay in the database: 2";
        assert_eq!(line(0, 0, 2), format!("Moved no events into files; {damaged}"));
        assert_eq!(line(3, 60, 2), format!("Moved 60 events into 3 files; {damaged}"));
    }
}
