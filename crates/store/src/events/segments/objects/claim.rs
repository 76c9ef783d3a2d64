//! The claim of a bucket: one data directory owns it, and one process uses it.
//!
//! The object `weir-owner` has the random id of the data directory and the random token of
//! the last claim. Each pass of sealing claims the bucket again, with a new token. The data
//! directory has the same in the file `bucket`, so a start continues after the last claim. A
//! copy of a data directory has the same id, but no token that is newer than the copy. So
//! two processes never use a bucket for long: the process that did not claim it last is
//! refused.
//!
//! What belongs here: the claim. What does not: what is in the bucket.

use std::io::ErrorKind;
use std::path::Path;

use uuid::Uuid;
use weir_objects::Bucket;

use super::super::files::Files;
use super::super::lock;
use super::Objects;
use crate::{Error, Result};

/// The object that says which data directory owns the bucket.
const OWNER: &str = "weir-owner";
/// The file with the same in the directory of segments, and the location of the bucket.
const CLAIM: &str = "bucket";
/// Upper bound of the object, bytes.
const OWNER_BYTES: u64 = 1 << 10;

/// The content of the file: `<id> <token> <token> <location>`.
struct Claim {
    id: String,
    /// The tokens of the last two claims: it may be unknown whether the bucket has the
    /// second.
    tokens: [String; 2],
    /// The location of the bucket. `None`: no bucket has had the id yet.
    location: Option<String>,
}

impl Claim {
    fn new() -> Self {
        let token = Uuid::new_v4().to_string();
        Self { id: Uuid::new_v4().to_string(), tokens: [token.clone(), token], location: None }
    }

    fn read(files: &Files) -> Result<Option<Self>> {
        let path = files.path(CLAIM);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let mut words = text.split_whitespace().map(str::to_owned);
                let mut word = || words.next().unwrap_or_default();
                let (id, tokens) = (word(), [word(), word()]);
                Ok(Some(Self { id, tokens, location: words.next() }))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::File { file: path, source }),
        }
    }

    fn write(&self, files: &Files) -> Result<()> {
        let Self { id, tokens: [before, token], location } = self;
        let text = format!("{id} {before} {token} {}", location.as_deref().unwrap_or_default());
        let failed = |source| Error::File { file: files.path(CLAIM), source };
        files.write(CLAIM, &text).map_err(failed)
    }

    /// The content of the object.
    fn owner(&self) -> String {
        let Self { id, tokens: [_, token], .. } = self;
        format!("{id} {token}")
    }
}

impl Objects {
    /// Checks that the bucket answers and belongs to this process, and writes a new token.
    ///
    /// # Errors
    /// [`Error::Bucket`] when the bucket cannot be used or belongs to another process,
    /// [`Error::File`] when the file cannot be read or written.
    pub(super) async fn claim(&self, files: &Files) -> Result<()> {
        let _claiming = self.claiming.lock().await;
        lock(&self.known).is_ours = false;
        let claim = match Claim::read(files)? {
            Some(claim) => claim,
            None => {
                let claim = Claim::new();
                claim.write(files)?;
                claim
            }
        };
        let mut owner = self.owner().await?;
        if owner.is_none() && claim.location.is_none() {
            let created = self.bucket.create(OWNER, claim.owner().into()).await;
            created.map_err(|error| self.error(error))?;
            owner = self.owner().await?;
        }
        let token = self.owned_token(&claim, owner.as_deref())?;
        let next = Claim {
            id: claim.id.clone(),
            tokens: [token.to_owned(), Uuid::new_v4().to_string()],
            location: Some(self.bucket.location().to_string()),
        };
        // Before the object, so that the token is known if the outcome of the request is not.
        next.write(files)?;
        let put = self.bucket.put(OWNER, next.owner().into()).await;
        put.map_err(|error| self.error(error))?;
        // Another process may have written at the same time.
        self.owned_token(&next, self.owner().await?.as_deref())?;
        lock(&self.known).is_ours = true;
        *lock(&self.failure) = None;
        Ok(())
    }

    /// Checks that the bucket still belongs to this process.
    ///
    /// # Errors
    /// As [`Self::claim`].
    pub(super) async fn check_owner(&self, files: &Files) -> Result<()> {
        match Claim::read(files)? {
            Some(claim) => self.owned_token(&claim, self.owner().await?.as_deref()).map(drop),
            None => Err(self.refused("it was not used by this data directory yet".to_owned())),
        }
    }

    /// The content of the object; `None`: there is none.
    async fn owner(&self) -> Result<Option<String>> {
        let owner = self.bucket.get(OWNER, OWNER_BYTES).await.map_err(|error| self.error(error))?;
        Ok(owner.map(|owner| String::from_utf8_lossy(&owner).into_owned()))
    }

    /// The token in the content of the object, if this process wrote it.
    fn owned_token<'a>(&self, claim: &Claim, owner: Option<&'a str>) -> Result<&'a str> {
        let why = match owner.map(|owner| owner.split_once(' ').unwrap_or((owner, ""))) {
            Some((id, token)) if id == claim.id => {
                if claim.tokens.iter().any(|known| known == token) {
                    return Ok(token);
                }
                "another process uses it, with a copy of this data directory".to_owned()
            }
            Some(_) => "it belongs to another data directory".to_owned(),
            None => {
                let location = claim.location.as_deref().unwrap_or("no bucket yet");
                format!("it has no objects of this data directory; they are in {location}")
            }
        };
        lock(&self.known).is_ours = false;
        Err(self.refused(why))
    }
}

/// Whether segments of a data directory, or of its checkpoint, may be in a bucket. While no
/// bucket could be used yet, the directory has all of them.
///
/// # Errors
/// [`Error::File`] when the claim of the directory cannot be read.
pub fn uses_bucket(data: &Path) -> Result<bool> {
    Ok(Claim::read(&Files::of(data))?.is_some_and(|claim| claim.location.is_some()))
}

/// Checks that a bucket has the objects of a data directory, to read them. Which process uses
/// it does not matter.
///
/// # Errors
/// [`Error::Bucket`] when it is another bucket or cannot be used, [`Error::File`] when the
/// claim of the directory cannot be read.
pub(super) async fn check_to_read(bucket: &Bucket, files: &Files) -> Result<()> {
    let refused =
        |detail: String| Error::Bucket { location: bucket.location().to_string(), detail };
    let found = bucket.get(OWNER, OWNER_BYTES).await.map_err(|error| refused(error.to_string()))?;
    let found = found.map(|owner| String::from_utf8_lossy(&owner).into_owned());
    let owner = found.as_deref().and_then(|owner| owner.split_whitespace().next());
    match Claim::read(files)? {
        Some(claim) if owner == Some(claim.id.as_str()) => Ok(()),
        Some(_) if owner.is_some() => {
            Err(refused("it belongs to another data directory".to_owned()))
        }
        Some(Claim { location: Some(location), .. }) => Err(refused(format!(
            "it has no objects of this data directory; they are in {location}"
        ))),
        _ => Err(refused("it was not used by this data directory yet".to_owned())),
    }
}

/// The location of the bucket that the segments of a data directory are in. `None`: the
/// directory has claimed no bucket, or its file cannot be read.
pub(in crate::events::segments) fn location_in(files: &Files) -> Option<String> {
    Claim::read(files).ok()??.location
}
