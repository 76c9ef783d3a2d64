//! Requests as a client sends them, byte for byte: paths are not rewritten and redirects
//! are not followed. The test fails if an answer does not match the API document.

use std::net::SocketAddr;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use crate::conformity;

/// The connections of a test's callers.
#[derive(Clone)]
pub(crate) struct Client(hyper_util::client::legacy::Client<HttpConnector, Full<Bytes>>);

impl Client {
    pub(crate) fn new() -> Self {
        let builder = hyper_util::client::legacy::Client::builder(TokioExecutor::new());
        Self(builder.build_http())
    }
}

/// A client that sends requests, with or without a key.
#[derive(Clone)]
pub struct Caller {
    client: Client,
    base: String,
    key: Option<String>,
}

impl Caller {
    pub(crate) fn new(client: Client, address: SocketAddr) -> Self {
        Self { client, base: format!("http://{address}"), key: None }
    }

    /// A caller of a server that runs in another process.
    pub fn of(address: SocketAddr) -> Self {
        Self::new(Client::new(), address)
    }

    /// The same caller with a bearer key.
    pub fn with_key(&self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self.clone() }
    }

    /// The bearer key of this caller.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or_default()
    }

    /// Begins a request. The returned [`Call`] sets headers and a body and sends it.
    pub fn call(&self, method: Method, path: &str) -> Call {
        let mut headers = HeaderMap::new();
        if let Some(key) = &self.key {
            headers.insert(header::AUTHORIZATION, format!("Bearer {key}").parse().unwrap());
        }
        let uri = format!("{}{path}", self.base);
        Call { client: self.client.clone(), method, uri, headers, body: Bytes::new() }
    }

    /// Sends a GET request.
    pub async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path).send().await
    }

    /// Sends a DELETE request.
    pub async fn delete(&self, path: &str) -> Answer {
        self.call(Method::DELETE, path).send().await
    }

    /// Sends a POST request with a JSON body.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::POST, path).json(body).send().await
    }

    /// Sends a PATCH request with a JSON body.
    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::PATCH, path).json(body).send().await
    }

    /// Sends a PUT request with a JSON body.
    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::PUT, path).json(body).send().await
    }
}

/// A request that is not sent yet.
pub struct Call {
    client: Client,
    method: Method,
    uri: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Call {
    /// Sets a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name: HeaderName = name.parse().unwrap();
        self.headers.insert(name, HeaderValue::from_str(value).unwrap());
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets a body of JSON with its content type.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }

    /// Sends the request and reads the answer.
    pub async fn send(self) -> Answer {
        let mut request = Request::new(Full::new(self.body));
        *request.method_mut() = self.method;
        let uri: Uri = self.uri.parse().expect("the path makes an address");
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = self.headers;
        let method = request.method().clone();
        let response = self.client.0.request(request).await.expect("the server answers");
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("the answer is complete").to_bytes();
        let answer = Answer { status: parts.status.as_u16(), headers: parts.headers, body };
        let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let faults = conformity::faults(&method, path, &answer);
        assert!(
            faults.is_empty(),
            "{method} {path} answered {}, not what the API document says:\n{}",
            answer.status,
            faults.join("\n")
        );
        answer
    }
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status code.
    pub status: u16,
    /// The headers of the answer.
    pub headers: HeaderMap,
    /// The body as it arrived.
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic_with(&format!("no JSON ({error}): {self:?}")))
    }

    /// The body as text. Without the comments that a page of the app has between its parts.
    pub fn text(&self) -> String {
        let text = std::str::from_utf8(&self.body);
        let text = text.unwrap_or_else(|error| panic_with(&format!("no text ({error}): {self:?}")));
        text.replace("<!>", "").replace("<!---->", "")
    }

    /// The value of a header, if the answer has it.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The status and the parts of the error body: type, code, detail, attr.
    pub fn error(&self) -> (u16, String, String, String, Option<String>) {
        let body = self.json();
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        (
            self.status,
            text("type"),
            text("code"),
            text("detail"),
            body["attr"].as_str().map(str::to_owned),
        )
    }

    /// Fails unless the answer is this error.
    #[track_caller]
    pub fn assert_error(&self, status: u16, kind: &str, code: &str, detail: &str) {
        self.assert_field_error(status, kind, code, detail, None);
    }

    /// Fails unless the answer is this error at this field.
    #[track_caller]
    pub fn assert_field_error(
        &self,
        status: u16,
        kind: &str,
        code: &str,
        detail: &str,
        attr: Option<&str>,
    ) {
        let expected =
            (status, kind.to_owned(), code.to_owned(), detail.to_owned(), attr.map(str::to_owned));
        assert_eq!(self.error(), expected, "{:?}", self.body);
        assert_eq!(self.header("content-type"), Some("application/json"));
    }
}

#[expect(clippy::panic, reason = "test support fails by panicking")]
#[track_caller]
fn panic_with(message: &str) -> ! {
    panic!("{message}")
}
