//! Backups in a directory, or in a storage of others with the same files: storing a snapshot
//! of files, verifying it, and restoring it.
//!
//! | path in the repository | content |
//! |---|---|
//! | `backups/<time>-<hash>.json` | the manifest of a backup; the hash in its name is its own |
//! | `files/<2 digits>/<SHA-256>` | the content of files, which backups share |
//! | `weir-repository` | the id of the instance. The lock of the file is held by the command that uses the repository |
//! | `damaged/<SHA-256>` | content that a check found damaged |
//!
//! A file is stored once, by its SHA-256. So a backup adds what earlier ones do not have,
//! and every backup is complete: none depends on another. A manifest is written last, so a
//! backup that was interrupted has none, and the next one removes what only it stored
//! (DUR-17).
//!
//! A backup does not trust stored content with the bytes that it has just read: it replaces
//! it. Content of files that have not changed is not read; a check moves it away if two reads find
//! it wrong, and the next backup stores it again (DUR-18). Content that cannot be read is
//! never moved, and content that was moved and is right is moved back.
//!
//! What belongs here: files of backups. What does not: making a consistent snapshot of a
//! data directory (`weir-store`, `weir-ingest`), what its files mean, requests to a storage
//! ([`Remote`]) or to the place of files that are not local ([`Fetch`]), and the commands
//! (`weir-server`).
//!
//! All functions block the thread: they read and write files.

mod copy;
mod error;
mod fetch;
mod instance;
mod manifest;
mod remote;
mod repository;
mod restore;
mod staging;
#[cfg(test)]
mod tests;

pub use error::{Error, FileFault, Result};
pub use fetch::{Fetch, Fetched, Needed};
pub use instance::instance_id;
pub use manifest::{Entry, Manifest};
pub use remote::Remote;
pub use repository::{About, Found, Limits, Partial, Repository, Stored, refuse_low_disk};
pub use restore::{Damage, Restored, link, restore, verify};
pub use staging::Staging;
