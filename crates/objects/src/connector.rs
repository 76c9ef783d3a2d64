//! The HTTP connector of storages: their requests go through `weir-egress`.
//!
//! What belongs here: sending one request, and the meaning of its answer. What does not:
//! signatures and retries of single requests (`object_store`).

use std::error::Error;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use weir_egress::{Body, Egress, Fault, FaultClass, Refused};

/// The timeout for a request up to the end of its answer: a part over a slow connection.
const REQUEST: Duration = Duration::from_secs(180);
/// Bytes of an answer in which the code of an error is searched for.
const CODE_WITHIN: usize = 4 << 10;
/// The header with the error code of Azure.
const AZURE_CODE: &str = "x-ms-error-code";

/// An unsuccessful answer of a storage. Only known codes are kept; other text of a server
/// is discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{fault} {}", .code.unwrap_or_default())]
pub struct Answered {
    /// What happened.
    pub fault: Fault,
    /// The code of the error, if it is a known one.
    pub code: Option<&'static str>,
}

impl Answered {
    /// The answer of the storage, if it is the cause of the error.
    pub fn of(error: &object_store::Error) -> Option<Self> {
        let mut next: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(cause) = next {
            if let Some(answered) = cause.downcast_ref::<Self>() {
                return Some(*answered);
            }
            next = cause.source();
        }
        None
    }
}

/// Creates clients that send through the egress filter.
#[derive(Clone)]
pub struct Connector {
    egress: Egress,
    answer: usize,
}

impl Connector {
    /// Sends requests whose answers have at most `answer` bytes.
    pub fn new(egress: &Egress, answer: usize) -> Self {
        Self { egress: egress.clone(), answer }
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Connector {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let is_list = parts.uri.query().is_some_and(|query| query.contains("list-type=2"));
        let request = self
            .egress
            .request(parts.method, &parts.uri.to_string())
            .map_err(|refused: Refused| error(Fault::from(refused), None))?
            .headers(parts.headers)
            .timeout(REQUEST)
            .body(Body::wrap(body));
        let response = request.send().await.map_err(|broken| error(broken.into(), None))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = Egress::read(response, self.answer).await.map_err(|fault| error(fault, None))?;
        if !status.is_success() {
            let named = headers.get(AZURE_CODE).and_then(|code| code.to_str().ok());
            let code = named.map(str::to_owned).or_else(|| code_in(&body));
            let fault = Fault::from(FaultClass::Status(status.as_u16()));
            return Err(error(fault, code.as_deref().and_then(known)));
        }
        let body = if is_list { without_unusable(&body).into() } else { body };
        let mut answer = HttpResponse::new(body.into());
        *answer.status_mut() = status;
        *answer.headers_mut() = headers;
        Ok(answer)
    }
}

/// An error that `object_store` retries if that may help.
fn error(fault: Fault, code: Option<&'static str>) -> HttpError {
    let kind = match fault.class {
        FaultClass::Status(408 | 429 | 500..) => HttpErrorKind::Request,
        FaultClass::Refused => HttpErrorKind::Connect,
        FaultClass::TimedOut => HttpErrorKind::Timeout,
        FaultClass::Broken => HttpErrorKind::Interrupted,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, Answered { fault, code })
}

/// Leaves out the objects of a list whose names `object_store` refuses: it would refuse the
/// whole list because of one of them.
fn without_unusable(list: &[u8]) -> Vec<u8> {
    const BEGIN: &str = "<Contents>";
    const END: &str = "</Contents>";
    let Ok(mut rest) = std::str::from_utf8(list) else { return list.to_vec() };
    let mut usable = String::with_capacity(rest.len());
    while let Some((before, behind)) = rest.split_once(BEGIN) {
        let Some((object, after)) = behind.split_once(END) else { break };
        usable.push_str(before);
        let key = object.split_once("<Key>").and_then(|(_, behind)| behind.split_once("</Key>"));
        if key.is_none_or(|(key, _)| is_usable(key)) {
            usable.extend([BEGIN, object, END]);
        }
        rest = after;
    }
    usable.push_str(rest);
    usable.into_bytes()
}

/// Whether a name, as it is in XML, has neither an empty part nor a control character.
fn is_usable(key: &str) -> bool {
    let key = key.strip_prefix('/').unwrap_or(key);
    let key = key.strip_suffix('/').unwrap_or(key);
    key.is_empty()
        || !key.contains("&#")
            && !key.chars().any(|c| c.is_ascii_control())
            && key.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// `<Code>NoSuchBucket</Code>`
fn code_in(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(&body[..body.len().min(CODE_WITHIN)]);
    let (_, behind) = text.split_once("<Code>")?;
    Some(behind.split_once("</Code>")?.0.to_owned())
}

/// Codes that lead to different remedies for users.
const CODES: &[&str] = &[
    // S3 and Google Cloud Storage
    "AccessDenied",
    "AuthorizationHeaderMalformed",
    "EntityTooLarge",
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidBucketName",
    "InvalidToken",
    "KMS.DisabledException",
    "KMS.NotFoundException",
    "NoSuchBucket",
    "NoSuchKey",
    "NoSuchUpload",
    "PermanentRedirect",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    // Azure
    "AuthenticationFailed",
    "AuthorizationFailure",
    "AuthorizationPermissionMismatch",
    "BlobNotFound",
    "ContainerNotFound",
    "InvalidAuthenticationInfo",
    "InvalidResourceName",
];

fn known(code: &str) -> Option<&'static str> {
    CODES.iter().copied().find(|known| *known == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_codes_of_what_a_server_wrote_are_passed_on() {
        let code = |body: &str| code_in(body.as_bytes()).as_deref().and_then(known);
        let error = |code: &str| format!("<?xml?><Error><Code>{code}</Code><Message>m</Message>");
        assert_eq!(code(&error("NoSuchBucket")), Some("NoSuchBucket"));
        assert_eq!(code(&error("root:x:0:0")), None);
        assert_eq!(code("<Code>NoSuchBucket"), None);
        assert_eq!(code(""), None);
    }

    #[test]
    fn a_list_has_no_names_that_no_request_can_have() {
        let list = |keys: &[&str]| {
            let object =
                |key: &&str| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>");
            let objects: String = keys.iter().map(object).collect();
            format!("<List><Max>9</Max>{objects}<Prefix>a</Prefix></List>").into_bytes()
        };
        let all = list(&["a", "a//b", "/c/", "..", "d/./e", "f&#10;", "a//", "g&amp;h/i", ""]);
        assert_eq!(without_unusable(&all), list(&["a", "/c/", "g&amp;h/i", ""]));
        assert_eq!(without_unusable(b"<Contents><Key>.."), b"<Contents><Key>..");
    }
}
