//! Hard links to the files of a log, for a backup. A service may write the log meanwhile.
//!
//! What belongs here: which files a copy of the log needs, and how far the last one is
//! written. What does not: storing the copy (`weir-backup`).

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::recovery::walk;
use super::segment::Segment;
use super::{LogError, quarantine};

/// Links the segments and the quarantined copies of the log in `directory` into `target`,
/// which is created. What is linked already stays. Returns the newest segment of
/// `directory`; `None`: there is no log yet.
///
/// # Errors
/// When a file cannot be linked.
pub fn link(directory: &Path, target: &Path) -> Result<Option<PathBuf>, LogError> {
    create(target)?;
    if !directory.exists() {
        return Ok(None);
    }
    let segments = Segment::list(directory)?;
    for (_, path) in &segments {
        link_one(path, target)?;
    }
    let copies = quarantine::list(directory)?;
    if !copies.is_empty() {
        let target = quarantine::directory(target);
        create(&target)?;
        copies.iter().try_for_each(|copy| link_one(&copy.path, &target))?;
    }
    Ok(segments.last().map(|(_, path)| path.clone()))
}

/// The last segment of a log, and its bytes up to the end of the last record. Behind them
/// may be the beginning of a record that is being written. Everything before them is
/// complete as soon as this function has returned, because the writer writes in order.
///
/// # Errors
/// When the files cannot be read.
pub fn last_segment(directory: &Path) -> Result<Option<(PathBuf, u64)>, LogError> {
    let Some((base, path)) = Segment::list(directory)?.pop() else { return Ok(None) };
    let mut options = File::options();
    options.read(true);
    let segment = Segment::open(base, path, &options)?;
    let bytes = segment.read_all()?;
    // The size that it has: whether it was cut is noticed by the start that reads the copy.
    let found = walk(&bytes, base, Some(bytes.len() as u64), &mut |_, _| {});
    Ok(Some((segment.path, found.end as u64)))
}

fn create(directory: &Path) -> Result<(), LogError> {
    std::fs::create_dir_all(directory).map_err(|source| LogError::Io {
        action: "create",
        path: directory.to_owned(),
        source,
    })
}

fn link_one(path: &Path, target: &Path) -> Result<(), LogError> {
    let Some(name) = path.file_name() else { return Ok(()) };
    let unlinkable = |why| LogError::Unlinkable { path: path.to_owned(), why };
    // A symbolic link would be linked itself, and lead out of the backup.
    if std::fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return Err(unlinkable("it is not a file"));
    }
    match std::fs::hard_link(path, target.join(name)) {
        Ok(()) => Ok(()),
        // It was linked before, or the log has removed it because it is applied.
        Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::CrossesDevices => Err(unlinkable(
            "`log` is on another file system than the data directory; move it there",
        )),
        Err(source) => Err(LogError::Io { action: "link", path: path.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::batch;
    use crate::log::tests::{PROJECT, fill, open};
    use crate::log::{IngestLog as _, inspect};

    /// A copy of a log as a backup makes it: the last segment up to its last record.
    fn copy(linked: &Path, target: &Path) {
        create(target).unwrap();
        let (last, bytes) = last_segment(linked).unwrap().unwrap();
        for (_, path) in Segment::list(linked).unwrap() {
            let mut content = std::fs::read(&path).unwrap();
            if path == last {
                let bytes = usize::try_from(bytes).unwrap();
                content.get_mut(bytes..).unwrap().fill(0);
            }
            std::fs::write(target.join(path.file_name().unwrap()), content).unwrap();
        }
    }

    #[tokio::test]
    async fn a_copy_of_a_log_that_is_written_has_what_was_acknowledged_before() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        assert_eq!(link(&path("none"), &path("linked")).unwrap(), None);
        assert_eq!(last_segment(&path("linked")).unwrap(), None);
        fill(&path("log"), 150).await;
        let log = open(&path("log"));
        log.append(PROJECT, batch("acknowledged", 2).into_encoded()).await.unwrap();
        let newest = link(&path("log"), &path("linked")).unwrap().unwrap();
        assert!(newest.exists());
        let more = async {
            for n in 0..20 {
                log.append(PROJECT, batch(&format!("later-{n}"), 2).into_encoded()).await.unwrap();
            }
        };
        let copied = async { copy(&path("linked"), &path("copy")) };
        tokio::join!(more, copied);
        let found = inspect(&path("copy"), &[], |_| {}).unwrap();
        assert!(found.broken.iter().all(|broken| broken.fault == crate::log::Fault::Missing));
        let records: u64 = found.segments.iter().map(|segment| segment.records).sum();
        assert!((151..=171).contains(&records), "{records}");
        // A file that is linked already is no error.
        link(&path("log"), &path("linked")).unwrap();
        std::os::unix::fs::symlink("nowhere", path("log/00000000000099999999.log")).unwrap();
        let refused = link(&path("log"), &path("linked")).unwrap_err();
        assert!(matches!(refused, LogError::Unlinkable { .. }), "{refused}");
    }

    #[tokio::test]
    async fn what_is_behind_the_last_record_is_not_counted() {
        let place = tempfile::tempdir().unwrap();
        fill(place.path(), 3).await;
        let (path, bytes) = last_segment(place.path()).unwrap().unwrap();
        let mut content = std::fs::read(&path).unwrap();
        // The beginning of a record that is being written.
        let at = usize::try_from(bytes).unwrap();
        content.copy_within(0..20, at);
        std::fs::write(&path, content).unwrap();
        assert_eq!(last_segment(place.path()).unwrap(), Some((path, bytes)));
    }
}
