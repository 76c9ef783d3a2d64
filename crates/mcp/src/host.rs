//! The host of the bridge: one request over HTTP for each request of the client.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use serde::de::IgnoredAny;
use serde_json::Value;
use weir_model::keys::PREFIX;

use crate::error::BridgeError;
use crate::message::Id;
use crate::reply::{Fault, Reply};

const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Longer than a host takes for a question.
const ANSWER_TIME: Duration = Duration::from_secs(300);
/// Most bytes of an answer. Results have at most 16 MiB, which escapes can double.
const ANSWER_MAX: usize = 40 << 20;
/// Most characters of a text of the host that a fault repeats.
const SHOWN: usize = 500;

/// A host that speaks the protocol over HTTP.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    client: Client,
    url: Url,
}

impl Host {
    /// The host at this address, with a personal API key.
    pub(crate) fn new(url: &str, key: &str) -> Result<Self, BridgeError> {
        let url = address(url)?;
        // Following a redirect would send the key elsewhere.
        let mut builder = Client::builder()
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIME)
            .timeout(ANSWER_TIME)
            .default_headers(headers(key)?)
            .user_agent(concat!("weir-mcp/", env!("CARGO_PKG_VERSION")));
        // A proxy cannot reach this machine by its loopback address.
        if is_loopback(&url) {
            builder = builder.no_proxy();
        }
        Ok(Self { client: builder.build().map_err(BridgeError::Client)?, url })
    }

    /// Whether the key is sent to another machine without encryption.
    pub(crate) fn exposes_key(&self) -> bool {
        self.url.scheme() == "http" && !is_loopback(&self.url)
    }

    /// The answer to a request with this text, in one line.
    pub(crate) async fn ask(&self, id: Id, text: Vec<u8>) -> String {
        match self.post(text).await {
            Ok(answer) => answer,
            Err(fault) => written(&Reply::fault(Some(id), fault)),
        }
    }

    async fn post(&self, text: Vec<u8>) -> Result<String, Fault> {
        let sent = self.client.post(self.url.clone()).body(text).send().await;
        let mut response = sent.map_err(|error| unreachable_host(&error))?;
        let status = response.status();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| unreachable_host(&error))? {
            if body.len() + chunk.len() > ANSWER_MAX {
                return Err(refused("the answer of the host is too large"));
            }
            body.extend_from_slice(&chunk);
        }
        if !status.is_success() {
            return Err(refused(format!("the host answers {status}{}", detail(&body))));
        }
        one_line(body).ok_or_else(|| {
            refused("the host does not answer as a Weir host does; is `--url` its address?")
        })
    }
}

/// A reply as one line of JSON.
pub(crate) fn written<R: serde::Serialize>(reply: &Reply<R>) -> String {
    // Texts and numbers, so this cannot fail.
    serde_json::to_string(reply).unwrap_or_default()
}

/// The address of the endpoint on a host.
fn address(url: &str) -> Result<Url, BridgeError> {
    // The error goes to logs, so it does not repeat a password.
    let shown = url.rsplit('@').next().unwrap_or_default();
    let refused =
        |detail: &str| BridgeError::Address { url: shown.to_owned(), detail: detail.to_owned() };
    let mut parsed = Url::parse(url).map_err(|error| refused(&error.to_string()))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(refused("it must begin with http:// or https://"));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(refused("it must not hold a password"));
    }
    if parsed.query().is_some() || parsed.fragment().is_some() {
        return Err(refused("it must not have a part behind `?` or `#`"));
    }
    let path = parsed.path().trim_end_matches('/');
    let path = format!("{}/mcp", path.strip_suffix("/mcp").unwrap_or(path));
    parsed.set_path(&path);
    Ok(parsed)
}

/// Whether an address is one of this machine alone.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

fn headers(key: &str) -> Result<HeaderMap, BridgeError> {
    let key = key.trim();
    if key.is_empty() {
        return Err(BridgeError::Key("it is empty or missing"));
    }
    if !key.starts_with(PREFIX) {
        return Err(BridgeError::Key("personal API keys begin with `phx_`"));
    }
    let mut bearer = HeaderValue::from_str(&format!("Bearer {key}"))
        .map_err(|_| BridgeError::Key("it has characters that no key has"))?;
    bearer.set_sensitive(true);
    Ok(HeaderMap::from_iter([
        (AUTHORIZATION, bearer),
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (ACCEPT, HeaderValue::from_static("application/json, text/event-stream")),
    ]))
}

/// The body as one line, if it is JSON. A line break of JSON is a blank between values.
fn one_line(mut body: Vec<u8>) -> Option<String> {
    serde_json::from_slice::<IgnoredAny>(&body).ok()?;
    for byte in &mut body {
        if matches!(byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
    String::from_utf8(body).ok()
}

/// The sentence of an error body, as the end of a sentence.
fn detail(body: &[u8]) -> String {
    let body: Option<Value> = serde_json::from_slice(body).ok();
    let message = body.as_ref().and_then(|body| body["error"]["message"].as_str());
    match message {
        Some(message) => format!(": {}", message.chars().take(SHOWN).collect::<String>()),
        None => String::new(),
    }
}

fn refused(message: impl Into<String>) -> Fault {
    Fault::new(Fault::REFUSED, message)
}

fn unreachable_host(error: &reqwest::Error) -> Fault {
    if error.is_timeout() {
        return refused("the host does not answer in time");
    }
    // The innermost cause describes the failure; the outer ones repeat the address.
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    refused(format!("cannot reach the host: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_hosts() {
        for (url, expected) in [
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000/mcp"),
            ("https://weir.example.org/", "https://weir.example.org/mcp"),
            ("https://weir.example.org/mcp/", "https://weir.example.org/mcp"),
            ("https://example.org/weir", "https://example.org/weir/mcp"),
        ] {
            assert_eq!(address(url).unwrap().as_str(), expected, "{url}");
        }
        for url in
            ["", "localhost", "ftp://a.example", "http://a:b@a.example", "http://a.example/?x=1"]
        {
            assert!(matches!(address(url), Err(BridgeError::Address { .. })), "{url}");
        }
        for url in ["https://ada:secret@a.example/x", "https://ada:secret@a.example:99999"] {
            let error = address(url).unwrap_err().to_string();
            assert!(error.contains("a.example") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_key_is_exposed_on_its_way_to_another_machine() {
        for (url, expected) in [
            ("http://127.0.0.1:8000", false),
            ("http://127.1.2.3", false),
            ("http://[::1]:8000", false),
            ("http://localhost:8000", false),
            ("https://weir.example.org", false),
            ("http://weir.example.org", true),
            ("http://192.168.1.7:8000", true),
        ] {
            assert_eq!(Host::new(url, "phx_abc").unwrap().exposes_key(), expected, "{url}");
        }
    }

    #[test]
    fn keys_that_are_none_are_refused() {
        for key in ["", "  ", "phc_project", "phx_a\nb"] {
            assert!(matches!(headers(key), Err(BridgeError::Key(_))), "{key:?}");
        }
        let found = headers(" phx_abc\n").unwrap();
        assert!(found[AUTHORIZATION].is_sensitive());
        assert_eq!(found[AUTHORIZATION], "Bearer phx_abc");
    }

    #[test]
    fn an_answer_is_one_line_of_json() {
        assert_eq!(one_line(b"{\n\"a\":\"\\n\"}\r\n".to_vec()).unwrap(), "{ \"a\":\"\\n\"}  ");
        assert!(one_line(b"<html>".to_vec()).is_none());
        assert!(one_line(Vec::new()).is_none());
        assert_eq!(detail(br#"{"error": {"message": "No key."}}"#), ": No key.");
        assert_eq!(detail(b"<html>"), "");
    }
}
