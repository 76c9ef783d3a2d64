//! Sent and acknowledged events.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::json;
use uuid::Uuid;
use weir_bench::clock::{self, TIME};
use weir_bench::events::{People, Source};
use weir_bench::random::mix;

use crate::stories::{self, Story, StoryEvent};

/// An hour, microseconds.
pub(crate) const HOUR: i64 = 3_600_000_000;

/// What the sender knows about an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// There was no answer, or a refusal: it may be stored or not.
    Unsure,
    /// The service acknowledged that it is on stable storage.
    Acknowledged,
}

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An independent event of one of many distinct ids.
    Plain,
    /// An event of a story, by its index.
    Story(Story, usize),
    /// One of two events for a number of the counter. It is sent only once: after a later
    /// one it would reset the counter.
    Count(u64, usize),
}

/// All events of a run.
#[derive(Debug)]
pub(crate) struct Ledger {
    source: Source,
    /// Uuids of events that must be dropped.
    never: Source,
    /// Events happened in so many hours, an hour ago at the latest; 0: when they are sent.
    hours: u64,
    states: Vec<State>,
    kinds: Vec<Kind>,
    /// The first events of the stories, by number of the story.
    stories: Vec<u64>,
    by_uuid: HashMap<Uuid, u64>,
    /// Requests with an unknown outcome; clients send them again.
    unsure: Vec<Vec<u64>>,
    /// Unexpected answers that no client should get.
    pub(crate) surprises: Vec<String>,
    /// The highest setting that was sent, and the highest that was acknowledged.
    pub(crate) setting_tried: u64,
    pub(crate) setting_kept: u64,
    /// The same for the counter.
    pub(crate) count_tried: u64,
    pub(crate) count_kept: u64,
}

impl Ledger {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            source: Source::new(seed, People::New),
            never: Source::new(!seed, People::New),
            hours: 0,
            states: Vec::new(),
            kinds: Vec::new(),
            stories: Vec::new(),
            by_uuid: HashMap::new(),
            unsure: Vec::new(),
            surprises: Vec::new(),
            setting_tried: 0,
            setting_kept: 0,
            count_tried: 0,
            count_kept: 0,
        }
    }

    /// The same, with the times of events spread over so many hours.
    pub(crate) fn spread(seed: u64, hours: u64) -> Self {
        Self { hours, ..Self::new(seed) }
    }

    /// Allocates numbers for new events.
    pub(crate) fn take(&mut self, count: u64) -> Vec<u64> {
        (0..count).filter_map(|_| self.add(Kind::Plain)).collect()
    }

    /// Allocates numbers for the events of a new story.
    pub(crate) fn take_story(&mut self) -> Vec<u64> {
        let story = Story(self.stories.len() as u64);
        self.stories.push(self.len());
        let parts = 0..story.events().len();
        parts.filter_map(|part| self.add(Kind::Story(story, part))).collect()
    }

    /// Increments the counter: returns its value, and the numbers of the two events for
    /// it.
    pub(crate) fn take_count(&mut self) -> (u64, Vec<u64>) {
        self.count_tried += 1;
        let count = self.count_tried;
        let parts = 0..stories::count(count).len();
        (count, parts.filter_map(|part| self.add(Kind::Count(count, part))).collect())
    }

    fn add(&mut self, kind: Kind) -> Option<u64> {
        let number = self.source.take(1).next()?;
        self.states.push(State::Unsure);
        self.kinds.push(kind);
        self.by_uuid.insert(self.source.uuid(number), number);
        Some(number)
    }

    /// The kind of an event.
    pub(crate) fn kind(&self, number: u64) -> Kind {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        self.kinds.get(index).copied().unwrap_or(Kind::Plain)
    }

    /// Whether an event may be sent again at any time.
    pub(crate) fn is_repeatable(&self, number: u64) -> bool {
        !matches!(self.kind(number), Kind::Count(..))
    }

    /// All stories, each with whether it was acknowledged completely.
    pub(crate) fn stories(&self) -> impl Iterator<Item = (Story, bool)> + '_ {
        (0..).zip(&self.stories).map(|(number, first)| {
            let story = Story(number);
            let from = usize::try_from(*first).unwrap_or(usize::MAX);
            let parts = from..from.saturating_add(story.events().len());
            let states = self.states.get(parts).unwrap_or_default();
            let is_whole =
                !states.is_empty() && states.iter().all(|state| *state == State::Acknowledged);
            (story, is_whole)
        })
    }

    /// Number of events.
    pub(crate) fn len(&self) -> u64 {
        self.states.len() as u64
    }

    pub(crate) fn uuid(&self, number: u64) -> Uuid {
        self.source.uuid(number)
    }

    pub(crate) fn number(&self, uuid: Uuid) -> Option<u64> {
        self.by_uuid.get(&uuid).copied()
    }

    /// Marks the events of a request that was answered with 200.
    pub(crate) fn acknowledge(&mut self, numbers: &[u64]) {
        for number in numbers {
            if let Some(state) =
                usize::try_from(*number).ok().and_then(|index| self.states.get_mut(index))
            {
                *state = State::Acknowledged;
            }
        }
    }

    /// Records a request without an answer.
    pub(crate) fn leave_unsure(&mut self, numbers: Vec<u64>) {
        self.unsure.push(numbers);
    }

    /// Returns a request to send again, if there is one.
    pub(crate) fn take_unsure(&mut self) -> Option<Vec<u64>> {
        self.unsure.pop()
    }

    /// Numbers of acknowledged events.
    pub(crate) fn acknowledged(&self) -> impl Iterator<Item = u64> + '_ {
        (0..).zip(&self.states).filter(|(_, state)| **state == State::Acknowledged).map(|(n, _)| n)
    }

    /// The body of a request to `/batch/`: these events, followed by some that must never
    /// be stored.
    pub(crate) fn batch(&self, key: &str, numbers: &[u64], historical: bool, drops: u64) -> String {
        let mut body =
            format!(r#"{{"api_key":"{key}","historical_migration":{historical},"batch":["#);
        for (index, number) in numbers.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let _ = write!(body, "{comma}{}", self.event(*number));
        }
        for index in 0..drops {
            let comma = if index > 0 || !numbers.is_empty() { "," } else { "" };
            // Without a distinct id: it is counted and shown, but not stored.
            let uuid = self.never.uuid(index);
            let _ = write!(body, r#"{comma}{{"event":"dropped","uuid":"{uuid}"}}"#);
        }
        body.push_str("]}");
        body
    }

    /// The body of a request to `/capture/`.
    pub(crate) fn single(&self, key: &str, number: u64) -> String {
        format!(r#"{{"api_key":"{key}",{}"#, &self.event(number)[1..])
    }

    /// An event as JSON, with a time that depends on the current one: a client sends another
    /// time in a retry, and it must still be the same event.
    fn event(&self, number: u64) -> String {
        let hours = match self.hours {
            0 => 0,
            hours => 1 + mix(number) % hours,
        };
        let ago = i64::try_from(hours).unwrap_or(0) * HOUR;
        let mut time = [0; TIME];
        clock::write_time(clock::micros() - ago, &mut time);
        let time = String::from_utf8_lossy(&time);
        if let Some(event) = self.story_event(number) {
            return json!({
                "event": event.event,
                "uuid": self.uuid(number),
                "distinct_id": event.distinct_id,
                "timestamp": time,
                "properties": event.properties,
            })
            .to_string();
        }
        let set = if number.is_multiple_of(5) {
            format!(r#","$set":{{"last":{number}}}"#)
        } else {
            String::new()
        };
        format!(
            r#"{{"event":"crash test","uuid":"{}","distinct_id":"{}","timestamp":"{time}","properties":{{"number":{number},"text":"{}"{set}}}}}"#,
            self.uuid(number),
            distinct_id(number),
            "some words to make it longer, ".repeat(1 + usize::try_from(number % 20).unwrap_or(0)),
        )
    }

    /// The data of an event of a story or the counter; `None`: an independent one.
    pub(crate) fn story_event(&self, number: u64) -> Option<StoryEvent> {
        match self.kind(number) {
            Kind::Plain => None,
            Kind::Story(story, part) => story.events().into_iter().nth(part),
            Kind::Count(count, part) => stories::count(count).into_iter().nth(part),
        }
    }
}

/// Prefix of the distinct ids of independent events.
pub(crate) const PEOPLE: &str = "user-";

/// The distinct id of the independent event `number`.
pub(crate) fn distinct_id(number: u64) -> String {
    format!("{PEOPLE}{}", number % 700)
}
