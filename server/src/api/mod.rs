//! The management API: one module per resource, in the order of the specification.
//!
//! What belongs here: handlers, the fields of bodies, the forms of answers. A
//! handler enters (its extractors did), calls a service, and answers.
//! What does not: rules (`weir-service`), paths and scopes (`router`).

pub mod events;
pub mod organizations;
pub mod personal_api_keys;
pub mod projects;
pub mod users;
pub mod warnings;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Serialize;
use weir_service::{Ctx, policy};

use crate::http::error::ApiError;

/// A new resource: 201 with the resource.
#[derive(Debug)]
pub struct Created<T>(pub T);

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, Json(self.0)).into_response()
    }
}

/// The refusal of what only a person may do. Nobody but a key can get here,
/// because the API knows no other credential.
fn refuse_key(ctx: &Ctx) -> ApiError {
    match policy::person_only(ctx) {
        Err(refusal) => refusal.into(),
        Ok(()) => ApiError::UnknownPath,
    }
}
