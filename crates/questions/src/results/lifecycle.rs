//! Results of a lifecycle.

use serde::{Deserialize, Serialize};

use super::{ActionResult, Amount, Axis};
use crate::query::{EventsNode, LifecycleStatus};

/// Persons with a status over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LifecycleResult {
    /// The series.
    pub action: ActionResult,
    /// The name of the series and the status.
    pub label: String,
    /// The status.
    pub status: String,
    /// The sum of the numbers.
    pub count: Amount,
    /// Persons in each bucket; negative numbers of those who stay away.
    pub data: Vec<Amount>,
    /// The beginnings of the buckets.
    pub days: Vec<String>,
    /// The texts of the buckets for readers.
    pub labels: Vec<String>,
}

impl LifecycleResult {
    /// From the persons of each bucket.
    pub fn new(series: &EventsNode, axis: &Axis, status: LifecycleStatus, counts: &[u64]) -> Self {
        let sign = if status == LifecycleStatus::Dormant { -1.0 } else { 1.0 };
        let amount = |count: u64| Amount::new(Amount::from(count).value() * sign);
        Self {
            action: ActionResult::new(series, 0),
            label: format!("{} - {}", series.label(), status.word()),
            status: status.word().to_owned(),
            count: amount(counts.iter().sum()),
            data: counts.iter().copied().map(amount).collect(),
            days: axis.days.clone(),
            labels: axis.labels.clone(),
        }
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
    fn persons_who_stay_away_are_negative() {
        let axis = Axis { days: vec!["2026-08-21".to_owned()], labels: vec![String::new()] };
        let of = |status| LifecycleResult::new(&series(), &axis, status, &[4]);
        let value = serde_json::to_value(of(LifecycleStatus::Dormant)).unwrap();
        assert_eq!((&value["data"], &value["count"]), (&json!([-4]), &json!(-4)));
        assert_eq!((&value["label"], &value["status"]), (&json!("a - dormant"), &json!("dormant")));
        assert_eq!(of(LifecycleStatus::New).count, Amount::from(4_u64));
        let none = LifecycleResult::new(&series(), &axis, LifecycleStatus::Dormant, &[0]);
        assert_eq!(serde_json::to_value(&none).unwrap()["data"], json!([0]));
    }
}
