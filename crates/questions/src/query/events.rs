//! Lists of events, with columns by choice.

use serde::Serialize;
use weir_model::errors::FieldError;

use super::common::{date, filters, is_false};
use super::filters::{FILTERS_MAX, FilterGroup};
use super::input::Fields;
use super::series::event;
use crate::time::DateText;

/// Most columns, conditions, and columns of an order.
const EXPRESSIONS_MAX: usize = 100;
/// Most characters of an expression.
const EXPRESSION_MAX: usize = 1000;
/// Rows by default.
pub const EVENTS_LIMIT: u32 = 100;
/// Most rows.
pub const EVENTS_LIMIT_MAX: u32 = 50_000;
/// Characters of the id of a person.
const PERSON_MAX: usize = 36;

/// A question for events, newest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventsQuery {
    /// The columns, as expressions of HogQL: at least one.
    pub select: Vec<String>,
    /// Conditions that all hold, as expressions of HogQL.
    #[serde(rename = "where", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<String>,
    /// Filters.
    #[serde(skip_serializing_if = "FilterGroup::is_empty")]
    pub properties: FilterGroup,
    /// Whether the filters of the project for internal users apply.
    #[serde(rename = "filterTestAccounts", skip_serializing_if = "is_false")]
    pub filter_test_accounts: bool,
    /// Only events of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Only events of this person.
    #[serde(rename = "personId", skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// Only events before this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<DateText>,
    /// Only events after this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<DateText>,
    /// The order, as expressions of HogQL with `ASC` or `DESC`. Empty: newest first.
    #[serde(rename = "orderBy", skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// Most rows.
    pub limit: u32,
    /// Rows that are skipped.
    pub offset: u32,
}

impl EventsQuery {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        const READ: [&str; 12] = [
            "select",
            "where",
            "properties",
            "fixedProperties",
            "filterTestAccounts",
            "event",
            "personId",
            "before",
            "after",
            "orderBy",
            "limit",
            "offset",
        ];
        fields.check(&READ, &["source", "actionId", "events"])?;
        let mut left = FILTERS_MAX;
        let select = fields.required("select")?;
        let (limit, offset) = fields.page(EVENTS_LIMIT_MAX, EVENTS_LIMIT)?;
        let query = Self {
            select: expressions(fields, "select")?,
            conditions: expressions(fields, "where")?,
            properties: filters(fields, &mut left)?,
            filter_test_accounts: fields.flag("filterTestAccounts")?,
            event: event(fields, "event")?,
            person: fields.optional_text("personId", PERSON_MAX)?,
            before: date(fields, "before")?,
            after: date(fields, "after")?,
            order: expressions(fields, "orderBy")?,
            limit,
            offset,
        };
        if query.select.is_empty() {
            return Err(select.fault("required", "This list may not be empty."));
        }
        Ok(query)
    }
}

fn expressions(fields: &Fields<'_>, name: &str) -> Result<Vec<String>, FieldError> {
    let Some(input) = fields.get(name) else { return Ok(Vec::new()) };
    input.list(EXPRESSIONS_MAX)?.iter().map(|item| item.name(EXPRESSION_MAX)).collect()
}
