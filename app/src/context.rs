//! Request context: values that the server passes to pages and server functions.
//!
//! What belongs here: these values, and the functions for cookies, redirects and status
//! codes. What does not: business rules (`weir-service`), and reading requests
//! (`weir-server`).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use http::{HeaderName, HeaderValue, StatusCode, header};
use leptos::prelude::{provide_context, use_context};
use leptos_axum::ResponseOptions;
use server_fn::redirect::REDIRECT_HEADER;
use weir_model::preferences::Preferences;
use weir_service::error::{NOT_CONFIRMED, SECOND_FACTOR_MISSING};
use weir_service::exports::Trial;
use weir_service::identity::{NewSession, Origin, Peer, PendingSignIn};
use weir_service::{Ctx, Error, OrgCtx, ProjectCtx, Services};

use crate::destination_test::TriedStep;
use crate::error::UiError;
use crate::local_path;
use crate::notice::Notice;
use crate::process_facts::{ProcessFacts, ProcessFactsCollector};
use crate::theme::{self, Theme};

/// Longest lifetime of a session, in seconds.
const SESSION_SECONDS: u32 = 14 * 24 * 60 * 60;
/// How long a sign-in waits for the second factor, in seconds.
const PENDING_SECONDS: u32 = 10 * 60;
/// How long a challenge for a passkey waits, in seconds.
const PASSKEY_SECONDS: u32 = 5 * 60;
/// How long a sign-in waits for a provider, in seconds.
const PENDING_LOGIN_SECONDS: u32 = 10 * 60;
/// The page that asks for the second factor.
const SECOND_STEP: &str = "/login/2fa";
/// The page where the second factor is turned on.
const SECURITY: &str = "/account/security";
/// Message for users at an address where no session can be kept.
pub const NO_SESSION: &str = "No session can be kept safely at this address. Set public_url to the \
     https address under which people open Weir, such as https://weir.example.org, and start \
     Weir again.";
/// How long a notice waits for the next page, in seconds.
const NOTICE_SECONDS: u32 = 60;
const YEAR_SECONDS: u32 = 365 * 24 * 60 * 60;

/// Dependencies that are the same for all requests.
#[derive(Clone)]
pub struct WebContext {
    /// The services of `weir-service`.
    pub services: Services,
    /// Addresses of the built files.
    pub assets: Assets,
    /// Notifies capture about created, changed and deleted projects.
    pub projects_changed: ProjectsChanged,
    /// The path below which client libraries are answered too, such as `/ingest`; empty if
    /// there is none.
    pub capture_prefix: String,
    /// Collects the facts that staff see about the process.
    pub process_facts: ProcessFactsCollector,
    /// Tests a destination of an export.
    pub try_destination: TryDestination,
    /// Sends an event through capture, as a client would.
    pub send_event: SendEvent,
}

/// Notifies capture about the current keys of projects. When the future completes, new
/// keys work and deleted keys do not.
#[derive(Clone)]
pub struct ProjectsChanged(pub Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>);

/// Runs the steps of the test of an export's destination until one fails.
#[derive(Clone)]
pub struct TryDestination(
    pub Arc<dyn Fn(Trial) -> BoxFuture<'static, Vec<TriedStep>> + Send + Sync>,
);

/// Sends a JSON body to capture through the same code as a client's request, with this
/// client address. Returns the status of the answer.
#[derive(Clone)]
pub struct SendEvent(pub SendEventFn);

/// The function that [`SendEvent`] calls.
pub type SendEventFn = Arc<dyn Fn(String, Option<IpAddr>) -> BoxFuture<'static, u16> + Send + Sync>;

/// Addresses of the files that every page loads. `None`: the file was not built.
#[derive(Clone, Default)]
pub struct Assets {
    /// The script that starts the app.
    pub start_script: Option<String>,
    /// The scripts that the start script imports.
    pub scripts: Vec<String>,
    /// The style sheet.
    pub css: Option<String>,
    /// The addresses of the files of each area.
    pub area_code: Arc<HashMap<String, Vec<String>>>,
}

/// Names and attributes of cookies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cookies {
    /// Whether browsers send the cookies over TLS only. Off for http on this machine.
    pub secure: bool,
}

impl Cookies {
    /// Name of the cookie of a session.
    pub fn session_name(self) -> &'static str {
        if self.secure { "__Host-session" } else { "session" }
    }

    /// Name of the cookie of a sign-in that waits for the second factor.
    pub fn pending_name(self) -> &'static str {
        if self.secure { "__Host-pending" } else { "pending" }
    }

    /// Name of the cookie of a browser that left for a provider. Answers by SAML come with
    /// a request of another site, so their cookie is another one.
    pub fn pending_login_name(self, is_saml: bool) -> &'static str {
        match (is_saml, self.secure) {
            (true, true) => "__Host-sso",
            (true, false) => "sso",
            (false, true) => "__Host-pending_login",
            (false, false) => "pending_login",
        }
    }

    /// The cookie of a browser that left for a provider. Without TLS, no browser accepts a
    /// cookie for requests of other sites.
    pub fn pending_login(self, is_saml: bool, token: &str) -> String {
        let cookie = self.hidden(self.pending_login_name(is_saml), token, PENDING_LOGIN_SECONDS);
        match is_saml && self.secure {
            true => cookie.replace("SameSite=Lax", "SameSite=None"),
            false => cookie,
        }
    }

    /// Name of the cookie of a browser that was asked for a passkey.
    pub fn passkey_name(self) -> &'static str {
        if self.secure { "__Host-passkey" } else { "passkey" }
    }

    /// The cookie of a browser that was asked for a passkey.
    pub fn passkey(self, token: &str) -> String {
        self.hidden(self.passkey_name(), token, PASSKEY_SECONDS)
    }

    /// Name of the cookie with the values of a form that failed.
    pub fn typed_name(self) -> &'static str {
        if self.secure { "__Host-typed" } else { "typed" }
    }

    /// Name of the cookie with the notice for the next page.
    pub fn notice_name(self) -> &'static str {
        if self.secure { "__Host-notice" } else { "notice" }
    }

    /// Name of the cookie that marks a browser in which a user has signed in before.
    pub fn browser_name(self) -> &'static str {
        if self.secure { "__Host-browser" } else { "browser" }
    }

    /// The cookie that marks a known browser. It stays after the sign-out.
    pub fn browser(self, token: &str) -> String {
        self.hidden(self.browser_name(), token, YEAR_SECONDS)
    }

    /// The cookie of a session.
    pub fn session(self, session: &NewSession) -> String {
        self.hidden(self.session_name(), &session.token, SESSION_SECONDS)
    }

    /// The cookie of a sign-in that waits for the second factor.
    pub fn pending(self, pending: &PendingSignIn) -> String {
        self.hidden(self.pending_name(), &pending.token, PENDING_SECONDS)
    }

    /// A cookie that scripts cannot read, valid for this many seconds.
    pub fn hidden(self, name: &str, value: &str, seconds: u32) -> String {
        format!("{}; HttpOnly", self.readable(name, value, seconds))
    }

    /// A cookie that scripts can read, valid for this many seconds.
    pub fn readable(self, name: &str, value: &str, seconds: u32) -> String {
        let secure = if self.secure { "; Secure" } else { "" };
        format!("{name}={value}; Path=/; SameSite=Lax; Max-Age={seconds}{secure}")
    }
}

/// Values of one request.
#[derive(Clone)]
pub struct Visit {
    /// The signed-in user, if there is one.
    pub ctx: Option<Ctx>,
    /// The token of the session.
    pub token: Option<String>,
    /// The token of a sign-in that waits for the second factor.
    pub pending: Option<String>,
    /// The token of a browser that was asked for a passkey.
    pub passkey: Option<String>,
    /// Where the request comes from.
    pub peer: Peer,
    /// The id of the request, as in the log.
    pub request_id: String,
    /// Scheme and host to which clients can send events.
    pub origin: String,
    /// Names and attributes of cookies.
    pub cookies: Cookies,
    /// Whether a session can be opened: its cookie stays on this machine or travels over
    /// TLS.
    pub keeps_sessions: bool,
    /// The theme that the user chose.
    pub theme: Theme,
    /// Other preferences of the user.
    pub preferences: Preferences,
    /// Whether a session cannot work here, because this is plain http from another
    /// machine.
    pub insecure: bool,
    /// Whether a browser requests a page, by a link or a form.
    pub wants_page: bool,
    /// Whether the request calls a server function.
    pub is_call: bool,
    /// Path and query of the page that calls a server function.
    pub back: String,
    /// Values of a form that was not saved, without secrets. [`FUNCTION`] names the
    /// server function that it was sent to.
    pub typed: Vec<(String, String)>,
    /// The notice of the form that led to this page.
    pub notice: Option<Notice>,
}

impl Visit {
    /// Where an answer with a passkey comes from.
    pub(crate) fn passkey_origin(&self) -> Origin<'_> {
        Origin {
            site: &self.origin,
            browser: self.passkey.as_deref(),
            peer: &self.peer,
            request_id: &self.request_id,
        }
    }
}

/// Provides the values of one request to pages and server functions.
pub fn provide(web: &WebContext, visit: &Visit) {
    provide_context(web.clone());
    provide_context(visit.clone());
}

/// The values of this request, for the shell of the page.
pub(crate) fn visit() -> Option<Visit> {
    use_context()
}

fn context() -> Result<(WebContext, Visit), UiError> {
    let missing = || UiError::Internal { request_id: String::new() };
    let web = use_context::<WebContext>().ok_or_else(missing)?;
    let visit = use_context::<Visit>().ok_or_else(missing)?;
    Ok((web, visit))
}

/// The services, without a check of the user.
pub(crate) fn anyone() -> Result<(Services, Visit), UiError> {
    let (web, visit) = context()?;
    Ok((web.services, visit))
}

/// The services and the signed-in user.
pub(crate) fn enter() -> Result<(Services, Ctx), UiError> {
    let (web, visit) = context()?;
    let ctx = visit.ctx.ok_or(Error::NotAuthenticated).map_err(ui_error)?;
    Ok((web.services, ctx))
}

/// The services, the signed-in user, and the token of the session.
pub(crate) fn enter_with_token() -> Result<(Services, Ctx, String), UiError> {
    let (services, ctx) = enter()?;
    let (_, visit) = context()?;
    let token = visit.token.ok_or(Error::NotAuthenticated).map_err(ui_error)?;
    Ok((services, ctx, token))
}

/// The services, and proof that the user is a member of the organization.
pub(crate) async fn enter_organization(id: &str) -> Result<(Services, OrgCtx), UiError> {
    let (services, ctx) = enter()?;
    let org = services.organizations.enter(&ctx, id).await.map_err(ui_error)?;
    Ok((services, org))
}

/// The services, and proof that the user may see the project.
pub(crate) async fn enter_project(id: i64) -> Result<(Services, ProjectCtx), UiError> {
    let (services, ctx) = enter()?;
    let project = services.projects.enter(&ctx, &id.to_string()).await.map_err(ui_error)?;
    Ok((services, project))
}

/// Refuses a request that would open a session where none can be kept. Call it before all
/// other work.
pub(crate) fn refuse_without_session(visit: &Visit) -> Result<(), UiError> {
    if visit.keeps_sessions {
        return Ok(());
    }
    Err(ui_error(Error::Forbidden(NO_SESSION.to_owned())))
}

/// The address at which client libraries send events, with the prefix of the operator.
pub(crate) fn capture_host() -> Result<String, UiError> {
    let (web, visit) = context()?;
    Ok(format!("{}{}", visit.origin, web.capture_prefix))
}

/// Facts about the process. The caller checks who may see them.
pub(crate) async fn process_facts() -> Result<ProcessFacts, UiError> {
    let (web, _) = context()?;
    Ok((web.process_facts.0)().await)
}

/// Tests a destination until a step fails. An empty list means that there is nothing to
/// test.
pub(crate) async fn try_destination(trial: Trial) -> Result<Vec<TriedStep>, UiError> {
    let (web, _) = context()?;
    Ok((web.try_destination.0)(trial).await)
}

/// Sets the cookie of a sign-in that waits for the second factor, and redirects to the
/// page that asks for it. That page continues to `next`.
pub(crate) fn ask_second_factor(pending: &PendingSignIn, next: &str) {
    if let Ok((_, visit)) = context() {
        set_cookie(&visit.cookies.pending(pending));
    }
    go(&format!("{SECOND_STEP}?next={}", local_path::encode(next)));
}

/// Sets the cookie of a browser that is asked for a passkey.
pub(crate) fn keep_passkey(token: &str) {
    if let Ok((_, visit)) = context() {
        set_cookie(&visit.cookies.passkey(token));
    }
}

/// Deletes the cookie of a sign-in that waits for the second factor.
pub(crate) fn forget_pending() {
    if let Ok((_, visit)) = context() {
        set_cookie(&visit.cookies.hidden(visit.cookies.pending_name(), "", 0));
    }
}

/// Notifies capture. Call it after everything that creates, changes or deletes a project.
pub(crate) async fn projects_changed() {
    if let Ok((web, _)) = context() {
        (web.projects_changed.0)().await;
    }
}

/// Sends a JSON body to capture for the visitor, and returns the status of the answer.
pub(crate) async fn send_event(body: String) -> Result<u16, UiError> {
    let (web, visit) = context()?;
    Ok((web.send_event.0)(body, visit.peer.address).await)
}

/// Sets the cookies of a session.
pub(crate) fn keep_session(session: &NewSession) {
    if let Ok((_, visit)) = context() {
        set_cookie(&visit.cookies.session(session));
    }
    keep_browser(&session.browser);
}

/// Sets the cookie that marks a browser in which a user has signed in.
pub(crate) fn keep_browser(token: &str) {
    if let Ok((_, visit)) = context() {
        set_cookie(&visit.cookies.browser(token));
    }
}

/// Deletes the cookie of the session.
pub(crate) fn forget_session() {
    if let Ok((_, visit)) = context() {
        set_cookie(&visit.cookies.hidden(visit.cookies.session_name(), "", 0));
    }
}

/// Shows a notice on the next page, once.
pub(crate) fn notice(text: &str) {
    keep_notice(&Notice::new(text));
}

/// Shows a notice with an undo button on the next page. `function` is the path of the
/// server function that undoes the change, `fields` are its arguments.
pub(crate) fn notice_with_undo(text: &str, function: &str, fields: &[(&str, &str)]) {
    keep_notice(&Notice::new(text).with_undo(function, fields));
}

/// Redirects to another page of this site, and shows a notice there.
pub(crate) fn redirect_with_notice(path: &str, text: &str) {
    notice(text);
    go(path);
}

fn keep_notice(notice: &Notice) {
    if let Ok((_, visit)) = context() {
        let name = visit.cookies.notice_name();
        set_cookie(&visit.cookies.readable(name, &notice.text_in_cookie(), NOTICE_SECONDS));
    }
}

/// Deletes the notice that the page has shown.
pub(crate) fn forget_notice() {
    if let Ok((_, visit)) = context() {
        set_cookie(&visit.cookies.hidden(visit.cookies.notice_name(), "", 0));
    }
}

/// Sets the theme cookie.
pub(crate) fn keep_theme(theme: Theme) {
    let (name, word) = (theme::COOKIE, theme.word());
    set_cookie(&format!("{name}={word}; Path=/; SameSite=Lax; Max-Age={YEAR_SECONDS}"));
}

fn set_cookie(cookie: &str) {
    if let (Some(response), Ok(value)) =
        (use_context::<ResponseOptions>(), HeaderValue::from_str(cookie))
    {
        response.append_header(header::SET_COOKIE, value);
    }
}

/// Redirects to another page of this site, after a form or a call by a script.
pub(crate) fn go(path: &str) {
    let (Ok((_, visit)), Some(response)) = (context(), use_context::<ResponseOptions>()) else {
        return;
    };
    let path = local_path::safe(path).unwrap_or("/");
    if let Ok(location) = HeaderValue::from_str(path) {
        response.insert_header(header::LOCATION, location);
    }
    if visit.wants_page {
        response.set_status(StatusCode::SEE_OTHER);
    } else {
        let name = HeaderName::from_static(REDIRECT_HEADER);
        response.insert_header(name, HeaderValue::from_static(""));
    }
}

/// Converts an error of a service for the page. Sets the status of the answer, redirects
/// to the sign-in where that helps, and logs internal errors.
pub fn ui_error(error: Error) -> UiError {
    let request_id = context().map(|(_, visit)| visit.request_id).unwrap_or_default();
    let (status, shown) = match error {
        Error::Invalid(fault) => (StatusCode::BAD_REQUEST, UiError::Field(fault)),
        Error::NotConfirmed { .. } => {
            (StatusCode::BAD_REQUEST, UiError::form("not_verified", NOT_CONFIRMED))
        }
        Error::Conflict { code, detail } => (StatusCode::CONFLICT, UiError::form(code, &detail)),
        Error::TooMany { code, detail } => {
            (StatusCode::TOO_MANY_REQUESTS, UiError::form(code, &detail))
        }
        Error::NotFound(_) => (StatusCode::NOT_FOUND, UiError::NotFound),
        Error::Forbidden(why) => (StatusCode::FORBIDDEN, UiError::Forbidden(why)),
        Error::MissingScope(_) => {
            let why = "Your session does not allow this.".to_owned();
            (StatusCode::FORBIDDEN, UiError::Forbidden(why))
        }
        Error::NotAuthenticated | Error::BadCredential(_) => {
            lead_to("/login");
            (StatusCode::UNAUTHORIZED, UiError::SignIn)
        }
        Error::SignInAgain => {
            lead_to("/login/again");
            (StatusCode::FORBIDDEN, UiError::SignInAgain)
        }
        // Server functions that can end in this call `ask_second_factor` first.
        Error::SecondFactor(_) => (StatusCode::UNAUTHORIZED, UiError::SignIn),
        Error::SecondFactorMissing => {
            let shown = UiError::Forbidden(SECOND_FACTOR_MISSING.to_owned());
            if is_account_page() {
                // The frame of the security page calls services too. No redirect to that
                // page from itself.
                return shown;
            }
            go(SECURITY);
            (StatusCode::FORBIDDEN, shown)
        }
        Error::Throttled { wait_seconds } => {
            (StatusCode::TOO_MANY_REQUESTS, UiError::Throttled { seconds: wait_seconds })
        }
        Error::Unavailable(_) => {
            (StatusCode::SERVICE_UNAVAILABLE, UiError::Unavailable { request_id })
        }
        Error::Store(cause) if cause.is_temporary() => {
            tracing::warn!(error = chain(&cause), request.id = request_id, "page not served");
            (StatusCode::SERVICE_UNAVAILABLE, UiError::Unavailable { request_id })
        }
        error @ (Error::Store(_) | Error::Unreadable(_) | Error::Internal(_)) => {
            tracing::error!(error = chain(&error), request.id = request_id, "page failed");
            (StatusCode::INTERNAL_SERVER_ERROR, UiError::Internal { request_id })
        }
    };
    set_status(status);
    shown
}

/// Sets the status 404.
pub(crate) fn set_not_found() {
    set_status(StatusCode::NOT_FOUND);
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// Sets the status of a page, or of a call by a script. Forms are answered with a
/// redirect and keep its status.
fn set_status(status: StatusCode) {
    let (Ok((_, visit)), Some(response)) = (context(), use_context::<ResponseOptions>()) else {
        return;
    };
    let redirected =
        response.0.read().is_ok_and(|parts| parts.headers.contains_key(header::LOCATION));
    let is_form = visit.is_call && visit.wants_page;
    if !is_form && !redirected {
        response.set_status(status);
    }
}

/// Redirects a page or a form to the sign-in and back. Scripts read the error instead.
fn lead_to(sign_in: &str) {
    let Ok((_, visit)) = context() else { return };
    if visit.wants_page {
        let back = if visit.is_call {
            visit.back
        } else {
            let parts = use_context::<http::request::Parts>();
            let requested = parts.as_ref().and_then(|parts| parts.uri.path_and_query());
            local_path::to_open_later(requested.map_or("/", http::uri::PathAndQuery::as_str))
        };
        go(&format!("{sign_in}?next={}", local_path::encode(&back)));
    }
}

/// Whether the request is for a page below `/account`, or comes from one.
fn is_account_page() -> bool {
    let Ok((_, visit)) = context() else { return false };
    let requested = use_context::<http::request::Parts>().map(|parts| parts.uri.path().to_owned());
    let page = if visit.is_call { visit.back } else { requested.unwrap_or_default() };
    page.starts_with("/account")
}

/// Adds a header to the response.
pub(crate) fn add_header(name: HeaderName, value: &'static str) {
    if let Some(response) = use_context::<ResponseOptions>() {
        response.insert_header(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::Cookies;

    #[test]
    fn cookies_are_bound_to_the_host_when_secure() {
        let cookie = |secure| {
            let cookies = Cookies { secure };
            cookies.hidden(cookies.session_name(), "t", 5)
        };
        assert_eq!(
            cookie(true),
            "__Host-session=t; Path=/; SameSite=Lax; Max-Age=5; Secure; HttpOnly"
        );
        assert_eq!(cookie(false), "session=t; Path=/; SameSite=Lax; Max-Age=5; HttpOnly");
        let pending_login = |secure, is_saml| Cookies { secure }.pending_login(is_saml, "t");
        let rest = "Path=/; SameSite=None; Max-Age=600; Secure; HttpOnly";
        assert_eq!(pending_login(true, true), format!("__Host-sso=t; {rest}"));
        let rest = "Path=/; SameSite=Lax; Max-Age=600; HttpOnly";
        assert_eq!(pending_login(false, true), format!("sso=t; {rest}"));
        assert_eq!(pending_login(false, false), format!("pending_login=t; {rest}"));
    }
}
