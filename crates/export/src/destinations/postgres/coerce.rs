//! Fits a cell into a column of a table: a value is cut, stripped of NUL, or replaced by
//! null. One event must not fail a run.
//!
//! What belongs here: values of single cells. What does not: JSON (`json`), the columns
//! of a table (`table`).

use std::borrow::Cow;
use std::cmp::Ordering;
use std::net::IpAddr;

use chrono::DateTime;
use weir_query::Value;

use super::json::clean;
use super::table::Target;
use crate::rows::Cell;

/// How lengths of texts are counted, and the largest numbers in JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Whether lengths are in bytes instead of characters.
    pub(crate) in_bytes: bool,
    /// Upper bound of digits in a number in JSON.
    pub(crate) digits_max: usize,
}

pub(crate) const NUL: &str = "a NUL character was omitted";
pub(crate) const CUT: &str = "a text was cut to the length of its column";
pub(crate) const NUMBER: &str = "a number beyond the range of the database was written as text";
pub(crate) const LONG_JSON: &str = "JSON longer than its column takes was omitted";
pub(crate) const NOT_FIT: &str = "a value that does not fit its column was omitted";

/// The first instant of the year 1 and the one after the year 9999.
const YEARS: std::ops::Range<i64> = -62_135_596_800_000_000..253_402_300_800_000_000;

/// The value to write.
#[derive(Debug, PartialEq)]
pub(crate) struct Fitted<'a> {
    /// The value as text. `None`: null.
    pub(crate) text: Option<Cow<'a, str>>,
    /// How it was altered, as text for users.
    pub(crate) altered: Option<&'static str>,
}

/// Fits a cell into a column.
pub(crate) fn fit(cell: &Cell, target: Target, bounds: Bounds) -> Fitted<'_> {
    let Some(value) = value(cell) else { return Fitted { text: None, altered: None } };
    match target {
        Target::Text(max) => text(value, max, bounds),
        Target::Other => text(value, None, bounds),
        Target::Json => json(value, bounds),
        Target::Integer(bits) => {
            let range = (i64::MIN >> (64 - bits))..=(i64::MAX >> (64 - bits));
            known(value.integer().filter(|number| range.contains(number)).map(owned))
        }
        Target::SmallFloat => known(small_float(&value)),
        Target::Float => known(float(&value)),
        Target::Decimal { digits, whole } => {
            known(float(&value).filter(|number| is_within(number, digits, whole)))
        }
        Target::Boolean => known(value.boolean().map(owned)),
        Target::Timestamp => known(value.timestamp().and_then(time)),
        Target::Date => known(value.timestamp().and_then(day)),
        Target::Uuid => known(value.uuid().map(owned)),
        Target::Address { is_network } => known(address(value, is_network)),
    }
}

fn value(cell: &Cell) -> Option<Value<'_>> {
    Some(match cell {
        Cell::Null => return None,
        Cell::Text(text) => Value::Text(text.as_str().into()),
        Cell::Json(json) => Value::Json(json.as_str().into()),
        Cell::Integer(number) => Value::Integer(*number),
        Cell::Float(number) => Value::Float(*number),
        Cell::Boolean(value) => Value::Boolean(*value),
        Cell::Timestamp(micros) => Value::Timestamp(*micros),
        Cell::Uuid(uuid) => Value::Uuid(*uuid),
    })
}

fn owned<'a>(value: impl ToString) -> Cow<'a, str> {
    Cow::Owned(value.to_string())
}

/// A value, or a note that the value did not fit.
fn known(text: Option<Cow<'_, str>>) -> Fitted<'_> {
    let altered = text.is_none().then_some(NOT_FIT);
    Fitted { text, altered }
}

fn text(value: Value<'_>, max: Option<usize>, bounds: Bounds) -> Fitted<'_> {
    let is_json = matches!(value, Value::Json(_));
    let text = match value {
        Value::Timestamp(micros) => time(micros),
        value => value.into_text(),
    };
    let Some(text) = text else { return known(None) };
    if is_json {
        // Cut JSON would not be valid.
        return match max.is_some_and(|max| end(&text, max, bounds).is_some()) {
            true => Fitted { text: None, altered: Some(LONG_JSON) },
            false => Fitted { text: Some(text), altered: None },
        };
    }
    let (text, without_nul) = match text.contains('\0') {
        true => (Cow::Owned(text.replace('\0', "")), true),
        false => (text, false),
    };
    match max.and_then(|max| end(&text, max, bounds)) {
        Some(end) => {
            let cut = match text {
                Cow::Borrowed(text) => Cow::Borrowed(text.get(..end).unwrap_or_default()),
                Cow::Owned(mut text) => {
                    text.truncate(end);
                    Cow::Owned(text)
                }
            };
            Fitted { text: Some(cut), altered: Some(CUT) }
        }
        None => Fitted { text: Some(text), altered: without_nul.then_some(NUL) },
    }
}

/// The end of a text that is too long.
fn end(text: &str, max: usize, bounds: Bounds) -> Option<usize> {
    if text.len() <= max {
        return None;
    }
    if bounds.in_bytes {
        return Some(text.floor_char_boundary(max));
    }
    text.char_indices().nth(max).map(|(at, _)| at)
}

fn json(value: Value<'_>, bounds: Bounds) -> Fitted<'_> {
    let Some(json) = value.into_json() else { return known(None) };
    let (text, without_nul, numbers_as_text) = match json {
        Cow::Borrowed(json) => {
            let clean = clean(json, bounds.digits_max);
            (clean.json, clean.without_nul, clean.numbers_as_text)
        }
        Cow::Owned(json) => {
            let clean = clean(&json, bounds.digits_max);
            let (without_nul, numbers_as_text) = (clean.without_nul, clean.numbers_as_text);
            (Cow::Owned(clean.json.into_owned()), without_nul, numbers_as_text)
        }
    };
    let altered = without_nul.then_some(NUL).or(numbers_as_text.then_some(NUMBER));
    Fitted { text: Some(text), altered }
}

fn float<'a>(value: &Value<'_>) -> Option<Cow<'a, str>> {
    // Columns of the type `numeric` keep every digit.
    match value.integer().filter(|_| matches!(value, Value::Integer(_) | Value::Text(_))) {
        Some(number) => Some(owned(number)),
        None => Value::Float(value.float()?).into_text(),
    }
}

fn small_float<'a>(value: &Value<'_>) -> Option<Cow<'a, str>> {
    let number = value.float()? as f32;
    number.is_finite().then(|| owned(number))
}

/// Whether a number fits into this many digits after rounding. `whole` of them are before
/// the point; if it is negative, the first digits after the point are zeros.
fn is_within(number: &str, digits: usize, whole: i64) -> bool {
    let number = number.strip_prefix('-').unwrap_or(number);
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (before, behind) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = [before, behind].concat();
    let (true, Ok(exponent)) = (all.bytes().all(|b| b.is_ascii_digit()), exponent.parse::<i64>())
    else {
        return false;
    };
    let leading = all.trim_start_matches('0');
    if leading.is_empty() {
        return true;
    }
    // The number is less than ten to the power of this.
    let size = before.len() as i64 - (all.len() - leading.len()) as i64 + exponent;
    match size.cmp(&whole) {
        Ordering::Less => true,
        Ordering::Greater => false,
        Ordering::Equal => {
            let (kept, rest) = leading.split_at_checked(digits).unwrap_or((leading, ""));
            let rounds_up = rest.bytes().next().is_some_and(|digit| digit >= b'5');
            // Rounding up would add a digit.
            !(rounds_up && kept.bytes().all(|digit| digit == b'9'))
        }
    }
}

/// An address, possibly with the length of its network. For a network, no bit is set
/// after that length.
fn address<'a>(value: Value<'_>, is_network: bool) -> Option<Cow<'a, str>> {
    let text = value.into_text()?;
    let text = text.trim();
    let Some((address, length)) = text.split_once('/') else {
        return text.parse::<IpAddr>().ok().map(owned);
    };
    let (address, length): (IpAddr, u32) = (address.parse().ok()?, length.parse().ok()?);
    let (bits, width) = match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32_u32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    let behind = width.checked_sub(length)?;
    let fits = !is_network || bits.trailing_zeros() >= behind;
    fits.then(|| Cow::Owned(format!("{address}/{length}")))
}

/// `2026-06-01 10:00:05.250000+00`
fn time<'a>(micros: i64) -> Option<Cow<'a, str>> {
    let time = DateTime::from_timestamp_micros(micros).filter(|_| YEARS.contains(&micros))?;
    Some(owned(time.format("%Y-%m-%d %H:%M:%S%.6f+00")))
}

fn day<'a>(micros: i64) -> Option<Cow<'a, str>> {
    let time = DateTime::from_timestamp_micros(micros).filter(|_| YEARS.contains(&micros))?;
    Some(owned(time.format("%Y-%m-%d")))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const BOUNDS: Bounds = Bounds { in_bytes: false, digits_max: 1000 };

    fn fitted(cell: Cell, target: Target) -> (Option<String>, Option<&'static str>) {
        let fitted = fit(&cell, target, BOUNDS);
        (fitted.text.map(Cow::into_owned), fitted.altered)
    }

    fn text(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }

    #[test]
    fn what_fits_is_written_as_it_is() {
        let moment = Cell::Timestamp(1_780_308_005_250_000);
        for (cell, target, expected) in [
            (text("a\tb"), Target::Text(Some(3)), "a\tb"),
            (text("äöü"), Target::Text(Some(3)), "äöü"),
            (text("x"), Target::Json, "\"x\""),
            (
                Cell::Json("{\"n\":9007199254740993}".into()),
                Target::Json,
                "{\"n\":9007199254740993}",
            ),
            (Cell::Json("{\"t\":\"\\u0000\"}".into()), Target::Text(None), "{\"t\":\"\\u0000\"}"),
            (Cell::Integer(9_007_199_254_740_993), Target::Integer(64), "9007199254740993"),
            (Cell::Integer(9_007_199_254_740_993), Target::Float, "9007199254740993"),
            (text("9007199254740993"), Target::Integer(64), "9007199254740993"),
            (Cell::Integer(-32_768), Target::Integer(16), "-32768"),
            (Cell::Float(0.1), Target::Float, "0.1"),
            (Cell::Float(0.1), Target::SmallFloat, "0.1"),
            (Cell::Float(1e300), Target::Float, "1e300"),
            (Cell::Boolean(true), Target::Boolean, "true"),
            (Cell::Boolean(true), Target::Text(None), "true"),
            (moment.clone(), Target::Timestamp, "2026-06-01 10:00:05.250000+00"),
            (moment.clone(), Target::Text(None), "2026-06-01 10:00:05.250000+00"),
            (moment, Target::Date, "2026-06-01"),
            (text("2026-06-01"), Target::Timestamp, "2026-06-01 00:00:00.000000+00"),
            (Cell::Uuid(Uuid::nil()), Target::Text(None), "00000000-0000-0000-0000-000000000000"),
            (
                text("{00000000-0000-0000-0000-000000000000}"),
                Target::Uuid,
                "00000000-0000-0000-0000-000000000000",
            ),
        ] {
            assert_eq!(fitted(cell.clone(), target), (Some(expected.to_owned()), None), "{cell:?}");
        }
        assert_eq!(fitted(Cell::Null, Target::Json), (None, None));
    }

    #[test]
    fn values_that_do_not_fit_are_altered_and_reported() {
        for (cell, target, expected, reported) in [
            (text("a\0b"), Target::Text(None), Some("ab"), NUL),
            (text("äöüß"), Target::Text(Some(3)), Some("äöü"), CUT),
            (text("a\0bcd"), Target::Text(Some(3)), Some("abc"), CUT),
            (Cell::Json("[\"\\u0000\"]".into()), Target::Json, Some("[\"\"]"), NUL),
            (text("\0"), Target::Json, Some("\"\""), NUL),
            (Cell::Json("1e999999".into()), Target::Json, Some("\"1e999999\""), NUMBER),
            (Cell::Json("{\"a\":1}".into()), Target::Text(Some(6)), None, LONG_JSON),
            (Cell::Integer(32_768), Target::Integer(16), None, NOT_FIT),
            (Cell::Integer(1 << 31), Target::Integer(32), None, NOT_FIT),
            (text("x"), Target::Integer(64), None, NOT_FIT),
            (text("x"), Target::Timestamp, None, NOT_FIT),
            (text("x"), Target::Uuid, None, NOT_FIT),
            (text("x"), Target::Boolean, None, NOT_FIT),
            (Cell::Float(1e300), Target::SmallFloat, None, NOT_FIT),
            (Cell::Timestamp(i64::MAX), Target::Timestamp, None, NOT_FIT),
            (Cell::Timestamp(i64::MIN), Target::Text(None), None, NOT_FIT),
        ] {
            let expected = (expected.map(str::to_owned), Some(reported));
            assert_eq!(fitted(cell.clone(), target), expected, "{cell:?}");
        }
    }

    #[test]
    fn numbers_keep_within_the_digits_of_their_column() {
        // numeric(5, 2), numeric(2, 0), numeric(2, -3), numeric(2, 4).
        for (number, digits, whole, expected) in [
            ("0", 5, 3, true),
            ("-999.994", 5, 3, true),
            ("-999.995", 5, 3, false),
            ("999.94e0", 5, 3, true),
            ("1000", 5, 3, false),
            ("0001e2", 5, 3, true),
            ("1e3", 5, 3, false),
            ("1e-300", 5, 3, true),
            ("1e300", 5, 3, false),
            ("99.4", 2, 2, true),
            ("99.5", 2, 2, false),
            ("98.9", 2, 2, true),
            ("99499", 2, 5, true),
            ("99500", 2, 5, false),
            ("0.00994", 2, -2, true),
            ("0.00995", 2, -2, false),
            ("0.0100", 2, -2, false),
            ("NaN", 2, 2, false),
            ("inf", 2, 2, false),
        ] {
            assert_eq!(is_within(number, digits, whole), expected, "{number} {digits} {whole}");
        }
        let target = Target::Decimal { digits: 5, whole: 3 };
        assert_eq!(fitted(Cell::Float(1.125), target), (Some("1.125".to_owned()), None));
        assert_eq!(fitted(Cell::Integer(1_000), target), (None, Some(NOT_FIT)));
    }

    #[test]
    fn addresses_are_read_before_they_are_written() {
        for (value, in_inet, in_cidr) in [
            ("10.0.0.1", Some("10.0.0.1"), Some("10.0.0.1")),
            (" ::FFFF:1.2.3.4 ", Some("::ffff:1.2.3.4"), Some("::ffff:1.2.3.4")),
            ("10.0.0.0/8", Some("10.0.0.0/8"), Some("10.0.0.0/8")),
            ("10.0.0.1/8", Some("10.0.0.1/8"), None),
            ("::/0", Some("::/0"), Some("::/0")),
            ("0.0.0.0/33", None, None),
            ("10.0.0.1/", None, None),
            ("x", None, None),
            ("", None, None),
        ] {
            for (is_network, expected) in [(false, in_inet), (true, in_cidr)] {
                let found = fitted(text(value), Target::Address { is_network });
                let reported = expected.is_none().then_some(NOT_FIT);
                assert_eq!(found, (expected.map(str::to_owned), reported), "{value} {is_network}");
            }
        }
    }

    #[test]
    fn lengths_may_be_in_bytes() {
        let bounds = Bounds { in_bytes: true, digits_max: 1000 };
        let cell = text("aäö");
        let fitted = fit(&cell, Target::Text(Some(4)), bounds);
        assert_eq!(fitted, Fitted { text: Some("aä".into()), altered: Some(CUT) });
    }
}
