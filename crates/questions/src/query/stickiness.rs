//! Stickiness: in how many intervals persons are active.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use weir_model::errors::FieldError;

use super::common::{CompareFilter, SCOPE, SCOPE_REFUSED, Scope, interval, without};
use super::input::Fields;
use super::series::{EventsNode, SERIES_MAX, series};
use crate::choices::choices;
use crate::time::Interval;

/// The largest number of events in a criterion.
const EVENTS_MAX: i64 = 1_000_000;
const NON_CUMULATIVE: &str = "non_cumulative";
const CUMULATIVE: &str = "cumulative";

choices! {
    /// How the number of events of an interval is compared.
    StickinessOperator {
        /// At least this many.
        GreaterOrEqual = "gte",
        /// At most this many.
        LessOrEqual = "lte",
        /// Exactly this many.
        Exact = "exact",
    }
}

/// How many events in an interval make a person active in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StickinessCriteria {
    /// How the number is compared.
    pub operator: StickinessOperator,
    /// With what.
    pub value: u32,
}

/// A person is active in an interval with at least one event.
impl Default for StickinessCriteria {
    fn default() -> Self {
        Self { operator: StickinessOperator::GreaterOrEqual, value: 1 }
    }
}

impl StickinessCriteria {
    /// Whether a person with this many events in an interval is active in it. A person
    /// without events is not.
    pub fn is_satisfied(self, events: u32) -> bool {
        events > 0
            && match self.operator {
                StickinessOperator::GreaterOrEqual => events >= self.value,
                StickinessOperator::LessOrEqual => events <= self.value,
                StickinessOperator::Exact => events == self.value,
            }
    }
}

/// A question about regular activity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StickinessQuery {
    /// Range and filters.
    #[serde(flatten)]
    pub scope: Scope,
    /// The length of an interval.
    pub interval: Interval,
    /// The series: 1 to 26. Their math says whether persons or groups are counted.
    pub series: Vec<EventsNode>,
    /// When a person is active, and whether more intervals count for fewer.
    #[serde(flatten)]
    pub filter: StickinessFilter,
    /// Another range.
    #[serde(rename = "compareFilter", skip_serializing_if = "Option::is_none")]
    pub compare: Option<CompareFilter>,
}

/// What stickiness alone has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StickinessFilter {
    /// When a person is active in an interval.
    pub criteria: StickinessCriteria,
    /// Whether a person with more intervals also counts for fewer.
    pub is_cumulative: bool,
}

impl StickinessQuery {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        let own = ["interval", "series", "stickinessFilter", "compareFilter", "breakdownFilter"];
        let read: Vec<&str> = SCOPE.iter().chain(&own).copied().collect();
        let refused: Vec<&str> = SCOPE_REFUSED.iter().chain(&["intervalCount"]).copied().collect();
        fields.check(&read, &refused)?;
        without(fields, &["breakdownFilter"])?;
        let (scope, mut left) = Scope::read(fields)?;
        Ok(Self {
            scope,
            interval: interval(fields)?,
            series: series(fields, 1, SERIES_MAX, &mut left)?,
            filter: StickinessFilter::read(fields)?,
            compare: CompareFilter::read(fields)?,
        })
    }
}

impl StickinessFilter {
    fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        let Some(input) = fields.get("stickinessFilter") else { return Ok(Self::default()) };
        let fields = input.object()?;
        fields.check(&["stickinessCriteria", "computedAs", "display"], &[])?;
        let criteria = match fields.get("stickinessCriteria") {
            None => StickinessCriteria::default(),
            Some(input) => {
                let fields = input.object()?;
                fields.check(&["operator", "value"], &[])?;
                let value = fields.required("value")?.integer(0, EVENTS_MAX)?;
                StickinessCriteria {
                    operator: fields.required("operator")?.choice()?,
                    value: u32::try_from(value).unwrap_or_default(),
                }
            }
        };
        let is_cumulative = match fields.get("computedAs") {
            None => false,
            Some(input) => match input.value.as_str() {
                Some(NON_CUMULATIVE) => false,
                Some(CUMULATIVE) => true,
                _ => return Err(input.no_choice()),
            },
        };
        Ok(Self { criteria, is_cumulative })
    }
}

impl Serialize for StickinessFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let computed = if self.is_cumulative { CUMULATIVE } else { NON_CUMULATIVE };
        let inner = WrittenFilter { criteria: self.criteria, computed };
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("stickinessFilter", &inner)?;
        map.end()
    }
}

#[derive(Serialize)]
struct WrittenFilter {
    #[serde(rename = "stickinessCriteria")]
    criteria: StickinessCriteria,
    #[serde(rename = "computedAs")]
    computed: &'static str,
}
