//! The feed of merges: what transactions change about who is one person.
//!
//! A transaction that adds or removes merges has a ticket from before it begins until it has
//! ended. A question waits for the tickets of its project, so that it has the merges of all
//! events that it reads.
//!
//! What belongs here: the merges that were committed last, and the outcome of a transaction.
//! What does not: the maps that get them.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use weir_model::{PersonId, ProjectId};

use super::PeopleMaps;
use crate::{Error, Result};

/// Merges of a project that are kept for the next question: 256 KiB. After more of them it
/// reads all merges.
const MERGES: usize = 8_192;

/// Which id was merged into which person.
pub(crate) type Merge = (PersonId, PersonId);

/// How far the merges of a project were taken. Of two equal positions no merge was added or
/// removed in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MergePosition {
    /// The number of the feed.
    feed: u64,
    /// The number of the next merge.
    next: u64,
}

/// The merges of a project that were committed last. There is one after the first question
/// until merges are removed.
#[derive(Debug)]
pub(super) struct Feed {
    /// Rises with each feed and each ticket.
    number: u64,
    /// The number of the first merge that is here.
    first: u64,
    merges: VecDeque<Merge>,
}

impl Feed {
    pub(super) fn new(number: u64) -> Self {
        Self { number, first: 0, merges: VecDeque::new() }
    }

    /// The position after the last merge.
    pub(super) fn position(&self) -> MergePosition {
        MergePosition { feed: self.number, next: self.first + self.merges.len() as u64 }
    }

    /// Whether a position is one of this feed.
    pub(super) fn is_of(&self, position: MergePosition) -> bool {
        position.feed == self.number
    }

    /// Adds the merges of a transaction.
    pub(super) fn add(&mut self, ticket: u64, merges: &[Merge], outcome: Outcome) {
        match outcome {
            Outcome::Refused => {}
            Outcome::Committed if ticket > self.number => {
                self.merges.extend(merges);
                let over = self.merges.len().saturating_sub(MERGES);
                self.merges.drain(..over);
                self.first += over as u64;
            }
            // A transaction that began before the feed may have been followed by an erasure.
            Outcome::Committed | Outcome::Unknown => {
                self.first = self.position().next + 1;
                self.merges.clear();
            }
        }
    }

    /// The merges after a position of this feed. `None`: they are not all here.
    pub(super) fn since(&self, position: MergePosition) -> Option<Vec<Merge>> {
        let passed = usize::try_from(position.next.checked_sub(self.first)?).ok()?;
        Some(self.merges.iter().skip(passed).copied().collect())
    }

    pub(super) fn bytes(&self) -> usize {
        self.merges.capacity() * size_of::<Merge>()
    }
}

/// What a transaction changes about persons.
#[derive(Debug)]
pub(super) enum Change {
    /// It adds merges.
    Merges(Vec<(ProjectId, Vec<Merge>)>),
    /// It removes merges of a project.
    Removal(ProjectId),
}

impl Change {
    pub(super) fn projects(&self) -> Vec<ProjectId> {
        match self {
            Self::Merges(projects) => projects.iter().map(|(project, _)| *project).collect(),
            Self::Removal(project) => vec![*project],
        }
    }
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Its changes are stored.
    Committed,
    /// Nothing was stored.
    Refused,
    /// Its changes may be stored.
    Unknown,
}

impl Outcome {
    fn of<T>(done: &Result<T>) -> Self {
        match done {
            Ok(_) => Self::Committed,
            // Any other refusal may be that of a further attempt, after one that was
            // committed without an answer: it is refused because of its position.
            Err(Error::Refused { reason, .. }) if reason.starts_with("stale") => Self::Refused,
            Err(Error::Exists { .. }) => Self::Refused,
            Err(_) => Self::Unknown,
        }
    }
}

/// A transaction in flight that changes persons. The transaction holds a reference, because
/// it continues when its caller is dropped. When the last one is dropped, it has ended.
#[derive(Debug)]
pub(crate) struct Ticket {
    maps: Arc<PeopleMaps>,
    number: u64,
    change: Change,
    outcome: OnceLock<Outcome>,
}

impl Ticket {
    pub(super) fn new(maps: Arc<PeopleMaps>, number: u64, change: Change) -> Self {
        Self { maps, number, change, outcome: OnceLock::new() }
    }

    /// Notes the outcome. Without it nothing is known about the changes.
    pub(crate) fn end<T>(self: Arc<Self>, done: &Result<T>) {
        self.outcome.get_or_init(|| Outcome::of(done));
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let outcome = self.outcome.get().copied().unwrap_or(Outcome::Unknown);
        self.maps.end(self.number, &self.change, outcome);
    }
}
