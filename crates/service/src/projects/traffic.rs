//! Events by the project API key of their request: counted in memory, written about
//! every minute, kept for thirty days. The counts show when an old key is not used any
//! more.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use weir_model::{ProjectId, Timestamp};
use weir_store::projects::{self as rows, KeyHour};

use super::Projects;
use crate::Result;
use crate::ctx::ProjectCtx;

/// The maximum number of keys that are counted between two writes. Further keys are not
/// counted.
const KEYS: usize = 10_000;
/// The maximum number of hours that wait to be written while writing fails. Further
/// hours are dropped.
const WAITING: usize = 20_000;
/// How many hours one transaction writes.
const COUNTS_PER_WRITE: usize = 200;
/// Length of a step, in hours.
const STEP: i64 = 6;
/// How many steps are shown.
const STEPS: usize = 28;
/// Steps of a day.
const DAY: usize = 4;
/// Length of an hour, in microseconds.
const HOUR: i64 = 60 * 60 * 1_000_000;

/// The events with a key in the last seven days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyTraffic {
    /// The key.
    pub token: String,
    /// The number of events in each step of six hours, oldest first.
    pub steps: Vec<u64>,
    /// When the last of these events came.
    pub last_at: Option<Timestamp>,
}

impl KeyTraffic {
    fn of(token: &str, hours: &[KeyHour], since: i64) -> Self {
        let own = hours.iter().filter(|hour| hour.token == token);
        let mut steps = vec![0; STEPS];
        let mut last_at = None;
        for hour in own {
            let step = usize::try_from((hour.hour - since).div_euclid(STEP)).ok();
            if let Some(events) = step.and_then(|step| steps.get_mut(step)) {
                *events += hour.events;
                last_at = last_at.max(Some(hour.last_at));
            }
        }
        Self { token: token.to_owned(), steps, last_at }
    }

    /// The number of events in the seven days.
    pub fn week(&self) -> u64 {
        self.steps.iter().sum()
    }

    /// The number of events in the last day.
    pub fn day(&self) -> u64 {
        self.steps.iter().rev().take(DAY).sum()
    }
}

/// Counts that are not written yet.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    // Locked for single map operations only.
    counted: Mutex<Counted>,
    /// One write at a time, so that each write contains an hour only once.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Counted {
    /// The present hour of each key.
    keys: HashMap<String, KeyHour>,
    /// Hours that are over, or could not be written.
    over: Vec<KeyHour>,
}

impl Counted {
    fn add(&mut self, count: KeyHour) {
        match self.keys.get_mut(&count.token) {
            Some(known) if known.hour == count.hour && known.project == count.project => {
                known.events += count.events;
                known.last_at = known.last_at.max(count.last_at);
            }
            Some(known) => {
                let over = std::mem::replace(known, count);
                if self.over.len() < WAITING {
                    self.over.push(over);
                }
            }
            None => {
                if self.keys.len() < KEYS {
                    self.keys.insert(count.token.clone(), count);
                }
            }
        }
    }

    /// All counts, each hour of a key once.
    fn take(&mut self) -> Vec<KeyHour> {
        let mut all = std::mem::take(&mut self.over);
        all.extend(self.keys.drain().map(|(_, count)| count));
        all.sort_by(|a, b| (&a.token, a.hour).cmp(&(&b.token, b.hour)));
        all.dedup_by(|later, first| {
            let same = (later.project, later.hour, &later.token)
                == (first.project, first.hour, &first.token);
            if same {
                first.events += later.events;
                first.last_at = first.last_at.max(later.last_at);
            }
            same
        });
        all
    }
}

impl Projects {
    /// Counts events that came with a key.
    pub fn count_events(&self, project: ProjectId, token: &str, events: u64, now: Timestamp) {
        let hour = now.micros().div_euclid(HOUR);
        let mut counted = self.traffic.counted.lock().unwrap_or_else(PoisonError::into_inner);
        // The usual case allocates no text.
        if let Some(known) = counted.keys.get_mut(token)
            && known.hour == hour
        {
            known.events += events;
            known.last_at = now;
            return;
        }
        counted.add(KeyHour { project, hour, token: token.to_owned(), events, last_at: now });
    }

    /// Writes the counts. Call it about every minute, and before the process ends.
    ///
    /// # Errors
    /// Any failure of the store; the counts are kept for the next call.
    pub async fn write_traffic(&self) -> Result<()> {
        let lock = || self.traffic.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let _one_at_a_time = self.traffic.writing.lock().await;
        let mut left = lock().take();
        while !left.is_empty() {
            let rest = left.split_off(left.len().min(COUNTS_PER_WRITE));
            if let Err(error) = rows::add_traffic(&self.core.store, &left).await {
                let waiting = left.into_iter().chain(rest).take(WAITING);
                lock().over.extend(waiting);
                return Err(error.into());
            }
            left = rest;
        }
        Ok(())
    }

    /// The traffic of these keys in the last seven days, and when each step begins.
    pub(super) async fn traffic(
        &self,
        project: &ProjectCtx,
        tokens: &[&str],
    ) -> Result<(Vec<KeyTraffic>, Vec<Timestamp>)> {
        if let Err(error) = self.write_traffic().await {
            // The keys are shown even if the counts of the last minute are missing.
            tracing::warn!(%error, "events by project key were not written");
        }
        let step = project.org.ctx.now.micros().div_euclid(HOUR).div_euclid(STEP);
        let mut begins: Vec<i64> = (0..=step).rev().take(STEPS).map(|step| step * STEP).collect();
        begins.reverse();
        let since = begins.first().copied().unwrap_or_default();
        let hours = rows::traffic(&self.core.store, project.project, since).await?;
        let traffic = tokens.iter().map(|token| KeyTraffic::of(token, &hours, since)).collect();
        let times = begins.into_iter().map(|hour| Timestamp::from_micros(hour * HOUR)).collect();
        Ok((traffic, times))
    }
}

#[cfg(test)]
mod tests {
    use weir_model::{ProjectId, Timestamp};

    use super::{Counted, KeyHour};

    fn count(token: &str, hour: i64, events: u64) -> KeyHour {
        let last_at = Timestamp::EPOCH.plus_seconds(hour * 3600);
        KeyHour { project: ProjectId(1), hour, token: token.to_owned(), events, last_at }
    }

    #[test]
    fn each_hour_of_a_key_is_there_once() {
        let mut counted = Counted::default();
        for one in [count("a", 1, 2), count("a", 1, 3), count("b", 1, 1), count("a", 2, 4)] {
            counted.add(one);
        }
        // An hour that could not be written is counted again.
        counted.over.push(count("a", 2, 6));
        let taken = counted.take();
        assert_eq!(taken, [count("a", 1, 5), count("a", 2, 10), count("b", 1, 1)]);
        assert!(counted.take().is_empty());
    }
}
