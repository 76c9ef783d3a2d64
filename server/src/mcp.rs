//! `/mcp`: questions of models by the Model Context Protocol, with personal API keys (QRY-35 to
//! QRY-38, ADR 30).
//!
//! What belongs here: the route, and the methods of the protocol. What does not: messages and
//! versions (`weir-mcp`), the tools (`mcp::tools`), and answering questions
//! (`weir_service::questions`).
//!
//! A request is complete alone: there is no session, and no stream of messages to the client.
//! The path is not in the API document: `tools/list` describes it.

mod arguments;
mod schemas;
mod tools;

use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use axum::{Json, Router};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::Serialize;
use serde_json::{Map, Value};
use weir_mcp::{
    Empty, Fault, Id, Initialized, Message, Refused, Reply, Request as McpRequest, ToolList,
    ToolResult, VERSIONS, is_supported,
};
use weir_service::{Ctx, Error as ServiceError};

use self::tools::ToolKind;
use crate::app::App;
use crate::dispatcher::RoutePattern;
use crate::http::error::{ApiError, ApiResult, FailedTool};
use crate::http::extract::{ApiValue, Authorized};
use crate::http::guards::AnyKey;
use crate::http::input::Fields;
use crate::http::key_use::{self, NoteUse};
use crate::http::{accept, credential};
use crate::router::take_permit;
use crate::web::cross_site;

/// The path of the endpoint.
pub const PATH: &str = "/mcp";

/// The version that a client says it speaks.
const VERSION_HEADER: &str = "mcp-protocol-version";

/// What a model reads before it uses a tool.
const INSTRUCTIONS: &str = "Weir is a product-analytics service. These tools read: they answer \
    questions about the events of a project, and change nothing. Call list_projects if you do not \
    know the project, and list_events and list_properties for the names that it uses, before you \
    call query or query_sql. Numbers are exact. Say which range and time zone they are of.";

/// The endpoint as a service.
pub fn router(app: &App) -> Router {
    let answers: MethodRouter<App> = post(answer);
    let answers = answers
        .fallback(async |method: Method| ApiError::MethodNotAllowed(method))
        .layer(from_fn_with_state(app.clone(), take_permit))
        .layer(from_fn(credential::find_in_header))
        .layer(from_fn_with_state(NoteUse { app: app.clone(), pattern: PATH }, key_use::note))
        .layer(from_fn_with_state(app.clone(), check_headers))
        .layer(map_response(|mut response: Response| async move {
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
            response.extensions_mut().insert(RoutePattern(PATH));
            response
        }));
    Router::new()
        .route(PATH, answers)
        .fallback(async || ApiError::UnknownPath)
        .with_state(app.clone())
}

/// Refuses pages of other sites, which can reach a machine through a name of theirs, and clients
/// that do not accept JSON. A client may ask for a stream by GET, which does not exist.
async fn check_headers(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> ApiResult<Response> {
    let headers = request.headers();
    if !cross_site::is_of_no_other_site(&app.config, headers) {
        let detail = "Pages of other sites may not use this endpoint.";
        return Err(ServiceError::Forbidden(detail.to_owned()).into());
    }
    if request.method() == Method::POST && !accept::takes_json(headers) {
        return Err(ApiError::NotAcceptable);
    }
    Ok(next.run(request).await)
}

/// Answers a message. A tool needs scopes of its own; the other methods accept every key.
async fn answer(
    auth: Authorized<AnyKey>,
    State(app): State<App>,
    headers: HeaderMap,
    mut body: ApiValue,
) -> Response {
    let McpRequest { id, method, params } = match Message::read(body.take()) {
        Ok(Message::Request(request)) => request,
        Ok(Message::Notification { .. }) => return StatusCode::ACCEPTED.into_response(),
        Err(Refused { id, fault }) => return refuse(StatusCode::BAD_REQUEST, id, fault),
    };
    if let Some(fault) = other_version(&headers) {
        return refuse(StatusCode::BAD_REQUEST, Some(id), fault);
    }
    match method.as_str() {
        "initialize" => match Initialized::answer(&params, INSTRUCTIONS) {
            Ok(initialized) => reply(&Reply::result(id, initialized)),
            Err(fault) => refuse(StatusCode::OK, Some(id), fault),
        },
        "ping" => reply(&Reply::result(id, Empty {})),
        "tools/list" => reply(&Reply::result(id, ToolList { tools: tools::all() })),
        "tools/call" => call(&app, &auth.ctx, id, params).await,
        other => refuse(StatusCode::OK, Some(id), Fault::method_not_found(other)),
    }
}

/// The fault of a version that is not spoken. A client that names none speaks one of them.
fn other_version(headers: &HeaderMap) -> Option<Fault> {
    let version = headers.get(VERSION_HEADER)?;
    if version.to_str().is_ok_and(is_supported) {
        return None;
    }
    let spoken = VERSIONS.join(", ");
    Some(Fault::invalid_request(format!("This version is not supported. Use one of {spoken}.")))
}

/// Calls a tool. An error of the tool is a result, so that the model reads it.
async fn call(app: &App, ctx: &Ctx, id: Id, mut params: Map<String, Value>) -> Response {
    let refused = |fault: Fault, id: Id| refuse(StatusCode::OK, Some(id), fault);
    let tool = params.get("name").and_then(Value::as_str).and_then(ToolKind::named);
    let Some(tool) = tool else {
        return refused(Fault::invalid_params("`name` must be the name of a tool."), id);
    };
    let arguments = match params.remove("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return refused(Fault::invalid_params("`arguments` must be an object."), id),
    };
    match tools::call(app, ctx, tool, &Fields::of_object(arguments)).await {
        Ok(found) => reply(&Reply::result(id, ToolResult::found(found))),
        Err(error) => {
            let mut response = error.into_response();
            response.extensions_mut().insert(FailedTool(id));
            response
        }
    }
}

fn reply<R: Serialize>(reply: &Reply<R>) -> Response {
    Json(reply).into_response()
}

fn refuse(status: StatusCode, id: Option<Id>, fault: Fault) -> Response {
    (status, Json(Reply::fault(id, fault))).into_response()
}
