//! Answers to identity providers, in the form of the protocol.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use weir_scim::{ERROR, Fault, LIST, MEDIA_TYPE, Resource, Selection};
use weir_service::Error as ServiceError;
use weir_service::scim::{Listed, Listing, ScimError};

use super::request::Target;
use crate::http::error::ApiError;

/// Result of a handler.
pub(super) type Answer = Result<Response, Refused>;

/// Why a request is refused.
#[derive(Debug)]
pub(super) enum Refused {
    /// In the words of the protocol.
    Scim(ScimError),
    /// The documents that describe the service have no filter.
    Filtered,
    /// Weir does not have this operation of the protocol.
    NotSupported,
    /// For a reason that all surfaces share. The dispatcher writes the body.
    Common(ApiError),
}

impl From<ScimError> for Refused {
    fn from(error: ScimError) -> Self {
        match error {
            ScimError::Service(error) => Self::Common(error.into()),
            other => Self::Scim(other),
        }
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self::Scim(fault.into())
    }
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self::Common(error)
    }
}

impl From<ServiceError> for Refused {
    fn from(error: ServiceError) -> Self {
        Self::Common(error.into())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let error = match self {
            Self::Common(error) => return error.into_response(),
            Self::Filtered => {
                let detail = "These documents cannot be filtered.";
                return refused(StatusCode::FORBIDDEN, None, detail);
            }
            Self::NotSupported => {
                let detail = "This operation is not supported.";
                return refused(StatusCode::NOT_IMPLEMENTED, None, detail);
            }
            Self::Scim(error) => error,
        };
        let (status, kind, detail) = match &error {
            ScimError::Unauthorized => (
                StatusCode::UNAUTHORIZED,
                None,
                "The token is missing, was revoked, or belongs to another domain.",
            ),
            ScimError::Unverified => (
                StatusCode::FORBIDDEN,
                None,
                "The domain is not verified at present. Check its TXT record.",
            ),
            ScimError::NotFound => (StatusCode::NOT_FOUND, None, "There is no such resource."),
            ScimError::Stale => (
                StatusCode::PRECONDITION_FAILED,
                None,
                "The resource has changed: it has another version than If-Match names.",
            ),
            ScimError::LastOwner => (
                StatusCode::CONFLICT,
                None,
                "This user is the last owner of the organization. Make another member owner first.",
            ),
            ScimError::Fault(fault) => {
                let status = StatusCode::from_u16(fault.kind.status());
                let status = status.unwrap_or(StatusCode::BAD_REQUEST);
                (status, Some(fault.kind.text()), fault.detail.as_str())
            }
            ScimError::Service(_) => (StatusCode::INTERNAL_SERVER_ERROR, None, ""),
        };
        refused(status, kind, detail)
    }
}

/// An error of the protocol (RFC 7644, 3.12).
fn refused(status: StatusCode, kind: Option<&str>, detail: &str) -> Response {
    let mut body = json!({
        "schemas": [ERROR],
        "status": status.as_str(),
        "detail": detail,
    });
    if let (Some(kind), Some(members)) = (kind, body.as_object_mut()) {
        members.insert("scimType".to_owned(), Value::from(kind));
    }
    let mut response = respond(status, &body);
    if status == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    }
    response
}

fn respond(status: StatusCode, body: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, MEDIA_TYPE)];
    (status, headers, body.to_string()).into_response()
}

/// A resource with its version.
pub(super) fn answer(
    status: StatusCode,
    selection: &Selection,
    resource: &impl Resource,
) -> Answer {
    let mut body = serde_json::to_value(resource)
        .map_err(|_| ApiError::internal("a resource has no JSON form"))?;
    selection.apply(&mut body);
    let mut response = respond(status, &body);
    describe(&mut response, resource);
    Ok(response)
}

/// Adds the version and the URL of a resource.
fn describe(response: &mut Response, resource: &impl Resource) {
    let (headers, meta) = (response.headers_mut(), resource.meta());
    let version = meta.version.as_deref().and_then(|text| HeaderValue::from_str(text).ok());
    if let Some(version) = version {
        headers.insert(header::ETAG, version);
    }
    if let Ok(location) = HeaderValue::from_str(&meta.location) {
        headers.insert(header::CONTENT_LOCATION, location);
    }
}

/// A new resource, with its URL.
pub(super) fn created(selection: &Selection, resource: &impl Resource) -> Answer {
    let mut response = answer(StatusCode::CREATED, selection, resource)?;
    if let Ok(location) = HeaderValue::from_str(&resource.meta().location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// A resource, unless the sender has this version already.
pub(super) fn shown(target: &Target, resource: &impl Resource) -> Answer {
    match &resource.meta().version {
        Some(version) if target.knows(version) => {
            let mut response = StatusCode::NOT_MODIFIED.into_response();
            describe(&mut response, resource);
            Ok(response)
        }
        _ => answer(StatusCode::OK, &target.selection, resource),
    }
}

/// A page of a list.
pub(super) fn list(listing: &Listing, listed: Listed) -> Answer {
    document(&json!({
        "schemas": [LIST],
        "totalResults": listed.total,
        "startIndex": listing.start,
        "itemsPerPage": listed.resources.len(),
        "Resources": listed.resources,
    }))
}

/// A document that describes the service.
pub(super) fn document(body: &Value) -> Answer {
    Ok(respond(StatusCode::OK, body))
}

/// The answer without a body.
pub(super) fn nothing() -> Answer {
    Ok(StatusCode::NO_CONTENT.into_response())
}
