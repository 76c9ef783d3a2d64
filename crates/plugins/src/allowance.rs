//! How much time a transformation may take beyond what is usual (ADR 9).
//!
//! What belongs here: the allowance of one config. What does not: measuring, and
//! the limit of a single event, which the sandbox keeps.
//!
//! Neighbours share the processors with a config, so one whose events are all slow
//! is passed over most of the time, while one that is slow now and then is not. What
//! was used up beyond what was there is a debt: a step that gets in with the last of
//! its allowance pays for the whole event.

use std::time::Duration;

/// Time of an event that costs nothing of the allowance.
const FREE: Duration = Duration::from_millis(5);
/// The most that is saved up.
const FULL: Duration = Duration::from_secs(1);
/// What a second adds.
const REFILL: Duration = Duration::from_millis(50);
/// The largest debt: a step that was mended is called again within minutes.
const DEBT: Duration = Duration::from_secs(6);
/// Being passed over is told once in this time.
const TOLD: Duration = Duration::from_secs(60);

/// The allowance of one config. Times are of a clock that only goes on.
#[derive(Debug, Clone)]
pub(crate) struct Allowance {
    left: Duration,
    /// Nothing is left then.
    debt: Duration,
    /// When it was last refilled.
    at: Duration,
    told: Option<Duration>,
}

impl Allowance {
    /// A full one.
    pub(crate) fn new(now: Duration) -> Self {
        Self { left: FULL, debt: Duration::ZERO, at: now, told: None }
    }

    /// What may be used up now.
    pub(crate) fn available(&mut self, now: Duration) -> Duration {
        let gone = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        // So much that it is full anyway.
        let gone = gone.min(Duration::from_secs(3_600));
        let refill = REFILL.mul_f64(gone.as_secs_f64());
        let paid = refill.min(self.debt);
        self.debt -= paid;
        self.left = (self.left + (refill - paid)).min(FULL);
        self.left
    }

    /// Pays for an event.
    pub(crate) fn pay(&mut self, took: Duration) {
        let cost = took.saturating_sub(FREE);
        self.debt = (self.debt + cost.saturating_sub(self.left)).min(DEBT);
        self.left = self.left.saturating_sub(cost);
    }

    /// Whether it is time to tell that the config is passed over.
    pub(crate) fn tells(&mut self, now: Duration) -> bool {
        let tells = self.told.is_none_or(|told| now.saturating_sub(told) >= TOLD);
        if tells {
            self.told = Some(now);
        }
        tells
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Allowance, FULL};

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_is_quick_costs_nothing() {
        let mut allowance = Allowance::new(SECOND);
        for _ in 0..100_000 {
            allowance.pay(Duration::from_millis(5));
        }
        assert_eq!(allowance.available(SECOND), FULL);
    }

    #[test]
    fn what_is_slow_uses_it_up_and_time_fills_it_again() {
        let mut allowance = Allowance::new(SECOND);
        for _ in 0..10 {
            allowance.pay(Duration::from_millis(105));
        }
        assert_eq!(allowance.available(SECOND), Duration::ZERO);
        assert_eq!(allowance.available(SECOND * 3), Duration::from_millis(100));
        assert_eq!(allowance.available(SECOND * 9_000), FULL);
    }

    #[test]
    fn the_last_of_it_is_no_way_around() {
        let mut allowance = Allowance::new(SECOND);
        // A thousand looks in a second, each with one event if there is anything left.
        let mut events = 0;
        for look in 0..20_000 {
            let now = SECOND + Duration::from_millis(look);
            if !allowance.available(now).is_zero() {
                events += 1;
                allowance.pay(Duration::from_millis(105));
            }
        }
        // The full second, and half a one for each ten that passed.
        assert!((19..=21).contains(&events), "{events}");
    }

    #[test]
    fn debts_end() {
        let mut allowance = Allowance::new(SECOND);
        for _ in 0..1_000 {
            allowance.pay(SECOND * 100);
        }
        assert_eq!(allowance.available(SECOND * 100), Duration::ZERO);
        assert!(!allowance.available(SECOND * 122).is_zero());
    }

    #[test]
    fn it_is_told_once_a_minute() {
        let mut allowance = Allowance::new(SECOND);
        let told = (1..=180).filter(|second| allowance.tells(SECOND * *second)).count();
        assert_eq!(told, 3);
    }
}
