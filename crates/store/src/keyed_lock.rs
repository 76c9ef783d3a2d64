//! Keyed locks: changes of one organization's management data run one after another.
//!
//! Such changes write the organization's record or the head of its activity log.
//! Concurrent changes would conflict, run again and conflict again, and of fifty
//! concurrent ones some would use up their attempts.
//!
//! The same holds for writes about one batch export: by the engine that runs it, by
//! members who cancel runs, and by the deletion of the export. Changes of one record are
//! also locked from their read to their write (`update`).
//!
//! What belongs here: the locks. What does not: which organizations a change affects
//! (`activity::change`), and the consistency of data, which transactions ensure. A write
//! without the lock may conflict with a write that holds it, and one of both runs again.
//!
//! - A lock is held for one transaction with its attempts. It is never held while a body
//!   is read, a password is hashed or a request is sent to another host.
//! - A caller that needs several locks takes them in one call, in the order of ids, so
//!   that there is no deadlock.
//! - Locks are granted in the order of arrival. A caller that is dropped while it waits
//!   leaves the queue.
//! - The table has an entry for a key only while a caller holds its lock or
//!   waits for it.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

type Lock = Arc<tokio::sync::Mutex<()>>;

/// A lock for each key that is in use: the id of an organization or an export, or the
/// table and id of a record. Clones share them.
#[derive(Debug)]
pub(crate) struct KeyedLocks<K: Key> {
    locks: Arc<Mutex<HashMap<K, Lock>>>,
}

/// What a lock is for.
pub(crate) trait Key: Clone + Ord + Hash + Debug {}
impl<K: Clone + Ord + Hash + Debug> Key for K {}

impl<K: Key> Clone for KeyedLocks<K> {
    fn clone(&self) -> Self {
        Self { locks: Arc::clone(&self.locks) }
    }
}

impl<K: Key> Default for KeyedLocks<K> {
    fn default() -> Self {
        Self { locks: Arc::default() }
    }
}

/// A held lock. It is released when dropped.
#[derive(Debug)]
pub(crate) struct KeyPermit<K: Key> {
    // Released before the entry is dropped: fields are dropped in their order.
    _guard: OwnedMutexGuard<()>,
    _entry: QueueEntry<K>,
}

/// A use of the entry of a key, by the holder of the lock or by a waiting caller.
#[derive(Debug)]
struct QueueEntry<K: Key> {
    locks: KeyedLocks<K>,
    key: K,
    /// `None` only while it is dropped.
    lock: Option<Lock>,
}

impl<K: Key> KeyedLocks<K> {
    /// Waits for the lock of each of these keys.
    pub(crate) async fn take(&self, keys: impl IntoIterator<Item = K>) -> Vec<KeyPermit<K>> {
        let mut keys: Vec<K> = keys.into_iter().collect();
        keys.sort_unstable();
        keys.dedup();
        let mut taken = Vec::with_capacity(keys.len());
        for key in keys {
            let (entry, lock) = self.entry(key);
            let guard = lock.lock_owned().await;
            taken.push(KeyPermit { _guard: guard, _entry: entry });
        }
        taken
    }

    fn entry(&self, key: K) -> (QueueEntry<K>, Lock) {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = Arc::clone(locks.entry(key.clone()).or_default());
        (QueueEntry { locks: self.clone(), key, lock: Some(Arc::clone(&lock)) }, lock)
    }
}

impl<K: Key> Drop for QueueEntry<K> {
    fn drop(&mut self) {
        let mut locks = self.locks.locks.lock().unwrap_or_else(PoisonError::into_inner);
        // This reference is dropped under the lock of the table, under which entries are
        // made too. So of two concurrent drops the second one sees that it is the last.
        drop(self.lock.take());
        let left = locks.get(&self.key).map(Arc::strong_count);
        if left == Some(1) {
            locks.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use uuid::Uuid;

    use super::*;

    const A: Uuid = Uuid::from_u128(1);
    const B: Uuid = Uuid::from_u128(2);

    /// Polls once. A waiting future stays pending.
    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn known(locks: &KeyedLocks<Uuid>) -> usize {
        locks.locks.lock().unwrap().len()
    }

    #[tokio::test]
    async fn one_holder_per_organization() {
        let locks = KeyedLocks::default();
        let first = locks.take([A]).await;
        let other = locks.take([B]).await;
        assert_eq!(known(&locks), 2);
        let mut second = Box::pin(locks.take([A]));
        let mut third = Box::pin(locks.take([B, A]));
        assert!(poll(second.as_mut()).is_pending());
        assert!(poll(third.as_mut()).is_pending());
        drop((first, other));
        assert!(poll(third.as_mut()).is_pending(), "the second one came first");
        let Poll::Ready(second) = poll(second.as_mut()) else { panic!("still waits") };
        drop(second);
        assert_eq!(third.await.len(), 2);
        assert_eq!(known(&locks), 0);
    }

    #[tokio::test]
    async fn a_dropped_waiter_leaves_nothing() {
        let locks = KeyedLocks::default();
        let first = locks.take([A]).await;
        let mut waits = Box::pin(locks.take([A]));
        let mut also = Box::pin(locks.take([A]));
        assert!(poll(waits.as_mut()).is_pending());
        assert!(poll(also.as_mut()).is_pending());
        drop(also);
        drop(first);
        // The lock was granted to it, and it is dropped without having taken it.
        drop(waits);
        assert_eq!(known(&locks), 0);
        assert_eq!(locks.take([A, A]).await.len(), 1, "named twice, taken once");
    }

    #[test]
    fn the_last_of_several_concurrent_drops_removes_the_entry() {
        let locks = KeyedLocks::default();
        for _ in 0..1_000 {
            let start = std::sync::Barrier::new(4);
            std::thread::scope(|scope| {
                for (entry, lock) in (0..4).map(|_| locks.entry(A)) {
                    drop(lock);
                    let start = &start;
                    scope.spawn(move || {
                        start.wait();
                        drop(entry);
                    });
                }
            });
            assert_eq!(known(&locks), 0);
        }
    }
}
