//! Answers while the service starts.
//!
//! Connections are accepted from the first moment on. Probes report that the process
//! lives and is not ready. All other requests wait until the store is open, so that
//! clients of a restarting service wait instead of failing. What does not belong here:
//! answers after the start ([`Dispatcher`]).

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Request, StatusCode, header};
use hyper::body::Incoming;
use tokio::sync::watch;

use crate::dispatcher::Dispatcher;
use crate::http::headers;
use crate::listener::RequestHandler;
use crate::probes::{self, Probe};

/// The dispatcher of a service that may not have started yet. Clones share it.
#[derive(Clone)]
pub struct Starting(Arc<Shared>);

struct Shared {
    dispatcher: OnceLock<Dispatcher>,
    opened: watch::Sender<bool>,
    /// Longest wait of a request.
    patience: Duration,
    hsts: Option<HeaderValue>,
}

impl Starting {
    /// A dispatcher that is not set yet. `hsts` is the value of `Strict-Transport-Security`,
    /// if it is sent.
    pub fn new(patience: Duration, hsts: Option<HeaderValue>) -> Self {
        let (dispatcher, opened) = (OnceLock::new(), watch::Sender::new(false));
        Self(Arc::new(Shared { dispatcher, opened, patience, hsts }))
    }

    /// Sets the dispatcher: waiting and later requests are answered.
    pub fn open(&self, dispatcher: Dispatcher) {
        // Only the first call has an effect.
        let _ = self.0.dispatcher.set(dispatcher);
        self.0.opened.send_replace(true);
    }

    fn early(&self, request: &Request<Incoming>) -> Option<Response> {
        let path = request.uri().path();
        let probe = Probe::at(path.strip_suffix('/').unwrap_or(path))?;
        probes::before_start(probe, request.method())
    }

    fn secured(&self, mut response: Response) -> Response {
        headers::secure_api(response.headers_mut(), self.0.hsts.as_ref());
        response
    }
}

impl RequestHandler for Starting {
    async fn answer(&self, peer: SocketAddr, request: Request<Incoming>) -> Response {
        if self.0.dispatcher.get().is_none() {
            if let Some(response) = self.early(&request) {
                return self.secured(response);
            }
            let mut opened = self.0.opened.subscribe();
            // The result is checked below.
            let _ = tokio::time::timeout(self.0.patience, opened.wait_for(|opened| *opened)).await;
        }
        match self.0.dispatcher.get() {
            Some(dispatcher) => dispatcher.answer(peer, request).await,
            None => {
                let later = [(header::RETRY_AFTER, "1")];
                let refused =
                    (StatusCode::SERVICE_UNAVAILABLE, later, "The service is starting.\n");
                self.secured(refused.into_response())
            }
        }
    }
}
