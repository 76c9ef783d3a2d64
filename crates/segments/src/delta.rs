//! The log of Delta Lake, which makes the segments of a project one table that other
//! engines read.
//!
//! | file, in `_delta_log` of the table | content |
//! |---|---|
//! | `<version>.json` | one commit: files that were added and removed, and the columns if they changed |
//! | `<version>.checkpoint.parquet` | all files and columns as of that version |
//! | `_last_checkpoint` | the version of the newest checkpoint |
//!
//! A version has 20 digits and begins with zeros. The table has the version 1 of the
//! protocol for readers and 2 for writers, so every reader of Delta Lake reads it. It has no
//! partitions. A typed column that a file does not have is null there.
//!
//! After [`CHECKPOINT`] commits a checkpoint is written before the next one. Files of the log
//! before the checkpoint before it are removed then. So a reader that has begun has at least
//! that many commits to end, and the log has at most two checkpoints and about twice as many
//! commits.
//!
//! The log is derived data: which files belong to a project is decided elsewhere, and
//! [`remove`] and [`Table::bring_up_to`] make it again. Therefore it has no checksums of its
//! own. Weir is its only writer. A file is removed from the table before it is deleted; a
//! reader of an older version then does not find it, and must read the table again.
//!
//! What belongs here: the form of the log. What does not: which files a table has, and when
//! they are added and removed (`weir-store`).

mod actions;
mod checkpoint;
mod log;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use uuid::Uuid;

pub use log::remove;

use crate::error::{Error, Part, Result};
use crate::segment::TypedColumn;
use actions::{Action, Add, MetaData, Remove};
use log::Log;

/// Commits after which a checkpoint is written.
pub const CHECKPOINT: u64 = 100;

/// A file of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFile {
    /// Its path within the directory of the table, of letters, digits, `-`, `_`, `.` and `/`.
    pub path: String,
    /// Its size, bytes.
    pub bytes: u64,
    /// The number of its rows.
    pub rows: u64,
    /// Earliest event time, or `created_at` of persons, microseconds since 1970.
    pub from_time: i64,
    /// Latest event time, or `created_at` of persons, microseconds since 1970.
    pub to_time: i64,
    /// The smallest and the largest arrival number.
    pub arrivals: Option<(u64, u64)>,
    /// When it was written, milliseconds since 1970.
    pub modified: i64,
}

/// What the rows of a table are.
#[derive(Debug, Clone, Copy)]
enum Columns<'a> {
    /// Events, with these typed columns.
    Events(&'a [TypedColumn]),
    Persons,
}

/// What a commit changes.
#[derive(Debug, Clone, Copy)]
pub enum Change<'a> {
    /// New events.
    Add(&'a [TableFile]),
    /// The same events are in other files. Readers that follow changes pass it over.
    Replace {
        /// The paths of the files that had them.
        old: &'a [String],
        /// The files that have them.
        new: &'a [TableFile],
    },
    /// Some events went away, and the others are in other files.
    Rewrite {
        /// The paths of the files that had them.
        old: &'a [String],
        /// The files that have the others.
        new: &'a [TableFile],
    },
    /// The events of the files with these paths went away.
    Remove(&'a [String]),
}

/// A table as of its newest version.
///
/// It holds about 400 bytes for each file.
pub struct Table {
    log: Log,
    /// The newest checkpoint.
    checkpoint: Option<u64>,
    /// The newest version. `None`: there is no log yet.
    version: Option<u64>,
    state: State,
}

/// What the commits up to a version amount to.
#[derive(Default)]
struct State {
    metadata: Option<MetaData>,
    /// By their paths.
    files: BTreeMap<String, Add>,
}

impl State {
    fn apply(&mut self, action: Action) -> Result<(), String> {
        match action {
            Action::CommitInfo(_) => {}
            Action::Protocol(protocol) => protocol.check()?,
            Action::MetaData(metadata) => self.metadata = Some(metadata),
            Action::Add(add) => {
                self.files.insert(add.path.clone(), add);
            }
            Action::Remove(remove) => {
                self.files.remove(&remove.path);
            }
        }
        Ok(())
    }
}

/// The newest version of the table in a directory, by the names of its files alone. `None`:
/// there is no log.
///
/// # Errors
/// When the directory of the log cannot be read.
pub fn newest(directory: &Path) -> Result<Option<u64>> {
    let versions = Log::of(directory).versions()?;
    Ok(versions.commits.last().max(versions.checkpoints.last()).copied())
}

impl Table {
    /// Reads the newest version of the table in a directory. Creates nothing.
    ///
    /// # Errors
    /// When the log cannot be read, is damaged, or was written by other programs.
    /// [`remove`] and [`bring_up_to`](Self::bring_up_to) then make it again.
    pub fn open(directory: &Path) -> Result<Self> {
        let log = Log::of(directory);
        let versions = log.versions()?;
        let mut state = State::default();
        let checkpoint = versions.checkpoints.last().copied();
        if let Some(version) = checkpoint {
            let path = log.checkpoint(version);
            state = checkpoint::read(&path)?;
        }
        let mut version = checkpoint;
        for found in versions.commits {
            if checkpoint.is_some_and(|checkpoint| found <= checkpoint) {
                continue;
            }
            let path = log.commit(found);
            if found != version.map_or(0, |version| version + 1) {
                let reason = "the commit before it is missing".to_owned();
                return Err(Error::damaged(&path, Part::Content(reason)));
            }
            for action in actions::read(&path)? {
                let applied = state.apply(action);
                applied.map_err(|format| Error::UnknownFormat { file: path.clone(), format })?;
            }
            version = Some(found);
        }
        if version.is_some() && state.metadata.is_none() {
            let reason = "it does not say which columns the table has".to_owned();
            return Err(Error::damaged(log.directory(), Part::Content(reason)));
        }
        Ok(Self { log, checkpoint, version, state })
    }

    /// The newest version. `None`: there is no log yet.
    pub fn version(&self) -> Option<u64> {
        self.version
    }

    /// The paths of the files of the table, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.state.files.keys().map(String::as_str)
    }

    /// Writes the next version, durably. `columns` are the typed columns that the table has
    /// from now on: those that it had, with the same types, and new ones.
    ///
    /// Files that the table has are not added again, and files that it does not have are not
    /// removed. Returns the version; `None`: nothing changes, and nothing was written.
    ///
    /// # Errors
    /// [`Error::VersionConflict`] when another writer was first: open the table again.
    /// [`Error::ColumnChanged`] when a column is missing or has another type. Otherwise when
    /// a file cannot be written. The table then has the version from before.
    pub fn commit(
        &mut self,
        columns: &[TypedColumn],
        change: Change<'_>,
        now_millis: i64,
    ) -> Result<Option<u64>> {
        let (old, new, operation): (&[String], &[TableFile], _) = match change {
            Change::Add(new) => (&[], new, "WRITE"),
            Change::Replace { old, new } => (old, new, "OPTIMIZE"),
            Change::Rewrite { old, new } => (old, new, "DELETE"),
            Change::Remove(old) => (old, &[], "DELETE"),
        };
        let is_data_change = !matches!(change, Change::Replace { .. });
        self.write(Columns::Events(columns), old, new, is_data_change, operation, now_millis)
    }

    /// Writes the next version of a table of persons: these files replace all others.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn replace_persons(&mut self, new: &[TableFile], now_millis: i64) -> Result<Option<u64>> {
        let old: Vec<String> = self.paths().map(str::to_owned).collect();
        self.write(Columns::Persons, &old, new, true, "WRITE", now_millis)
    }

    /// Writes a version with exactly these files, if the newest one has others: after a
    /// crash between a change of the catalog and its commit, and to make the log again.
    ///
    /// If as many events are added as removed, they count as the same events.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn bring_up_to(
        &mut self,
        columns: &[TypedColumn],
        files: &[TableFile],
        now_millis: i64,
    ) -> Result<Option<u64>> {
        let wanted: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let old: Vec<&Add> =
            self.state.files.values().filter(|add| !wanted.contains(&*add.path)).collect();
        let removed: u64 = old.iter().map(|add| add.rows()).sum();
        let new = files.iter().filter(|file| !self.state.files.contains_key(&file.path));
        let added: u64 = new.map(|file| file.rows).sum();
        let is_data_change = removed != added;
        let old: Vec<String> = old.into_iter().map(|add| add.path.clone()).collect();
        let columns = Columns::Events(columns);
        self.write(columns, &old, files, is_data_change, "WRITE", now_millis)
    }

    fn write(
        &mut self,
        columns: Columns<'_>,
        old: &[String],
        new: &[TableFile],
        is_data_change: bool,
        operation: &'static str,
        now: i64,
    ) -> Result<Option<u64>> {
        let metadata = self.metadata(columns, now)?;
        let mut removed = Vec::new();
        for path in old {
            if let Some(add) = self.state.files.get(path) {
                removed.push(Action::Remove(Remove::of(add, is_data_change, now)));
            }
        }
        let mut added = Vec::new();
        for file in new {
            let add = Add::of(file, columns, is_data_change);
            let add = add.map_err(|reason| self.refused(&reason))?;
            if self.state.files.get(&add.path).is_none_or(|old| !old.is_same(&add)) {
                added.push(Action::Add(add));
            }
        }
        let changed = (self.state.metadata.as_ref() != Some(&metadata)).then_some(metadata);
        if changed.is_none() && added.is_empty() && removed.is_empty() {
            return Ok(None);
        }
        let mut actions = vec![Action::info(operation, now)];
        if self.version.is_none() {
            actions.push(Action::protocol());
        }
        actions.extend(changed.map(Action::MetaData));
        actions.extend(removed);
        actions.extend(added);
        let text = actions::text(&actions).map_err(|reason| self.refused(&reason))?;
        self.checkpoint_if_due()?;
        let version = self.version.map_or(0, |version| version + 1);
        self.log.write_commit(version, &text)?;
        self.version = Some(version);
        for action in actions {
            self.state.apply(action).map_err(|reason| self.refused(&reason))?;
        }
        Ok(Some(version))
    }

    /// The columns that the table has from now on, if they may follow those that it has.
    fn metadata(&self, columns: Columns<'_>, now: i64) -> Result<MetaData> {
        let schema = actions::schema(columns).map_err(|reason| self.refused(&reason))?;
        let Some(old) = &self.state.metadata else {
            let id = Uuid::new_v4().to_string();
            return Ok(MetaData::new(id, schema, now, columns.bounded()));
        };
        match old.changed_column(&schema).map_err(|reason| self.refused(&reason))? {
            None => Ok(old.with_schema(schema)),
            Some(column) => {
                Err(Error::ColumnChanged { table: self.log.directory().to_owned(), column })
            }
        }
    }

    fn checkpoint_if_due(&mut self) -> Result<()> {
        let (Some(version), Some(metadata)) = (self.version, &self.state.metadata) else {
            return Ok(());
        };
        // The first version has the number 0.
        if version + 1 < self.checkpoint.map_or(0, |checkpoint| checkpoint + 1) + CHECKPOINT {
            return Ok(());
        }
        let path = self.log.checkpoint(version);
        let adds: Vec<&Add> = self.state.files.values().collect();
        let bytes = checkpoint::bytes(metadata, &adds)
            .map_err(|e| Error::Encode { file: path, reason: e.to_string() })?;
        self.log.write_checkpoint(version, &bytes, checkpoint::actions(&adds))?;
        let before = self.checkpoint.replace(version);
        self.log.remove_before(before.unwrap_or(0))
    }

    fn refused(&self, reason: &str) -> Error {
        let file: PathBuf = self.log.directory().to_owned();
        Error::Encode { file, reason: reason.to_owned() }
    }
}

#[cfg(test)]
mod tests;
