//! Pages: complete in the first answer, so that they work without scripts.

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderValue, Method, StatusCode, header};
use leptos::nonce::use_nonce;
use leptos::prelude::use_context;
use leptos_axum::ResponseOptions;
use weir_app::context::{self, Visit};
use weir_app::local_path;

use super::{Web, assets, visit};
use crate::dispatcher::RoutePattern;
use crate::http::error::ApiError;

/// Paths whose pages require a session.
const PRIVATE: [&str; 8] = [
    "/projects",
    "/organizations",
    "/account",
    "/login/again",
    "/gallery",
    "/search",
    "/help",
    "/instance",
];

/// Answers with an asset of this name, or else with a page.
pub(super) async fn page_or_asset(State(web): State<Web>, request: Request) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        // Pages accept no other methods. Such a request is meant for something else, such
        // as an endpoint that only other products have.
        return (StatusCode::NOT_FOUND, "Not found.\n").into_response();
    }
    let name = request.uri().path().trim_start_matches('/');
    if let Some(mut response) = assets::response(name, request.headers()) {
        response.extensions_mut().insert(RoutePattern("/{asset}"));
        return response;
    }
    let mut response = page(web, request).await;
    response.extensions_mut().insert(RoutePattern("/{page}"));
    response
}

async fn page(web: Web, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let visit = match visit::of(&web, &parts).await {
        Ok(visit) => visit,
        Err(error @ ApiError::TooManyRequests(_)) => return error.into_response(),
        Err(error) => {
            // A page cannot be served without knowing the user.
            tracing::error!(%error, "a page was not served");
            let text = "Weir is overloaded. Try again in a moment.\n";
            return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
        }
    };
    if visit.ctx.is_none() && is_private(parts.uri.path()) {
        let requested = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let next = local_path::encode(&local_path::to_open_later(requested));
        return Redirect::to(&format!("/login?next={next}")).into_response();
    }
    render(&web, visit, Request::from_parts(parts, body)).await
}

fn is_private(path: &str) -> bool {
    let within = |root: &str| {
        path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    path == "/" || PRIVATE.iter().any(|root| within(root))
}

async fn render(web: &Web, visit: Visit, request: Request) -> Response {
    let context = web.context();
    let provide = move || {
        context::provide(&context, &visit);
        allow_own_scripts();
    };
    let render = leptos_axum::render_app_async_stream_with_context(provide, weir_app::shell::shell);
    render(request).await
}

/// The policy of a page: only scripts with its nonce may run.
fn allow_own_scripts() {
    let (Some(nonce), Some(response)) = (use_nonce(), use_context::<ResponseOptions>()) else {
        return;
    };
    let policy = format!(
        "default-src 'self'; script-src 'nonce-{nonce}' 'strict-dynamic' 'wasm-unsafe-eval'; \
         style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; connect-src 'self'; \
         object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.insert_header(header::CONTENT_SECURITY_POLICY, policy);
    }
}

#[cfg(test)]
mod tests {
    use super::is_private;

    #[test]
    fn private_pages() {
        for path in [
            "/",
            "/projects/1/events",
            "/organizations",
            "/account/keys",
            "/login/again",
            "/search",
            "/help/exports",
            "/instance",
        ] {
            assert!(is_private(path), "{path}");
        }
        for path in ["/login", "/setup", "/projectsx", "/helpx", "/nothing", "/favicon.ico"] {
            assert!(!is_private(path), "{path}");
        }
    }
}
