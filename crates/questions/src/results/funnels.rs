//! Results of funnels.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Amount, Axis, BreakdownValue};
use crate::evaluate::{Histogram, StepTotals};
use crate::query::{EventsNode, FunnelOrder};

/// A step of a funnel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunnelStepResult {
    /// The name of the events; null: all events, or steps in any order.
    pub action_id: Option<String>,
    /// The name of the step.
    pub name: String,
    /// The name that a user gave.
    pub custom_name: Option<String>,
    /// The number of the step, from 0.
    pub order: usize,
    /// Persons who did this step and those before it.
    pub count: u64,
    /// Always `events`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Always empty: another question lists persons.
    pub people: Vec<Value>,
    /// The average time since the step before, in seconds. Null for the first one.
    pub average_conversion_time: Option<Amount>,
    /// The median of that time, in seconds.
    pub median_conversion_time: Option<Amount>,
    /// The breakdown value for readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<BreakdownValue>,
    /// The breakdown value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown_value: Option<BreakdownValue>,
}

/// The steps of a funnel, from their totals.
pub fn funnel_steps(
    series: &[EventsNode],
    order: FunnelOrder,
    totals: &[StepTotals],
    breakdown: Option<&BreakdownValue>,
) -> Vec<FunnelStepResult> {
    let step = |(at, (node, totals)): (usize, (&EventsNode, &StepTotals))| {
        // In any order, a step is a number of steps.
        let is_unordered = order == FunnelOrder::Unordered;
        let plural = if at == 0 { "" } else { "s" };
        FunnelStepResult {
            action_id: node.event.clone().filter(|_| !is_unordered),
            name: match is_unordered {
                true => format!("Completed {} step{plural}", at + 1),
                false => node.label().to_owned(),
            },
            custom_name: node.custom_name.clone().filter(|_| !is_unordered),
            order: at,
            count: totals.count,
            kind: "events".to_owned(),
            people: Vec::new(),
            average_conversion_time: totals.average.map(Amount::new),
            median_conversion_time: totals.median.map(Amount::new),
            breakdown: breakdown.cloned(),
            breakdown_value: breakdown.cloned(),
        }
    };
    series.iter().zip(totals).enumerate().map(step).collect()
}

/// How long persons take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimeToConvertResult {
    /// The average in seconds, to hundredths.
    pub average_conversion_time: Option<Amount>,
    /// The beginning of each bin in seconds, and the persons in it.
    pub bins: Vec<(i64, u64)>,
}

impl From<Histogram> for TimeToConvertResult {
    fn from(histogram: Histogram) -> Self {
        Self { average_conversion_time: histogram.average.map(Amount::new), bins: histogram.bins }
    }
}

/// The rate of conversion over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunnelTrendResult {
    /// The number of buckets.
    pub count: usize,
    /// The rate of each bucket in percent, to hundredths.
    pub data: Vec<Amount>,
    /// The beginnings of the buckets.
    pub days: Vec<String>,
    /// The texts of the buckets for readers.
    pub labels: Vec<String>,
    /// The breakdown value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown_value: Option<BreakdownValue>,
}

impl FunnelTrendResult {
    /// From the persons of each bucket who began, and those of them who did the last step.
    pub fn new(axis: &Axis, persons: &[(u64, u64)], breakdown: Option<&BreakdownValue>) -> Self {
        let rate = |(began, converted): &(u64, u64)| match *began {
            0 => Amount::default(),
            began => {
                let percent = *converted as f64 * 100.0 / began as f64;
                Amount::new((percent * 100.0).round() / 100.0)
            }
        };
        Self {
            count: axis.days.len(),
            data: persons.iter().map(rate).collect(),
            days: axis.days.clone(),
            labels: axis.labels.clone(),
            breakdown_value: breakdown.cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn series() -> [EventsNode; 2] {
        ["sign up", "pay"].map(|event| EventsNode {
            event: Some(event.to_owned()),
            custom_name: Some(event.to_uppercase()),
            ..EventsNode::default()
        })
    }

    const TOTALS: [StepTotals; 2] = [
        StepTotals { count: 4, average: None, median: None },
        StepTotals { count: 1, average: Some(3.5), median: Some(3.0) },
    ];

    #[test]
    fn steps_have_the_published_members() {
        let steps = funnel_steps(&series(), FunnelOrder::Ordered, &TOTALS, None);
        let value = serde_json::to_value(&steps).unwrap();
        let second = json!({
            "action_id": "pay",
            "name": "pay",
            "custom_name": "PAY",
            "order": 1,
            "count": 1,
            "type": "events",
            "people": [],
            "average_conversion_time": 3.5,
            "median_conversion_time": 3,
        });
        assert_eq!(value[1], second);
        assert_eq!(value[0]["average_conversion_time"], Value::Null);
        assert_eq!(serde_json::from_value::<Vec<FunnelStepResult>>(value).unwrap(), steps);
        let chrome = BreakdownValue::Many(vec!["Chrome".to_owned()]);
        let steps = funnel_steps(&series(), FunnelOrder::Unordered, &TOTALS, Some(&chrome));
        let value = serde_json::to_value(&steps).unwrap();
        assert_eq!(value[0]["name"], "Completed 1 step");
        assert_eq!(value[1]["name"], "Completed 2 steps");
        assert_eq!(value[1]["action_id"], Value::Null);
        assert_eq!(value[1]["breakdown_value"], json!(["Chrome"]));
    }

    #[test]
    fn rates_and_times_have_the_published_members() {
        let axis =
            Axis { days: vec!["2026-08-21".to_owned()], labels: vec!["21-Aug-2026".to_owned()] };
        let trend = FunnelTrendResult::new(&axis, &[(3, 1)], None);
        let expected = json!({ "count": 1, "data": [33.33], "days": ["2026-08-21"],
            "labels": ["21-Aug-2026"] });
        assert_eq!(serde_json::to_value(&trend).unwrap(), expected);
        let empty = FunnelTrendResult::new(&axis, &[(0, 0)], None);
        assert_eq!(empty.data, [Amount::default()]);
        let times: TimeToConvertResult =
            Histogram { average: Some(1.25), bins: vec![(0, 3), (60, 0)] }.into();
        let expected = json!({ "average_conversion_time": 1.25, "bins": [[0, 3], [60, 0]] });
        assert_eq!(serde_json::to_value(&times).unwrap(), expected);
    }
}
