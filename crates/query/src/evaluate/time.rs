//! Times: microseconds since 1970, UTC, within the years 1 to 9999. A date is a number of
//! days since 1970.

use chrono::{DateTime, Datelike as _, Months, NaiveDate, NaiveTime, Utc};
use weir_model::Timestamp;

use super::number::Number;
use crate::tree::TimeUnit;

/// Bytes of a date without a time, such as `2026-08-21`.
const DAY_LENGTH: usize = 10;
const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// The start of the year 1 and the end of the year 9999.
const FIRST: i64 = -62_135_596_800 * SECOND;
const LAST: i64 = 253_402_300_799 * SECOND + 999_999;

/// Parses a time: `2026-06-01`, `2026-06-01 10:00:05.25`, with an offset or in UTC, or
/// seconds since 1970 (9 or 10 digits), or milliseconds (13).
pub(crate) fn read(text: &str) -> Option<i64> {
    read_local(text).map(|(micros, _)| micros)
}

/// As [`read`], and whether the text says which instant it is. Otherwise it has no offset, and
/// is what clocks show.
pub(super) fn read_local(text: &str) -> Option<(i64, bool)> {
    let text = text.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let number: i64 = text.parse().ok()?;
        return match text.len() {
            9 | 10 => Some((number * SECOND, true)),
            13 => Some((number * 1000, true)),
            _ => None,
        };
    }
    let micros = match Timestamp::parse_lenient(text) {
        Some(time) => time.micros(),
        None => midnight(NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?),
    };
    let has_offset = text.get(DAY_LENGTH..).is_some_and(|time| time.contains(['Z', 'z', '+', '-']));
    Some((within(micros)?, has_offset))
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

/// The start of the unit of a time, in UTC; weeks begin on Monday.
pub(super) fn start_of(unit: TimeUnit, micros: i64) -> Option<i64> {
    let floor = |length: i64| Some(micros.saturating_sub(micros.rem_euclid(length)));
    let date = || Some(calendar(micros)?.date_naive());
    match unit {
        TimeUnit::Second => floor(SECOND),
        TimeUnit::Minute => floor(MINUTE),
        TimeUnit::Hour => floor(HOUR),
        TimeUnit::Day => floor(DAY),
        TimeUnit::Week => {
            // 1970 began on a Thursday.
            let day = micros.div_euclid(DAY);
            day.checked_sub((day + 3).rem_euclid(7))?.checked_mul(DAY)
        }
        TimeUnit::Month => Some(midnight(date()?.with_day(1)?)),
        TimeUnit::Quarter => {
            let date = date()?.with_day(1)?;
            Some(midnight(date.with_month(date.month0() / 3 * 3 + 1)?))
        }
        TimeUnit::Year => Some(midnight(date()?.with_day(1)?.with_month(1)?)),
    }
}

/// A time moved by units of the calendar, in UTC. A day that its month does not have becomes
/// the last one of the month.
pub(super) fn shifted(micros: i64, count: i64, unit: TimeUnit) -> Option<i64> {
    let by = |length: i64| within(micros.checked_add(count.checked_mul(length)?)?);
    let months = |length: i64| {
        let count = count.checked_mul(length)?;
        let months = Months::new(u32::try_from(count.unsigned_abs()).ok()?);
        let time = calendar(micros)?;
        let moved = match count < 0 {
            true => time.checked_sub_months(months)?,
            false => time.checked_add_months(months)?,
        };
        within(moved.timestamp_micros())
    };
    match unit {
        TimeUnit::Second => by(SECOND),
        TimeUnit::Minute => by(MINUTE),
        TimeUnit::Hour => by(HOUR),
        TimeUnit::Day => by(DAY),
        TimeUnit::Week => by(7 * DAY),
        TimeUnit::Month => months(1),
        TimeUnit::Quarter => months(3),
        TimeUnit::Year => months(12),
    }
}

/// The number of a unit, so that the difference of two numbers is the number of units that
/// begin between two times. Shorter units than days are counted from the time, longer ones by
/// clocks in the time zone; for weeks it is the start of the week by them.
pub(super) fn number_of(unit: TimeUnit, micros: i64, local: i64) -> Option<i64> {
    Some(match unit {
        TimeUnit::Second => micros.div_euclid(SECOND),
        TimeUnit::Minute => micros.div_euclid(MINUTE),
        TimeUnit::Hour => micros.div_euclid(HOUR),
        TimeUnit::Day => local.div_euclid(DAY),
        TimeUnit::Week => local.div_euclid(7 * DAY),
        TimeUnit::Month => year(local)? * 12 + i64::from(calendar(local)?.month0()),
        TimeUnit::Quarter => year(local)? * 4 + i64::from(calendar(local)?.month0() / 3),
        TimeUnit::Year => year(local)?,
    })
}

/// The year.
pub(super) fn year(local: i64) -> Option<i64> {
    Some(i64::from(calendar(local)?.year()))
}

/// The month, from 1.
pub(super) fn month(local: i64) -> Option<i64> {
    Some(i64::from(calendar(local)?.month()))
}

/// The day of the week, from 1 for Monday.
pub(super) fn day_of_week(local: i64) -> i64 {
    (local.div_euclid(DAY) + 3).rem_euclid(7) + 1
}

/// The hour, from 0.
pub(super) fn hour(local: i64) -> i64 {
    local.rem_euclid(DAY) / HOUR
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
