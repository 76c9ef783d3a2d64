//! Breakdowns: one result for each value of up to three properties.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;
use weir_model::errors::FieldError;

use super::filters::{NAME_MAX, PropertyOwner};
use super::input::{Fields, Input};

/// Most properties of a breakdown.
pub const BREAKDOWNS_MAX: usize = 3;
/// How many values have a result of their own by default. All others are one result.
pub const BREAKDOWN_LIMIT: usize = 25;
/// Most values with a result of their own.
pub const BREAKDOWN_LIMIT_MAX: i64 = 500;
/// Most ranges that numbers are divided into.
const BINS_MAX: i64 = 100;

/// A property whose values divide a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breakdown {
    /// Whose property it is.
    pub owner: PropertyOwner,
    /// The name of the property.
    pub property: String,
    /// Whether a slash, `?` or `#` at the end of an address is ignored.
    pub normalize_url: bool,
    /// Into how many ranges numbers are divided. `None`: each value is one.
    pub bins: Option<u32>,
}

/// The breakdown of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakdownFilter {
    /// The properties: at least one.
    pub breakdowns: Vec<Breakdown>,
    /// Whether the client sent one property in the older form. Results then have a text as
    /// `breakdown_value`, else a list of texts.
    pub is_single: bool,
    /// How many values have a result of their own.
    pub limit: usize,
    /// Whether the result for all other values is omitted.
    pub hides_other: bool,
}

impl BreakdownFilter {
    /// Reads `breakdownFilter`. `None`: there is no breakdown.
    pub(super) fn read(fields: &Fields<'_>) -> Result<Option<Self>, FieldError> {
        Self::read_with_limit(fields, BREAKDOWN_LIMIT)
    }

    /// As funnels have it: their results have a list of texts also for one property in the
    /// older form, unless it is one of groups.
    #[must_use]
    pub fn of_funnels(&self) -> Self {
        let is_group = |only: &Breakdown| matches!(only.owner, PropertyOwner::Group(_));
        Self { is_single: self.is_single && self.breakdowns.iter().all(is_group), ..self.clone() }
    }

    /// [`BreakdownFilter::read`] with this number of values by default.
    pub(super) fn read_with_limit(
        fields: &Fields<'_>,
        default: usize,
    ) -> Result<Option<Self>, FieldError> {
        const READ: [&str; 8] = [
            "breakdown",
            "breakdown_type",
            "breakdown_group_type_index",
            "breakdown_normalize_url",
            "breakdown_histogram_bin_count",
            "breakdowns",
            "breakdown_limit",
            "breakdown_hide_other_aggregation",
        ];
        let Some(input) = fields.get("breakdownFilter") else { return Ok(None) };
        let fields = input.object()?;
        fields.check(&READ, &["breakdown_path_cleaning"])?;
        let limit = match fields.get("breakdown_limit") {
            Some(input) => input.integer(1, BREAKDOWN_LIMIT_MAX)?,
            None => i64::try_from(default).unwrap_or_default(),
        };
        let listed = match fields.get("breakdowns") {
            Some(input) => input
                .list(BREAKDOWNS_MAX)?
                .iter()
                .map(Breakdown::read)
                .collect::<Result<Vec<_>, _>>()?,
            None => Vec::new(),
        };
        let is_single = listed.is_empty();
        let breakdowns = if is_single { older(&fields)? } else { listed };
        if breakdowns.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            is_single: is_single && breakdowns.len() == 1,
            breakdowns,
            limit: usize::try_from(limit).unwrap_or_default(),
            hides_other: fields.flag("breakdown_hide_other_aggregation")?,
        }))
    }
}

impl Breakdown {
    fn read(input: &Input<'_>) -> Result<Self, FieldError> {
        let fields = input.object()?;
        let read = ["property", "type", "group_type_index", "normalize_url", "histogram_bin_count"];
        fields.check(&read, &[])?;
        Ok(Self {
            owner: PropertyOwner::read(&fields, "type", "group_type_index")?,
            property: fields.required("property")?.name(NAME_MAX)?,
            normalize_url: fields.flag("normalize_url")?,
            bins: bins(&fields, "histogram_bin_count")?,
        })
    }
}

/// The older form: one property, or several of the same kind.
fn older(fields: &Fields<'_>) -> Result<Vec<Breakdown>, FieldError> {
    let Some(input) = fields.get("breakdown") else { return Ok(Vec::new()) };
    let names = match input.value {
        Value::Array(_) => input.list(BREAKDOWNS_MAX)?,
        Value::String(text) if text.is_empty() => Vec::new(),
        _ => vec![input],
    };
    let owner = PropertyOwner::read(fields, "breakdown_type", "breakdown_group_type_index")?;
    let normalize_url = fields.flag("breakdown_normalize_url")?;
    let bins = bins(fields, "breakdown_histogram_bin_count")?;
    names
        .iter()
        .map(|name| Ok(Breakdown { owner, property: name.name(NAME_MAX)?, normalize_url, bins }))
        .collect()
}

fn bins(fields: &Fields<'_>, name: &str) -> Result<Option<u32>, FieldError> {
    let Some(input) = fields.get(name) else { return Ok(None) };
    let count = input.integer(1, BINS_MAX)?;
    Ok(u32::try_from(count).ok())
}

impl Serialize for BreakdownFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.breakdowns.as_slice() {
            [only] if self.is_single => {
                map.serialize_entry("breakdown", &only.property)?;
                map.serialize_entry("breakdown_type", only.owner.word())?;
                if let Some(at) = only.owner.group_type() {
                    map.serialize_entry("breakdown_group_type_index", &at)?;
                }
                if only.normalize_url {
                    map.serialize_entry("breakdown_normalize_url", &true)?;
                }
                if let Some(count) = only.bins {
                    map.serialize_entry("breakdown_histogram_bin_count", &count)?;
                }
            }
            all => map.serialize_entry("breakdowns", all)?,
        }
        map.serialize_entry("breakdown_limit", &self.limit)?;
        if self.hides_other {
            map.serialize_entry("breakdown_hide_other_aggregation", &true)?;
        }
        map.end()
    }
}

impl Serialize for Breakdown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("property", &self.property)?;
        map.serialize_entry("type", self.owner.word())?;
        if let Some(at) = self.owner.group_type() {
            map.serialize_entry("group_type_index", &at)?;
        }
        if self.normalize_url {
            map.serialize_entry("normalize_url", &true)?;
        }
        if let Some(count) = self.bins {
            map.serialize_entry("histogram_bin_count", &count)?;
        }
        map.end()
    }
}
