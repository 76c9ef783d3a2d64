//! Limits on inspecting code: two at a time, and one per organization, so that an
//! organization with slow sources delays only itself.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedMutexGuard, Semaphore, SemaphorePermit};
use weir_model::OrganizationId;

use crate::WORKERS;

/// Child processes for interactive work: inspecting and trying code. Their lanes come
/// after those for background work.
pub(crate) const INSPECTORS: usize = 2;
/// Organizations that are remembered although none of their calls waits.
const IDLE: usize = 1_000;

/// The slots for inspecting code.
pub(crate) struct InspectionSlots {
    organizations: Mutex<HashMap<OrganizationId, Arc<tokio::sync::Mutex<()>>>>,
    /// Callers get a permit in the order of their calls.
    slots: Semaphore,
    free: Mutex<Vec<usize>>,
}

/// A slot, released when dropped.
pub(crate) struct InspectionSlot<'a> {
    /// The lane of the pool.
    pub(crate) lane: usize,
    inspections: &'a InspectionSlots,
    _slot: SemaphorePermit<'a>,
    _organization: OwnedMutexGuard<()>,
}

impl Default for InspectionSlots {
    fn default() -> Self {
        Self {
            organizations: Mutex::default(),
            slots: Semaphore::new(INSPECTORS),
            free: Mutex::new((WORKERS..WORKERS + INSPECTORS).collect()),
        }
    }
}

impl InspectionSlots {
    /// Waits for a slot. `None`: the service stops.
    pub(crate) async fn acquire(&self, organization: OrganizationId) -> Option<InspectionSlot<'_>> {
        let own = {
            let mut organizations = self.organizations.lock();
            if organizations.len() >= IDLE {
                organizations.retain(|_, own| Arc::strong_count(own) > 1);
            }
            Arc::clone(organizations.entry(organization).or_default())
        };
        let _organization = own.lock_owned().await;
        let _slot = self.slots.acquire().await.ok()?;
        let lane = self.free.lock().pop()?;
        Some(InspectionSlot { lane, inspections: self, _slot, _organization })
    }
}

impl Drop for InspectionSlot<'_> {
    fn drop(&mut self) {
        self.inspections.free.lock().push(self.lane);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use uuid::Uuid;

    use super::*;

    fn organization(number: u128) -> OrganizationId {
        OrganizationId(Uuid::from_u128(number))
    }

    #[tokio::test]
    async fn an_organization_waits_for_itself_alone() {
        let inspections = InspectionSlots::default();
        let first = inspections.acquire(organization(1)).await.unwrap();
        assert!(inspections.acquire(organization(1)).now_or_never().is_none(), "one after another");
        let other = inspections.acquire(organization(2)).now_or_never().unwrap().unwrap();
        assert_ne!(first.lane, other.lane);
        assert!(
            inspections.acquire(organization(3)).now_or_never().is_none(),
            "all places are taken"
        );
        drop(first);
        assert!(inspections.acquire(organization(3)).now_or_never().is_some());
        assert!(inspections.acquire(organization(1)).now_or_never().is_some());
    }

    #[tokio::test]
    async fn organizations_that_wait_for_nothing_are_forgotten() {
        let inspections = InspectionSlots::default();
        for number in 0..3 * IDLE as u128 {
            drop(inspections.acquire(organization(number)).await);
        }
        assert!(inspections.organizations.lock().len() <= IDLE);
    }
}
