//! Keyed locks: changes of one organization's management data run one after another.
//!
//! Such changes write the organization's record or the head of its activity log.
//! Concurrent changes would conflict, run again and conflict again, and of fifty
//! concurrent ones some would use up their attempts.
//!
//! The same holds for writes about one batch export: by the engine that runs it, by
//! members who cancel runs, and by the deletion of the export.
//!
//! What belongs here: the locks. What does not: which organizations a change affects
//! (`activity::change`), and the consistency of data, which transactions ensure. A write
//! without the lock may conflict with a write that holds it, and one of both runs again.
//!
//! - A lock is held for one transaction with its attempts. It is never held while a body
//!   is read, a password is hashed or another host is asked.
//! - A caller that needs several locks takes them in one call, in the order of ids, so
//!   that there is no deadlock.
//! - Locks are granted in the order of arrival. A caller that is dropped while it waits
//!   leaves the queue.
//! - The table has an entry for an organization only while a caller holds its lock or
//!   waits for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

type Lock = Arc<tokio::sync::Mutex<()>>;

/// The locks of all organizations and exports. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns {
    lines: Arc<Mutex<HashMap<Uuid, Lock>>>,
}

/// A held lock. It is released when dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    // Released before the entry is dropped: fields are dropped in their order.
    _guard: OwnedMutexGuard<()>,
    _place: Place,
}

/// A use of an organization's entry, by the holder of the lock or by a waiting caller.
#[derive(Debug)]
struct Place {
    turns: Turns,
    organization: Uuid,
    /// `None` only while it is dropped.
    lock: Option<Lock>,
}

impl Turns {
    /// Waits for the lock of each of these organizations or exports.
    pub(crate) async fn take(&self, organizations: impl IntoIterator<Item = Uuid>) -> Vec<Turn> {
        let mut ids: Vec<Uuid> = organizations.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        let mut taken = Vec::with_capacity(ids.len());
        for organization in ids {
            let (place, lock) = self.place(organization);
            let guard = lock.lock_owned().await;
            taken.push(Turn { _guard: guard, _place: place });
        }
        taken
    }

    fn place(&self, organization: Uuid) -> (Place, Lock) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = Arc::clone(lines.entry(organization).or_default());
        (Place { turns: self.clone(), organization, lock: Some(Arc::clone(&lock)) }, lock)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut lines = self.turns.lines.lock().unwrap_or_else(PoisonError::into_inner);
        // This reference is dropped under the lock of the table, under which entries are
        // made too. So of two concurrent drops the second one sees that it is the last.
        drop(self.lock.take());
        let left = lines.get(&self.organization).map(Arc::strong_count);
        if left == Some(1) {
            lines.remove(&self.organization);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    const A: Uuid = Uuid::from_u128(1);
    const B: Uuid = Uuid::from_u128(2);

    /// Polls once. A waiting future stays pending.
    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn known(turns: &Turns) -> usize {
        turns.lines.lock().unwrap().len()
    }

    #[tokio::test]
    async fn of_one_organization_one_at_a_time() {
        let turns = Turns::default();
        let first = turns.take([A]).await;
        let other = turns.take([B]).await;
        assert_eq!(known(&turns), 2);
        let mut second = Box::pin(turns.take([A]));
        let mut third = Box::pin(turns.take([B, A]));
        assert!(poll(second.as_mut()).is_pending());
        assert!(poll(third.as_mut()).is_pending());
        drop((first, other));
        assert!(poll(third.as_mut()).is_pending(), "the second one came first");
        let Poll::Ready(second) = poll(second.as_mut()) else { panic!("still waits") };
        drop(second);
        assert_eq!(third.await.len(), 2);
        assert_eq!(known(&turns), 0);
    }

    #[tokio::test]
    async fn whoever_goes_away_leaves_nothing() {
        let turns = Turns::default();
        let first = turns.take([A]).await;
        let mut waits = Box::pin(turns.take([A]));
        let mut also = Box::pin(turns.take([A]));
        assert!(poll(waits.as_mut()).is_pending());
        assert!(poll(also.as_mut()).is_pending());
        drop(also);
        drop(first);
        // The lock was granted to it, and it is dropped without having taken it.
        drop(waits);
        assert_eq!(known(&turns), 0);
        assert_eq!(turns.take([A, A]).await.len(), 1, "named twice, taken once");
    }

    #[test]
    fn of_several_that_go_at_once_the_last_one_removes_the_line() {
        let turns = Turns::default();
        for _ in 0..1_000 {
            let start = std::sync::Barrier::new(4);
            std::thread::scope(|scope| {
                for (place, lock) in (0..4).map(|_| turns.place(A)) {
                    drop(lock);
                    let start = &start;
                    scope.spawn(move || {
                        start.wait();
                        drop(place);
                    });
                }
            });
            assert_eq!(known(&turns), 0);
        }
    }
}
