//! What a batch export exports (EXP-14).

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a batch export exports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum ExportModel {
    /// Events. Each event is exported once.
    #[default]
    Events,
    /// Persons: a row for each distinct id, again each time the person has new events.
    Persons,
}

impl ExportModel {
    /// All values, in the order of forms.
    pub const ALL: [Self; 2] = [Self::Events, Self::Persons];

    /// The words on the wire, in the same order.
    pub const WORDS: [&'static str; 2] = ["events", "persons"];

    /// The word on the wire. It is also used in file names.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Persons => "persons",
        }
    }

    /// The model of this word.
    pub fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.text() == text)
    }
}

impl fmt::Display for ExportModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::ExportModel;

    #[test]
    fn words_lead_back() {
        for (model, word) in ExportModel::ALL.into_iter().zip(ExportModel::WORDS) {
            assert_eq!((model.text(), ExportModel::of(word)), (word, Some(model)));
        }
        assert_eq!(ExportModel::of("Persons"), None);
    }
}
