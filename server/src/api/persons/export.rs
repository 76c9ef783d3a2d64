//! `GET /api/projects/{id}/persons/{id}/export/`: all data of a person (API-60).

use std::io;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{Stream, stream};
use http::{HeaderMap, HeaderValue, header};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::timeout;
use utoipa::ToSchema;
use uuid::Uuid;
use weir_model::Timestamp;
use weir_service::persons::PersonExport;
use weir_store::events::StoredEvent;

use super::{PersonAnswer, answer, person_id};
use crate::api::stored_object;
use crate::api::streamed::{self, PagedReader, READ_TIMEOUT, Streamed};
use crate::app::App;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{Authorized, InProject, PathParams};
use crate::http::guards::EventsRead;
use crate::http::{accept, sending};

/// The media types of JSON lines.
pub(crate) const LINES: &[&str] = &["application/x-ndjson", "application/jsonl"];
/// The media type of an answer of JSON lines.
const MEDIA: &str = "application/x-ndjson";

/// All stored data of a person. A caller that asks for JSON lines gets the person in the
/// first line and an event in each further one.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PersonExport)]
pub struct PersonExportAnswer {
    /// The events of all of its distinct ids.
    pub results: Vec<ExportedEvent>,
    /// The person.
    pub person: PersonAnswer,
}

/// An event of an export.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExportedEvent {
    /// The event's uuid, unique within the project.
    pub uuid: Uuid,
    /// Name of the event.
    pub event: String,
    /// The distinct id that the event was sent with.
    pub distinct_id: String,
    /// Time of the event.
    pub timestamp: Timestamp,
    /// When Weir accepted the event.
    pub created_at: Timestamp,
    /// Properties. Numbers are returned as they were sent.
    #[schema(value_type = Object)]
    pub properties: Box<RawValue>,
    /// Compact element chain of autocapture; empty for other events.
    pub elements_chain: String,
    /// Whether the event was imported.
    pub historical: bool,
    /// Codes of the warnings with which it was stored.
    pub warnings: Vec<String>,
}

/// The answer: an object, or lines.
#[derive(Debug)]
pub enum Exported<T> {
    /// One object.
    Whole(Streamed<T>),
    /// Lines of JSON.
    Lines(Body),
}

impl<T> IntoResponse for Exported<T> {
    fn into_response(self) -> Response {
        match self {
            Self::Whole(whole) => whole.into_response(),
            Self::Lines(body) => lines_response(body),
        }
    }
}

/// Export a person: its properties, distinct ids and events.
pub async fn export_person(
    auth: Authorized<EventsRead, InProject>,
    State(app): State<App>,
    path: PathParams,
    headers: HeaderMap,
) -> ApiResult<Exported<PersonExportAnswer>> {
    let export = app.services.persons.export(&auth.ctx, person_id(&path)?).await?;
    let user = auth.ctx.org.ctx.user();
    if !accept::names(&headers, LINES) {
        let person = to_raw_value(&answer(export.person().clone())?);
        let person = person.map_err(|_| ApiError::internal("a person is not valid JSON"))?;
        let reader = Whole { export, person };
        return Ok(Exported::Whole(Streamed::of(&app, user, reader).await?));
    }
    let permit = streamed::permit(&app, user)?;
    Ok(Exported::Lines(sending::body(lines(export), permit, app.limits.sending)))
}

/// The response of a body of lines.
pub(crate) fn lines_response(body: Body) -> Response {
    let mut response = body.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA));
    response
}

/// Reads an export as one object.
struct Whole {
    export: PersonExport,
    person: Box<RawValue>,
}

/// The members of the object in addition to its results.
#[derive(Debug, Serialize)]
struct WithPerson {
    person: Box<RawValue>,
}

impl PagedReader for Whole {
    type Item = ExportedEvent;
    type Links = WithPerson;

    async fn next_batch(&mut self) -> ApiResult<Vec<ExportedEvent>> {
        self.export.next().await?.into_iter().map(exported).collect()
    }

    fn links(&self) -> WithPerson {
        WithPerson { person: self.person.clone() }
    }

    fn may_end_early(&self) -> bool {
        false
    }
}

#[derive(Serialize)]
struct PersonLine {
    person: PersonAnswer,
}

#[derive(Serialize)]
struct EventLine {
    event: ExportedEvent,
}

/// An export as lines of JSON, some in each part.
pub(crate) fn lines(
    export: PersonExport,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    stream::try_unfold((export, true), |(mut export, is_first)| async move {
        let part = timeout(READ_TIMEOUT, next_lines(&mut export, is_first)).await;
        let text = part.unwrap_or(Err(ApiError::TimedOut)).map_err(|error| {
            tracing::warn!(%error, "the export of a person was broken off");
            io::Error::other(error)
        })?;
        Ok((!text.is_empty()).then(|| (Bytes::from(text), (export, false))))
    })
}

/// The next lines; none at the end.
async fn next_lines(export: &mut PersonExport, is_first: bool) -> ApiResult<Vec<u8>> {
    let mut text = Vec::new();
    if is_first {
        let person = answer(export.person().clone())?;
        push_line(&mut text, &PersonLine { person })?;
        return Ok(text);
    }
    for event in export.next().await? {
        push_line(&mut text, &EventLine { event: exported(event)? })?;
    }
    Ok(text)
}

fn push_line(text: &mut Vec<u8>, line: &impl Serialize) -> ApiResult<()> {
    serde_json::to_writer(&mut *text, line)
        .map_err(|_| ApiError::internal("a line cannot be written as JSON"))?;
    text.push(b'\n');
    Ok(())
}

fn exported(event: StoredEvent) -> ApiResult<ExportedEvent> {
    Ok(ExportedEvent {
        uuid: event.uuid,
        event: event.event,
        distinct_id: event.distinct_id,
        timestamp: Timestamp::from_micros(event.timestamp),
        created_at: Timestamp::from_micros(event.received_at),
        properties: stored_object(event.properties)?,
        elements_chain: event.elements_chain,
        historical: event.historical,
        warnings: event.warnings,
    })
}
