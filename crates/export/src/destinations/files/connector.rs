//! The HTTP connector of storages: their requests go through `weir-egress`.
//!
//! What belongs here: sending one request, and the meaning of its answer. What does not:
//! signatures and retries of single requests (`object_store`).

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use weir_egress::{Body, Egress, Fault, FaultClass, Refused};

use crate::destination::Failure;

/// The timeout for a request up to the end of its answer: a part over a slow connection.
const REQUEST: Duration = Duration::from_secs(180);
/// Upper bound of bytes in an answer: lists of parts and errors.
const ANSWER: usize = 1 << 20;
/// Bytes of an answer in which the code of an error is searched for.
const CODE_WITHIN: usize = 4 << 10;
/// The header with the error code of Azure.
const AZURE_CODE: &str = "x-ms-error-code";

/// An unsuccessful answer of a storage. Only known codes are kept; other text of a server
/// is discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{fault} {}", .code.unwrap_or_default())]
pub(super) struct Answered {
    pub(super) fault: Fault,
    pub(super) code: Option<&'static str>,
}

/// Creates clients that send through the egress filter.
#[derive(Clone)]
pub(crate) struct Connector {
    egress: Egress,
}

impl Connector {
    pub(crate) fn new(egress: &Egress) -> Self {
        Self { egress: egress.clone() }
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
        let request = self
            .egress
            .request(parts.method, &parts.uri.to_string())
            .map_err(|refused: Refused| error(Fault::from(refused), None))?
            .headers(parts.headers)
            .timeout(REQUEST)
            .body(Body::wrap(body));
        let response = request.send().await.map_err(|broken| error(broken.into(), None))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = Egress::read(response, ANSWER).await.map_err(|fault| error(fault, None))?;
        if !status.is_success() {
            let named = headers.get(AZURE_CODE).and_then(|code| code.to_str().ok());
            let code = named.map(str::to_owned).or_else(|| code_in(&body));
            let fault = Fault::from(FaultClass::Status(status.as_u16()));
            return Err(error(fault, code.as_deref().and_then(known)));
        }
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

impl From<Answered> for Failure {
    fn from(Answered { fault, code }: Answered) -> Self {
        let FaultClass::Status(status) = fault.class else { return fault.into() };
        match (code.unwrap_or_default(), status) {
            (
                "NoSuchBucket" | "ContainerNotFound" | "InvalidBucketName" | "InvalidResourceName",
                _,
            ) => Self::permanent("NoSuchBucket", "There is no such bucket or container."),
            (
                "InvalidAccessKeyId"
                | "SignatureDoesNotMatch"
                | "ExpiredToken"
                | "InvalidToken"
                | "AuthenticationFailed"
                | "InvalidAuthenticationInfo",
                _,
            )
            | (_, 401) => Self::permanent(
                "InvalidCredentials",
                "The storage does not know these credentials.",
            ),
            ("KMS.NotFoundException" | "KMS.DisabledException", _) => {
                Self::permanent("InvalidKey", "The key for encryption is not there, or is off.")
            }
            ("PermanentRedirect" | "AuthorizationHeaderMalformed", _) | (_, 300..=399) => {
                Self::permanent(
                    "WrongRegion",
                    "The bucket is in another region, or at another address.",
                )
            }
            ("EntityTooLarge", _) | (_, 413) => Self::permanent(
                "FileTooLarge",
                "The storage does not take files of this size. Set max_file_size_mb.",
            ),
            ("RequestTimeTooSkewed", _) => Self::retryable(
                "WrongClock",
                "The storage says that the clock of this server is wrong.",
            ),
            ("NoSuchUpload", _) => {
                Self::retryable("UploadGone", "The storage has dropped parts of a file.")
            }
            (_, 403) => Self::permanent(
                "AccessDenied",
                "The credentials do not allow to do this at this place.",
            ),
            (_, 408 | 429 | 500..) => Self::retryable(
                "StorageUnavailable",
                format!("The storage is busy or out of order: it answered with HTTP {status}."),
            ),
            _ => fault.into(),
        }
    }
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
    fn what_may_pass_is_tried_again() {
        let failure = |status, code| {
            Failure::from(Answered { fault: FaultClass::Status(status).into(), code })
        };
        for (status, code, class, is_retryable) in [
            (404, Some("NoSuchBucket"), "NoSuchBucket", false),
            (404, Some("ContainerNotFound"), "NoSuchBucket", false),
            (403, Some("AccessDenied"), "AccessDenied", false),
            (403, None, "AccessDenied", false),
            (403, Some("SignatureDoesNotMatch"), "InvalidCredentials", false),
            (401, None, "InvalidCredentials", false),
            (301, None, "WrongRegion", false),
            (413, None, "FileTooLarge", false),
            (404, Some("NoSuchUpload"), "UploadGone", true),
            (403, Some("RequestTimeTooSkewed"), "WrongClock", true),
            (503, None, "StorageUnavailable", true),
            (429, None, "StorageUnavailable", true),
            (400, None, "HttpStatus", false),
        ] {
            let failure = failure(status, code);
            let found = (failure.class, failure.is_retryable);
            assert_eq!(found, (class, is_retryable), "{status} {code:?}");
        }
    }
}
