//! Slots of runs that read and send concurrently, divided among organizations.
//!
//! What belongs here: which run gets the next slot, and when a run with a silent
//! destination loses its slot. What does not: which runs there are (`mod`), how many runs
//! of one export may be active (`settings`).
//!
//! - An organization has a bounded number of slots. The next slot goes to the waiting
//!   organization with the fewest slots. If several have the same number, it goes to the
//!   one whose last slot was assigned longest ago.
//! - A run that only waits for its destination is set aside when another run waits for a
//!   slot. It keeps its data in memory, so only a few runs can be aside.
//! - When no more runs can be aside, a run that has waited much longer gives up its
//!   attempt if another organization waits.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use weir_model::OrganizationId;

/// Silence after which a run gives up its attempt, as a multiple of the silence after
/// which it is set aside.
const PATIENCE: u32 = 4;
/// Longest time between two checks for waiting runs.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The number of slots.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Slots of all organizations.
    pub(super) all: usize,
    /// Slots of one organization.
    pub(super) of_one: usize,
    /// Runs of all organizations that may be aside.
    pub(super) parked: usize,
    /// Runs of one organization that may be aside.
    pub(super) parked_of_one: usize,
    /// Silence of a destination after which its run is set aside.
    pub(super) silence: Duration,
}

/// All slots. Clones refer to the same slots.
#[derive(Clone)]
pub(super) struct Slots {
    limits: Limits,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    working: usize,
    parked: usize,
    /// Number of slots that were assigned so far.
    given: u64,
    of: HashMap<OrganizationId, OrganizationUse>,
    waiting: VecDeque<Waiting>,
}

/// The slots of an organization. The entry exists while it has a slot or waits for one.
#[derive(Default)]
struct OrganizationUse {
    working: usize,
    parked: usize,
    waiting: usize,
    /// The number of its last assignment.
    last: u64,
}

struct Waiting {
    organization: OrganizationId,
    /// The run was set aside: its memory counts until it resumes.
    was_parked: bool,
    answer: oneshot::Sender<Slot>,
}

/// A slot, which is released when dropped.
pub(super) struct Slot {
    slots: Slots,
    organization: OrganizationId,
    is_parked: bool,
}

/// The destination was silent for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Silent;

impl Slots {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, state: Arc::default() }
    }

    /// Waits for a slot.
    pub(super) async fn take(&self, organization: OrganizationId) -> Slot {
        self.wait(organization, false).await
    }

    async fn wait(&self, organization: OrganizationId, was_parked: bool) -> Slot {
        let (answer, given) = oneshot::channel();
        {
            let mut state = self.state.lock();
            state.of.entry(organization).or_default().waiting += 1;
            state.waiting.push_back(Waiting { organization, was_parked, answer });
        }
        self.give();
        match given.await {
            Ok(slot) => slot,
            // A waiting run stays in the queue until it is answered.
            Err(_) => std::future::pending().await,
        }
    }

    /// Assigns free slots to waiting runs.
    fn give(&self) {
        loop {
            let (waiting, slot) = {
                let mut state = self.state.lock();
                let Some(at) = state.next(self.limits) else { return };
                let Some(waiting) = state.waiting.remove(at) else { return };
                state.working += 1;
                state.given += 1;
                let given = state.given;
                let in_use = state.of.entry(waiting.organization).or_default();
                in_use.waiting = in_use.waiting.saturating_sub(1);
                in_use.working += 1;
                in_use.last = given;
                let slot = Slot {
                    slots: self.clone(),
                    organization: waiting.organization,
                    is_parked: false,
                };
                (waiting, slot)
            };
            // If the waiting run was interrupted in the meantime, `send` returns the
            // slot, and dropping it releases it.
            drop(waiting.answer.send(slot));
        }
    }

    /// Takes the slot of a silent run if another waiting run could have it. `None` if
    /// there is no such run.
    fn park(&self, organization: OrganizationId) -> Option<Result<(), Silent>> {
        let is_wanted = {
            let mut state = self.state.lock();
            let other = state.is_wanted(organization, self.limits)?;
            let own = state.of.get(&organization).map_or(0, |in_use| in_use.parked);
            if state.parked >= self.limits.parked || own >= self.limits.parked_of_one {
                return (other != organization).then_some(Err(Silent));
            }
            state.working -= 1;
            state.parked += 1;
            let in_use = state.of.entry(organization).or_default();
            in_use.working -= 1;
            in_use.parked += 1;
            Some(Ok(()))
        };
        self.give();
        is_wanted
    }
}

impl State {
    /// The index of the next waiting run in the queue.
    fn next(&mut self, limits: Limits) -> Option<usize> {
        self.waiting.retain(|waiting| {
            let is_there = !waiting.answer.is_closed();
            if !is_there && let Some(in_use) = self.of.get_mut(&waiting.organization) {
                in_use.waiting = in_use.waiting.saturating_sub(1);
            }
            is_there
        });
        self.of.retain(|_, in_use| in_use.working + in_use.parked + in_use.waiting > 0);
        if self.working >= limits.all {
            return None;
        }
        let rank = |(at, waiting): (usize, &Waiting)| {
            let in_use = self.of.get(&waiting.organization)?;
            let fits = waiting.was_parked || in_use.working < limits.of_one;
            fits.then_some((!waiting.was_parked, in_use.working, in_use.last, at))
        };
        self.waiting.iter().enumerate().filter_map(rank).min().map(|(.., at)| at)
    }

    /// An organization that waits and could have a slot of this one. Another organization
    /// comes first.
    fn is_wanted(&self, organization: OrganizationId, limits: Limits) -> Option<OrganizationId> {
        let could = |waiting: &&Waiting| {
            let in_use = self.of.get(&waiting.organization);
            waiting.was_parked
                || waiting.organization == organization
                || in_use.is_some_and(|in_use| in_use.working < limits.of_one)
        };
        let mut waiting = self.waiting.iter().filter(|waiting| !waiting.answer.is_closed());
        let first = waiting.clone().find(could)?.organization;
        let other = waiting.find(|waiting| waiting.organization != organization && could(waiting));
        Some(other.map_or(first, |other| other.organization))
    }
}

impl Slot {
    /// Waits for an operation of the destination. If that takes long and other runs wait,
    /// one of them gets the slot in the meantime.
    pub(super) async fn during<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Silent> {
        let silence = self.slots.limits.silence;
        let begun = Instant::now();
        let mut work = std::pin::pin!(work);
        let mut wait = silence;
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = tokio::time::sleep(wait) => {}
            }
            match self.slots.park(self.organization) {
                None => {}
                Some(Ok(())) => break,
                Some(Err(silent)) if begun.elapsed() >= silence * PATIENCE => return Err(silent),
                Some(Err(_)) => {}
            }
            wait = silence.min(POLL_INTERVAL);
        }
        self.is_parked = true;
        let done = work.await;
        // The new slot replaces the present one, which is dropped as one that is aside.
        *self = self.slots.wait(self.organization, true).await;
        Ok(done)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        {
            let mut state = self.slots.state.lock();
            let in_use = state.of.entry(self.organization).or_default();
            match self.is_parked {
                true => in_use.parked = in_use.parked.saturating_sub(1),
                false => in_use.working = in_use.working.saturating_sub(1),
            }
            match self.is_parked {
                true => state.parked = state.parked.saturating_sub(1),
                false => state.working = state.working.saturating_sub(1),
            }
        }
        self.slots.give();
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use uuid::Uuid;

    use super::*;

    const SILENCE: Duration = Duration::from_millis(20);

    fn slots() -> Slots {
        let limits = Limits { all: 4, of_one: 2, parked: 2, parked_of_one: 1, silence: SILENCE };
        Slots::new(limits)
    }

    fn organization(number: u128) -> OrganizationId {
        OrganizationId(Uuid::from_u128(number))
    }

    /// A slot that is free now, or `None`.
    fn now(slots: &Slots, number: u128) -> Option<Slot> {
        let mut taking = std::pin::pin!(slots.take(organization(number)));
        match taking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(slot) => Some(slot),
            Poll::Pending => None,
        }
    }

    fn is_unused(slots: &Slots) -> bool {
        slots.give();
        let state = slots.state.lock();
        state.working + state.parked + state.of.len() + state.waiting.len() == 0
    }

    #[tokio::test]
    async fn an_organization_leaves_slots_for_others() {
        let slots = slots();
        let own: Vec<Slot> = (0..2).filter_map(|_| now(&slots, 1)).collect();
        assert_eq!(own.len(), 2);
        assert!(now(&slots, 1).is_none());
        let others = [now(&slots, 2).unwrap(), now(&slots, 3).unwrap()];
        assert!(now(&slots, 4).is_none(), "all are taken");
        drop((own, others));
        assert!(is_unused(&slots), "who went away while waiting leaves nothing");
    }

    #[tokio::test]
    async fn the_next_slot_goes_to_the_organization_with_the_fewest() {
        let slots = slots();
        let mut taken = [now(&slots, 1), now(&slots, 1), now(&slots, 2), now(&slots, 3)];
        // The first organization asked first, and again and again.
        let (sender, mut order) = tokio::sync::mpsc::unbounded_channel();
        let mut tasks = Vec::new();
        for (count, number) in [1, 1, 1, 4, 4, 5].into_iter().enumerate() {
            let (own, sender) = (slots.clone(), sender.clone());
            tasks.push(tokio::spawn(async move {
                let slot = own.take(organization(number)).await;
                sender.send((number, slot)).unwrap();
            }));
            while slots.state.lock().waiting.len() <= count {
                tokio::task::yield_now().await;
            }
        }
        let mut numbers = Vec::new();
        taken[0] = None;
        let mut held = Vec::new();
        for free in [1, 2, 3] {
            let (number, slot) = order.recv().await.unwrap();
            numbers.push(number);
            held.push(slot);
            taken[free] = None;
        }
        assert_eq!(numbers, [4, 5, 1]);
        drop((held, taken));
        for task in tasks {
            task.await.unwrap();
        }
        drop(order);
        assert!(is_unused(&slots));
    }

    #[tokio::test]
    async fn a_silent_run_is_parked_for_a_waiting_run() {
        let slots = slots();
        let mut silent = now(&slots, 1).unwrap();
        let _taken = [now(&slots, 2), now(&slots, 2), now(&slots, 3)].map(Option::unwrap);
        let (answer, answered) = oneshot::channel::<u8>();
        let waits = async {
            let slot = slots.take(organization(4)).await;
            assert_eq!(slots.state.lock().parked, 1);
            answer.send(7).unwrap();
            // Then it resumes.
            while slots.state.lock().waiting.is_empty() {
                tokio::task::yield_now().await;
            }
            drop(slot);
        };
        let (done, ()) = tokio::join!(silent.during(answered), waits);
        assert_eq!(done, Ok(Ok(7)));
        let state = slots.state.lock();
        assert_eq!((state.parked, state.working), (0, 4));
    }

    #[tokio::test]
    async fn a_silent_run_that_cannot_be_parked_ends_its_attempt_for_another_organization() {
        let slots = slots();
        let taken = [1, 1, 2, 2].map(|number| now(&slots, number).unwrap());
        let wait = |mut slot: Slot| {
            tokio::spawn(async move { slot.during(std::future::pending::<()>()).await })
        };
        let [a, b, c, d] = taken.map(wait);
        // One run of each organization is aside, and the other two slots are taken again.
        let own = [slots.take(organization(1)).await, slots.take(organization(2)).await];
        assert_eq!(slots.state.lock().parked, 2);
        let other = slots.take(organization(3)).await;
        let mut tasks = [a, b, c, d];
        while !tasks.iter().any(|task| task.is_finished()) {
            tokio::task::yield_now().await;
        }
        let ended = tasks.iter_mut().find(|task| task.is_finished()).unwrap();
        assert_eq!(ended.await.unwrap(), Err(Silent));
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        for task in &mut tasks {
            if !task.is_finished() {
                let _ = task.await;
            }
        }
        drop((own, other));
        assert!(is_unused(&slots));
    }

    #[tokio::test]
    async fn a_run_does_not_end_its_attempt_for_its_own_organization() {
        let slots = slots();
        let taken = [1, 1].map(|number| now(&slots, number).unwrap());
        let wait = |mut slot: Slot| {
            tokio::spawn(async move { slot.during(std::future::pending::<()>()).await })
        };
        let tasks = taken.map(wait);
        let parked = slots.take(organization(1)).await;
        assert!(now(&slots, 1).is_none());
        let waits = tokio::time::timeout(SILENCE * (PATIENCE + 3), slots.take(organization(1)));
        assert!(waits.await.is_err());
        assert!(tasks.iter().all(|task| !task.is_finished()));
        drop(parked);
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}
