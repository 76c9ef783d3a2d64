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
pub(crate) const LOOKERS: usize = 2;
/// Organizations that are remembered although none of their calls waits.
const IDLE: usize = 1_000;

/// The slots for inspecting code.
pub(crate) struct Looking {
    organizations: Mutex<HashMap<OrganizationId, Arc<tokio::sync::Mutex<()>>>>,
    /// Callers get a permit in the order of their calls.
    places: Semaphore,
    free: Mutex<Vec<usize>>,
}

/// A slot, released when dropped.
pub(crate) struct Look<'a> {
    /// The lane of the pool.
    pub(crate) lane: usize,
    looking: &'a Looking,
    _place: SemaphorePermit<'a>,
    _organization: OwnedMutexGuard<()>,
}

impl Default for Looking {
    fn default() -> Self {
        Self {
            organizations: Mutex::default(),
            places: Semaphore::new(LOOKERS),
            free: Mutex::new((WORKERS..WORKERS + LOOKERS).collect()),
        }
    }
}

impl Looking {
    /// Waits for a slot. `None`: the service stops.
    pub(crate) async fn look(&self, organization: OrganizationId) -> Option<Look<'_>> {
        let own = {
            let mut organizations = self.organizations.lock();
            if organizations.len() >= IDLE {
                organizations.retain(|_, own| Arc::strong_count(own) > 1);
            }
            Arc::clone(organizations.entry(organization).or_default())
        };
        let _organization = own.lock_owned().await;
        let _place = self.places.acquire().await.ok()?;
        let lane = self.free.lock().pop()?;
        Some(Look { lane, looking: self, _place, _organization })
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        self.looking.free.lock().push(self.lane);
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
        let looking = Looking::default();
        let first = looking.look(organization(1)).await.unwrap();
        assert!(looking.look(organization(1)).now_or_never().is_none(), "one after another");
        let other = looking.look(organization(2)).now_or_never().unwrap().unwrap();
        assert_ne!(first.lane, other.lane);
        assert!(looking.look(organization(3)).now_or_never().is_none(), "all places are taken");
        drop(first);
        assert!(looking.look(organization(3)).now_or_never().is_some());
        assert!(looking.look(organization(1)).now_or_never().is_some());
    }

    #[tokio::test]
    async fn organizations_that_wait_for_nothing_are_forgotten() {
        let looking = Looking::default();
        for number in 0..3 * IDLE as u128 {
            drop(looking.look(organization(number)).await);
        }
        assert!(looking.organizations.lock().len() <= IDLE);
    }
}
