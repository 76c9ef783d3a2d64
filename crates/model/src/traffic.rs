//! Traffic of a project by minute: number and size of events, processing time, and
//! refused requests.
//!
//! What belongs here: the counts and adding them up, the record of a refused request, and
//! the descriptions of refusals. What does not: when something is counted, and how long
//! it is kept.

use std::collections::BTreeMap;

use crate::time::Timestamp;

/// Upper bounds of the classes of processing time, in milliseconds. Longer times are in
/// one more class.
pub const BOUNDS: [u64; 19] =
    [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 1_000, 2_000, 5_000];
/// The processing time that is reported for requests beyond the last bound, in
/// milliseconds.
const BEYOND: u64 = 10_000;
/// Number of classes of processing time.
pub const CLASSES: usize = BOUNDS.len() + 1;

/// Traffic of a project in a period.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Stored events.
    pub accepted: u64,
    /// Events that were not stored although their request was answered with 200.
    pub dropped: u64,
    /// Refused requests.
    pub rejected: u64,
    /// Requests that were answered with 200.
    pub requests: u64,
    /// Bytes of the bodies of all requests, as sent.
    pub bytes: u64,
    /// Bytes of the largest body.
    pub largest: u64,
    /// The most bytes that waited to be applied. This is a value of the instance, not of
    /// the project.
    pub waiting: u64,
    /// Requests by processing time.
    pub took: [u64; CLASSES],
    /// Number of occurrences by reason, warning or refusal code.
    pub reasons: BTreeMap<String, u64>,
}

impl Counts {
    /// Counts a request that was answered with 200.
    pub fn answered(&mut self, bytes: u64, milliseconds: u64) {
        self.requests += 1;
        self.body(bytes);
        let class = BOUNDS.iter().position(|bound| milliseconds <= *bound);
        if let Some(count) = self.took.get_mut(class.unwrap_or(BOUNDS.len())) {
            *count += 1;
        }
    }

    /// Counts a request that was refused.
    pub fn refused(&mut self, bytes: u64, code: &str) {
        self.rejected += 1;
        self.body(bytes);
        self.reason(code, 1);
    }

    /// Counts a reason.
    pub fn reason(&mut self, code: &str, times: u64) {
        match self.reasons.get_mut(code) {
            Some(count) => *count += times,
            None => {
                self.reasons.insert(code.to_owned(), times);
            }
        }
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.dropped += other.dropped;
        self.rejected += other.rejected;
        self.requests += other.requests;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.largest = self.largest.max(other.largest);
        self.waiting = self.waiting.max(other.waiting);
        for (count, more) in self.took.iter_mut().zip(other.took) {
            *count += more;
        }
        for (code, times) in &other.reasons {
            self.reason(code, *times);
        }
    }

    /// Whether nothing reached the project.
    pub fn is_silent(&self) -> bool {
        self.accepted == 0 && self.dropped == 0 && self.rejected == 0 && self.requests == 0
    }

    /// The processing time, in milliseconds, within which this many percent of the
    /// requests were answered; `None` without requests.
    pub fn within(&self, hundredths: u64) -> Option<u64> {
        let all: u64 = self.took.iter().sum();
        let wanted = (all * hundredths).div_ceil(100).max(1);
        let mut seen = 0;
        self.took.iter().enumerate().find_map(|(class, count)| {
            seen += count;
            (seen >= wanted).then(|| BOUNDS.get(class).copied().unwrap_or(BEYOND))
        })
    }

    fn body(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.largest = self.largest.max(bytes);
    }
}

/// Requests from one sender with an unknown project key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey {
    /// The beginning of the key.
    pub mask: String,
    /// IP address of the sender.
    pub caller: String,
    /// Number of requests.
    pub count: u64,
    /// Time of the first request.
    pub first_at: Timestamp,
    /// Time of the last request.
    pub last_at: Timestamp,
}

/// A refused request with the key of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedRequest {
    /// Unique within the project.
    pub key: String,
    /// Time of receipt.
    pub at: Timestamp,
    /// Code of the [`Refusal`].
    pub code: String,
    /// Details: where the body cannot be parsed.
    pub detail: Option<String>,
    /// The path of the request.
    pub route: String,
    /// Client library or program, as it names itself.
    pub library: Option<String>,
    /// Bytes of its body, as sent.
    pub bytes: u64,
    /// The beginning of its project key.
    pub project_key: Option<String>,
}

/// The description of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// What happened.
    pub sentence: &'static str,
    /// What to do about it.
    pub fix: &'static str,
}

impl Refusal {
    /// The description of the code; `None`: it is not the code of a refusal.
    pub fn of(code: &str) -> Option<Self> {
        let (sentence, fix) = match code {
            "invalid_payload" => (
                "The body could not be read.",
                "Send JSON, and name its compression in `Content-Encoding`.",
            ),
            "payload_too_large" => (
                "The body was larger than 20,000,000 bytes, as sent or decompressed.",
                "Send fewer events with each request.",
            ),
            "missing_api_key" => {
                ("The request carried no project key.", "Send the project key as `api_key`.")
            }
            "invalid_api_key" => (
                "No project has the key of the request.",
                "Copy the project key from the start page of the project.",
            ),
            "not_accepted" => (
                "The events could not be kept just then, and the sender was asked to try again.",
                "Check the disk and the log of the instance; libraries send such events again.",
            ),
            "over_limit" => (
                "The organization had reached a limit that the operator of the instance has set, and the sender was asked to try again later.",
                "See the limits on the page of the organization; send fewer events, or ask the operator to raise the limit.",
            ),
            "request_timeout" => (
                "The body did not arrive in time.",
                "Check the network of the sender, or send fewer events with each request.",
            ),
            "invalid_request" => (
                "A header of the newer protocol was missing or wrong.",
                "Update the library that sends the events.",
            ),
            "not_kept" => (
                "It brought logs, metrics, traces, reports or push tokens, which Weir does not keep.",
                "Switch them off in the library; events are not concerned.",
            ),
            "failed" => (
                "The request failed inside Weir.",
                "Look for its id in the log of the instance; the sender may try again.",
            ),
            _ => return None,
        };
        Some(Self { sentence, fix })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_bounds_of_classes() {
        let mut counts = Counts::default();
        assert_eq!(counts.within(50), None);
        for milliseconds in [0, 1, 4, 90] {
            counts.answered(10, milliseconds);
        }
        assert_eq!((counts.within(50), counts.within(95)), (Some(1), Some(100)));
        counts.answered(1, 60_000);
        assert_eq!(counts.within(99), Some(BEYOND));
        assert_eq!((counts.requests, counts.bytes, counts.largest), (5, 41, 10));
    }

    #[test]
    fn counts_add_up() {
        let mut one = Counts::default();
        one.answered(10, 3);
        one.refused(7, "invalid_payload");
        let mut sum = one.clone();
        sum.add(&one);
        assert_eq!((sum.requests, sum.rejected, sum.bytes, sum.largest), (2, 2, 34, 10));
        assert_eq!(sum.reasons.get("invalid_payload"), Some(&2));
        assert!(!sum.is_silent() && Counts::default().is_silent());
        assert!(Refusal::of("invalid_payload").is_some() && Refusal::of("else").is_none());
    }
}
