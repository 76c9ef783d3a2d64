//! The meaning of a receiver's answer for a run (EXP-28, EXP-29).
//!
//! What belongs here: status, `Retry-After` and known bodies. What does not: sending
//! (`http`), retries (`engine`).

use std::time::Duration;

use chrono::DateTime;
use serde::Deserialize;
use weir_egress::{Egress, FaultClass, Response, header};

use crate::destination::Failure;

/// Upper bound of bytes that are read of an answer.
const ANSWER_MAX: usize = 64 << 10;
/// Upper bound of the wait that a receiver can ask for.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// The class of a failure for a request that the receiver cannot parse.
pub(super) const INVALID: &str = "InvalidRequest";

/// The outcome for the events of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The receiver has accepted them.
    Taken,
    /// The receiver refused the request because it has too many events or bytes.
    TooLarge,
}

/// Reads an answer.
pub(super) async fn read(response: Response) -> Result<Answer, Failure> {
    let status = response.status();
    let wait = wait_of(&response);
    if status.is_success() {
        return match Egress::read(response, ANSWER_MAX).await {
            Ok(body) if is_over_quota(&body) => Err(Failure::permanent(
                "OverQuota",
                "The receiver took the request, but is over its quota and drops the events.",
            )),
            Ok(_) => Ok(Answer::Taken),
            // The status says success, so a long body does not matter.
            Err(fault) if fault.class == FaultClass::TooLarge => Ok(Answer::Taken),
            Err(fault) => Err(fault.into()),
        };
    }
    judge(status.as_u16(), wait)
}

/// The meaning of a status other than success.
fn judge(status: u16, wait: Option<Duration>) -> Result<Answer, Failure> {
    Err(match status {
        413 => return Ok(Answer::TooLarge),
        300..=399 => Failure::permanent(
            "Redirected",
            format!(
                "The receiver redirects (HTTP {status}). Enter the address that it redirects to."
            ),
        ),
        400 => {
            Failure::permanent(INVALID, "The receiver does not understand the events (HTTP 400).")
        }
        401 | 403 => Failure::permanent(
            "TokenRefused",
            format!("The receiver refuses the token (HTTP {status})."),
        ),
        404 | 405 => Failure::permanent(
            "NoReceiver",
            format!("The receiver takes no events at this address (HTTP {status})."),
        ),
        429 => Failure {
            wait,
            ..Failure::retryable("Throttled", "The receiver asks for fewer requests (HTTP 429).")
        },
        status if (400..500).contains(&status) => Failure::permanent(
            "HttpStatus",
            format!("The receiver does not take the events (HTTP {status})."),
        ),
        _ => Failure {
            wait,
            ..Failure::retryable("HttpStatus", format!("The receiver failed (HTTP {status})."))
        },
    })
}

/// `Retry-After`: seconds, or a time by the receiver's clock.
fn wait_of(response: &Response) -> Option<Duration> {
    let text = |name| response.headers().get(name)?.to_str().ok();
    wait(text(header::RETRY_AFTER)?, text(header::DATE))
}

fn wait(after: &str, now: Option<&str>) -> Option<Duration> {
    let after = after.trim();
    let wait = match after.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let then = DateTime::parse_from_rfc2822(after).ok()?;
            let now = DateTime::parse_from_rfc2822(now?.trim()).ok()?;
            // A time in the past means no wait.
            (then - now).to_std().unwrap_or_default()
        }
    };
    Some(wait.min(WAIT_MAX))
}

/// Whether the receiver dropped events although it answered with success.
fn is_over_quota(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct QuotaAnswer {
        #[serde(default)]
        quota_limited: Vec<String>,
    }
    let said = serde_json::from_slice::<QuotaAnswer>(body);
    said.is_ok_and(|said| said.quota_limited.iter().any(|what| what == "events"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_the_request_are_final_others_are_not() {
        for (status, class, is_retryable) in [
            (301, "Redirected", false),
            (308, "Redirected", false),
            (400, INVALID, false),
            (401, "TokenRefused", false),
            (403, "TokenRefused", false),
            (404, "NoReceiver", false),
            (408, "HttpStatus", false),
            (422, "HttpStatus", false),
            (429, "Throttled", true),
            (500, "HttpStatus", true),
            (502, "HttpStatus", true),
            (503, "HttpStatus", true),
            (504, "HttpStatus", true),
        ] {
            let failure = judge(status, None).unwrap_err();
            assert_eq!((failure.class, failure.is_retryable), (class, is_retryable), "{status}");
            assert!(failure.message.contains(&status.to_string()), "{failure}");
        }
        assert_eq!(judge(413, None), Ok(Answer::TooLarge));
    }

    #[test]
    fn a_receiver_says_how_long_to_wait() {
        let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        for (after, now, expected) in [
            ("7", None, Some(7)),
            (" 120 ", date, Some(120)),
            ("0", None, Some(0)),
            ("999999", None, Some(3600)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", date, Some(30)),
            ("Sun, 06 Nov 1994 08:49:07 GMT", date, Some(0)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", None, None),
            ("soon", date, None),
            ("-1", None, None),
            ("", None, None),
        ] {
            assert_eq!(wait(after, now), expected.map(Duration::from_secs), "{after}");
        }
        let wait = Some(Duration::from_secs(9));
        assert_eq!(judge(429, wait).unwrap_err().wait, wait);
        assert_eq!(judge(503, wait).unwrap_err().wait, wait);
        assert_eq!(judge(400, wait).unwrap_err().wait, None);
    }

    #[test]
    fn a_success_that_drops_events_is_none() {
        assert!(is_over_quota(br#"{"status":1,"quota_limited":["events"]}"#));
        for body in ["", "Ok", "{}", r#"{"status":1}"#, r#"{"quota_limited":["recordings"]}"#] {
            assert!(!is_over_quota(body.as_bytes()), "{body}");
        }
    }
}
