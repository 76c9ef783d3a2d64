//! Asks the questions of pages.
//!
//! What belongs here: reading a question, and the parts of its answer. What does not: what
//! pages show of its results.

use serde::de::DeserializeOwned;
use serde_json::Value;
use weir_model::Timestamp;
use weir_questions::Query;
use weir_service::questions::Asking;
use weir_service::{Error, ProjectCtx, Services};

use crate::context::ui_error;
use crate::error::UiError;

/// The answer to a question.
pub(super) struct ServiceAnswer<T> {
    pub(super) results: T,
    pub(super) has_more: bool,
    /// The last instant of its range.
    pub(super) until: Option<Timestamp>,
    /// The time zone of the project.
    pub(super) timezone: String,
    pub(super) computed_at: String,
}

/// Reads a question.
pub(super) fn read(query: &Value) -> Result<Query, UiError> {
    Query::read(query).map_err(|fault| ui_error(fault.into()))
}

/// Asks a question.
pub(super) async fn ask<T: DeserializeOwned>(
    services: &Services,
    project: &ProjectCtx,
    query: Query,
) -> Result<ServiceAnswer<T>, UiError> {
    let found = services.questions.ask(project, query, Asking::default()).await;
    let answer = found.map_err(ui_error)?.answer;
    let results = serde_json::from_str(answer.results.get());
    Ok(ServiceAnswer {
        results: results.map_err(|error| unreadable(&error))?,
        has_more: answer.has_more == Some(true),
        until: answer.resolved_date_range.map(|range| range.date_to),
        timezone: answer.timezone,
        computed_at: answer.last_refresh.to_string(),
    })
}

/// A question or an answer that is no JSON of its kind.
pub(super) fn unreadable(error: &serde_json::Error) -> UiError {
    ui_error(Error::Internal(error.to_string()))
}
