//! A test event from the start page: a request to capture that the server makes instead
//! of a client. It is counted, stored, dropped or refused like any other.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use http::{HeaderValue, Method, Uri, header};
use weir_app::context::SendEvent;
use weir_capture::CapturePath;

use crate::app::App;
use crate::capture::{self, Endpoint};
use crate::http::peer::ClientAddress;

/// Sends events to the capture of `app`.
pub(super) fn sender(app: &App) -> SendEvent {
    let app = app.clone();
    SendEvent(Arc::new(move |body: String, address: Option<IpAddr>| {
        let app = app.clone();
        Box::pin(async move {
            let request = request(body, address);
            let endpoint = Endpoint::Events(CapturePath::I0E);
            capture::answer(&app, endpoint, request).await.status().as_u16()
        })
    }))
}

fn request(body: String, address: Option<IpAddr>) -> Request {
    let mut request = Request::new(Body::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static("/i/v0/e/");
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().insert(header::CONTENT_TYPE, json);
    if let Some(address) = address {
        request.extensions_mut().insert(ClientAddress(address));
    }
    request
}
