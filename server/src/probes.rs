//! Probes for supervisors and load balancers (API-51): whether the process lives, and
//! whether it should get requests; and the capabilities of the instance, for clients that
//! check them first.

use std::collections::BTreeMap;
use std::time::Instant;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, StatusCode, Uri, header};
use serde_json::json;
use weir_store::disk::DiskLevel;

use crate::app::App;
use crate::dispatcher::RoutePattern;
use crate::http::error::{ApiError, ApiResult};

/// The kinds of probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// `/_livez`: the process responds.
    Live,
    /// `/_readyz`: all parts that requests need are working.
    Ready,
    /// `/_health` and `/_liveness`: the process responds, as plain text.
    Health,
    /// `/_readiness`: events are accepted, as plain text.
    Readiness,
    /// `/_preflight`: the capabilities of the instance.
    Preflight,
}

/// The parts that readiness requires.
const ALL: [&str; 4] = ["http", "ingest", "store", "disk"];
/// The parts that capture requires: events are accepted without the store.
const EVENTS: [&str; 3] = ["http", "ingest", "disk"];

impl Probe {
    /// The probe at a path without the slash at the end.
    pub fn at(path: &str) -> Option<Self> {
        match path {
            "/_livez" => Some(Self::Live),
            "/_readyz" => Some(Self::Ready),
            // The hosted service uses the last two names (API-51).
            "/_health" | "/_liveness" => Some(Self::Health),
            "/_readiness" => Some(Self::Readiness),
            "/_preflight" => Some(Self::Preflight),
            _ => None,
        }
    }

    fn pattern(self) -> &'static str {
        match self {
            Self::Live => "/_livez",
            Self::Ready => "/_readyz",
            Self::Health => "/_health",
            Self::Readiness => "/_readiness",
            Self::Preflight => "/_preflight",
        }
    }
}

/// Answers a probe before the service has started; `None` if the probe has to wait for
/// the start.
pub fn before_start(probe: Probe, method: &Method) -> Option<Response> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    let state: BTreeMap<&str, bool> = ALL.map(|part| (part, part == "http")).into();
    Some(match probe {
        Probe::Health => "ok".into_response(),
        Probe::Live => Json(json!({ "http": true })).into_response(),
        Probe::Ready => (StatusCode::SERVICE_UNAVAILABLE, Json(state)).into_response(),
        Probe::Readiness => (StatusCode::SERVICE_UNAVAILABLE, "not ready").into_response(),
        Probe::Preflight => return None,
    })
}

/// Answers a probe.
pub async fn answer(app: &App, probe: Probe, method: &Method, uri: &Uri) -> Response {
    let mut response = match *method {
        Method::GET | Method::HEAD => match probe {
            Probe::Health => "ok".into_response(),
            Probe::Live => Json(json!({ "http": true })).into_response(),
            Probe::Ready => ready(app, uri.query()).await,
            Probe::Readiness => {
                let response = ready(app, Some("role=events")).await;
                let word = if response.status().is_success() { "ok" } else { "not ready" };
                (response.status(), word).into_response()
            }
            Probe::Preflight => preflight(app).await.into_response(),
        },
        _ => {
            let mut refusal = ApiError::MethodNotAllowed(method.clone()).into_response();
            refusal.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            refusal
        }
    };
    response.extensions_mut().insert(RoutePattern(probe.pattern()));
    response
}

/// 200 when every part works that the role requires and that is not excluded. The answer
/// shows all parts.
async fn ready(app: &App, query: Option<&str>) -> Response {
    let pairs: Vec<_> = form_urlencoded::parse(query.unwrap_or_default().as_bytes()).collect();
    let events_only = pairs.iter().any(|(name, value)| name == "role" && value == "events");
    let excluded = |part: &str| {
        let excludes = pairs.iter().filter(|(name, _)| name == "exclude");
        excludes.flat_map(|(_, value)| value.split(',')).any(|name| name == part)
    };
    let state: BTreeMap<&str, bool> = [
        ("http", !app.stopping.has_begun()),
        (
            "ingest",
            app.ingest.accepts() && app.ingest.stalled_for(Instant::now()) < app.limits.stall,
        ),
        ("store", app.services.identity.is_set_up().await.is_ok()),
        ("disk", app.disk.level() == DiskLevel::Ok),
        // Requests do not need it. It is shown for the operator.
        ("log", app.ingest.damage().is_none()),
    ]
    .into();
    let needed: &[&str] = if events_only { &EVENTS } else { &ALL };
    let ready = needed
        .iter()
        .filter(|part| !excluded(part))
        .all(|part| state.get(part).copied().unwrap_or(false));
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(state)).into_response()
}

/// The keys are those of the hosted service. Its parts are one process here.
async fn preflight(app: &App) -> ApiResult<Json<serde_json::Value>> {
    let initiated = app.services.identity.is_set_up().await?;
    let config = &app.config;
    let sends_mail = config.smtp_url.0.is_some() && config.public_url.origin().is_some();
    let offered = app.services.providers.offered().await?;
    let offers = |name: &str| offered.iter().any(|(offered, _)| offered.text() == name);
    Ok(Json(json!({
        "django": true,
        "redis": true,
        "plugins": true,
        "celery": true,
        "clickhouse": true,
        "kafka": true,
        "db": true,
        "initiated": initiated,
        "cloud": false,
        "demo": false,
        "realm": "hosted-clickhouse",
        "available_social_auth_providers": {
            "github": offers("github"),
            "gitlab": offers("gitlab"),
            "google-oauth2": offers("google-oauth2"),
        },
        "can_create_org": !initiated,
        "email_service_available": sends_mail,
        "slack_service": {"available": false, "client_id": null},
        "object_storage": false,
    })))
}
