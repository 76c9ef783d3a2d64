//! Times: microseconds since 1970, UTC, within the years 1 to 9999. A date is a number of
//! days since 1970.

use chrono::{DateTime, Datelike as _, NaiveDate, NaiveTime, Utc};
use weir_model::Timestamp;

use super::number::Number;

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3600 * SECOND;
const DAY: i64 = 24 * HOUR;
/// The start of the year 1 and the end of the year 9999.
const FIRST: i64 = -62_135_596_800 * SECOND;
const LAST: i64 = 253_402_300_799 * SECOND + 999_999;

/// Parses a time: `2026-06-01`, `2026-06-01 10:00:05.25`, with an offset or in UTC, or
/// seconds since 1970 (9 or 10 digits), or milliseconds (13).
pub(crate) fn read(text: &str) -> Option<i64> {
    let text = text.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let number: i64 = text.parse().ok()?;
        return match text.len() {
            9 | 10 => Some(number * SECOND),
            13 => Some(number * 1000),
            _ => None,
        };
    }
    let micros = match Timestamp::parse_lenient(text) {
        Some(time) => time.micros(),
        None => midnight(NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?),
    };
    within(micros)
}

/// The time of these seconds since 1970.
pub(crate) fn of_seconds(seconds: Number) -> Option<i64> {
    let micros = match seconds {
        Number::Integer(seconds) => i64::try_from(seconds).ok()?.checked_mul(SECOND)?,
        Number::Float(seconds) => Number::Float((seconds * 1e6).round()).integer()?,
    };
    within(micros)
}

/// Adds seconds to a time.
pub(super) fn plus_seconds(micros: i64, seconds: Number) -> Option<i64> {
    let by = match seconds {
        Number::Integer(seconds) => i64::try_from(seconds).ok()?.checked_mul(SECOND)?,
        Number::Float(seconds) => Number::Float((seconds * 1e6).round()).integer()?,
    };
    within(micros.checked_add(by)?)
}

/// Adds days to a date.
pub(super) fn plus_days(days: i32, by: Number) -> Option<i32> {
    let moved = i64::from(days).checked_add(by.integer()?)?;
    within(moved.checked_mul(DAY)?)?;
    i32::try_from(moved).ok()
}

fn within(micros: i64) -> Option<i64> {
    (FIRST..=LAST).contains(&micros).then_some(micros)
}

/// Whole seconds since 1970.
pub(crate) fn seconds(micros: i64) -> i64 {
    micros.div_euclid(SECOND)
}

/// Seconds since 1970.
pub(crate) fn float_seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

/// The day of a time.
pub(super) fn day(micros: i64) -> Option<i32> {
    i32::try_from(micros.div_euclid(DAY)).ok()
}

/// The start of a day.
pub(crate) fn of_day(days: i32) -> i64 {
    i64::from(days).saturating_mul(DAY)
}

/// The start of the hour of a time.
pub(super) fn start_of_hour(micros: i64) -> i64 {
    micros.saturating_sub(micros.rem_euclid(HOUR))
}

/// The start of the day of a time.
pub(super) fn start_of_day(micros: i64) -> i64 {
    micros.saturating_sub(micros.rem_euclid(DAY))
}

/// The start of the month of a time.
pub(super) fn start_of_month(micros: i64) -> Option<i64> {
    Some(midnight(calendar(micros)?.date_naive().with_day(1)?))
}

/// `2026-06-01 10:00:05.250000`
pub(crate) fn text(micros: i64) -> Option<String> {
    Some(calendar(micros)?.format("%Y-%m-%d %H:%M:%S%.6f").to_string())
}

/// `2026-06-01`
pub(crate) fn day_text(days: i32) -> Option<String> {
    Some(calendar(of_day(days))?.format("%Y-%m-%d").to_string())
}

fn calendar(micros: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(micros)
}

fn midnight(date: NaiveDate) -> i64 {
    date.and_time(NaiveTime::MIN).and_utc().timestamp_micros()
}
