//! The project of a project key, in memory (ING-23).
//!
//! What belongs here: the project data that capture keeps. All keys are loaded at the
//! start, again every few seconds, and immediately after every change in this process. So
//! capture works while the store does not. A key that is not known is looked up, so that
//! a new project works immediately. An unknown key is remembered for a short time, so
//! that a client with a wrong key does not keep the store busy.
//! What does not: what makes a key well formed (`weir-capture`).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use weir_service::Clock;
use weir_service::projects::{ProjectRules, Projects};

/// Time between two loads of all keys.
const REFRESH: Duration = Duration::from_secs(5);
/// After a load, the wait is at least this many times the duration of the load. So an
/// instance with very many projects does not load all the time.
const REST_FACTOR: u32 = 20;
/// How long a key is remembered as unknown.
const UNKNOWN_FOR: Duration = Duration::from_secs(30);
/// Most unknown keys that are remembered.
const UNKNOWN_KEYS: usize = 10_000;
/// Look-ups of unknown keys at a time.
const LOOKUPS: usize = 16;
/// Longest wait for a look-up.
const PATIENCE: Duration = Duration::from_secs(3);

/// The known project keys. Cheap to clone.
#[derive(Clone)]
pub struct TokenCache(Arc<Inner>);

struct Inner {
    projects: Projects,
    clock: Clock,
    known: ArcSwap<HashMap<String, ProjectRules>>,
    /// When a key was found to be unknown. Locked for single map operations only.
    unknown: Mutex<HashMap<String, Instant>>,
    lookups: Semaphore,
    /// One load at a time: an older answer must not replace a newer one.
    loading: AsyncMutex<()>,
    /// Number of loads, so that a look-up notices a load that was faster.
    loads: AtomicU64,
}

/// The result of a look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The key belongs to this project.
    Project(ProjectRules),
    /// No project has the key.
    Unknown,
    /// The store cannot answer at the moment.
    Undecided,
}

impl TokenCache {
    /// An empty cache.
    pub fn new(projects: Projects, clock: Clock) -> Self {
        Self(Arc::new(Inner {
            projects,
            clock,
            known: ArcSwap::default(),
            unknown: Mutex::default(),
            lookups: Semaphore::new(LOOKUPS),
            loading: AsyncMutex::default(),
            loads: AtomicU64::new(0),
        }))
    }

    /// The project of `token`, if it is in memory.
    pub fn known(&self, token: &str) -> Option<ProjectRules> {
        self.0.known.load().get(token).copied()
    }

    /// Looks `token` up, in memory and then in the store.
    pub async fn find(&self, token: &str) -> Verdict {
        let Inner { projects, clock, known, unknown, lookups, loads, .. } = &*self.0;
        // A replaced key ends at its time, even if no load has happened since.
        if let Some(rules) = known.load().get(token)
            && rules.work_at(clock.now())
        {
            return Verdict::Project(*rules);
        }
        if unknown.lock().get(token).is_some_and(|since| since.elapsed() < UNKNOWN_FOR) {
            return Verdict::Unknown;
        }
        // A client that sends many invented keys is stopped by this bound before it
        // reaches the store. Senders with a known key never come here.
        let Ok(_lookup) = lookups.try_acquire() else { return Verdict::Undecided };
        let before = loads.load(Ordering::Acquire);
        match tokio::time::timeout(PATIENCE, projects.by_token(token)).await {
            Ok(Ok(Some(rules))) => {
                // A concurrent load may have seen that the project was deleted.
                if loads.load(Ordering::Acquire) == before {
                    known.rcu(|known| {
                        let mut known = HashMap::clone(known);
                        known.insert(token.to_owned(), rules);
                        known
                    });
                }
                Verdict::Project(rules)
            }
            Ok(Ok(None)) => {
                self.remember_unknown(token);
                Verdict::Unknown
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "project key look-up failed");
                Verdict::Undecided
            }
            Err(_elapsed) => Verdict::Undecided,
        }
    }

    /// Loads all keys. Call it after a project was created, changed or deleted. A removed
    /// key stops working when this returns.
    pub async fn refresh(&self) {
        if self.load().await {
            self.0.unknown.lock().clear();
        }
    }

    /// Loads all keys every few seconds, forever.
    pub async fn keep_fresh(self) {
        loop {
            let began = Instant::now();
            self.load().await;
            tokio::time::sleep(REFRESH.max(began.elapsed().saturating_mul(REST_FACTOR))).await;
        }
    }

    async fn load(&self) -> bool {
        let _one_at_a_time = self.0.loading.lock().await;
        match self.0.projects.all_tokens().await {
            Ok(tokens) => {
                self.0.loads.fetch_add(1, Ordering::AcqRel);
                self.0.known.store(Arc::new(tokens.into_iter().collect()));
                true
            }
            // The loaded keys stay valid: events are accepted without the store.
            Err(error) => {
                tracing::warn!(%error, "project keys were not loaded");
                false
            }
        }
    }

    fn remember_unknown(&self, token: &str) {
        let mut unknown = self.0.unknown.lock();
        if unknown.len() >= UNKNOWN_KEYS {
            unknown.retain(|_, since| since.elapsed() < UNKNOWN_FOR);
        }
        if unknown.len() >= UNKNOWN_KEYS {
            unknown.clear();
        }
        unknown.insert(token.to_owned(), Instant::now());
    }
}
