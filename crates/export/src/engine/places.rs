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
const LOOK: Duration = Duration::from_secs(1);

/// The number of slots.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Slots of all organizations.
    pub(super) all: usize,
    /// Slots of one organization.
    pub(super) of_one: usize,
    /// Runs of all organizations that may be aside.
    pub(super) aside: usize,
    /// Runs of one organization that may be aside.
    pub(super) aside_of_one: usize,
    /// Silence of a destination after which its run is set aside.
    pub(super) silence: Duration,
}

/// All slots. Clones refer to the same slots.
#[derive(Clone)]
pub(super) struct Places {
    limits: Limits,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    working: usize,
    aside: usize,
    /// Number of slots that were assigned so far.
    given: u64,
    of: HashMap<OrganizationId, Share>,
    waiting: VecDeque<Waiting>,
}

/// The slots of an organization. The entry exists while it has a slot or waits for one.
#[derive(Default)]
struct Share {
    working: usize,
    aside: usize,
    waiting: usize,
    /// The number of its last assignment.
    last: u64,
}

struct Waiting {
    organization: OrganizationId,
    /// The run was set aside: its memory counts until it resumes.
    was_aside: bool,
    answer: oneshot::Sender<Place>,
}

/// A slot, which is released when dropped.
pub(super) struct Place {
    places: Places,
    organization: OrganizationId,
    is_aside: bool,
}

/// The destination was silent for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Silent;

impl Places {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, state: Arc::default() }
    }

    /// Waits for a slot.
    pub(super) async fn take(&self, organization: OrganizationId) -> Place {
        self.wait(organization, false).await
    }

    async fn wait(&self, organization: OrganizationId, was_aside: bool) -> Place {
        let (answer, given) = oneshot::channel();
        {
            let mut state = self.state.lock();
            state.of.entry(organization).or_default().waiting += 1;
            state.waiting.push_back(Waiting { organization, was_aside, answer });
        }
        self.give();
        match given.await {
            Ok(place) => place,
            // A waiting run stays in the queue until it is answered.
            Err(_) => std::future::pending().await,
        }
    }

    /// Assigns free slots to waiting runs.
    fn give(&self) {
        loop {
            let (waiting, place) = {
                let mut state = self.state.lock();
                let Some(at) = state.next(self.limits) else { return };
                let Some(waiting) = state.waiting.remove(at) else { return };
                state.working += 1;
                state.given += 1;
                let given = state.given;
                let share = state.of.entry(waiting.organization).or_default();
                share.waiting = share.waiting.saturating_sub(1);
                share.working += 1;
                share.last = given;
                let place = Place {
                    places: self.clone(),
                    organization: waiting.organization,
                    is_aside: false,
                };
                (waiting, place)
            };
            // If the waiting run was interrupted in the meantime, `send` returns the
            // slot, and dropping it releases it.
            drop(waiting.answer.send(place));
        }
    }

    /// Takes the slot of a silent run if another waiting run could have it. `None` if
    /// there is no such run.
    fn set_aside(&self, organization: OrganizationId) -> Option<Result<(), Silent>> {
        let is_wanted = {
            let mut state = self.state.lock();
            let other = state.is_wanted(organization, self.limits)?;
            let own = state.of.get(&organization).map_or(0, |share| share.aside);
            if state.aside >= self.limits.aside || own >= self.limits.aside_of_one {
                return (other != organization).then_some(Err(Silent));
            }
            state.working -= 1;
            state.aside += 1;
            let share = state.of.entry(organization).or_default();
            share.working -= 1;
            share.aside += 1;
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
            if !is_there && let Some(share) = self.of.get_mut(&waiting.organization) {
                share.waiting = share.waiting.saturating_sub(1);
            }
            is_there
        });
        self.of.retain(|_, share| share.working + share.aside + share.waiting > 0);
        if self.working >= limits.all {
            return None;
        }
        let rank = |(at, waiting): (usize, &Waiting)| {
            let share = self.of.get(&waiting.organization)?;
            let fits = waiting.was_aside || share.working < limits.of_one;
            fits.then_some((!waiting.was_aside, share.working, share.last, at))
        };
        self.waiting.iter().enumerate().filter_map(rank).min().map(|(.., at)| at)
    }

    /// An organization that waits and could have a slot of this one. Another organization
    /// comes first.
    fn is_wanted(&self, organization: OrganizationId, limits: Limits) -> Option<OrganizationId> {
        let could = |waiting: &&Waiting| {
            let share = self.of.get(&waiting.organization);
            waiting.was_aside
                || waiting.organization == organization
                || share.is_some_and(|share| share.working < limits.of_one)
        };
        let mut waiting = self.waiting.iter().filter(|waiting| !waiting.answer.is_closed());
        let first = waiting.clone().find(could)?.organization;
        let other = waiting.find(|waiting| waiting.organization != organization && could(waiting));
        Some(other.map_or(first, |other| other.organization))
    }
}

impl Place {
    /// Waits for an operation of the destination. If that takes long and other runs wait,
    /// one of them gets the slot in the meantime.
    pub(super) async fn during<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Silent> {
        let silence = self.places.limits.silence;
        let begun = Instant::now();
        let mut work = std::pin::pin!(work);
        let mut wait = silence;
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = tokio::time::sleep(wait) => {}
            }
            match self.places.set_aside(self.organization) {
                None => {}
                Some(Ok(())) => break,
                Some(Err(silent)) if begun.elapsed() >= silence * PATIENCE => return Err(silent),
                Some(Err(_)) => {}
            }
            wait = silence.min(LOOK);
        }
        self.is_aside = true;
        let done = work.await;
        // The new slot replaces the present one, which is dropped as one that is aside.
        *self = self.places.wait(self.organization, true).await;
        Ok(done)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        {
            let mut state = self.places.state.lock();
            let share = state.of.entry(self.organization).or_default();
            match self.is_aside {
                true => share.aside = share.aside.saturating_sub(1),
                false => share.working = share.working.saturating_sub(1),
            }
            match self.is_aside {
                true => state.aside = state.aside.saturating_sub(1),
                false => state.working = state.working.saturating_sub(1),
            }
        }
        self.places.give();
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use uuid::Uuid;

    use super::*;

    const SILENCE: Duration = Duration::from_millis(20);

    fn places() -> Places {
        let limits = Limits { all: 4, of_one: 2, aside: 2, aside_of_one: 1, silence: SILENCE };
        Places::new(limits)
    }

    fn organization(number: u128) -> OrganizationId {
        OrganizationId(Uuid::from_u128(number))
    }

    /// A slot that is free now, or `None`.
    fn now(places: &Places, number: u128) -> Option<Place> {
        let mut taking = std::pin::pin!(places.take(organization(number)));
        match taking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(place) => Some(place),
            Poll::Pending => None,
        }
    }

    fn is_unused(places: &Places) -> bool {
        places.give();
        let state = places.state.lock();
        state.working + state.aside + state.of.len() + state.waiting.len() == 0
    }

    #[tokio::test]
    async fn an_organization_leaves_places_for_others() {
        let places = places();
        let own: Vec<Place> = (0..2).filter_map(|_| now(&places, 1)).collect();
        assert_eq!(own.len(), 2);
        assert!(now(&places, 1).is_none());
        let others = [now(&places, 2).unwrap(), now(&places, 3).unwrap()];
        assert!(now(&places, 4).is_none(), "all are taken");
        drop((own, others));
        assert!(is_unused(&places), "who went away while waiting leaves nothing");
    }

    #[tokio::test]
    async fn the_next_place_goes_to_whoever_has_the_fewest() {
        let places = places();
        let mut taken = [now(&places, 1), now(&places, 1), now(&places, 2), now(&places, 3)];
        // The first organization asked first, and again and again.
        let (sender, mut order) = tokio::sync::mpsc::unbounded_channel();
        let mut tasks = Vec::new();
        for (count, number) in [1, 1, 1, 4, 4, 5].into_iter().enumerate() {
            let (own, sender) = (places.clone(), sender.clone());
            tasks.push(tokio::spawn(async move {
                let place = own.take(organization(number)).await;
                sender.send((number, place)).unwrap();
            }));
            while places.state.lock().waiting.len() <= count {
                tokio::task::yield_now().await;
            }
        }
        let mut numbers = Vec::new();
        taken[0] = None;
        let mut held = Vec::new();
        for free in [1, 2, 3] {
            let (number, place) = order.recv().await.unwrap();
            numbers.push(number);
            held.push(place);
            taken[free] = None;
        }
        assert_eq!(numbers, [4, 5, 1]);
        drop((held, taken));
        for task in tasks {
            task.await.unwrap();
        }
        drop(order);
        assert!(is_unused(&places));
    }

    #[tokio::test]
    async fn a_silent_run_is_set_aside_for_one_that_waits() {
        let places = places();
        let mut silent = now(&places, 1).unwrap();
        let _taken = [now(&places, 2), now(&places, 2), now(&places, 3)].map(Option::unwrap);
        let (answer, answered) = oneshot::channel::<u8>();
        let waits = async {
            let place = places.take(organization(4)).await;
            assert_eq!(places.state.lock().aside, 1);
            answer.send(7).unwrap();
            // Then it resumes.
            while places.state.lock().waiting.is_empty() {
                tokio::task::yield_now().await;
            }
            drop(place);
        };
        let (done, ()) = tokio::join!(silent.during(answered), waits);
        assert_eq!(done, Ok(Ok(7)));
        let state = places.state.lock();
        assert_eq!((state.aside, state.working), (0, 4));
    }

    #[tokio::test]
    async fn a_silent_run_that_cannot_be_aside_gives_up_for_another_organization() {
        let places = places();
        let taken = [1, 1, 2, 2].map(|number| now(&places, number).unwrap());
        let wait = |mut place: Place| {
            tokio::spawn(async move { place.during(std::future::pending::<()>()).await })
        };
        let [a, b, c, d] = taken.map(wait);
        // One run of each organization is aside, and the other two slots are taken again.
        let own = [places.take(organization(1)).await, places.take(organization(2)).await];
        assert_eq!(places.state.lock().aside, 2);
        let other = places.take(organization(3)).await;
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
        assert!(is_unused(&places));
    }

    #[tokio::test]
    async fn nobody_gives_up_for_runs_of_its_own_organization() {
        let places = places();
        let taken = [1, 1].map(|number| now(&places, number).unwrap());
        let wait = |mut place: Place| {
            tokio::spawn(async move { place.during(std::future::pending::<()>()).await })
        };
        let tasks = taken.map(wait);
        let aside = places.take(organization(1)).await;
        assert!(now(&places, 1).is_none());
        let waits = tokio::time::timeout(SILENCE * (PATIENCE + 3), places.take(organization(1)));
        assert!(waits.await.is_err());
        assert!(tasks.iter().all(|task| !task.is_finished()));
        drop(aside);
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}
