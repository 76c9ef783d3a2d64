//! The stores of tests, one for each storage.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use tokio::sync::OnceCell;
use weir_testservers::Postgres;

use crate::{DATABASE_ID, DatabaseSettings, Location, Settings, Store};

/// A database to which the migrations are applied.
struct Migrated {
    server: &'static Postgres,
    name: String,
    /// The text of the file with the id of its data directory.
    id: String,
}

/// The first test applies the migrations, and the others have copies: the migrations take
/// longer than most tests.
static MIGRATED: OnceCell<Migrated> = OnceCell::const_new();

pub(crate) async fn store() -> Store {
    Store::open(&Location::Memory, Settings::default()).await.unwrap()
}

/// A store in memory and one in files, because they detect conflicts in different ways. The
/// directory is removed when the second value is dropped.
pub(crate) async fn stores() -> (Vec<Store>, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let location = Location::Directory(directory.path().join("files"));
    let in_files = Store::open(&location, Settings::default()).await.unwrap();
    (vec![store().await, in_files], directory)
}

/// The same, and a store in a database.
pub(crate) async fn all_stores() -> (Vec<Store>, TempDir) {
    let (mut stores, directory) = stores().await;
    let Migrated { server, name, id } = MIGRATED.get_or_init(migrated).await;
    let data = directory.path().join("database");
    fs::create_dir(&data).unwrap();
    // The copy belongs to the data directory of the original.
    fs::write(data.join(DATABASE_ID), id).unwrap();
    let location = in_database(&data, server, &server.copy_of(name));
    stores.push(Store::open(&location, Settings::default()).await.unwrap());
    (stores, directory)
}

async fn migrated() -> Migrated {
    let server = Postgres::shared().await;
    let name = server.database();
    let directory = tempfile::tempdir().unwrap();
    let location = in_database(directory.path(), server, &name);
    let store = Store::open(&location, Settings::default()).await.unwrap();
    store.close_at_end().await.unwrap();
    let id = fs::read_to_string(directory.path().join(DATABASE_ID)).unwrap();
    Migrated { server, name, id }
}

/// The location of a store in a database of a test server.
pub(crate) fn in_database(directory: &Path, server: &Postgres, name: &str) -> Location {
    let database = DatabaseSettings {
        address: server.url(name).parse().unwrap(),
        connections: 16,
        accepts_single_database: true,
    };
    Location::Database { directory: directory.to_owned(), database }
}
