//! The result of the test of an export's destination.

use serde::{Deserialize, Serialize};

/// A step of the test of a destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriedStep {
    /// Name of the step, for users.
    pub name: String,
    /// Result of the step.
    pub outcome: StepOutcome,
}

/// Result of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepOutcome {
    /// The step succeeded.
    Passed,
    /// The step failed. The text has the class of the failure and a sentence.
    Failed(String),
    /// The step did not run because an earlier step failed.
    Skipped,
}
