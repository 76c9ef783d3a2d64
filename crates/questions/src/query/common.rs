//! What several kinds of questions have: range, filters, comparison.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use weir_model::errors::FieldError;

use super::breakdown::BreakdownFilter;
use super::filters::{FILTERS_MAX, FilterGroup, group_type};
use super::input::Fields;
use crate::time::{DateText, Interval, RelativeDate};

/// Most characters of a date.
const DATE_MAX: usize = 40;
/// Members of a range.
pub(super) const DATES: [&str; 3] = ["date_from", "date_to", "explicitDate"];

/// The range of a question as dates. `Calendar::range` says what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DateRange {
    /// The beginning. `None`: seven days before the current one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date_from: Option<DateText>,
    /// The end, which is included as a whole. `None`: the current day, hour or minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date_to: Option<DateText>,
    /// Whether the dates are not rounded to days and hours.
    #[serde(rename = "explicitDate", skip_serializing_if = "is_false")]
    pub explicit_date: bool,
}

impl DateRange {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Reads `dateRange`, if it is there.
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        let Some(input) = fields.get("dateRange") else { return Ok(Self::default()) };
        let fields = input.object()?;
        fields.check(&DATES, &["daysOfWeek", "excludeIncompletePeriods"])?;
        Self::read_members(&fields)
    }

    /// Reads [`DATES`].
    pub(super) fn read_members(fields: &Fields<'_>) -> Result<Self, FieldError> {
        let date_to = date(fields, "date_to")?;
        if date_to == Some(DateText::All) {
            return Err(fields.fault("date_to", "invalid_input", NO_DATE));
        }
        Ok(Self {
            date_from: date(fields, "date_from")?,
            date_to,
            explicit_date: fields.flag("explicitDate")?,
        })
    }
}

const NO_DATE: &str = "Enter a date, such as 2026-08-21, -7d or mStart.";

/// A date in a member. An empty text is no date.
pub(super) fn date(fields: &Fields<'_>, name: &str) -> Result<Option<DateText>, FieldError> {
    let Some(input) = fields.get(name) else { return Ok(None) };
    let text = input.text(DATE_MAX)?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    DateText::parse(&text).map(Some).ok_or_else(|| input.invalid(NO_DATE))
}

/// What every question about persons and their events has.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Scope {
    /// The range.
    #[serde(rename = "dateRange", skip_serializing_if = "DateRange::is_default")]
    pub dates: DateRange,
    /// Which events count, with those of `fixedProperties`.
    #[serde(skip_serializing_if = "FilterGroup::is_empty")]
    pub properties: FilterGroup,
    /// Whether the filters of the project for internal users apply.
    #[serde(rename = "filterTestAccounts", skip_serializing_if = "is_false")]
    pub filter_test_accounts: bool,
    /// Groups of this type are counted instead of persons.
    #[serde(rename = "aggregation_group_type_index", skip_serializing_if = "Option::is_none")]
    pub group_type: Option<u8>,
}

/// Members that [`Scope::read`] reads.
pub(super) const SCOPE: [&str; 5] = [
    "dateRange",
    "properties",
    "fixedProperties",
    "filterTestAccounts",
    "aggregation_group_type_index",
];
/// Members that some kinds of questions do not have. They are read by [`without`].
pub(super) const OTHERS: [&str; 2] = ["breakdownFilter", "compareFilter"];
/// Members that would change an answer.
pub(super) const SCOPE_REFUSED: [&str; 2] = ["samplingFactor", "conversionGoal"];

impl Scope {
    /// Reads the members of a question, and returns how many filters are left for the rest of
    /// it.
    pub(super) fn read(fields: &Fields<'_>) -> Result<(Self, usize), FieldError> {
        let mut left = FILTERS_MAX;
        let properties = filters(fields, &mut left)?;
        let scope = Self {
            dates: DateRange::read(fields)?,
            properties,
            filter_test_accounts: fields.flag("filterTestAccounts")?,
            group_type: group_type(fields, "aggregation_group_type_index")?,
        };
        Ok((scope, left))
    }
}

/// Refuses a breakdown or a comparison that a kind of question does not have. Clients send
/// the members also when they say nothing, such as the type of no breakdown.
pub(super) fn without(fields: &Fields<'_>, names: &[&str]) -> Result<(), FieldError> {
    for name in names {
        let is_there = match *name {
            "breakdownFilter" => BreakdownFilter::read(fields)?.is_some(),
            _ => CompareFilter::read(fields)?.is_some(),
        };
        if is_there {
            let detail = "Weir does not support this field.";
            return Err(fields.fault(name, "invalid_input", detail));
        }
    }
    Ok(())
}

/// The filters of `properties` and `fixedProperties`.
pub(super) fn filters(fields: &Fields<'_>, left: &mut usize) -> Result<FilterGroup, FieldError> {
    let (own, fixed) = (fields.get("properties"), fields.get("fixedProperties"));
    let mut depth = 1;
    if own.is_some() && fixed.is_some() {
        // Both may become groups in one.
        depth = 2;
        *left = left.saturating_sub(2);
    }
    let mut all = FilterGroup::default();
    for input in [own, fixed].into_iter().flatten() {
        all = all.and(FilterGroup::read(&input, left, depth)?);
    }
    Ok(all)
}

/// With which range the range of a question is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompareFilter {
    /// So much earlier. `None`: the period before.
    pub compare_to: Option<RelativeDate>,
}

impl CompareFilter {
    /// Reads `compareFilter`. `None`: nothing is compared.
    pub(super) fn read(fields: &Fields<'_>) -> Result<Option<Self>, FieldError> {
        let Some(input) = fields.get("compareFilter") else { return Ok(None) };
        let fields = input.object()?;
        fields.check(&["compare", "compare_to"], &[])?;
        let compare_to = match date(&fields, "compare_to")? {
            None => None,
            Some(DateText::Relative(date)) if date.edge.is_none() && date.back > 0 => Some(date),
            Some(_) => {
                let detail = "Enter a number of units, such as -1w or -14d.";
                return Err(fields.fault("compare_to", "invalid_input", detail));
            }
        };
        Ok(fields.flag("compare")?.then_some(Self { compare_to }))
    }
}

impl Serialize for CompareFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("compare", &true)?;
        if let Some(date) = self.compare_to {
            map.serialize_entry("compare_to", &DateText::Relative(date))?;
        }
        map.end()
    }
}

/// The interval of a question, a day by default.
pub(super) fn interval(fields: &Fields<'_>) -> Result<Interval, FieldError> {
    fields.choice("interval", Interval::Day)
}

/// For serde.
pub(super) fn is_false(flag: &bool) -> bool {
    !flag
}
