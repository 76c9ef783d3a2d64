//! What can go wrong with a backup.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a backup could not be stored, read or restored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An operation of the file system failed.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// Another command uses the directory.
    #[error("the directory `{}` is in use by another command", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// A directory for unfinished files is another one.
    #[error("`{}` was not made by this command; move it away", path.display())]
    NotOurs {
        /// The directory.
        path: PathBuf,
    },
    /// A storage of others could not be used.
    #[error("`{place}` cannot be used")]
    Remote {
        /// Where it is.
        place: String,
        /// The error of the request.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another command may have begun to write to the storage.
    #[error("another command may use `{place}` meanwhile; this one did not finish")]
    Lost {
        /// Where it is.
        place: String,
    },
    /// Something is neither a file nor a directory.
    #[error("`{}` is neither a file nor a directory; it cannot be in a backup", path.display())]
    NoFile {
        /// Its path.
        path: PathBuf,
    },
    /// The backup would take the disk space that the service needs.
    #[error(
        "the disk of `{}` has less than {least} bytes free and has the data directory too; \
         free space, or choose a directory on another disk",
        path.display()
    )]
    LowDisk {
        /// A directory of the repository.
        path: PathBuf,
        /// The free bytes that it must have.
        least: u64,
    },
    /// The process was asked to end.
    #[error("the process was asked to end; earlier backups stay as they are")]
    Interrupted,
    /// The directory has files, and they are not backups.
    #[error("the directory `{}` has other files than backups; choose another one", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
    },
    /// The directory has backups of another instance.
    #[error(
        "the directory `{}` has backups of another instance ({found}); choose another one",
        path.display()
    )]
    OtherInstance {
        /// The directory.
        path: PathBuf,
        /// The id of that instance.
        found: String,
    },
    /// A file does not have the id of an instance.
    #[error("`{}` does not have the id of an instance", path.display())]
    NoId {
        /// The file.
        path: PathBuf,
    },
    /// The directory has no backups.
    #[error("the directory `{}` has no backups", path.display())]
    Empty {
        /// The directory.
        path: PathBuf,
    },
    /// There is no backup with this name.
    #[error("there is no backup `{name}`; there are: {}", names.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The names of the backups that there are.
        names: Vec<String>,
    },
    /// No backup began early enough.
    #[error("no backup with a sound manifest began at that time or before; there are: {}", names.join(", "))]
    NoneBefore {
        /// The names of the backups that there are.
        names: Vec<String>,
    },
    /// The manifest of a backup is damaged, or no manifest that this program can read.
    #[error("the manifest of the backup `{name}` cannot be used: {reason}")]
    Manifest {
        /// The name of the backup.
        name: String,
        /// Why.
        reason: String,
    },
    /// A file of the backup is not as it was stored.
    #[error("`{path}` of the backup is damaged: {fault}")]
    Damaged {
        /// The path of the file in the data directory.
        path: String,
        /// What is wrong with it.
        fault: FileFault,
    },
    /// The file became shorter while it was copied.
    #[error("`{}` changed while it was copied", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The disk of the target of a restore has too little free space.
    #[error(
        "the disk of `{}` has {free} bytes free and needs {needed}: {bytes} for the backup, and \
         the rest stays free (disk_high); nothing was restored",
        path.display()
    )]
    NoSpace {
        /// The target.
        path: PathBuf,
        /// The bytes of the backup.
        bytes: u64,
        /// The free bytes that the disk must have.
        needed: u64,
        /// The free bytes that it has.
        free: u64,
    },
    /// The target of a restore has files.
    #[error("`{}` is not an empty directory; nothing was restored", path.display())]
    NotEmpty {
        /// The target.
        path: PathBuf,
    },
    /// The target of a restore is the root of a file system, or has no name.
    #[error("`{}` cannot be the data directory: name a directory in another one", path.display())]
    NoName {
        /// The target.
        path: PathBuf,
    },
}

/// What is wrong with a stored file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileFault {
    /// The repository does not have its content.
    Missing,
    /// Its content has another length.
    Length {
        /// The length that was stored, bytes.
        expected: u64,
        /// The length that it has, bytes.
        found: u64,
    },
    /// Its content differs from its checksum.
    Bytes,
    /// The system cannot read its content, and says why.
    Unreadable(String),
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("its content is missing"),
            Self::Length { expected, found } => {
                write!(f, "it has {found} bytes, and was stored with {expected}")
            }
            Self::Bytes => f.write_str("its bytes differ from their checksum"),
            Self::Unreadable(reason) => write!(f, "it cannot be read: {reason}"),
        }
    }
}

/// The error of an operation on a path.
pub(crate) fn failed<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> Error + 'a {
    move |source| Error::Io { action, path: path.to_owned(), source }
}
