//! Results of trends.

use serde::{Deserialize, Serialize};

use super::{Amount, Axis, BreakdownValue};
use crate::evaluate::ExactSum;
use crate::query::{EventsNode, TrendsFormula};

/// The series that a result is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionResult {
    /// The name of the events; null: all events.
    pub id: Option<String>,
    /// Always `events`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The number of the series, from 0.
    pub order: usize,
    /// The name of the events, or `All events`.
    pub name: String,
    /// The name that a user gave.
    pub custom_name: Option<String>,
    /// What was computed.
    pub math: String,
    /// Of which property.
    pub math_property: Option<String>,
    /// Of which group type.
    pub math_group_type_index: Option<u8>,
}

impl ActionResult {
    /// The series of this number.
    pub fn new(series: &EventsNode, order: usize) -> Self {
        Self {
            id: series.event.clone(),
            kind: "events".to_owned(),
            order,
            name: series.label().to_owned(),
            custom_name: series.custom_name.clone(),
            math: series.math.word().to_owned(),
            math_property: series.math.property().map(str::to_owned),
            math_group_type_index: series.math.group_type(),
        }
    }
}

/// Which of two compared ranges a result is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompareLabel {
    /// The range of the question.
    Current,
    /// The range that it is compared with.
    Previous,
}

impl CompareLabel {
    /// Its word in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Previous => "previous",
        }
    }
}

/// A result of trends: a series, or a part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrendsResult {
    /// The series. Null: a formula.
    pub action: Option<ActionResult>,
    /// The number of the series or of the formula, from 0.
    pub order: usize,
    /// The name of the series, the breakdown value, or both.
    pub label: String,
    /// The sum of the numbers, or the last one if they are cumulative. 0 for one number.
    pub count: Amount,
    /// A number for each bucket. Empty for one number.
    pub data: Vec<Amount>,
    /// The texts of the buckets for readers.
    pub labels: Vec<String>,
    /// The beginnings of the buckets.
    pub days: Vec<String>,
    /// The one number for the range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregated_value: Option<Amount>,
    /// Whether two ranges are compared.
    #[serde(default, skip_serializing_if = "is_false")]
    pub compare: bool,
    /// Which of them it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare_label: Option<CompareLabel>,
    /// The breakdown value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown_value: Option<BreakdownValue>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl TrendsResult {
    /// The numbers of a series, one for each bucket.
    pub fn over_time(series: &EventsNode, order: usize, axis: &Axis, data: Vec<Amount>) -> Self {
        Self {
            count: sum(&data),
            data,
            labels: axis.labels.clone(),
            days: axis.days.clone(),
            ..Self::empty(series, order)
        }
    }

    /// The one number of a series for the range.
    pub fn total(series: &EventsNode, order: usize, value: Amount) -> Self {
        Self { aggregated_value: Some(value), ..Self::empty(series, order) }
    }

    fn empty(series: &EventsNode, order: usize) -> Self {
        Self {
            action: Some(ActionResult::new(series, order)),
            order,
            label: series.label().to_owned(),
            count: Amount::default(),
            data: Vec::new(),
            labels: Vec::new(),
            days: Vec::new(),
            aggregated_value: None,
            compare: false,
            compare_label: None,
            breakdown_value: None,
        }
    }

    /// The result of one of two compared ranges.
    #[must_use]
    pub fn compared(self, label: CompareLabel) -> Self {
        Self { compare: true, compare_label: Some(label), ..self }
    }

    /// The result of a breakdown value. `is_only`: there is one series, so its name is not
    /// part of the label.
    #[must_use]
    pub fn broken_down(self, value: BreakdownValue, is_only: bool) -> Self {
        let text = value.label();
        let label = if is_only { text } else { format!("{} - {text}", self.label) };
        Self { label, breakdown_value: Some(value), ..self }
    }

    /// The result with sums since the first bucket.
    #[must_use]
    pub fn cumulative(self) -> Self {
        let data = cumulative(&self.data);
        let count = data.last().copied().unwrap_or_default();
        Self { data, count, ..self }
    }
}

/// The sums since the first number.
pub fn cumulative(data: &[Amount]) -> Vec<Amount> {
    let mut sum = ExactSum::default();
    data.iter()
        .map(|amount| {
            sum.add(amount.value());
            Amount::new(sum.value())
        })
        .collect()
}

fn sum(data: &[Amount]) -> Amount {
    let mut sum = ExactSum::default();
    data.iter().for_each(|amount| sum.add(amount.value()));
    Amount::new(sum.value())
}

/// The result of the formula of this number over the results of all series for the same range and breakdown
/// value, in the order of the series. `None`: a series without a result, which counts as 0.
/// `None` is returned if no series has one. `is_cumulative`: the numbers of the series are.
pub fn with_formula(
    formula: &TrendsFormula,
    order: usize,
    is_cumulative: bool,
    series: &[Option<&TrendsResult>],
) -> Option<TrendsResult> {
    let base = series.iter().flatten().next()?;
    let label = match &formula.custom_name {
        Some(name) => name.clone(),
        None => format!("Formula ({})", formula.formula.text()),
    };
    let mut result = TrendsResult { action: None, order, label, ..(*base).clone() };
    if base.aggregated_value.is_some() {
        let value = |result: &Option<&TrendsResult>| {
            result.and_then(|result| result.aggregated_value).unwrap_or_default().value()
        };
        let values: Vec<f64> = series.iter().map(value).collect();
        result.aggregated_value = Some(Amount::new(formula.formula.value(&values)));
        return Some(result);
    }
    let data: Vec<Vec<f64>> = series
        .iter()
        .map(|result| {
            let data = result.map_or(&[] as &[Amount], |result| result.data.as_slice());
            data.iter().map(|amount| amount.value()).collect()
        })
        .collect();
    let slices: Vec<&[f64]> = data.iter().map(Vec::as_slice).collect();
    result.data = formula.formula.values(&slices).into_iter().map(Amount::new).collect();
    result.count = match is_cumulative {
        true => result.data.last().copied().unwrap_or_default(),
        false => sum(&result.data),
    };
    Some(result)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::formula::Formula;

    fn series(event: Option<&str>) -> EventsNode {
        EventsNode { event: event.map(str::to_owned), ..EventsNode::default() }
    }

    fn amounts(numbers: &[f64]) -> Vec<Amount> {
        numbers.iter().copied().map(Amount::new).collect()
    }

    fn axis() -> Axis {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Axis {
            days: texts(&["2026-08-20", "2026-08-21"]),
            labels: texts(&["20-Aug-2026", "21-Aug-2026"]),
        }
    }

    fn over_time(event: Option<&str>, numbers: &[f64]) -> TrendsResult {
        TrendsResult::over_time(&series(event), 0, &axis(), amounts(numbers))
    }

    #[test]
    fn a_series_has_the_published_members() {
        let result = over_time(Some("$pageview"), &[3.0, 4.0]).compared(CompareLabel::Previous);
        let value = serde_json::to_value(&result).unwrap();
        let expected = json!({
            "action": {
                "id": "$pageview",
                "type": "events",
                "order": 0,
                "name": "$pageview",
                "custom_name": null,
                "math": "total",
                "math_property": null,
                "math_group_type_index": null,
            },
            "order": 0,
            "label": "$pageview",
            "count": 7,
            "data": [3, 4],
            "labels": ["20-Aug-2026", "21-Aug-2026"],
            "days": ["2026-08-20", "2026-08-21"],
            "compare": true,
            "compare_label": "previous",
        });
        assert_eq!(value, expected);
        assert_eq!(serde_json::from_value::<TrendsResult>(value).unwrap(), result);
        let total = TrendsResult::total(&series(None), 1, Amount::new(2.5));
        let value = serde_json::to_value(&total).unwrap();
        assert_eq!(value["aggregated_value"], 2.5);
        assert_eq!((&value["label"], &value["count"]), (&json!("All events"), &json!(0)));
    }

    #[test]
    fn labels_name_the_breakdown_value() {
        let value = || BreakdownValue::One("Chrome".to_owned());
        let only = over_time(Some("a"), &[]).broken_down(value(), true);
        assert_eq!(only.label, "Chrome");
        let several = over_time(Some("a"), &[]).broken_down(value(), false);
        assert_eq!(several.label, "a - Chrome");
        assert_eq!(serde_json::to_value(&several).unwrap()["breakdown_value"], "Chrome");
    }

    #[test]
    fn cumulative_numbers_end_with_the_count() {
        let result = over_time(None, &[3.0, 0.0, 4.0]).cumulative();
        assert_eq!(result.data, amounts(&[3.0, 3.0, 7.0]));
        assert_eq!(result.count, Amount::new(7.0));
        assert!(cumulative(&[]).is_empty());
        let result = over_time(None, &[0.1; 10]);
        assert_eq!((result.count, result.cumulative().count), (Amount::new(1.0), Amount::new(1.0)));
    }

    #[test]
    fn a_formula_has_a_result_of_its_own() {
        let formula = |custom_name: Option<&str>| TrendsFormula {
            formula: Formula::parse("A / B", 2).unwrap(),
            custom_name: custom_name.map(str::to_owned),
        };
        let (first, second) = (over_time(None, &[3.0, 4.0]), over_time(None, &[6.0, 0.0]));
        let result =
            with_formula(&formula(None), 0, false, &[Some(&first), Some(&second)]).unwrap();
        assert_eq!(result.data, amounts(&[0.5, 0.0]));
        assert_eq!((result.label.as_str(), result.action), ("Formula (A / B)", None));
        assert_eq!(result.days, first.days);
        let missing =
            with_formula(&formula(Some("rate")), 1, false, &[None, Some(&second)]).unwrap();
        let found = (missing.label.as_str(), missing.order, missing.count);
        assert_eq!(found, ("rate", 1, Amount::default()));
        assert_eq!(with_formula(&formula(None), 0, false, &[None, None]), None);
        let total = |value: f64| TrendsResult::total(&series(None), 0, Amount::new(value));
        let (first, second) = (total(1.0), total(4.0));
        let result =
            with_formula(&formula(None), 0, false, &[Some(&first), Some(&second)]).unwrap();
        assert_eq!(result.aggregated_value, Some(Amount::new(0.25)));
    }

    #[test]
    fn the_count_of_a_formula_of_cumulative_numbers_is_the_last_one() {
        let formula =
            TrendsFormula { formula: Formula::parse("A + B", 2).unwrap(), custom_name: None };
        let first = over_time(None, &[3.0, 4.0]).cumulative();
        let second = over_time(None, &[6.0, 0.0]).cumulative();
        let result = with_formula(&formula, 0, true, &[Some(&first), Some(&second)]).unwrap();
        assert_eq!(result.data, amounts(&[9.0, 13.0]));
        assert_eq!(result.count, Amount::new(13.0));
    }
}
