//! The API document (OpenAPI 3.1) and its pages, made from the route table.
//!
//! What belongs here: the facts of a handler's signature ([`operation`]), the document
//! ([`mod@document`]) and the pages made from it ([`pages`]). What does not: any fact that is
//! written elsewhere. Paths, scopes and handlers come from the table, bodies from the
//! fields that an [`Input`](crate::http::input::Input) reads, answers from the types that
//! handlers return. So the document cannot differ from the service.

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

/// The document, built once.
static DOCUMENT: LazyLock<Result<Value, Defect>> =
    LazyLock::new(|| document::of(&routes(), &public_routes()));
/// Its text, written once.
static TEXT: LazyLock<String> =
    LazyLock::new(|| DOCUMENT.as_ref().map(Value::to_string).unwrap_or_default());

/// The document as JSON.
///
/// # Errors
/// A resource is described wrongly. Tests find that before a release.
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
    /// The document in a form that the caller accepts: as JSON, or labelled as YAML for a
    /// caller that accepts nothing else. Every JSON text is also YAML.
    ///
    /// # Errors
    /// As [`document()`].
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
