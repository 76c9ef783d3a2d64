//! How subscriptions that are due end, for the operator.

/// How a subscription that was due ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeliveryOutcome {
    /// Mails with all answers wait to be sent.
    Sent,
    /// Mails without some of the answers wait to be sent.
    Incomplete,
    /// There was nothing to send, or no recipient.
    Skipped,
}

impl DeliveryOutcome {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sent, Self::Incomplete, Self::Skipped];

    /// The value of the metric label.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Incomplete => "incomplete",
            Self::Skipped => "skipped",
        }
    }
}
