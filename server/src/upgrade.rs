//! `weir upgrade --check`: what the next start of this program would do to a data directory
//! (DUR-25). The upgrade itself is that start.
//!
//! The store is opened from links to its files, as for `weir check`, and its migrations are
//! not applied. So the data directory is not changed, and a server may run.

use std::path::{Path, PathBuf};

use weir_store::disk;
use weir_store::inspection::stored_schema;
use weir_store::{Error as StoreError, MissingMigration, StoredSchema, schema_version};

use crate::backup::{BackupError, link_store, stop_flag, unlink_store};
use crate::config::{Config, StoreKind};
use crate::files::{shown, size};
use crate::log_tools::has_store;

/// Exit code: this program refuses the data, because a newer one wrote it.
const REFUSED: u8 = 3;
/// Exit code: there is too little free disk space.
const NO_SPACE: u8 = 4;

/// Why an upgrade is not possible, or was not checked.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    /// A store in memory has no files.
    #[error("a store in memory has no files")]
    InMemory,
    /// The store is in a database.
    #[error("the store is in a PostgreSQL database: check an upgrade on a copy of the database")]
    InDatabase,
    /// The directory has no store.
    #[error("there is no store in the data directory `{0}`")]
    NoStore(PathBuf),
    /// The disk has too little free space.
    #[error(
        "too little free disk space: {} is free, and {} is needed",
        shown(*.free),
        shown(*.needed)
    )]
    NoSpace {
        /// Free bytes.
        free: u64,
        /// Needed bytes.
        needed: u64,
    },
    /// The files cannot be linked.
    #[error(transparent)]
    Files(#[from] BackupError),
    /// The store cannot be read, or this program refuses it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl UpgradeError {
    /// The exit code of the command.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Store(StoreError::NewerSchema { .. } | StoreError::ChangedMigration { .. }) => {
                REFUSED
            }
            Self::NoSpace { .. } => NO_SPACE,
            Self::InMemory
            | Self::InDatabase
            | Self::NoStore(_)
            | Self::Files(_)
            | Self::Store(_) => 1,
        }
    }
}

/// What a check found.
#[derive(Debug)]
pub struct Checked {
    /// The lines to print.
    pub text: String,
    /// Why an upgrade is not possible all the same.
    pub failure: Option<UpgradeError>,
}

/// Says what an upgrade of a data directory would do. Without a directory: of the one of the
/// settings.
///
/// # Errors
/// [`UpgradeError`] with the reason, also if this program refuses the data.
pub async fn check(config: &Config, directory: Option<PathBuf>) -> Result<Checked, UpgradeError> {
    match config.store {
        StoreKind::RocksDb => {}
        StoreKind::Postgres(_) => return Err(UpgradeError::InDatabase),
        StoreKind::Memory => return Err(UpgradeError::InMemory),
    }
    let data = directory.unwrap_or_else(|| config.data.clone());
    let of = Config { data: data.clone(), ..config.clone() };
    if !has_store(&of) {
        return Err(UpgradeError::NoStore(data));
    }
    // Before the links, which count as files.
    let store = size(&data.join("store"));
    let free = disk::free_space(&data).unwrap_or(u64::MAX);
    let is_stopped = stop_flag().map_err(BackupError::Signals)?;
    let staging = link_store(&data, &is_stopped).await?;
    let schema = stored_schema(staging.path()).await;
    unlink_store(staging).await?;
    let needed = store.saturating_add(config.disk_high.0);
    let schema = schema?;
    let is_upgrade = !schema.missing.is_empty();
    let text = text(&data, &schema, Space { store, free, needed });
    let failure = (is_upgrade && free < needed).then_some(UpgradeError::NoSpace { free, needed });
    Ok(Checked { text, failure })
}

/// Numbers of bytes.
#[derive(Debug, Clone, Copy)]
struct Space {
    store: u64,
    free: u64,
    needed: u64,
}

fn text(data: &Path, schema: &StoredSchema, space: Space) -> String {
    let StoredSchema { version, missing } = schema;
    let known = schema_version();
    let directory = data.display();
    let head = format!("The data directory {directory} has schema version {version}");
    if missing.is_empty() {
        return format!("{head}, which is that of this program: there is nothing to upgrade");
    }
    let steps: Vec<String> = missing
        .iter()
        .map(|MissingMigration { version, name }| format!("\n  {version} {name}"))
        .collect();
    let Space { store, free, needed } = space;
    format!(
        "{head}\n\
         The next start of this program upgrades it to version {known}, with these migrations:{}\n\
         Older programs refuse it after that: make a backup before\n\
         Free disk space: {}, needed: {} (`store` has {}, and may be written once more; the rest \
         is disk_high)",
        steps.concat(),
        shown(free),
        shown(needed),
        shown(store),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upgrade_names_its_migrations() {
        let space = Space { store: 1 << 20, free: 5 << 30, needed: (1 << 30) + (1 << 20) };
        let data = Path::new("/srv/data");
        let none = StoredSchema { version: schema_version(), missing: Vec::new() };
        assert!(text(data, &none, space).ends_with("there is nothing to upgrade"));
        let missing = vec![
            MissingMigration { version: 24, name: "scim" },
            MissingMigration { version: 25, name: "passkeys" },
        ];
        let text = text(data, &StoredSchema { version: 23, missing }, space);
        assert!(text.contains("/srv/data has schema version 23\n"), "{text}");
        assert!(text.contains("\n  24 scim\n  25 passkeys\n"), "{text}");
        assert!(text.contains("Free disk space: 5.0 GiB, needed: 1.0 GiB"), "{text}");
    }

    #[test]
    fn exit_codes_are_those_of_the_guide() {
        let newer = StoreError::NewerSchema { found: 99, known: 25 };
        assert_eq!(UpgradeError::from(newer).exit_code(), 3);
        assert_eq!(UpgradeError::NoSpace { free: 1, needed: 2 }.exit_code(), 4);
        assert_eq!(UpgradeError::InMemory.exit_code(), 1);
        assert_eq!(UpgradeError::from(StoreError::DiskLow).exit_code(), 1);
    }
}
