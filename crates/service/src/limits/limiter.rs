//! Whether events are taken, decided from memory (ING-66).
//!
//! What belongs here: how much of its limits an organization uses, as far as capture needs
//! it. What does not: reading and writing the counts, and members and exports, which are
//! limited in their transactions (`limits`).
//!
//! An organization has an entry from its first event on. So the number of entries is that
//! of the organizations, and entries of deleted ones are removed every hour.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use weir_model::limits::{
    BURST_SECONDS, Limit, LimitAction, LimitChoices, LimitName, LimitSet, Month,
};
use weir_model::{OrganizationId, Timestamp};
use weir_store::limits::{DiskUsage, MonthUsage};

use crate::Clock;

/// Parts of an event that a bucket counts, so that it can be filled by the microsecond.
const PARTS: i64 = 1_000_000;
/// Most seconds that a sender is asked to wait. The operator may change the limit before
/// the month ends.
const WAIT_MAX: u64 = 60 * 60;
/// Seconds by which a clock may be set back across the beginning of a month, so that the
/// month does not begin twice.
const SET_BACK_SECONDS: i64 = 24 * 60 * 60;

/// Whether the events of a request are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// They are within all limits.
    Take,
    /// They are beyond this limit and taken.
    Warn(LimitName),
    /// They are beyond this limit: they are dropped and shown as dropped.
    Drop(LimitName),
    /// They are beyond this limit: the request is refused.
    Reject(OverLimit),
}

/// A limit that refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverLimit {
    /// Which limit of the organization it is.
    pub limit: LimitName,
    /// Its number.
    pub most: u64,
    /// Seconds after which the sender may try again.
    pub retry_after: u64,
}

/// What an organization uses, as far as capture knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Used {
    /// Accepted events of the month.
    pub(super) month: u64,
    /// Accepted events in a second: the average of the last full minute, rounded up.
    pub(super) second: u64,
    /// The disk space, if it was measured.
    pub(super) disk: Option<DiskUsage>,
}

/// Decides whether events are taken, and counts those that are.
#[derive(Debug)]
pub struct Limiter {
    defaults: LimitSet,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    month: Month,
    /// Whether the stored events of the month are to be added.
    is_unread: bool,
    /// A time before this one is of an earlier month.
    begins_at: Timestamp,
    /// When the next month begins.
    ends_at: Timestamp,
    entries: HashMap<OrganizationId, Entry>,
    /// Accepted events that are not written yet.
    unwritten: HashMap<(OrganizationId, Month), u64>,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    limits: LimitSet,
    month: u64,
    rate: Rate,
    bucket: Bucket,
    disk: Option<DiskUsage>,
    /// Whether events were beyond the limit of a second since the last warnings.
    was_too_fast: bool,
}

impl Limiter {
    /// Begins with no counts. `defaults` are the limits in the settings.
    #[must_use]
    pub fn new(defaults: LimitSet, clock: Clock) -> Self {
        let month = Month::of(clock.now());
        let state = State {
            month,
            is_unread: true,
            begins_at: begins_at(month),
            ends_at: month.next().begins(),
            entries: HashMap::new(),
            unwritten: HashMap::new(),
        };
        Self { defaults, clock, state: Mutex::new(state) }
    }

    /// Whether these events of an organization are taken. The events that reach a limit are
    /// taken all together, so that no request is taken in part.
    pub fn admit(&self, organization: OrganizationId, events: u64) -> Admission {
        let (now, uptime) = (self.clock.now(), self.clock.uptime());
        let mut state = self.state.lock();
        state.begin_month(now);
        let ends_at = state.ends_at;
        let entry = state.entry(organization, &self.defaults);
        let mut found: Option<(LimitName, Limit, u64)> = None;
        let mut beyond = |name, limit: Limit, wait: u64| {
            if found.is_none_or(|(_, other, _)| limit.action > other.action) {
                found = Some((name, limit, wait));
            }
        };
        if let Some(limit) = entry.limits.events_per_month
            && entry.month >= limit.most
        {
            let rest = ends_at.micros().saturating_sub(now.micros()).div_euclid(1_000_000);
            let seconds = u64::try_from(rest).unwrap_or(0).saturating_add(1);
            beyond(LimitName::EventsPerMonth, limit, seconds);
        }
        if let Some(limit) = entry.limits.disk_bytes
            && entry.disk.is_some_and(|disk| disk.bytes >= limit.most)
        {
            beyond(LimitName::DiskBytes, limit, WAIT_MAX);
        }
        if let Some(limit) = entry.limits.events_per_second {
            entry.bucket.fill(limit.most, uptime);
            if entry.bucket.is_empty() {
                entry.was_too_fast = true;
                beyond(LimitName::EventsPerSecond, limit, entry.bucket.wait(limit.most));
            }
        }
        let admission = match found {
            None => Admission::Take,
            Some((name, limit, wait)) => match limit.action {
                LimitAction::Warn => Admission::Warn(name),
                LimitAction::Drop => Admission::Drop(name),
                LimitAction::Reject => Admission::Reject(OverLimit {
                    limit: name,
                    most: limit.most,
                    retry_after: wait.clamp(1, WAIT_MAX),
                }),
            },
        };
        // Of an empty bucket nothing is taken: it would owe more and more where the limit only
        // warns.
        if matches!(admission, Admission::Take | Admission::Warn(_)) && !entry.bucket.is_empty() {
            entry.bucket.take(events);
        }
        admission
    }

    /// Counts events that were taken and are on stable storage.
    pub fn count(&self, organization: OrganizationId, events: u64) {
        if events == 0 {
            return;
        }
        let now = self.clock.now();
        let mut state = self.state.lock();
        state.begin_month(now);
        let month = state.month;
        let entry = state.entry(organization, &self.defaults);
        entry.month = entry.month.saturating_add(events);
        entry.rate.count(now, events);
        let unwritten = state.unwritten.entry((organization, month)).or_default();
        *unwritten = unwritten.saturating_add(events);
    }

    /// The limits in the settings.
    pub(super) fn defaults(&self) -> &LimitSet {
        &self.defaults
    }

    /// The present month.
    pub(super) fn month(&self) -> Month {
        let mut state = self.state.lock();
        state.begin_month(self.clock.now());
        state.month
    }

    /// The limits that apply to an organization from now on.
    pub(super) fn choose(&self, organization: OrganizationId, choices: &LimitChoices) {
        let mut state = self.state.lock();
        let entry = state.entry(organization, &self.defaults);
        let limits = choices.over(&self.defaults);
        if limits.events_per_second != entry.limits.events_per_second {
            entry.bucket = Bucket::default();
            entry.was_too_fast = false;
        }
        entry.limits = limits;
    }

    /// Sets the disk space of an organization.
    pub(super) fn measured(&self, organization: OrganizationId, disk: DiskUsage) {
        self.state.lock().entry(organization, &self.defaults).disk = Some(disk);
    }

    /// The present month, if its stored events were not added since it began.
    pub(super) fn unread(&self) -> Option<Month> {
        let mut state = self.state.lock();
        state.begin_month(self.clock.now());
        state.is_unread.then_some(state.month)
    }

    /// Adds the stored events of a month, unless another one has begun meanwhile.
    pub(super) fn add_stored(&self, month: Month, stored: &[MonthUsage]) {
        let mut state = self.state.lock();
        if state.month != month {
            return;
        }
        state.is_unread = false;
        for usage in stored.iter().filter(|usage| usage.month == month) {
            let entry = state.entry(usage.organization, &self.defaults);
            entry.month = entry.month.saturating_add(usage.events);
        }
    }

    /// Takes the counts that are not written.
    pub(super) fn take(&self) -> Vec<MonthUsage> {
        let unwritten = std::mem::take(&mut self.state.lock().unwritten);
        let usage = |((organization, month), events)| MonthUsage { organization, month, events };
        unwritten.into_iter().map(usage).collect()
    }

    /// Puts counts back that were not written after all.
    pub(super) fn put_back(&self, usage: &[MonthUsage]) {
        let mut state = self.state.lock();
        for MonthUsage { organization, month, events } in usage {
            let unwritten = state.unwritten.entry((*organization, *month)).or_default();
            *unwritten = unwritten.saturating_add(*events);
        }
    }

    /// What an organization uses.
    pub(super) fn used(&self, organization: OrganizationId) -> Used {
        let now = self.clock.now();
        let mut state = self.state.lock();
        state.begin_month(now);
        state.entries.get(&organization).map(|entry| entry.used(now)).unwrap_or_default()
    }

    /// The organizations that are near a limit of events or beyond it, from this share on,
    /// in percent: with the limit, and what is used. Seconds in which events were beyond
    /// their limit count as used up, and are forgotten.
    pub(super) fn near(&self, percent: u64) -> Vec<(OrganizationId, LimitName, Limit, u64)> {
        let now = self.clock.now();
        let mut state = self.state.lock();
        state.begin_month(now);
        let mut near = Vec::new();
        for (organization, entry) in &mut state.entries {
            let used = entry.used(now);
            if let Some(limit) = entry.limits.events_per_month
                && limit.percent(used.month) >= percent
            {
                near.push((*organization, LimitName::EventsPerMonth, limit, used.month));
            }
            let was_too_fast = std::mem::take(&mut entry.was_too_fast);
            if let Some(limit) = entry.limits.events_per_second {
                let second = if was_too_fast { used.second.max(limit.most) } else { used.second };
                if limit.percent(second) >= percent {
                    near.push((*organization, LimitName::EventsPerSecond, limit, second));
                }
            }
        }
        near
    }

    /// The organizations with an entry.
    pub(super) fn organizations(&self) -> Vec<OrganizationId> {
        self.state.lock().entries.keys().copied().collect()
    }

    /// Removes the entries of deleted organizations.
    pub(super) fn forget(&self, deleted: &[OrganizationId]) {
        let mut state = self.state.lock();
        for organization in deleted {
            state.entries.remove(organization);
        }
    }
}

impl State {
    /// Counts from what is not written when another month has begun; what is stored is added
    /// later. A clock that is set back a little begins
    /// none; one that was wrong by more than [`SET_BACK_SECONDS`] must not hold a month that
    /// is far in the future.
    fn begin_month(&mut self, now: Timestamp) {
        if now >= self.begins_at && now < self.ends_at {
            return;
        }
        self.month = Month::of(now);
        self.begins_at = begins_at(self.month);
        self.ends_at = self.month.next().begins();
        self.is_unread = true;
        for (organization, entry) in &mut self.entries {
            let unwritten = self.unwritten.get(&(*organization, self.month));
            entry.month = unwritten.copied().unwrap_or(0);
        }
    }

    fn entry(&mut self, organization: OrganizationId, defaults: &LimitSet) -> &mut Entry {
        self.entries.entry(organization).or_insert_with(|| Entry::new(defaults))
    }
}

impl Entry {
    fn new(defaults: &LimitSet) -> Self {
        Self { limits: *defaults, ..Self::default() }
    }

    fn used(&self, now: Timestamp) -> Used {
        Used { month: self.month, second: self.rate.average(now), disk: self.disk }
    }
}

/// Events by the minute, of the last two minutes with events.
#[derive(Debug, Clone, Copy, Default)]
struct Rate {
    minute: i64,
    events: u64,
    before: u64,
}

impl Rate {
    fn count(&mut self, now: Timestamp, events: u64) {
        let minute = minute_of(now);
        if minute != self.minute {
            self.before = self.of(minute - 1);
            (self.minute, self.events) = (minute, 0);
        }
        self.events = self.events.saturating_add(events);
    }

    /// The events of a minute that is not before the last two.
    fn of(&self, minute: i64) -> u64 {
        match self.minute - minute {
            0 => self.events,
            1 => self.before,
            _ => 0,
        }
    }

    /// Events in a second of the last full minute, rounded up.
    fn average(&self, now: Timestamp) -> u64 {
        self.of(minute_of(now) - 1).div_ceil(60)
    }
}

/// The earliest time that does not end a month.
fn begins_at(month: Month) -> Timestamp {
    month.begins().plus_seconds(-SET_BACK_SECONDS)
}

fn minute_of(time: Timestamp) -> i64 {
    time.micros().div_euclid(60_000_000)
}

/// A token bucket. The events that empty it are taken all together, and it then owes the
/// rest.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    parts: i64,
    /// When it was last filled; `None`: it is full.
    filled: Option<Duration>,
}

impl Bucket {
    /// Adds what has become free since the last time, up to a burst.
    fn fill(&mut self, most: u64, uptime: Duration) {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let burst = i64::try_from(BURST_SECONDS).unwrap_or(1).saturating_mul(PARTS);
        let full = most.saturating_mul(burst);
        self.parts = match self.filled {
            None => full,
            Some(filled) => {
                let passed = uptime.saturating_sub(filled).as_micros();
                let free = most.saturating_mul(i64::try_from(passed).unwrap_or(i64::MAX));
                self.parts.saturating_add(free).min(full)
            }
        };
        self.filled = Some(uptime);
    }

    fn is_empty(&self) -> bool {
        self.parts <= 0
    }

    fn take(&mut self, events: u64) {
        let parts = i64::try_from(events).unwrap_or(i64::MAX).saturating_mul(PARTS);
        self.parts = self.parts.saturating_sub(parts);
    }

    /// Seconds until it is not empty, at least 1.
    fn wait(&self, most: u64) -> u64 {
        let owed = u64::try_from(self.parts.saturating_neg()).unwrap_or(0);
        let micros = owed / most.max(1) + 1;
        micros.div_ceil(1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const HOME: OrganizationId = OrganizationId(Uuid::from_u128(1));
    const OTHER: OrganizationId = OrganizationId(Uuid::from_u128(2));

    fn limiter(defaults: LimitSet) -> (Limiter, Clock) {
        let clock = Clock::fixed(Timestamp::parse("2026-01-31T23:00:30Z").unwrap());
        (Limiter::new(defaults, clock.clone()), clock)
    }

    fn limit(most: u64, action: LimitAction) -> Option<Limit> {
        Some(Limit { most, action })
    }

    /// Takes events and counts them, as capture does.
    fn send(limiter: &Limiter, organization: OrganizationId, events: u64) -> Admission {
        let admission = limiter.admit(organization, events);
        if matches!(admission, Admission::Take | Admission::Warn(_)) {
            limiter.count(organization, events);
        }
        admission
    }

    #[test]
    fn events_of_a_month_are_counted_from_0_in_the_next() {
        for action in LimitAction::ALL {
            let defaults = LimitSet { events_per_month: limit(10, action), ..LimitSet::default() };
            let (limiter, clock) = limiter(defaults);
            assert_eq!(send(&limiter, HOME, 9), Admission::Take);
            assert_eq!(send(&limiter, HOME, 5), Admission::Take, "it reaches the limit");
            let beyond = match action {
                LimitAction::Warn => Admission::Warn(LimitName::EventsPerMonth),
                LimitAction::Drop => Admission::Drop(LimitName::EventsPerMonth),
                LimitAction::Reject => Admission::Reject(OverLimit {
                    limit: LimitName::EventsPerMonth,
                    most: 10,
                    retry_after: 3_571,
                }),
            };
            assert_eq!(send(&limiter, HOME, 1), beyond);
            assert_eq!(send(&limiter, OTHER, 1), Admission::Take, "others are not affected");
            let month = limiter.month();
            clock.advance(3_600);
            assert_eq!(limiter.month(), month.next());
            assert_eq!(limiter.used(HOME).month, 0);
            assert_eq!(send(&limiter, HOME, 1), Admission::Take);
            // What is not written yet stays in its month.
            let mut unwritten = limiter.take();
            unwritten.sort_by_key(|usage| (usage.organization, usage.month));
            let home = if action == LimitAction::Warn { 15 } else { 14 };
            let usage = |organization, month, events| MonthUsage { organization, month, events };
            let expected =
                [usage(HOME, month, home), usage(HOME, month.next(), 1), usage(OTHER, month, 1)];
            assert_eq!(unwritten, expected);
            limiter.put_back(&unwritten[..1]);
            assert_eq!(limiter.take(), expected[..1]);
        }
    }

    #[test]
    fn a_clock_that_is_set_back_a_little_begins_no_month_and_one_that_was_wrong_does() {
        let defaults =
            LimitSet { events_per_month: limit(10, LimitAction::Reject), ..LimitSet::default() };
        let (limiter, clock) = limiter(defaults);
        let january = limiter.month();
        clock.advance(3_600);
        assert_eq!(send(&limiter, HOME, 10), Admission::Take);
        clock.advance(-3_600);
        assert_eq!((limiter.month(), limiter.used(HOME).month), (january.next(), 10));
        assert!(matches!(send(&limiter, HOME, 1), Admission::Reject(_)));
        clock.advance(400 * 86_400);
        assert!(limiter.month() > january.next());
        clock.advance(-400 * 86_400);
        assert_eq!((limiter.month(), limiter.used(HOME).month), (january, 0));
        assert_eq!(send(&limiter, HOME, 1), Admission::Take);
    }

    #[test]
    fn a_burst_is_taken_and_then_as_much_as_becomes_free() {
        let defaults =
            LimitSet { events_per_second: limit(2, LimitAction::Reject), ..LimitSet::default() };
        let (limiter, clock) = limiter(defaults);
        for _ in 0..BURST_SECONDS * 2 - 1 {
            assert_eq!(send(&limiter, HOME, 1), Admission::Take);
        }
        assert_eq!(send(&limiter, HOME, 6), Admission::Take, "it empties the bucket");
        let rejected = |retry_after| {
            let limit = LimitName::EventsPerSecond;
            Admission::Reject(OverLimit { limit, most: 2, retry_after })
        };
        assert_eq!(send(&limiter, HOME, 1), rejected(3));
        clock.advance(2);
        assert_eq!(send(&limiter, HOME, 1), rejected(1));
        clock.advance(1);
        assert_eq!(send(&limiter, HOME, 1), Admission::Take);
        clock.advance(3_600);
        assert_eq!(send(&limiter, HOME, BURST_SECONDS * 2 - 1), Admission::Take);
        assert_eq!(send(&limiter, HOME, 1), Admission::Take, "a burst is full again");
        assert!(matches!(send(&limiter, HOME, 1), Admission::Reject(_)));
        assert_eq!(send(&limiter, OTHER, 1), Admission::Take);
    }

    #[test]
    fn the_strictest_limit_decides() {
        let defaults = LimitSet {
            events_per_month: limit(1, LimitAction::Warn),
            disk_bytes: limit(100, LimitAction::Reject),
            ..LimitSet::default()
        };
        let (limiter, _) = limiter(defaults);
        let measured_at = Timestamp::EPOCH;
        assert_eq!(send(&limiter, HOME, 1), Admission::Take);
        limiter.measured(HOME, DiskUsage { bytes: 99, measured_at });
        assert_eq!(send(&limiter, HOME, 1), Admission::Warn(LimitName::EventsPerMonth));
        limiter.measured(HOME, DiskUsage { bytes: 100, measured_at });
        let rejected = OverLimit { limit: LimitName::DiskBytes, most: 100, retry_after: WAIT_MAX };
        assert_eq!(send(&limiter, HOME, 1), Admission::Reject(rejected));
        let choices = LimitChoices {
            disk_bytes: weir_model::limits::LimitChoice::Unlimited,
            ..LimitChoices::default()
        };
        limiter.choose(HOME, &choices);
        assert_eq!(send(&limiter, HOME, 1), Admission::Warn(LimitName::EventsPerMonth));
        assert_eq!(limiter.used(HOME).month, 3);
    }

    #[test]
    fn what_was_stored_before_the_start_counts() {
        let defaults =
            LimitSet { events_per_month: limit(10, LimitAction::Drop), ..LimitSet::default() };
        let (limiter, _) = limiter(defaults);
        let month = limiter.month();
        let usage = |month, events| MonthUsage { organization: HOME, month, events };
        limiter.add_stored(month, &[usage(month, 10), usage(month.next(), 50)]);
        assert_eq!(limiter.used(HOME).month, 10);
        assert_eq!(send(&limiter, HOME, 1), Admission::Drop(LimitName::EventsPerMonth));
        assert!(limiter.take().is_empty(), "it is stored already");
        assert_eq!(limiter.organizations(), [HOME]);
        limiter.forget(&[HOME, OTHER]);
        assert!(limiter.organizations().is_empty());
    }

    #[test]
    fn organizations_near_a_limit_are_found() {
        let defaults = LimitSet {
            events_per_month: limit(1_000, LimitAction::Warn),
            events_per_second: limit(10, LimitAction::Drop),
            ..LimitSet::default()
        };
        let (limiter, clock) = limiter(defaults);
        send(&limiter, HOME, 80);
        assert!(limiter.near(80).is_empty());
        clock.advance(60);
        assert_eq!(limiter.used(HOME).second, 2, "80 events in a minute");
        send(&limiter, HOME, 720);
        let month = limit(1_000, LimitAction::Warn).unwrap();
        assert_eq!(limiter.near(80), [(HOME, LimitName::EventsPerMonth, month, 800)]);
        let second = limit(10, LimitAction::Drop).unwrap();
        assert_eq!(send(&limiter, HOME, 1), Admission::Drop(LimitName::EventsPerSecond));
        let both = [
            (HOME, LimitName::EventsPerMonth, month, 800),
            (HOME, LimitName::EventsPerSecond, second, 10),
        ];
        assert_eq!(limiter.near(80), both);
        assert_eq!(limiter.near(80), both[..1]);
        clock.advance(60);
        let average = 720_u64.div_ceil(60);
        assert_eq!(limiter.near(100), [(HOME, LimitName::EventsPerSecond, second, average)]);
        clock.advance(60);
        assert_eq!(limiter.used(HOME).second, 0);
    }
}
