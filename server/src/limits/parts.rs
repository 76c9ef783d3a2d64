//! Limits per holder: bytes and connections by client network, permits by user.
//!
//! What belongs here: that no holder has more than its part. What does not: the size of a
//! part (`limits`).

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use weir_model::UserId;

/// The budget or the holder's part is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted;

/// Amounts per holder, none larger than `most`. Cheap to clone. Holders without an amount
/// take no memory.
#[derive(Debug, Clone)]
pub struct Parts<K> {
    most: usize,
    // Locked for single map operations only.
    held: Arc<Mutex<HashMap<K, usize>>>,
}

/// The amount of one holder, released when dropped.
#[derive(Debug)]
pub struct Part<K: Eq + Hash> {
    of: Parts<K>,
    holder: K,
    held: usize,
}

impl<K: Eq + Hash + Clone> Parts<K> {
    /// No holder has anything yet.
    pub fn new(most: usize) -> Self {
        Self { most, held: Arc::default() }
    }

    /// Begins with a holder, with nothing taken yet.
    pub fn of(&self, holder: K) -> Part<K> {
        Part { of: self.clone(), holder, held: 0 }
    }
}

impl<K: Eq + Hash + Clone> Part<K> {
    /// Takes more until `wanted` is held.
    ///
    /// # Errors
    /// [`Exhausted`] if the holder's part is used up.
    pub fn grow_to(&mut self, wanted: usize) -> Result<(), Exhausted> {
        let missing = wanted.saturating_sub(self.held);
        let mut held = self.of.held.lock();
        let all = held.get(&self.holder).copied().unwrap_or(0) + missing;
        if all > self.of.most {
            return Err(Exhausted);
        }
        if missing > 0 {
            held.insert(self.holder.clone(), all);
            self.held += missing;
        }
        Ok(())
    }
}

impl<K: Eq + Hash> Drop for Part<K> {
    fn drop(&mut self) {
        let mut held = self.of.held.lock();
        if let Some(all) = held.get_mut(&self.holder) {
            *all -= self.held;
            if *all == 0 {
                held.remove(&self.holder);
            }
        }
    }
}

/// Amounts per client network: each of a client's three networks has a part.
#[derive(Debug, Clone)]
pub struct NetworkParts([Parts<IpAddr>; 3]);

/// The amount of one client, released when dropped.
#[derive(Debug)]
pub struct NetworkPart([Part<IpAddr>; 3]);

impl NetworkParts {
    /// No network has anything yet.
    pub fn new(most: [usize; 3]) -> Self {
        Self(most.map(Parts::new))
    }

    /// Begins with a client in these networks, with nothing taken yet.
    pub fn of(&self, networks: [IpAddr; 3]) -> NetworkPart {
        let [near, site, provider] = networks;
        let Self([of_near, of_site, of_provider]) = self;
        NetworkPart([of_near.of(near), of_site.of(site), of_provider.of(provider)])
    }
}

impl NetworkPart {
    /// Takes more until `wanted` is held.
    ///
    /// # Errors
    /// [`Exhausted`] if the part of one of the networks is used up.
    pub fn grow_to(&mut self, wanted: usize) -> Result<(), Exhausted> {
        self.0.iter_mut().try_for_each(|part| part.grow_to(wanted))
    }
}

/// Permits for answers that take long, of which one user gets only a few. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StreamPermits {
    all: Arc<Semaphore>,
    people: Parts<UserId>,
}

/// A permit for such an answer, released when dropped.
#[derive(Debug)]
pub struct StreamPermit {
    _one: OwnedSemaphorePermit,
    _of_person: Part<UserId>,
}

impl StreamPermits {
    /// This many permits, all of them free.
    pub fn new(all: usize, per_person: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), people: Parts::new(per_person) }
    }

    /// A permit for this user.
    ///
    /// # Errors
    /// [`Exhausted`] if no permit is free, or the user has too many.
    pub fn enter(&self, user: UserId) -> Result<StreamPermit, Exhausted> {
        let mut of_person = self.people.of(user);
        of_person.grow_to(1)?;
        let one = Arc::clone(&self.all).try_acquire_owned().map_err(|_| Exhausted)?;
        Ok(StreamPermit { _one: one, _of_person: of_person })
    }
}

/// The permit of a management request. It is in the extensions of the request, so that a
/// body that arrives slowly holds no permit. Clones are the same permit.
#[derive(Debug, Clone)]
pub struct ApiPermit {
    all: Arc<Semaphore>,
    taken: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl ApiPermit {
    /// A permit of these.
    ///
    /// # Errors
    /// [`Exhausted`] if no permit is free.
    pub fn enter(all: &Arc<Semaphore>) -> Result<Self, Exhausted> {
        let permit = Self { all: Arc::clone(all), taken: Arc::default() };
        permit.take()?;
        Ok(permit)
    }

    /// Takes the permit again after [`release`](Self::release).
    ///
    /// # Errors
    /// [`Exhausted`] if no permit is free.
    pub fn take(&self) -> Result<(), Exhausted> {
        let permit = Arc::clone(&self.all).try_acquire_owned().map_err(|_| Exhausted)?;
        *self.taken.lock() = Some(permit);
        Ok(())
    }

    /// Others can have the permit now.
    pub fn release(&self) {
        drop(self.taken.lock().take());
    }
}

/// The permit of a request among those of its user. It is in the extensions of the
/// request, because the user is known later than the request. Clones are the same permit.
#[derive(Debug, Clone)]
pub struct UserPermit {
    of: Parts<UserId>,
    taken: Arc<Mutex<Option<Part<UserId>>>>,
}

impl UserPermit {
    /// For a request whose user is not known yet.
    pub fn new(of: &Parts<UserId>) -> Self {
        Self { of: of.clone(), taken: Arc::default() }
    }

    /// The request is one of this user. A second call changes nothing.
    ///
    /// # Errors
    /// The number of requests that a user may have at a time, if there are as many.
    pub fn enter(&self, user: UserId) -> Result<(), usize> {
        let mut taken = self.taken.lock();
        if taken.is_none() {
            let mut part = self.of.of(user);
            part.grow_to(1).map_err(|Exhausted| self.of.most)?;
            *taken = Some(part);
        }
        Ok(())
    }

    /// The user of the request, if it is known.
    pub fn user(&self) -> Option<UserId> {
        self.taken.lock().as_ref().map(|part| part.holder)
    }

    /// The request has ended. A clone may live longer in an answer that is still sent.
    pub fn release(&self) {
        drop(self.taken.lock().take());
    }
}

#[cfg(test)]
mod tests {
    use weir_model::UserId;

    use super::{Exhausted, Parts, StreamPermits, UserPermit};

    #[test]
    fn each_holder_has_its_part() {
        let parts = Parts::new(10);
        let (mut first, mut second) = (parts.of("a"), parts.of("a"));
        assert_eq!(first.grow_to(6), Ok(()));
        assert_eq!(second.grow_to(5), Err(Exhausted));
        assert_eq!(second.grow_to(4), Ok(()));
        assert_eq!(first.grow_to(6), Ok(()), "nothing more is taken");
        assert_eq!(parts.of("b").grow_to(10), Ok(()));
        drop(first);
        assert_eq!(second.grow_to(10), Ok(()));
        drop(second);
        assert!(parts.held.lock().is_empty(), "holders without anything are forgotten");
    }

    #[test]
    fn a_user_has_a_few_permits() {
        let (places, user) = (StreamPermits::new(3, 2), |n| UserId(uuid::Uuid::from_u128(n)));
        let mine = [places.enter(user(1)).unwrap(), places.enter(user(1)).unwrap()];
        assert!(places.enter(user(1)).is_err());
        let other = places.enter(user(2)).unwrap();
        assert!(places.enter(user(3)).is_err(), "all are taken");
        drop(mine);
        assert!(places.enter(user(1)).is_ok());
        drop(other);
    }

    #[test]
    fn a_user_has_a_few_requests() {
        let (parts, user) = (Parts::new(2), |n| UserId(uuid::Uuid::from_u128(n)));
        let requests = [(); 3].map(|()| UserPermit::new(&parts));
        assert_eq!(requests[0].user(), None);
        for request in &requests[..2] {
            assert_eq!(request.enter(user(1)), Ok(()));
            assert_eq!(request.enter(user(1)), Ok(()), "it is one request");
        }
        assert_eq!(requests[0].user(), Some(user(1)));
        assert_eq!(requests[2].enter(user(1)), Err(2));
        assert_eq!(UserPermit::new(&parts).enter(user(2)), Ok(()));
        // A clone in an answer that is still sent takes nothing.
        let sent = requests[0].clone();
        requests[0].release();
        assert_eq!((sent.user(), requests[2].enter(user(1))), (None, Ok(())));
    }
}
