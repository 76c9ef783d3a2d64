//! The HTTP client of the host that receives the events.
//!
//! What belongs here: requests, and the meaning of answers (ING-62). What does not:
//! retries, and splitting batches ([`crate::deliver`]).

use std::time::Duration;

use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use serde::Deserialize;

use crate::error::ImportError;

/// Timeout of an answer.
const ANSWER_TIME: Duration = Duration::from_secs(120);
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Maximum bytes of an answer that are read.
const ANSWER_LIMIT: usize = 64 << 10;
/// Maximum wait that a host can ask for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(300);

/// The target of requests.
#[derive(Debug, Clone)]
pub(crate) struct ImportServer {
    client: Client,
    url: Url,
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Acknowledged.
    Accepted,
    /// The body is too large for the host.
    TooLarge,
    /// A retry may succeed.
    Later {
        /// Description of the failure.
        why: String,
        /// The wait that the host asks for.
        after: Option<Duration>,
        /// Whether the host answered at all.
        answered: bool,
    },
    /// A retry would not help.
    Refused(String),
}

/// Parts of the answers of capture hosts.
#[derive(Debug, Default, Deserialize)]
struct Answer {
    status: Option<serde_json::Value>,
    detail: Option<String>,
    #[serde(default)]
    quota_limited: Vec<String>,
}

/// The URL of a host, without a trailing slash.
pub(crate) fn address(to: &str) -> Result<Url, ImportError> {
    let refused =
        |detail: &str| ImportError::Address { to: to.to_owned(), detail: detail.to_owned() };
    let mut url = Url::parse(to).map_err(|error| refused(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("it must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("it must not hold a password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refused("it must not have a part behind `?` or `#`"));
    }
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix("/batch").unwrap_or(path).to_owned();
    url.set_path(&path);
    Ok(url)
}

impl ImportServer {
    /// A client for a host at an [`address`].
    pub(crate) fn new(address: &Url) -> Result<Self, ImportError> {
        // Following a redirect would lose the events and report success.
        let mut builder = Client::builder()
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIME)
            .timeout(ANSWER_TIME)
            .user_agent(concat!("weir-import/", env!("CARGO_PKG_VERSION")));
        // A proxy cannot reach this machine by its loopback address.
        if matches!(address.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(ImportError::Client)?;
        let mut url = address.clone();
        url.set_path(&format!("{}/batch/", url.path().trim_end_matches('/')));
        // The IP address of this machine is not that of the events.
        url.set_query(Some("ip=0"));
        Ok(Self { client, url })
    }

    /// Sends a body, compressed with gzip.
    pub(crate) async fn send(&self, compressed: Vec<u8>) -> Reply {
        let request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(CONTENT_ENCODING, "gzip")
            .body(compressed);
        let mut response = match request.send().await {
            Ok(response) => response,
            Err(error) => return unreachable_host(&error, false),
        };
        let status = response.status();
        let headers = response.headers().clone();
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() < ANSWER_LIMIT => body.extend_from_slice(&chunk),
                Ok(_) => break,
                Err(error) => return unreachable_host(&error, true),
            }
        }
        judge(status, &headers, &body)
    }
}

fn unreachable_host(error: &reqwest::Error, answered: bool) -> Reply {
    // The innermost cause describes the failure; the outer ones repeat the address.
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let why = if error.is_timeout() {
        "the host does not answer in time".to_owned()
    } else {
        format!("cannot reach the host: {cause}")
    };
    Reply::Later { why, after: None, answered }
}

fn judge(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Reply {
    let answer: Option<Answer> = serde_json::from_slice(body).ok();
    let detail = || {
        let detail = answer.as_ref().and_then(|answer| answer.detail.clone());
        let text = detail.unwrap_or_else(|| String::from_utf8_lossy(body).trim().to_owned());
        let text: String = text.chars().take(200).collect();
        if text.is_empty() { String::new() } else { format!(": {text}") }
    };
    match status.as_u16() {
        200..=299 => match &answer {
            Some(answer) if !answer.quota_limited.is_empty() => {
                let what = answer.quota_limited.join(", ");
                Reply::Refused(format!("the host is over its quota and drops events ({what})"))
            }
            Some(Answer { status: Some(_), .. }) => Reply::Accepted,
            _ => Reply::Refused(format!(
                "the host answers {status}, but not as a capture host does; is `--to` its address?"
            )),
        },
        300..=399 => {
            let to = headers.get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("elsewhere");
            Reply::Refused(format!("the host redirects to {to}; give that address as `--to`"))
        }
        413 => Reply::TooLarge,
        408 | 425 | 429 | 500..=599 => Reply::Later {
            why: format!("the host answers {status}{}", detail()),
            after: retry_after(headers),
            answered: true,
        },
        401 | 403 => Reply::Refused(format!("the host refuses the project key{}", detail())),
        404 | 405 => Reply::Refused(format!("the host takes no events at this address ({status})")),
        _ => Reply::Refused(format!("the host refuses the events ({status}){}", detail())),
    }
}

/// Only seconds: capture hosts send no dates.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::StatusCode;
    use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};

    use super::{ImportServer, Reply, address, judge};

    #[test]
    fn addresses_of_hosts() {
        for (to, expected) in [
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000/batch/?ip=0"),
            ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/batch/?ip=0"),
            ("https://eu.example.org/batch/", "https://eu.example.org/batch/?ip=0"),
            ("https://example.org/weir/", "https://example.org/weir/batch/?ip=0"),
        ] {
            let host = ImportServer::new(&address(to).unwrap()).unwrap();
            assert_eq!(host.url.as_str(), expected, "{to}");
        }
        for bad in [
            "",
            "127.0.0.1:8000",
            "localhost",
            "ftp://a.example",
            "http://user:password@a.example",
            "http://a.example/?x=1",
        ] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }

    fn answered(status: u16, header: Option<(&str, &str)>, body: &str) -> Reply {
        let mut headers = HeaderMap::new();
        match header {
            Some(("location", value)) => headers.insert(LOCATION, value.parse().unwrap()),
            Some((_, value)) => headers.insert(RETRY_AFTER, value.parse().unwrap()),
            None => None,
        };
        judge(StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes())
    }

    #[test]
    fn what_answers_mean() {
        assert_eq!(answered(200, None, r#"{"status":1}"#), Reply::Accepted);
        assert_eq!(answered(200, None, r#"{"status":"Ok"}"#), Reply::Accepted);
        assert_eq!(answered(413, None, "<html>"), Reply::TooLarge);
        for (status, header, body, expected) in [
            (200, None, "<html>", "not as a capture host does"),
            (204, None, "", "not as a capture host does"),
            (200, None, r#"{"status":1,"quota_limited":["events"]}"#, "over its quota"),
            (301, Some(("location", "https://b.example/batch/")), "", "https://b.example/batch/"),
            (400, None, r#"{"detail":"No events."}"#, "(400 Bad Request): No events."),
            (401, None, r#"{"detail":"Unknown key."}"#, "refuses the project key: Unknown key."),
            (404, None, "", "takes no events at this address"),
        ] {
            let Reply::Refused(why) = answered(status, header, body) else {
                panic!("{status} is not refused");
            };
            assert!(why.contains(expected), "{why}");
        }
        for (status, after, expected) in
            [(503, "7", Some(7)), (429, "100000", Some(300)), (500, "soon", None), (408, "", None)]
        {
            let reply = answered(status, Some(("retry-after", after)), "");
            let Reply::Later { after, answered: true, .. } = reply else {
                panic!("{reply:?}");
            };
            assert_eq!(after, expected.map(Duration::from_secs));
        }
    }
}
