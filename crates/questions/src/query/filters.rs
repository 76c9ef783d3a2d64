//! Filters of properties, and groups of them (QRY-4, QRY-5).
//!
//! What belongs here: which filters there are, and what their values must be. What does not:
//! whether an event satisfies one (the engine).

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::{Number, Value};
use weir_model::errors::FieldError;

use super::input::{Fields, Input};
use crate::choices::choices;
use crate::evaluate::Numeric;
use crate::time::DateText;

/// Most filters and groups of a question, together. A filter with patterns counts as five.
pub const FILTERS_MAX: usize = 100;
/// What a filter with patterns counts beside itself: compiled patterns are large.
const PATTERNS_COUNT: usize = 4;
/// Most nested groups.
pub const FILTER_DEPTH_MAX: usize = 5;
/// Most values of a filter.
pub const FILTER_VALUES_MAX: usize = 1000;
/// Most characters of a value.
pub const VALUE_MAX: usize = 1000;
/// Most characters of the name of an event or a property.
pub const NAME_MAX: usize = 400;
/// The highest number of a group type.
const GROUP_TYPE_LAST: i64 = 4;

choices! {
    /// How the filters of a group are combined.
    Logic {
        /// All of them.
        And = "AND",
        /// At least one of them.
        Or = "OR",
    }
}

choices! {
    /// How a property is compared.
    Operator {
        /// Equals one of the values.
        Exact = "exact",
        /// Equals none of the values.
        IsNot = "is_not",
        /// Contains one of the values, in any case.
        Contains = "icontains",
        /// Contains none of the values, in any case.
        ContainsNot = "not_icontains",
        /// Matches one of the patterns.
        Regex = "regex",
        /// Matches none of the patterns.
        NotRegex = "not_regex",
        /// Greater than the number.
        Greater = "gt",
        /// Greater than the number, or equal.
        GreaterOrEqual = "gte",
        /// Less than the number.
        Less = "lt",
        /// Less than the number, or equal.
        LessOrEqual = "lte",
        /// From the first number to the second one, both included.
        Between = "between",
        /// Before the first number or after the second one.
        NotBetween = "not_between",
        /// Equals one of the values.
        In = "in",
        /// Equals none of the values.
        NotIn = "not_in",
        /// There is a value.
        IsSet = "is_set",
        /// There is no value.
        IsNotSet = "is_not_set",
        /// On the day, or at the time.
        DateExact = "is_date_exact",
        /// Before the date.
        DateBefore = "is_date_before",
        /// After the date.
        DateAfter = "is_date_after",
    }
}

/// A filter, or a group of filters.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Filter {
    /// A property.
    Property(PropertyFilter),
    /// A group.
    Group(FilterGroup),
}

/// Filters that are combined.
#[derive(Debug, Clone, PartialEq)]
pub struct FilterGroup {
    /// How they are combined.
    pub logic: Logic,
    /// The filters. A group without filters is always satisfied.
    pub filters: Vec<Filter>,
}

/// A group without filters.
impl Default for FilterGroup {
    fn default() -> Self {
        Self { logic: Logic::And, filters: Vec::new() }
    }
}

/// Whose property it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PropertyOwner {
    /// Of the event.
    Event,
    /// Of the person, as it is now.
    Person,
    /// Of the group of this type, as it is now.
    Group(u8),
}

/// A filter of a property.
#[derive(Debug, Clone, PartialEq)]
pub struct PropertyFilter {
    /// Whose property it is.
    pub owner: PropertyOwner,
    /// The name of the property.
    pub key: String,
    /// How it is compared.
    pub operator: Operator,
    /// The values to compare with: none for `is_set` and `is_not_set`, one number for `gt` to
    /// `lte`, two for `between`, one date for `is_date_…`, and at least one for all others.
    pub values: Vec<FilterValue>,
}

/// A value of a filter.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum FilterValue {
    /// A text; a date in its canonical form.
    Text(String),
    /// A number with all digits that fit into 64 bits.
    Number(Number),
    /// True or false.
    Boolean(bool),
}

impl FilterValue {
    /// The value as a text, as properties are compared with it.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => match Numeric::of_json(number) {
                Some(number) => number.to_string(),
                None => number.to_string(),
            },
            Self::Boolean(flag) => flag.to_string(),
        }
    }
}

impl Operator {
    /// Words of clients for operators that have another word here.
    const ALIASES: [(&str, Self); 4] = [
        ("min", Self::GreaterOrEqual),
        ("max", Self::LessOrEqual),
        ("icontains_multi", Self::Contains),
        ("not_icontains_multi", Self::ContainsNot),
    ];

    /// Whether its values are patterns.
    fn has_patterns(self) -> bool {
        matches!(self, Self::Regex | Self::NotRegex)
    }

    fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        let Some(input) = fields.get("operator") else { return Ok(Self::Exact) };
        let alias = Self::ALIASES.iter().find(|(word, _)| input.value.as_str() == Some(word));
        alias.map_or_else(|| input.choice(), |(_, operator)| Ok(*operator))
    }
}

impl PropertyFilter {
    /// The date of an `is_date_…` filter.
    pub fn date(&self) -> Option<DateText> {
        let is_date = matches!(
            self.operator,
            Operator::DateExact | Operator::DateBefore | Operator::DateAfter
        );
        match self.values.first() {
            Some(FilterValue::Text(text)) if is_date => DateText::parse(text),
            _ => None,
        }
    }
}

impl FilterGroup {
    /// Whether it has no filter.
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// A group that is satisfied when both are.
    #[must_use]
    pub fn and(mut self, mut other: Self) -> Self {
        if other.is_empty() {
            return self;
        }
        if self.is_empty() {
            return other;
        }
        if self.logic != Logic::And {
            self = Self { logic: Logic::And, filters: vec![Filter::Group(self)] };
        }
        match other.logic {
            Logic::And => self.filters.append(&mut other.filters),
            Logic::Or => self.filters.push(Filter::Group(other)),
        }
        self
    }

    /// Reads a list of filters, or a group, at this depth from 1. Each filter and each inner
    /// group takes one from `left`.
    pub(super) fn read(
        input: &Input<'_>,
        left: &mut usize,
        depth: usize,
    ) -> Result<Self, FieldError> {
        if depth > FILTER_DEPTH_MAX {
            let detail = format!("Groups are nested more than {FILTER_DEPTH_MAX} deep.");
            return Err(input.fault("max_length", detail));
        }
        let (logic, values) = match input.value {
            Value::Array(_) => (Logic::And, Some(input.clone())),
            _ => {
                let fields = input.object()?;
                fields.check(&["type", "values"], &[])?;
                (fields.choice("type", Logic::And)?, fields.get("values"))
            }
        };
        let mut filters = Vec::new();
        for item in values.map_or(Ok(Vec::new()), |values| values.list(FILTERS_MAX))? {
            filters.extend(Filter::read(&item, left, depth)?);
        }
        Ok(Self { logic, filters })
    }
}

impl Filter {
    /// Reads an item of a group at this depth. `None`: a filter that a user has not begun to
    /// enter.
    pub(super) fn read(
        item: &Input<'_>,
        left: &mut usize,
        depth: usize,
    ) -> Result<Option<Self>, FieldError> {
        take(left, 1, item)?;
        let fields = item.object()?;
        if fields.is_empty() {
            return Ok(None);
        }
        if fields.get("values").is_some() {
            return FilterGroup::read(item, left, depth + 1).map(|group| Some(Self::Group(group)));
        }
        let owner = PropertyOwner::read(&fields, "type", "group_type_index")?;
        PropertyFilter::read(item, left, owner).map(|filter| Some(Self::Property(filter)))
    }
}

/// Takes a number of filters from those that a question may still have.
pub(super) fn take(left: &mut usize, count: usize, item: &Input<'_>) -> Result<(), FieldError> {
    *left = left.checked_sub(count).ok_or_else(|| {
        let detail = format!(
            "A question has at most {FILTERS_MAX} filters, of which one with patterns counts as \
             {}.",
            PATTERNS_COUNT + 1
        );
        item.fault("max_length", detail)
    })?;
    Ok(())
}

/// A list if all filters must be satisfied, else `type` and `values`.
impl Serialize for FilterGroup {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_list = self.logic == Logic::And
            && self.filters.iter().all(|filter| matches!(filter, Filter::Property(_)));
        if is_list {
            return self.filters.serialize(serializer);
        }
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", &self.logic)?;
        map.serialize_entry("values", &InnerFilters(&self.filters))?;
        map.end()
    }
}

/// The filters of a group that is no list. Inner groups are no lists either: a list in a list
/// is no filter.
struct InnerFilters<'a>(&'a [Filter]);

impl Serialize for InnerFilters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(InnerFilter))
    }
}

struct InnerFilter<'a>(&'a Filter);

impl Serialize for InnerFilter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Filter::Property(filter) => filter.serialize(serializer),
            Filter::Group(group) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("type", &group.logic)?;
                map.serialize_entry("values", &InnerFilters(&group.filters))?;
                map.end()
            }
        }
    }
}

impl PropertyOwner {
    /// Reads `event`, `person` or `group` with its number; `event` by default.
    pub(super) fn read(fields: &Fields<'_>, kind: &str, index: &str) -> Result<Self, FieldError> {
        let Some(input) = fields.get(kind) else { return Ok(Self::Event) };
        match input.value.as_str() {
            // The variant of a feature flag is a property of the event.
            Some("event" | "feature") => Ok(Self::Event),
            Some("person") => Ok(Self::Person),
            Some("group") => {
                let at = fields.required(index)?.integer(0, GROUP_TYPE_LAST)?;
                Ok(Self::Group(u8::try_from(at).unwrap_or_default()))
            }
            _ => Err(input.no_choice()),
        }
    }

    /// Its word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Person => "person",
            Self::Group(_) => "group",
        }
    }

    /// The number of the group type.
    pub fn group_type(self) -> Option<u8> {
        match self {
            Self::Group(at) => Some(at),
            Self::Event | Self::Person => None,
        }
    }
}

/// The number of a group type in a member, if it is there.
pub(super) fn group_type(fields: &Fields<'_>, name: &str) -> Result<Option<u8>, FieldError> {
    let Some(input) = fields.get(name) else { return Ok(None) };
    let at = input.integer(0, GROUP_TYPE_LAST)?;
    Ok(u8::try_from(at).ok())
}

impl PropertyFilter {
    /// Reads a filter that has been taken from `left`, without the owner of its property.
    pub(super) fn read(
        item: &Input<'_>,
        left: &mut usize,
        owner: PropertyOwner,
    ) -> Result<Self, FieldError> {
        // Clients repeat names and labels for readers.
        const READ: [&str; 8] = [
            "type",
            "key",
            "operator",
            "value",
            "group_type_index",
            "cohort_name",
            "group_key_names",
            "bytecode",
        ];
        let fields = item.object()?;
        fields.check(&READ, &["negation"])?;
        let key = fields.required("key")?.name(NAME_MAX)?;
        let operator = Operator::read(&fields)?;
        let values = values(&fields, operator)?;
        if operator.has_patterns() {
            take(left, PATTERNS_COUNT, item)?;
        }
        Ok(Self { owner, key, operator, values })
    }
}

fn values(fields: &Fields<'_>, operator: Operator) -> Result<Vec<FilterValue>, FieldError> {
    if matches!(operator, Operator::IsSet | Operator::IsNotSet) {
        return Ok(Vec::new());
    }
    let input = fields.required("value")?;
    let items = match input.value {
        Value::Array(_) => input.list(FILTER_VALUES_MAX)?,
        _ => vec![input.clone()],
    };
    let exactly = |count: usize, what: &str| match items.len() == count {
        true => Ok(()),
        false => Err(input.invalid(format!("Expected {what}."))),
    };
    match operator {
        Operator::Greater | Operator::GreaterOrEqual | Operator::Less | Operator::LessOrEqual => {
            exactly(1, "one number")?;
            items.iter().map(number).collect()
        }
        Operator::Between | Operator::NotBetween => {
            exactly(2, "two numbers")?;
            let numbers = items.iter().map(number).collect::<Result<Vec<_>, _>>()?;
            let [least, most] = [0, 1].map(|at| numbers.get(at).and_then(Numeric::of_value));
            match least > most {
                true => Err(input.invalid("The first number is larger than the second one.")),
                false => Ok(numbers),
            }
        }
        Operator::DateExact | Operator::DateBefore | Operator::DateAfter => {
            exactly(1, "one date")?;
            items.iter().map(date).collect()
        }
        Operator::Contains | Operator::ContainsNot | Operator::Regex | Operator::NotRegex => {
            if items.is_empty() {
                return Err(input.fault("required", "This list may not be empty."));
            }
            let texts = items
                .iter()
                .map(|item| Ok(scalar(item)?.text()))
                .collect::<Result<Vec<_>, FieldError>>()?;
            #[cfg(feature = "matching")]
            if operator.has_patterns() {
                crate::evaluate::patterns(&texts)
                    .map_err(|fault| input.invalid(fault.to_string()))?;
            }
            Ok(texts.into_iter().map(FilterValue::Text).collect())
        }
        _ => {
            if items.is_empty() {
                return Err(input.fault("required", "This list may not be empty."));
            }
            items.iter().map(scalar).collect()
        }
    }
}

fn scalar(input: &Input<'_>) -> Result<FilterValue, FieldError> {
    match input.value {
        Value::String(_) => input.text(VALUE_MAX).map(FilterValue::Text),
        Value::Number(number) => Ok(FilterValue::Number(number.clone())),
        Value::Bool(flag) => Ok(FilterValue::Boolean(*flag)),
        _ => Err(input.invalid("Expected a text, a number, true or false.")),
    }
}

/// A number, also as a text.
fn number(input: &Input<'_>) -> Result<FilterValue, FieldError> {
    let number = match input.value {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => serde_json::from_str::<Number>(text.trim()).ok(),
        _ => None,
    };
    number.map(FilterValue::Number).ok_or_else(|| input.invalid("A valid number is required."))
}

fn date(input: &Input<'_>) -> Result<FilterValue, FieldError> {
    let text = input.text(VALUE_MAX)?;
    let date = DateText::parse(&text).filter(|date| *date != DateText::All);
    let date = date.ok_or_else(|| input.invalid("Enter a date, such as 2026-08-21 or -7d."))?;
    Ok(FilterValue::Text(date.to_string()))
}

impl Serialize for PropertyFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.owner.word())?;
        map.serialize_entry("key", &self.key)?;
        map.serialize_entry("operator", &self.operator)?;
        match self.values.as_slice() {
            [] => {}
            [value] => map.serialize_entry("value", value)?,
            values => map.serialize_entry("value", values)?,
        }
        if let Some(at) = self.owner.group_type() {
            map.serialize_entry("group_type_index", &at)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests;
