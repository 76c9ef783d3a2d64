//! `/scim/v2/{domain}/`: SCIM 2.0 for the identity provider of a domain (SSO-50 and later).
//!
//! What belongs here: the routes, the token of a request, bodies and answers of the
//! protocol. What does not: users and groups (`weir-service`), the shapes of the protocol
//! (`weir-scim`).
//!
//! The paths are not in the API document: the protocol describes them, and
//! `/Schemas` says what Weir keeps of it.

mod answer;
mod request;

use axum::Router;
use axum::extract::State;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use http::{Method, StatusCode};
use serde_json::Value;
use weir_scim::{LIST, resource_types, schemas, service_provider_config};
use weir_service::scim::ScimError;

use self::answer::{Answer, Refused, answer, created, list, shown};
use self::request::{Document, IdentityProvider, Question, Target};
use crate::app::App;
use crate::dispatcher::RoutePattern;
use crate::http::credential;
use crate::http::error::ApiError;
use crate::http::extract::PathParams;
use crate::router::take_permit;

/// The beginning of all paths.
pub const PREFIX: &str = "/scim/v2/";

/// The SCIM endpoints as a service.
pub fn router(app: &App) -> Router {
    let users = get(list_users).post(create_user);
    let user = get(get_user).put(replace_user).patch(patch_user).delete(delete_user);
    let groups = get(list_groups).post(create_group);
    let group = get(get_group).put(replace_group).patch(patch_group).delete(delete_group);
    let me = get(not_supported)
        .post(not_supported)
        .put(not_supported)
        .patch(not_supported)
        .delete(not_supported);
    let routes: [(&'static str, MethodRouter<App>); 14] = [
        ("/scim/v2/{domain}/Users", users),
        ("/scim/v2/{domain}/Users/.search", post(search_users)),
        ("/scim/v2/{domain}/Users/{id}", user),
        ("/scim/v2/{domain}/Groups", groups),
        ("/scim/v2/{domain}/Groups/.search", post(search_groups)),
        ("/scim/v2/{domain}/Groups/{id}", group),
        ("/scim/v2/{domain}/.search", post(search_all)),
        ("/scim/v2/{domain}/Me", me),
        ("/scim/v2/{domain}/Bulk", post(not_supported)),
        ("/scim/v2/{domain}/ServiceProviderConfig", get(get_config)),
        ("/scim/v2/{domain}/ResourceTypes", get(list_resource_types)),
        ("/scim/v2/{domain}/ResourceTypes/{id}", get(get_resource_type)),
        ("/scim/v2/{domain}/Schemas", get(list_schemas)),
        ("/scim/v2/{domain}/Schemas/{id}", get(get_schema)),
    ];
    let mut router = Router::new();
    for (path, handlers) in routes {
        let pattern = RoutePattern(path);
        let handlers = handlers
            .fallback(async |method: Method| ApiError::MethodNotAllowed(method))
            .layer(from_fn_with_state(app.clone(), take_permit))
            .layer(from_fn(credential::find_in_header))
            .layer(map_response(move |mut response: Response| async move {
                response.extensions_mut().insert(pattern);
                response
            }));
        router = router.route(path, handlers);
    }
    router.fallback(async || ApiError::UnknownPath).with_state(app.clone())
}

async fn list_users(
    provider: IdentityProvider,
    State(app): State<App>,
    question: Question,
) -> Answer {
    let listing = question.listing()?;
    list(&listing, app.services.scim.list_users(&provider.ctx, &listing).await?)
}

async fn search_users(
    provider: IdentityProvider,
    State(app): State<App>,
    body: Document,
) -> Answer {
    let listing = body.listing()?;
    list(&listing, app.services.scim.list_users(&provider.ctx, &listing).await?)
}

async fn get_user(target: Target, State(app): State<App>) -> Answer {
    shown(&target, &app.services.scim.get_user(&target.ctx, &target.id).await?)
}

async fn create_user(
    provider: IdentityProvider,
    State(app): State<App>,
    question: Question,
    body: Document,
) -> Answer {
    let selection = question.selection()?;
    created(&selection, &app.services.scim.create_user(&provider.ctx, &body.value).await?)
}

async fn replace_user(target: Target, State(app): State<App>, body: Document) -> Answer {
    let Target { ctx, id, selection, condition, .. } = &target;
    let user = app.services.scim.replace_user(ctx, id, &body.value, condition).await?;
    answer(StatusCode::OK, selection, &user)
}

async fn patch_user(target: Target, State(app): State<App>, body: Document) -> Answer {
    let Target { ctx, id, selection, condition, .. } = &target;
    let user = app.services.scim.patch_user(ctx, id, &body.value, condition).await?;
    answer(StatusCode::OK, selection, &user)
}

async fn delete_user(target: Target, State(app): State<App>) -> Answer {
    app.services.scim.delete_user(&target.ctx, &target.id, &target.condition).await?;
    answer::nothing()
}

async fn list_groups(
    provider: IdentityProvider,
    State(app): State<App>,
    question: Question,
) -> Answer {
    let listing = question.listing()?;
    list(&listing, app.services.scim.list_groups_of(&provider.ctx, &listing).await?)
}

async fn search_groups(
    provider: IdentityProvider,
    State(app): State<App>,
    body: Document,
) -> Answer {
    let listing = body.listing()?;
    list(&listing, app.services.scim.list_groups_of(&provider.ctx, &listing).await?)
}

async fn get_group(target: Target, State(app): State<App>) -> Answer {
    shown(&target, &app.services.scim.get_group_of(&target.ctx, &target.id).await?)
}

async fn create_group(
    provider: IdentityProvider,
    State(app): State<App>,
    question: Question,
    body: Document,
) -> Answer {
    let selection = question.selection()?;
    created(&selection, &app.services.scim.create_group(&provider.ctx, &body.value).await?)
}

async fn replace_group(target: Target, State(app): State<App>, body: Document) -> Answer {
    let Target { ctx, id, selection, condition, .. } = &target;
    let group = app.services.scim.replace_group(ctx, id, &body.value, condition).await?;
    answer(StatusCode::OK, selection, &group)
}

async fn patch_group(target: Target, State(app): State<App>, body: Document) -> Answer {
    let Target { ctx, id, selection, condition, .. } = &target;
    let group = app.services.scim.patch_group(ctx, id, &body.value, condition).await?;
    answer(StatusCode::OK, selection, &group)
}

async fn delete_group(target: Target, State(app): State<App>) -> Answer {
    app.services.scim.delete_group(&target.ctx, &target.id, &target.condition).await?;
    answer::nothing()
}

/// Searches users and groups together.
async fn search_all(provider: IdentityProvider, State(app): State<App>, body: Document) -> Answer {
    let listing = body.listing()?;
    list(&listing, app.services.scim.list_all(&provider.ctx, &listing).await?)
}

/// What belongs to the protocol and is not here: a token is no user, so there is no `Me`.
async fn not_supported(_: IdentityProvider) -> Answer {
    Err(Refused::NotSupported)
}

async fn get_config(provider: IdentityProvider, question: Question) -> Answer {
    question.refuse_filter()?;
    answer::document(&service_provider_config(provider.ctx.base()))
}

async fn list_resource_types(provider: IdentityProvider, question: Question) -> Answer {
    question.refuse_filter()?;
    all(resource_types(provider.ctx.base()))
}

async fn get_resource_type(provider: IdentityProvider, path: PathParams) -> Answer {
    one(resource_types(provider.ctx.base()), &path)
}

async fn list_schemas(provider: IdentityProvider, question: Question) -> Answer {
    question.refuse_filter()?;
    all(schemas(provider.ctx.base()))
}

async fn get_schema(provider: IdentityProvider, path: PathParams) -> Answer {
    one(schemas(provider.ctx.base()), &path)
}

/// All documents of a kind. They are few, so there are no pages and no filters.
fn all(documents: Vec<Value>) -> Answer {
    let count = documents.len();
    answer::document(&serde_json::json!({
        "schemas": [LIST],
        "totalResults": count,
        "startIndex": 1,
        "itemsPerPage": count,
        "Resources": documents,
    }))
}

/// The document with the id of the path.
fn one(documents: Vec<Value>, path: &PathParams) -> Answer {
    let id = path.get("id")?;
    let found = documents.iter().find(|document| document["id"] == id);
    answer::document(found.ok_or(ScimError::NotFound)?)
}
