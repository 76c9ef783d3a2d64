//! Why an import cannot start or cannot finish.

use std::io;
use std::path::PathBuf;

/// An error that ends an import. Lines with defects do not: they are in the
/// [`Summary`](crate::Summary).
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file cannot be opened or read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file is a directory, a pipe or similar. A file is read twice, so it must be a
    /// regular one.
    #[error("`{path}` is not a regular file; an import reads its files twice")]
    NotAFile {
        /// The path as it was given.
        path: PathBuf,
    },
    /// A file has an unsupported compression.
    #[error("`{path}` is {kind}; decompress it first ({hint})")]
    Compressed {
        /// The file.
        path: PathBuf,
        /// The compression.
        kind: &'static str,
        /// A command that decompresses it.
        hint: &'static str,
    },
    /// The address of the host cannot be used.
    #[error("`{to}` is not the address of a host: {detail}")]
    Address {
        /// The address.
        to: String,
        /// The fault.
        detail: String,
    },
    /// The project key is invalid.
    #[error("the project key is not usable: {0}")]
    Key(&'static str),
    /// The cursor file cannot be read or written.
    #[error("cannot {action} the cursor file `{path}`")]
    Cursor {
        /// The failed operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The cursor file is damaged or not a cursor file.
    #[error(
        "`{path}` is not a cursor file of this version; delete it to begin again, nothing is stored twice"
    )]
    NotACursor {
        /// The file.
        path: PathBuf,
    },
    /// The cursor file belongs to another import.
    #[error(
        "{what} since this import began; bring that back to continue, or delete `{path}` to begin again: \
         nothing is stored twice"
    )]
    Changed {
        /// The difference.
        what: String,
        /// The cursor file.
        path: PathBuf,
    },
    /// The HTTP client cannot be set up.
    #[error("cannot set up the HTTP client")]
    Client(#[source] reqwest::Error),
    /// The body of a request cannot be compressed.
    #[error("cannot compress a request")]
    Compress(#[source] io::Error),
    /// Signal handlers cannot be installed.
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
    /// Writing to standard output failed.
    #[error("cannot print the summary")]
    Print(#[source] io::Error),
    /// A background task ended early.
    #[error("a part of the import ended unexpectedly")]
    Task(#[from] tokio::task::JoinError),
    /// It ran, but did not finish; the summary contains its progress.
    #[error("{0}")]
    Unfinished(String),
}
