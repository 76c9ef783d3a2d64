//! The page that Prometheus reads.

use std::net::SocketAddr;

use axum::response::{IntoResponse, Response};
use http::{Request, StatusCode, header};
use hyper::body::Incoming;

use super::Metrics;
use crate::listener::RequestHandler;

/// Media type of the text format.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The service at the metrics address: one page.
#[derive(Clone)]
pub struct MetricsPage(pub Metrics);

impl RequestHandler for MetricsPage {
    async fn answer(&self, _peer: SocketAddr, request: Request<Incoming>) -> Response {
        if request.uri().path() != "/metrics" {
            return (StatusCode::NOT_FOUND, "The page is at /metrics.").into_response();
        }
        match self.0.page() {
            Ok(page) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], page).into_response(),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}
