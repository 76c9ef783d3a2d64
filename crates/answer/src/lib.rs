//! Answers questions from columns of events.
//!
//! What belongs here: the engine of questions. It reads the columns that a question needs,
//! filters their rows, and counts, sums or sorts them by person. What does not: which files
//! and blocks there are, and which persons (a [`Source`]); the shapes of questions, the rules
//! over the events of one person, and results (`weir-questions`); permissions and HTTP.
//!
//! Answers are exact: they do not depend on the number of threads, on the order of events, on
//! where an event is stored, or on how much memory there is (QRY-28). A question that does
//! not fit into memory is computed in several passes over parts of the persons, and fails if
//! that does not help. Nothing is written to disk.
//!
//! All functions block the thread.

mod actors;
mod batch;
mod breakdown;
mod by_person;
mod cells;
mod earliest;
mod error;
mod filter;
mod funnels;
mod lifecycle;
mod paths;
mod plan;
mod property;
mod retention;
mod run;
mod scan;
mod source;
mod span;
mod sql;
mod stickiness;
mod texts;
mod trends;
mod unique;
mod web;

use weir_model::Timestamp;
use weir_questions::query::FilterGroup;
use weir_questions::results::ResolvedRange;
use weir_questions::time::Calendar;

pub use actors::{actors, actors_times};
pub use error::{AnswerError, Result, SourceError};
pub use funnels::{FunnelResults, funnel, funnel_times};
pub use lifecycle::{lifecycle, lifecycle_times};
pub use paths::{path_times, paths};
pub use retention::{retention, retention_times};
pub use run::{Cancel, MemoryPool, Run};
pub use source::{Block, BlockEvent, OpenPart, Part, Source};
pub use sql::{
    GroupRow, PersonRow, RowSource, events, events_times, hogql, hogql_times, type_name,
};
pub use stickiness::{stickiness, stickiness_times};
pub use trends::{trends, trends_times};
pub use web::{
    web_overview, web_overview_times, web_table, web_table_times, web_trends, web_trends_times,
};

/// What a question depends on beside its events.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The calendar of the project.
    pub calendar: &'a Calendar,
    /// The current time.
    pub now: Timestamp,
    /// The time of the first event of the project. `None`: it has none.
    pub earliest: Option<Timestamp>,
    /// The filters of the project for internal users.
    pub internal: &'a FilterGroup,
}

/// Results, and what they were computed from.
#[derive(Debug, Clone, PartialEq)]
pub struct Found<T> {
    /// The results.
    pub results: T,
    /// Whether there are more breakdown values or edges than results.
    pub has_more: Option<bool>,
    /// The range of the question.
    pub range: ResolvedRange,
}
