//! Limits on inspecting code: two inspections at a time, and one per user and
//! organization. A user with slow sources delays only that user.
//!
//! Users get slots in the order of their queue, one call each. The number of their calls and
//! organizations does not matter. Work of the service itself, such as compiling at a start,
//! gets at most every second slot while users wait. Its organizations have a queue too.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use weir_model::{OrganizationId, UserId};
use weir_service::plugins::code::Busy;

use crate::WORKERS;

/// Child processes for interactive work: inspecting and trying code. Their lanes come
/// after those for background work.
pub(crate) const INSPECTORS: usize = 2;
/// Calls of a user that may wait at the same time.
const MOST_WAITING: usize = 8;

/// The slots for inspecting code.
pub(crate) struct InspectionSlots(Arc<Mutex<State>>);

/// A slot, released when dropped.
#[derive(Debug)]
pub(crate) struct InspectionSlot {
    /// The lane of the pool.
    pub(crate) lane: usize,
    claimant: Claimant,
    organization: OrganizationId,
    state: Arc<Mutex<State>>,
}

/// Who gets a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Claimant {
    User(UserId),
    /// The service works for an organization.
    Service(OrganizationId),
}

#[derive(Debug)]
struct Waiter {
    organization: OrganizationId,
    slot: oneshot::Sender<InspectionSlot>,
}

#[derive(Debug)]
struct State {
    /// Free lanes.
    free: Vec<usize>,
    /// Who has a slot.
    inspecting: HashSet<Claimant>,
    /// The organizations whose code is inspected.
    inspected: HashSet<OrganizationId>,
    /// Who waits, the next one first.
    queue: VecDeque<Claimant>,
    waiting: HashMap<Claimant, VecDeque<Waiter>>,
    /// Whether the last slot went to the service.
    was_service: bool,
}

impl Default for InspectionSlots {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State {
            free: (WORKERS..WORKERS + INSPECTORS).collect(),
            inspecting: HashSet::new(),
            inspected: HashSet::new(),
            queue: VecDeque::new(),
            waiting: HashMap::new(),
            was_service: false,
        })))
    }
}

impl InspectionSlots {
    /// Waits for a slot for a user.
    ///
    /// # Errors
    /// [`Busy`] without waiting, if many calls of this user wait already.
    pub(crate) async fn acquire(
        &self,
        user: UserId,
        organization: OrganizationId,
    ) -> Result<InspectionSlot, Busy> {
        self.wait(Claimant::User(user), organization, MOST_WAITING).await
    }

    /// Waits for a slot for the service itself. `None`: the service stops.
    pub(crate) async fn acquire_for_service(
        &self,
        organization: OrganizationId,
    ) -> Option<InspectionSlot> {
        self.wait(Claimant::Service(organization), organization, usize::MAX).await.ok()
    }

    async fn wait(
        &self,
        claimant: Claimant,
        organization: OrganizationId,
        most: usize,
    ) -> Result<InspectionSlot, Busy> {
        let (slot, receiver) = oneshot::channel();
        {
            let mut state = self.0.lock();
            let waiting = state.waiting.entry(claimant).or_default();
            // Calls that were cancelled wait no more.
            waiting.retain(|waiter| !waiter.slot.is_closed());
            if waiting.len() >= most {
                return Err(Busy);
            }
            waiting.push_back(Waiter { organization, slot });
            if !state.queue.contains(&claimant) {
                state.queue.push_back(claimant);
            }
        }
        hand_out(&self.0);
        receiver.await.map_err(|_| Busy)
    }
}

/// Gives free slots to the next callers.
fn hand_out(state: &Arc<Mutex<State>>) {
    loop {
        let Some((waiter, claimant, lane)) = state.lock().next() else { return };
        let organization = waiter.organization;
        let slot = InspectionSlot { lane, claimant, organization, state: Arc::clone(state) };
        // A call that was cancelled at this moment returns the slot, which hands it out.
        drop(waiter.slot.send(slot));
    }
}

impl State {
    /// Takes a lane for the next call.
    fn next(&mut self) -> Option<(Waiter, Claimant, usize)> {
        if self.free.is_empty() {
            return None;
        }
        let kinds = [!self.was_service, self.was_service];
        let (index, at) = kinds.into_iter().find_map(|service| self.ready(service))?;
        let claimant = self.queue.remove(index)?;
        let waiting = self.waiting.get_mut(&claimant)?;
        let waiter = waiting.remove(at)?;
        if waiting.is_empty() {
            self.waiting.remove(&claimant);
        } else {
            self.queue.push_back(claimant);
        }
        self.inspecting.insert(claimant);
        self.inspected.insert(waiter.organization);
        self.was_service = matches!(claimant, Claimant::Service(_));
        Some((waiter, claimant, self.free.pop()?))
    }

    /// The first of the queue that may begin, users or the service, and which of its calls.
    fn ready(&mut self, service: bool) -> Option<(usize, usize)> {
        let Self { inspecting, inspected, queue, waiting, .. } = self;
        queue.retain(|claimant| {
            let Some(calls) = waiting.get_mut(claimant) else { return false };
            calls.retain(|waiter| !waiter.slot.is_closed());
            let waits = !calls.is_empty();
            if !waits {
                waiting.remove(claimant);
            }
            waits
        });
        queue.iter().enumerate().find_map(|(index, claimant)| {
            let is_service = matches!(claimant, Claimant::Service(_));
            if is_service != service || inspecting.contains(claimant) {
                return None;
            }
            let calls = waiting.get(claimant)?;
            let at = calls.iter().position(|waiter| !inspected.contains(&waiter.organization))?;
            Some((index, at))
        })
    }
}

impl Drop for InspectionSlot {
    fn drop(&mut self) {
        {
            let mut state = self.state.lock();
            state.free.push(self.lane);
            state.inspecting.remove(&self.claimant);
            state.inspected.remove(&self.organization);
        }
        hand_out(&self.state);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use futures::FutureExt as _;
    use futures::future::Fuse;
    use uuid::Uuid;

    use super::*;

    fn user(number: u128) -> UserId {
        UserId(Uuid::from_u128(number))
    }

    fn organization(number: u128) -> OrganizationId {
        OrganizationId(Uuid::from_u128(number))
    }

    type Pending<'a> = Pin<Box<dyn Future<Output = Result<InspectionSlot, Busy>> + 'a>>;
    type Call<'a> = Fuse<Pending<'a>>;

    /// A call that has begun to wait.
    fn waits(slots: &InspectionSlots, by: u128, of: u128) -> Call<'_> {
        let call: Pending<'_> = Box::pin(slots.acquire(user(by), organization(of)));
        let mut call = call.fuse();
        assert!((&mut call).now_or_never().is_none(), "{by} waits");
        call
    }

    fn gets(slots: &InspectionSlots, by: u128, of: u128) -> InspectionSlot {
        slots.acquire(user(by), organization(of)).now_or_never().expect("a free slot").unwrap()
    }

    fn has(call: &mut Call<'_>) -> Option<InspectionSlot> {
        call.now_or_never().map(Result::unwrap)
    }

    #[tokio::test]
    async fn an_organization_waits_for_itself_alone() {
        let slots = InspectionSlots::default();
        let first = gets(&slots, 1, 1);
        let mut second = waits(&slots, 2, 1);
        let other = gets(&slots, 3, 2);
        assert_ne!(first.lane, other.lane);
        let mut third = waits(&slots, 4, 3);
        drop(other);
        assert!(has(&mut second).is_none(), "one after another");
        let third = has(&mut third).unwrap();
        drop(first);
        assert!(has(&mut second).is_some());
        drop(third);
    }

    #[tokio::test]
    async fn a_user_with_many_organizations_waits_for_themselves_alone() {
        let slots = InspectionSlots::default();
        let held = gets(&slots, 1, 1);
        let mut more: Vec<_> = (2..=9).map(|of| waits(&slots, 1, of)).collect();
        // The other slot stays free for others, and there are no more calls in the queue.
        for _ in 0..3 {
            drop(gets(&slots, 2, 100));
        }
        let refused = slots.acquire(user(1), organization(10)).now_or_never();
        assert_eq!(refused.unwrap().unwrap_err(), Busy);
        drop(held);
        let next = more.iter_mut().filter_map(has).collect::<Vec<_>>();
        assert_eq!(next.len(), 1);
        // A call that was cancelled counts no more.
        more.pop();
        let _new = [waits(&slots, 1, 10), waits(&slots, 1, 11)];
        let refused = slots.acquire(user(1), organization(12)).now_or_never();
        assert_eq!(refused.unwrap().unwrap_err(), Busy);
    }

    #[tokio::test]
    async fn users_get_slots_in_order() {
        let slots = InspectionSlots::default();
        let held = [gets(&slots, 1, 1), gets(&slots, 2, 2)];
        let mut hostile: Vec<_> = (10..15).map(|of| waits(&slots, 3, of)).collect();
        let mut good = waits(&slots, 4, 20);
        drop(held);
        assert!(has(&mut good).is_some(), "five earlier calls are of one user");
        // Held until all were asked.
        let next: Vec<_> = hostile.iter_mut().filter_map(has).collect();
        assert_eq!(next.len(), 1);
    }

    #[tokio::test]
    async fn the_service_gets_every_second_slot() {
        let slots = InspectionSlots::default();
        let of_service = |of: u128| {
            let mut call = Box::pin(slots.acquire_for_service(organization(of))).fuse();
            let slot = (&mut call).now_or_never().flatten();
            (call, slot)
        };
        let mut began: Vec<_> = (1..=100).map(of_service).collect();
        let mut held: VecDeque<_> = began.iter_mut().filter_map(|(_, slot)| slot.take()).collect();
        assert_eq!(held.len(), INSPECTORS, "it may use both while no other call waits");
        let mut users: Vec<_> = (1..=3).map(|by| waits(&slots, by, 1_000 + by)).collect();
        let mut order = Vec::new();
        for _ in 0..6 {
            drop(held.pop_front());
            if let Some(slot) = users.iter_mut().find_map(has) {
                order.push("user");
                held.push_back(slot);
            }
            let next = began.iter_mut().find_map(|(call, _)| call.now_or_never().flatten());
            if let Some(slot) = next {
                order.push("service");
                held.push_back(slot);
            }
        }
        assert_eq!(order, ["user", "service", "user", "service", "user", "service"]);
    }

    #[tokio::test]
    async fn calls_that_are_cancelled_leave_nothing() {
        let slots = InspectionSlots::default();
        let held = [gets(&slots, 1, 1), gets(&slots, 2, 2)];
        let unheard = waits(&slots, 3, 3);
        drop(waits(&slots, 4, 4));
        drop(held);
        // This one has got its slot, and never looked.
        drop(unheard);
        let _both = [gets(&slots, 3, 3), gets(&slots, 4, 4)];
        let state = slots.0.lock();
        assert!(state.queue.is_empty() && state.waiting.is_empty() && state.free.is_empty());
    }
}
