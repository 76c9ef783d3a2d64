//! `/api/projects/{project_id}/query/`: questions about the events of a project (API-61).
//!
//! What belongs here: the members of requests and answers as clients of PostHog know them.
//! What does not: the shapes of questions and results (`weir-questions`), and which kinds are
//! answered (`weir_service::questions`).

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::ToSchema;
use weir_model::errors::FieldError;
use weir_model::validate::invalid_choice;
use weir_model::{Patch, Timestamp};
use weir_questions::Query;
use weir_questions::results::ResolvedRange;
use weir_service::ProjectCtx;
use weir_service::questions::{Answered, Asking, ID_MAX, Refresh, RowsInfo, Status};

use crate::api::NoContent;
use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, Authorized, InProject, PathParams};
use crate::http::guards::QueryRead;
use crate::http::input::{Fields, Input, missing};

/// Members that would change the question, and that are not supported.
const REFUSED: [&str; 2] = ["filters_override", "variables_override"];

/// The answer to a question.
#[derive(Debug, Serialize, ToSchema)]
pub struct QueryAnswer {
    /// The results. Their shape depends on the kind of the question.
    #[schema(value_type = Value)]
    pub results: Box<RawValue>,
    /// Whether there are more breakdown values, edges or rows than results; null if the
    /// question has no limit.
    #[serde(rename = "hasMore")]
    pub has_more: Option<bool>,
    /// The range that the results are about; null for lists of events or persons, and SQL.
    pub resolved_date_range: Option<QueryRange>,
    /// The names of the columns of `results`; null if they are not rows, as are the other
    /// members about rows.
    pub columns: Option<Vec<String>>,
    /// The types of the columns: for `EventsQuery` a text for each, for `ActorsQuery` null, and
    /// else a list of its name and its type.
    #[schema(value_type = Option<Vec<Value>>)]
    pub types: Option<Value>,
    /// The most rows.
    pub limit: Option<u32>,
    /// The number of rows that were skipped.
    pub offset: Option<u32>,
    /// The question as SQL; null also if SQL cannot say it.
    pub hogql: Option<String>,
    /// How many persons or groups are behind the number of an `ActorsQuery`.
    pub actors_count: Option<u64>,
    /// How many rows of an `ActorsQuery` are of persons or groups without a record.
    pub missing_actors_count: Option<u64>,
    /// The time zone of the project.
    pub timezone: String,
    /// Whether the results were computed before.
    pub is_cached: bool,
    /// When the results were computed.
    pub last_refresh: Timestamp,
    /// The same for equal questions at the same time.
    pub cache_key: String,
}

/// The range of an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct QueryRange {
    /// Its first instant.
    pub date_from: Timestamp,
    /// Its last instant, which is included.
    pub date_to: Timestamp,
}

/// How a question is doing.
#[derive(Debug, Serialize, ToSchema)]
pub struct QueryStatusAnswer {
    /// The question.
    pub query_status: QueryStatus,
}

/// A question of the last minute.
#[derive(Debug, Serialize, ToSchema)]
pub struct QueryStatus {
    /// The `client_query_id` that it was sent with.
    pub id: String,
    /// Whether it has ended.
    pub complete: bool,
    /// Whether it ended without an answer.
    pub error: bool,
    /// Why it has no answer; null if it has one, or has not ended.
    pub error_message: Option<String>,
    /// Its results; null if it has none, or if they are large.
    #[schema(value_type = Value)]
    pub results: Option<Box<RawValue>>,
    /// When it was asked.
    pub start_time: Timestamp,
    /// When it ended; null if it has not.
    pub end_time: Option<Timestamp>,
}

/// A question, and how it is asked.
pub struct QueryInput {
    query: Query,
    asking: Asking,
}

impl Input for QueryInput {
    const EXAMPLE: &'static str = r#"{
        "query": {
            "kind": "TrendsQuery",
            "series": [{"kind": "EventsNode", "event": "order placed"}]
        },
        "refresh": "blocking",
        "client_query_id": "01979e3c-7a1e-7c34-b1d5-2f60a9b1c0de"
    }"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let query = fields.value("query", true, object).ok_or_else(|| missing("query"))?;
        let query = Query::read(query).map_err(|fault| match fault.attr {
            Some(_) => fault,
            None => FieldError { attr: Some("query".to_owned()), ..fault },
        })?;
        let refresh = refresh(fields)?;
        let id = match fields.nullable_text("client_query_id", ID_MAX)? {
            Patch::Set(id) if !id.is_empty() => Some(id),
            _ => None,
        };
        for name in REFUSED {
            let value = fields.value(name, false, object);
            let says_nothing = |value: &Value| match value {
                Value::Null => true,
                Value::Object(members) => members.is_empty(),
                _ => false,
            };
            if !value.is_none_or(says_nothing) {
                let detail = "This field would change the question, and is not supported.";
                return Err(FieldError::new(name, "invalid_input", detail));
            }
        }
        Ok(Self { query, asking: Asking { refresh, id } })
    }
}

/// The JSON Schema of an object of any members.
fn object() -> Value {
    json!({"type": "object", "additionalProperties": true})
}

/// The words of `refresh`. Answers are always computed before they are sent, so those that ask
/// for an answer later are like those that wait.
const REFRESH: [(&str, Refresh); 7] = [
    ("blocking", Refresh::Usual),
    ("async", Refresh::Usual),
    ("async_except_on_cache_miss", Refresh::Usual),
    ("lazy_async", Refresh::Usual),
    ("force_blocking", Refresh::Always),
    ("force_async", Refresh::Always),
    ("force_cache", Refresh::Never),
];

fn refresh(fields: &Fields) -> Result<Refresh, FieldError> {
    const NAME: &str = "refresh";
    let words = || REFRESH.map(|(word, _)| word);
    let value = fields.value(NAME, false, || json!({"type": "string", "enum": words()}));
    match value {
        // Older clients send a boolean.
        None | Some(Value::Null | Value::Bool(false)) => Ok(Refresh::Usual),
        Some(Value::Bool(true)) => Ok(Refresh::Always),
        Some(Value::String(word)) => {
            let found = REFRESH.iter().find(|(known, _)| known == word);
            found.map(|(_, refresh)| *refresh).ok_or_else(|| invalid_choice(NAME, word))
        }
        Some(other) => Err(invalid_choice(NAME, &other.to_string())),
    }
}

/// Answer a question about the events of the project. `query` has the shape of its kind:
/// `TrendsQuery`, `FunnelsQuery`, `RetentionQuery`, `PathsQuery`, `StickinessQuery`,
/// `LifecycleQuery`, `WebOverviewQuery`, `WebStatsTableQuery`, `WebTrendsQuery`, `EventsQuery`,
/// `HogQLQuery` or `ActorsQuery`, also within a node that says how it is drawn.
pub async fn create_query(
    auth: Authorized<QueryRead, InProject>,
    State(app): State<App>,
    body: ApiJson<QueryInput>,
) -> ApiResult<Json<QueryAnswer>> {
    ask(&app, &auth.ctx, body.checked()?).await.map(Json)
}

/// The answer to a question, for every protocol that it is asked by.
pub(crate) async fn ask(
    app: &App,
    project: &ProjectCtx,
    input: QueryInput,
) -> ApiResult<QueryAnswer> {
    let QueryInput { query, asking } = input;
    let Answered { answer, rows, cache_key } =
        app.services.questions.ask(project, query, asking).await?;
    let range =
        |range: ResolvedRange| QueryRange { date_from: range.date_from, date_to: range.date_to };
    let actors = rows.as_ref().and_then(|rows| rows.actors);
    let (columns, types, limit, offset, hogql) = match rows {
        Some(RowsInfo { columns, types, limit, offset, hogql, .. }) => {
            (Some(columns), Some(types), Some(limit), Some(offset), hogql)
        }
        None => (None, None, None, None, None),
    };
    Ok(QueryAnswer {
        results: answer.results,
        has_more: answer.has_more,
        resolved_date_range: answer.resolved_date_range.map(range),
        columns,
        types,
        limit,
        offset,
        hogql,
        actors_count: actors.map(|actors| actors.count),
        missing_actors_count: actors.map(|actors| actors.missing),
        timezone: answer.timezone,
        is_cached: answer.is_cached,
        last_refresh: answer.last_refresh,
        cache_key,
    })
}

/// How a question is doing that the caller asked within the last minute.
pub async fn get_query(
    auth: Authorized<QueryRead, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<Json<QueryStatusAnswer>> {
    let id = path.get("client_query_id")?;
    let Status { begun, ended, fault, results } = app.services.questions.status(&auth.ctx, id)?;
    Ok(Json(QueryStatusAnswer {
        query_status: QueryStatus {
            id: id.to_owned(),
            complete: ended.is_some(),
            error: fault.is_some(),
            error_message: fault,
            results,
            start_time: begun,
            end_time: ended,
        },
    }))
}

/// Cancel a question of the caller. One that has ended stays as it is.
pub async fn delete_query(
    auth: Authorized<QueryRead, InProject>,
    State(app): State<App>,
    path: PathParams,
) -> ApiResult<NoContent> {
    app.services.questions.cancel(&auth.ctx, path.get("client_query_id")?)?;
    Ok(NoContent)
}
