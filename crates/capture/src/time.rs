//! The time of an event (ING-38, ING-39).
//!
//! What belongs here: correcting the clock of the sender, and the bounds of a time. What
//! does not: which texts are a time (`weir_model::time::text`); reading the clock, because
//! the time of receipt is an argument.
//!
//! All times are microseconds since 1970-01-01 UTC; smaller fractions are cut off.

use chrono::{DateTime, Utc};
use weir_json as json;
use weir_model::outcomes::Warning;
use weir_model::time::text::{self, Forms};

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;

/// How far in the future an event may be, as in PostHog. A local time that was sent without
/// its zone is below this limit: it is at most 14 hours ahead.
const FUTURE_LIMIT: i64 = 23 * HOUR;

/// 0000-01-01T00:00:00Z, the first valid time.
const YEAR_0: i64 = -62_167_219_200 * SECOND;

/// 10000-01-01T00:00:00Z, the first time that is too late.
const YEAR_10000: i64 = 253_402_300_800 * SECOND;

/// The time fields of an event and its request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claims<'a> {
    /// JSON text of `timestamp`; `None` if missing or `null`.
    pub(super) timestamp: Option<&'a str>,
    /// JSON text of `offset`, the milliseconds from the event until it was sent; `None` if
    /// missing or `null`.
    pub(super) offset: Option<&'a str>,
    /// Time of sending by the sender's clock.
    pub(super) sent_at: Option<DateTime<Utc>>,
    /// `$ignore_sent_at`: the sender's clock is not corrected.
    pub(super) ignore_sent_at: bool,
}

/// The event time by the clock of the service.
pub(super) fn event_time(
    claims: Claims<'_>,
    received_at: DateTime<Utc>,
    warnings: &mut Vec<Warning>,
) -> i64 {
    let now = received_at.timestamp_micros();
    let time = claimed_time(claims, now, warnings);
    if time > now.saturating_add(FUTURE_LIMIT) {
        warnings.push(Warning::FutureTimestamp);
        now
    } else if (YEAR_0..YEAR_10000).contains(&time) {
        time
    } else {
        warnings.push(Warning::TimestampOutOfRange);
        // 1970, as in PostHog.
        0
    }
}

/// The time before the bounds are checked. Saturates: an overflow is out of bounds
/// anyway.
fn claimed_time(claims: Claims<'_>, now: i64, warnings: &mut Vec<Warning>) -> i64 {
    if let Some(offset) = claims.offset {
        if let Some(milliseconds) = integer(offset) {
            // From the time of receipt, so that the sender's clock does not matter.
            return now.saturating_sub(milliseconds.saturating_mul(1000));
        }
        warnings.push(Warning::InvalidTimestamp);
    }
    let Some(timestamp) = claims.timestamp else {
        return now;
    };
    let Some(time) = parse_json(timestamp) else {
        if !warnings.contains(&Warning::InvalidTimestamp) {
            warnings.push(Warning::InvalidTimestamp);
        }
        return now;
    };
    match claims.sent_at {
        Some(sent_at) if !claims.ignore_sent_at => {
            let ahead = sent_at.timestamp_micros().saturating_sub(now);
            time.saturating_sub(ahead)
        }
        _ => time,
    }
}

/// An integer. Libraries that only have floats send `5.0`.
fn integer(json: &str) -> Option<i64> {
    let (digits, fraction) = json.split_once('.').unwrap_or((json, "0"));
    if !fraction.bytes().all(|digit| digit == b'0') {
        return None;
    }
    digits.parse().ok()
}

/// Parses a JSON string or number as a time, in any notation that libraries send.
fn parse_json(json: &str) -> Option<i64> {
    match json::string_lossy(json) {
        Some(text) => text::read(&text, Forms::Any),
        None => text::epoch(json, Forms::Any),
    }
}

/// Parses a date with or without a time, in any notation that libraries send. A number is
/// no date.
pub(super) fn parse_date(text: &str) -> Option<i64> {
    text::calendar(text, Forms::Any)
}

#[cfg(test)]
mod tests;
