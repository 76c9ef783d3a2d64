//! Trends: numbers over time.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use weir_model::errors::FieldError;

use super::breakdown::{BREAKDOWN_LIMIT, BreakdownFilter};
use super::common::{CompareFilter, SCOPE, SCOPE_REFUSED, Scope, interval};
use super::filters::NAME_MAX;
use super::input::{Fields, Input};
use super::series::{EventsNode, Math, SERIES_MAX, series};
use crate::choices::choices;
use crate::formula::{FORMULA_MAX, Formula};
use crate::time::Interval;

/// How many values of a breakdown a map has by default: there are about as many countries.
const MAP_LIMIT: usize = 250;
/// Most formulas of a question.
const FORMULAS_MAX: usize = 10;

choices! {
    /// How the numbers of trends are drawn, which decides whether they are one number for the
    /// range.
    Display {
        /// A line.
        Line = "ActionsLineGraph",
        /// A line of sums since the beginning of the range.
        Cumulative = "ActionsLineGraphCumulative",
        /// Bars on each other.
        Bar = "ActionsBar",
        /// Bars on each other.
        StackedBar = "ActionsStackedBar",
        /// Bars beside each other.
        UnstackedBar = "ActionsUnstackedBar",
        /// Areas.
        Area = "ActionsAreaGraph",
        /// A table with a number for the range.
        Table = "ActionsTable",
        /// A pie of numbers for the range.
        Pie = "ActionsPie",
        /// A bar for the range.
        BarValue = "ActionsBarValue",
        /// A number for the range.
        Number = "BoldNumber",
        /// A map of numbers for the range.
        Map = "WorldMap",
    }
}

impl Display {
    /// Whether each series is one number for the whole range.
    pub const fn is_total(self) -> bool {
        matches!(self, Self::Table | Self::Pie | Self::BarValue | Self::Number | Self::Map)
    }
}

/// A formula with a name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendsFormula {
    /// The formula.
    pub formula: Formula,
    /// The name that a user gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_name: Option<String>,
}

/// What trends alone have.
#[derive(Debug, Clone, PartialEq)]
pub struct TrendsFilter {
    /// How they are drawn.
    pub display: Display,
    /// With formulas, the results are theirs instead of those of the series.
    pub formulas: Vec<TrendsFormula>,
}

/// A question about numbers over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendsQuery {
    /// Range and filters.
    #[serde(flatten)]
    pub scope: Scope,
    /// The length of a bucket.
    pub interval: Interval,
    /// The series: 1 to 26.
    pub series: Vec<EventsNode>,
    /// Display and formulas.
    #[serde(rename = "trendsFilter")]
    pub filter: TrendsFilter,
    /// Up to three properties.
    #[serde(rename = "breakdownFilter", skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<BreakdownFilter>,
    /// Another range.
    #[serde(rename = "compareFilter", skip_serializing_if = "Option::is_none")]
    pub compare: Option<CompareFilter>,
}

impl TrendsQuery {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        let own = ["interval", "series", "trendsFilter", "breakdownFilter", "compareFilter"];
        let read: Vec<&str> = SCOPE.iter().chain(&own).copied().collect();
        fields.check(&read, &SCOPE_REFUSED)?;
        let (scope, mut left) = Scope::read(fields)?;
        let series = series(fields, 1, SERIES_MAX, &mut left)?;
        let filter = TrendsFilter::read(fields, series.len())?;
        let limit = if filter.display == Display::Map { MAP_LIMIT } else { BREAKDOWN_LIMIT };
        Ok(Self {
            scope,
            interval: interval(fields)?,
            filter,
            series,
            breakdown: BreakdownFilter::read_with_limit(fields, limit)?,
            compare: CompareFilter::read(fields)?,
        })
    }
}

impl TrendsQuery {
    /// Whether each person, group or session of a series counts in its first bucket alone,
    /// because the numbers are added.
    pub fn counts_once(&self, series: &EventsNode) -> bool {
        let is_unique = match series.math {
            Math::UniquePersons | Math::UniqueSessions | Math::UniqueGroups(_) => true,
            Math::Total | Math::Property(..) => false,
        };
        is_unique && self.filter.display == Display::Cumulative
    }
}

impl TrendsFilter {
    fn read(fields: &Fields<'_>, series: usize) -> Result<Self, FieldError> {
        // A number of ranges belongs to the breakdown. Here it says nothing.
        const READ: [&str; 5] =
            ["display", "formula", "formulas", "formulaNodes", "breakdown_histogram_bin_count"];
        let Some(input) = fields.get("trendsFilter") else {
            return Ok(Self { display: Display::Line, formulas: Vec::new() });
        };
        let fields = input.object()?;
        fields.check(&READ, &["hideWeekends", "smoothingIntervals"])?;
        let mut formulas = nodes(&fields, series)?;
        if formulas.is_empty()
            && let Some(input) = fields.get("formulas")
        {
            let items = input.list(FORMULAS_MAX)?;
            formulas = items.iter().map(|item| plain(item, series)).collect::<Result<_, _>>()?;
        }
        if formulas.is_empty()
            && let Some(input) = fields.get("formula")
            && input.value.as_str() != Some("")
        {
            formulas.push(plain(&input, series)?);
        }
        Ok(Self { display: fields.choice("display", Display::Line)?, formulas })
    }
}

fn nodes(fields: &Fields<'_>, series: usize) -> Result<Vec<TrendsFormula>, FieldError> {
    let Some(input) = fields.get("formulaNodes") else { return Ok(Vec::new()) };
    let read = |item: &Input<'_>| -> Result<TrendsFormula, FieldError> {
        let fields = item.object()?;
        fields.check(&["formula", "custom_name"], &[])?;
        let custom_name = fields.optional_text("custom_name", NAME_MAX)?;
        let read = plain(&fields.required("formula")?, series)?;
        Ok(TrendsFormula { custom_name: custom_name.filter(|name| !name.is_empty()), ..read })
    };
    input.list(FORMULAS_MAX)?.iter().map(read).collect()
}

fn plain(input: &Input<'_>, series: usize) -> Result<TrendsFormula, FieldError> {
    let text = input.text(FORMULA_MAX)?;
    let formula = Formula::parse(&text, series).map_err(|fault| fault.at(input.path()))?;
    Ok(TrendsFormula { formula, custom_name: None })
}

impl Serialize for TrendsFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("display", &self.display)?;
        if !self.formulas.is_empty() {
            map.serialize_entry("formulaNodes", &self.formulas)?;
        }
        map.end()
    }
}
