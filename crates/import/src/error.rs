//! Why an import cannot be done, or not be finished.

use std::io;
use std::path::PathBuf;

/// What stops an import. Lines with defects do not: they are in the
/// [`Summary`](crate::Summary).
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file cannot be opened or read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file is a directory, a pipe or the like; it is read twice.
    #[error("`{path}` is not a regular file; an import reads its files twice")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// A file is packed in a way that is not read.
    #[error("`{path}` is {kind}; unpack it first ({hint})")]
    Packed {
        /// The file.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
        /// A command that unpacks it.
        hint: &'static str,
    },
    /// The address of the host cannot be used.
    #[error("`{to}` is not the address of a host: {detail}")]
    Address {
        /// The address.
        to: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The project key cannot be one.
    #[error("the project key is not usable: {0}")]
    Key(&'static str),
    /// The cursor file cannot be read or written.
    #[error("cannot {action} the cursor file `{path}`")]
    Cursor {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The cursor file is damaged or not one.
    #[error(
        "`{path}` is not a cursor file of this version; delete it to begin again, nothing is stored twice"
    )]
    NotACursor {
        /// The file.
        path: PathBuf,
    },
    /// The cursor file belongs to something else.
    #[error(
        "{what} since this import began; bring that back to go on, or delete `{path}` to begin again: \
         nothing is stored twice"
    )]
    Changed {
        /// What is not as it was.
        what: String,
        /// The cursor file.
        path: PathBuf,
    },
    /// The HTTP client cannot be set up.
    #[error("cannot set up the HTTP client")]
    Client(#[source] reqwest::Error),
    /// A request cannot be put together.
    #[error("cannot pack a request")]
    Pack(#[source] io::Error),
    /// Signals cannot be listened for.
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
    /// Standard output failed.
    #[error("cannot print the summary")]
    Print(#[source] io::Error),
    /// Work in the background ended early.
    #[error("a part of the import ended unexpectedly")]
    Task(#[from] tokio::task::JoinError),
    /// It ran, but did not reach its end; the summary says how far it came.
    #[error("{0}")]
    Unfinished(String),
}
