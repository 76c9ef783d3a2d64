//! The management API: one module per resource, in the order of the protocol.
//!
//! What belongs here: handlers, the fields of bodies, the forms of answers. A
//! handler enters (its extractors did), calls a service, and answers.
//! What does not: rules (`weir-service`), paths and scopes (`router`).

pub mod accounts;
pub mod activity;
pub mod definitions;
pub mod domains;
pub mod events;
pub mod exports;
pub mod groups;
pub mod invites;
pub mod members;
pub mod organizations;
pub mod personal_api_keys;
pub mod persons;
pub mod plugin_configs;
pub mod plugins;
pub mod projects;
pub mod roles;
pub mod schema;
pub mod sessions;
pub mod signup;
pub mod streamed;
pub mod users;
mod walk;
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

/// Nothing to say: 204 without a body.
#[derive(Debug, Clone, Copy)]
pub struct NoContent;

impl IntoResponse for NoContent {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

/// Nothing to show, where clients expect a body: 200 with `null`.
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
/// When it is damaged.
fn stored_object(text: String) -> ApiResult<Box<RawValue>> {
    RawValue::from_string(text)
        .map_err(|_| ApiError::internal("stored properties are not valid JSON"))
}

/// The refusal of what only a person may do. Nobody but a key can get here,
/// because the API knows no other credential.
fn refuse_key(ctx: &Ctx) -> ApiError {
    match policy::person_only(ctx) {
        Err(refusal) => refusal.into(),
        Ok(()) => ApiError::UnknownPath,
    }
}
