//! Retention: how many persons come back.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;
use weir_model::errors::FieldError;

use super::breakdown::BreakdownFilter;
use super::common::{SCOPE, SCOPE_REFUSED, Scope, filters, without};
use super::filters::{FilterGroup, NAME_MAX};
use super::input::Fields;
use super::series::event;
use crate::choices::choices;
use crate::time::Interval;

/// Periods by default.
const TOTAL: i64 = 8;
/// Most periods.
const TOTAL_MAX: i64 = 100;
/// Most events that a person must do in a period.
const OCCURRENCES_MAX: i64 = 1000;
/// The event that both entities have by default.
const DEFAULT_EVENT: &str = "$pageview";

choices! {
    /// Which persons begin in a period.
    RetentionKind {
        /// Those who do the target event in it for the first time ever.
        FirstTime = "retention_first_time",
        /// Those who do the target event in it.
        Recurring = "retention_recurring",
    }
}

/// The events with which persons begin or come back.
#[derive(Debug, Clone, PartialEq)]
pub struct RetentionEntity {
    /// The name of the events. `None`: all events.
    pub event: Option<String>,
    /// The name that a user gave.
    pub custom_name: Option<String>,
    /// Which of the events count.
    pub properties: FilterGroup,
}

/// What retention alone has.
#[derive(Debug, Clone, PartialEq)]
pub struct RetentionFilter {
    /// Which persons begin.
    pub kind: RetentionKind,
    /// The length of a period.
    pub period: Interval,
    /// How many periods a person is followed, with the one in which it begins.
    pub total: u32,
    /// With what persons begin.
    pub target: RetentionEntity,
    /// With what persons come back.
    pub returning: RetentionEntity,
    /// Whether a person who comes back later counts for the periods in between.
    pub is_cumulative: bool,
    /// How many returning events in a period count as coming back.
    pub occurrences: u32,
}

/// A question about persons who come back.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RetentionQuery {
    /// Range and filters.
    #[serde(flatten)]
    pub scope: Scope,
    /// Periods and entities.
    #[serde(rename = "retentionFilter")]
    pub filter: RetentionFilter,
    /// Up to three properties.
    #[serde(rename = "breakdownFilter", skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<BreakdownFilter>,
}

impl RetentionQuery {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        let own = ["retentionFilter", "breakdownFilter", "compareFilter"];
        let read: Vec<&str> = SCOPE.iter().chain(&own).copied().collect();
        fields.check(&read, &SCOPE_REFUSED)?;
        without(fields, &["compareFilter"])?;
        let (scope, mut left) = Scope::read(fields)?;
        Ok(Self {
            scope,
            filter: RetentionFilter::read(fields, &mut left)?,
            breakdown: BreakdownFilter::read(fields)?,
        })
    }
}

impl RetentionFilter {
    fn read(fields: &Fields<'_>, left: &mut usize) -> Result<Self, FieldError> {
        const READ: [&str; 9] = [
            "aggregationType",
            "retentionType",
            "totalIntervals",
            "minimumOccurrences",
            "returningEntity",
            "targetEntity",
            "period",
            "cumulative",
            "timeWindowMode",
        ];
        let fields = fields.required("retentionFilter")?.object()?;
        fields.check(&READ, &["aggregationProperty", "retentionCustomBrackets"])?;
        for (name, only) in
            [("aggregationType", "count"), ("timeWindowMode", "strict_calendar_dates")]
        {
            if let Some(input) = fields.get(name)
                && input.value.as_str() != Some(only)
            {
                return Err(input.no_choice());
            }
        }
        let number = |name: &str, default: i64, most: i64| match fields.get(name) {
            Some(input) => input.integer(1, most),
            None => Ok(default),
        };
        let total = number("totalIntervals", TOTAL, TOTAL_MAX)?;
        let occurrences = number("minimumOccurrences", 1, OCCURRENCES_MAX)?;
        Ok(Self {
            kind: fields.choice("retentionType", RetentionKind::Recurring)?,
            period: period(&fields)?,
            total: u32::try_from(total).unwrap_or(1),
            target: RetentionEntity::read(&fields, "targetEntity", left)?,
            returning: RetentionEntity::read(&fields, "returningEntity", left)?,
            is_cumulative: fields.flag("cumulative")?,
            occurrences: u32::try_from(occurrences).unwrap_or(1),
        })
    }
}

/// `Hour` to `Month`, in any case.
fn period(fields: &Fields<'_>) -> Result<Interval, FieldError> {
    let Some(input) = fields.get("period") else { return Ok(Interval::Day) };
    let word = input.value.as_str().unwrap_or_default();
    let found = PERIODS.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    found.map(|(_, interval)| interval).ok_or_else(|| input.no_choice())
}

const PERIODS: [(&str, Interval); 4] = [
    ("Hour", Interval::Hour),
    ("Day", Interval::Day),
    ("Week", Interval::Week),
    ("Month", Interval::Month),
];

impl RetentionEntity {
    fn read(fields: &Fields<'_>, name: &str, left: &mut usize) -> Result<Self, FieldError> {
        let Some(input) = fields.get(name) else {
            return Ok(Self {
                event: Some(DEFAULT_EVENT.to_owned()),
                custom_name: None,
                properties: FilterGroup::default(),
            });
        };
        let fields = input.object()?;
        let read = ["id", "type", "custom_name", "properties"];
        fields.check(&read, &["aggregation_target", "table_name"])?;
        for (name, expected) in [("type", "events"), ("kind", "EventsNode")] {
            if let Some(kind) = fields.get(name)
                && kind.value.as_str() != Some(expected)
            {
                return Err(kind.no_choice());
            }
        }
        if let Some(id) = fields.get("id").filter(|id| !matches!(id.value, Value::String(_))) {
            return Err(id.invalid("Enter the name of an event."));
        }
        Ok(Self {
            event: event(&fields, "id")?,
            custom_name: fields.optional_text("custom_name", NAME_MAX)?,
            properties: filters(&fields, left)?,
        })
    }
}

impl Serialize for RetentionEntity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "events")?;
        map.serialize_entry("id", &self.event)?;
        if let Some(name) = &self.custom_name {
            map.serialize_entry("custom_name", name)?;
        }
        if !self.properties.is_empty() {
            map.serialize_entry("properties", &self.properties)?;
        }
        map.end()
    }
}

impl Serialize for RetentionFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let period = PERIODS.iter().find(|(_, interval)| *interval == self.period);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("retentionType", &self.kind)?;
        map.serialize_entry("period", period.map_or("Day", |(name, _)| *name))?;
        map.serialize_entry("totalIntervals", &self.total)?;
        map.serialize_entry("targetEntity", &self.target)?;
        map.serialize_entry("returningEntity", &self.returning)?;
        if self.is_cumulative {
            map.serialize_entry("cumulative", &true)?;
        }
        if self.occurrences > 1 {
            map.serialize_entry("minimumOccurrences", &self.occurrences)?;
        }
        map.end()
    }
}
