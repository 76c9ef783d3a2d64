//! The wall clock, for event times and dates.

use std::time::{SystemTime, UNIX_EPOCH};

/// Length of a time as [`write_time`] writes it.
pub const TIME: usize = "2026-01-02T03:04:05.123456Z".len();

/// Microseconds since 1970 UTC.
#[expect(clippy::disallowed_methods, reason = "a client stamps its events with the time it has")]
pub fn micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Writes a time in the form that client libraries send into [`TIME`] bytes.
pub fn write_time(micros: i64, place: &mut [u8]) {
    let (days, of_day) = (micros.div_euclid(86_400_000_000), micros.rem_euclid(86_400_000_000));
    let (year, month, day) = civil(days);
    let seconds = of_day / 1_000_000;
    let parts = [
        (0, 4, year),
        (5, 2, month),
        (8, 2, day),
        (11, 2, seconds / 3600),
        (14, 2, seconds / 60 % 60),
        (17, 2, seconds % 60),
        (20, 6, of_day % 1_000_000),
    ];
    place.copy_from_slice(b"0000-00-00T00:00:00.000000Z");
    for (at, width, value) in parts {
        digits(value, &mut place[at..at + width]);
    }
}

/// The date, as `2026-01-02`.
pub fn today() -> String {
    let mut text = [0; TIME];
    write_time(micros(), &mut text);
    String::from_utf8_lossy(&text[..10]).into_owned()
}

/// A decimal number, padded to the length of `place`.
pub(crate) fn digits(value: i64, place: &mut [u8]) {
    let mut rest = value;
    for digit in place.iter_mut().rev() {
        *digit = b'0' + u8::try_from(rest.rem_euclid(10)).unwrap_or(0);
        rest = rest.div_euclid(10);
    }
}

/// Year, month and day of a number of days since 1970 (proleptic Gregorian; the
/// computation begins years in March, so that the leap day is the last one).
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::{TIME, write_time};

    #[test]
    fn times_are_written_as_libraries_write_them() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_399_999_999, "2000-02-28T23:59:59.999999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (1_780_308_000_412_000, "2026-06-01T10:00:00.412000Z"),
        ] {
            let mut place = [0; TIME];
            write_time(micros, &mut place);
            assert_eq!(std::str::from_utf8(&place).unwrap(), text);
        }
    }
}
