//! Running a question: its permit, its snapshot, its threads, and what makes it begin again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::time::timeout;
use weir_answer::{AnswerError, Asked, Cancel, MemoryPool, Run};
use weir_model::{ProjectId, Timestamp};
use weir_questions::Query;
use weir_questions::query::FilterGroup;
use weir_questions::time::{Calendar, WeekStart};
use weir_store::events::{self, TimeRange};
use weir_store::{Store, erasures, people};

use super::kinds::{self, Computed};
use super::recent::Recent;
use super::results::{Results, Version};
use super::source::{SourceFault, StoreSource};
use super::stop::Stop;
use super::{Asker, Ended, Outcome, QuestionPermit, Refresh, Settings, fault};
use crate::clock::Clock;
use crate::error::{Error, MAKING};
use crate::{Result, secrets};

/// The longest wait for a permit.
const WAIT: Duration = Duration::from_secs(10);
/// How often a question begins again because its events are not there any more as they were.
const ATTEMPTS: u32 = 4;
/// Bytes of events that wait to be applied, above which a question has one thread.
const LAG_SLOW: u64 = 4 << 20;
/// The same above which no question begins.
const LAG_MOST: u64 = 64 << 20;
/// The most threads of a question.
const THREADS: usize = 4;
const MIB: usize = 1 << 20;

/// Why a question does not begin.
const BUSY: &str = "too many other questions are being answered";
const BEHIND: &str = "events are still being stored";
const CHANGING: &str = "the stored events are being changed";

/// What runs questions.
pub(super) struct Engine {
    store: Store,
    pub(super) clock: Clock,
    settings: Settings,
    memory: Arc<MemoryPool>,
    results: Results,
    pub(super) recent: Recent,
    /// The questions that are being computed.
    running: AtomicUsize,
}

/// A question with all that its answer depends on beside its events.
pub(super) struct Question {
    pub(super) asker: Asker,
    pub(super) project: ProjectId,
    pub(super) query: Query,
    /// Its canonical form.
    pub(super) json: String,
    pub(super) calendar: Calendar,
    pub(super) timezone: String,
    pub(super) week_start: WeekStart,
    pub(super) now: Timestamp,
    pub(super) earliest: Option<Timestamp>,
    pub(super) internal: FilterGroup,
    pub(super) refresh: Refresh,
}

/// The answer that was found.
pub(super) struct Found {
    pub(super) computed: Arc<Computed>,
    pub(super) is_cached: bool,
    pub(super) cache_key: String,
}

/// Why an attempt has no answer.
enum Failure {
    /// The events were not there any more as they were at its beginning.
    Changed,
    /// The question has no answer.
    Final(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

impl Question {
    fn asked(&self) -> Asked<'_> {
        Asked {
            calendar: &self.calendar,
            now: self.now,
            earliest: self.earliest,
            internal: &self.internal,
        }
    }

    /// The key of its answer: questions with equal keys have equal answers about the same
    /// events.
    fn key(&self, times: &[std::ops::Range<i64>]) -> String {
        let Self { project, timezone, week_start, json, .. } = self;
        let mut key = format!("{}\n{timezone}\n{week_start:?}\n{times:?}\n{json}", project.0);
        // Such a filter may be relative to the current time.
        if json.contains("\"is_date_") {
            key.push_str(&format!("\n{}", self.now.micros()));
        }
        secrets::sha256_hex(&key)
    }
}

impl Engine {
    pub(super) fn new(store: Store, clock: Clock, settings: Settings) -> Self {
        Self {
            store,
            clock,
            memory: Arc::new(MemoryPool::new(settings.memory)),
            results: Results::new(settings.kept),
            settings,
            recent: Recent::default(),
            running: AtomicUsize::new(0),
        }
    }

    pub(super) fn memory_used(&self) -> usize {
        self.memory.used()
    }

    /// Answers a question. To be called on the threads of questions.
    pub(super) async fn answer(&self, question: &Arc<Question>, stop: &Stop) -> Result<Found> {
        let begun = Instant::now();
        let found = self.find(question, stop).await;
        let ended = Ended {
            kind: question.query.kind(),
            outcome: outcome(&found),
            is_cached: found.as_ref().ok().map(|found| found.is_cached),
            took: begun.elapsed(),
        };
        tracing::debug!(
            kind = ended.kind,
            outcome = ended.outcome.text(),
            seconds = ended.took.as_secs_f64(),
            "question"
        );
        self.settings.host.ended(ended);
        found
    }

    async fn find(&self, question: &Arc<Question>, stop: &Stop) -> Result<Found> {
        let times = kinds::times(&question.asked(), &question.query);
        let times = times.map_err(|error| self.refusal(error))?;
        let key = question.key(&times);
        let erasures = erasures::version(&self.store, question.project);
        let is_kept = kinds::is_kept(&question.query);
        let kept = match question.refresh {
            _ if !is_kept => None,
            Refresh::Usual => self.results.recent(&key, erasures, Instant::now()),
            Refresh::Never => self.results.any(&key, erasures),
            Refresh::Always => None,
        };
        if let Some(computed) = kept {
            return Ok(Found { computed, is_cached: true, cache_key: key });
        }
        // It is dropped when the threads of the question have ended.
        let _permit = self.permit(question.asker, stop).await?;
        let cancel = stop.begin(Instant::now() + self.settings.time);
        let span = TimeRange {
            start: times.iter().map(|times| times.start).min().unwrap_or(0),
            end: times.iter().map(|times| times.end).max().unwrap_or(0),
        };
        for _ in 0..ATTEMPTS {
            match self.attempt(question, &key, span, &cancel).await {
                Ok((computed, is_cached)) => {
                    return Ok(Found { computed, is_cached, cache_key: key });
                }
                Err(Failure::Changed) => {}
                Err(Failure::Final(error)) => return Err(error),
            }
        }
        Err(Error::Unavailable(CHANGING))
    }

    async fn permit(&self, asker: Asker, stop: &Stop) -> Result<QuestionPermit> {
        let host = &self.settings.host;
        if host.lag_bytes() > LAG_MOST {
            return Err(Error::Unavailable(BEHIND));
        }
        tokio::select! {
            () = stop.stopped() => Err(cancelled()),
            permit = timeout(WAIT, host.permit(asker)) => match permit {
                Ok(Some(permit)) => Ok(permit),
                Ok(None) | Err(_) => Err(Error::Unavailable(BUSY)),
            },
        }
    }

    /// The answer as of now, and whether it was computed before.
    async fn attempt(
        &self,
        question: &Arc<Question>,
        key: &str,
        span: TimeRange,
        cancel: &Arc<Cancel>,
    ) -> Result<(Arc<Computed>, bool), Failure> {
        let (store, project) = (&self.store, question.project);
        // Before the events: an erasure in between makes the answer one of another version.
        let erasures = erasures::version(store, project);
        let snapshot = events::snapshot(store, project, span).await.map_err(of_store)?;
        // After the events: so it has their merges.
        let (people, view) = people::of(store, project).await.map_err(of_store)?;
        let version = Version { events: snapshot.version(), people: view.version(), erasures };
        let is_kept = kinds::is_kept(&question.query);
        if is_kept
            && question.refresh != Refresh::Always
            && let Some(computed) = self.results.of_version(key, version)
        {
            return Ok((computed, true));
        }
        let threads = self.settings.threads.clone();
        let source = Arc::new(StoreSource::new(store.clone(), threads, snapshot, people, view));
        let begun = Instant::now();
        let found = self.compute(question, &source, cancel).await?;
        let computed = match found {
            Ok(found) => Arc::new(found.at(self.clock.now())),
            Err(error) => return Err(self.failure(error, &source).await),
        };
        if source.has_later_erasures() {
            return Err(Failure::Changed);
        }
        if is_kept {
            self.results.put(key, &computed, version, begun.elapsed());
        }
        Ok((computed, false))
    }

    async fn compute(
        &self,
        question: &Arc<Question>,
        source: &Arc<StoreSource>,
        cancel: &Arc<Cancel>,
    ) -> Result<Result<kinds::Found, AnswerError>> {
        let (question, source) = (Arc::clone(question), Arc::clone(source));
        let (cancel, memory) = (Arc::clone(cancel), Arc::clone(&self.memory));
        let is_first = self.running.fetch_add(1, Ordering::Relaxed) == 0;
        let is_free = is_first && self.settings.host.lag_bytes() <= LAG_SLOW;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if is_free { processors.min(THREADS) } else { 1 };
        let work = move || {
            let run = Run { threads, cancel: &cancel, memory: &memory };
            kinds::compute(&*source, &run, &question.asked(), &question.query)
        };
        let done = self.settings.threads.spawn_blocking(work).await;
        self.running.fetch_sub(1, Ordering::Relaxed);
        done.map_err(|error| Error::Internal(error.to_string()))
    }

    /// What an error of the computation means for the question.
    async fn failure(&self, error: AnswerError, source: &StoreSource) -> Failure {
        match error {
            AnswerError::Segment(error) => match source.read_again(error).await {
                Ok(()) => Failure::Changed,
                Err(error) => Failure::Final(of_store(error)),
            },
            AnswerError::Source(error) => match error.downcast::<SourceFault>() {
                Ok(fault) => match *fault {
                    SourceFault::Gone => Failure::Changed,
                    SourceFault::Store(error) => Failure::Final(of_store(error)),
                    SourceFault::Ended(error) => Failure::Final(Error::Internal(error)),
                },
                Err(error) => Failure::Final(Error::Internal(error.to_string())),
            },
            error => Failure::Final(self.refusal(error)),
        }
    }

    /// The error that the caller of a question sees.
    fn refusal(&self, error: AnswerError) -> Error {
        match error {
            AnswerError::Field(fault) => fault.into(),
            AnswerError::TooLarge { what, limit } => too_large(format!(
                "The question has more than {limit} {what}. Choose a shorter range, filters, or \
                 fewer values."
            )),
            AnswerError::Memory { limit } => too_large(format!(
                "The question needs more than the {} MiB of memory that questions have together. \
                 Choose a shorter range, filters, or fewer values.",
                limit / MIB
            )),
            AnswerError::TooLong => {
                let seconds = self.settings.time.as_secs();
                let detail = format!(
                    "The question took longer than {seconds} s. Choose a shorter range or fewer \
                     values."
                );
                fault(TIMEOUT, detail).into()
            }
            AnswerError::Cancelled => cancelled(),
            error => Error::Internal(error.to_string()),
        }
    }
}

/// The code of a question that takes too long.
const TIMEOUT: &str = "query_timeout";
/// The code of a question that has too much of something.
const TOO_LARGE: &str = "query_too_large";
/// The code of a question that was cancelled.
const CANCELLED: &str = "query_cancelled";

fn too_large(detail: String) -> Error {
    fault(TOO_LARGE, detail).into()
}

fn cancelled() -> Error {
    let detail = "The question was cancelled.".to_owned();
    Error::Conflict { code: CANCELLED, detail }
}

/// The error that the caller of a question sees when the store has this one.
fn of_store(error: weir_store::Error) -> Error {
    use weir_store::Error as Store;
    match error {
        Store::TooLarge { statement } => too_large(format!(
            "The question has too many {statement}. Choose a shorter range, or a filter by event."
        )),
        Store::Making { .. } => Error::Unavailable(MAKING),
        error @ (Store::Damaged { .. } | Store::Shape { .. }) => Error::Unreadable(error),
        error => Error::Store(error),
    }
}

fn outcome(found: &Result<Found>) -> Outcome {
    match found {
        Ok(_) => Outcome::Answered,
        Err(Error::Invalid(fault)) if fault.code == TIMEOUT => Outcome::TooLong,
        Err(Error::Invalid(fault)) if fault.code == TOO_LARGE => Outcome::TooLarge,
        Err(Error::Invalid(_)) => Outcome::Refused,
        Err(Error::Conflict { .. }) => Outcome::Cancelled,
        Err(Error::Unavailable(_)) => Outcome::Busy,
        Err(Error::Store(error)) if error.is_temporary() => Outcome::Busy,
        Err(_) => Outcome::Failed,
    }
}
