//! Questions of the last minute that their clients gave an id, to ask how they are doing or to
//! cancel them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use weir_model::{ProjectId, Timestamp, UserId};

use super::engine::Found;
use super::kinds::Computed;
use super::stop::Stop;
use crate::Result;
use crate::ctx::ProjectCtx;
use crate::error::Error;

/// How long a question stays here after its end.
const STAYS: Duration = Duration::from_secs(60);
/// How long a question stays whose end is not noted, because its task failed.
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// The most questions that have ended.
const ENDED: usize = 1_000;
/// The most bytes of an answer that stays, and of all of them.
const ANSWER: usize = 512 << 10;
const ANSWERS: usize = 4 << 20;

/// A question of a user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    project: ProjectId,
    user: UserId,
    id: String,
}

impl Key {
    pub(super) fn of(project: &ProjectCtx, id: String) -> Self {
        Self { project: project.project, user: project.org.ctx.user(), id }
    }
}

/// How a question is doing.
#[derive(Debug, Clone)]
pub struct Status {
    /// When it was asked.
    pub begun: Timestamp,
    /// When it ended. `None`: it has not.
    pub ended: Option<Timestamp>,
    /// Why it has no answer: a sentence.
    pub fault: Option<String>,
    /// Its results. `None`: it has none yet, or they are too large to be given again.
    pub results: Option<Box<RawValue>>,
}

#[derive(Default)]
pub(super) struct Recent(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    by_key: HashMap<Key, Entry>,
    /// Rises with each question.
    number: u64,
}

struct Entry {
    number: u64,
    begun: Timestamp,
    begun_at: Instant,
    stop: Arc<Stop>,
    ended: Option<End>,
}

struct End {
    at: Instant,
    time: Timestamp,
    fault: Option<String>,
    computed: Option<Arc<Computed>>,
}

impl End {
    fn bytes(&self) -> usize {
        self.computed.as_ref().map_or(0, |computed| computed.results.get().len())
    }
}

impl Recent {
    /// Adds a question, instead of an earlier one with the same id. Returns its number.
    pub(super) fn begin(&self, key: Key, begun: Timestamp, stop: &Arc<Stop>) -> u64 {
        let mut entries = self.0.lock();
        entries.clear(Instant::now());
        entries.number += 1;
        let number = entries.number;
        let (begun_at, stop) = (Instant::now(), Arc::clone(stop));
        entries.by_key.insert(key, Entry { number, begun, begun_at, stop, ended: None });
        number
    }

    /// Notes the end of the question with this number.
    pub(super) fn end(&self, key: &Key, number: u64, time: Timestamp, found: &Result<Found>) {
        let computed = found.as_ref().ok().map(|found| &found.computed);
        let computed = computed.filter(|computed| computed.results.get().len() <= ANSWER);
        let end = End {
            at: Instant::now(),
            time,
            fault: found.as_ref().err().map(sentence),
            computed: computed.cloned(),
        };
        let mut entries = self.0.lock();
        // Another one may have its id by now.
        if let Some(entry) = entries.by_key.get_mut(key).filter(|entry| entry.number == number) {
            entry.ended = Some(end);
        }
        entries.clear(Instant::now());
    }

    pub(super) fn status(&self, key: &Key) -> Option<Status> {
        let mut entries = self.0.lock();
        entries.clear(Instant::now());
        let entry = entries.by_key.get(key)?;
        let ended = entry.ended.as_ref();
        let computed = ended.and_then(|end| end.computed.as_ref());
        Some(Status {
            begun: entry.begun,
            ended: ended.map(|end| end.time),
            fault: ended.and_then(|end| end.fault.clone()),
            results: computed.map(|computed| computed.results.clone()),
        })
    }

    /// Whether there is such a question.
    pub(super) fn cancel(&self, key: &Key) -> bool {
        let mut entries = self.0.lock();
        entries.clear(Instant::now());
        let found = entries.by_key.get(key);
        if let Some(entry) = found.filter(|entry| entry.ended.is_none()) {
            entry.stop.stop();
        }
        found.is_some()
    }
}

impl Entries {
    /// Removes what is old, and the oldest of what is too much.
    fn clear(&mut self, now: Instant) {
        self.by_key.retain(|_, entry| match &entry.ended {
            Some(end) => now.saturating_duration_since(end.at) < STAYS,
            None => now.saturating_duration_since(entry.begun_at) < LONGEST,
        });
        let ended = self.by_key.iter().filter_map(|(key, entry)| {
            let end = entry.ended.as_ref()?;
            Some((entry.number, end.bytes(), key.clone()))
        });
        let mut ended: Vec<(u64, usize, Key)> = ended.collect();
        // The newest first.
        ended.sort_unstable_by_key(|(number, ..)| std::cmp::Reverse(*number));
        let mut bytes = 0;
        for (at, (_, of_one, key)) in ended.iter().enumerate() {
            bytes += of_one;
            if at >= ENDED || bytes > ANSWERS {
                self.by_key.remove(key);
            }
        }
    }
}

/// The sentence about a question without an answer.
fn sentence(error: &Error) -> String {
    match error {
        Error::Invalid(fault) => fault.detail.clone(),
        Error::Conflict { detail, .. } => detail.clone(),
        Error::Unavailable(why) => format!("The question was not answered: {why}."),
        _ => "A server error occurred.".to_owned(),
    }
}
