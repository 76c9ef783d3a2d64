//! Formats numbers: counts, percentages, durations, ids.

use leptos::prelude::*;
use weir_model::preferences::NumberFormat;

use super::copy::CopyButton;
use crate::page_facts::number_format;

/// Larger counts are abbreviated.
const COMPACT_ABOVE: u64 = 10_000;
/// Ids up to this length are shown completely.
const ID_WHOLE: usize = 16;
/// Number of characters that are shown of the end of a longer id.
const ID_END: usize = 6;

/// The viewer's number format.
pub(super) fn form() -> NumberFormat {
    number_format()
}

/// `0`, `312`, `1,204,000`, in the viewer's number format.
pub(crate) fn grouped(count: u64) -> String {
    let group = form().group();
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(group);
        }
        text.push(digit);
    }
    text
}

/// `312`, `-1,204.5`, `0.333`: at most three digits behind the decimal point.
pub(crate) fn amount(number: f64) -> String {
    /// Above this, not every whole number is a `f64`.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let size = number.abs();
    if size > EXACT {
        return format!("{number:e}");
    }
    let (whole, thousandths) = (size.trunc() as u64, (size.fract() * 1000.0).round() as u64);
    let (whole, thousandths) = (whole + thousandths / 1000, thousandths % 1000);
    let sign = if number < 0.0 && (whole, thousandths) != (0, 0) { "-" } else { "" };
    let whole = grouped(whole);
    match thousandths {
        0 => format!("{sign}{whole}"),
        _ => {
            let digits = format!("{thousandths:03}");
            format!("{sign}{whole}{}{}", form().decimal(), digits.trim_end_matches('0'))
        }
    }
}

/// `312`, `24.1k`, `1.2M`: abbreviated above 10,000, never rounded up.
pub(crate) fn compact(count: u64) -> String {
    const MILLION: u64 = 1_000_000;
    const BILLION: u64 = 1_000 * MILLION;
    if count <= COMPACT_ABOVE {
        return grouped(count);
    }
    let (unit, name) = match count {
        0..MILLION => (1_000, 'k'),
        MILLION..BILLION => (MILLION, 'M'),
        _ => (BILLION, 'B'),
    };
    format!("{}{name}", with_tenth(count / (unit / 10)))
}

/// `24.1` for 241, `24` for 240.
fn with_tenth(tenths: u64) -> String {
    match tenths % 10 {
        0 => grouped(tenths / 10),
        tenth => format!("{}{}{tenth}", grouped(tenths / 10), form().decimal()),
    }
}

/// A count, abbreviated, with the exact number as its title.
#[component]
pub(crate) fn Count(value: u64) -> impl IntoView {
    let exact = grouped(value);
    let short = compact(value);
    let title = (short != exact).then_some(exact);
    view! { <data class="count" value=value.to_string() title=title>{short}</data> }.into_any()
}

/// `12.3%`; `-` without a whole. Values between none and all are never shown as `0%` or
/// `100%`.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let (part, whole) = (u128::from(part), u128::from(whole));
    let tenths = (part * 1000 + whole / 2) / whole;
    let point = form().decimal();
    match tenths {
        0 if part > 0 => format!("<0{point}1%"),
        1000 if part < whole => format!(">99{point}9%"),
        _ => format!("{}{point}{}%", tenths / 10, tenths % 10),
    }
}

/// `180 ms`, `2.5 s`, `2 min 5 s`, `3 h 20 min`, `4 d 1 h`.
pub(crate) fn duration(milliseconds: u64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let seconds = milliseconds / 1000;
    let (unit, name, small, small_name) = match seconds {
        0 => return format!("{milliseconds} ms"),
        1..MINUTE => return format!("{} s", with_tenth(milliseconds / 100)),
        MINUTE..HOUR => (MINUTE, "min", 1, "s"),
        HOUR..DAY => (HOUR, "h", MINUTE, "min"),
        _ => (DAY, "d", HOUR, "h"),
    };
    let whole = format!("{} {name}", grouped(seconds / unit));
    match seconds % unit / small {
        0 => whole,
        rest => format!("{whole} {rest} {small_name}"),
    }
}

/// The same of a time in seconds.
pub(crate) fn seconds(seconds: f64) -> String {
    duration((seconds * 1000.0).round() as u64)
}

/// `0.3 ms`, `9.5 ms`; longer times are formatted like [`duration`]. Times above zero are
/// never shown as zero.
pub(crate) fn brief(microseconds: u64) -> String {
    match microseconds {
        0 => duration(0),
        1..100 => format!("<{} ms", with_tenth(1)),
        100..10_000 => format!("{} ms", with_tenth(microseconds / 100)),
        _ => duration(microseconds / 1000),
    }
}

/// `1 member`, `1,204 members`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// An id with a copy button. The style sheet shortens a long id in the middle, so that
/// selecting it still copies the whole id.
#[component]
pub(crate) fn Id(
    #[prop(into)] text: String,
    /// The kind of object, for screen readers.
    what: &'static str,
) -> impl IntoView {
    let code = match parts(&text) {
        None => view! { <code>{text}</code> }.into_any(),
        Some((start, end)) => {
            let (start, end) = (start.to_owned(), end.to_owned());
            view! {
                <code title=text><span class="id-start">{start}</span><span>{end}</span></code>
            }
            .into_any()
        }
    };
    view! {
        <span class="id" data-copyable="">
            {code}
            <CopyButton what=what />
        </span>
    }
    .into_any()
}

/// Splits a long id into the part that can be shortened and its end.
fn parts(id: &str) -> Option<(&str, &str)> {
    let length = id.chars().count();
    let end = length.checked_sub(ID_END).filter(|_| length > ID_WHOLE)?;
    let (at, _) = id.char_indices().nth(end)?;
    Some(id.split_at(at))
}

#[cfg(test)]
mod tests {
    use super::{amount, brief, compact, counted, duration, grouped, parts, percent};

    #[test]
    fn thousands() {
        for (count, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345, "12,345"),
            (1_204_000, "1,204,000"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(grouped(count), expected);
        }
    }

    #[test]
    fn amounts() {
        for (number, expected) in [
            (0.0, "0"),
            (-0.0001, "0"),
            (7.0, "7"),
            (-1_204.5, "-1,204.5"),
            (1.0 / 3.0, "0.333"),
            (1.9996, "2"),
            (2.05, "2.05"),
            (1e18, "1e18"),
        ] {
            assert_eq!(amount(number), expected, "{number}");
        }
    }

    #[test]
    fn large_counts_are_shortened() {
        for (count, expected) in [
            (0, "0"),
            (10_000, "10,000"),
            (10_001, "10k"),
            (24_199, "24.1k"),
            (999_999, "999.9k"),
            (1_000_000, "1M"),
            (1_250_000, "1.2M"),
            (3_000_000_000, "3B"),
            (u64::MAX, "18,446,744,073.7B"),
        ] {
            assert_eq!(compact(count), expected);
        }
    }

    #[test]
    fn shares() {
        for (part, whole, expected) in [
            (0, 0, "-"),
            (0, 7, "0.0%"),
            (1, 3, "33.3%"),
            (1, 100_000, "<0.1%"),
            (99_999, 100_000, ">99.9%"),
            (7, 7, "100.0%"),
            (u64::MAX, u64::MAX, "100.0%"),
        ] {
            assert_eq!(percent(part, whole), expected, "{part} of {whole}");
        }
    }

    #[test]
    fn durations() {
        for (milliseconds, expected) in [
            (0, "0 ms"),
            (180, "180 ms"),
            (1_000, "1 s"),
            (2_560, "2.5 s"),
            (59_999, "59.9 s"),
            (60_000, "1 min"),
            (125_000, "2 min 5 s"),
            (3_600_000, "1 h"),
            (12_059_000, "3 h 20 min"),
            (349_200_000, "4 d 1 h"),
        ] {
            assert_eq!(duration(milliseconds), expected);
        }
    }

    #[test]
    fn times_of_steps() {
        for (microseconds, expected) in [
            (0, "0 ms"),
            (7, "<0.1 ms"),
            (340, "0.3 ms"),
            (1_000, "1 ms"),
            (9_560, "9.5 ms"),
            (10_000, "10 ms"),
            (1_250_000, "1.2 s"),
        ] {
            assert_eq!(brief(microseconds), expected);
        }
    }

    #[test]
    fn counted_things() {
        assert_eq!(counted(1, "member", "members"), "1 member");
        assert_eq!(counted(0, "member", "members"), "0 members");
        assert_eq!(counted(1_204, "member", "members"), "1,204 members");
    }

    #[test]
    fn long_ids_are_cut_before_their_end() {
        assert_eq!(parts("short"), None);
        assert_eq!(parts("0123456789abcdef"), None);
        assert_eq!(parts("0123456789abcdefg"), Some(("0123456789a", "bcdefg")));
        assert_eq!(parts("äääääääääääääääää"), Some(("äääääääääää", "ääääää")));
    }
}
