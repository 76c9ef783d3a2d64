//! The store in a PostgreSQL database, and the data directory that the database belongs to.
//!
//! The log and the files of events stay in the data directory, and the positions in the
//! database are those of that log. So the directory has an id, which the database notes when
//! its table is created.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use uuid::Uuid;
use weir_store_postgres::{Postgres, Settings};

use crate::engine::STORE;
use crate::error::Error;

/// The file with the id, in the data directory.
pub const DATABASE_ID: &str = "database-id";
/// The same before it is complete.
const UNFINISHED: &str = "database-id.tmp";

/// Opens the database of a data directory whose lock is held.
///
/// # Errors
/// [`Error::Open`] when the database cannot be used, [`Error::Directory`] when the id cannot
/// be read or written.
pub(crate) async fn open(directory: &Path, settings: &Settings) -> Result<Postgres, Error> {
    let failed = |detail: String| Error::Open { location: settings.address.to_string(), detail };
    if directory.join(STORE).exists() {
        let directory = directory.display();
        return Err(failed(format!(
            "the data directory `{directory}` has a store of its own; choose another directory"
        )));
    }
    let id = directory_id(directory)
        .map_err(|source| Error::Directory { path: directory.to_owned(), source })?;
    Postgres::open(settings, id).await.map_err(|error| failed(error.to_string()))
}

/// Refuses a store in the files of a data directory that a database belongs to.
///
/// # Errors
/// [`Error::Open`] with the reason.
pub(crate) fn refuse_database(directory: &Path) -> Result<(), Error> {
    if !directory.join(DATABASE_ID).exists() {
        return Ok(());
    }
    Err(Error::Open {
        location: directory.display().to_string(),
        detail: "the data of this directory is in a PostgreSQL database; set store to its address"
            .to_owned(),
    })
}

/// The id of a data directory, which is created if it is missing.
fn directory_id(directory: &Path) -> io::Result<Uuid> {
    match fs::read_to_string(directory.join(DATABASE_ID)) {
        Ok(text) => text.trim().parse().map_err(|_| {
            io::Error::new(ErrorKind::InvalidData, format!("`{DATABASE_ID}` has no id"))
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let id = Uuid::new_v4();
            let unfinished = directory.join(UNFINISHED);
            let mut options = File::options();
            options.create(true).write(true).truncate(true).mode(0o600);
            let mut file = options.open(&unfinished)?;
            file.write_all(format!("{id}\n").as_bytes())?;
            file.sync_all()?;
            fs::rename(&unfinished, directory.join(DATABASE_ID))?;
            File::open(directory)?.sync_all()?;
            Ok(id)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use weir_testservers::Postgres as Server;

    use super::*;
    use crate::{Location, Settings as StoreSettings, Store};

    fn database(server: &Server) -> Settings {
        let address = server.url("postgres").parse().unwrap();
        Settings { address, connections: 8, accepts_single_database: true }
    }

    #[test]
    fn a_data_directory_keeps_its_id() {
        let directory = tempfile::tempdir().unwrap();
        assert!(refuse_database(directory.path()).is_ok());
        let id = directory_id(directory.path()).unwrap();
        assert_eq!(directory_id(directory.path()).unwrap(), id);
        assert!(refuse_database(directory.path()).is_err());
        fs::write(directory.path().join(DATABASE_ID), "other").unwrap();
        assert!(directory_id(directory.path()).is_err());
    }

    #[tokio::test]
    async fn a_database_and_a_store_in_files_do_not_share_a_directory() {
        let server = Server::durable().await;
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let in_files = Location::Directory(at("files"));
        let in_database =
            |name: &str| Location::Database { directory: at(name), database: database(&server) };
        let open = async |location: &Location| {
            Store::open(location, StoreSettings::default()).await.map_err(|error| error.to_string())
        };
        let open_once = async |location: &Location| {
            let store = open(location).await.unwrap();
            store.close().await.unwrap();
        };
        open_once(&in_files).await;
        let refused = open(&in_database("files")).await.err().unwrap();
        assert!(refused.contains("has a store of its own"), "{refused}");
        open_once(&in_database("one")).await;
        let refused = open(&Location::Directory(at("one"))).await.err().unwrap();
        assert!(refused.contains("in a PostgreSQL database"), "{refused}");
        let refused = open(&in_database("two")).await.err().unwrap();
        assert!(refused.contains("belongs to another data directory"), "{refused}");
        assert!(!refused.contains("horse"), "{refused}");
        open_once(&in_database("one")).await;
    }
}
