//! Days in words, as charts and sentences have them: `21 Aug 2026`.

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The name of a month, by its number from 1.
pub(crate) fn month(number: usize) -> Option<&'static str> {
    MONTHS.get(number.checked_sub(1)?).copied()
}

/// Formats a day: `2027-02-18` becomes 18 Feb 2027.
pub(crate) fn day(text: &str) -> Option<String> {
    let mut parts = text.splitn(3, '-');
    let year: u16 = parts.next()?.parse().ok()?;
    let number: usize = parts.next()?.parse().ok()?;
    let day: u8 = parts.next()?.parse().ok()?;
    Some(format!("{day} {} {year}", month(number)?))
}

/// The text of an interval of an answer in the same form: `21-Aug-2026` and `2026-08-21` become
/// 21 Aug 2026, and `21-Aug 14:00` and `2026-08-21 14:00:00` become 21 Aug 14:00.
#[cfg(feature = "ssr")]
pub(crate) fn interval(label: &str) -> String {
    /// Length of a time with seconds.
    const TIME: usize = 8;

    let (date, time) = label.split_once(' ').unwrap_or((label, ""));
    match (day(date), time.len()) {
        (Some(day), 0) => day,
        (Some(day), TIME) => {
            let day = day.rsplit_once(' ').map_or(day.as_str(), |(day, _)| day);
            format!("{day} {}", time.get(..5).unwrap_or(time))
        }
        (Some(_), _) => label.to_owned(),
        (None, _) => label.replace('-', " "),
    }
}

/// The texts of several intervals.
#[cfg(feature = "ssr")]
pub(crate) fn intervals(labels: &[String]) -> Vec<String> {
    labels.iter().map(|label| interval(label)).collect()
}

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn days() {
        assert_eq!(day("2027-02-18").as_deref(), Some("18 Feb 2027"));
        for bad in ["", "2027", "2027-13-01", "2027-00-01", "a-b-c"] {
            assert_eq!(day(bad), None, "{bad}");
        }
    }

    #[cfg(feature = "ssr")]
    #[test]
    fn intervals_have_one_form() {
        for (label, expected) in [
            ("21-Aug-2026", "21 Aug 2026"),
            ("2026-08-21", "21 Aug 2026"),
            ("1-Aug 04:05", "1 Aug 04:05"),
            ("2026-08-01 04:05:00", "1 Aug 04:05"),
            ("Aug 2026", "Aug 2026"),
            ("17–23 Aug", "17–23 Aug"),
            ("31-Aug – 6-Sep", "31 Aug – 6 Sep"),
            ("2026-08-20 00:00 UTC", "2026-08-20 00:00 UTC"),
        ] {
            assert_eq!(super::interval(label), expected, "{label}");
        }
    }
}
