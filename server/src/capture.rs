//! The endpoints for client libraries: events, and the settings and scripts that
//! libraries ask for (ING-13).
//!
//! What belongs here: the table of all paths, their methods, and the answer to a
//! preflight. What does not: what a request to one of them means (the modules below),
//! what a body means (`weir_capture`), and the headers that every answer carries
//! (`dispatcher`).
//!
//! No path is ever answered with a redirect. Libraries follow a redirect with a GET and
//! take the 200 for success, and the events are lost.

mod absent;
mod browser_library;
mod cookieless;
mod events;
mod history;
mod intake;
mod not_kept;
mod request_tally;
mod settings;
mod site_app;
mod v1;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, Method, header};
use weir_capture::CapturePath;

use crate::app::App;
use crate::dispatcher::RoutePattern;
use crate::http::error::{ApiError, ApiResult, ErrorForm};

pub use absent::Absent;
pub use browser_library::BrowserLibrary;
pub use cookieless::CookielessKeys;

/// The purpose of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// Accepts events in the older formats.
    Events(CapturePath),
    /// Accepts events of capture protocol V1.
    EventsV1,
    /// The feature flags of a person.
    Flags,
    /// Settings and feature flags, as older libraries ask for them.
    Decide,
    /// A feature that Weir does not offer. The answer is an empty list.
    Absent(Absent),
    /// Settings of the browser and mobile libraries.
    RemoteConfig,
    /// The settings as a script.
    RemoteConfigScript,
    /// A file of the browser library.
    BrowserLibrary,
    /// The code of an app that runs in visited pages.
    SiteApp,
    /// Accepts data that is not an event, and stores nothing of it.
    NotKept(&'static str),
    /// A path that libraries may ask for and that is not served. Its 404 has CORS
    /// headers, so that a page of another origin can read it.
    NotServed,
}

impl Endpoint {
    /// The endpoint at a path without the slash at the end.
    pub fn at(path: &str) -> Option<Self> {
        Some(match path {
            "/capture" => Self::Events(CapturePath::Capture),
            "/batch" | "/i/v0/ai/batch" => Self::Events(CapturePath::Batch),
            "/e" => Self::Events(CapturePath::E),
            "/i/v0/e" => Self::Events(CapturePath::I0E),
            "/track" => Self::Events(CapturePath::Track),
            "/engage" => Self::Events(CapturePath::Engage),
            "/s" => Self::Events(CapturePath::Recordings),
            "/i/v1/analytics/events" => Self::EventsV1,
            "/flags" => Self::Flags,
            "/decide" => Self::Decide,
            _ if path.starts_with("/static/") => Self::BrowserLibrary,
            _ if path.starts_with("/site_app/") => Self::SiteApp,
            "/api/conversations/v1/widget/message" => Self::NotServed,
            _ => match path.strip_prefix("/array/").map(|rest| rest.split_once('/')) {
                Some(Some((_, "config"))) => Self::RemoteConfig,
                Some(Some((_, "config.js"))) => Self::RemoteConfigScript,
                Some(_) => Self::NotServed,
                None => match Absent::at(path) {
                    Some(absent) => Self::Absent(absent),
                    None => Self::NotKept(not_kept::at(path)?),
                },
            },
        })
    }

    /// The form of its error bodies.
    pub fn error_form(self) -> ErrorForm {
        match self {
            Self::EventsV1 => ErrorForm::V1,
            _ => ErrorForm::Common,
        }
    }

    fn methods(self) -> &'static str {
        match self {
            Self::Events(_) | Self::Flags | Self::Decide => "GET, POST, OPTIONS",
            Self::NotKept(not_kept::PUSH) => "POST, DELETE, OPTIONS",
            Self::EventsV1 | Self::NotKept(_) => "POST, OPTIONS",
            Self::Absent(absent) => absent.methods(),
            Self::RemoteConfig
            | Self::RemoteConfigScript
            | Self::BrowserLibrary
            | Self::SiteApp => "GET, HEAD, OPTIONS",
            Self::NotServed => "OPTIONS",
        }
    }

    fn takes(self, method: &Method) -> bool {
        // A path that is not served is missing for every method.
        self == Self::NotServed || self.methods().split(", ").any(|name| name == method.as_str())
    }

    fn pattern(self) -> &'static str {
        match self {
            Self::Events(CapturePath::Capture) => "/capture/",
            Self::Events(CapturePath::Batch) => "/batch/",
            Self::Events(CapturePath::E) => "/e/",
            Self::Events(CapturePath::I0E) => "/i/v0/e/",
            Self::Events(CapturePath::Track) => "/track/",
            Self::Events(CapturePath::Engage) => "/engage/",
            Self::Events(CapturePath::Recordings) => "/s/",
            Self::EventsV1 => "/i/v1/analytics/events",
            Self::Flags | Self::Events(CapturePath::Settings) => "/flags/",
            Self::Decide => "/decide/",
            Self::Absent(absent) => absent.pattern(),
            Self::NotKept(route) => route,
            Self::RemoteConfig => "/array/{key}/config",
            Self::RemoteConfigScript => "/array/{key}/config.js",
            Self::BrowserLibrary => "/static/{file}",
            Self::SiteApp => "/site_app/{config_id}/{token}/{hash}/",
            Self::NotServed => "",
        }
    }
}

/// Answers a request to one of the paths. The dispatcher adds the CORS headers.
pub async fn answer(app: &App, endpoint: Endpoint, request: Request) -> Response {
    let method = request.method().clone();
    let mut response = if method == Method::OPTIONS {
        preflight()
    } else if endpoint.takes(&method) {
        match dispatch(app, endpoint, request).await {
            Ok(response) => response,
            Err(error) => error.into_response(),
        }
    } else {
        let mut refusal = ApiError::MethodNotAllowed(method).into_response();
        let allowed = HeaderValue::from_static(endpoint.methods());
        refusal.headers_mut().insert(header::ALLOW, allowed);
        refusal
    };
    response.extensions_mut().insert(RoutePattern(endpoint.pattern()));
    response
}

async fn dispatch(app: &App, endpoint: Endpoint, request: Request) -> ApiResult<Response> {
    match endpoint {
        Endpoint::Events(path) => events::answer(app, path, request).await,
        Endpoint::EventsV1 => v1::answer(app, request).await,
        Endpoint::Flags => settings::flags(app, request).await,
        Endpoint::Decide => settings::decide(app, request).await,
        Endpoint::Absent(absent) => Ok(absent.answer()),
        Endpoint::NotKept(route) => not_kept::answer(app, route, request).await,
        Endpoint::RemoteConfig => settings::remote_config(app, request.uri().path()).await,
        Endpoint::RemoteConfigScript => {
            settings::remote_config_script(app, request.uri().path()).await
        }
        Endpoint::BrowserLibrary => browser_library::answer(app, request).await,
        Endpoint::SiteApp => site_app::answer(app, request.uri().path()).await,
        Endpoint::NotServed => Err(ApiError::UnknownPath),
    }
}

fn preflight() -> Response {
    const MAX_AGE: HeaderName = header::ACCESS_CONTROL_MAX_AGE;
    ([(MAX_AGE, HeaderValue::from_static("86400"))], accepted()).into_response()
}

/// The answer to accepted events.
fn accepted() -> Response {
    let json = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, json)], r#"{"status":1}"#).into_response()
}
