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
    /// The id of the session that the event belongs to. Only a question can name it.
    SessionId,
    /// The properties of the group of this type, below [`GROUP_TYPES`]. Only a question can
    /// name them.
    GroupProperties(u8),
}

/// The number of types of groups.
pub const GROUP_TYPES: u8 = 5;

impl Field {
    /// The fields that the query of an export can name.
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
            Self::SessionId => "session.id",
            Self::GroupProperties(0) => "group_0.properties",
            Self::GroupProperties(1) => "group_1.properties",
            Self::GroupProperties(2) => "group_2.properties",
            Self::GroupProperties(3) => "group_3.properties",
            Self::GroupProperties(_) => "group_4.properties",
        }
    }

    /// The field of this name, if the query of an export can name it.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }

    /// Whether it has properties that can be named individually.
    pub const fn has_properties(self) -> bool {
        matches!(self, Self::Properties | Self::PersonProperties | Self::GroupProperties(_))
    }
}
