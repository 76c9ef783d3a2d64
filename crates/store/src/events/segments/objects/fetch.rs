//! Fetching segments into the directory.
//!
//! A segment is fetched as a whole and compared with its checksums. If the object itself is
//! damaged, it is kept all the same: the checksums of its parts decide at each read.
//!
//! What belongs here: one download and what follows from its content. What does not: who
//! needs the segment (`read`), and which copies stay (`Objects::evict`).

use std::io::ErrorKind;
use std::path::Path;

use weir_objects::Error as BucketError;
use weir_segments::{Error as FileError, Segment};

use super::super::catalog::{self, SealedSegment};
use super::super::files::{Files, unusable};
use super::super::lock;
use super::Objects;
use crate::disk::DiskLevel;
use crate::{Error, Result, Store};

/// What a download had.
enum Fetched {
    /// The segment, which is in the directory now.
    Sound(Segment),
    /// The object is damaged, and why. `None`: it cannot be opened at all.
    Damaged(Option<Segment>, String),
    /// There is no such object.
    Missing,
}

/// Fetches a segment that is not in the directory, and opens it; `None`: the bucket does not
/// have it.
pub(in crate::events::segments) async fn fetch(
    store: &Store,
    sealed: &SealedSegment,
    sums: &[u8],
) -> Result<Option<Segment>> {
    let segments = &store.segments;
    let (Some(objects), Some(files)) = (&segments.objects, &segments.files) else {
        return Ok(None);
    };
    let (name, path) = (&sealed.file, files.path(&sealed.file));
    let _permits = objects.fetching.take([name.clone()]).await;
    // Another reader may have fetched it.
    let (at, of, bytes) = (path.clone(), sums.to_vec(), sealed.bytes);
    match segments.blocking(path.clone(), move || Segment::open(&at, bytes, &of)).await? {
        Err(FileError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
        opened => return opened.map(Some).map_err(|error| segments.error(error)),
    }
    let is_damaged = lock(&objects.known).damaged.contains(name);
    let mut fetched = download(store, objects, files, (sealed, sums), is_damaged).await?;
    if matches!(fetched, Fetched::Damaged(..)) && !is_damaged {
        // It may have been damaged on its way.
        fetched = download(store, objects, files, (sealed, sums), true).await?;
    }
    let segment = match fetched {
        Fetched::Missing => return Ok(None),
        Fetched::Sound(segment) => {
            lock(&objects.known).damaged.remove(name);
            segment
        }
        Fetched::Damaged(segment, detail) => {
            lock(&objects.known).damaged.insert(name.clone());
            let error = segments.damaged(path, detail);
            segment.ok_or(error)?
        }
    };
    // It may be evicted from now on, and stays readable.
    objects.has_local(name, sealed.bytes, true);
    objects.evict(segments, files);
    Ok(Some(segment))
}

/// Replaces a damaged copy by a sound one; `None`: there is no sound one. Until then the
/// damaged one stays.
pub(in crate::events::segments) async fn fetch_again(
    store: &Store,
    sealed: &SealedSegment,
) -> Result<Option<Segment>> {
    let segments = &store.segments;
    let (Some(objects), Some(files)) = (&segments.objects, &segments.files) else {
        return Ok(None);
    };
    let name = &sealed.file;
    let Some(sums) = catalog::sums(store, name).await? else { return Ok(None) };
    let path = files.path(name);
    let _permits = objects.fetching.take([name.clone()]).await;
    // Another reader may have replaced it.
    let (at, of, bytes) = (path.clone(), sums.clone(), sealed.bytes);
    let here = segments.blocking(path.clone(), move || {
        let segment = Segment::open(&at, bytes, &of)?;
        segment.verify().map(|()| segment)
    });
    let segment = match here.await? {
        Ok(segment) => segment,
        Err(_) if lock(&objects.known).damaged.contains(name) => return Ok(None),
        Err(_) => match download(store, objects, files, (sealed, &sums), false).await? {
            Fetched::Sound(segment) => {
                tracing::warn!(object = name, "a damaged local copy was replaced");
                objects.has_local(name, sealed.bytes, true);
                segment
            }
            Fetched::Damaged(..) | Fetched::Missing => {
                lock(&objects.known).damaged.insert(name.clone());
                return Ok(None);
            }
        },
    };
    lock(&segments.open).insert(name.clone(), segment.clone());
    Ok(Some(segment))
}

/// Downloads a segment and compares it with its checksums. A damaged one comes into the
/// directory only if it is to be kept.
async fn download(
    store: &Store,
    objects: &Objects,
    files: &Files,
    (sealed, sums): (&SealedSegment, &[u8]),
    keeps_damaged: bool,
) -> Result<Fetched> {
    let segments = &store.segments;
    let (name, bytes, path) = (&sealed.file, sealed.bytes, files.path(&sealed.file));
    let _slot = objects.fetches.acquire().await.map_err(|_| Error::Stopped)?;
    if store.db.disk().check() == DiskLevel::Low {
        return Err(Error::DiskLow);
    }
    let (of, at) = (files.clone(), path.clone());
    let unfinished = segments.blocking(path.clone(), move || of.unfinished(&at)).await?;
    let unfinished = unfinished.map_err(|error| segments.error(error))?;
    let location = objects.bucket.location();
    if let Err(error) = objects.bucket.download(name, bytes, &unfinished).await {
        let _ = std::fs::remove_file(&unfinished);
        let is_reported = lock(&objects.known).missing.contains(name);
        return match error {
            BucketError::Missing(_) if is_reported => Ok(Fetched::Missing),
            // In the bucket of another process it is no damage.
            BucketError::Missing(_) => objects.check_owner(files).await.map(|()| Fetched::Missing),
            BucketError::Length { expected, found, .. } => {
                let detail = format!(
                    "{name} in {location} has {found} bytes, and was written with {expected}"
                );
                Ok(Fetched::Damaged(None, detail))
            }
            error => Err(objects.error(error)),
        };
    }
    let (at, to, sums) = (unfinished, path.clone(), sums.to_vec());
    let checked = segments.blocking(path, move || check(&at, &to, bytes, &sums, keeps_damaged));
    let (segment, damage) = checked.await?.map_err(|error| segments.error(error))?;
    Ok(match (segment, damage) {
        (Some(segment), None) => Fetched::Sound(segment),
        (segment, damage) => {
            let why = damage.map_or_else(String::new, |error| format!(" ({error})"));
            Fetched::Damaged(segment, format!("{name} in {location} is damaged{why}"))
        }
    })
}

/// Gives a download its name and opens it, if it is sound or to be kept. Returns what is
/// wrong with it.
fn check(
    unfinished: &Path,
    path: &Path,
    bytes: u64,
    sums: &[u8],
    keeps_damaged: bool,
) -> Result<(Option<Segment>, Option<FileError>), FileError> {
    let opened = Segment::open(unfinished, bytes, sums);
    let (is_open, damage) = match opened {
        Ok(segment) => (true, segment.verify().err()),
        Err(error) => (false, Some(error)),
    };
    if !is_open || damage.is_some() && !keeps_damaged {
        let _ = std::fs::remove_file(unfinished);
        return Ok((None, damage));
    }
    std::fs::rename(unfinished, path).map_err(|source| unusable(path, source))?;
    Ok((Some(Segment::open(path, bytes, sums)?), damage))
}
