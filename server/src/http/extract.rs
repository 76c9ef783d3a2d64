//! The extractors of the management API, cheap ones first: the caller and the path
//! ([`Authorized`]), then the body ([`ApiJson`]). They keep the order of checks of API-5:
//! key, organization or project in the path, limits of the key, membership, scope,
//! throttle, body. If an operation requires a level, the handler checks it after the body
//! is known to be well formed.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use http::header;
use http::request::Parts;
use serde_json::Value;
use weir_model::errors::FieldError;
use weir_model::scopes::Scope;
use weir_service::policy::{self, Action};
use weir_service::unchecked::Unchecked;
use weir_service::{Actor, Ctx, Error as ServiceError, OrgCtx, ProjectCtx, error, organizations};

use crate::app::App;
use crate::http::body::{self, SharedBody};
use crate::http::credential::{Credential, EarlyBody};
use crate::http::error::{ApiError, ApiResult};
use crate::http::guards::Guard;
use crate::http::input::{Fields, Input, Items, ValueBudget, parse_value, read_items};
use crate::http::key_use::Caller;
use crate::http::request_id::RequestId;
use crate::limits::{ApiPermit, Exhausted, HeldBytes, UserPermit};

/// The error text below an organization that is missing.
const NO_ORGANIZATION: &str = "Organization not found.";
/// The error text below a project that is missing.
const NO_PROJECT: &str = "Project not found.";

/// A caller with a scope of `S` and access to the path of kind `W`.
#[derive(Debug)]
pub struct Authorized<S, W: PathTarget = NoTarget> {
    /// The context for service calls.
    pub ctx: W::Context,
    guard: PhantomData<S>,
}

/// What a path of the API names, and the check that the caller has access to it.
pub trait PathTarget: Send + Sync + 'static {
    /// The context of service calls below such a path.
    type Context: std::fmt::Debug + Send;

    /// Checks that the caller has access.
    fn enter(
        app: &App,
        ctx: Ctx,
        path: &PathParams,
    ) -> impl Future<Output = ApiResult<Self::Context>> + Send;

    /// The caller's context without the organization or project.
    fn plain(context: &Self::Context) -> &Ctx;
}

/// The path names no organization and no project.
#[derive(Debug)]
pub struct NoTarget;

/// The path covers all organizations of the caller.
#[derive(Debug)]
pub struct InAllOrganizations;

/// The operation creates an organization.
#[derive(Debug)]
pub struct ForOrganization;

/// The path covers the whole instance, which only its staff may see.
#[derive(Debug)]
pub struct InInstance;

/// The path names an organization and ends there.
#[derive(Debug)]
pub struct AtOrganization;

/// The path names something within an organization.
#[derive(Debug)]
pub struct InOrganization;

/// The operation creates a project of the organization in the path.
#[derive(Debug)]
pub struct ForProject;

/// The operation creates a project of the caller's current organization.
#[derive(Debug)]
pub struct ForProjectOfCurrent;

/// The path names a project and ends there.
#[derive(Debug)]
pub struct AtProject;

/// The path names something within a project.
#[derive(Debug)]
pub struct InProject;

/// The path names an organization and one of its projects, and ends there.
#[derive(Debug)]
pub struct AtOrganizationProject;

/// The path names an organization, one of its projects, and an object within the project.
#[derive(Debug)]
pub struct InOrganizationProject;

impl PathTarget for NoTarget {
    type Context = Ctx;

    async fn enter(_app: &App, ctx: Ctx, _path: &PathParams) -> ApiResult<Ctx> {
        Ok(ctx)
    }

    fn plain(context: &Ctx) -> &Ctx {
        context
    }
}

impl PathTarget for InAllOrganizations {
    type Context = Ctx;

    async fn enter(_app: &App, ctx: Ctx, _path: &PathParams) -> ApiResult<Ctx> {
        policy::refuse_project_keys(&ctx)?;
        Ok(ctx)
    }

    fn plain(context: &Ctx) -> &Ctx {
        context
    }
}

impl PathTarget for ForOrganization {
    type Context = Ctx;

    async fn enter(_app: &App, ctx: Ctx, _path: &PathParams) -> ApiResult<Ctx> {
        policy::refuse_project_keys(&ctx)?;
        policy::refuse_organization_keys(&ctx)?;
        Ok(ctx)
    }

    fn plain(context: &Ctx) -> &Ctx {
        context
    }
}

impl PathTarget for InInstance {
    type Context = Ctx;

    async fn enter(app: &App, ctx: Ctx, _path: &PathParams) -> ApiResult<Ctx> {
        app.services.instance.administer(&ctx).await?;
        Ok(ctx)
    }

    fn plain(context: &Ctx) -> &Ctx {
        context
    }
}

impl PathTarget for AtOrganization {
    type Context = OrgCtx;

    async fn enter(app: &App, ctx: Ctx, path: &PathParams) -> ApiResult<OrgCtx> {
        Ok(app.services.organizations.enter(&ctx, path.get("organization_id")?).await?)
    }

    fn plain(context: &OrgCtx) -> &Ctx {
        &context.ctx
    }
}

impl PathTarget for InOrganization {
    type Context = OrgCtx;

    async fn enter(app: &App, ctx: Ctx, path: &PathParams) -> ApiResult<OrgCtx> {
        let id = path.get("organization_id")?;
        named(NO_ORGANIZATION, app.services.organizations.enter(&ctx, id).await)
    }

    fn plain(context: &OrgCtx) -> &Ctx {
        &context.ctx
    }
}

impl PathTarget for ForProject {
    type Context = OrgCtx;

    async fn enter(app: &App, ctx: Ctx, path: &PathParams) -> ApiResult<OrgCtx> {
        let organization = InOrganization::enter(app, ctx, path).await?;
        policy::check(&organization, Action::CreateProject)?;
        Ok(organization)
    }

    fn plain(context: &OrgCtx) -> &Ctx {
        &context.ctx
    }
}

impl PathTarget for ForProjectOfCurrent {
    type Context = OrgCtx;

    async fn enter(app: &App, ctx: Ctx, _path: &PathParams) -> ApiResult<OrgCtx> {
        let entered = app.services.organizations.enter(&ctx, "@current").await;
        let organization = named(organizations::NO_CURRENT, entered)?;
        policy::check(&organization, Action::CreateProject)?;
        Ok(organization)
    }

    fn plain(context: &OrgCtx) -> &Ctx {
        &context.ctx
    }
}

impl PathTarget for AtProject {
    type Context = ProjectCtx;

    async fn enter(app: &App, ctx: Ctx, path: &PathParams) -> ApiResult<ProjectCtx> {
        Ok(app.services.projects.enter(&ctx, path.get("project_id")?).await?)
    }

    fn plain(context: &ProjectCtx) -> &Ctx {
        &context.org.ctx
    }
}

impl PathTarget for InProject {
    type Context = ProjectCtx;

    async fn enter(app: &App, ctx: Ctx, path: &PathParams) -> ApiResult<ProjectCtx> {
        enter_project(app, &ctx, path.get("project_id")?).await
    }

    fn plain(context: &ProjectCtx) -> &Ctx {
        &context.org.ctx
    }
}

impl PathTarget for AtOrganizationProject {
    type Context = ProjectCtx;

    async fn enter(app: &App, ctx: Ctx, path: &PathParams) -> ApiResult<ProjectCtx> {
        let organization = InOrganization::enter(app, ctx.clone(), path).await?;
        let project = AtProject::enter(app, ctx, path).await?;
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

impl PathTarget for InOrganizationProject {
    type Context = ProjectCtx;

    async fn enter(app: &App, ctx: Ctx, path: &PathParams) -> ApiResult<ProjectCtx> {
        let organization = InOrganization::enter(app, ctx.clone(), path).await?;
        let project = InProject::enter(app, ctx, path).await?;
        if project.org.organization == organization.organization {
            Ok(project)
        } else {
            Err(ServiceError::NotFound(NO_PROJECT).into())
        }
    }

    fn plain(context: &ProjectCtx) -> &Ctx {
        &context.org.ctx
    }
}

/// Enters the project with this id, for an operation on something within it.
pub(crate) async fn enter_project(app: &App, ctx: &Ctx, id: &str) -> ApiResult<ProjectCtx> {
    named(NO_PROJECT, app.services.projects.enter(ctx, id).await)
}

/// Names a missing organization or project in the error (API-3): below it the error names
/// it, at the path itself it does not. Foreign and missing ones are the same error here,
/// so their answers are the same.
fn named<T>(sentence: &'static str, entered: Result<T, ServiceError>) -> ApiResult<T> {
    entered.map_err(|fault| match fault {
        ServiceError::NotFound(error::NOT_FOUND) => ServiceError::NotFound(sentence).into(),
        other => other.into(),
    })
}

impl<S: Guard, W: PathTarget> FromRequestParts<App> for Authorized<S, W> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> ApiResult<Self> {
        Ok(Self { ctx: admit::<W>(app, parts, S::ANY_OF).await?, guard: PhantomData })
    }
}

/// Authorizes a caller: a valid key, a path that its owner has access to, one of
/// `scopes`, and a quota that is not used up.
pub(crate) async fn admit<W: PathTarget>(
    app: &App,
    parts: &mut Parts,
    scopes: &'static [Scope],
) -> ApiResult<W::Context> {
    let request_id = RequestId::from_request_parts(parts, app).await?;
    let path = PathParams::from_request_parts(parts, app).await?;
    let Some(Credential { value, found_in }) = parts.extensions.get::<Credential>() else {
        return Err(ServiceError::NotAuthenticated.into());
    };
    let ctx = app.services.keys.authenticate(value, found_in, request_id.to_string()).await?;
    if let (Actor::Key { user, key }, Some(caller)) = (&ctx.actor, parts.extensions.get::<Caller>())
    {
        caller.is(*user, &key.id);
    }
    if let Some(permit) = parts.extensions.get::<UserPermit>() {
        permit.enter(ctx.user()).map_err(ApiError::TooManyRequests)?;
    }
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

/// If all scopes are missing, the error names the first of them.
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

/// The decoded parameters of the path; `None` when they are not UTF-8.
#[derive(Debug)]
pub struct PathParams(Option<Vec<(String, String)>>);

/// Replaces a parameter that is not UTF-8. No object has such an id, so the answer is
/// that of an unknown id.
const NO_TEXT: &str = "\u{fffd}";

impl PathParams {
    /// A parameter of the route.
    ///
    /// # Errors
    /// When the route has no parameter of this name, which is a defect of the server.
    pub fn get(&self, name: &str) -> ApiResult<&str> {
        let Some(params) = &self.0 else { return Ok(NO_TEXT) };
        let found = params.iter().find(|(given, _)| given == name);
        found
            .map(|(_, value)| value.as_str())
            .ok_or_else(|| ApiError::internal("a handler reads a parameter that its route lacks"))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathParams {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        // The only possible fault is text that is not UTF-8.
        let Ok(params) = RawPathParams::from_request_parts(parts, state).await else {
            return Ok(Self(None));
        };
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Ok(Self(Some(params.iter().map(owned).collect())))
    }
}

/// The body of a request, well formed but not validated yet. Fields are validated after
/// the rights of the caller (API-5).
#[derive(Debug)]
pub struct ApiJson<T> {
    fields: Fields,
    input: PhantomData<fn() -> T>,
    _held: HeldBody,
}

/// What a body holds of the budgets until its handler is done. The bytes of the body are
/// no longer in memory, but the texts of its values are as long.
#[derive(Debug)]
struct HeldBody {
    _texts: Arc<HeldBytes>,
    _values: ValueBudget,
}

impl<T: Input> ApiJson<T> {
    /// Whether the body has a field of this name.
    pub fn has(&self, name: &str) -> bool {
        self.fields.has(name)
    }

    /// Validates the fields and returns the input.
    ///
    /// # Errors
    /// The fault of the first invalid field.
    pub fn checked(&self) -> ApiResult<T> {
        Ok(self.read()?)
    }

    /// As [`Self::checked`], for a service that validates the input itself.
    ///
    /// # Errors
    /// The fault of the first invalid field.
    pub fn read(&self) -> Result<T, FieldError> {
        T::read(&self.fields)
    }

    /// The input for a service that checks permissions before it validates the input.
    pub fn unchecked(&self) -> Unchecked<'_, T> {
        self.unchecked_as(|input| input)
    }

    /// As [`Self::unchecked`], for a body that holds the input.
    pub fn unchecked_as<'a, I>(
        &'a self,
        input: impl FnOnce(T) -> I + Send + 'a,
    ) -> Unchecked<'a, I> {
        Unchecked::new(|| self.read().map(input))
    }
}

impl<T: Input> FromRequest<App> for ApiJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> ApiResult<Self> {
        let (parts, collected) = collect(request, app, T::FORM_MAX).await?;
        let mut budget = value_budget(app, &parts, &collected)?;
        let fields = Fields::parse(content_type(&parts), &collected.bytes, &mut budget).await?;
        let held = HeldBody { _texts: collected.held, _values: budget };
        Ok(Self { fields, input: PhantomData, _held: held })
    }
}

/// The body of a request with one object or a list of them, well formed but not validated
/// yet.
#[derive(Debug)]
pub struct ApiItems<T> {
    items: Items,
    input: PhantomData<fn() -> T>,
    _held: HeldBody,
}

/// The content of a body that may be one object or a list.
#[derive(Debug)]
pub enum OneOrMany<T> {
    /// One object.
    One(T),
    /// A list.
    Many(Vec<T>),
}

impl<T: Input> ApiItems<T> {
    /// The checked input. `may_have` checks the number of items of a list before any item
    /// is read. The items are taken out of the body.
    ///
    /// # Errors
    /// The fault of the first invalid field of the first invalid item, or `no_list` when
    /// the body is neither a list nor an object.
    pub fn read(
        &mut self,
        no_list: &'static str,
        may_have: impl FnOnce(usize) -> Result<(), FieldError>,
    ) -> Result<OneOrMany<T>, FieldError> {
        match &mut self.items {
            Items::One(fields) => Ok(OneOrMany::One(T::read(fields)?)),
            Items::Many(items) => {
                may_have(items.len())?;
                Ok(OneOrMany::Many(read_items(std::mem::take(items))?))
            }
            Items::Neither => Err(FieldError::body("invalid_input", no_list)),
        }
    }
}

impl<T: Input> FromRequest<App> for ApiItems<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> ApiResult<Self> {
        let (parts, collected) = collect(request, app, T::FORM_MAX).await?;
        let mut budget = value_budget(app, &parts, &collected)?;
        let items = Items::parse(content_type(&parts), &collected.bytes, &mut budget).await?;
        let held = HeldBody { _texts: collected.held, _values: budget };
        Ok(Self { items, input: PhantomData, _held: held })
    }
}

/// The JSON of a request, whatever its type.
#[derive(Debug)]
pub struct ApiValue {
    value: Value,
    _held: HeldBody,
}

impl ApiValue {
    /// Takes the value out of the body, whose part of the budgets stays.
    pub fn take(&mut self) -> Value {
        self.value.take()
    }
}

impl FromRequest<App> for ApiValue {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> ApiResult<Self> {
        let (parts, collected) = collect(request, app, 0).await?;
        let mut budget = value_budget(app, &parts, &collected)?;
        let value = parse_value(content_type(&parts), &collected.bytes, &mut budget)?;
        let held = HeldBody { _texts: collected.held, _values: budget };
        Ok(Self { value, _held: held })
    }
}

/// The memory for the values of a body, by its sender.
fn value_budget(app: &App, parts: &Parts, body: &SharedBody) -> ApiResult<ValueBudget> {
    match parts.extensions.get::<UserPermit>().and_then(UserPermit::user) {
        Some(user) => ValueBudget::of_user(app, user, body.bytes.len()),
        None => Ok(ValueBudget::of_unknown(app)),
    }
}

/// Reads the body, unless it was read before the caller was known. A form may have
/// `form_max` bytes if that is more than the limit of other bodies.
async fn collect(request: Request, app: &App, form_max: usize) -> ApiResult<(Parts, SharedBody)> {
    let (mut parts, body) = request.into_parts();
    let mut limits = app.limits.api_body;
    let collected = match parts.extensions.remove::<EarlyBody>() {
        Some(EarlyBody(outcome)) => {
            limits.size = app.limits.early_body.size;
            outcome
        }
        None => {
            if is_form(&parts) {
                limits.size = limits.size.max(form_max);
            }
            let budget = &app.permits.management_bytes;
            let permit = parts.extensions.get::<ApiPermit>();
            if let Some(permit) = permit {
                permit.release();
            }
            let read = body::collect(&parts, body, &limits, budget).await;
            if let Some(permit) = permit {
                permit.take().map_err(|Exhausted| ApiError::Busy)?;
            }
            read.map(SharedBody::from)
        }
    };
    let collected = collected.map_err(|fault| fault.into_api_error(limits.size))?;
    Ok((parts, collected))
}

/// Whether the body is a form that can contain files.
fn is_form(parts: &Parts) -> bool {
    let essence = content_type(parts).and_then(|media| media.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("multipart/form-data"))
}

fn content_type(parts: &Parts) -> Option<&str> {
    parts.headers.get(header::CONTENT_TYPE)?.to_str().ok()
}
