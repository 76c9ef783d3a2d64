//! The export of a person as a file, for the link on the person's page.
//!
//! What belongs here: who may download it: everyone who may open the page. What does not: its
//! form (`api::persons`).

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::uri::PathAndQuery;
use http::{HeaderValue, header};
use weir_app::local_path;
use weir_model::PersonId;
use weir_service::{Error as ServiceError, error};

use super::{Web, visit};
use crate::api::persons::{lines, lines_response};
use crate::dispatcher::RoutePattern;
use crate::http::error::{ApiError, ApiResult};
use crate::http::sending;
use crate::limits::Exhausted;

/// Answers with the export of a person.
pub(super) async fn download(
    State(web): State<Web>,
    Path((project, person)): Path<(String, String)>,
    request: Request,
) -> Response {
    let mut response = match open(&web, &project, &person, request).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    };
    response.extensions_mut().insert(RoutePattern("/_person/{project}/{person}"));
    response
}

async fn open(web: &Web, project: &str, person: &str, request: Request) -> ApiResult<Response> {
    let (parts, _body) = request.into_parts();
    let visit = visit::of(web, &parts).await?;
    let Some(ctx) = visit.ctx else {
        let requested = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let sign_in = format!("/login?next={}", local_path::encode(requested));
        return Ok(Redirect::to(&sign_in).into_response());
    };
    let permit = web.streams.enter(ctx.user()).map_err(|Exhausted| ApiError::Busy)?;
    let services = &web.app.services;
    let project = services.projects.enter(&ctx, project).await?;
    let id: Option<PersonId> = person.parse().ok();
    let id = id.ok_or(ServiceError::NotFound(error::NOT_FOUND))?;
    let export = services.persons.export(&project, id).await?;
    let name = format!("attachment; filename=\"person-{}.jsonl\"", export.person().id);
    let body = sending::body(lines(export), permit, web.app.limits.sending);
    let mut response = lines_response(body);
    if let Ok(name) = HeaderValue::from_str(&name) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, name);
    }
    let store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, store);
    Ok(response)
}
