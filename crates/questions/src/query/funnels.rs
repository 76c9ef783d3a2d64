//! Funnels: how many persons do one step after another.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use weir_model::errors::FieldError;

use super::breakdown::BreakdownFilter;
use super::common::{SCOPE, SCOPE_REFUSED, Scope, interval, without};
use super::input::{Fields, Input};
use super::series::{EventsNode, SERIES_MAX, series};
use crate::choices::choices;
use crate::time::Interval;

/// Fewest steps of a funnel.
const STEPS_MIN: usize = 2;
/// Most exclusions of a funnel.
const EXCLUSIONS_MAX: usize = 10;
/// The default window: 14 days.
const WINDOW: u32 = 14;
/// The largest number of units in a window.
const WINDOW_MAX: i64 = 100_000;
/// Most bins of a histogram.
const BINS_MAX: i64 = 90;
const SECOND: i64 = 1_000_000;

choices! {
    /// In which order steps are done.
    FunnelOrder {
        /// In their order, with other events in between.
        Ordered = "ordered",
        /// In their order, with no other event in between.
        Strict = "strict",
        /// In any order.
        Unordered = "unordered",
    }
}

choices! {
    /// What the result of a funnel is.
    FunnelVisualization {
        /// Persons for each step.
        Steps = "steps",
        /// How long persons take.
        TimeToConvert = "time_to_convert",
        /// The rate of conversion over time.
        Trends = "trends",
    }
}

choices! {
    /// The unit of a window.
    FunnelWindowUnit {
        /// A second.
        Second = "second",
        /// A minute.
        Minute = "minute",
        /// An hour.
        Hour = "hour",
        /// 24 hours.
        Day = "day",
        /// Seven times 24 hours.
        Week = "week",
        /// 31 times 24 hours.
        Month = "month",
    }
}

choices! {
    /// Whose value of a breakdown counts for a person.
    AttributionKind {
        /// The first one that a step of the person has.
        FirstTouch = "first_touch",
        /// The last one that a step of the person has.
        LastTouch = "last_touch",
        /// Each one, with the steps that have it.
        AllEvents = "all_events",
        /// Each one of a step.
        Step = "step",
    }
}

/// Whose value of a breakdown counts for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribution {
    /// Which step.
    pub kind: AttributionKind,
    /// The number of the step from 0, for [`AttributionKind::Step`].
    pub step: usize,
}

/// How long a person may take for all steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunnelWindow {
    /// The number of units.
    pub length: u32,
    /// The unit.
    pub unit: FunnelWindowUnit,
}

impl FunnelWindow {
    /// The window in microseconds.
    pub const fn micros(self) -> i64 {
        let seconds = match self.unit {
            FunnelWindowUnit::Second => 1,
            FunnelWindowUnit::Minute => 60,
            FunnelWindowUnit::Hour => 3_600,
            FunnelWindowUnit::Day => 86_400,
            FunnelWindowUnit::Week => 604_800,
            FunnelWindowUnit::Month => 31 * 86_400,
        };
        // At most 2.7e11 seconds.
        seconds * self.length as i64 * SECOND
    }
}

/// Events that exclude a person who does them between two steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Exclusion {
    /// The events.
    pub event: EventsNode,
    /// After this step, from 0.
    pub from_step: usize,
    /// Before this step, from 0.
    pub to_step: usize,
}

/// What funnels alone have.
#[derive(Debug, Clone, PartialEq)]
pub struct FunnelsFilter {
    /// The order of the steps.
    pub order: FunnelOrder,
    /// The result.
    pub visualization: FunnelVisualization,
    /// The window.
    pub window: FunnelWindow,
    /// The exclusions.
    pub exclusions: Vec<Exclusion>,
    /// The attribution of breakdowns.
    pub attribution: Attribution,
    /// The first step that counts for times and rates, from 0.
    pub from_step: usize,
    /// The last step that counts for times and rates, from 0.
    pub to_step: usize,
    /// The number of bins of the histogram. `None`: by the number of persons.
    pub bins: Option<u32>,
}

/// A question about steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunnelsQuery {
    /// Range and filters.
    #[serde(flatten)]
    pub scope: Scope,
    /// The length of a bucket, for rates over time.
    pub interval: Interval,
    /// The steps: 2 to 26.
    pub series: Vec<EventsNode>,
    /// Order, window and exclusions.
    #[serde(rename = "funnelsFilter")]
    pub filter: FunnelsFilter,
    /// Up to three properties.
    #[serde(rename = "breakdownFilter", skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<BreakdownFilter>,
}

impl FunnelsQuery {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        let own = ["interval", "series", "funnelsFilter", "breakdownFilter", "compareFilter"];
        let read: Vec<&str> = SCOPE.iter().chain(&own).copied().collect();
        fields.check(&read, &SCOPE_REFUSED)?;
        without(fields, &["compareFilter"])?;
        let (scope, mut left) = Scope::read(fields)?;
        let series = series(fields, STEPS_MIN, SERIES_MAX, &mut left)?;
        Ok(Self {
            scope,
            interval: interval(fields)?,
            filter: FunnelsFilter::read(fields, series.len(), &mut left)?,
            series,
            breakdown: BreakdownFilter::read(fields)?,
        })
    }
}

impl FunnelsFilter {
    fn by_default(steps: usize) -> Self {
        Self {
            order: FunnelOrder::Ordered,
            visualization: FunnelVisualization::Steps,
            window: FunnelWindow { length: WINDOW, unit: FunnelWindowUnit::Day },
            exclusions: Vec::new(),
            attribution: Attribution { kind: AttributionKind::FirstTouch, step: 0 },
            from_step: 0,
            to_step: steps - 1,
            bins: None,
        }
    }

    fn read(fields: &Fields<'_>, steps: usize, left: &mut usize) -> Result<Self, FieldError> {
        const READ: [&str; 11] = [
            "exclusions",
            "funnelAggregateByHogQL",
            "binCount",
            "breakdownAttributionType",
            "breakdownAttributionValue",
            "funnelFromStep",
            "funnelToStep",
            "funnelOrderType",
            "funnelVizType",
            "funnelWindowInterval",
            "funnelWindowIntervalUnit",
        ];
        let Some(input) = fields.get("funnelsFilter") else {
            return Ok(Self::by_default(steps));
        };
        let fields = input.object()?;
        fields.check(&READ, &[])?;
        // Clients also send what funnels count anyway.
        if let Some(input) = fields.get("funnelAggregateByHogQL")
            && !matches!(input.value.as_str(), Some("" | "person_id"))
        {
            return Err(input.invalid("Weir does not support this field."));
        }
        let order = fields.choice("funnelOrderType", FunnelOrder::Ordered)?;
        let exclusions = match fields.get("exclusions") {
            Some(input) => input
                .list(EXCLUSIONS_MAX)?
                .iter()
                .map(|item| Exclusion::read(item, order, steps, left))
                .collect::<Result<Vec<_>, _>>()?,
            None => Vec::new(),
        };
        let length = match fields.get("funnelWindowInterval") {
            Some(input) => input.integer(1, WINDOW_MAX)?,
            None => i64::from(WINDOW),
        };
        let visualization = fields.choice("funnelVizType", FunnelVisualization::Steps)?;
        if (order, visualization) == (FunnelOrder::Unordered, FunnelVisualization::Trends) {
            let detail = "Steps in any order have no rate of conversion over time.";
            return Err(fields.fault("funnelVizType", "invalid_input", detail));
        }
        let attribution = Attribution {
            kind: fields.choice("breakdownAttributionType", AttributionKind::FirstTouch)?,
            step: step(&fields, "breakdownAttributionValue", 0, steps - 1, 0)?,
        };
        if (order, attribution.kind) == (FunnelOrder::Unordered, AttributionKind::Step) {
            let detail = "Steps in any order have no value of a step.";
            return Err(fields.fault("breakdownAttributionType", "invalid_input", detail));
        }
        let from_step = step(&fields, "funnelFromStep", 0, steps - 2, 0)?;
        Ok(Self {
            order,
            visualization,
            window: FunnelWindow {
                length: u32::try_from(length).unwrap_or_default(),
                unit: fields.choice("funnelWindowIntervalUnit", FunnelWindowUnit::Day)?,
            },
            exclusions,
            attribution,
            from_step,
            to_step: step(&fields, "funnelToStep", from_step + 1, steps - 1, steps - 1)?,
            bins: match fields.get("binCount") {
                Some(input) => u32::try_from(input.integer(1, BINS_MAX)?).ok(),
                None => None,
            },
        })
    }
}

/// The number of a step within bounds (inclusive).
fn step(
    fields: &Fields<'_>,
    name: &str,
    least: usize,
    most: usize,
    default: usize,
) -> Result<usize, FieldError> {
    let Some(input) = fields.get(name) else { return Ok(default) };
    let bound = |step: usize| i64::try_from(step).unwrap_or(i64::MAX);
    let step = input.integer(bound(least), bound(most))?;
    Ok(usize::try_from(step).unwrap_or_default())
}

impl Exclusion {
    fn read(
        input: &Input<'_>,
        order: FunnelOrder,
        steps: usize,
        left: &mut usize,
    ) -> Result<Self, FieldError> {
        let event = EventsNode::read(input, &["funnelFromStep", "funnelToStep"], left)?;
        let fields = input.object()?;
        let from_step = step(&fields, "funnelFromStep", 0, steps - 2, 0)?;
        let to_step = step(&fields, "funnelToStep", from_step + 1, steps - 1, steps - 1)?;
        if order == FunnelOrder::Unordered && (from_step, to_step) != (0, steps - 1) {
            let detail = "Steps in any order have exclusions between the first and the last alone.";
            return Err(input.invalid(detail));
        }
        Ok(Self { event, from_step, to_step })
    }
}

impl Serialize for Exclusion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.event.write(&mut map)?;
        map.serialize_entry("funnelFromStep", &self.from_step)?;
        map.serialize_entry("funnelToStep", &self.to_step)?;
        map.end()
    }
}

impl Serialize for FunnelsFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("funnelOrderType", &self.order)?;
        map.serialize_entry("funnelVizType", &self.visualization)?;
        map.serialize_entry("funnelWindowInterval", &self.window.length)?;
        map.serialize_entry("funnelWindowIntervalUnit", &self.window.unit)?;
        map.serialize_entry("exclusions", &self.exclusions)?;
        map.serialize_entry("breakdownAttributionType", &self.attribution.kind)?;
        map.serialize_entry("breakdownAttributionValue", &self.attribution.step)?;
        map.serialize_entry("funnelFromStep", &self.from_step)?;
        map.serialize_entry("funnelToStep", &self.to_step)?;
        if let Some(count) = self.bins {
            map.serialize_entry("binCount", &count)?;
        }
        map.end()
    }
}
