//! Names of events and properties in a project, for lists of choices.

use std::fmt;
use std::str::FromStr;

use crate::time::Timestamp;

/// Maximum event names, and maximum property names, that are stored per project. Senders
/// choose names, so their number must be bounded.
pub const NAMES_MAX: usize = 10_000;

/// An event name in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDefinition {
    /// The event name.
    pub name: String,
    /// When it was first seen.
    pub first_at: Timestamp,
    /// When it was last seen, to the hour.
    pub last_at: Timestamp,
}

/// What a list of event names is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EventColumn {
    /// The name.
    #[default]
    Name,
    /// The number of events of the last 30 days.
    Events,
    /// When it was first seen.
    FirstSeen,
    /// When it was last seen.
    LastSeen,
}

impl EventColumn {
    /// All columns.
    pub const ALL: [Self; 4] = [Self::Name, Self::Events, Self::FirstSeen, Self::LastSeen];

    /// The word in addresses.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Events => "events",
            Self::FirstSeen => "first_seen",
            Self::LastSeen => "last_seen",
        }
    }
}

/// The order of a list of event names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventOrder {
    /// What it is sorted by.
    pub by: EventColumn,
    /// Whether the largest comes first.
    pub is_descending: bool,
}

impl EventOrder {
    /// The order with this name: the word of a column, with `-` before it if the largest
    /// comes first. The default order for other texts.
    pub fn named(text: &str) -> Self {
        let (word, is_descending) = match text.strip_prefix('-') {
            Some(word) => (word, true),
            None => (text, false),
        };
        let by = EventColumn::ALL.into_iter().find(|column| column.text() == word);
        by.map(|by| Self { by, is_descending }).unwrap_or_default()
    }
}

/// A property name in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PropertyDefinition {
    /// What kind of object has the property.
    pub owner: PropertyOwner,
    /// The property name.
    pub name: String,
    /// The kind of the first value.
    pub kind: PropertyKind,
    /// When it was first seen.
    pub first_at: Timestamp,
}

/// What kind of object has a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PropertyOwner {
    /// Events.
    Event,
    /// Persons.
    Person,
    /// Groups of all types.
    Group,
}

impl PropertyOwner {
    /// The word in records and answers.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Person => "person",
            Self::Group => "group",
        }
    }
}

impl FromStr for PropertyOwner {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Event, Self::Person, Self::Group]
            .into_iter()
            .find(|owner| owner.text() == text)
            .ok_or_else(|| format!("unknown owner of a property `{text}`"))
    }
}

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PropertyKind {
    /// A text.
    Text,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A text that is a date or a time.
    Time,
    /// A list.
    List,
    /// An object.
    Object,
}

impl PropertyKind {
    const ALL: [Self; 6] =
        [Self::Text, Self::Number, Self::Boolean, Self::Time, Self::List, Self::Object];

    /// The word in records and answers.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Text => "String",
            Self::Number => "Numeric",
            Self::Boolean => "Boolean",
            Self::Time => "DateTime",
            Self::List => "Array",
            Self::Object => "Object",
        }
    }

    /// The kind of a JSON value from its text; `None` for `null`.
    pub fn of(json: &str) -> Option<Self> {
        match json.as_bytes().first()? {
            b'"' => {
                Some(if looks_like_time(json.trim_matches('"')) { Self::Time } else { Self::Text })
            }
            b't' | b'f' => Some(Self::Boolean),
            b'[' => Some(Self::List),
            b'{' => Some(Self::Object),
            b'n' => None,
            _ => Some(Self::Number),
        }
    }
}

/// Whether a text begins with a day such as `2026-06-01` and has nothing but a
/// time behind it.
fn looks_like_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_day = bytes.len() >= 10
        && bytes.iter().take(10).enumerate().all(|(place, byte)| match place {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    is_day
        && matches!(bytes.get(10), None | Some(b'T' | b' '))
        && bytes.iter().skip(11).all(|byte| byte.is_ascii_digit() || b":.,+-Z".contains(byte))
}

impl fmt::Display for PropertyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl FromStr for PropertyKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.text() == text)
            .ok_or_else(|| format!("unknown kind of property `{text}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::{EventColumn, EventOrder, PropertyKind};

    #[test]
    fn an_order_is_read_from_its_name() {
        let order = |by, is_descending| EventOrder { by, is_descending };
        for (text, expected) in [
            ("", EventOrder::default()),
            ("name", order(EventColumn::Name, false)),
            ("-events", order(EventColumn::Events, true)),
            ("last_seen", order(EventColumn::LastSeen, false)),
            ("--events", EventOrder::default()),
            ("-nothing", EventOrder::default()),
        ] {
            assert_eq!(EventOrder::named(text), expected, "{text}");
        }
    }

    #[test]
    fn kinds_are_read_from_the_text_of_a_value() {
        for (json, kind) in [
            (r#""text""#, Some(PropertyKind::Text)),
            (r#""2026-06-01""#, Some(PropertyKind::Time)),
            (r#""2026-06-01T10:00:00.123+02:00""#, Some(PropertyKind::Time)),
            (r#""2026-06-01 10:00""#, Some(PropertyKind::Time)),
            (r#""2026-06-01-draft""#, Some(PropertyKind::Text)),
            (r#""2026-06-01 at noon""#, Some(PropertyKind::Text)),
            ("-1.5e3", Some(PropertyKind::Number)),
            ("true", Some(PropertyKind::Boolean)),
            ("[1]", Some(PropertyKind::List)),
            ("{}", Some(PropertyKind::Object)),
            ("null", None),
        ] {
            assert_eq!(PropertyKind::of(json), kind, "{json}");
        }
    }
}
