//! Preferences of a user for pages: time zone, number format, table rows, keyboard shortcuts.
//!
//! What belongs here: the choices and their words. What does not: the theme, which is a
//! field of the user (`users`), and applying preferences in pages (the app).

use serde::{Deserialize, Serialize};

/// The preferences of one user, or the defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preferences {
    /// The zone in which times are shown.
    pub zone: Zone,
    /// The number format.
    pub numbers: NumberFormat,
    /// The height of table rows.
    pub rows: TableRows,
    /// Whether single keys are shortcuts.
    pub shortcuts: bool,
}

impl Default for Preferences {
    fn default() -> Self {
        Self {
            zone: Zone::default(),
            numbers: NumberFormat::default(),
            rows: TableRows::default(),
            shortcuts: true,
        }
    }
}

/// The height of table rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum TableRows {
    /// With room to read.
    #[default]
    Comfortable,
    /// More rows in a window.
    Compact,
}

impl TableRows {
    /// All heights, in display order.
    pub const ALL: [Self; 2] = [Self::Comfortable, Self::Compact];

    /// The word in forms, in the store and in the page.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Comfortable => "comfortable",
            Self::Compact => "compact",
        }
    }

    /// The height of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rows| rows.word() == word)
    }
}

/// A time zone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Zone {
    /// The zone of the browser.
    #[default]
    Browser,
    /// The zone with this IANA name; `UTC` too.
    Named(String),
}

impl Zone {
    /// The word for the zone of the browser.
    pub const BROWSER: &'static str = "browser";

    /// The word in forms and in the store.
    pub fn word(&self) -> &str {
        match self {
            Self::Browser => Self::BROWSER,
            Self::Named(name) => name,
        }
    }

    /// The zone of a word. It does not check whether the name is known.
    pub fn from_word(word: &str) -> Self {
        match word {
            "" | Self::BROWSER => Self::Browser,
            name => Self::Named(name.to_owned()),
        }
    }

    /// Its name, unless it is the zone of the browser.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Browser => None,
            Self::Named(name) => Some(name),
        }
    }
}

/// A number format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum NumberFormat {
    /// 1,234.5
    #[default]
    Comma,
    /// 1.234,5
    Point,
    /// 1 234.5
    Space,
}

impl NumberFormat {
    /// All formats, in display order.
    pub const ALL: [Self; 3] = [Self::Comma, Self::Point, Self::Space];

    /// The word in forms and in the store.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Comma => "comma",
            Self::Point => "point",
            Self::Space => "space",
        }
    }

    /// The format of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.word() == word)
    }

    /// A number in this format.
    pub const fn example(self) -> &'static str {
        match self {
            Self::Comma => "1,234.5",
            Self::Point => "1.234,5",
            Self::Space => "1\u{a0}234.5",
        }
    }

    /// The separator between groups of three digits.
    pub const fn group(self) -> char {
        match self {
            Self::Comma => ',',
            Self::Point => '.',
            // A non-breaking space, so that a number is not split at the end of a line.
            Self::Space => '\u{a0}',
        }
    }

    /// The decimal separator.
    pub const fn decimal(self) -> char {
        match self {
            Self::Comma | Self::Space => '.',
            Self::Point => ',',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NumberFormat, TableRows, Zone};

    #[test]
    fn words_lead_back() {
        for form in NumberFormat::ALL {
            assert_eq!(NumberFormat::from_word(form.word()), Some(form));
            assert!(
                form.example().contains(form.group()) && form.example().contains(form.decimal())
            );
        }
        assert_eq!(NumberFormat::from_word("x"), None);
        for rows in TableRows::ALL {
            assert_eq!(TableRows::from_word(rows.word()), Some(rows));
        }
        assert_eq!(TableRows::from_word("x"), None);
        for zone in [Zone::Browser, Zone::from_word("UTC"), Zone::from_word("Europe/Berlin")] {
            assert_eq!(Zone::from_word(zone.word()), zone);
        }
        assert_eq!((Zone::from_word(""), Zone::Browser.name()), (Zone::Browser, None));
    }
}
