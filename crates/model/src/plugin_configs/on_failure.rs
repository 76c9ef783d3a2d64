//! What becomes of an event for which a transformation cannot be run.

use serde::{Deserialize, Serialize};

/// What becomes of an event for which a transformation cannot be run: it fails on the
/// event, has used up the time that it may take, or cannot be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// It is stored without the step, with a warning.
    StoreUnchanged,
    /// It waits a short time for the step, and is dropped with a reason if that does not
    /// help.
    HoldThenDrop,
}

impl OnFailure {
    /// The words on the wire.
    pub const WORDS: &'static [&'static str] = &["store_unchanged", "hold_then_drop"];

    /// The word on the wire.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::StoreUnchanged => "store_unchanged",
            Self::HoldThenDrop => "hold_then_drop",
        }
    }

    /// The policy of this word.
    #[must_use]
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
