//! Permits that waiting holders get in turn (round robin): a holder that got one gets the
//! next only after every other holder with waiters got one. So a holder with many waiters
//! does not delay the others by all of them.
//!
//! What belongs here: the order of waiters. What does not: who the holders are (`limits`).

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::Exhausted;

/// Permits that waiting holders get in turn. A holder, such as a client network, has one
/// waiter for each call of [`Self::acquire`] that waits. Cheap to clone.
#[derive(Debug)]
pub struct FairPermits<K: Eq + Hash + Clone>(Arc<Mutex<Queues<K>>>);

impl<K: Eq + Hash + Clone> Clone for FairPermits<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct Queues<K: Eq + Hash + Clone> {
    free: usize,
    /// The largest number of waiters of one holder.
    max_waiters: usize,
    /// The holders that have waiters, next first.
    order: VecDeque<K>,
    waiters: HashMap<K, VecDeque<oneshot::Sender<FairPermit<K>>>>,
}

/// A permit, released when dropped.
#[derive(Debug)]
pub struct FairPermit<K: Eq + Hash + Clone>(Option<FairPermits<K>>);

impl<K: Eq + Hash + Clone> FairPermits<K> {
    /// This many permits, all of them free. A holder may have `max_waiters` waiters.
    pub fn new(permits: usize, max_waiters: usize) -> Self {
        let (order, waiters) = (VecDeque::new(), HashMap::new());
        Self(Arc::new(Mutex::new(Queues { free: permits, max_waiters, order, waiters })))
    }

    /// Waits for a permit. Dropping the future ends the wait.
    ///
    /// # Errors
    /// [`Exhausted`] if the holder has too many waiters.
    pub async fn acquire(&self, holder: K) -> Result<FairPermit<K>, Exhausted> {
        let granted = {
            let mut queues = self.0.lock();
            if queues.free > 0 {
                queues.free -= 1;
                return Ok(FairPermit(Some(self.clone())));
            }
            queues.wait(holder)?
        };
        // Closed never happens: a sender is dropped unused only if its receiver is gone.
        granted.await.map_err(|_closed| Exhausted)
    }

    fn release(&self) {
        let mut queues = self.0.lock();
        let mut permit = FairPermit(Some(self.clone()));
        while let Some(waiter) = queues.next() {
            match waiter.send(permit) {
                Ok(()) => return,
                // Its future was dropped.
                Err(unused) => permit = unused,
            }
        }
        // Emptied, so that dropping it does not call `release`, which would wait for the
        // lock held here.
        permit.0 = None;
        queues.free += 1;
    }
}

impl<K: Eq + Hash + Clone> Queues<K> {
    fn wait(&mut self, holder: K) -> Result<oneshot::Receiver<FairPermit<K>>, Exhausted> {
        let (sender, receiver) = oneshot::channel();
        let waiters = self.waiters.entry(holder.clone()).or_default();
        if waiters.is_empty() {
            self.order.push_back(holder);
        }
        if waiters.len() >= self.max_waiters {
            waiters.retain(|waiter| !waiter.is_closed());
        }
        if waiters.len() >= self.max_waiters {
            return Err(Exhausted);
        }
        waiters.push_back(sender);
        Ok(receiver)
    }

    /// The first waiter of the next holder, which moves to the end of the order.
    fn next(&mut self) -> Option<oneshot::Sender<FairPermit<K>>> {
        while let Some(holder) = self.order.pop_front() {
            let Some(waiters) = self.waiters.get_mut(&holder) else { continue };
            let next = waiters.pop_front();
            if waiters.is_empty() {
                self.waiters.remove(&holder);
            } else {
                self.order.push_back(holder);
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }
}

impl<K: Eq + Hash + Clone> Drop for FairPermit<K> {
    fn drop(&mut self) {
        if let Some(permits) = self.0.take() {
            permits.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn holders_get_permits_in_turn() {
        let permits = FairPermits::new(1, 10);
        let first = permits.acquire("flood").await.unwrap();
        let mut flood: Vec<_> = (0..3).map(|_| Box::pin(permits.acquire("flood"))).collect();
        assert!(flood.iter_mut().all(|waiter| waiter.now_or_never().is_none()));
        let mut other = pin!(permits.acquire("other"));
        assert!(other.as_mut().now_or_never().is_none());
        drop(first);
        let second = flood.remove(0).now_or_never().unwrap().unwrap();
        assert!(other.as_mut().now_or_never().is_none());
        drop(second);
        let permit = other.now_or_never().unwrap().unwrap();
        assert!(flood[0].as_mut().now_or_never().is_none());
        drop(permit);
        assert!(flood[0].as_mut().now_or_never().is_some());
    }

    #[tokio::test]
    async fn waiters_are_bounded_and_those_that_are_gone_do_not_count() {
        let permits = FairPermits::new(1, 2);
        let held = permits.acquire(1).await.unwrap();
        let mut waiting: Vec<_> = (0..2).map(|_| Box::pin(permits.acquire(1))).collect();
        assert!(waiting.iter_mut().all(|waiter| waiter.now_or_never().is_none()));
        assert!(matches!(permits.acquire(1).now_or_never(), Some(Err(Exhausted))));
        assert!(permits.acquire(2).now_or_never().is_none());
        drop(waiting.remove(0));
        assert!(permits.acquire(1).now_or_never().is_none());
        drop(held);
        let permit = waiting.remove(0).now_or_never().unwrap().unwrap();
        drop(permit);
        assert!(permits.acquire(3).now_or_never().is_some(), "no permit is lost");
    }
}
