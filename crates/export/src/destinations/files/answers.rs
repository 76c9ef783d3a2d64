//! What the answers of storages mean to members (`weir-objects` sends the requests).

use weir_egress::FaultClass;
use weir_objects::Answered;

use crate::destination::Failure;

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
