//! The source of the master key (ADR 7): the file of the setting `master_key_file`, the
//! environment, or a file next to the data directory that is created when it is first
//! needed; and `weir rotate-key`.
//!
//! What belongs here: files, their permissions, and where they may be. What does not:
//! using the key (`weir_service::sealing`).

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use weir_service::sealing::{
    EphemeralKey, KeyError, KeySource, MasterKey, RotationError, check_present, rotate as rotate_to,
};
use zeroize::Zeroizing;

use crate::config::{Config, StoreKind};
use crate::serve::open_store;

/// The environment variable that holds the key itself.
pub const VARIABLE: &str = "WEIR_MASTER_KEY";
/// Longest file that can be a key, in bytes.
const LONGEST: u64 = 256;

/// The source of the key for these settings.
///
/// # Errors
/// [`KeyError::Source`] when both the file and the variable are set, or the data
/// directory has no parent for the file.
pub fn source(config: &Config) -> Result<Box<dyn KeySource>, KeyError> {
    let written = std::env::var_os(VARIABLE).filter(|written| !written.is_empty());
    Ok(match (written, KeyFile::of(config)) {
        (Some(_), _) if !config.master_key_file.as_os_str().is_empty() => {
            return Err(KeyError::Source(format!("set either {VARIABLE} or master_key_file")));
        }
        (Some(written), _) => Box::new(KeyVariable::read(&written)?),
        (None, file) => match file? {
            Some(file) => Box::new(file),
            None => Box::new(EphemeralKey),
        },
    })
}

/// The key in the environment.
struct KeyVariable(MasterKey);

impl KeyVariable {
    fn read(written: &OsStr) -> Result<Self, KeyError> {
        let key = MasterKey::parse(written.as_encoded_bytes());
        key.map(Self).map_err(|error| KeyError::Source(format!("{VARIABLE}: {error}")))
    }
}

impl KeySource for KeyVariable {
    fn find(&self) -> Result<Option<MasterKey>, KeyError> {
        Ok(Some(self.0.clone()))
    }

    fn make(&self) -> Result<MasterKey, KeyError> {
        Ok(self.0.clone())
    }

    fn location(&self) -> String {
        VARIABLE.to_owned()
    }
}

#[derive(Debug, Clone)]
struct KeyFile {
    path: PathBuf,
    data: PathBuf,
    /// Whether the file may be created. It may not when the operator configured it: a
    /// misspelt path would create another key, and the operator would believe that it is
    /// backed up.
    may_be_made: bool,
}

impl KeyFile {
    /// `None` when the store is in memory and no file is configured.
    fn of(config: &Config) -> Result<Option<Self>, KeyError> {
        let data = config.data.clone();
        if !config.master_key_file.as_os_str().is_empty() {
            let path = config.master_key_file.clone();
            return Ok(Some(Self { path, data, may_be_made: false }));
        }
        match config.store {
            StoreKind::Memory => Ok(None),
            StoreKind::RocksDb | StoreKind::Postgres(_) => {
                let path = beside(&data)?;
                Ok(Some(Self { path, data, may_be_made: true }))
            }
        }
    }

    fn fault(&self, location: impl std::fmt::Display) -> KeyError {
        KeyError::Source(format!("the master key file `{}` {location}", self.path.display()))
    }

    /// Refuses a key in the data directory, because every copy of the directory would
    /// contain it.
    fn refuse_data_directory(&self) -> Result<(), KeyError> {
        let directory = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            Some(_) | None => Path::new("."),
        };
        let (Ok(directory), Ok(data)) = (directory.canonicalize(), self.data.canonicalize()) else {
            return Ok(());
        };
        if directory.starts_with(&data) {
            return Err(self.fault(
                "is in the data directory, so every copy of the data would hold its key; \
                 keep it elsewhere",
            ));
        }
        Ok(())
    }

    fn read(&self) -> Result<Option<MasterKey>, KeyError> {
        self.refuse_data_directory()?;
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.fault(format_args!("cannot be read: {error}"))),
        };
        let unreadable = |error: io::Error| self.fault(format_args!("cannot be read: {error}"));
        let about = file.metadata().map_err(unreadable)?;
        if about.is_dir() {
            return Err(self.fault("is a directory"));
        }
        if about.permissions().mode() & 0o077 != 0 {
            let location =
                format_args!("can be read by others; run: chmod 600 {}", self.path.display());
            return Err(self.fault(location));
        }
        let mut written = Zeroizing::new(Vec::new());
        file.take(LONGEST).read_to_end(&mut written).map_err(unreadable)?;
        MasterKey::parse(&written)
            .map(Some)
            .map_err(|error| self.fault(format_args!("is none: {error}")))
    }

    /// Writes a key to a file that does not exist yet.
    fn write(&self, key: &MasterKey) -> Result<(), KeyError> {
        self.refuse_data_directory()?;
        let write = || -> io::Result<()> {
            let mut file =
                File::options().write(true).create_new(true).mode(0o600).open(&self.path)?;
            file.write_all(format!("{}\n", key.written().as_str()).as_bytes())?;
            file.sync_all()?;
            sync_directory(&self.path)
        };
        write().map_err(|error| {
            self.fault(format_args!(
                "cannot be written: {error}; name another one with master_key_file"
            ))
        })
    }

    /// The key in this file, which is created if it is missing.
    fn read_or_make(&self) -> Result<MasterKey, KeyError> {
        if let Some(key) = self.read()? {
            return Ok(key);
        }
        let key = MasterKey::random().map_err(|error| KeyError::Source(error.to_string()))?;
        self.write(&key)?;
        Ok(key)
    }

    /// The path with a suffix appended to its name.
    fn with_suffix(&self, suffix: &str) -> Self {
        let mut path = self.path.clone().into_os_string();
        path.push(suffix);
        Self { path: path.into(), ..self.clone() }
    }
}

impl KeySource for KeyFile {
    fn find(&self) -> Result<Option<MasterKey>, KeyError> {
        match self.read()? {
            None if !self.may_be_made => {
                Err(self
                    .fault("is not there; make one with: (umask 077; openssl rand -hex 32 > FILE)"))
            }
            found => Ok(found),
        }
    }

    fn make(&self) -> Result<MasterKey, KeyError> {
        let key = self.read_or_make()?;
        tracing::warn!(
            file = %self.path.display(),
            key = key.id(),
            "made the master key that secrets are sealed with: keep a copy of it, \
             apart from copies of the data; without it the stored secrets are lost"
        );
        Ok(key)
    }

    fn location(&self) -> String {
        format!("`{}`", self.path.display())
    }
}

/// The path `<data>.key`.
fn beside(data: &Path) -> Result<PathBuf, KeyError> {
    let unknown = || {
        KeyError::Source(
            "set master_key_file: there is no place for a key beside the data directory".to_owned(),
        )
    };
    let whole = std::path::absolute(data).map_err(|_| unknown())?;
    let mut name = whole.file_name().ok_or_else(unknown)?.to_owned();
    name.push(".key");
    Ok(whole.with_file_name(name))
}

fn sync_directory(file: &Path) -> io::Result<()> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// Why the key was not rotated.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// A store in memory has no key to rotate.
    #[error("a store in memory has no key that lasts")]
    InMemory,
    /// No file for the new key is named.
    #[error("the present key is in {VARIABLE}: name a file for the new one with --new-key-file")]
    InvalidCursor,
    /// The old and the new key are equal.
    #[error("the new key is the present one")]
    Same,
    /// A key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The secrets cannot be sealed with the new key.
    #[error(transparent)]
    Rotation(#[from] RotationError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] weir_store::Error),
    /// The new key's file cannot replace the old one.
    #[error("the secrets are sealed with the key in `{new}`, which cannot be moved to `{target}`")]
    Unmoved {
        /// Path of the new key's file.
        new: PathBuf,
        /// Path that it must be moved to.
        target: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

/// Seals all secrets again with another key: the one in `new`, which is created if it is
/// missing, or a new key that replaces the present one. Works on the data directory while
/// no server runs. Returns the lines to print.
///
/// # Errors
/// [`RotateError`]. Calling it again continues.
pub async fn rotate(config: &Config, new: Option<PathBuf>) -> Result<String, RotateError> {
    if config.store == StoreKind::Memory {
        return Err(RotateError::InMemory);
    }
    let in_variable = std::env::var_os(VARIABLE).is_some_and(|written| !written.is_empty());
    let present = source(config)?;
    // The open store keeps other processes out of the data directory while keys are
    // created.
    let store = open_store(config).await?;
    let outcome = match (new, KeyFile::of(config)?) {
        (Some(path), _) => {
            let file = KeyFile { path, data: config.data.clone(), may_be_made: true };
            go_over(&store, present.as_ref(), &file).await.map(|count| {
                format!(
                    "Re-encrypted {count} secrets. From now on the key is in `{}`: set \
                     master_key_file to it.",
                    file.path.display()
                )
            })
        }
        (None, Some(file)) if !in_variable => replace(&store, present.as_ref(), &file).await,
        (None, _) => Err(RotateError::InvalidCursor),
    };
    store.close_at_end().await?;
    outcome
}

async fn go_over(
    store: &weir_store::Store,
    present: &dyn KeySource,
    file: &KeyFile,
) -> Result<u64, RotateError> {
    let from = present.find()?;
    let to = match file.read()? {
        Some(key) => key,
        None => {
            check_present(store, from.as_ref(), present.location()).await?;
            file.read_or_make()?
        }
    };
    if from.as_ref().is_some_and(|from| from.id() == to.id()) {
        return Err(RotateError::Same);
    }
    Ok(rotate_to(store, from, present.location(), to).await?)
}

/// Seals with a key in a file next to the present one, and then moves that file to the
/// path of the present one. The old key stays in a file with its id, because backups need
/// it.
async fn replace(
    store: &weir_store::Store,
    present: &dyn KeySource,
    file: &KeyFile,
) -> Result<String, RotateError> {
    let new = file.with_suffix(".new");
    let count = go_over(store, present, &new).await?;
    let unmoved =
        |source| RotateError::Unmoved { new: new.path.clone(), target: file.path.clone(), source };
    let mut kept = String::new();
    if let Some(old) = file.read()? {
        let copy = file.with_suffix(&format!(".{}", old.id()));
        if copy.read()?.is_none() {
            copy.write(&old)?;
        }
        kept = format!(
            " The old one is kept in `{}`: backups from before need it.",
            copy.path.display()
        );
    }
    std::fs::rename(&new.path, &file.path).map_err(unmoved)?;
    sync_directory(&file.path).map_err(unmoved)?;
    Ok(format!(
        "Re-encrypted {count} secrets. From now on the key is in `{}`.{kept}",
        file.path.display()
    ))
}

#[cfg(test)]
mod tests;
