//! Copying bytes with their checksum, and making files and directories durable.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use rustix::fs::{Advice, FlockOperation, fadvise, flock};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use crate::error::{Result, failed};

/// Bytes that are read at a time.
const CHUNK: usize = 1 << 20;

/// Copies everything from `source` to `target`. Returns the number of bytes and their
/// SHA-256.
pub(crate) fn copy(source: &mut impl Read, target: &mut impl Write) -> io::Result<(u64, String)> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    let mut bytes = 0;
    loop {
        let read = match source.read(&mut chunk) {
            Ok(0) => return Ok((bytes, hex(&hash.finalize()))),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let part = chunk.get(..read).unwrap_or_default();
        hash.update(part);
        target.write_all(part)?;
        bytes += read as u64;
    }
}

/// The SHA-256 of the content of a file, read from the device if the system can.
pub(crate) fn sha256_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    // Otherwise the system may answer from its memory. Without it, that is read again.
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    copy(&mut file, &mut io::sink()).map(|(_, sha256)| sha256)
}

/// Whether an error of reading says that the device or the file system cannot read data. It
/// may be able to later.
pub(crate) fn is_unreadable(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [Errno::IO, Errno::UCLEAN, Errno::BADMSG].iter().any(|lost| code == Some(lost.raw_os_error()))
}

/// The SHA-256 of bytes, in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Creates a directory that only its owner can read, with those above it.
pub(crate) fn create_directory(path: &Path) -> Result<()> {
    let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    created.map_err(failed("create", path))
}

/// The same, and makes the names of new directories durable.
pub(crate) fn create_durably(path: &Path) -> Result<()> {
    let absolute = std::path::absolute(path).map_err(failed("find", path))?;
    let new: Vec<&Path> = absolute.ancestors().take_while(|above| !above.exists()).collect();
    create_directory(path)?;
    new.iter().filter_map(|directory| directory.parent()).try_for_each(sync_directory)
}

/// Takes the lock of a file, which is created if it is missing. It ends with the value.
/// `None`: another process has it.
pub(crate) fn lock(path: &Path) -> Result<Option<File>> {
    lock_with(path, File::options().create(true).truncate(false))
}

/// The same for a file that must exist.
pub(crate) fn lock_existing(path: &Path) -> Result<Option<File>> {
    lock_with(path, &mut File::options())
}

fn lock_with(path: &Path, options: &mut OpenOptions) -> Result<Option<File>> {
    // Some file systems lock only files that are open for writing.
    let file = options.read(true).write(true).open(path).map_err(failed("open", path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(error) if error == Errno::WOULDBLOCK => Ok(None),
        Err(error) => Err(failed("lock", path)(error.into())),
    }
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> Result<()> {
    let synced = File::open(path).and_then(|directory| directory.sync_all());
    synced.map_err(failed("sync", path))
}

/// The names in a directory, sorted. A name that is not Unicode is none of ours.
pub(crate) fn names(directory: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed("list", directory))? {
        let entry = entry.map_err(failed("list", directory))?;
        names.extend(entry.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}
