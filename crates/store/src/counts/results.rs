//! Results of long reads, which are kept for some time.
//!
//! A result is made in a task of its own: a caller that leaves does not end it. For each
//! project one is made at a time, and the projects get their turns in the order
//! of their requests. So a project with many long reads does not keep others waiting.

use std::collections::HashSet;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, timeout};
use weir_model::ProjectId;

use super::entries::NAME;
use crate::{Error, Result};

/// How many times as long as it took to make a result, it is kept.
const KEPT_TIMES: u32 = 10;

/// The results of one kind.
pub(crate) struct Results<K, T>(Arc<Shared<K, T>>);

struct Shared<K, T> {
    bounds: ResultBounds<T>,
    state: Mutex<State<K, T>>,
    /// A result was made, or failed.
    made: Notify,
    permits: Semaphore,
}

/// The bounds of the results of one kind.
pub(super) struct ResultBounds<T> {
    /// Results that are made at a time.
    pub(super) at_a_time: usize,
    /// Results that are kept.
    pub(super) kept: usize,
    /// How long a result is kept at least.
    pub(super) kept_for: Duration,
    /// Whether a result is kept. Callers that wait for another one make it again.
    pub(super) is_kept: fn(&T) -> bool,
    /// How long a caller waits.
    pub(super) wait: Duration,
}

struct State<K, T> {
    kept: Vec<CachedResult<K, T>>,
    /// The projects of which a result is made or waits to be made.
    making: HashSet<ProjectId>,
}

struct CachedResult<K, T> {
    project: ProjectId,
    key: K,
    result: Arc<T>,
    until: Instant,
}

/// What a caller is to do.
enum Next<K: Eq, T> {
    Take(Arc<T>),
    Make(Making<K, T>),
    Wait,
}

/// While it exists, no other result of the project is made.
struct Making<K: Eq, T> {
    results: Results<K, T>,
    project: ProjectId,
}

impl<K: Eq, T> Drop for Making<K, T> {
    fn drop(&mut self) {
        self.results.state().making.remove(&self.project);
        self.results.0.made.notify_waiters();
    }
}

impl<K, T> Clone for Results<K, T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Eq, T> Results<K, T> {
    pub(super) fn new(bounds: ResultBounds<T>) -> Self {
        let state = State { kept: Vec::new(), making: HashSet::new() };
        let (state, permits) = (Mutex::new(state), Semaphore::new(bounds.at_a_time));
        Self(Arc::new(Shared { bounds, state, made: Notify::new(), permits }))
    }

    fn state(&self) -> MutexGuard<'_, State<K, T>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, project: ProjectId, key: &K) -> Next<K, T> {
        let mut state = self.state();
        let now = Instant::now();
        state.kept.retain(|kept| kept.until > now);
        let found = state.kept.iter().find(|kept| kept.project == project && kept.key == *key);
        if let Some(found) = found {
            return Next::Take(Arc::clone(&found.result));
        }
        match state.making.insert(project) {
            true => Next::Make(Making { results: self.clone(), project }),
            false => Next::Wait,
        }
    }

    fn keep(&self, project: ProjectId, key: K, result: Arc<T>, took: Duration) {
        let bounds = &self.0.bounds;
        if !(bounds.is_kept)(&result) {
            return;
        }
        let until = Instant::now() + bounds.kept_for.max(took.saturating_mul(KEPT_TIMES));
        let mut state = self.state();
        if state.kept.len() >= bounds.kept {
            state.kept.remove(0);
        }
        state.kept.push(CachedResult { project, key, result, until });
    }
}

impl<K, T> Results<K, T>
where
    K: Eq + Send + 'static,
    T: Send + Sync + 'static,
{
    /// The result that is kept, or a new one.
    ///
    /// # Errors
    /// The error of `make`. [`Error::Making`] when it takes long: the same call can have the
    /// result later.
    pub(super) async fn get(
        &self,
        project: ProjectId,
        key: K,
        make: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<Arc<T>> {
        let result = timeout(self.0.bounds.wait, async {
            loop {
                // Notices what is made from here on.
                let made = self.0.made.notified();
                match self.next(project, &key) {
                    Next::Take(result) => return Ok(result),
                    Next::Make(making) => return self.make(making, key, make).await,
                    Next::Wait => made.await,
                }
            }
        });
        result.await.unwrap_or(Err(Error::Making { statement: NAME }))
    }

    async fn make(
        &self,
        making: Making<K, T>,
        key: K,
        make: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<Arc<T>> {
        let results = self.clone();
        let task = tokio::spawn(async move {
            // All of it, so that it ends with the task.
            let making = making;
            // It is never closed.
            let _permit = results.0.permits.acquire().await;
            let began = Instant::now();
            let result = Arc::new(make.await?);
            results.keep(making.project, key, Arc::clone(&result), began.elapsed());
            Ok(result)
        });
        task.await.unwrap_or_else(|error| {
            let detail = format!("the task ended early: {error}");
            Err(Error::Shape { statement: NAME, detail })
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;
    use tokio::task::yield_now;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    /// Callers wait so long for one result at a time.
    fn results(wait: Duration) -> Results<u8, u8> {
        Results::new(ResultBounds {
            at_a_time: 1,
            kept: 2,
            kept_for: LONG,
            is_kept: |made| *made < 100,
            wait,
        })
    }

    async fn get(results: &Results<u8, u8>, project: i64, key: u8, made: u8) -> Option<u8> {
        let result = results.get(ProjectId(project), key, async move { Ok(made) }).await;
        match result {
            Ok(number) => Some(*number),
            Err(Error::Making { .. }) => None,
            Err(other) => panic!("{other}"),
        }
    }

    /// Makes what is sent.
    async fn sent(from: oneshot::Receiver<u8>) -> Result<u8> {
        from.await.map_err(|_| Error::Stopped)
    }

    #[tokio::test]
    async fn a_result_is_finished_and_kept_when_its_caller_leaves() {
        let results = results(Duration::ZERO);
        let (finish, finished) = oneshot::channel();
        let left = results.get(ProjectId(1), 1, sent(finished)).await;
        assert!(matches!(left, Err(Error::Making { .. })), "{left:?}");
        assert_eq!(get(&results, 1, 1, 0).await, None);
        finish.send(7).unwrap();
        loop {
            match get(&results, 1, 1, 0).await {
                Some(number) => break assert_eq!(number, 7),
                None => yield_now().await,
            }
        }
    }

    #[tokio::test]
    async fn a_project_that_asks_for_much_does_not_keep_others_waiting() {
        let results = results(Duration::ZERO);
        let order = Arc::new(Mutex::new(Vec::new()));
        let (finish, finished) = oneshot::channel();
        results.get(ProjectId(1), 0, sent(finished)).await.unwrap_err();
        let ask = async |project, key| {
            let order = Arc::clone(&order);
            let make = async move {
                order.lock().unwrap().push(project);
                Ok(0)
            };
            results.get(ProjectId(project), key, make).await.is_ok()
        };
        let ask_for_much = async || {
            for key in 1..9 {
                ask(1, key).await;
            }
        };
        ask_for_much().await;
        assert!(!ask(2, 0).await);
        yield_now().await;
        finish.send(0).unwrap();
        while !ask(2, 0).await {
            ask_for_much().await;
            yield_now().await;
        }
        assert_eq!(order.lock().unwrap().first(), Some(&2));
    }

    #[tokio::test]
    async fn a_failure_is_not_kept_and_the_number_of_results_is_bounded() {
        let results = results(LONG);
        let failed = results.get(ProjectId(1), 1, async { Err(Error::DiskLow) }).await;
        assert!(matches!(failed, Err(Error::DiskLow)), "{failed:?}");
        for key in 1..=3 {
            assert_eq!(get(&results, 1, key, key).await, Some(key));
        }
        assert_eq!(get(&results, 1, 3, 9).await, Some(3), "kept");
        assert_eq!(get(&results, 1, 1, 9).await, Some(9), "the oldest is not kept");
        assert_eq!(get(&results, 2, 3, 8).await, Some(8), "of another project");
        for made in [100, 101] {
            assert_eq!(get(&results, 3, 3, made).await, Some(made), "not kept");
        }
    }
}
