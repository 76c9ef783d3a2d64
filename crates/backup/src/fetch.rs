//! Files of a snapshot that its directory may not have, because they are elsewhere, such as in
//! a bucket.
//!
//! They are fetched one at a time, when they are stored. One that the newest backup has is not
//! fetched again: the name of such a file is never used for other content.
//!
//! What belongs here: what such a source must be able to do. What does not: how it is asked
//! (`weir-server`), and storing the files (`repository`).

use std::path::Path;

use crate::error::Result;

/// A file that the snapshot must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needed {
    /// Its path in the snapshot.
    pub path: String,
    /// Its length, bytes.
    pub bytes: u64,
}

/// What was fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetched {
    /// The file is as it was written.
    Sound,
    /// The file is damaged. The next backup asks for it again.
    Damaged,
    /// There is no file.
    Absent,
}

/// A source of files. Its functions block the thread.
pub trait Fetch {
    /// The next file; `None`: there are no more.
    ///
    /// # Errors
    /// When it is unknown which files there are.
    fn next(&mut self) -> Result<Option<Needed>>;

    /// Puts the file that [`Fetch::next`] returned last at a path, unless a sound copy is there.
    ///
    /// # Errors
    /// When the source cannot be used, or the file cannot be written.
    fn fetch(&mut self, at: &Path) -> Result<Fetched>;
}
