//! Series: which events count, and what is computed of them.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use weir_model::errors::FieldError;

use super::common::filters;
use super::filters::{FilterGroup, NAME_MAX, group_type};
use super::input::{Fields, Input};
use crate::choices::choices;

/// Most series of a question: formulas name them by letters.
pub const SERIES_MAX: usize = 26;

choices! {
    /// What is computed of the numbers in a property.
    PropertyMath {
        /// Their sum.
        Sum = "sum",
        /// Their average.
        Average = "avg",
        /// The smallest one.
        Minimum = "min",
        /// The largest one.
        Maximum = "max",
        /// The median.
        Median = "median",
        /// The 75th percentile.
        P75 = "p75",
        /// The 90th percentile.
        P90 = "p90",
        /// The 95th percentile.
        P95 = "p95",
        /// The 99th percentile.
        P99 = "p99",
    }
}

impl PropertyMath {
    /// The percentile from 0 to 1, if it is one (QRY-21).
    pub const fn percentile(self) -> Option<f64> {
        match self {
            Self::Median => Some(0.5),
            Self::P75 => Some(0.75),
            Self::P90 => Some(0.9),
            Self::P95 => Some(0.95),
            Self::P99 => Some(0.99),
            Self::Sum | Self::Average | Self::Minimum | Self::Maximum => None,
        }
    }
}

/// What is computed of the events of a series.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Math {
    /// Their number.
    #[default]
    Total,
    /// The number of different persons.
    UniquePersons,
    /// The number of different values of `$session_id`.
    UniqueSessions,
    /// The number of different groups of a type.
    UniqueGroups(u8),
    /// Of the numbers in a property of the event.
    Property(PropertyMath, String),
}

/// Members of a series that its math has.
const MATH: [&str; 4] = ["math", "math_property", "math_property_type", "math_group_type_index"];
/// Members that would change the numbers of a series.
const MATH_REFUSED: [&str; 3] = ["math_hogql", "math_multiplier", "math_property_revenue_currency"];
/// Where clients say that a property of the event is.
const EVENT_PROPERTIES: [&str; 2] = ["event_properties", "numerical_event_properties"];

impl Math {
    /// Its word in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::UniquePersons => "dau",
            Self::UniqueSessions => "unique_session",
            Self::UniqueGroups(_) => "unique_group",
            Self::Property(math, _) => math.word(),
        }
    }

    /// The property that it is computed of.
    pub fn property(&self) -> Option<&str> {
        match self {
            Self::Property(_, property) => Some(property),
            _ => None,
        }
    }

    /// The group type that it counts.
    pub fn group_type(&self) -> Option<u8> {
        match self {
            Self::UniqueGroups(at) => Some(*at),
            _ => None,
        }
    }

    fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        let Some(input) = fields.get("math") else { return Ok(Self::Total) };
        Ok(match input.value.as_str() {
            Some("total") => Self::Total,
            Some("dau") => Self::UniquePersons,
            Some("unique_session") => Self::UniqueSessions,
            Some("unique_group") => {
                let missing = || {
                    let detail = "This field is required.";
                    fields.fault("math_group_type_index", "required", detail)
                };
                let at = group_type(fields, "math_group_type_index")?;
                Self::UniqueGroups(at.ok_or_else(missing)?)
            }
            _ => {
                let math = input.choice()?;
                let property = fields.required("math_property")?.name(NAME_MAX)?;
                if let Some(kind) = fields.get("math_property_type")
                    && kind.value.as_str().is_none_or(|kind| !EVENT_PROPERTIES.contains(&kind))
                {
                    return Err(kind.no_choice());
                }
                Self::Property(math, property)
            }
        })
    }
}

/// A series: events of a name that satisfy filters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EventsNode {
    /// The name of the events. `None`: all events.
    pub event: Option<String>,
    /// The name that a client shows.
    pub name: Option<String>,
    /// The name that a user gave.
    pub custom_name: Option<String>,
    /// What is computed.
    pub math: Math,
    /// Which of the events count.
    pub properties: FilterGroup,
}

impl EventsNode {
    /// What results call the series: the name of its events.
    pub fn label(&self) -> &str {
        self.event.as_deref().unwrap_or("All events")
    }

    pub(super) fn read(
        input: &Input<'_>,
        more: &[&'static str],
        left: &mut usize,
    ) -> Result<Self, FieldError> {
        let fields = input.object()?;
        if let Some(kind) = fields.get("kind")
            && kind.value.as_str() != Some("EventsNode")
        {
            return Err(kind.no_choice());
        }
        let own = ["event", "name", "custom_name", "properties", "fixedProperties"];
        let read: Vec<&str> = own.iter().chain(&MATH).chain(more).copied().collect();
        let refused: Vec<&str> =
            ["optionalInFunnel", "orderBy", "limit"].iter().chain(&MATH_REFUSED).copied().collect();
        fields.check(&read, &refused)?;
        Ok(Self {
            event: event(&fields, "event")?,
            name: fields.optional_text("name", NAME_MAX)?,
            custom_name: fields.optional_text("custom_name", NAME_MAX)?,
            math: Math::read(&fields)?,
            properties: filters(&fields, left)?,
        })
    }

    /// The members of its JSON.
    pub(super) fn write<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("kind", "EventsNode")?;
        map.serialize_entry("event", &self.event)?;
        if let Some(name) = &self.name {
            map.serialize_entry("name", name)?;
        }
        if let Some(name) = &self.custom_name {
            map.serialize_entry("custom_name", name)?;
        }
        map.serialize_entry("math", self.math.word())?;
        if let Some(property) = self.math.property() {
            map.serialize_entry("math_property", property)?;
        }
        if let Some(at) = self.math.group_type() {
            map.serialize_entry("math_group_type_index", &at)?;
        }
        if !self.properties.is_empty() {
            map.serialize_entry("properties", &self.properties)?;
        }
        Ok(())
    }
}

impl Serialize for EventsNode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.write(&mut map)?;
        map.end()
    }
}

/// The name of an event. `None`: all events.
pub(super) fn event(fields: &Fields<'_>, name: &str) -> Result<Option<String>, FieldError> {
    let text = fields.optional_text(name, NAME_MAX)?;
    Ok(text.filter(|text| !text.is_empty()))
}

/// The series of a question: `least` to `most` of them.
pub(super) fn series(
    fields: &Fields<'_>,
    least: usize,
    most: usize,
    left: &mut usize,
) -> Result<Vec<EventsNode>, FieldError> {
    let input = fields.required("series")?;
    let items = input.list(most)?;
    if items.len() < least {
        let detail = format!("Ensure this field has at least {least} elements.");
        return Err(input.fault("min_length", detail));
    }
    items.iter().map(|item| EventsNode::read(item, &[], left)).collect()
}
