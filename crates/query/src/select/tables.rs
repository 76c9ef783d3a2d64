//! The tables that a question can read, and their columns.

use crate::value::Kind;

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Table {
    /// Events. Their columns are [`Field`](crate::Field)s.
    Events,
    /// Persons.
    Persons,
    /// Groups.
    Groups,
    /// Sessions, derived from events.
    Sessions,
}

impl Table {
    /// All tables.
    pub const ALL: [Self; 4] = [Self::Events, Self::Persons, Self::Groups, Self::Sessions];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Persons => "persons",
            Self::Groups => "groups",
            Self::Sessions => "sessions",
        }
    }

    /// The table of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Its columns, as [`Expression::Column`](crate::Expression::Column) counts them. Events
    /// have none: they have fields.
    pub const fn columns(self) -> &'static [(&'static str, Kind)] {
        match self {
            Self::Events => &[],
            Self::Persons => &[
                ("id", Kind::Uuid),
                ("created_at", Kind::Timestamp),
                ("properties", Kind::Json),
                ("is_identified", Kind::Boolean),
                ("distinct_ids", Kind::Json),
            ],
            Self::Groups => &[
                ("index", Kind::Integer),
                ("key", Kind::Text),
                ("properties", Kind::Json),
                ("created_at", Kind::Timestamp),
            ],
            Self::Sessions => &[
                ("session_id", Kind::Text),
                ("person_id", Kind::Uuid),
                ("start_timestamp", Kind::Timestamp),
                ("end_timestamp", Kind::Timestamp),
                ("duration", Kind::Float),
                ("event_count", Kind::Integer),
                ("pageview_count", Kind::Integer),
                ("entry_current_url", Kind::Text),
                ("exit_current_url", Kind::Text),
                ("entry_referrer", Kind::Text),
                ("entry_utm_source", Kind::Text),
                ("entry_utm_medium", Kind::Text),
                ("entry_utm_campaign", Kind::Text),
                ("entry_utm_term", Kind::Text),
                ("entry_utm_content", Kind::Text),
                ("is_bounce", Kind::Boolean),
            ],
        }
    }
}
