//! Erasures: persons whose stored data is removed, with or without their events.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{PersonId, UserId};
use crate::time::Timestamp;

/// The erasure of a person. It has no data of the person but the id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// Unique within the project. Ids increase with time.
    pub id: Uuid,
    /// The erased person. The id is derived from a distinct id, so later events of that
    /// distinct id make a person with the same one.
    pub person: PersonId,
    /// Whether the events of the person are erased too.
    pub deletes_events: bool,
    /// When it was requested. Nothing of the person is shown since.
    pub requested_at: Timestamp,
    /// The user who requested it.
    pub requested_by: UserId,
    /// The number of distinct ids of the person.
    pub distinct_ids: u64,
    /// Upper bound of the files of events that may still have events of the person.
    pub segments_left: u64,
    /// The number of events that were removed.
    pub events: u64,
    /// The number of dropped and altered events of which only the time and the reason are
    /// kept now.
    pub samples: u64,
    /// When the last stored event and sample was removed.
    pub stored_at: Option<Timestamp>,
    /// When the bytes had gone from all files of the data directory.
    pub done_at: Option<Timestamp>,
    /// Why the work could not continue last. It is tried again.
    pub failure: Option<String>,
}

impl Erasure {
    /// How far it is.
    pub fn state(&self) -> ErasureState {
        match (self.done_at, &self.failure, self.stored_at) {
            (Some(_), ..) => ErasureState::Done,
            (None, Some(_), _) => ErasureState::Failed,
            (None, None, Some(_)) => ErasureState::Clearing,
            (None, None, None) => ErasureState::Pending,
        }
    }
}

/// How far an erasure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErasureState {
    /// Files still have events of the person, which are not shown any more.
    Pending,
    /// No event is stored any more. Older files of the log and the database are being
    /// removed.
    Clearing,
    /// The last attempt failed. It is tried again.
    Failed,
    /// No file of the data directory has bytes of the person.
    Done,
}

impl ErasureState {
    /// The word on the wire.
    pub fn text(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Clearing => "clearing",
            Self::Failed => "failed",
            Self::Done => "done",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_erasure_says_how_far_it_is() {
        let at = Timestamp::from_micros(1);
        let pending = Erasure {
            id: Uuid::nil(),
            person: PersonId(Uuid::nil()),
            deletes_events: true,
            requested_at: at,
            requested_by: UserId(Uuid::nil()),
            distinct_ids: 1,
            segments_left: 2,
            events: 0,
            samples: 0,
            stored_at: None,
            done_at: None,
            failure: None,
        };
        assert_eq!(pending.state(), ErasureState::Pending);
        let failed = Erasure { failure: Some("disk".to_owned()), ..pending.clone() };
        assert_eq!(failed.state(), ErasureState::Failed);
        let clearing = Erasure { stored_at: Some(at), ..pending.clone() };
        assert_eq!(clearing.state(), ErasureState::Clearing);
        let done = Erasure { done_at: Some(at), ..failed };
        assert_eq!(done.state(), ErasureState::Done);
        let states = [pending.state(), clearing.state(), ErasureState::Failed, done.state()];
        assert_eq!(states.map(ErasureState::text), ["pending", "clearing", "failed", "done"]);
    }
}
