//! Parsing the time of an event (ING-39).
//!
//! What belongs here: the forms of a time in exports. What does not: the clock, and
//! whether a time is plausible (`event`).
//!
//! It is stricter than capture: for history, an ambiguous time is reported instead of
//! guessed.

use chrono::DateTime;
use weir_json as json;
use weir_model::Timestamp;

/// Parses a JSON text or number as a time: ISO 8601 with or without a zone (UTC), a date
/// alone, slashes for dashes, RFC 2822, or the seconds, milliseconds or microseconds
/// since 1970.
pub(crate) fn read(json: &str) -> Option<Timestamp> {
    match json::string(json) {
        Some(text) => parse(text.trim()),
        None => epoch(json),
    }
}

fn parse(text: &str) -> Option<Timestamp> {
    iso(text).or_else(|| epoch(text)).or_else(|| {
        DateTime::parse_from_rfc2822(text)
            .ok()
            .map(|time| Timestamp::from_micros(time.timestamp_micros()))
    })
}

fn iso(text: &str) -> Option<Timestamp> {
    let (date, clock) = text.split_at_checked(10)?;
    let date = date.replace('/', "-");
    let clock = if clock.is_empty() { "T00:00" } else { clock };
    Timestamp::parse_lenient(&format!("{date}{clock}"))
}

/// The number of digits determines the unit. Fewer than nine would be before March 1973
/// and are more likely a year, a date without dashes, or a count.
fn epoch(text: &str) -> Option<Timestamp> {
    let (digits, fraction) = text.split_once('.').unwrap_or((text, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(digits) || !all_digits(fraction) {
        return None;
    }
    // Digits of the fraction up to a microsecond.
    let places = match digits.len() {
        9..=11 => 6,
        12..=14 => 3,
        15..=16 => 0,
        _ => return None,
    };
    let fraction: String = fraction.chars().chain("000000".chars()).take(places).collect();
    format!("{digits}{fraction}").parse().ok().map(Timestamp::from_micros)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn reads_what_exports_write() {
        for (json, expected) in [
            (r#""2026-06-01T10:00:00Z""#, "2026-06-01T10:00:00Z"),
            (r#""2026-06-01T12:00:00.123456789+02:00""#, "2026-06-01T10:00:00.123456Z"),
            (r#""2026-06-01 10:00:00.5""#, "2026-06-01T10:00:00.500000Z"),
            (r#""2026-06-01 10:00:00.123000+00:00""#, "2026-06-01T10:00:00.123000Z"),
            (r#"" 2026/06/01 10:00 ""#, "2026-06-01T10:00:00Z"),
            (r#""2026-06-01""#, "2026-06-01T00:00:00Z"),
            (r#""Mon, 1 Jun 2026 10:00:00 +0000""#, "2026-06-01T10:00:00Z"),
            ("1780308000", "2026-06-01T10:00:00Z"),
            ("1780308000.25", "2026-06-01T10:00:00.250000Z"),
            ("1780308000123", "2026-06-01T10:00:00.123000Z"),
            ("1780308000123.5", "2026-06-01T10:00:00.123500Z"),
            ("1780308000123456", "2026-06-01T10:00:00.123456Z"),
            (r#""1780308000""#, "2026-06-01T10:00:00Z"),
        ] {
            let read = read(json).map(|time| time.to_string());
            assert_eq!(read.as_deref(), Some(expected), "{json}");
        }
        for bad in [
            r#""""#,
            r#""yesterday""#,
            r#""06/01/2026""#,
            r#""2026-13-01T10:00:00Z""#,
            r#""2026-06-01T25:00""#,
            "20260601",
            "2026",
            "-1",
            "1e9",
            "true",
            "{}",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
