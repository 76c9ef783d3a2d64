//! How checks of alerts end, for the operator.

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckOutcome {
    /// A number is beyond a bound.
    Firing,
    /// The numbers are within the bounds.
    NotFiring,
    /// There is no number.
    Failed,
}

impl CheckOutcome {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Firing, Self::NotFiring, Self::Failed];

    /// The value of the metric label.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Firing => "firing",
            Self::NotFiring => "not_firing",
            Self::Failed => "failed",
        }
    }
}
