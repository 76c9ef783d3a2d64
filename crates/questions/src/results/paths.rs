//! Results of paths.

use serde::{Deserialize, Serialize};

use super::Amount;
use crate::evaluate::Edge;

/// An edge of paths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathResult {
    /// The number and the name of the first step, such as `1_/home`.
    pub source: String,
    /// Those of the second step.
    pub target: String,
    /// How often persons went from one to the other.
    pub value: u64,
    /// The average time in between, in milliseconds.
    pub average_conversion_time: Amount,
}

impl PathResult {
    /// From an edge and the names of its steps.
    pub fn new(edge: &Edge, source: &str, target: &str) -> Self {
        Self {
            source: path_key(edge.step, source),
            target: path_key(edge.step + 1, target),
            value: edge.count,
            average_conversion_time: Amount::new(edge.average_millis()),
        }
    }
}

/// The number and the name of a step.
pub fn path_key(step: usize, name: &str) -> String {
    format!("{step}_{name}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn edges_have_the_published_members() {
        let edge = Edge { step: 1, source: 7, target: 8, count: 2, micros: 3_000_000 };
        let expected = json!({ "source": "1_/home", "target": "2_/pay", "value": 2,
            "average_conversion_time": 1500 });
        let result = PathResult::new(&edge, "/home", "/pay");
        assert_eq!(serde_json::to_value(&result).unwrap(), expected);
    }
}
