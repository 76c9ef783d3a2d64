//! Logins at a provider of single sign-on, begun and finished: `/login/{provider}/` and
//! `/complete/{provider}/` (SSO-20, SSO-27).
//!
//! What belongs here: cookies and redirects. What does not: who may sign in
//! (`weir-service`), and the protocols (`sso`).
//!
//! These are no forms of the app, so the rules of SEC-11 do not apply to them. An answer
//! counts only in the browser that began the login: its cookie finds the pending login. A
//! page leads to `/login/…` with a link and never with a form, because the policy of pages
//! forbids that a form leads to another site.

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use weir_app::context::Visit;
use weir_app::local_path;
use weir_app::theme::{self, Theme};
use weir_model::DomainId;
use weir_model::sso::ProviderName;
use weir_service::Error;
use weir_service::error::NOT_FOUND;
use weir_service::identity::{Identity, LoginRequest, NewSession, Origin, SignedOn};

use super::{Web, cookies, pages, visit};
use crate::dispatcher::RoutePattern;
use crate::http::error::{ApiError, ApiResult};

/// The name of SAML in addresses.
const SAML: &str = "saml";
/// Where answers by SAML are sent.
const COMPLETE_SAML: &str = "/complete/saml/";
/// The code for a provider that is not there, or not now.
const NOT_AVAILABLE: &str = "sso_not_available";
/// The code for a sign-in that failed for a reason that visitors do not learn.
const FAILED: &str = "sso_failed";
/// The code for a network that begins or fails too many sign-ins.
const TOO_MANY: &str = "sso_too_many";
const YEAR_SECONDS: u32 = 365 * 24 * 60 * 60;

/// Whether a request brings an answer by SAML: a form of another site.
pub(super) fn takes_answer(path: &str) -> bool {
    path == COMPLETE_SAML
}

/// `GET /login/{provider}/`: begins a login at a provider.
pub(super) async fn begin_login(State(web): State<Web>, request: Request) -> Response {
    let name = last_part(request.uri().path()).to_owned();
    let provider = ProviderName::parse(&name);
    if provider.is_none() && name != SAML {
        // Pages have names that no provider has.
        return pages::page_or_asset(State(web), request).await;
    }
    let (parts, _body) = request.into_parts();
    let response = match visit::of(&web, &parts).await {
        Ok(visit) if is_page(&parts) => redirect_to_provider(&web, &parts, &visit, provider).await,
        Ok(_) => not_a_page(),
        Err(error) => error.into_response(),
    };
    routed(response, "/login/{provider}/")
}

/// Whether the browser shows the answer as a page. An image or a frame of another site is
/// none: it must neither begin logins nor use up pending ones.
fn is_page(parts: &Parts) -> bool {
    parts.headers.get("sec-fetch-dest").is_none_or(|what| what == "document")
}

fn not_a_page() -> Response {
    (StatusCode::FORBIDDEN, "Open this address as a page.\n").into_response()
}

async fn redirect_to_provider(
    web: &Web,
    parts: &Parts,
    visit: &Visit,
    provider: Option<ProviderName>,
) -> Response {
    let query = Query::of(parts);
    let next = local_path::safe(query.text("next")).unwrap_or("/").to_owned();
    if !visit.keeps_sessions {
        return to_login("", &next);
    }
    let cookie =
        cookies::read(&parts.headers, visit.cookies.pending_login_name(provider.is_none()));
    let from = origin(visit, cookie);
    match login_request(web, visit, provider, &query, &next, from).await {
        Ok(LoginRequest { url, browser }) => {
            let mut response = Redirect::to(&url).into_response();
            add_cookie(&mut response, &visit.cookies.pending_login(provider.is_none(), &browser));
            response
        }
        Err(error @ (Error::Store(_) | Error::Internal(_))) => {
            ApiError::from(error).into_response()
        }
        Err(Error::SignInAgain) => {
            let next = local_path::encode(&next);
            Redirect::to(&format!("/login/again?next={next}")).into_response()
        }
        Err(Error::Throttled { wait_seconds }) => {
            later(not_begun(visit, &query, TOO_MANY, &next), wait_seconds)
        }
        Err(_) => not_begun(visit, &query, NOT_AVAILABLE, &next),
    }
}

/// To the page that the user comes from: the message is there.
fn not_begun(visit: &Visit, query: &Query, code: &str, next: &str) -> Response {
    if begins_there(visit, query) {
        to_page(code, next)
    } else if visit.ctx.is_some() && query.text("purpose").is_empty() {
        to_again(code, next)
    } else {
        to_login(code, next)
    }
}

/// Whether a link of a page of this session led here, for more than signing in.
fn begins_there(visit: &Visit, query: &Query) -> bool {
    let is_own = |token: &String| query.text("proof") == Identity::login_link_proof(token);
    visit.ctx.is_some() && visit.token.as_ref().is_some_and(is_own)
}

/// Begins a login at a provider: to sign in, to link it, or to test it.
async fn login_request(
    web: &Web,
    visit: &Visit,
    provider: Option<ProviderName>,
    query: &Query,
    next: &str,
    from: Origin<'_>,
) -> Result<LoginRequest, Error> {
    let identity = &web.app.services.identity;
    let ctx = visit.ctx.as_ref();
    let purpose = query.text("purpose");
    if purpose.is_empty() {
        return match provider {
            Some(name) => identity.begin_login(ctx, name, query.text("email"), next, from).await,
            None => identity.begin_saml_login(ctx, query.text("email"), next, from).await,
        };
    }
    let Some(ctx) = ctx else { return Err(Error::NotAuthenticated) };
    // Otherwise another site could make this browser link an account.
    if !begins_there(visit, query) {
        return Err(Error::NotFound(NOT_FOUND));
    }
    match (purpose, provider) {
        ("link", Some(name)) => identity.begin_linking(ctx, name, next, from).await,
        ("test", None) => {
            let organization = query.text("organization");
            let org = web.app.services.organizations.enter(ctx, organization).await?;
            let domain = query.text("domain").parse::<DomainId>();
            let domain = domain.map_err(|_| Error::NotFound(NOT_FOUND))?;
            identity.begin_saml_test(&org, domain, next, from).await
        }
        _ => Err(Error::NotFound(NOT_FOUND)),
    }
}

/// `GET /complete/{provider}/`: finishes a login at a provider of the instance.
pub(super) async fn complete(State(web): State<Web>, request: Request) -> Response {
    let name = last_part(request.uri().path()).to_owned();
    let (parts, _body) = request.into_parts();
    let Some(name) = ProviderName::parse(&name) else {
        return (StatusCode::NOT_FOUND, "Not found.\n").into_response();
    };
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let response = match visit::of(&web, &parts).await {
        Ok(_) if !is_page(&parts) => not_a_page(),
        Ok(visit) => {
            let cookie = cookies::read(&parts.headers, visit.cookies.pending_login_name(false));
            let from = origin(&visit, cookie);
            let finished = web.app.services.identity.finish_login(name, &query, from).await;
            finish_login(&web, &visit, finished).await.unwrap_or_else(IntoResponse::into_response)
        }
        Err(error) => error.into_response(),
    };
    routed(response, "/complete/{provider}/")
}

/// `POST /complete/saml/`: finishes a login at the SAML provider of a domain.
pub(super) async fn complete_saml(State(web): State<Web>, request: Request) -> Response {
    let response = saml_answer(&web, request).await;
    routed(response.unwrap_or_else(IntoResponse::into_response), COMPLETE_SAML)
}

async fn saml_answer(web: &Web, request: Request) -> ApiResult<Response> {
    let (parts, body) = request.into_parts();
    let visit = visit::of(web, &parts).await?;
    let limits = &web.app.limits;
    let body = to_bytes(body, limits.saml_body.size).await;
    let body = body.map_err(|_| ApiError::TooLarge(limits.saml_body.size))?;
    let form = Query(form_urlencoded::parse(&body).into_owned().take(limits.form_fields).collect());
    let cookie = cookies::read(&parts.headers, visit.cookies.pending_login_name(true));
    let (relay_state, answer) = (form.text("RelayState"), form.text("SAMLResponse"));
    let from = origin(&visit, cookie);
    let finished = web.app.services.identity.finish_saml_login(relay_state, answer, from).await;
    finish_login(web, &visit, finished).await
}

/// Leads on after a provider.
async fn finish_login(
    web: &Web,
    visit: &Visit,
    outcome: Result<SignedOn, Error>,
) -> ApiResult<Response> {
    let outcome = outcome?;
    let mut response = after_provider(&outcome, FAILED);
    if let SignedOn::Opened(session, _) = &outcome {
        set_session_cookies(web, visit, session, &mut response).await?;
    }
    Ok(response)
}

/// Where the browser continues after a provider. `failed` is the code of a refusal that has
/// none of its own.
fn after_provider(outcome: &SignedOn, failed: &'static str) -> Response {
    let to = |path: &str| local_path::safe(path).unwrap_or("/").to_owned();
    match outcome {
        SignedOn::Opened(_, next) | SignedOn::Linked(next) | SignedOn::Tested(next) => {
            Redirect::to(&to(next)).into_response()
        }
        SignedOn::NotLinked(code, next) => to_page(code.unwrap_or(failed), &to(next)),
        SignedOn::NotConfirmed(code, next) => to_again(code.unwrap_or(failed), &to(next)),
        SignedOn::Refused(code, next) => to_login(code.unwrap_or(failed), &to(next)),
        SignedOn::TooEarly(seconds, refused) => later(after_provider(refused, TOO_MANY), *seconds),
    }
}

/// Sets the cookies of a new session.
async fn set_session_cookies(
    web: &Web,
    visit: &Visit,
    session: &NewSession,
    response: &mut Response,
) -> ApiResult<()> {
    add_cookie(response, &visit.cookies.session(session));
    add_cookie(response, &visit.cookies.browser(&session.browser));
    let services = &web.app.services;
    let opened = services.identity.session(&session.token, visit.request_id.clone()).await?;
    if let Some(ctx) = opened {
        // The theme may have been chosen on another device.
        let me = services.users.me(&ctx).await?;
        let theme = Theme::from_word(me.theme_mode.as_deref().unwrap_or_default());
        let (name, word) = (theme::COOKIE, theme.word());
        let theme = format!("{name}={word}; Path=/; SameSite=Lax; Max-Age={YEAR_SECONDS}");
        add_cookie(response, &theme);
    }
    Ok(())
}

fn origin<'a>(visit: &'a Visit, browser: Option<&'a str>) -> Origin<'a> {
    Origin { site: &visit.origin, browser, peer: &visit.peer, request_id: &visit.request_id }
}

fn to_login(code: &str, next: &str) -> Response {
    let next = local_path::encode(next);
    Redirect::to(&format!("/login?error_code={code}&next={next}")).into_response()
}

/// To the page that confirms the identity of a signed-in user.
fn to_again(code: &str, next: &str) -> Response {
    let next = local_path::encode(next);
    Redirect::to(&format!("/login/again?error_code={code}&next={next}")).into_response()
}

/// To a page that shows what failed.
fn to_page(code: &str, page: &str) -> Response {
    let (page, place) = page.split_once('#').map_or((page, None), |(page, id)| (page, Some(id)));
    let sign = if page.contains('?') { '&' } else { '?' };
    let place = place.map(|id| format!("#{id}")).unwrap_or_default();
    Redirect::to(&format!("{page}{sign}error_code={code}{place}")).into_response()
}

/// Says when the request may come again.
fn later(mut response: Response, seconds: u64) -> Response {
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

fn add_cookie(response: &mut Response, cookie: &str) {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
}

fn routed(mut response: Response, pattern: &'static str) -> Response {
    response.extensions_mut().insert(RoutePattern(pattern));
    response
}

/// The name of a provider in a path.
fn last_part(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// Fields of a query or of a form. Of a field that is there twice, the first one counts.
struct Query(Vec<(String, String)>);

impl Query {
    fn of(parts: &Parts) -> Self {
        let query = parts.uri.query().unwrap_or_default();
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value)
    }
}
