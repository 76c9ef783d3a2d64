//! The API document (OpenAPI 3.1) and its pages, made from the route table.
//!
//! What belongs here: what a handler's signature says ([`operation`]), the
//! document ([`document`]) and the pages made from it ([`pages`]). What does not:
//! anything said twice. Paths, scopes and handlers come from the table, bodies
//! from what [`Input`](crate::http::input::Input) reads, answers from the types
//! that handlers return; so the document cannot say something else than the
//! service does.

pub mod document;
mod example;
mod generators;
pub mod operation;
pub mod pages;
mod parameters;
mod responses;
mod schemas;

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};
use serde_json::Value;
use weir_service::Error as ServiceError;

use crate::http::error::ApiResult;
use crate::openapi::document::Defect;
use crate::router::{public_routes, routes};

/// The document, made once.
static DOCUMENT: LazyLock<Result<Value, Defect>> =
    LazyLock::new(|| document::of(&routes(), &public_routes()));
/// Its text, written once.
static TEXT: LazyLock<String> =
    LazyLock::new(|| DOCUMENT.as_ref().map(Value::to_string).unwrap_or_default());

/// The document.
///
/// # Errors
/// A resource does not describe itself well; the tests find that before anybody
/// else does.
pub fn document() -> ApiResult<&'static Value> {
    DOCUMENT.as_ref().map_err(|defect| ServiceError::Internal(defect.to_string()).into())
}

/// The document as an answer.
#[derive(Debug)]
pub struct Document {
    media_type: HeaderValue,
    text: &'static str,
}

impl Document {
    /// The document as a caller accepts it: as JSON, or called YAML for who takes
    /// nothing else, since every JSON text is YAML too.
    ///
    /// # Errors
    /// As [`document`].
    pub fn accepted_by(request: &HeaderMap) -> ApiResult<Self> {
        let lines = request.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
        let ranges: Vec<&str> = lines.flat_map(|line| line.split(',')).collect();
        let json = |range: &&str| range.contains("json") || range.contains('*');
        let yaml = |range: &&str| range.contains("yaml");
        let only_yaml = ranges.iter().any(yaml) && !ranges.iter().any(json);
        let media_type = if only_yaml { "application/yaml" } else { "application/json" };
        document()?;
        Ok(Self { media_type: HeaderValue::from_static(media_type), text: &TEXT })
    }
}

impl IntoResponse for Document {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, self.media_type)], self.text).into_response()
    }
}
