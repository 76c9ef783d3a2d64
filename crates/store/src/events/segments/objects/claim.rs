//! Whose place it is: one data directory has it, and one process uses it.
//!
//! The object `weir-owner` has the random id of the data directory and the turn of the last
//! pass of sealing, which is random too. The directory has the same in the file `bucket`, so
//! a start goes on where the last one ended. A copy of a data directory has the same id, but
//! knows no turn that came after the copy. So two processes never use a place for long, and
//! the one that did not use it last is refused.
//!
//! What belongs here: this agreement. What does not: what is in the bucket.

use std::io::ErrorKind;

use uuid::Uuid;

use super::super::files::Files;
use super::super::lock;
use super::Objects;
use crate::{Error, Result};

/// The object that says whose the place is.
const OWNER: &str = "weir-owner";
/// The file that says the same in the directory of segments, and where the bucket is.
const CLAIM: &str = "bucket";
/// Upper bound of that object, bytes.
const BYTES: u64 = 1 << 10;

/// What the directory says: `<id> <turn> <turn> <place>`.
struct Claim {
    id: String,
    /// The last two turns: it may be unknown whether the bucket has the second.
    turns: [String; 2],
    /// `None`: no bucket has had the id yet.
    place: Option<String>,
}

impl Claim {
    fn new() -> Self {
        let turn = Uuid::new_v4().to_string();
        Self { id: Uuid::new_v4().to_string(), turns: [turn.clone(), turn], place: None }
    }

    fn read(files: &Files) -> Result<Option<Self>> {
        let path = files.path(CLAIM);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let mut words = text.split_whitespace().map(str::to_owned);
                let mut word = || words.next().unwrap_or_default();
                let (id, turns) = (word(), [word(), word()]);
                Ok(Some(Self { id, turns, place: words.next() }))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::File { file: path, source }),
        }
    }

    fn write(&self, files: &Files) -> Result<()> {
        let Self { id, turns: [before, turn], place } = self;
        let text = format!("{id} {before} {turn} {}", place.as_deref().unwrap_or_default());
        let failed = |source| Error::File { file: files.path(CLAIM), source };
        files.write(CLAIM, &text).map_err(failed)
    }

    /// The content of the object.
    fn owner(&self) -> String {
        let Self { id, turns: [_, turn], .. } = self;
        format!("{id} {turn}")
    }
}

impl Objects {
    /// Makes sure that the bucket answers, and belongs to this process. Takes the next turn.
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
        if owner.is_none() && claim.place.is_none() {
            let created = self.bucket.create(OWNER, claim.owner().into()).await;
            created.map_err(|error| self.error(error))?;
            owner = self.owner().await?;
        }
        let turn = self.judge(&claim, owner.as_deref())?;
        let next = Claim {
            id: claim.id.clone(),
            turns: [turn.to_owned(), Uuid::new_v4().to_string()],
            place: Some(self.bucket.place().to_string()),
        };
        // First, so that the turn is known if its outcome is not.
        next.write(files)?;
        let put = self.bucket.put(OWNER, next.owner().into()).await;
        put.map_err(|error| self.error(error))?;
        // Another process may have written at the same time.
        self.judge(&next, self.owner().await?.as_deref())?;
        lock(&self.known).is_ours = true;
        *lock(&self.failure) = None;
        Ok(())
    }

    /// Makes sure that the place still belongs to this process.
    pub(super) async fn check_owner(&self, files: &Files) -> Result<()> {
        match Claim::read(files)? {
            Some(claim) => self.judge(&claim, self.owner().await?.as_deref()).map(drop),
            None => Err(self.refused("it was not used by this data directory yet".to_owned())),
        }
    }

    async fn owner(&self) -> Result<Option<String>> {
        let owner = self.bucket.get(OWNER, BYTES).await.map_err(|error| self.error(error))?;
        Ok(owner.map(|owner| String::from_utf8_lossy(&owner).into_owned()))
    }

    /// The turn of an owner, if that is this process.
    fn judge<'a>(&self, claim: &Claim, owner: Option<&'a str>) -> Result<&'a str> {
        let why = match owner.map(|owner| owner.split_once(' ').unwrap_or((owner, ""))) {
            Some((id, turn)) if id == claim.id => {
                if claim.turns.iter().any(|known| known == turn) {
                    return Ok(turn);
                }
                "another process uses this place, with a copy of this data directory".to_owned()
            }
            Some(_) => "it belongs to another data directory".to_owned(),
            None => {
                let place = claim.place.as_deref().unwrap_or("no place yet");
                format!("it has no objects of this data directory; they are in {place}")
            }
        };
        lock(&self.known).is_ours = false;
        Err(self.refused(why))
    }
}

/// What the data directory says about a bucket that its segments are in.
pub(in crate::events::segments) fn claimed(files: &Files) -> Option<String> {
    Claim::read(files).ok()??.place
}
