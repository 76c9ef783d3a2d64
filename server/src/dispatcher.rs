//! The dispatcher: it gives every request an id, chooses the surface that answers it,
//! contains panics, sets headers, writes the body of errors, counts metrics, and writes
//! one log line.
//!
//! What belongs here: rules that are the same for all surfaces. What does not: paths and
//! rules of a single surface (`capture`, `router`, `probes`, `web`). The log line
//! contains the route's pattern, never the query, body or credentials.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures::FutureExt as _;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, StatusCode, Uri};
use tower::ServiceExt as _;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};
use weir_model::{panics, traces};

use crate::app::App;
use crate::capture::{self, Endpoint};
use crate::config::CapturePrefix;
use crate::http::body;
use crate::http::compress;
use crate::http::error::{ApiError, ErrorForm, Failure};
use crate::http::headers::{self, CrossOrigin};
use crate::http::peer::{self, ClientAddress, RequestedUri};
use crate::http::request_id::{self, RequestId};
use crate::limits::{Exhausted, UserPermit};
use crate::listener::HeldUntilSent;
use crate::web::admission::{self, Admission};
use crate::{mcp, probes, router, scim, web};

/// A part of the service with its own limits and headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Surface {
    /// Endpoints for client libraries, from any origin.
    Capture,
    /// The management API.
    Api,
    /// Probes of supervisors and load balancers.
    Probe,
    /// The web app.
    Web,
}

impl Surface {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Capture, Self::Api, Self::Probe, Self::Web];

    /// The name in metrics and logs.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Capture => "capture",
            Self::Api => "api",
            Self::Probe => "probe",
            Self::Web => "web",
        }
    }
}

/// The pattern of the route that answered, for the log line.
#[derive(Debug, Clone, Copy)]
pub struct RoutePattern(pub &'static str);

/// The service that answers the requests of all connections. Cheap to clone.
#[derive(Clone)]
pub struct Dispatcher {
    app: App,
    api: Router,
    mcp: Router,
    scim: Router,
    web: Router,
    hsts: Option<HeaderValue>,
}

/// The handler of a request.
enum Target {
    Capture(Endpoint),
    Probe(probes::Probe),
    Api,
    Mcp,
    Scim,
    Web,
}

impl Target {
    fn of(path: &str) -> Self {
        let name = path.strip_suffix('/').unwrap_or(path);
        if let Some(endpoint) = Endpoint::at(name) {
            Self::Capture(endpoint)
        } else if let Some(probe) = probes::Probe::at(name) {
            Self::Probe(probe)
        } else if path.starts_with("/api/") {
            Self::Api
        } else if name == mcp::PATH {
            Self::Mcp
        } else if path.starts_with(scim::PREFIX) {
            Self::Scim
        } else {
            Self::Web
        }
    }

    fn surface(&self) -> Surface {
        match self {
            Self::Capture(_) => Surface::Capture,
            Self::Probe(_) => Surface::Probe,
            Self::Api | Self::Mcp | Self::Scim => Surface::Api,
            Self::Web => Surface::Web,
        }
    }

    /// The answer to one request more than a network may have. Probes are always answered.
    fn refusal(&self) -> Option<ApiError> {
        match self {
            Self::Capture(_) => Some(ApiError::NotAccepted(Cow::Borrowed(
                "too many requests of one network at a time",
            ))),
            Self::Probe(_) => None,
            Self::Api | Self::Mcp | Self::Scim | Self::Web => Some(ApiError::Busy),
        }
    }

    fn error_form(&self) -> ErrorForm {
        match self {
            Self::Capture(endpoint) => endpoint.error_form(),
            Self::Mcp => ErrorForm::JsonRpc,
            Self::Scim => ErrorForm::Scim,
            Self::Probe(_) | Self::Api | Self::Web => ErrorForm::Common,
        }
    }
}

impl Dispatcher {
    /// A dispatcher for all surfaces of `app`.
    pub fn new(app: App) -> Self {
        let (api, mcp) = (router::api_router(&app), mcp::router(&app));
        let (scim, web) = (scim::router(&app), web::router(&app));
        let hsts = app.config.hsts();
        Self { api, mcp, scim, web, hsts, app }
    }

    /// Answers a request of the client or proxy at `peer`.
    pub async fn answer<B>(&self, peer: SocketAddr, request: http::Request<B>) -> Response
    where
        B: http_body_util::BodyExt<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let began = Instant::now();
        let request_id = RequestId::at(self.app.services.clock.now());
        let mut request = request.map(Body::new);
        if let Some(uri) = without_prefix(request.uri(), &self.app.config.capture_prefix) {
            *request.uri_mut() = uri;
        }
        let target = Target::of(request.uri().path());
        let surface = target.surface();
        let error_form = target.error_form();
        let method = request.method().clone();
        let cross_origin = CrossOrigin::of(request.headers());
        let span = self.span(peer, request_id, surface, &request);
        self.describe(peer, request_id, &mut request);
        let mut part = self.app.permits.requests.of(ClientAddress::networks(request.extensions()));
        let answered = match (part.grow_to(1), target.refusal()) {
            (Err(Exhausted), Some(refusal)) => Ok(refusal.into_response()),
            _ => {
                let dispatched = self.dispatch(target, request).instrument(span.clone());
                AssertUnwindSafe(dispatched).catch_unwind().await
            }
        };
        let mut response = answered
            .unwrap_or_else(|panic| ApiError::Panicked(panics::message(&*panic)).into_response());

        let hsts = self.hsts.as_ref();
        match surface {
            Surface::Capture => cross_origin.allow(response.headers_mut(), hsts),
            Surface::Api | Surface::Probe => headers::secure_api(response.headers_mut(), hsts),
            Surface::Web => headers::secure_web(response.headers_mut(), hsts),
        }
        response.headers_mut().insert(request_id::HEADER, request_id.header());
        response.extensions_mut().insert(HeldUntilSent(Arc::new(part)));
        // A failed tool is answered with 200. Its cause is counted.
        let counted = response.status().as_u16();
        self.fill_in_failure(error_form, &mut response, request_id);

        let status = response.status().as_u16();
        let took = began.elapsed();
        self.app.metrics.count_request(surface, counted, took);
        let route = response.extensions().get::<RoutePattern>().map_or("", |route| route.0);
        if !route.is_empty() {
            span.record("http.route", route);
            span.record("otel.name", format_args!("{} {route}", traced_method(&method)));
        }
        span.record("http.response.status_code", status);
        if counted >= 500 {
            span.record("otel.status_code", "error");
        }
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    target: "weir::access",
                    surface = surface.text(), %method, route, status, duration_ms,
                    request.id = %request_id,
                    "request"
                )
            };
        }
        // A line for each accepted capture request would cost more than its events.
        if matches!(surface, Surface::Capture) && status < 400 {
            line!(debug);
        } else {
            line!(info);
        }
        response
    }

    /// The span of a request. Its trace has the id of the request, unless a proxy names the
    /// trace that the request belongs to.
    fn span(
        &self,
        peer: SocketAddr,
        request_id: RequestId,
        surface: Surface,
        request: &Request,
    ) -> Span {
        let method = traced_method(request.method());
        tracing::info_span!(
            target: traces::TARGET,
            "request",
            trace.id = %request_id,
            trace.parent = peer::trace_parent(&self.app.config, peer.ip(), request.headers()),
            otel.kind = "server",
            otel.name = method,
            otel.status_code = Empty,
            http.request.method = method,
            http.route = Empty,
            http.response.status_code = Empty,
            weir.surface = surface.text(),
            weir.request.id = %request_id
        )
    }

    /// Adds the data that handlers need to the extensions of the request.
    fn describe(&self, peer: SocketAddr, request_id: RequestId, request: &mut Request) {
        let config = &self.app.config;
        let address = peer::client_address(config, peer.ip(), request.headers());
        let origin = peer::origin(config, peer.ip(), request.headers(), request.uri());
        let uri = RequestedUri(request.uri().clone());
        let extensions = request.extensions_mut();
        extensions.insert(request_id);
        extensions.insert(address);
        extensions.insert(origin);
        extensions.insert(uri);
    }

    async fn dispatch(&self, target: Target, request: Request) -> Response {
        let app = &self.app;
        let length = request.uri().path_and_query().map_or(0, |uri| uri.as_str().len());
        if length > app.limits.uri_bytes {
            return ApiError::UriTooLong.into_response();
        }
        match target {
            Target::Capture(endpoint) => capture::answer(app, endpoint, request).await,
            Target::Probe(probe) => {
                let (parts, _body) = request.into_parts();
                probes::answer(app, probe, &parts.method, &parts.uri).await
            }
            Target::Api | Target::Mcp | Target::Scim => {
                let router = match target {
                    Target::Mcp => &self.mcp,
                    Target::Scim => &self.scim,
                    _ => &self.api,
                };
                // The handler reads the body here, within this time.
                let reading = match *request.method() {
                    Method::GET | Method::HEAD | Method::OPTIONS => Duration::ZERO,
                    _ => app.limits.api_body.time,
                };
                let time = match matches!(target, Target::Mcp) || is_question(&request) {
                    true => app.limits.question_request_time,
                    false => app.limits.api_time,
                };
                let limit = time + reading;
                self.within_time(router, limit, without_slash(request)).await
            }
            Target::Web => self.web(request).await,
        }
    }

    /// Bodies of the web app are read before a permit is taken, so that slow senders do
    /// not use up the permits. Checks that do not need the body come before it.
    async fn web(&self, request: Request) -> Response {
        let (mut parts, unread) = request.into_parts();
        let (body, held) = match Admission::of(&self.app, &mut parts).await {
            Admission::Refused(response) => return *response,
            Admission::Unread => (Body::empty(), None),
            Admission::Read { limits, budget, is_known } => {
                match body::collect(&parts, unread, &limits, &budget).await {
                    Ok(read) => (Body::from(read.bytes), Some(read.held)),
                    Err(fault) => return admission::unread(&parts, fault, &limits, is_known),
                }
            }
        };
        let permits = &self.app.permits;
        let mut of_network = permits.web_of_network.of(ClientAddress::networks(&parts.extensions));
        let (Ok(()), Ok(_permit)) = (of_network.grow_to(1), permits.web.try_acquire()) else {
            return ApiError::Busy.into_response();
        };
        let of_user = UserPermit::new(&permits.web_of_user);
        parts.extensions.insert(of_user.clone());
        let request = Request::from_parts(parts, body);
        let response = self.within_time(&self.web, self.app.limits.api_time, request).await;
        of_user.release();
        drop(held);
        response
    }

    async fn within_time(&self, router: &Router, limit: Duration, request: Request) -> Response {
        let takes_gzip = compress::takes_gzip(request.headers());
        let answer = async {
            match router.clone().oneshot(request).await {
                Ok(response) => compress::compress_page(takes_gzip, response).await,
            }
        };
        let timely = tokio::time::timeout(limit, answer).await;
        timely.unwrap_or_else(|_elapsed| ApiError::TimedOut.into_response())
    }

    /// Writes the body of an error, and the one log line about its cause.
    fn fill_in_failure(&self, form: ErrorForm, response: &mut Response, request_id: RequestId) {
        let Some(failure) = response.extensions_mut().remove::<Failure>() else { return };
        let status = response.status();
        if failure.store_failed {
            self.app.metrics.store_errors.inc();
        }
        if let Some(cause) = &failure.cause {
            if status == StatusCode::INTERNAL_SERVER_ERROR {
                tracing::error!(cause, request.id = %request_id, "request failed");
            } else {
                tracing::warn!(cause, request.id = %request_id, "request not served");
            }
        }
        if let Err(error) = failure.write(form, response, request_id) {
            tracing::error!(%error, request.id = %request_id, "an error body could not be written");
        }
    }
}

/// Whether a request is a question about events. It may take longer than others.
fn is_question(request: &Request) -> bool {
    let path = request.uri().path();
    let path = path.strip_suffix('/').unwrap_or(path);
    request.method() == Method::POST && path.ends_with("/query")
}

/// The method as traces show it. One that a caller has invented may hold anything (SEC-41).
fn traced_method(method: &Method) -> &str {
    match *method {
        Method::CONNECT
        | Method::DELETE
        | Method::GET
        | Method::HEAD
        | Method::OPTIONS
        | Method::PATCH
        | Method::POST
        | Method::PUT
        | Method::TRACE => method.as_str(),
        _ => "_OTHER",
    }
}

/// Removes the optional slash at the end of a path. No other code does.
fn without_slash(mut request: Request) -> Request {
    let path = request.uri().path().strip_suffix('/').filter(|path| !path.is_empty());
    if let Some(uri) = path.and_then(|path| with_path(request.uri(), path)) {
        *request.uri_mut() = uri;
    }
    request
}

/// The address of a capture endpoint that was requested below the prefix. Nothing else is
/// below it.
fn without_prefix(uri: &Uri, prefix: &CapturePrefix) -> Option<Uri> {
    let path = prefix.rest(uri.path())?;
    Endpoint::at(path.strip_suffix('/').unwrap_or(path))?;
    with_path(uri, path)
}

fn with_path(uri: &Uri, path: &str) -> Option<Uri> {
    let text = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(text).ok()?);
    Uri::from_parts(parts).ok()
}
