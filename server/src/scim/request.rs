//! Requests of identity providers: the token, the query, the body.

use axum::extract::{FromRequest, FromRequestParts, Request};
use http::header::{self, HeaderName};
use http::request::Parts;
use serde_json::Value;
use weir_model::{KeyId, UserId};
use weir_scim::{BODY_MAX, Fault, FaultKind, MEDIA_TYPE, SearchRequest, Selection};
use weir_service::Error as ServiceError;
use weir_service::scim::{Listing, Precondition, ScimCtx, ScimError};

use super::answer::Refused;
use crate::app::App;
use crate::http::body;
use crate::http::credential::Credential;
use crate::http::error::ApiError;
use crate::http::extract::PathParams;
use crate::http::pagination::Query;
use crate::http::peer::Origin;
use crate::http::request_id::RequestId;
use crate::limits::{ApiPermit, Exhausted, HeldBytes, UserPermit};

/// The identity provider of the domain in the path.
pub(super) struct IdentityProvider {
    pub(super) ctx: ScimCtx,
}

impl FromRequestParts<App> for IdentityProvider {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refused> {
        let request_id = RequestId::from_request_parts(parts, app).await?;
        let path = PathParams::from_request_parts(parts, app).await?;
        let domain = path.get("domain")?;
        let Some(Credential { value, .. }) = parts.extensions.get::<Credential>() else {
            return Err(ScimError::Unauthorized.into());
        };
        let origin = parts.extensions.get::<Origin>().map(|origin| origin.0.clone());
        let origin = origin.unwrap_or_default();
        let scim = &app.services.scim;
        let ctx = scim.authenticate(domain, value, &origin, request_id.to_string()).await?;
        if let Some(permit) = parts.extensions.get::<UserPermit>() {
            // A domain has as many requests at a time as a user, and is no user.
            permit.enter(UserId(ctx.domain_id().0)).map_err(ApiError::TooManyRequests)?;
        }
        app.throttle
            .count(&KeyId(ctx.quota()))
            .map_err(|wait_seconds| ServiceError::Throttled { wait_seconds })?;
        Ok(Self { ctx })
    }
}

/// The query of a request.
pub(super) struct Question {
    query: Query,
}

impl FromRequestParts<App> for Question {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Refused> {
        Ok(Self { query: Query::of(parts) })
    }
}

impl Question {
    pub(super) fn listing(&self) -> Result<Listing, Fault> {
        Listing::parse(|name| self.query.param(name))
    }

    /// Refuses a filter of the documents that describe the service (RFC 7644, 4).
    pub(super) fn refuse_filter(&self) -> Result<(), Refused> {
        match self.query.param("filter") {
            None | Some("") => Ok(()),
            Some(_) => Err(Refused::Filtered),
        }
    }

    pub(super) fn selection(&self) -> Result<Selection, Fault> {
        Selection::parse(self.query.param("attributes"), self.query.param("excludedAttributes"))
    }
}

/// The resource in the path, and what the sender wants to know of it.
pub(super) struct Target {
    pub(super) ctx: ScimCtx,
    pub(super) id: String,
    pub(super) selection: Selection,
    pub(super) condition: Precondition,
    /// The versions that the sender has.
    known: Option<String>,
}

impl FromRequestParts<App> for Target {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refused> {
        let IdentityProvider { ctx } = IdentityProvider::from_request_parts(parts, app).await?;
        let path = PathParams::from_request_parts(parts, app).await?;
        let question = Question::from_request_parts(parts, app).await?;
        let text = |name: &HeaderName| {
            parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        Ok(Self {
            ctx,
            id: path.get("id")?.to_owned(),
            selection: question.selection()?,
            condition: Precondition::parse(text(&header::IF_MATCH).as_deref()),
            known: text(&header::IF_NONE_MATCH),
        })
    }
}

impl Target {
    /// Whether the sender has this version already. Versions are compared weakly (RFC 9110,
    /// 13.1.2).
    pub(super) fn knows(&self, version: &str) -> bool {
        fn opaque(version: &str) -> &str {
            let version = version.trim();
            version.strip_prefix("W/").unwrap_or(version)
        }
        let known = self.known.as_deref().unwrap_or_default();
        known.split(',').any(|one| one.trim() == "*" || opaque(one) == opaque(version))
    }
}

/// The body of a request.
pub(super) struct Document {
    pub(super) value: Value,
    _held: HeldBytes,
}

impl FromRequest<App> for Document {
    type Rejection = Refused;

    async fn from_request(request: Request, app: &App) -> Result<Self, Refused> {
        let (parts, unread) = request.into_parts();
        refuse_other_media(&parts)?;
        let mut limits = app.limits.api_body;
        limits.size = limits.size.min(BODY_MAX);
        let permit = parts.extensions.get::<ApiPermit>();
        // A body that arrives slowly holds no permit.
        if let Some(permit) = permit {
            permit.release();
        }
        let read = body::collect(&parts, unread, &limits, &app.permits.management_bytes).await;
        if let Some(permit) = permit {
            permit.take().map_err(|Exhausted| ApiError::Busy)?;
        }
        let read = read.map_err(|fault| fault.into_api_error(limits.size))?;
        let value = serde_json::from_slice(&read.bytes)
            .map_err(|_| Fault::new(FaultKind::InvalidSyntax, "The body is not valid JSON."))?;
        Ok(Self { value, _held: read.held })
    }
}

impl Document {
    /// The list that a search by POST asks for.
    pub(super) fn listing(&self) -> Result<Listing, Fault> {
        let search = SearchRequest::read(&self.value)?;
        Listing::parse(|name| search.parameter(name))
    }
}

fn refuse_other_media(parts: &Parts) -> Result<(), Refused> {
    let Some(media) = parts.headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let media = String::from_utf8_lossy(media.as_bytes()).into_owned();
    let essence = media.split(';').next().unwrap_or_default().trim();
    let is_known = [MEDIA_TYPE, "application/json"];
    if is_known.iter().any(|known| essence.eq_ignore_ascii_case(known)) {
        Ok(())
    } else {
        Err(ApiError::UnsupportedMediaType(media).into())
    }
}
