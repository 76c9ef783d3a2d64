//! What each of many holders has of something: bytes and connections by client network,
//! places by person.
//!
//! What belongs here: that a holder has its part and not more. What does not: how large
//! a part is (`limits`).

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use weir_model::UserId;

/// The budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted;

/// What each of many holders has of something, none of them more than its part. Cheap
/// to clone, and as large as there are holders at a time.
#[derive(Debug, Clone)]
pub struct Parts<K> {
    most: usize,
    // Held for single map operations only.
    held: Arc<Mutex<HashMap<K, usize>>>,
}

/// What one holder has; given back when dropped.
#[derive(Debug)]
pub struct Part<K: Eq + Hash> {
    of: Parts<K>,
    holder: K,
    held: usize,
}

impl<K: Eq + Hash + Clone> Parts<K> {
    /// Nobody has anything yet.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, held: Arc::default() }
    }

    /// The part of a holder, of which nothing is taken yet.
    #[must_use]
    pub fn of(&self, holder: K) -> Part<K> {
        Part { of: self.clone(), holder, held: 0 }
    }
}

impl<K: Eq + Hash + Clone> Part<K> {
    /// Takes what is missing to hold `wanted`.
    ///
    /// # Errors
    /// [`Exhausted`].
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

/// What client networks have of something: each of the three that a client is in has a
/// part.
#[derive(Debug, Clone)]
pub struct NetworkParts([Parts<IpAddr>; 3]);

/// What one client has of it; given back when dropped.
#[derive(Debug)]
pub struct NetworkPart([Part<IpAddr>; 3]);

impl NetworkParts {
    /// Nobody has anything yet.
    #[must_use]
    pub fn new(most: [usize; 3]) -> Self {
        Self(most.map(Parts::new))
    }

    /// The part of a client in these networks, of which nothing is taken yet.
    #[must_use]
    pub fn of(&self, networks: [IpAddr; 3]) -> NetworkPart {
        let [near, site, provider] = networks;
        let Self([of_near, of_site, of_provider]) = self;
        NetworkPart([of_near.of(near), of_site.of(site), of_provider.of(provider)])
    }
}

impl NetworkPart {
    /// Takes what is missing to hold `wanted`.
    ///
    /// # Errors
    /// [`Exhausted`].
    pub fn grow_to(&mut self, wanted: usize) -> Result<(), Exhausted> {
        self.0.iter_mut().try_for_each(|part| part.grow_to(wanted))
    }
}

/// Places for answers that take long, of which one person has a few at most. Cheap to
/// clone.
#[derive(Debug, Clone)]
pub struct Places {
    all: Arc<Semaphore>,
    people: Parts<UserId>,
}

/// A place for such an answer; free again when dropped.
#[derive(Debug)]
pub struct Place {
    _one: OwnedSemaphorePermit,
    _of_person: Part<UserId>,
}

impl Places {
    /// So many places, none of them taken.
    #[must_use]
    pub fn new(all: usize, per_person: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), people: Parts::new(per_person) }
    }

    /// A place for this person.
    ///
    /// # Errors
    /// [`Exhausted`]: all are taken, or those of this person.
    pub fn enter(&self, user: UserId) -> Result<Place, Exhausted> {
        let mut of_person = self.people.of(user);
        of_person.grow_to(1)?;
        let one = Arc::clone(&self.all).try_acquire_owned().map_err(|_| Exhausted)?;
        Ok(Place { _one: one, _of_person: of_person })
    }
}

#[cfg(test)]
mod tests {
    use weir_model::UserId;

    use super::{Exhausted, Parts, Places};

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
    fn a_person_has_a_few_places() {
        let (places, user) = (Places::new(3, 2), |n| UserId(uuid::Uuid::from_u128(n)));
        let mine = [places.enter(user(1)).unwrap(), places.enter(user(1)).unwrap()];
        assert!(places.enter(user(1)).is_err());
        let other = places.enter(user(2)).unwrap();
        assert!(places.enter(user(3)).is_err(), "all are taken");
        drop(mine);
        assert!(places.enter(user(1)).is_ok());
        drop(other);
    }
}
