//! Questions about the events of a project (QRY-1 to QRY-65, API-61).
//!
//! What belongs here: who may ask, what a question depends on beside its events, running it
//! within its limits, answers that were computed before, and the errors that callers see.
//! What does not: what a question means (`weir-questions`), how an answer is computed from
//! columns (`weir-answer`), and how many questions run at a time (the server,
//! [`QuestionHost`]).

mod engine;
mod kinds;
mod persons;
mod recent;
mod results;
mod source;
mod stop;
mod tables;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use weir_model::errors::FieldError;
use weir_model::{OrganizationId, ProjectId, Timestamp};
use weir_questions::Query;
use weir_questions::query::FilterGroup;
use weir_questions::results::Answer;
use weir_questions::time::{Calendar, WeekStart};
use weir_store::events::{self, EventBounds, TimeRange};
use weir_store::projects;

use self::engine::{Engine, Question};
use self::recent::Key;
use self::stop::{Stop, StopWhenDropped};
use crate::ctx::{ProjectCtx, SharedProject};
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};
use crate::{Core, Result};

pub use self::kinds::{ActorsInfo, KINDS, RowsInfo};
pub use self::persons::{NumberPerson, NumberPersons};
pub use self::recent::Status;
pub use self::tables::{SqlColumn, SqlTable, sql_tables};

/// The most characters of the id that a client gives a question.
pub const ID_MAX: usize = 100;

/// What the engine of questions needs of the server.
#[async_trait]
pub trait QuestionHost: Send + Sync {
    /// Returns when a question may begin. It has ended when the permit is dropped. `None`: too
    /// many questions of the same asker wait.
    async fn permit(&self, asker: Asker) -> Option<QuestionPermit>;

    /// The bytes of acknowledged events that are not applied yet, without those of imports.
    fn lag_bytes(&self) -> u64;

    /// Notes a question that has ended.
    fn ended(&self, ended: Ended);
}

/// Who asks a question. Waiting askers get permits in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Asker {
    /// The members of an organization, and its API keys.
    Members(OrganizationId),
    /// The visitors of its share links.
    Visitors(OrganizationId),
    /// Its alerts.
    Alerts(OrganizationId),
    /// Its subscriptions.
    Subscriptions(OrganizationId),
}

impl Asker {
    const fn organization(self) -> OrganizationId {
        match self {
            Self::Members(organization)
            | Self::Visitors(organization)
            | Self::Alerts(organization)
            | Self::Subscriptions(organization) => organization,
        }
    }
}

/// The permit of a question, until it is dropped.
pub type QuestionPermit = Box<dyn std::any::Any + Send>;

/// A question that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The word of its kind.
    pub kind: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether the answer was computed before. `None`: this was not found out.
    pub is_cached: Option<bool>,
    /// How long it took, with the wait for a permit.
    pub took: Duration,
}

/// How a question ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// With an answer.
    Answered,
    /// It cannot be answered as it is.
    Refused,
    /// It took too long.
    TooLong,
    /// It needs too much memory.
    TooLarge,
    /// It was cancelled, or its client has left.
    Cancelled,
    /// Others were asked, or the service had other work.
    Busy,
    /// The service failed.
    Failed,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 7] = [
        Self::Answered,
        Self::Refused,
        Self::TooLong,
        Self::TooLarge,
        Self::Cancelled,
        Self::Busy,
        Self::Failed,
    ];

    /// Its word.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::TooLong => "too_long",
            Self::TooLarge => "too_large",
            Self::Cancelled => "cancelled",
            Self::Busy => "busy",
            Self::Failed => "failed",
        }
    }
}

/// What questions may use.
pub struct Settings {
    /// The threads that compute answers.
    pub threads: Handle,
    /// The server.
    pub host: Arc<dyn QuestionHost>,
    /// Bytes of memory of all questions together.
    pub memory: usize,
    /// Bytes of answers that are kept for equal questions. 0: none are kept.
    pub kept: usize,
    /// Time for one question.
    pub time: Duration,
}

/// Which answers that were computed before suffice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Refresh {
    /// One that still holds, or one from a moment ago.
    #[default]
    Usual,
    /// None.
    Always,
    /// Any.
    Never,
}

/// How a question is asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asking {
    /// Which answers suffice.
    pub refresh: Refresh,
    /// The id that the client gives it, to cancel it by.
    pub id: Option<String>,
}

/// The answer to a question.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The answer. The results have the shape that `weir_questions::results` has for the kind
    /// of the question.
    pub answer: Answer<Box<RawValue>>,
    /// Of an answer in rows: a list of events or persons, or one to a question in SQL.
    pub rows: Option<RowsInfo>,
    /// The same for equal questions at the same time.
    pub cache_key: String,
}

/// Whose events a question is about, and when it is asked.
#[derive(Clone, Copy)]
struct EventOwner {
    asker: Asker,
    project: ProjectId,
    now: Timestamp,
}

impl EventOwner {
    fn of(project: &ProjectCtx) -> Self {
        let (asker, now) = (Asker::Members(project.org.organization), project.org.ctx.now);
        Self { asker, project: project.project, now }
    }
}

/// Waits for answers, at most for this time. `None`: they take longer.
pub async fn within<T>(time: Duration, answers: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(time, answers).await.ok()
}

/// The service for questions.
#[derive(Clone)]
pub struct Questions {
    core: Arc<Core>,
    engine: Arc<Engine>,
    threads: Handle,
}

impl Questions {
    pub(crate) fn new(core: Arc<Core>, settings: Settings) -> Self {
        let threads = settings.threads.clone();
        let engine = Engine::new(core.store.clone(), core.clock.clone(), settings);
        Self { core, engine: Arc::new(engine), threads }
    }

    /// Answers a question. It is cancelled when the future is dropped.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Invalid`] for a question that cannot be answered, with
    /// the code `query_timeout` or `query_too_large` if that is for its cost;
    /// [`Error::Conflict`] when it was cancelled; [`Error::Unavailable`] when too many others
    /// are asked; [`Error::Unreadable`] when stored events are damaged.
    pub async fn ask(
        &self,
        project: &ProjectCtx,
        query: Query,
        asking: Asking,
    ) -> Result<Answered> {
        policy::check(&project.org, Action::AskQuestions)?;
        let Asking { refresh, id } = asking;
        let key = id.map(|id| Key::of(project, id));
        self.answer(EventOwner::of(project), query, refresh, key).await
    }

    /// Answers a question of the dashboard of a share link, as [`ask`](Self::ask). Lists of
    /// events or persons and SQL are refused: they can show single persons, and each visitor
    /// would have them computed again.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub async fn ask_shared(&self, shared: SharedProject, query: Query) -> Result<Answered> {
        if !kinds::is_kept(&query) {
            let detail =
                "Lists of events or persons and SQL are not answered through a share link.";
            return Err(fault("invalid_input", detail).into());
        }
        let SharedProject { organization, project, now } = shared;
        let owner = EventOwner { asker: Asker::Visitors(organization), project, now };
        self.answer(owner, query, Refresh::Usual, None).await
    }

    /// Answers the question of an alert with the events that are stored now.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub(crate) async fn ask_for_alert(
        &self,
        organization: OrganizationId,
        project: ProjectId,
        query: Query,
    ) -> Result<Answered> {
        let now = self.core.clock.now();
        let owner = EventOwner { asker: Asker::Alerts(organization), project, now };
        self.answer(owner, query, Refresh::Always, None).await
    }

    /// Answers a question for the mails of a subscription.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub(crate) async fn ask_for_subscription(
        &self,
        organization: OrganizationId,
        project: ProjectId,
        query: Query,
    ) -> Result<Answered> {
        let now = self.core.clock.now();
        let owner = EventOwner { asker: Asker::Subscriptions(organization), project, now };
        self.answer(owner, query, Refresh::Usual, None).await
    }

    async fn answer(
        &self,
        owner: EventOwner,
        query: Query,
        refresh: Refresh,
        key: Option<Key>,
    ) -> Result<Answered> {
        let question = Arc::new(self.question(owner, query, refresh).await?);
        let stop = Arc::new(Stop::default());
        // The client may leave. The question ends soon after, and has its permit until then.
        let _guard = StopWhenDropped(Arc::clone(&stop));
        let (engine, timezone) = (Arc::clone(&self.engine), question.timezone.clone());
        let number = key.clone().map(|key| engine.recent.begin(key, owner.now, &stop));
        let task = async move {
            let found = engine.answer(&question, &stop).await;
            if let Some((key, number)) = key.zip(number) {
                engine.recent.end(&key, number, engine.clock.now(), &found);
            }
            found
        };
        let done = self.threads.spawn(task).await;
        let found = done.map_err(|error| Error::Internal(error.to_string()))??;
        let computed = &found.computed;
        Ok(Answered {
            answer: Answer {
                results: computed.results.clone(),
                has_more: computed.has_more,
                resolved_date_range: computed.range.clone(),
                timezone,
                is_cached: found.is_cached,
                last_refresh: computed.at,
            },
            rows: computed.rows.clone(),
            cache_key: found.cache_key,
        })
    }

    /// How a question of the last minute is doing that the caller has given this id.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub fn status(&self, project: &ProjectCtx, id: &str) -> Result<Status> {
        policy::check(&project.org, Action::AskQuestions)?;
        let found = self.engine.recent.status(&Key::of(project, id.to_owned()));
        found.ok_or(Error::NotFound(NOT_FOUND))
    }

    /// Cancels a question of the caller. One that has ended stays as it is.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub fn cancel(&self, project: &ProjectCtx, id: &str) -> Result<()> {
        policy::check(&project.org, Action::AskQuestions)?;
        let is_known = self.engine.recent.cancel(&Key::of(project, id.to_owned()));
        is_known.then_some(()).ok_or(Error::NotFound(NOT_FOUND))
    }

    /// The bytes of memory that questions use now.
    pub fn memory_used(&self) -> usize {
        self.engine.memory_used()
    }

    async fn question(
        &self,
        owner: EventOwner,
        query: Query,
        refresh: Refresh,
    ) -> Result<Question> {
        let EventOwner { asker, project, now } = owner;
        let store = &self.core.store;
        let row = projects::find(store, project).await?;
        let row = row.filter(|row| row.brief.organization == asker.organization());
        let row = row.ok_or(Error::NotFound(NOT_FOUND))?;
        let timezone = row.brief.timezone;
        let week_start = WeekStart::of_project(row.week_start_day);
        let calendar = Calendar::new(&timezone, week_start);
        let no_zone = || Error::Internal(format!("the zone {timezone} is not in the table"));
        let calendar = calendar.ok_or_else(no_zone)?;
        let earliest = match kinds::needs_earliest(&query) {
            true => {
                let time = TimeRange { start: i64::MIN, end: i64::MAX };
                let all = EventBounds { after: 0, up_to: u64::MAX, time };
                events::next_time(store, project, all, i64::MIN).await?
            }
            false => None,
        };
        let json = serde_json::to_string(&query).map_err(|_| unwritable())?;
        Ok(Question {
            asker,
            project,
            query,
            json,
            calendar,
            timezone,
            week_start,
            now,
            earliest: earliest.map(Timestamp::from_micros),
            // Projects have no such filters.
            internal: FilterGroup::default(),
            refresh,
        })
    }
}

fn unwritable() -> Error {
    Error::Internal("a question cannot be written as JSON".to_owned())
}

/// The fault of the whole question.
fn fault(code: &str, detail: impl Into<String>) -> FieldError {
    FieldError::new("query", code, detail)
}
