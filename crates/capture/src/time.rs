//! The time of an event (ING-38, ING-39).
//!
//! What belongs here: parsing the many forms of a time, and correcting the clock of the
//! sender. What does not: reading the clock; the time of receipt is an argument.
//!
//! All times are microseconds since 1970-01-01 UTC; further digits are truncated.

use chrono::{DateTime, NaiveDate, Utc};
use weir_json as json;
use weir_model::outcomes::Warning;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// How far in the future an event may be: time zones and an error of one hour stay below
/// it.
const FUTURE_LIMIT: i64 = 23 * HOUR;

/// 0000-01-01T00:00:00Z, the first valid time.
const YEAR_0: i64 = -62_167_219_200 * SECOND;

/// 10000-01-01T00:00:00Z, the first time that is too late.
const YEAR_10000: i64 = 253_402_300_800 * SECOND;

/// The time fields of an event and its request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claims<'a> {
    /// JSON text of `timestamp`; `None` if `null`.
    pub(super) timestamp: Option<&'a str>,
    /// JSON text of `offset`; `None` if `null`.
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
        0
    }
}

/// The time before the bounds are checked. Saturates: an overflow is out of bounds
/// anyway.
fn claimed_time(claims: Claims<'_>, now: i64, warnings: &mut Vec<Warning>) -> i64 {
    if let Some(offset) = claims.offset {
        if let Some(milliseconds) = integer(offset) {
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

/// An integer, also in the form of libraries that only have floats.
fn integer(json: &str) -> Option<i64> {
    let (digits, fraction) = json.split_once('.').unwrap_or((json, "0"));
    if !fraction.bytes().all(|digit| digit == b'0') {
        return None;
    }
    digits.parse().ok()
}

/// Parses a JSON text or number as a time, in any of the forms.
fn parse_json(json: &str) -> Option<i64> {
    match json::string_lossy(json) {
        Some(text) => parse(&text),
        None => parse_epoch(json),
    }
}

/// Parses a time in any of the forms: ISO 8601 and similar ones, epoch seconds or
/// milliseconds, RFC 2822.
fn parse(text: &str) -> Option<i64> {
    let text = text.trim();
    parse_iso(text)
        .or_else(|| parse_epoch(text))
        .or_else(|| DateTime::parse_from_rfc2822(text).ok().map(|time| time.timestamp_micros()))
}

/// Parses RFC 3339 and common variants: no time, a blank instead of the `T`, no seconds,
/// no zone (UTC), zones without minutes, slashes, month first unless the year comes
/// first.
pub(super) fn parse_iso(text: &str) -> Option<i64> {
    let mut reader = Reader(text.trim().as_bytes());
    let days = reader.date()?;
    if reader.0.is_empty() {
        return Some(days * DAY);
    }
    let time = if reader.take_any(b"Tt ").is_some() { reader.time()? } else { 0 };
    let zone = reader.zone()?;
    if reader.0.is_empty() { Some(days * DAY + time - zone) } else { None }
}

/// Parses seconds, milliseconds or smaller units since 1970, depending on the number of
/// digits. Fewer than nine digits would be before March 1973 and are more likely a year,
/// a date without dashes, or a count.
fn parse_epoch(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    // `places`: digits of the fraction up to a microsecond.
    let (places, divisor) = match whole.len() {
        9..=11 => (6, 1),
        12..=14 => (3, 1),
        15..=17 => (0, 1),
        18..=19 => (0, 1000),
        _ => return None,
    };
    let scale = 10_i64.pow(places);
    let whole: i64 = whole.parse().ok()?;
    let time = whole.checked_mul(scale)?.checked_add(fraction_of(fraction, places))? / divisor;
    Some(if negative { -time } else { time })
}

/// The first `places` digits of a fraction, padded with zeros.
fn fraction_of(digits: &str, places: u32) -> i64 {
    let padded = digits.bytes().chain(std::iter::repeat(b'0'));
    padded.take(places as usize).fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'))
}

/// Reads ASCII from the start.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads one byte if it is among `bytes`.
    fn take_any(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        if !bytes.contains(first) {
            return None;
        }
        self.0 = rest;
        Some(*first)
    }

    /// Reads at most `most` digits.
    fn digits(&mut self, most: usize) -> &'a str {
        let count = self.0.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at_checked(count).unwrap_or((&[], self.0));
        self.0 = rest;
        std::str::from_utf8(digits).unwrap_or_default()
    }

    /// Reads one or two digits.
    fn two(&mut self) -> Option<i64> {
        self.digits(2).parse().ok()
    }

    /// Reads exactly two digits.
    fn pair(&mut self) -> Option<i64> {
        let digits = self.digits(2);
        if digits.len() == 2 { digits.parse().ok() } else { None }
    }

    /// Reads a date as days since 1970.
    fn date(&mut self) -> Option<i64> {
        let negative = self.take_any(b"+-") == Some(b'-');
        let first = self.digits(6);
        let separator = self.take_any(b"-/")?;
        let second = self.two()?;
        self.take_any(&[separator])?;
        let (year, month, day) = if first.len() >= 4 {
            (first, second, self.two()?)
        } else if separator == b'/' && matches!(first.len(), 1 | 2) && !negative {
            let year = self.digits(4);
            if year.len() != 4 {
                return None;
            }
            (year, first.parse().ok()?, second)
        } else {
            return None;
        };
        let year: i32 = year.parse().ok()?;
        let year = if negative { -year } else { year };
        let date =
            NaiveDate::from_ymd_opt(year, u32::try_from(month).ok()?, u32::try_from(day).ok()?)?;
        Some(date.signed_duration_since(NaiveDate::default()).num_days())
    }

    /// Reads a time as microseconds since midnight.
    fn time(&mut self) -> Option<i64> {
        while self.take_any(b" ").is_some() {}
        let hours = self.two()?;
        self.take_any(b":")?;
        let minutes = self.pair()?;
        let mut micros = 0;
        let mut seconds = 0;
        if self.take_any(b":").is_some() {
            seconds = self.pair()?;
            if self.take_any(b".,").is_some() {
                let digits = self.digits(usize::MAX);
                if digits.is_empty() {
                    return None;
                }
                micros = fraction_of(digits, 6);
            }
        }
        // Second 60 is a leap second; it counts as the start of the next minute.
        if hours > 23 || minutes > 59 || seconds > 60 {
            return None;
        }
        Some(hours * HOUR + minutes * MINUTE + seconds * SECOND + micros)
    }

    /// Reads a zone as microseconds ahead of UTC.
    fn zone(&mut self) -> Option<i64> {
        while self.take_any(b" ").is_some() {}
        if self.0.is_empty() {
            return Some(0);
        }
        for name in [&b"Z"[..], b"UTC", b"GMT"] {
            if self.0.eq_ignore_ascii_case(name) {
                self.0 = &[];
                return Some(0);
            }
        }
        let sign = if self.take_any(b"+-")? == b'-' { -1 } else { 1 };
        let hours = self.pair()?;
        let minutes =
            if self.take_any(b":").is_some() || !self.0.is_empty() { self.pair()? } else { 0 };
        if hours > 23 || minutes > 59 {
            return None;
        }
        Some(sign * (hours * HOUR + minutes * MINUTE))
    }
}

#[cfg(test)]
mod tests;
