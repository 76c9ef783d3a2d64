//! What the server hands to pages and server functions for one request.
//!
//! What belongs here: the values, and what server functions do with cookies
//! and redirects. What does not: rules, and reading requests (the server).

use std::net::IpAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use http::{HeaderName, HeaderValue, StatusCode, header};
use leptos::prelude::{provide_context, use_context};
use leptos_axum::ResponseOptions;
use serde::{Deserialize, Serialize};
use server_fn::redirect::REDIRECT_HEADER;
use weir_model::preferences::Preferences;
use weir_service::error::{NOT_CONFIRMED, SECOND_FACTOR_MISSING};
use weir_service::exports::Trial;
use weir_service::identity::{NewSession, Peer, PendingSignIn};
use weir_service::{Ctx, Error, OrgCtx, ProjectCtx, Services};

use crate::error::UiError;
use crate::facts::{Facts, InstanceFacts};
use crate::local_path;
use crate::notice::Notice;
use crate::theme::{self, Theme};
use crate::ui::field::Typed;

/// A session ends after this many seconds whatever happens.
const SESSION_SECONDS: u32 = 14 * 24 * 60 * 60;
/// A sign-in waits so many seconds for the second factor.
const PENDING_SECONDS: u32 = 10 * 60;
/// Where the second factor is asked for.
const SECOND_STEP: &str = "/login/2fa";
/// Where it is turned on.
const SECURITY: &str = "/account/security";
/// What people hear where no session can be kept.
pub const NO_SESSION: &str = "No session can be kept safely at this address. Set public_url to the \
     https address under which people open Weir, such as https://weir.example.org, and start \
     Weir again.";
/// Before the name of a field whose value is not kept when its form fails. A
/// hidden field of that name goes along with it.
pub const SECRET_MARK: &str = "secret:";
/// Among what was entered, the path of the function that it was sent to.
pub const FUNCTION: &str = "__path";
/// In the address of a page whose form was not saved for want of a sign-in.
pub const KEPT: &str = "__kept";
/// What the next page tells waits this long for it.
const NOTICE_SECONDS: u32 = 60;
const YEAR_SECONDS: u32 = 365 * 24 * 60 * 60;

/// What is the same for all requests.
#[derive(Clone)]
pub struct WebContext {
    /// The services.
    pub services: Services,
    /// Names of the built files.
    pub assets: Assets,
    /// Tells capture that projects came, changed or went.
    pub projects_changed: ProjectsChanged,
    /// Tells staff of the process.
    pub instance_facts: InstanceFacts,
    /// Tries out destinations of exports.
    pub try_destination: TryDestination,
    /// Sends an event as a client would.
    pub send_event: SendEvent,
}

/// Lets capture know the keys of projects as they are now. When it is done, a
/// new key works and one that is gone does not.
#[derive(Clone)]
pub struct ProjectsChanged(pub Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>);

/// Does the steps of the test of an export's destination, until one fails.
#[derive(Clone)]
pub struct TryDestination(
    pub Arc<dyn Fn(Trial) -> BoxFuture<'static, Vec<TriedStep>> + Send + Sync>,
);

/// A step of the test of a destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriedStep {
    /// What it does.
    pub name: String,
    /// What came of it.
    pub outcome: StepOutcome,
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepOutcome {
    /// It did what it should.
    Passed,
    /// It did not: the class of fault, and a sentence.
    Failed(String),
    /// One before it failed.
    Skipped,
}

/// Sends a JSON body to capture, the way that a client's goes, as if from this
/// address. Gives the status of the answer.
#[derive(Clone)]
pub struct SendEvent(pub SendEventFn);

/// What [`SendEvent`] calls.
pub type SendEventFn = Arc<dyn Fn(String, Option<IpAddr>) -> BoxFuture<'static, u16> + Send + Sync>;

/// Addresses of the files that every page loads; `None`: not built.
#[derive(Debug, Clone, Default)]
pub struct Assets {
    /// The script that starts the app.
    pub boot: Option<String>,
    /// The glue that it imports.
    pub glue: Option<String>,
    /// The style sheet.
    pub css: Option<String>,
}

/// How cookies are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cookies {
    /// Whether they may travel over TLS only. Off for http on this machine.
    pub secure: bool,
}

impl Cookies {
    /// Name of the session's cookie.
    #[must_use]
    pub fn session_name(self) -> &'static str {
        if self.secure { "__Host-session" } else { "session" }
    }

    /// Name of the cookie of a sign-in that waits for the second factor.
    #[must_use]
    pub fn pending_name(self) -> &'static str {
        if self.secure { "__Host-pending" } else { "pending" }
    }

    /// Name of the cookie with what was typed into a form that failed.
    #[must_use]
    pub fn typed_name(self) -> &'static str {
        if self.secure { "__Host-typed" } else { "typed" }
    }

    /// Name of the cookie with what the next page tells.
    #[must_use]
    pub fn notice_name(self) -> &'static str {
        if self.secure { "__Host-notice" } else { "notice" }
    }

    /// Name of the cookie that tells a browser in which somebody has signed in from
    /// those of strangers.
    #[must_use]
    pub fn browser_name(self) -> &'static str {
        if self.secure { "__Host-browser" } else { "browser" }
    }

    /// That cookie. It stays after the sign-out.
    #[must_use]
    pub fn browser(self, token: &str) -> String {
        self.hidden(self.browser_name(), token, YEAR_SECONDS)
    }

    /// The cookie of a session.
    #[must_use]
    pub fn session(self, session: &NewSession) -> String {
        self.hidden(self.session_name(), &session.token, SESSION_SECONDS)
    }

    /// The cookie of a sign-in that waits for the second factor.
    #[must_use]
    pub fn pending(self, pending: &PendingSignIn) -> String {
        self.hidden(self.pending_name(), &pending.token, PENDING_SECONDS)
    }

    /// A cookie that scripts do not see.
    #[must_use]
    pub fn hidden(self, name: &str, value: &str, seconds: u32) -> String {
        let secure = if self.secure { "; Secure" } else { "" };
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}")
    }
}

/// One request.
#[derive(Clone)]
pub struct Visit {
    /// Who is signed in.
    pub ctx: Option<Ctx>,
    /// The token of the session.
    pub token: Option<String>,
    /// The token of a sign-in that waits for the second factor.
    pub pending: Option<String>,
    /// Where the request comes from.
    pub peer: Peer,
    /// The request's id.
    pub request_id: String,
    /// Scheme and host under which events can be sent.
    pub origin: String,
    /// How cookies are written.
    pub cookies: Cookies,
    /// Whether a session can be opened: its cookie stays on this machine or on TLS.
    pub keeps_sessions: bool,
    /// The chosen theme.
    pub theme: Theme,
    /// What else was chosen.
    pub preferences: Preferences,
    /// Whether a session cannot work here: plain http, not on this machine.
    pub insecure: bool,
    /// Whether a page is asked for, by a link or by a form.
    pub wants_page: bool,
    /// Whether a server function is called.
    pub is_call: bool,
    /// What was entered into a form that was not saved, without secrets, and as
    /// [`FUNCTION`] where it was sent to.
    pub typed: Vec<(String, String)>,
    /// What the page tells of a form that led to it.
    pub notice: Option<Notice>,
}

/// Makes one request known to pages and server functions.
pub fn provide(web: &WebContext, visit: &Visit) {
    provide_context(Typed::new(visit.typed.clone()));
    provide_context(visit.preferences.numbers);
    provide_context(web.clone());
    provide_context(visit.clone());
}

/// What the request said of itself, for the shell of the page.
pub(crate) fn visit() -> Option<Visit> {
    use_context()
}

fn context() -> Result<(WebContext, Visit), UiError> {
    let missing = || UiError::Internal { request_id: String::new() };
    let web = use_context::<WebContext>().ok_or_else(missing)?;
    let visit = use_context::<Visit>().ok_or_else(missing)?;
    Ok((web, visit))
}

/// The services, for whoever comes.
pub(crate) fn anyone() -> Result<(Services, Visit), UiError> {
    let (web, visit) = context()?;
    Ok((web.services, visit))
}

/// The services and who is signed in.
pub(crate) fn enter() -> Result<(Services, Ctx), UiError> {
    let (web, visit) = context()?;
    let ctx = visit.ctx.ok_or(Error::NotAuthenticated).map_err(ui_error)?;
    Ok((web.services, ctx))
}

/// The services, who is signed in, and the token of the session.
pub(crate) fn enter_with_token() -> Result<(Services, Ctx, String), UiError> {
    let (services, ctx) = enter()?;
    let (_, visit) = context()?;
    let token = visit.token.ok_or(Error::NotAuthenticated).map_err(ui_error)?;
    Ok((services, ctx, token))
}

/// The services and proof that the person belongs to the organization.
pub(crate) async fn enter_organization(id: &str) -> Result<(Services, OrgCtx), UiError> {
    let (services, ctx) = enter()?;
    let org = services.organizations.enter(&ctx, id).await.map_err(ui_error)?;
    Ok((services, org))
}

/// The services and proof that the person may see the project.
pub(crate) async fn enter_project(id: i64) -> Result<(Services, ProjectCtx), UiError> {
    let (services, ctx) = enter()?;
    let project = services.projects.enter(&ctx, &id.to_string()).await.map_err(ui_error)?;
    Ok((services, project))
}

/// Refuses what would open a session where none can be kept, before anything is
/// done.
pub(crate) fn refuse_without_session(visit: &Visit) -> Result<(), UiError> {
    if visit.keeps_sessions {
        return Ok(());
    }
    Err(ui_error(Error::Forbidden(NO_SESSION.to_owned())))
}

/// What the process knows of itself. Who may know it is for the caller to see.
pub(crate) async fn facts() -> Result<Facts, UiError> {
    let (web, _) = context()?;
    Ok((web.instance_facts.0)().await)
}

/// Tries out a destination, until a step fails. No step: there is nothing to try.
pub(crate) async fn try_destination(trial: Trial) -> Result<Vec<TriedStep>, UiError> {
    let (web, _) = context()?;
    Ok((web.try_destination.0)(trial).await)
}

/// Gives the browser the cookie of a sign-in that waits for the second factor, and
/// leads to where that is asked for. From there one goes on to `next`.
pub(crate) fn ask_second_factor(pending: &PendingSignIn, next: &str) {
    if let Ok((_, visit)) = context() {
        set_cookie(&visit.cookies.pending(pending));
    }
    go(&format!("{SECOND_STEP}?next={}", local_path::encode(next)));
}

/// Takes the cookie of a sign-in that waited away.
pub(crate) fn forget_pending() {
    if let Ok((_, visit)) = context() {
        set_cookie(&visit.cookies.hidden(visit.cookies.pending_name(), "", 0));
    }
}

/// To be called after anything that creates, changes or deletes a project.
pub(crate) async fn projects_changed() {
    if let Ok((web, _)) = context() {
        (web.projects_changed.0)().await;
    }
}

/// Sends a JSON body to capture for the visitor, and gives the status of the answer.
pub(crate) async fn send_event(body: String) -> Result<u16, UiError> {
    let (web, visit) = context()?;
    Ok((web.send_event.0)(body, visit.peer.address).await)
}

/// Gives the browser the cookies of a session.
pub(crate) fn keep_session(session: &NewSession) {
    if let Ok((_, visit)) = context() {
        set_cookie(&visit.cookies.session(session));
    }
    keep_browser(&session.browser);
}

/// Gives the browser the cookie that tells it from those of strangers.
pub(crate) fn keep_browser(token: &str) {
    if let Ok((_, visit)) = context() {
        set_cookie(&visit.cookies.browser(token));
    }
}

/// Takes the cookie of the session away.
pub(crate) fn forget_session() {
    if let Ok((_, visit)) = context() {
        set_cookie(&visit.cookies.hidden(visit.cookies.session_name(), "", 0));
    }
}

/// Lets the next page tell this, once.
pub(crate) fn tell(text: &str) {
    keep_notice(&Notice::new(text));
}

/// The same with a way to take it back: a server function by its path, and what
/// it is sent.
pub(crate) fn tell_with_undo(text: &str, function: &str, fields: &[(&str, &str)]) {
    keep_notice(&Notice::new(text).with_undo(function, fields));
}

/// Leads to another page of this site, which tells this.
pub(crate) fn done(path: &str, text: &str) {
    tell(text);
    go(path);
}

fn keep_notice(notice: &Notice) {
    if let Ok((_, visit)) = context() {
        let name = visit.cookies.notice_name();
        set_cookie(&visit.cookies.hidden(name, &notice.text_in_cookie(), NOTICE_SECONDS));
    }
}

/// Takes away what a page has told.
pub(crate) fn forget_notice() {
    if let Ok((_, visit)) = context() {
        set_cookie(&visit.cookies.hidden(visit.cookies.notice_name(), "", 0));
    }
}

/// Lets the next page begin in this theme.
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

/// Leads to another page of this site, from a form or a call of a script.
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
        let told = HeaderName::from_static(REDIRECT_HEADER);
        response.insert_header(told, HeaderValue::from_static(""));
    }
}

/// An error of a service as the page shows it. Sets the status of the answer,
/// leads to the sign-in where that helps, and logs what is our fault.
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
        // Whoever may end in this asks for it before (`ask_second_factor`).
        Error::SecondFactor(_) => (StatusCode::UNAUTHORIZED, UiError::SignIn),
        Error::SecondFactorMissing => {
            let shown = UiError::Forbidden(SECOND_FACTOR_MISSING.to_owned());
            if is_account_page() {
                // What is around the page that it leads to asks too.
                return shown;
            }
            if context().is_ok_and(|(_, visit)| visit.wants_page) {
                go(SECURITY);
            }
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
        error @ (Error::Store(_) | Error::Internal(_)) => {
            tracing::error!(error = chain(&error), request.id = request_id, "page failed");
            (StatusCode::INTERNAL_SERVER_ERROR, UiError::Internal { request_id })
        }
    };
    set_status(status);
    shown
}

/// For a page where nothing is.
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

/// The status of a page, or of a call by a script. A form is answered with a
/// redirect, whose status stays.
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

/// Leads a page or a form to the sign-in and back. A script learns it from the
/// error.
fn lead_to(sign_in: &str) {
    let Ok((_, visit)) = context() else { return };
    if visit.wants_page
        && let Some(parts) = use_context::<http::request::Parts>()
    {
        let asked = match visit.is_call {
            true => parts.headers.get(header::REFERER).and_then(|value| value.to_str().ok()),
            false => parts.uri.path_and_query().map(http::uri::PathAndQuery::as_str),
        };
        let back = asked.map(path_of).unwrap_or_default();
        let back = local_path::without_outcome(back);
        go(&format!("{sign_in}?next={}", local_path::encode(&back)));
    }
}

/// Whether a page about the person's own account is asked for.
fn is_account_page() -> bool {
    let parts = use_context::<http::request::Parts>();
    parts.is_some_and(|parts| parts.uri.path().starts_with("/account"))
}

/// An address without scheme and host.
#[must_use]
pub fn path_of(address: &str) -> &str {
    match address.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => address,
    }
}

/// Adds a header to the answer.
pub(crate) fn add_header(name: HeaderName, value: &'static str) {
    if let Some(response) = use_context::<ResponseOptions>() {
        response.insert_header(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::{Cookies, path_of};

    #[test]
    fn addresses_lose_their_host() {
        assert_eq!(path_of("http://h:1/a?b"), "/a?b");
        assert_eq!(path_of("http://h:1"), "/");
        assert_eq!(path_of("/a"), "/a");
    }

    #[test]
    fn cookies_are_bound_to_the_host_when_secure() {
        let cookie = |secure| {
            let cookies = Cookies { secure };
            cookies.hidden(cookies.session_name(), "t", 5)
        };
        assert_eq!(
            cookie(true),
            "__Host-session=t; Path=/; HttpOnly; SameSite=Lax; Max-Age=5; Secure"
        );
        assert_eq!(cookie(false), "session=t; Path=/; HttpOnly; SameSite=Lax; Max-Age=5");
    }
}
