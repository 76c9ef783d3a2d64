//! What happens to an event if a transformation cannot run.

use serde::{Deserialize, Serialize};

/// What happens to an event if a transformation cannot run: it fails for the event, has
/// used up its allowance, or cannot be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// It is stored without the step, with a warning.
    StoreUnchanged,
    /// It waits a short time for the step. If the step still cannot run, it is dropped
    /// with a reason.
    HoldThenDrop,
}

impl OnFailure {
    /// The words on the wire.
    pub const WORDS: &'static [&'static str] = &["store_unchanged", "hold_then_drop"];

    /// The word on the wire.
    pub const fn text(self) -> &'static str {
        match self {
            Self::StoreUnchanged => "store_unchanged",
            Self::HoldThenDrop => "hold_then_drop",
        }
    }

    /// The policy of this word.
    pub fn of(text: &str) -> Option<Self> {
        [Self::StoreUnchanged, Self::HoldThenDrop].into_iter().find(|one| one.text() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::OnFailure;

    #[test]
    fn words_read_back() {
        for word in OnFailure::WORDS {
            let policy = OnFailure::of(word).unwrap();
            assert_eq!(serde_json::to_value(policy).unwrap(), *word);
        }
        assert_eq!(OnFailure::of("drop"), None);
    }
}
