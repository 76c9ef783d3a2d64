//! What was sent and what was acknowledged.

use std::collections::HashMap;
use std::fmt::Write as _;

use uuid::Uuid;
use weir_bench::clock::{self, TIME};
use weir_bench::events::{People, Source};

/// What the sender knows about an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// No answer came, or a refusal: it may be stored or not.
    Unsure,
    /// The service said that it is on stable storage.
    Acknowledged,
}

/// All events of a run.
#[derive(Debug)]
pub(crate) struct Ledger {
    source: Source,
    /// Uuids of events that must be dropped.
    never: Source,
    states: Vec<State>,
    by_uuid: HashMap<Uuid, u64>,
    /// Requests whose outcome is not known; clients send them again.
    unsure: Vec<Vec<u64>>,
    /// Repeated or odd answers that no client should see.
    pub(crate) surprises: Vec<String>,
    /// Highest number of the setting that was tried and that was acknowledged.
    pub(crate) setting_tried: u64,
    pub(crate) setting_kept: u64,
}

impl Ledger {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            source: Source::new(seed, People::New),
            never: Source::new(!seed, People::New),
            states: Vec::new(),
            by_uuid: HashMap::new(),
            unsure: Vec::new(),
            surprises: Vec::new(),
            setting_tried: 0,
            setting_kept: 0,
        }
    }

    /// Numbers of new events.
    pub(crate) fn take(&mut self, count: u64) -> Vec<u64> {
        let numbers: Vec<u64> = self.source.take(count).collect();
        for number in &numbers {
            self.states.push(State::Unsure);
            self.by_uuid.insert(self.source.uuid(*number), *number);
        }
        numbers
    }

    /// How many events there are.
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

    /// Remembers a request without an answer.
    pub(crate) fn leave_unsure(&mut self, numbers: Vec<u64>) {
        self.unsure.push(numbers);
    }

    /// A request to send again, if there is one.
    pub(crate) fn take_unsure(&mut self) -> Option<Vec<u64>> {
        self.unsure.pop()
    }

    /// Numbers of acknowledged events.
    pub(crate) fn acknowledged(&self) -> impl Iterator<Item = u64> + '_ {
        (0..).zip(&self.states).filter(|(_, state)| **state == State::Acknowledged).map(|(n, _)| n)
    }

    /// The body of a request to `/batch/`: these events, and after them some
    /// that must never be stored.
    pub(crate) fn batch(&self, key: &str, numbers: &[u64], historical: bool, drops: u64) -> String {
        let mut body =
            format!(r#"{{"api_key":"{key}","historical_migration":{historical},"batch":["#);
        for (index, number) in numbers.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let _ = write!(body, "{comma}{}", self.event(*number));
        }
        for index in 0..drops {
            let comma = if index > 0 || !numbers.is_empty() { "," } else { "" };
            // Nobody it is about: counted and shown, not stored.
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

    /// An event as JSON. Its time is the present one: a client that sends it
    /// again sends another time, and it must still be the same event.
    fn event(&self, number: u64) -> String {
        let mut time = [0; TIME];
        clock::write_time(clock::micros(), &mut time);
        let set = if number.is_multiple_of(5) {
            format!(r#","$set":{{"last":{number}}}"#)
        } else {
            String::new()
        };
        format!(
            r#"{{"event":"crash test","uuid":"{}","distinct_id":"{}","timestamp":"{}","properties":{{"number":{number},"text":"{}"{set}}}}}"#,
            self.uuid(number),
            distinct_id(number),
            String::from_utf8_lossy(&time),
            "some words to make it longer, ".repeat(1 + usize::try_from(number % 20).unwrap_or(0)),
        )
    }
}

/// Whom event `number` is about.
pub(crate) fn distinct_id(number: u64) -> String {
    format!("user-{}", number % 700)
}
