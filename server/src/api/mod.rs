//! The management API: one module per resource, in the order of the API document.
//!
//! What belongs here: handlers, the fields of bodies, the forms of answers. A handler's
//! extractors authorize the request; the handler calls a service and answers.
//! What does not: rules (`weir-service`), paths and scopes (`router`).

pub mod activity;
pub mod alerts;
pub mod annotations;
pub mod dashboards;
pub mod definitions;
pub mod domains;
pub mod events;
pub mod exports;
pub mod groups;
pub mod insights;
pub mod instance;
pub mod invites;
pub mod limits;
pub mod members;
pub mod organizations;
pub mod personal_api_keys;
pub mod persons;
pub mod plugin_configs;
pub mod plugins;
pub mod projects;
pub mod query;
pub mod roles;
pub mod saml;
mod scanned_list;
pub mod schema;
pub mod scim;
pub mod sessions;
pub mod signup;
pub mod streamed;
pub mod subscriptions;
pub mod user_links;
pub mod users;
pub mod warnings;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;
use weir_service::{Ctx, policy};

use crate::http::error::{ApiError, ApiResult};

/// A new resource: 201 with the resource.
#[derive(Debug)]
pub struct Created<T>(pub T);

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, Json(self.0)).into_response()
    }
}

/// 202 with the state of work that continues in the background.
#[derive(Debug)]
pub struct Accepted<T>(pub T);

impl<T: Serialize> IntoResponse for Accepted<T> {
    fn into_response(self) -> Response {
        (StatusCode::ACCEPTED, Json(self.0)).into_response()
    }
}

/// 204 without a body.
#[derive(Debug, Clone, Copy)]
pub struct NoContent;

impl IntoResponse for NoContent {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

/// 200 with `null`, for operations whose clients expect a body.
#[derive(Debug, Clone, Copy)]
pub struct Nothing;

impl IntoResponse for Nothing {
    fn into_response(self) -> Response {
        Json(()).into_response()
    }
}

/// The text of a stored JSON object, as a part of an answer.
///
/// # Errors
/// When the stored text is damaged.
fn stored_object(text: String) -> ApiResult<Box<RawValue>> {
    RawValue::from_string(text)
        .map_err(|_| ApiError::internal("stored properties are not valid JSON"))
}

/// The error for an operation that needs a session. The caller always has a key, because
/// the API accepts no other credential.
fn refuse_key(ctx: &Ctx) -> ApiError {
    match policy::person_only(ctx) {
        Err(refusal) => refusal.into(),
        Ok(()) => ApiError::UnknownPath,
    }
}
