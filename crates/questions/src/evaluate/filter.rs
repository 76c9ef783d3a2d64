//! Whether the value of a property satisfies a filter (QRY-26).
//!
//! What belongs here: one filter and one value. What does not: finding the value, and groups
//! of filters (the engine).

use std::collections::HashSet;
use std::ops::Range;

use regex::{RegexSet, RegexSetBuilder};
use weir_model::Timestamp;

use super::property::{Numeric, PropertyValue};
use crate::query::{FilterValue, Operator, PropertyFilter};
use crate::time::{Calendar, DateText};

/// Most bytes of the compiled patterns of a filter.
const PATTERNS_SIZE: usize = 1 << 20;
/// Deepest nesting in a pattern.
const PATTERN_DEPTH: u32 = 50;
/// Numbers from this on are seconds since 1970: 1973.
const SECONDS_MIN: i128 = 100_000_000;
/// Numbers from this on are milliseconds since 1970.
const MILLIS_MIN: i128 = 100_000_000_000;
/// Numbers from this on are no dates: the year 5138.
const MILLIS_MAX: i128 = 100_000_000_000_000;

/// Why a filter cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterFault {
    /// A text is no regular expression, or a too large one.
    #[error("The pattern is not valid: {0}")]
    Pattern(String),
    /// A date is outside of the calendar.
    #[error("The date is outside of the calendar.")]
    Date,
}

/// A filter, ready to be applied to many values.
#[derive(Debug, Clone)]
pub struct Matcher {
    test: Test,
    /// Whether the values that do not satisfy the test satisfy the filter.
    is_negated: bool,
}

#[derive(Debug, Clone)]
enum Test {
    /// There is a value.
    Set,
    /// Its text or its number is one of these.
    OneOf { texts: HashSet<String>, numbers: HashSet<Numeric> },
    /// Its text contains one of these, which are in lower case.
    Contains(Vec<String>),
    /// Its text matches one of these.
    Patterns(RegexSet),
    /// Its number is above, or equal.
    Above(Numeric, Equal),
    /// Its number is below, or equal.
    Below(Numeric, Equal),
    /// Its number is between these, both included.
    Between(Numeric, Numeric),
    /// Its number is below the first or above the second one.
    Outside(Numeric, Numeric),
    /// Its time is in the range of a date, before it, or after it.
    Date(Calendar, When, Range<i64>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Equal {
    Counts,
    DoesNot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    In,
    Before,
    After,
}

impl Matcher {
    /// The matcher of a filter. Dates without a zone are those of the calendar.
    ///
    /// # Errors
    /// A pattern or a date cannot be used.
    pub fn new(
        filter: &PropertyFilter,
        calendar: &Calendar,
        now: Timestamp,
    ) -> Result<Self, FilterFault> {
        let texts = || filter.values.iter().map(FilterValue::text);
        let numbers: Vec<Numeric> = filter.values.iter().filter_map(Numeric::of_value).collect();
        let number = |at: usize| numbers.get(at).copied().unwrap_or(Numeric::Whole(0));
        let date = |when| {
            let date = filter.date().and_then(|date| calendar.span_of(date, now));
            date.map(|date| Test::Date(calendar.clone(), when, date)).ok_or(FilterFault::Date)
        };
        let one_of =
            || Test::OneOf { texts: texts().collect(), numbers: numbers.iter().copied().collect() };
        let contains = || Test::Contains(texts().map(|text| text.to_lowercase()).collect());
        let matching = || patterns(&texts().collect::<Vec<_>>()).map(Test::Patterns);
        let (test, is_negated) = match filter.operator {
            Operator::Exact | Operator::In => (one_of(), false),
            Operator::IsNot | Operator::NotIn => (one_of(), true),
            Operator::Contains => (contains(), false),
            Operator::ContainsNot => (contains(), true),
            Operator::Regex => (matching()?, false),
            Operator::NotRegex => (matching()?, true),
            Operator::Greater => (Test::Above(number(0), Equal::DoesNot), false),
            Operator::GreaterOrEqual => (Test::Above(number(0), Equal::Counts), false),
            Operator::Less => (Test::Below(number(0), Equal::DoesNot), false),
            Operator::LessOrEqual => (Test::Below(number(0), Equal::Counts), false),
            Operator::Between => (Test::Between(number(0), number(1)), false),
            Operator::NotBetween => (Test::Outside(number(0), number(1)), false),
            Operator::IsSet => (Test::Set, false),
            Operator::IsNotSet => (Test::Set, true),
            Operator::DateExact => (date(When::In)?, false),
            Operator::DateBefore => (date(When::Before)?, false),
            Operator::DateAfter => (date(When::After)?, false),
        };
        Ok(Self { test, is_negated })
    }

    /// Whether a value satisfies the filter.
    pub fn matches(&self, value: PropertyValue<'_>) -> bool {
        self.test.is_satisfied(value) != self.is_negated
    }
}

impl Test {
    fn is_satisfied(&self, value: PropertyValue<'_>) -> bool {
        match self {
            Self::Set => value != PropertyValue::Missing,
            Self::OneOf { texts, numbers } => match value {
                // A number is compared as a number, whatever text a filter has for it.
                PropertyValue::Integer(_) | PropertyValue::Double(_) => {
                    value.number().is_some_and(|number| numbers.contains(&number))
                }
                _ => value.text().is_some_and(|text| texts.contains(&*text)),
            },
            Self::Contains(needles) => value.text().is_some_and(|text| {
                let text = text.to_lowercase();
                needles.iter().any(|needle| text.contains(needle.as_str()))
            }),
            Self::Patterns(patterns) => value.text().is_some_and(|text| patterns.is_match(&text)),
            Self::Above(than, equal) => value.number().is_some_and(|number| {
                number > *than || (*equal == Equal::Counts && number == *than)
            }),
            Self::Below(than, equal) => value.number().is_some_and(|number| {
                number < *than || (*equal == Equal::Counts && number == *than)
            }),
            Self::Between(least, most) => {
                value.number().is_some_and(|number| *least <= number && number <= *most)
            }
            Self::Outside(least, most) => {
                value.number().is_some_and(|number| number < *least || *most < number)
            }
            Self::Date(calendar, when, range) => {
                time(value, calendar).is_some_and(|time| match when {
                    When::In => range.contains(&time),
                    When::Before => time < range.start,
                    When::After => time >= range.end,
                })
            }
        }
    }
}

/// The time of a value: a date with or without a time, or a number of seconds or
/// milliseconds since 1970, in microseconds.
fn time(value: PropertyValue<'_>, calendar: &Calendar) -> Option<i64> {
    if let PropertyValue::Text(text) = value
        && let Some(date) = DateText::parse(text)
    {
        return calendar.time_of(date);
    }
    let Numeric::Whole(number) = value.number()? else { return None };
    let micros = match number {
        SECONDS_MIN..MILLIS_MIN => number * 1_000_000,
        MILLIS_MIN..MILLIS_MAX => number * 1_000,
        _ => return None,
    };
    i64::try_from(micros).ok()
}

/// The patterns of a filter. `.` also matches a line break, as in ClickHouse.
///
/// # Errors
/// One of them is no regular expression, or they are too large together.
pub fn patterns(texts: &[String]) -> Result<RegexSet, FilterFault> {
    RegexSetBuilder::new(texts)
        .size_limit(PATTERNS_SIZE)
        .dfa_size_limit(PATTERNS_SIZE)
        .nest_limit(PATTERN_DEPTH)
        .dot_matches_new_line(true)
        .build()
        .map_err(|fault| FilterFault::Pattern(first_line(&fault)))
}

/// What is wrong with a pattern, without a drawing of its position.
fn first_line(fault: &regex::Error) -> String {
    match fault {
        regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
        fault => {
            let text = fault.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::query::{Filter, Query};
    use crate::time::WeekStart;

    /// The filter with an operator and a value.
    fn filter(operator: &str, value: &serde_json::Value) -> PropertyFilter {
        let query = json!({ "kind": "TrendsQuery", "series": [{ "properties":
            [{ "key": "a", "operator": operator, "value": value }] }] });
        let Query::Trends(mut trends) = Query::read(&query).unwrap() else { panic!() };
        match trends.series.remove(0).properties.filters.remove(0) {
            Filter::Property(filter) => filter,
            Filter::Group(group) => panic!("{group:?}"),
        }
    }

    fn matcher(operator: &str, value: &serde_json::Value) -> Matcher {
        let berlin = Calendar::new("Europe/Berlin", WeekStart::Monday).unwrap();
        let now = Timestamp::parse("2026-08-21T14:05:00Z").unwrap();
        Matcher::new(&filter(operator, value), &berlin, now).unwrap()
    }

    /// One value of each type.
    const VALUES: [PropertyValue<'_>; 6] = [
        PropertyValue::Missing,
        PropertyValue::Text("Chrome"),
        PropertyValue::Integer(5),
        PropertyValue::Double(5.5),
        PropertyValue::Boolean(true),
        PropertyValue::Json("[5]"),
    ];

    #[test]
    fn every_operator_knows_every_type() {
        let mut seen = HashSet::new();
        for (operator, value, expected) in [
            // Missing, text, whole number, double, boolean, list.
            ("exact", json!("Chrome"), [false, true, false, false, false, false]),
            ("exact", json!(["5", 5.5, true]), [false, false, true, true, true, false]),
            ("is_not", json!("Chrome"), [true, false, true, true, true, true]),
            ("icontains", json!("R"), [false, true, false, false, true, false]),
            ("not_icontains", json!("5"), [true, true, false, false, true, false]),
            ("regex", json!("^[C5]"), [false, true, true, true, false, false]),
            ("not_regex", json!("^[C5]"), [true, false, false, false, true, true]),
            ("gt", json!(5), [false, false, false, true, false, false]),
            ("gte", json!(5), [false, false, true, true, false, false]),
            ("lt", json!(5.5), [false, false, true, false, false, false]),
            ("lte", json!(5.5), [false, false, true, true, false, false]),
            ("between", json!([5, 5.5]), [false, false, true, true, false, false]),
            ("not_between", json!([5.2, 6]), [false, false, true, false, false, false]),
            ("in", json!(["Chrome", "[5]"]), [false, true, false, false, false, true]),
            ("not_in", json!(["Chrome", 5]), [true, false, false, true, true, true]),
            ("is_set", json!(null), [false, true, true, true, true, true]),
            ("is_not_set", json!(null), [true, false, false, false, false, false]),
            ("is_date_exact", json!("2026-08-21"), [false; 6]),
            ("is_date_before", json!("2026-08-21"), [false; 6]),
            ("is_date_after", json!("2026-08-21"), [false; 6]),
        ] {
            let matcher = matcher(operator, &value);
            let found = VALUES.map(|value| matcher.matches(value));
            assert_eq!(found, expected, "{operator} {value}");
            seen.insert(operator);
        }
        assert_eq!(seen.len(), Operator::ALL.len());
    }

    #[test]
    fn values_are_compared_by_text_or_number() {
        for (operator, filter, value, expected) in [
            ("exact", json!(5), PropertyValue::Double(5.0), true),
            ("exact", json!("5.0"), PropertyValue::Integer(5), true),
            ("exact", json!(5), PropertyValue::Text("5"), true),
            ("exact", json!(5.0), PropertyValue::Text("5.0"), false),
            ("exact", json!("5"), PropertyValue::Text("5.0"), false),
            ("exact", json!("True"), PropertyValue::Boolean(true), false),
            ("exact", json!(""), PropertyValue::Text(""), true),
            ("exact", json!(""), PropertyValue::Missing, false),
            (
                "exact",
                json!(9_007_199_254_740_993_i64),
                PropertyValue::Integer(9_007_199_254_740_992),
                false,
            ),
            ("gt", json!(u64::MAX - 1), PropertyValue::Integer(i128::from(u64::MAX)), true),
            ("gt", json!(5), PropertyValue::Text("12.5"), true),
            ("gt", json!(5), PropertyValue::Text("many"), false),
            ("icontains", json!("GRÖSSE"), PropertyValue::Text("größe grösse"), true),
            ("icontains", json!("%"), PropertyValue::Text("abc"), false),
            ("icontains", json!(["x", "B"]), PropertyValue::Text("abc"), true),
            ("regex", json!("a.c"), PropertyValue::Text("xa\ncx"), true),
            ("regex", json!(["^x", "c$"]), PropertyValue::Text("abc"), true),
        ] {
            let matcher = matcher(operator, &filter);
            assert_eq!(matcher.matches(value), expected, "{operator} {filter} {value:?}");
        }
    }

    #[test]
    fn a_time_is_in_before_or_after_a_date() {
        use When::{After, Before, In};
        for (date, value, expected) in [
            // The day of the project: from 22:00 to 22:00 UTC.
            ("2026-08-21", PropertyValue::Text("2026-08-21"), Some(In)),
            ("2026-08-21", PropertyValue::Text("2026-08-20T22:00:00Z"), Some(In)),
            ("2026-08-21", PropertyValue::Text("2026-08-20T21:59:59Z"), Some(Before)),
            ("2026-08-21", PropertyValue::Text("2026-08-21T23:59:59.999999"), Some(In)),
            ("2026-08-21", PropertyValue::Text("2026-08-22"), Some(After)),
            ("2026-08-21T10:00", PropertyValue::Text("2026-08-21T08:00:00Z"), Some(In)),
            ("2026-08-21T10:00", PropertyValue::Text("2026-08-21 10:00:01"), Some(After)),
            ("-7d", PropertyValue::Text("2026-08-14T14:05:00Z"), Some(In)),
            ("-7d", PropertyValue::Text("2026-08-14"), Some(Before)),
            // Seconds and milliseconds, also as texts.
            ("2026-08-21", PropertyValue::Integer(1_787_300_000), Some(In)),
            ("2026-08-21", PropertyValue::Integer(1_787_300_000_000), Some(In)),
            ("2026-08-21", PropertyValue::Text("1787300000"), Some(In)),
            ("2026-08-21", PropertyValue::Integer(5), None),
            ("2026-08-21", PropertyValue::Double(1_787_300_000.5), None),
            ("2026-08-21", PropertyValue::Text("-7d"), None),
            ("2026-08-21", PropertyValue::Text("soon"), None),
        ] {
            for (operator, when) in
                [("is_date_exact", In), ("is_date_before", Before), ("is_date_after", After)]
            {
                let found = matcher(operator, &json!(date)).matches(value);
                assert_eq!(found, expected == Some(when), "{operator} {date} {value:?}");
            }
        }
    }

    #[test]
    fn patterns_and_dates_have_bounds() {
        let fault = |text: &str| match patterns(&[text.to_owned()]) {
            Ok(_) => String::new(),
            Err(fault) => fault.to_string(),
        };
        assert_eq!(fault("a+"), "");
        assert_eq!(fault("("), "The pattern is not valid: unclosed group");
        assert_eq!(fault("a{1000}{1000}"), "The pattern is not valid: it is too large");
        assert_ne!(fault(&"(".repeat(300)), "");
        assert_ne!(fault("(?=a)"), "", "it looks ahead");
        // Linear in the length of the value.
        let matcher = matcher("regex", &json!("(a+)+$"));
        let long = "a".repeat(100_000) + "b";
        assert!(!matcher.matches(PropertyValue::Text(&long)));
        let utc = Calendar::new("UTC", WeekStart::Sunday).unwrap();
        let far = filter("is_date_before", &json!("-99999y"));
        let now = Timestamp::parse("2026-08-21T14:05:00Z").unwrap();
        assert_eq!(Matcher::new(&far, &utc, now).unwrap_err(), FilterFault::Date);
    }
}
