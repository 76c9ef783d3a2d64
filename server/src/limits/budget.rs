//! Budgets of bytes for request bodies.
//!
//! What belongs here: taking and releasing bytes, in total and by client network. What
//! does not: reading bodies (`http::body`), and the numbers (`limits`).

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::parts::{Exhausted, NetworkPart, NetworkParts};
use super::{ByteLimits, KIB};

/// A budget of bytes for bodies. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Budget {
    common: Pool,
    reserve: Pool,
    small_body: usize,
}

impl Budget {
    /// A budget with these limits and no bytes taken.
    pub fn new(limits: &ByteLimits) -> Self {
        Self {
            common: Pool::new(limits.total, limits.per_network, 16 * KIB),
            reserve: Pool::new(limits.reserve, limits.reserve_per_network(), 4 * KIB),
            small_body: limits.small_body,
        }
    }

    /// Begins with a body from these networks. `announced` is its length, if the request
    /// contains it. No bytes are taken yet.
    pub fn room(&self, networks: [IpAddr; 3], announced: Option<usize>) -> BodyRoom {
        let is_small = announced.is_some_and(|bytes| bytes <= self.small_body);
        BodyRoom {
            taken: self.common.take(networks),
            reserve: is_small.then(|| self.reserve.take(networks)),
        }
    }

    /// Takes bytes for data that is made of a body after it arrived. Few bytes may come
    /// from the reserve.
    ///
    /// # Errors
    /// [`Exhausted`] if the budget is used up.
    pub fn hold(&self, bytes: usize) -> Result<HeldBytes, Exhausted> {
        let mut held = HeldBytes::none(Arc::clone(&self.common.bytes));
        if held.grow_to(bytes).is_err() {
            if bytes > self.small_body {
                return Err(Exhausted);
            }
            held = HeldBytes::none(Arc::clone(&self.reserve.bytes));
            held.grow_to(bytes)?;
        }
        Ok(held)
    }

    /// Bytes that are free, without the reserve.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.common.bytes.available_permits()
    }
}

/// Bytes for bodies, and the bytes that each network holds with bodies that it is still
/// sending. Without the second count, a client that sends slowly could hold all of them.
#[derive(Debug, Clone)]
struct Pool {
    bytes: Arc<Semaphore>,
    sending: NetworkParts,
    /// Bytes are taken in steps of this size.
    step: usize,
}

impl Pool {
    fn new(bytes: usize, per_network: [usize; 3], step: usize) -> Self {
        Self {
            bytes: Arc::new(Semaphore::new(bytes)),
            sending: NetworkParts::new(per_network),
            step,
        }
    }

    fn take(&self, networks: [IpAddr; 3]) -> TakenBytes {
        TakenBytes {
            held: HeldBytes::none(Arc::clone(&self.bytes)),
            sending: self.sending.of(networks),
            step: self.step,
        }
    }
}

/// Bytes taken from a pool.
#[derive(Debug)]
struct TakenBytes {
    held: HeldBytes,
    sending: NetworkPart,
    step: usize,
}

impl TakenBytes {
    fn grow_to(&mut self, bytes: usize) -> Result<(), Exhausted> {
        let bytes = bytes.next_multiple_of(self.step);
        self.sending.grow_to(bytes)?;
        self.held.grow_to(bytes)
    }
}

/// The bytes of a [`Budget`] that a body holds while it arrives.
#[derive(Debug)]
pub struct BodyRoom {
    taken: TakenBytes,
    /// The reserve, used when the common bytes are used up.
    reserve: Option<TakenBytes>,
}

impl BodyRoom {
    /// Takes more bytes until `bytes` are held.
    ///
    /// # Errors
    /// [`Exhausted`] if the budget or the network's part is used up.
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), Exhausted> {
        if self.taken.grow_to(bytes).is_ok() {
            return Ok(());
        }
        self.taken = self.reserve.take().ok_or(Exhausted)?;
        self.taken.grow_to(bytes)
    }

    /// The body is complete: its bytes no longer count against its network.
    pub fn arrived(self) -> HeldBytes {
        self.taken.held
    }
}

/// Bytes taken from a budget, released when dropped.
#[derive(Debug)]
pub struct HeldBytes {
    budget: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
    held: usize,
}

impl HeldBytes {
    /// No bytes yet.
    pub fn none(budget: Arc<Semaphore>) -> Self {
        Self { budget, permit: None, held: 0 }
    }

    /// Takes more bytes until `bytes` are held. It never waits, because a waiting body
    /// would keep the bytes that it holds already.
    ///
    /// # Errors
    /// [`Exhausted`] if the budget is used up.
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), Exhausted> {
        let Some(missing) = bytes.checked_sub(self.held).filter(|missing| *missing > 0) else {
            return Ok(());
        };
        let count = u32::try_from(missing).map_err(|_| Exhausted)?;
        let more = Arc::clone(&self.budget).try_acquire_many_owned(count).map_err(|_| Exhausted)?;
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
        self.held = bytes;
        Ok(())
    }

    /// Releases the bytes beyond `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        let more = self.held.saturating_sub(bytes);
        if let Some(permit) = &mut self.permit {
            drop(permit.split(more));
            self.held -= more;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::{BodyRoom, Budget, Exhausted, HeldBytes};
    use crate::http::peer::networks_of;
    use crate::limits::{ByteLimits, Limits};

    #[test]
    fn bytes_come_back() {
        let budget = Arc::new(Semaphore::new(100));
        let mut first = HeldBytes::none(Arc::clone(&budget));
        assert_eq!(first.grow_to(60), Ok(()));
        assert_eq!(first.grow_to(50), Ok(()));
        let mut second = HeldBytes::none(Arc::clone(&budget));
        assert_eq!(second.grow_to(41), Err(Exhausted));
        assert_eq!(second.grow_to(40), Ok(()));
        drop(first);
        assert_eq!(second.grow_to(100), Ok(()));
        second.shrink_to(30);
        second.shrink_to(50);
        assert_eq!(budget.available_permits(), 70);
        assert_eq!(second.grow_to(100), Ok(()));
        drop(second);
        assert_eq!(budget.available_permits(), 100);
    }

    #[test]
    fn data_of_bodies_takes_the_reserve_only_if_it_is_small() {
        let limits = ByteLimits { total: 100, per_network: [100; 3], reserve: 50, small_body: 20 };
        let budget = Budget::new(&limits);
        let first = budget.hold(90).unwrap();
        assert_eq!(budget.hold(21).unwrap_err(), Exhausted);
        let small = [budget.hold(20).unwrap(), budget.hold(20).unwrap()];
        assert_eq!(budget.hold(20).unwrap_err(), Exhausted);
        drop(first);
        assert!(budget.hold(100).is_ok());
        drop(small);
        assert_eq!(budget.free(), 100);
    }

    /// Takes bytes for bodies of this size from these clients, as far as they get any.
    /// Returns the number of bodies that did.
    fn flood(
        budget: &Budget,
        clients: impl Iterator<Item = String>,
        size: usize,
        announced: Option<usize>,
        held: &mut Vec<BodyRoom>,
    ) -> usize {
        let before = held.len();
        for client in clients {
            let networks = networks_of(client.parse::<IpAddr>().unwrap());
            loop {
                let mut room = budget.room(networks, announced);
                if room.grow_to(size).is_err() {
                    break;
                }
                held.push(room);
            }
        }
        held.len() - before
    }

    #[test]
    fn the_networks_of_one_provider_leave_room_for_others() {
        let limits = Limits::default();
        for bytes in [limits.capture_bytes, limits.management_bytes, limits.early_bytes] {
            let (budget, mut held) = (Budget::new(&bytes), Vec::new());
            let body = 64 << 10;
            // All networks of a /56 and of a /48, then other /48 of the same provider.
            let site = (0..256).map(|subnet| format!("2001:db8:1:{subnet:x}::1"));
            let found = flood(&budget, site, body, None, &mut held);
            assert_eq!(found * body, bytes.per_network[1], "of one site");
            let sites = (0..256).map(|site| format!("2001:db8:{site:x}::1"));
            flood(&budget, sites, body, None, &mut held);
            assert_eq!(held.len() * body, bytes.per_network[2], "of one provider");
            // The same attack from IPv4 addresses.
            let before = held.len();
            let hosts = (0..256).map(|host| format!("198.51.100.{host}"));
            let found = flood(&budget, hosts, body, None, &mut held);
            assert_eq!(found * body, bytes.per_network[1].min(bytes.total - before * body));
            let other = networks_of("2001:db9::1".parse().unwrap());
            assert!(budget.room(other, None).grow_to(body).is_ok());
        }
    }

    #[test]
    fn small_bodies_find_room_while_large_ones_hold_everything() {
        let limits = Limits::default();
        for bytes in [limits.capture_bytes, limits.management_bytes, limits.early_bytes] {
            let (budget, mut held) = (Budget::new(&bytes), Vec::new());
            let large = 16 << 10;
            let many = (0..256).map(|net| format!("{}.0.0.1", net % 90 + 100));
            flood(&budget, many, large, None, &mut held);
            assert_eq!(budget.free(), 0);
            let owner = networks_of("2001:db8::1".parse().unwrap());
            for (announced, finds) in
                [(None, false), (Some(bytes.small_body + 1), false), (Some(100), true)]
            {
                let room = budget.room(owner, announced).grow_to(100);
                assert_eq!(room.is_ok(), finds, "{announced:?}");
            }
            // A sender of slow small bodies is limited to a part of the reserve too.
            let flooded = flood(
                &budget,
                (0..256).map(|net| format!("2001:db9:{net:x}::1")),
                4 << 10,
                Some(100),
                &mut held,
            );
            assert_eq!(flooded * (4 << 10), bytes.reserve_per_network()[2]);
            assert!(budget.room(owner, Some(100)).grow_to(100).is_ok());
        }
    }
}
