//! SQL, with values and filters beside it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use weir_model::errors::FieldError;
use weir_model::validate::SQL_MAX;

use super::common::{DateRange, filters, is_false};
use super::filters::{FILTERS_MAX, FilterGroup, NAME_MAX, VALUE_MAX};
use super::input::Fields;

/// Most values beside a query.
const VALUES_MAX: usize = 100;

/// A question in SQL.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HogQLQuery {
    /// The text of the query. It is parsed by the engine, which says where a fault is.
    pub query: String,
    /// Values that replace `{name}` in the query: texts, numbers, true, false and null.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Value>,
    /// What replaces `{filters}` in the query.
    pub filters: HogQLFilters,
}

/// Filters of a query in SQL.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct HogQLFilters {
    /// The range.
    #[serde(rename = "dateRange")]
    pub dates: DateRange,
    /// Which events count.
    #[serde(skip_serializing_if = "FilterGroup::is_empty")]
    pub properties: FilterGroup,
    /// Whether the filters of the project for internal users apply.
    #[serde(rename = "filterTestAccounts", skip_serializing_if = "is_false")]
    pub filter_test_accounts: bool,
}

impl HogQLQuery {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        fields.check(
            &["query", "values", "filters"],
            &["variables", "connectionId", "sendRawQuery"],
        )?;
        let filters = match fields.get("filters") {
            Some(input) => HogQLFilters::read(&input.object()?)?,
            None => HogQLFilters::default(),
        };
        let query = fields.required("query")?.name(SQL_MAX)?;
        Ok(Self { query, values: values(fields)?, filters })
    }
}

impl HogQLFilters {
    fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        fields.check(&["dateRange", "properties", "filterTestAccounts"], &[])?;
        let mut left = FILTERS_MAX;
        Ok(Self {
            dates: DateRange::read(fields)?,
            properties: filters(fields, &mut left)?,
            filter_test_accounts: fields.flag("filterTestAccounts")?,
        })
    }
}

fn values(fields: &Fields<'_>) -> Result<BTreeMap<String, Value>, FieldError> {
    let Some(input) = fields.get("values") else { return Ok(BTreeMap::new()) };
    let Value::Object(map) = input.value else {
        return Err(input.invalid("Expected an object."));
    };
    if map.len() > VALUES_MAX {
        let detail = format!("Ensure this field has no more than {VALUES_MAX} elements.");
        return Err(input.fault("max_length", detail));
    }
    let inner = input.object()?;
    let mut values = BTreeMap::new();
    for (name, value) in map {
        if name.is_empty() || name.chars().count() > NAME_MAX {
            return Err(input.invalid("The name of a value is empty or too long."));
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            _ => _ = inner.required(name)?.text(VALUE_MAX)?,
        }
        values.insert(name.clone(), value.clone());
    }
    Ok(values)
}
