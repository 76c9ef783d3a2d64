//! From an answer to whether an alert fires (API-67). Nothing here reads a clock or the store.

use weir_model::Timestamp;
use weir_model::alerts::{CalculationInterval, ConditionKind, ThresholdKind};
use weir_model::errors::FieldError;
use weir_questions::query::{DateRange, Display, TrendsQuery};
use weir_questions::results::{CompareLabel, TrendsResult};
use weir_questions::time::{Calendar, DateText, DateUnit, RelativeDate};
use weir_store::alerts::AlertRow;

/// So many intervals back begins the range of a question. The first one can be cut, and is
/// not read.
const BACK: u32 = 3;
/// Seconds from the end of an interval to the first check, so that late events count.
const DELAY: i64 = 5 * 60;
/// Seconds over which the checks of all alerts are spread.
const SPREAD: i64 = 10 * 60;
const WEEKEND_DAYS: usize = 2;
/// Most characters of the name of a series in a sentence.
const LABEL_MAX: usize = 100;

/// The result of a check.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Evaluation {
    /// The number that was compared. `None`: several are within the bounds, or it is infinite.
    pub(super) value: Option<f64>,
    /// A sentence about the number that is beyond a bound, if there is one.
    pub(super) breach: Option<String>,
}

/// Refuses bounds that no number can be compared with.
pub(super) fn check_bounds(row: &AlertRow) -> Result<(), FieldError> {
    const BOUNDS: &str = "threshold__configuration__bounds";
    let invalid = |attr: &str, detail: &str| Err(FieldError::new(attr, "invalid_input", detail));
    match (row.lower, row.upper) {
        (None, None) => {
            return Err(FieldError::new(BOUNDS, "required", "Enter at least one bound."));
        }
        (Some(lower), Some(upper)) if lower > upper => {
            return invalid(BOUNDS, "The lower bound must not be above the upper bound.");
        }
        _ => {}
    }
    let is_absolute = row.condition == ConditionKind::AbsoluteValue;
    if is_absolute && row.threshold == ThresholdKind::Percentage {
        let detail = "The bounds of a value are numbers, not percentages.";
        return invalid("threshold__configuration__type", detail);
    }
    // An interval that has just begun is below every number.
    let is_safe = row.lower.is_none() && row.condition != ConditionKind::RelativeDecrease;
    if row.is_ongoing && !is_safe {
        let detail = "The current interval is not complete, so only the upper bound of a value \
                      or of an increase can be checked in it.";
        return invalid("config__check_ongoing_interval", detail);
    }
    Ok(())
}

/// Refuses a question that has no number for an alert.
pub(super) fn check_question(row: &AlertRow, query: &TrendsQuery) -> Result<(), FieldError> {
    let invalid = |attr: &str, detail: &str| Err(FieldError::new(attr, "invalid_input", detail));
    let (display, formulas) = (query.filter.display, query.filter.formulas.len());
    if display == Display::Cumulative {
        let detail = "Alerts check numbers of intervals, and those of this insight are added up.";
        return invalid("insight", detail);
    }
    let numbers = if formulas == 0 { query.series.len() } else { formulas };
    if usize::try_from(row.series).map_or(true, |series| series >= numbers) {
        let detail = "The insight has no series or formula with this number.";
        return invalid("config__series_index", detail);
    }
    if display.is_total() && row.condition != ConditionKind::AbsoluteValue {
        let detail = "The insight has one number for its range, so there is no interval before.";
        return invalid("condition__type", detail);
    }
    Ok(())
}

/// The question that a check asks: about the last intervals, or about the range of the
/// insight if that has one number.
pub(super) fn question(query: &TrendsQuery) -> TrendsQuery {
    let mut query = query.clone();
    query.compare = None;
    if !query.filter.display.is_total() {
        let from = RelativeDate { back: BACK, unit: query.interval.unit(), edge: None };
        let date_from = Some(DateText::Relative(from));
        query.scope.dates = DateRange { date_from, ..DateRange::default() };
    }
    query
}

/// Compares the numbers of an answer with the bounds. With a breakdown each value is compared.
/// Without any number, 0 is.
pub(super) fn evaluate(row: &AlertRow, results: &[TrendsResult]) -> Evaluation {
    let is_checked = |result: &&TrendsResult| {
        usize::try_from(row.series).is_ok_and(|series| series == result.order)
            && result.compare_label != Some(CompareLabel::Previous)
    };
    let numbers = results.iter().filter(is_checked).map(|result| number(row, result));
    let mut numbers: Vec<Number> = numbers.collect();
    if numbers.is_empty() {
        let label = "The answer has no series".to_owned();
        numbers.push(Number { label, when: String::new(), value: 0.0 });
    }
    let finite = |value: f64| value.is_finite().then_some(value);
    for number in &numbers {
        if let Some(breach) = breach(row, number) {
            return Evaluation { value: finite(number.value), breach: Some(breach) };
        }
    }
    let value = match numbers.as_slice() {
        [only] => finite(only.value),
        _ => None,
    };
    Evaluation { value, breach: None }
}

/// When an alert is checked after a check at this time: after the end of the hour, day, week
/// or month, and after a weekend that it skips.
pub(super) fn next_check(row: &AlertRow, calendar: &Calendar, now: Timestamp) -> Timestamp {
    let unit = match row.interval {
        CalculationInterval::Hourly => DateUnit::Hour,
        CalculationInterval::Daily => DateUnit::Day,
        CalculationInterval::Weekly => DateUnit::Week,
        CalculationInterval::Monthly => DateUnit::Month,
    };
    // The end of the calendar has no unit after it.
    let end_of = |unit, micros| calendar.ceiling(unit, micros).unwrap_or(i64::MAX / 2);
    let mut end = end_of(unit, now.micros());
    // Otherwise a week or a month that ends on a weekend would never be checked.
    for _ in 0..WEEKEND_DAYS {
        if row.skips_weekend && calendar.is_weekend(end) {
            end = end_of(DateUnit::Day, end);
        }
    }
    Timestamp::from_micros(end).plus_seconds(DELAY + row.id.0.rem_euclid(SPREAD))
}

struct Number {
    label: String,
    /// The interval.
    when: String,
    /// Infinite for a change from 0 in percent.
    value: f64,
}

fn number(row: &AlertRow, result: &TrendsResult) -> Number {
    let label = result.label.chars().take(LABEL_MAX).collect();
    if let Some(total) = result.aggregated_value {
        return Number { label, when: String::new(), value: total.value() };
    }
    let back = usize::from(!row.is_ongoing);
    let at = |back: usize| result.data.iter().rev().nth(back).map_or(0.0, |data| data.value());
    let (value, before) = (at(back), at(back + 1));
    let change = match row.condition {
        ConditionKind::AbsoluteValue => value,
        ConditionKind::RelativeIncrease => value - before,
        ConditionKind::RelativeDecrease => before - value,
    };
    let value = match row.threshold {
        ThresholdKind::Percentage if change != 0.0 => change / before.abs(),
        ThresholdKind::Percentage | ThresholdKind::Absolute => change,
    };
    let when = result.labels.iter().rev().nth(back).map(|when| format!(" ({when})"));
    Number { label, when: when.unwrap_or_default(), value }
}

fn breach(row: &AlertRow, number: &Number) -> Option<String> {
    let Number { label, when, value } = number;
    let (side, bound) = match (row.lower, row.upper) {
        (Some(lower), _) if *value < lower => ("below", lower),
        (_, Some(upper)) if *value > upper => ("above", upper),
        _ => return None,
    };
    let what = match row.condition {
        ConditionKind::AbsoluteValue => "value",
        ConditionKind::RelativeIncrease => "increase of",
        ConditionKind::RelativeDecrease => "decrease of",
    };
    let (value, bound) = (text(row, *value), text(row, bound));
    Some(format!("{label}: the {what} {value}{when} is {side} the bound {bound}."))
}

/// A number with four digits after the point at most.
fn text(row: &AlertRow, value: f64) -> String {
    let rounded = |value: f64| (value * 10_000.0).round() / 10_000.0;
    match row.threshold {
        _ if value.is_infinite() => "any share of 0".to_owned(),
        ThresholdKind::Percentage => format!("{} %", rounded(value * 100.0)),
        ThresholdKind::Absolute => rounded(value).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use weir_questions::Query;
    use weir_questions::query::EventsNode;
    use weir_questions::results::{Amount, Axis, BreakdownValue};
    use weir_questions::time::WeekStart;

    use super::*;
    use crate::alerts::tests::row;

    fn series(order: usize, numbers: &[f64]) -> TrendsResult {
        let node = EventsNode { event: Some("paid".to_owned()), ..EventsNode::default() };
        let days = (0..numbers.len()).map(|day| format!("day {day}"));
        let axis = Axis { days: days.clone().collect(), labels: days.collect() };
        let data = numbers.iter().copied().map(Amount::new).collect();
        TrendsResult::over_time(&node, order, &axis, data)
    }

    fn trends(query: &serde_json::Value) -> TrendsQuery {
        match Query::read(query).unwrap() {
            Query::Trends(query) => query,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_last_complete_interval_or_the_current_one_is_compared() {
        let results = [series(0, &[1.0, 5.0, 8.0, 2.0]), series(1, &[9.0, 9.0, 9.0, 9.0])];
        let of = |change: fn(&mut AlertRow)| {
            let mut row = row();
            (row.lower, row.upper) = (None, Some(6.0));
            change(&mut row);
            evaluate(&row, &results)
        };
        let fires = |value: f64, breach: &str| Evaluation {
            value: Some(value),
            breach: Some(breach.to_owned()),
        };
        let within = |value: f64| Evaluation { value: Some(value), breach: None };
        for (found, expected) in [
            (of(|_| {}), fires(8.0, "paid: the value 8 (day 2) is above the bound 6.")),
            (of(|row| row.upper = Some(8.0)), within(8.0)),
            (
                of(|row| row.lower = Some(8.5)),
                fires(8.0, "paid: the value 8 (day 2) is below the bound 8.5."),
            ),
            (of(|row| row.is_ongoing = true), within(2.0)),
            (
                of(|row| row.series = 1),
                fires(9.0, "paid: the value 9 (day 2) is above the bound 6."),
            ),
            (of(|row| row.condition = ConditionKind::RelativeIncrease), within(3.0)),
            (
                of(|row| {
                    row.condition = ConditionKind::RelativeDecrease;
                    row.upper = Some(-4.0);
                }),
                fires(-3.0, "paid: the decrease of -3 (day 2) is above the bound -4."),
            ),
            (
                of(|row| {
                    row.condition = ConditionKind::RelativeIncrease;
                    row.threshold = ThresholdKind::Percentage;
                    row.upper = Some(0.5);
                }),
                fires(0.6, "paid: the increase of 60 % (day 2) is above the bound 50 %."),
            ),
        ] {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_change_from_zero_is_beyond_every_percentage() {
        let mut row = row();
        (row.lower, row.upper) = (None, Some(100.0));
        row.condition = ConditionKind::RelativeIncrease;
        row.threshold = ThresholdKind::Percentage;
        let found = evaluate(&row, &[series(0, &[0.0, 7.0, 1.0])]);
        assert_eq!(found.value, None);
        let breach = found.breach.unwrap();
        assert!(breach.contains("the increase of any share of 0 (day 1) is above"), "{breach}");
        let none = evaluate(&row, &[series(0, &[0.0, 0.0, 1.0])]);
        assert_eq!(none, Evaluation { value: Some(0.0), breach: None });
    }

    #[test]
    fn each_value_of_a_breakdown_is_compared() {
        let mut row = row();
        (row.lower, row.upper) = (None, Some(4.0));
        let value = |name: &str, numbers: &[f64]| {
            series(0, numbers).broken_down(BreakdownValue::One(name.to_owned()), true)
        };
        let quiet = [value("a", &[1.0, 2.0, 3.0]), value("b", &[1.0, 4.0, 9.0])];
        assert_eq!(evaluate(&row, &quiet), Evaluation { value: None, breach: None });
        let loud = [value("a", &[1.0, 2.0, 3.0]), value("b", &[1.0, 5.0, 0.0])];
        let found = evaluate(&row, &loud);
        assert_eq!(found.value, Some(5.0));
        assert!(found.breach.unwrap().starts_with("b: the value 5"));
        // No value is none of something, which is 0.
        row.lower = Some(1.0);
        assert_eq!(evaluate(&row, &[]).value, Some(0.0));
        assert!(evaluate(&row, &[]).breach.is_some());
    }

    #[test]
    fn one_number_of_the_range_is_compared_as_it_is() {
        let node = EventsNode::default();
        let total = TrendsResult::total(&node, 0, Amount::new(12.0));
        let mut row = row();
        (row.lower, row.upper) = (Some(20.0), None);
        let found = evaluate(&row, &[total]);
        assert_eq!(
            found.breach.as_deref(),
            Some("All events: the value 12 is below the bound 20.")
        );
    }

    #[test]
    fn a_check_asks_about_the_last_intervals() {
        let sent = json!({
            "kind": "TrendsQuery",
            "series": [{"event": "paid"}],
            "interval": "week",
            "dateRange": {"date_from": "2020-01-01", "date_to": "2020-02-01"},
            "compareFilter": {"compare": true},
        });
        let asked = serde_json::to_value(question(&trends(&sent))).unwrap();
        assert_eq!(asked["dateRange"], json!({"date_from": "-3w"}));
        assert_eq!(asked.get("compareFilter"), None);
        let mut number = sent;
        number["trendsFilter"] = json!({"display": "BoldNumber"});
        let asked = serde_json::to_value(question(&trends(&number))).unwrap();
        assert_eq!(asked["dateRange"]["date_from"], "2020-01-01");
    }

    #[test]
    fn rules_that_cannot_be_checked_are_refused() {
        let fault = |change: fn(&mut AlertRow)| {
            let mut row = row();
            (row.lower, row.upper) = (None, Some(1.0));
            change(&mut row);
            check_bounds(&row).err().and_then(|fault| fault.attr)
        };
        let at = |attr: &str| Some(attr.to_owned());
        assert_eq!(fault(|_| {}), None);
        assert_eq!(fault(|row| row.upper = None), at("threshold__configuration__bounds"));
        assert_eq!(fault(|row| row.lower = Some(2.0)), at("threshold__configuration__bounds"));
        let share = fault(|row| row.threshold = ThresholdKind::Percentage);
        assert_eq!(share, at("threshold__configuration__type"));
        let ongoing = at("config__check_ongoing_interval");
        assert_eq!(fault(|row| row.is_ongoing = true), None);
        let below = fault(|row| {
            row.is_ongoing = true;
            row.lower = Some(0.0);
        });
        assert_eq!(below, ongoing);
        let decrease = fault(|row| {
            row.is_ongoing = true;
            row.condition = ConditionKind::RelativeDecrease;
        });
        assert_eq!(decrease, ongoing);

        let of_question = |change: fn(&mut AlertRow), filter: serde_json::Value| {
            let sent = json!({
                "kind": "TrendsQuery",
                "series": [{"event": "a"}, {"event": "b"}],
                "trendsFilter": filter,
            });
            let mut row = row();
            change(&mut row);
            check_question(&row, &trends(&sent)).err().and_then(|fault| fault.attr)
        };
        let line = || json!({"display": "ActionsLineGraph"});
        assert_eq!(of_question(|row| row.series = 1, line()), None);
        assert_eq!(of_question(|row| row.series = 2, line()), at("config__series_index"));
        let formula = json!({"formula": "A / B"});
        assert_eq!(of_question(|row| row.series = 1, formula), at("config__series_index"));
        let added = json!({"display": "ActionsLineGraphCumulative"});
        assert_eq!(of_question(|_| {}, added), at("insight"));
        let number = json!({"display": "BoldNumber"});
        assert_eq!(of_question(|_| {}, number.clone()), None);
        let relative = |row: &mut AlertRow| row.condition = ConditionKind::RelativeIncrease;
        assert_eq!(of_question(relative, number), at("condition__type"));
    }

    #[test]
    fn the_next_check_is_after_the_end_of_the_interval() {
        let calendar = Calendar::new("Europe/Berlin", WeekStart::Monday).unwrap();
        let now = Timestamp::parse("2026-10-24T12:30:00Z").unwrap();
        let mut row = row();
        for (interval, expected) in [
            (CalculationInterval::Hourly, "2026-10-24T13:05:01Z"),
            (CalculationInterval::Daily, "2026-10-24T22:05:01Z"),
            (CalculationInterval::Weekly, "2026-10-25T23:05:01Z"),
            (CalculationInterval::Monthly, "2026-10-31T23:05:01Z"),
        ] {
            row.interval = interval;
            assert_eq!(next_check(&row, &calendar, now).to_string(), expected);
        }
    }

    #[test]
    fn a_check_of_a_skipped_weekend_is_after_it() {
        let calendar = Calendar::new("UTC", WeekStart::Sunday).unwrap();
        let friday = Timestamp::parse("2026-08-21T23:30:00Z").unwrap();
        let monday = "2026-08-24T00:05:01Z";
        let mut row = row();
        row.skips_weekend = true;
        for interval in
            [CalculationInterval::Hourly, CalculationInterval::Daily, CalculationInterval::Weekly]
        {
            row.interval = interval;
            assert_eq!(next_check(&row, &calendar, friday).to_string(), monday);
        }
        row.skips_weekend = false;
        assert_eq!(next_check(&row, &calendar, friday).to_string(), "2026-08-23T00:05:01Z");
    }
}
