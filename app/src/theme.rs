//! The theme a person chose: as the system, light, or dark.

use serde::{Deserialize, Serialize};

/// Name of the cookie that keeps the choice, so that the first page is right.
pub const COOKIE: &str = "theme";

/// A theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Theme {
    /// What the system says.
    #[default]
    System,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

impl Theme {
    /// All themes, in the order in which they are offered.
    pub const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    /// The word in cookies, forms and the page.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The word for people.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::System => "Same as the system",
            Self::Light => "Light",
            Self::Dark => "Dark",
        }
    }

    /// The theme of a word; anything unknown is the system's.
    #[must_use]
    pub fn from_word(word: &str) -> Self {
        Self::ALL.into_iter().find(|theme| theme.word() == word).unwrap_or_default()
    }
}
