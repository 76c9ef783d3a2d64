//! How much time a transformation may take beyond the usual time (ADR 9).
//!
//! What belongs here: the allowance of one config, divided among the senders of its
//! events. What does not: measuring the time, and the limit of a single event
//! (`weir-sandbox`).
//!
//! All configs use the same processors. A config whose events are all slow is skipped
//! most of the time; a config that is slow now and then is not. A sender of slow events
//! first uses up its own allowance. There is one for its network and one for its distinct
//! id, each half of the allowance of the config, so one sender cannot use up the
//! allowance of the others. Time beyond the allowance is a debt: a step that starts with
//! the last of its allowance pays for the whole event. The debt is the sender's own; the
//! config pays little of it.
//!
//! A sender counts as slow for some time after a slow event. While the allowance of the
//! config is empty, events of slow senders are skipped, and all others pass. Whether a
//! sender is slow shows only when an event of it has run, so the first slow event of each
//! sender is paid from a reserve. It is large enough for fifty new slow senders at the same
//! time; only beyond that, others are skipped too, because the processors are shared.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;
use std::time::Duration;

/// Time of an event that the allowance is not charged for.
const FREE: Duration = Duration::from_millis(5);
/// Rate of the whole config. The largest debt is small enough that a repaired step is
/// called again within minutes.
const WHOLE: Rate = Rate {
    full: Duration::from_secs(1),
    refill: Duration::from_millis(50),
    debt: Duration::from_secs(6),
};
/// Rate of one sender.
const SENDER: Rate = Rate {
    full: Duration::from_millis(500),
    refill: Duration::from_millis(25),
    debt: Duration::from_secs(3),
};
/// Rate of waiting for a refill.
const WAITING: Rate =
    Rate { full: Duration::from_secs(2), refill: Duration::from_millis(50), debt: Duration::ZERO };
/// What pays for the first slow events of senders.
const RESERVE: Rate = Rate {
    full: Duration::from_secs(5),
    refill: Duration::from_millis(25),
    debt: Duration::from_secs(5),
};
/// What the reserve pays for one event at most: the limit of an event.
const FIRST: Duration = Duration::from_millis(100);
/// What the config pays for an event beyond the rest of its sender at most. More, such as
/// the time of processes that ended, is a debt of the sender alone.
const OVERRUN: Duration = Duration::from_millis(250);
/// A sender counts as slow for this many times the time that it has used. Forty slow
/// senders together need less of the reserve than its refill.
const SLOW_FOR: u32 = 2_000;
/// The longest time for which a sender counts as slow.
const SLOW_AT_MOST: Duration = Duration::from_secs(3_600);
/// The most slow senders that are remembered.
const SENDERS: usize = 2_000;
/// Time between two log lines about skipped events.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// How fast an allowance refills, and its bounds.
struct Rate {
    /// The most that accumulates.
    full: Duration,
    /// What is added per second.
    refill: Duration,
    /// The largest debt.
    debt: Duration,
}

/// The time that is left of an allowance. Times are of a monotonic clock.
#[derive(Debug, Clone)]
struct Remainder {
    left: Duration,
    /// While this is not zero, `left` is zero.
    debt: Duration,
    /// When it was last refilled.
    at: Duration,
}

impl Remainder {
    fn new(rate: &Rate, now: Duration) -> Self {
        Self { left: rate.full, debt: Duration::ZERO, at: now }
    }

    fn refill(&mut self, rate: &Rate, now: Duration) {
        let gone = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        // An hour refills every allowance completely.
        let gone = gone.min(Duration::from_secs(3_600));
        let refill = rate.refill.mul_f64(gone.as_secs_f64());
        let paid = refill.min(self.debt);
        self.debt -= paid;
        self.left = (self.left + (refill - paid)).min(rate.full);
    }

    fn pay(&mut self, rate: &Rate, cost: Duration) {
        self.debt = (self.debt + cost.saturating_sub(self.left)).min(rate.debt);
        self.left = self.left.saturating_sub(cost);
    }

    fn is_full(&self, rate: &Rate) -> bool {
        self.left >= rate.full
    }
}

/// A sender that has been slow.
#[derive(Debug, Clone)]
struct Slow {
    left: Remainder,
    /// Until when it counts as slow.
    until: Duration,
    /// The time of its slowest event.
    slowest: Duration,
}

impl Slow {
    fn new(now: Duration) -> Self {
        Self { left: Remainder::new(&SENDER, now), until: now, slowest: Duration::ZERO }
    }
}

/// The sender of an event. The same distinct id from another network is another sender,
/// so that no other sender can use up the allowance of an id by sending it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Sender {
    network: Option<u64>,
    id: u64,
}

impl Sender {
    /// The sender of an event with this distinct id.
    pub(crate) fn of(network: Option<u64>, distinct_id: &str) -> Self {
        static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self { network, id: KEY.hash_one((network, distinct_id)) }
    }

    fn payers(self) -> impl Iterator<Item = Payer> {
        self.network.map(Payer::Network).into_iter().chain([Payer::Id(self.id)])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Payer {
    Network(u64),
    Id(u64),
}

/// Which allowances pay for which event of a crossing, as indexes into the result of
/// [`Allowance::available`].
#[derive(Debug, Default)]
pub(crate) struct Payers {
    list: Vec<(Payer, Sender)>,
    /// Indexes by event.
    pub(crate) of: Vec<Vec<usize>>,
}

impl Payers {
    /// The payers for events of these senders.
    pub(crate) fn of(senders: impl Iterator<Item = Sender>) -> Self {
        let mut payers = Self::default();
        let mut known: HashMap<Payer, usize> = HashMap::new();
        for sender in senders {
            // The first payer is the config with its reserve.
            let mut of = vec![0];
            for payer in sender.payers() {
                let number = *known.entry(payer).or_insert_with(|| {
                    payers.list.push((payer, sender));
                    payers.list.len()
                });
                of.push(number);
            }
            payers.of.push(of);
        }
        payers
    }
}

/// Half of the time, but never zero unless the time is zero.
fn half(left: Duration) -> Duration {
    part(left, 2)
}

/// The time divided among this many, but never zero unless the time is zero.
fn part(left: Duration, among: usize) -> Duration {
    let among = u32::try_from(among).unwrap_or(u32::MAX).max(1);
    (left / among).max(left.min(Duration::from_micros(1)))
}

/// What a crossing may use up.
#[derive(Debug, Clone)]
pub(crate) struct Available {
    /// By the index of the payer.
    pub(crate) by_payer: Vec<Duration>,
    /// What the config lends, without the reserve.
    of_whole: Duration,
}

/// The allowance of one config.
#[derive(Debug, Clone)]
pub(crate) struct Allowance {
    whole: Remainder,
    reserve: Remainder,
    /// Only senders that have been slow. All others have a full allowance.
    senders: HashMap<Payer, Slow>,
    /// What unfinished crossings may use up, of the config and of networks. The
    /// partitions of the log cross at the same time. The reserve is not divided among
    /// them: it must suffice for many senders in one of them.
    lent: Duration,
    lent_to: HashMap<u64, Duration>,
    waiting: Remainder,
    reported_at: Option<Duration>,
}

impl Allowance {
    /// A full allowance.
    pub(crate) fn new(now: Duration) -> Self {
        Self {
            whole: Remainder::new(&WHOLE, now),
            reserve: Remainder::new(&RESERVE, now),
            senders: HashMap::new(),
            lent: Duration::ZERO,
            lent_to: HashMap::new(),
            waiting: Remainder::new(&WAITING, now),
            reported_at: None,
        }
    }

    /// A copy for the config that replaces this one. Lent time is returned to this one.
    pub(crate) fn carried(&self) -> Self {
        Self { lent: Duration::ZERO, lent_to: HashMap::new(), ..self.clone() }
    }

    /// What a crossing may use up, by the index of the payer. The crossing returns it
    /// with [`Allowance::return_lent`]. Allowances that other crossings need at the same
    /// time are lent by half.
    pub(crate) fn available(&mut self, payers: &Payers, now: Duration) -> Available {
        self.whole.refill(&WHOLE, now);
        self.reserve.refill(&RESERVE, now);
        self.senders.retain(|_, slow| {
            slow.left.refill(&SENDER, now);
            !slow.left.is_full(&SENDER) || now < slow.until
        });
        let is_short = self.whole.left.is_zero();
        let of_whole = half(self.whole.left.saturating_sub(self.lent));
        self.lent += of_whole;
        let room = of_whole + self.reserve.left;
        // The largest payers: of a network not its ids, of others the ids.
        let is_sender = |(payer, sender): &(Payer, Sender)| {
            sender.network.is_none() || matches!(payer, Payer::Network(_))
        };
        let senders = || payers.list.iter().filter(|payer| is_sender(payer));
        let slow = senders().filter(|(payer, _)| self.senders.contains_key(payer)).count();
        // None has so much that the room ends before the last of them.
        let (share, share_of_slow) = (part(room, senders().count()), part(of_whole, slow));
        let mut rest = of_whole;
        let mut by_payer = vec![room];
        for (payer, sender) in &payers.list {
            let known = self.senders.get(payer);
            let left = known.map_or(SENDER.full, |slow| slow.left.left);
            let most = match known {
                _ if is_short && self.is_slow(*sender) => Duration::ZERO,
                _ if !is_sender(&(*payer, *sender)) => left,
                None => share,
                Some(_) if rest.is_zero() => Duration::ZERO,
                Some(slow) => {
                    // It may begin its slowest event with the last of its share.
                    rest = rest.saturating_sub(slow.slowest);
                    share_of_slow
                }
            };
            by_payer.push(match payer {
                // All events of an id are in one partition.
                Payer::Id(_) => left.min(most),
                Payer::Network(network) => {
                    let lent = self.lent_to.entry(*network).or_default();
                    let lends = half(left.saturating_sub(*lent)).min(most);
                    *lent += lends;
                    lends
                }
            });
        }
        Available { by_payer, of_whole }
    }

    fn is_slow(&self, sender: Sender) -> bool {
        sender.payers().any(|payer| self.senders.contains_key(&payer))
    }

    /// Returns what [`Self::available`] lent to a crossing, before the crossing pays.
    pub(crate) fn return_lent(&mut self, payers: &Payers, lent: &Available) {
        self.lent = self.lent.saturating_sub(lent.of_whole);
        for ((payer, _), lent) in payers.list.iter().zip(lent.by_payer.iter().skip(1)) {
            if let Payer::Network(network) = payer
                && let Some(all) = self.lent_to.get_mut(network)
            {
                *all = all.saturating_sub(*lent);
                if all.is_zero() {
                    self.lent_to.remove(network);
                }
            }
        }
    }

    /// Whether an event that took this time is charged.
    pub(crate) fn costs(took: Duration) -> bool {
        took > FREE
    }

    /// Charges an event.
    pub(crate) fn pay(&mut self, sender: Sender, took: Duration, now: Duration) {
        let cost = took.saturating_sub(FREE);
        if !self.is_slow(sender) {
            self.reserve.pay(&RESERVE, cost.min(FIRST));
        }
        let mut rest = SENDER.full;
        for payer in sender.payers() {
            if self.senders.len() >= SENDERS && !self.senders.contains_key(&payer) {
                // A network counts as slow for longer than each of its ids.
                let first = self.senders.iter().min_by_key(|(_, slow)| slow.until);
                if let Some(first) = first.map(|(payer, _)| *payer) {
                    self.senders.remove(&first);
                }
            }
            let slow = self.senders.entry(payer).or_insert_with(|| Slow::new(now));
            slow.left.refill(&SENDER, now);
            rest = rest.min(slow.left.left);
            slow.left.pay(&SENDER, cost);
            slow.slowest = slow.slowest.max(cost);
            slow.until = (slow.until.max(now) + cost * SLOW_FOR).min(now + SLOW_AT_MOST);
        }
        self.whole.pay(&WHOLE, cost.min(rest + OVERRUN));
    }

    /// Whether events may wait this long for the step. Waiting delays the events of
    /// others in the same partition, so the allowance for it is small.
    pub(crate) fn may_wait(&mut self, pause: Duration, now: Duration) -> bool {
        self.waiting.refill(&WAITING, now);
        let may = self.waiting.left >= pause;
        if may {
            self.waiting.pay(&WAITING, pause);
        }
        may
    }

    /// Whether it is time to log again that the config is skipped.
    pub(crate) fn should_report(&mut self, now: Duration) -> bool {
        let should_report = self
            .reported_at
            .is_none_or(|reported_at| now.saturating_sub(reported_at) >= REPORT_EVERY);
        if should_report {
            self.reported_at = Some(now);
        }
        should_report
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const SLOW: Duration = Duration::from_millis(105);

    /// What the sender of an event may use up: the least of all its payers.
    fn available(allowance: &mut Allowance, sender: Sender, now: Duration) -> Duration {
        let payers = Payers::of([sender].into_iter());
        let all = allowance.available(&payers, now);
        allowance.return_lent(&payers, &all);
        payers.of[0].iter().map(|payer| all.by_payer[*payer]).min().unwrap()
    }

    /// What a sender that was not slow may use up in a crossing.
    fn untouched() -> Duration {
        SENDER.full / 2
    }

    fn ada() -> Sender {
        Sender::of(Some(1), "ada")
    }

    #[test]
    fn what_is_quick_costs_nothing() {
        let mut allowance = Allowance::new(SECOND);
        assert!(!Allowance::costs(Duration::from_millis(5)) && Allowance::costs(SLOW));
        for _ in 0..1_000 {
            allowance.pay(ada(), Duration::from_millis(5), SECOND);
        }
        assert_eq!(available(&mut allowance, ada(), SECOND), untouched());
    }

    #[test]
    fn what_is_slow_uses_it_up_and_time_fills_it_again() {
        let mut allowance = Allowance::new(SECOND);
        for _ in 0..5 {
            allowance.pay(ada(), SLOW, SECOND);
        }
        assert_eq!(available(&mut allowance, ada(), SECOND), Duration::ZERO);
        assert_eq!(available(&mut allowance, ada(), SECOND * 5), Duration::from_millis(50));
        assert_eq!(available(&mut allowance, ada(), SECOND * 9_000), untouched());
    }

    #[test]
    fn one_sender_leaves_the_others_theirs() {
        let mut allowance = Allowance::new(SECOND);
        for number in 0..100 {
            // Invented ids are no new sender of a network.
            let sender = Sender::of(Some(1), &format!("made up {number}"));
            if !available(&mut allowance, sender, SECOND).is_zero() {
                allowance.pay(sender, SLOW, SECOND);
            }
        }
        assert_eq!(available(&mut allowance, Sender::of(Some(1), "new"), SECOND), Duration::ZERO);
        for other in [Sender::of(Some(2), "ada"), Sender::of(Some(2), "bob"), Sender::of(None, "c")]
        {
            assert!(available(&mut allowance, other, SECOND) >= untouched(), "{other:?}");
        }
    }

    #[test]
    fn crossings_at_the_same_time_share_it() {
        let mut allowance = Allowance::new(SECOND);
        let payers = Payers::of([ada()].into_iter());
        let crossings: Vec<_> = (0..8).map(|_| allowance.available(&payers, SECOND)).collect();
        let of_network = |lent: &Available| lent.by_payer[1];
        assert!(crossings.iter().map(of_network).sum::<Duration>() <= SENDER.full);
        // Quick events always pass.
        assert!(crossings.iter().flat_map(|lent| &lent.by_payer).all(|lent| !lent.is_zero()));
        assert!(!available(&mut allowance, Sender::of(Some(2), "bob"), SECOND).is_zero());
        crossings.iter().for_each(|lent| allowance.return_lent(&payers, lent));
        assert_eq!(available(&mut allowance, ada(), SECOND), untouched());
        assert!(allowance.lent_to.is_empty() && allowance.lent.is_zero());
        let _ = allowance.available(&payers, SECOND);
        assert_eq!(available(&mut allowance.carried(), ada(), SECOND), untouched());
    }

    #[test]
    fn of_one_network_each_id_has_its_own() {
        let mut allowance = Allowance::new(SECOND);
        allowance.pay(Sender::of(None, "ada"), SECOND, SECOND);
        assert_eq!(available(&mut allowance, Sender::of(None, "ada"), SECOND), Duration::ZERO);
        assert_eq!(available(&mut allowance, Sender::of(None, "bob"), SECOND), SENDER.full);
    }

    #[test]
    fn where_all_are_slow_the_config_is_passed_over() {
        let mut allowance = Allowance::new(SECOND);
        let mut events = 0;
        for look in 0..20_000 {
            let now = SECOND + Duration::from_millis(look);
            let sender = Sender::of(Some(look % 50), "x");
            if !available(&mut allowance, sender, now).is_zero() {
                events += 1;
                allowance.pay(sender, SLOW, now);
            }
        }
        // The first slow event of each. Then the config pays its debt.
        assert!((45..=60).contains(&events), "{events}");
    }

    /// Sends one crossing through a step that takes this long for each slow event;
    /// returns which events passed. As the sandbox does, an event runs while all of its
    /// payers have something left.
    fn crossing(
        allowance: &mut Allowance,
        events: &[(Sender, Duration)],
        now: Duration,
    ) -> Vec<bool> {
        let payers = Payers::of(events.iter().map(|(sender, _)| *sender));
        let lent = allowance.available(&payers, now);
        let mut left = lent.by_payer.clone();
        let mut ran = Vec::new();
        for ((_, took), of) in events.iter().zip(&payers.of) {
            let runs = of.iter().all(|payer| !left[*payer].is_zero());
            for payer in of.iter().filter(|_| runs) {
                left[*payer] = left[*payer].saturating_sub(took.saturating_sub(FREE));
            }
            ran.push(runs);
        }
        allowance.return_lent(&payers, &lent);
        for ((sender, took), _) in events.iter().zip(&ran).filter(|(_, ran)| **ran) {
            if Allowance::costs(*took) {
                allowance.pay(*sender, *took, now);
            }
        }
        ran
    }

    fn honest(number: u64) -> (Sender, Duration) {
        (Sender::of(Some(1_000 + number), "honest"), Duration::from_millis(1))
    }

    #[test]
    fn forty_slow_networks_leave_the_others_theirs() {
        let mut allowance = Allowance::new(SECOND);
        let mut slow = 0;
        // Ten minutes, in which they send in each second as much as they can.
        for second in 1..=600 {
            let hostile = (0..200).map(|number| {
                let id = format!("made up {second} {number}");
                (Sender::of(Some(number % 40), &id), SLOW)
            });
            let mut events: Vec<_> = hostile.collect();
            events.extend((0..20).map(|number| honest(second * 20 + number)));
            let ran = crossing(&mut allowance, &events, SECOND * u32::try_from(second).unwrap());
            assert!(ran[200..].iter().all(|ran| *ran), "in second {second}");
            slow += ran[..200].iter().filter(|ran| **ran).count();
        }
        // The machine is protected: the refill of both, and the first seconds.
        let used = (SLOW - FREE) * u32::try_from(slow).unwrap();
        assert!(used < SECOND * (600 / 10), "{used:?}");
    }

    #[test]
    fn processes_that_end_are_a_debt_of_their_sender() {
        let mut allowance = Allowance::new(SECOND);
        let killed = Duration::from_secs(10);
        for second in 1..=120 {
            let now = SECOND * second;
            let hostile = [(ada(), killed), (ada(), killed), (ada(), killed)];
            crossing(&mut allowance, &hostile, now);
            // Not even senders that are a little slow themselves notice it.
            let other = Sender::of(Some(2), "bob");
            let ran = crossing(&mut allowance, &[(other, Duration::from_millis(6))], now);
            assert_eq!(ran, [true], "in second {second}");
        }
    }

    #[test]
    fn any_number_of_slow_networks_uses_little() {
        let mut allowance = Allowance::new(SECOND);
        let mut slow = 0;
        for second in 1..=600 {
            let events: Vec<_> = (0..500)
                .map(|number| (Sender::of(Some(second * 500 + number), "x"), SLOW))
                .collect();
            let ran = crossing(&mut allowance, &events, SECOND * u32::try_from(second).unwrap());
            slow += ran.iter().filter(|ran| **ran).count();
        }
        let used = (SLOW - FREE) * u32::try_from(slow).unwrap();
        assert!(used < SECOND * (600 / 10), "{used:?}");
    }

    #[test]
    fn the_last_of_it_is_no_way_around() {
        let mut allowance = Allowance::new(SECOND);
        let mut events = 0;
        for look in 0..20_000 {
            let now = SECOND + Duration::from_millis(look);
            if !available(&mut allowance, ada(), now).is_zero() {
                events += 1;
                allowance.pay(ada(), SLOW, now);
            }
        }
        // The full half second, and a quarter of a second for each ten that passed.
        assert!((9..=11).contains(&events), "{events}");
    }

    #[test]
    fn debts_end() {
        let mut allowance = Allowance::new(SECOND);
        for _ in 0..1_000 {
            allowance.pay(ada(), SECOND * 100, SECOND * 100);
        }
        assert_eq!(available(&mut allowance, ada(), SECOND * 100), Duration::ZERO);
        assert!(!available(&mut allowance, ada(), SECOND * 222).is_zero());
    }

    #[test]
    fn senders_that_are_remembered_are_few() {
        let mut allowance = Allowance::new(SECOND);
        for number in 0..3 * SENDERS as u64 {
            allowance.pay(Sender::of(Some(number), "x"), SLOW, SECOND * 2);
        }
        assert!(allowance.senders.len() <= SENDERS);
        available(&mut allowance, ada(), SECOND * 9_000);
        assert!(allowance.senders.is_empty());
    }

    #[test]
    fn waiting_is_little() {
        let mut allowance = Allowance::new(SECOND);
        let pause = Duration::from_millis(100);
        let waited = |allowance: &mut Allowance, now| {
            (0..1_000).filter(|_| allowance.may_wait(pause, now)).count()
        };
        assert_eq!(waited(&mut allowance, SECOND), 20);
        assert_eq!(waited(&mut allowance, SECOND * 5), 2);
    }

    #[test]
    fn it_is_reported_once_a_minute() {
        let mut allowance = Allowance::new(SECOND);
        let reported_at =
            (1..=180).filter(|second| allowance.should_report(SECOND * *second)).count();
        assert_eq!(reported_at, 3);
    }
}
