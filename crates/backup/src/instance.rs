//! Whose backups a repository has. The id of an instance is random. It is in the data
//! directory, in the marker file of the repository, and in each manifest. A restore writes
//! it to the new data directory, which continues with the same repository.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::Path;

use crate::copy::sync_directory;
use crate::error::{Error, Result, failed};

/// The file in the data directory.
const FILE: &str = "instance-id";
/// The same while it is not complete.
const UNFINISHED: &str = "instance-id.tmp";
/// Longest id, bytes.
const LONGEST: usize = 64;

/// The id of the instance with this data directory. `new` makes one if it has none yet.
///
/// # Errors
/// [`Error::NoId`] when the file has something else, and errors of the file system.
pub fn instance_id(data: &Path, new: impl FnOnce() -> String) -> Result<String> {
    let path = data.join(FILE);
    if !path.exists() {
        write_to(data, &new())?;
    }
    read(&path)?.ok_or(Error::NoId { path })
}

/// Writes the id of an instance to its data directory.
pub(crate) fn write_to(data: &Path, id: &str) -> Result<()> {
    let (path, unfinished) = (data.join(FILE), data.join(UNFINISHED));
    write(&unfinished, id)?;
    fs::rename(&unfinished, &path).map_err(failed("create", &path))?;
    sync_directory(data)
}

/// Writes an id to a file.
pub(crate) fn write(path: &Path, id: &str) -> Result<()> {
    let mut file = File::create(path).map_err(failed("create", path))?;
    let written = writeln!(file, "{id}").and_then(|()| file.sync_all());
    written.map_err(failed("write", path))
}

/// Reads an id. `None`: the file does not exist or is empty.
pub(crate) fn read(path: &Path) -> Result<Option<String>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed("open", path))?,
    };
    let mut text = String::new();
    let most = LONGEST as u64 + 2;
    file.take(most).read_to_string(&mut text).map_err(failed("read", path))?;
    match text.trim_end() {
        "" => Ok(None),
        id if is_id(id) => Ok(Some(id.to_owned())),
        _ => Err(Error::NoId { path: path.to_owned() }),
    }
}

/// Whether a text can be the id of an instance.
pub(crate) fn is_id(text: &str) -> bool {
    (1..=LONGEST).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
