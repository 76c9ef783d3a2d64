//! Reading times from text: the one parser of the API, of imports and of capture.
//!
//! What belongs here: which texts are a time. What does not: whether a time is plausible,
//! and correcting the clock of a sender (`weir-capture`).
//!
//! All times are microseconds since 1970-01-01 UTC; further digits are truncated.

use chrono::{DateTime, NaiveDate};

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The texts that are accepted as a time. Each value accepts those of the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Forms {
    /// What API clients send (API-10): `YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]`,
    /// with a blank allowed for the `T`, and UTC if there is no zone.
    Exact,
    /// Also a date alone and slashes for dashes; and for [`read`] RFC 2822, and seconds,
    /// milliseconds or microseconds since 1970. A time that could mean several is refused.
    Unambiguous,
    /// Also what libraries send: short numbers, month first unless the year comes first,
    /// names of UTC, years beyond four digits, nanoseconds, times before 1970.
    Any,
}

/// Reads a time in any notation of these forms.
pub fn read(text: &str, forms: Forms) -> Option<i64> {
    let text = text.trim();
    let calendar = calendar(text, forms);
    if calendar.is_some() || forms == Forms::Exact {
        return calendar;
    }
    epoch(text, forms)
        .or_else(|| DateTime::parse_from_rfc2822(text).ok().map(|time| time.timestamp_micros()))
}

/// Reads a date with or without a time: RFC 3339 and, depending on the forms, its
/// variants.
pub fn calendar(text: &str, forms: Forms) -> Option<i64> {
    let mut reader = Reader { rest: text.trim().as_bytes(), forms };
    let days = reader.date()?;
    if reader.rest.is_empty() {
        return (forms > Forms::Exact).then_some(days * DAY);
    }
    let time = match reader.take_any(b"Tt ") {
        Some(_) => reader.time()?,
        None if forms == Forms::Any => 0,
        None => return None,
    };
    let zone = reader.zone()?;
    reader.rest.is_empty().then_some(days * DAY + time - zone)
}

/// Reads seconds, milliseconds or smaller units since 1970, depending on the number of
/// digits. Fewer than nine digits would be before March 1973 and are more likely a year,
/// a date without dashes, or a count.
pub fn epoch(text: &str, forms: Forms) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) if forms == Forms::Any => (true, digits),
        _ => (false, text),
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
        15..=16 => (0, 1),
        17 if forms == Forms::Any => (0, 1),
        18..=19 if forms == Forms::Any => (0, 1000),
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
struct Reader<'a> {
    rest: &'a [u8],
    forms: Forms,
}

impl<'a> Reader<'a> {
    fn takes_any_form(&self) -> bool {
        self.forms == Forms::Any
    }

    /// Reads one byte if it is among `bytes`.
    fn take_any(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        if !bytes.contains(first) {
            return None;
        }
        self.rest = rest;
        Some(*first)
    }

    fn skip_blanks(&mut self) {
        while self.take_any(b" ").is_some() {}
    }

    /// Reads at most `most` digits.
    fn digits(&mut self, most: usize) -> &'a str {
        let count = self.rest.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at_checked(count).unwrap_or((&[], self.rest));
        self.rest = rest;
        std::str::from_utf8(digits).unwrap_or_default()
    }

    /// Reads two digits, or also one where any form is accepted.
    fn two(&mut self) -> Option<i64> {
        if self.takes_any_form() { self.digits(2).parse().ok() } else { self.pair() }
    }

    /// Reads exactly two digits.
    fn pair(&mut self) -> Option<i64> {
        let digits = self.digits(2);
        if digits.len() == 2 { digits.parse().ok() } else { None }
    }

    /// Reads a date as days since 1970.
    fn date(&mut self) -> Option<i64> {
        let any = self.takes_any_form();
        let negative = any && self.take_any(b"+-") == Some(b'-');
        let first = self.digits(6);
        let separators: &[u8] = if self.forms == Forms::Exact { b"-" } else { b"-/" };
        let separator = self.take_any(separators)?;
        let second = self.two()?;
        self.take_any(&[separator])?;
        let (year, month, day) = if first.len() == 4 || (any && first.len() > 4) {
            (first, second, self.two()?)
        } else if any && separator == b'/' && matches!(first.len(), 1 | 2) && !negative {
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
        let any = self.takes_any_form();
        if any {
            self.skip_blanks();
        }
        let hours = self.two()?;
        self.take_any(b":")?;
        let minutes = self.pair()?;
        let (mut seconds, mut micros) = (0, 0);
        if self.take_any(b":").is_some() {
            seconds = self.pair()?;
            if self.take_any(if any { b".," } else { b"." }).is_some() {
                let digits = self.digits(usize::MAX);
                if digits.is_empty() {
                    return None;
                }
                micros = fraction_of(digits, 6);
            }
        }
        // Second 60 is a leap second; it counts as the start of the next minute.
        if hours > 23 || minutes > 59 || seconds > if any { 60 } else { 59 } {
            return None;
        }
        Some(hours * HOUR + minutes * MINUTE + seconds * SECOND + micros)
    }

    /// Reads a zone as microseconds ahead of UTC.
    fn zone(&mut self) -> Option<i64> {
        self.skip_blanks();
        if self.rest.is_empty() {
            return Some(0);
        }
        let names: &[&[u8]] = if self.takes_any_form() { &[b"Z", b"UTC", b"GMT"] } else { &[b"Z"] };
        if names.iter().any(|name| self.rest.eq_ignore_ascii_case(name)) {
            self.rest = &[];
            return Some(0);
        }
        let sign = if self.take_any(b"+-")? == b'-' { -1 } else { 1 };
        let hours = self.pair()?;
        let minutes =
            if self.take_any(b":").is_some() || !self.rest.is_empty() { self.pair()? } else { 0 };
        if hours > 23 || minutes > 59 {
            return None;
        }
        Some(sign * (hours * HOUR + minutes * MINUTE))
    }
}

#[cfg(test)]
mod tests {
    use super::{Forms, read};

    /// What each form accepts first, and one text that none accepts.
    #[test]
    fn each_form_accepts_those_of_the_one_before_it() {
        for (text, accepted_from) in [
            ("2026-06-01T10:00", Some(Forms::Exact)),
            ("2026-06-01 10:00:05.25 -0330", Some(Forms::Exact)),
            ("2026-06-01", Some(Forms::Unambiguous)),
            ("2026/06/01 10:00", Some(Forms::Unambiguous)),
            ("1780308000123456", Some(Forms::Unambiguous)),
            ("Mon, 1 Jun 2026 10:00:00 +0000", Some(Forms::Unambiguous)),
            ("06/02/2026", Some(Forms::Any)),
            ("2026-6-1", Some(Forms::Any)),
            ("2026-06-01  10:00", Some(Forms::Any)),
            ("2026-06-01T10:00 GMT", Some(Forms::Any)),
            ("2026-06-01T10:00:60Z", Some(Forms::Any)),
            ("2026-06-01T10:00:05,5", Some(Forms::Any)),
            ("2026-06-01Z", Some(Forms::Any)),
            ("+12026-06-01", Some(Forms::Any)),
            ("-1780308000", Some(Forms::Any)),
            ("12345678901234567", Some(Forms::Any)),
            ("1780308000412345678", Some(Forms::Any)),
            ("yesterday", None),
        ] {
            for forms in [Forms::Exact, Forms::Unambiguous, Forms::Any] {
                let is_accepted = accepted_from.is_some_and(|from| forms >= from);
                assert_eq!(read(text, forms).is_some(), is_accepted, "{text} {forms:?}");
            }
        }
    }
}
