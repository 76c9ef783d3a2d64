//! From a project key to its project, in memory (ING-23).
//!
//! What belongs here: what capture remembers of projects. All keys are loaded
//! at the start and again every few seconds, so that capture works while the
//! store does not, and at once after every change that goes through this
//! process. A key that is not known is looked up, so that a new project works
//! at once; that it is unknown is remembered for a short time, so that a client
//! with a wrong key does not keep the store busy.
//! What does not: what makes a key well formed (`weir-ingest`).

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
/// An instance with very many projects spends at most this part of its time on loads.
const REST_FACTOR: u32 = 20;
/// How long a key stays unknown.
const UNKNOWN_FOR: Duration = Duration::from_secs(30);
/// Unknown keys that are remembered.
const UNKNOWN_KEYS: usize = 10_000;
/// Look-ups of unknown keys at a time.
const LOOKUPS: usize = 16;
/// Longest wait for a look-up.
const PATIENCE: Duration = Duration::from_secs(3);

/// The keys that are known. Cheap to clone.
#[derive(Clone)]
pub struct TokenCache(Arc<Inner>);

struct Inner {
    projects: Projects,
    clock: Clock,
    known: ArcSwap<HashMap<String, ProjectRules>>,
    /// Since when a key is unknown. Held for single map operations only.
    unknown: Mutex<HashMap<String, Instant>>,
    lookups: Semaphore,
    /// One load at a time: an older answer must not replace a newer one.
    loading: AsyncMutex<()>,
    /// Number of loads, so that a look-up notices one that overtook it.
    loads: AtomicU64,
}

/// What is known of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It belongs to this project.
    Known(ProjectRules),
    /// No project has it.
    Unknown,
    /// The store cannot say just now.
    Undecided,
}

impl TokenCache {
    /// A cache that knows nothing yet.
    #[must_use]
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

    /// The project of `token`, if that is in memory.
    #[must_use]
    pub fn known(&self, token: &str) -> Option<ProjectRules> {
        self.0.known.load().get(token).copied()
    }

    /// What is known of `token`.
    pub async fn find(&self, token: &str) -> Verdict {
        let Inner { projects, clock, known, unknown, lookups, loads, .. } = &*self.0;
        // A key that was replaced ends at its time, whenever the keys were loaded.
        if let Some(rules) = known.load().get(token)
            && rules.work_at(clock.now())
        {
            return Verdict::Known(*rules);
        }
        if unknown.lock().get(token).is_some_and(|since| since.elapsed() < UNKNOWN_FOR) {
            return Verdict::Unknown;
        }
        // Someone who sends one made-up key after the other meets this bound
        // before the store does; senders with a known key never come here.
        let Ok(_lookup) = lookups.try_acquire() else { return Verdict::Undecided };
        let before = loads.load(Ordering::Acquire);
        match tokio::time::timeout(PATIENCE, projects.by_token(token)).await {
            Ok(Ok(Some(rules))) => {
                // A load meanwhile may have seen the project go.
                if loads.load(Ordering::Acquire) == before {
                    known.rcu(|known| {
                        let mut known = HashMap::clone(known);
                        known.insert(token.to_owned(), rules);
                        known
                    });
                }
                Verdict::Known(rules)
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

    /// Loads all keys. To be called after anything that creates, changes or
    /// deletes a project; a key that is gone stops working when this returns.
    pub async fn refresh(&self) {
        if self.load().await {
            self.0.unknown.lock().clear();
        }
    }

    /// Loads all keys every few seconds, for ever.
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
            // What is known stays good: events are accepted without the store.
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
