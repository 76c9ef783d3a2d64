//! Results of retention.

use serde::{Deserialize, Serialize};

use super::BreakdownValue;
use crate::time::Interval;

/// The persons who begin in a period, and how many of them come back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionResult {
    /// For each period from the one in which they begin.
    pub values: Vec<RetentionValue>,
    /// The number of the period, such as `Day 0`.
    pub label: String,
    /// When it begins.
    pub date: weir_model::Timestamp,
    /// The breakdown value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown_value: Option<BreakdownValue>,
}

/// Persons in a period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionValue {
    /// How many.
    pub count: u64,
    /// The number of the period, such as `Day 1`.
    pub label: String,
}

/// The results of retention: from the beginnings of periods in microseconds, and the counts
/// of each.
pub fn retention(
    period: Interval,
    boundaries: &[i64],
    counts: &[Vec<u64>],
    breakdown: Option<&BreakdownValue>,
) -> Vec<RetentionResult> {
    let label = |at: usize| format!("{} {at}", period_name(period));
    counts
        .iter()
        .zip(boundaries)
        .enumerate()
        .map(|(at, (counts, begin))| RetentionResult {
            values: counts
                .iter()
                .enumerate()
                .map(|(at, count)| RetentionValue { count: *count, label: label(at) })
                .collect(),
            label: label(at),
            date: weir_model::Timestamp::from_micros(*begin),
            breakdown_value: breakdown.cloned(),
        })
        .collect()
}

fn period_name(period: Interval) -> &'static str {
    match period {
        Interval::Minute => "Minute",
        Interval::Hour => "Hour",
        Interval::Day => "Day",
        Interval::Week => "Week",
        Interval::Month => "Month",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn retention_has_the_published_members() {
        let day = 86_400_000_000;
        let found = retention(Interval::Day, &[0, day, 2 * day], &[vec![3, 1], vec![2]], None);
        let expected = json!([
            { "values": [{ "count": 3, "label": "Day 0" }, { "count": 1, "label": "Day 1" }],
                "label": "Day 0", "date": "1970-01-01T00:00:00Z" },
            { "values": [{ "count": 2, "label": "Day 0" }],
                "label": "Day 1", "date": "1970-01-02T00:00:00Z" },
        ]);
        assert_eq!(serde_json::to_value(&found).unwrap(), expected);
    }
}
