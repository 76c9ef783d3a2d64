//! Files of ACME: the account and the certificate, with their keys.
//!
//! What belongs here: reading them within bounds, and replacing them whole. Only the owner
//! can read the directory and its files (SEC-26).

use std::io;
use std::path::{Path, PathBuf};

use tokio::fs::{self, DirBuilder, File, OpenOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Most bytes of a file.
const LARGEST: u64 = 1 << 20;

/// The directory of the files. It is created with the first file.
pub(super) struct Cache(PathBuf);

impl Cache {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The content of a file. `None` if there is none, or if it cannot be read.
    pub(super) async fn read(&self, name: &str) -> Option<Vec<u8>> {
        let path = self.path(name);
        match read(&path).await {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(%error, file = %path.display(), "a stored file is not used");
                None
            }
        }
    }

    /// Replaces a file. After a crash it has the old content or the new one.
    pub(super) async fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0).await?;
        let new = self.path(&format!("{name}.new"));
        // A file of an interrupted call may be readable for others.
        remove(&new).await?;
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&new).await?;
        file.write_all(bytes).await?;
        // Reports a failed write, which `sync_all` does not.
        file.flush().await?;
        file.sync_all().await?;
        fs::rename(&new, self.path(name)).await?;
        File::open(&self.0).await?.sync_all().await
    }

    /// Removes a file if it exists.
    pub(super) async fn remove(&self, name: &str) -> io::Result<()> {
        remove(&self.path(name)).await
    }
}

async fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).await?.take(LARGEST + 1).read_to_end(&mut bytes).await?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other("the file is too large"));
    }
    Ok(bytes)
}

async fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::{Cache, LARGEST};

    #[tokio::test]
    async fn files_are_replaced_whole_and_are_of_their_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("data/acme");
        let cache = Cache::new(directory.clone());
        assert_eq!(cache.read("a").await, None);
        // The rest of an interrupted call.
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("a.new"), "half").unwrap();
        for content in ["one", "two"] {
            cache.write("a", content.as_bytes()).await.unwrap();
            assert_eq!(cache.read("a").await.as_deref(), Some(content.as_bytes()));
        }
        let names: Vec<_> = std::fs::read_dir(&directory).unwrap().map(Result::unwrap).collect();
        assert_eq!(names.len(), 1);
        let mode = std::fs::metadata(cache.path("a")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        cache.remove("a").await.unwrap();
        cache.remove("a").await.unwrap();
        assert_eq!(cache.read("a").await, None);
    }

    #[tokio::test]
    async fn a_file_that_is_too_large_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().to_owned());
        let large = vec![b'x'; usize::try_from(LARGEST).unwrap() + 1];
        std::fs::write(cache.path("a"), large).unwrap();
        assert_eq!(cache.read("a").await, None);
    }
}
