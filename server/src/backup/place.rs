//! Where backups are: a directory of this machine, or a bucket.
//!
//! What belongs here: telling them apart, and opening the repository there. What does not:
//! requests to a bucket (`bucket`), and what is done with the repository.

use std::path::{Path, PathBuf};

use weir_backup::{Repository, Staging};
use weir_model::Timestamp;
use weir_store::BucketLocation;

use super::bucket::BucketStorage;
use super::{BackupError, blocking, check, remove_links};
use crate::config::Config;
use crate::log_tools::has_store;

/// The directories for the manifests of a bucket, and for the file that is being sent or
/// received. They are in the data directory, or beside one that is restored. One is for a
/// backup, and one for a check or a restore, which a backup need not wait for.
pub(super) const MIRRORS: [&str; 2] = [TO_WRITE, TO_READ];
const TO_WRITE: &str = ".weir-bucket";
const TO_READ: &str = ".weir-bucket-read";

/// Where backups are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// A directory of this machine.
    Directory(PathBuf),
    /// A bucket, which the settings `backup_…` give access to.
    Bucket(BucketLocation),
}

/// An open repository.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) repository: Repository,
    /// What is local of a bucket. The repository needs it.
    pub(super) mirror: Option<Staging>,
}

/// How notes and settings name a place, so that they can be compared.
pub(super) fn known_as(at: &Path) -> PathBuf {
    match at.to_string_lossy().parse::<BucketLocation>() {
        Ok(location) => location.to_string().into(),
        Err(_) => std::path::absolute(at).unwrap_or_else(|_| at.to_owned()),
    }
}

impl Place {
    /// The place that a person has written.
    pub(super) fn of(config: &Config, at: &Path) -> Result<Self, BackupError> {
        let text = at.to_string_lossy();
        if !text.contains("://") {
            return Ok(Self::Directory(at.to_owned()));
        }
        let location = text.parse().map_err(|_| BackupError::Remote(at.to_owned()))?;
        match config.backup_access().fault() {
            Some(fault) => Err(BackupError::Access(fault)),
            None => Ok(Self::Bucket(location)),
        }
    }

    /// Opens the repository of an instance to store a backup, and makes it if there is none.
    pub(super) async fn create(
        &self,
        config: &Config,
        id: String,
        now: Timestamp,
    ) -> Result<Opened, BackupError> {
        match self {
            Self::Directory(directory) => {
                let directory = directory.clone();
                blocking(move || {
                    let repository = Repository::create(&directory, &id)?;
                    remove_links(&directory.join(check::STAGING), check::STAGING);
                    Ok(Opened { repository, mirror: None })
                })
                .await
            }
            Self::Bucket(location) => {
                let mirror = mirror(config, TO_WRITE).await?;
                let (access, least_free) = (config.backup_access(), config.disk_marks().high);
                let storage = BucketStorage::to_write(location, access, now).await?;
                blocking(move || {
                    let storage = Box::new(storage);
                    let repository =
                        Repository::create_remote(mirror.path(), &id, storage, least_free)?;
                    Ok(Opened { repository, mirror: Some(mirror) })
                })
                .await
            }
        }
    }

    /// Opens the repository to read it. `least_free`: bytes that stay free on the disk of
    /// what is local of a bucket.
    pub(super) async fn open(
        &self,
        config: &Config,
        least_free: u64,
    ) -> Result<Opened, BackupError> {
        match self {
            Self::Directory(directory) => {
                let directory = directory.clone();
                blocking(move || {
                    Ok(Opened { repository: Repository::open(&directory)?, mirror: None })
                })
                .await
            }
            Self::Bucket(location) => {
                let mirror = mirror(config, TO_READ).await?;
                let storage = BucketStorage::to_read(location, config.backup_access())?;
                blocking(move || {
                    let storage = Box::new(storage);
                    let repository = Repository::open_remote(mirror.path(), storage, least_free)?;
                    Ok(Opened { repository, mirror: Some(mirror) })
                })
                .await
            }
        }
    }
}

async fn mirror(config: &Config, of: &str) -> Result<Staging, BackupError> {
    let data = config.data.clone();
    let at = match has_store(config) {
        true => data.join(of),
        false => {
            let name = data.file_name().map(|name| {
                let mut name = name.to_owned();
                name.push(of);
                name
            });
            let Some(name) = name else {
                return Err(weir_backup::Error::NoName { path: data }.into());
            };
            data.with_file_name(name)
        }
    };
    blocking(move || Ok(Staging::create(&at)?)).await
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Place, known_as};
    use crate::config::{Config, Settings};

    fn config(key: &str) -> Config {
        let given = Settings {
            backup_access_key: Some(key.to_owned()),
            backup_secret_key: key.parse().ok(),
            ..Settings::default()
        };
        given.over(Settings::default())
    }

    #[test]
    fn a_place_is_a_directory_or_a_bucket() {
        let of = |key, text: &str| Place::of(&config(key), Path::new(text));
        let directory = of("", "backups").unwrap();
        assert_eq!(directory, Place::Directory("backups".into()));
        let bucket = of("key", "s3://backups/weir/").unwrap();
        assert_eq!(bucket, Place::Bucket("s3://backups/weir".parse().unwrap()));
        for (key, text, reason) in [
            ("key", "ftp://backups", "neither a directory nor"),
            ("key", "s3://", "neither a directory nor"),
            ("", "s3://backups/weir", "an access key and its secret"),
        ] {
            let refused = of(key, text).unwrap_err().to_string();
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[test]
    fn places_are_known_by_one_name() {
        assert_eq!(known_as(Path::new("s3://backups/weir/")), Path::new("s3://backups/weir"));
        assert_eq!(known_as(Path::new("/mnt/backups")), Path::new("/mnt/backups"));
        assert!(known_as(Path::new("backups")).is_absolute());
    }
}
