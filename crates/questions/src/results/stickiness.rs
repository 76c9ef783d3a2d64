//! Results of stickiness.

use serde::{Deserialize, Serialize};

use super::{ActionResult, CompareLabel};
use crate::query::EventsNode;
use crate::time::Interval;

/// Persons by the number of intervals in which they are active.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StickinessResult {
    /// The series.
    pub action: ActionResult,
    /// The name of the series.
    pub label: String,
    /// All persons.
    pub count: u64,
    /// Persons with one interval, two, and so on.
    pub data: Vec<u64>,
    /// The numbers of intervals.
    pub days: Vec<usize>,
    /// The same for readers, such as `2 days`.
    pub labels: Vec<String>,
    /// Whether two ranges are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare: Option<bool>,
    /// Which of them it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare_label: Option<CompareLabel>,
}

impl StickinessResult {
    /// From the counts without those of higher numbers, and those that the result has.
    pub fn new(
        series: &EventsNode,
        order: usize,
        interval: Interval,
        counts: &[u64],
        data: Vec<u64>,
        is_cumulative: bool,
    ) -> Self {
        let label = |days: usize| {
            let plural = if days == 1 { "" } else { "s" };
            let more = if is_cumulative { " or more" } else { "" };
            format!("{days} {}{plural}{more}", interval.word())
        };
        Self {
            action: ActionResult::new(series, order),
            label: series.label().to_owned(),
            count: counts.iter().sum(),
            days: (1..=data.len()).collect(),
            labels: (1..=data.len()).map(label).collect(),
            data,
            compare: None,
            compare_label: None,
        }
    }

    /// The result of one of two compared ranges.
    #[must_use]
    pub fn compared(self, label: CompareLabel) -> Self {
        Self { compare: Some(true), compare_label: Some(label), ..self }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn series() -> EventsNode {
        EventsNode { event: Some("a".to_owned()), ..EventsNode::default() }
    }

    #[test]
    fn stickiness_has_the_published_members() {
        let result = StickinessResult::new(&series(), 0, Interval::Day, &[2, 1], vec![2, 1], false);
        let value = serde_json::to_value(&result).unwrap();
        assert_eq!(value["labels"], json!(["1 day", "2 days"]));
        assert_eq!((&value["days"], &value["count"]), (&json!([1, 2]), &json!(3)));
        let result = StickinessResult::new(&series(), 0, Interval::Week, &[2, 1], vec![3, 1], true)
            .compared(CompareLabel::Current);
        let value = serde_json::to_value(&result).unwrap();
        assert_eq!(value["labels"], json!(["1 week or more", "2 weeks or more"]));
        assert_eq!(value["compare_label"], "current");
    }
}
