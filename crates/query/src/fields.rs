//! The fields of an event that a query can name.

/// A field of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// The id of the project.
    TeamId,
    /// The event time.
    Timestamp,
    /// The event name.
    Event,
    /// The distinct id of the user.
    DistinctId,
    /// The uuid of the event.
    Uuid,
    /// The time of acceptance.
    CreatedAt,
    /// The chain of clicked elements.
    ElementsChain,
    /// The id of the person whom the event belongs to.
    PersonId,
    /// The properties of the event.
    Properties,
    /// The properties of the person.
    PersonProperties,
}

impl Field {
    /// All fields.
    pub const ALL: [Self; 10] = [
        Self::TeamId,
        Self::Timestamp,
        Self::Event,
        Self::DistinctId,
        Self::Uuid,
        Self::CreatedAt,
        Self::ElementsChain,
        Self::PersonId,
        Self::Properties,
        Self::PersonProperties,
    ];

    /// The name in the text of a query.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TeamId => "team_id",
            Self::Timestamp => "timestamp",
            Self::Event => "event",
            Self::DistinctId => "distinct_id",
            Self::Uuid => "uuid",
            Self::CreatedAt => "created_at",
            Self::ElementsChain => "elements_chain",
            Self::PersonId => "person_id",
            Self::Properties => "properties",
            Self::PersonProperties => "person_properties",
        }
    }

    /// The field of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }

    /// Whether it has properties that can be named individually.
    pub const fn has_properties(self) -> bool {
        matches!(self, Self::Properties | Self::PersonProperties)
    }
}
