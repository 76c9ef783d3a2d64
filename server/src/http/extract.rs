//! The extractors of the management API, cheap to dear: who calls and where
//! ([`Authorized`]), then the body ([`ApiJson`]). They keep the order of checks
//! of management-api 1.6: key, organization or project in the path, scope,
//! throttle, body.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use http::header;
use http::request::Parts;
use weir_model::scopes::Scope;
use weir_service::{Actor, Ctx, Error as ServiceError, OrgCtx, ProjectCtx, error};

use crate::app::App;
use crate::http::body;
use crate::http::credential::{Credential, EarlyBody};
use crate::http::error::{ApiError, ApiResult};
use crate::http::guards::Guard;
use crate::http::input::{Fields, Input};
use crate::http::request_id::RequestId;

/// A caller who may do what `S` guards, within the place `W` that the path names.
#[derive(Debug)]
pub struct Authorized<S, W: Within = Anywhere> {
    /// The context for service calls.
    pub ctx: W::Context,
    guard: PhantomData<S>,
}

/// What the path is within.
pub trait Within: Send + Sync + 'static {
    /// The context of calls there.
    type Context: std::fmt::Debug + Send;

    /// Proves that the caller may see the place.
    fn enter(
        app: &App,
        ctx: Ctx,
        path: &PathParams,
    ) -> impl Future<Output = ApiResult<Self::Context>> + Send;

    /// The plain context within.
    fn plain(context: &Self::Context) -> &Ctx;
}

/// The path names no organization and no project.
#[derive(Debug)]
pub struct Anywhere;

/// The path names an organization.
#[derive(Debug)]
pub struct InOrganization;

/// The path names a project.
#[derive(Debug)]
pub struct InProject;

/// The path names an organization and a project of it.
#[derive(Debug)]
pub struct InOrganizationProject;

impl Within for Anywhere {
    type Context = Ctx;

    async fn enter(_app: &App, ctx: Ctx, _path: &PathParams) -> ApiResult<Ctx> {
        Ok(ctx)
    }

    fn plain(context: &Ctx) -> &Ctx {
        context
    }
}

impl Within for InOrganization {
    type Context = OrgCtx;

    async fn enter(app: &App, ctx: Ctx, path: &PathParams) -> ApiResult<OrgCtx> {
        Ok(app.services.organizations.enter(&ctx, path.get("organization_id")?).await?)
    }

    fn plain(context: &OrgCtx) -> &Ctx {
        &context.ctx
    }
}

impl Within for InProject {
    type Context = ProjectCtx;

    async fn enter(app: &App, ctx: Ctx, path: &PathParams) -> ApiResult<ProjectCtx> {
        Ok(app.services.projects.enter(&ctx, path.get("project_id")?).await?)
    }

    fn plain(context: &ProjectCtx) -> &Ctx {
        &context.org.ctx
    }
}

impl Within for InOrganizationProject {
    type Context = ProjectCtx;

    async fn enter(app: &App, ctx: Ctx, path: &PathParams) -> ApiResult<ProjectCtx> {
        let organization = InOrganization::enter(app, ctx.clone(), path).await?;
        let project = InProject::enter(app, ctx, path).await?;
        if project.org.organization == organization.organization {
            Ok(project)
        } else {
            Err(ServiceError::NotFound(error::NOT_FOUND).into())
        }
    }

    fn plain(context: &ProjectCtx) -> &Ctx {
        &context.org.ctx
    }
}

impl<S: Guard, W: Within> FromRequestParts<App> for Authorized<S, W> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> ApiResult<Self> {
        Ok(Self { ctx: admit::<W>(app, parts, S::ANY_OF).await?, guard: PhantomData })
    }
}

/// Lets a caller in: a valid key, a place that its owner may see, one of
/// `scopes`, and not too often.
pub(crate) async fn admit<W: Within>(
    app: &App,
    parts: &mut Parts,
    scopes: &'static [Scope],
) -> ApiResult<W::Context> {
    let request_id = RequestId::from_request_parts(parts, app).await?;
    let path = PathParams::from_request_parts(parts, app).await?;
    let Some(Credential { value, place }) = parts.extensions.get::<Credential>() else {
        return Err(ServiceError::NotAuthenticated.into());
    };
    let ctx = app.services.keys.authenticate(value, place, request_id.to_string()).await?;
    let context = W::enter(app, ctx, &path).await?;
    let ctx = W::plain(&context);
    require_any(ctx, scopes)?;
    if let Actor::Key { key, .. } = &ctx.actor {
        app.throttle
            .count(&key.id)
            .map_err(|wait_seconds| ServiceError::Throttled { wait_seconds })?;
    }
    Ok(context)
}

/// The missing scope that is named is the first of the alternatives.
fn require_any(ctx: &Ctx, scopes: &[Scope]) -> Result<(), ServiceError> {
    let mut outcome = Ok(());
    for scope in scopes.iter().rev() {
        outcome = ctx.require(*scope);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// The decoded parameters of the path.
#[derive(Debug)]
pub struct PathParams(Vec<(String, String)>);

impl PathParams {
    /// A parameter of the route.
    ///
    /// # Errors
    /// When the route has none of this name, which is a defect of ours.
    pub fn get(&self, name: &str) -> ApiResult<&str> {
        let found = self.0.iter().find(|(given, _)| given == name);
        found
            .map(|(_, value)| value.as_str())
            .ok_or_else(|| ApiError::internal("a handler reads a parameter that its route lacks"))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathParams {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        // The only fault is text that is not UTF-8, and nothing has such an id.
        let params = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|_| ServiceError::NotFound(error::NOT_FOUND))?;
        Ok(Self(params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
    }
}

/// The body of a request, well formed but not yet judged: field validation
/// comes after the rights of the caller (management-api 1.6).
#[derive(Debug)]
pub struct ApiJson<T> {
    fields: Fields,
    input: PhantomData<fn() -> T>,
}

impl<T: Input> ApiJson<T> {
    /// The checked input.
    ///
    /// # Errors
    /// What is wrong with the first field at fault.
    pub fn checked(&self) -> ApiResult<T> {
        Ok(T::read(&self.fields)?)
    }
}

impl<T: Input> FromRequest<App> for ApiJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> ApiResult<Self> {
        let (mut parts, body) = request.into_parts();
        let limits = &app.limits.api_body;
        let collected = match parts.extensions.remove::<EarlyBody>() {
            Some(EarlyBody(outcome)) => outcome,
            None => body::collect(&parts.headers, body, limits, &app.shares.management_bytes)
                .await
                .map(Arc::new),
        };
        let collected = collected.map_err(|fault| fault.into_api_error(limits))?;
        let content_type = parts.headers.get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let fields = Fields::parse(content_type, &collected.bytes).await?;
        Ok(Self { fields, input: PhantomData })
    }
}
