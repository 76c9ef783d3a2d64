//! The theme of a user: system, light, or dark.

use serde::{Deserialize, Serialize};

/// Name of the cookie with the theme. It makes the first page after the sign-in correct.
pub const COOKIE: &str = "theme";

/// A theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Theme {
    /// The theme of the operating system.
    #[default]
    System,
    /// Dark text on a light background.
    Light,
    /// Light text on a dark background.
    Dark,
}

impl Theme {
    /// All themes, in the order of the choice.
    pub const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    /// The value in cookies, forms and the page.
    pub const fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The label for users.
    pub const fn label(self) -> &'static str {
        match self {
            Self::System => "Same as the system",
            Self::Light => "Light",
            Self::Dark => "Dark",
        }
    }

    /// Parses a value. Unknown values are [`Theme::System`].
    pub fn from_word(word: &str) -> Self {
        Self::ALL.into_iter().find(|theme| theme.word() == word).unwrap_or_default()
    }
}
