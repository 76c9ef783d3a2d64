//! The question of the page for exploring events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
#[cfg(feature = "ssr")]
use serde_json::{Value, json};
#[cfg(feature = "ssr")]
use weir_model::PersonId;
#[cfg(feature = "ssr")]
use weir_model::errors::FieldError;
#[cfg(feature = "ssr")]
use weir_questions::Query;
#[cfg(feature = "ssr")]
use weir_questions::query::{EVENTS_LIMIT_MAX, EventsQuery};
#[cfg(feature = "ssr")]
use weir_questions::time::{DateText, Interval};

/// The path of the server function of the page.
pub const FUNCTION: &str = "/_fn/explore_events";
/// The names of the fields.
pub const FIELDS: &[&str] = &[
    "event",
    "range",
    "from",
    "to",
    "person",
    "group_type",
    "group",
    "property1",
    "operator1",
    "value1",
    "property2",
    "operator2",
    "value2",
    "property3",
    "operator3",
    "value3",
    "property4",
    "operator4",
    "value4",
    "where",
    "columns",
    "order",
];
/// The fields of each filter: property, operator and value.
pub(crate) const FILTERS: [[&str; 3]; 4] = [
    ["property1", "operator1", "value1"],
    ["property2", "operator2", "value2"],
    ["property3", "operator3", "value3"],
    ["property4", "operator4", "value4"],
];

/// How a property is compared: the word in questions, and label.
pub(crate) const OPERATORS: [(&str, &str); 19] = [
    ("exact", "is"),
    ("is_not", "is not"),
    ("icontains", "contains"),
    ("not_icontains", "does not contain"),
    ("regex", "matches"),
    ("not_regex", "does not match"),
    ("is_set", "is set"),
    ("is_not_set", "is not set"),
    ("gt", "is greater than"),
    ("gte", "is at least"),
    ("lt", "is less than"),
    ("lte", "is at most"),
    ("between", "is between"),
    ("not_between", "is not between"),
    ("in", "is one of"),
    ("not_in", "is none of"),
    ("is_date_exact", "is on the day"),
    ("is_date_before", "is before the date"),
    ("is_date_after", "is after the date"),
];
/// Those with a list of values, separated by commas.
#[cfg(feature = "ssr")]
const LISTS: [&str; 4] = ["between", "not_between", "in", "not_in"];
/// Those without a value.
#[cfg(feature = "ssr")]
const WITHOUT_VALUE: [&str; 2] = ["is_set", "is_not_set"];

/// The ranges: the date of their beginning, and label.
pub(crate) const RANGES: [(&str, &str); 6] = [
    ("-1h", "Last hour"),
    ("-24h", "Last 24 hours"),
    ("-7d", "Last 7 days"),
    ("-30d", "Last 30 days"),
    ("-90d", "Last 90 days"),
    (ALL, "All time"),
];
const ALL: &str = "all";
/// The range without a choice.
pub(crate) const USUAL_RANGE: &str = "-7d";
/// The order without a choice: newest first.
pub(crate) const USUAL_ORDER: &str = "-timestamp";

/// The columns before those that are chosen, as files name them.
pub const LEADING: [&str; 6] = ["uuid", "timestamp", "event", "distinct_id", "person_id", "groups"];
/// The columns of [`LEADING`] that can have the order.
pub(crate) const ORDERED: [&str; 3] = ["timestamp", "event", "distinct_id"];
/// The most columns that can be chosen.
#[cfg(feature = "ssr")]
const COLUMNS_MAX: usize = 20;
/// A day in microseconds.
#[cfg(feature = "ssr")]
const DAY: i64 = 86_400_000_000;

/// The fields with their values. Empty ones are missing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExploreFields(BTreeMap<String, String>);

impl ExploreFields {
    /// The fields with these values.
    pub fn read(value: impl Fn(&str) -> String) -> Self {
        let fields = FIELDS.iter().map(|name| ((*name).to_owned(), value(name)));
        Self(fields.filter(|(_, value)| !value.trim().is_empty()).collect())
    }

    /// The value of a field. Empty: there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |value| value.trim())
    }

    /// The fields that are set.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The properties that have a column.
    pub fn columns(&self) -> Vec<String> {
        let names = self.get("columns").split(',').map(str::trim);
        names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }
}

/// The question for events, and which field each part of it is from.
#[cfg(feature = "ssr")]
#[derive(Debug, Clone)]
pub struct Exploration {
    /// The question.
    pub query: EventsQuery,
    /// The fields of its conditions.
    conditions: Vec<&'static str>,
    /// The fields of its filters.
    filters: Vec<[&'static str; 3]>,
    /// The first day. `None`: there is none, or it depends on the current time.
    pub(crate) from: Option<DateText>,
    /// The time before which the events are, if there is one.
    pub(crate) before: Option<DateText>,
}

#[cfg(feature = "ssr")]
impl Exploration {
    /// The question of these fields, for so many rows.
    ///
    /// # Errors
    /// A fault at one of the fields.
    pub fn new(fields: &ExploreFields, limit: u32, offset: u32) -> Result<Self, FieldError> {
        let mut parts = Parts::default();
        let (from, before) = parts.times(fields)?;
        parts.actors(fields)?;
        parts.filters(fields)?;
        let condition = fields.get("where");
        if !condition.is_empty() {
            parts.conditions.push(("where", condition.to_owned()));
        }
        let columns = fields.columns();
        if columns.len() > COLUMNS_MAX {
            let detail = format!("Choose at most {COLUMNS_MAX} columns.");
            return Err(FieldError::new("columns", "max_length", detail));
        }
        let order = order(fields, &columns);
        let own = LEADING.iter().map(|name| match *name {
            "groups" => "properties.$groups".to_owned(),
            name => name.to_owned(),
        });
        let select: Vec<String> = own.chain(columns.iter().map(|name| property(name))).collect();
        let texts: Vec<&str> = parts.conditions.iter().map(|(_, text)| text.as_str()).collect();
        let mut question = json!({
            "kind": "EventsQuery",
            "select": select,
            "where": texts,
            "properties": parts.properties,
            "orderBy": [order],
            "limit": limit,
            "offset": offset,
        });
        let set = |question: &mut Value, name: &str, value: Option<&str>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                question[name] = json!(value);
            }
        };
        set(&mut question, "event", Some(fields.get("event")));
        set(&mut question, "personId", parts.person.as_deref());
        set(&mut question, "after", parts.after.as_deref());
        let conditions: Vec<&'static str> =
            parts.conditions.iter().map(|(field, _)| *field).collect();
        let filters = parts.filters;
        match Query::read(&question) {
            Ok(Query::Events(query)) => Ok(Self { query, conditions, filters, from, before }),
            // Another kind is not read.
            Ok(_) => Err(FieldError::body("invalid_input", "This is no question for events.")),
            Err(fault) => Err(located(fault, &conditions, &filters)),
        }
    }

    /// The fault of the question at its field.
    pub fn at_field(&self, fault: FieldError) -> FieldError {
        located(fault, &self.conditions, &self.filters)
    }

    /// How long the intervals are in which the events are counted.
    pub(crate) fn interval(&self) -> Interval {
        const SHORT: i64 = 2 * DAY;
        const LONG: i64 = 366 * DAY;
        let range = self.query.after.map(|after| after.to_string());
        match (range.as_deref(), self.from, self.before) {
            (Some("-1h"), ..) => Interval::Minute,
            (Some("-24h" | "-7d"), ..) => Interval::Hour,
            (Some(_), ..) => Interval::Day,
            (None, Some(DateText::Day(from)), Some(DateText::Day(before))) => match before - from {
                length if length <= SHORT => Interval::Hour,
                length if length <= LONG => Interval::Day,
                _ => Interval::Week,
            },
            (None, Some(_), None) => Interval::Day,
            _ => Interval::Week,
        }
    }

    /// The question how many events are in each interval: its beginning, and the number.
    pub(crate) fn counts(&self) -> EventsQuery {
        let unit = match self.interval() {
            Interval::Minute => "Minute",
            Interval::Hour => "Hour",
            Interval::Day => "Day",
            Interval::Week => "Week",
            Interval::Month => "Month",
        };
        let interval = format!("toStartOf{unit}(timestamp)");
        EventsQuery {
            select: vec![interval.clone(), "count()".to_owned()],
            order: vec![interval],
            limit: EVENTS_LIMIT_MAX,
            offset: 0,
            ..self.query.clone()
        }
    }
}

/// The names of the columns in files, which are shorter than their expressions.
pub fn file_columns(fields: &ExploreFields) -> Vec<String> {
    LEADING.iter().map(|name| (*name).to_owned()).chain(fields.columns()).collect()
}

/// Parts of the question, with the fields that they are from.
#[cfg(feature = "ssr")]
#[derive(Debug, Default)]
struct Parts {
    conditions: Vec<(&'static str, String)>,
    properties: Vec<Value>,
    filters: Vec<[&'static str; 3]>,
    person: Option<String>,
    after: Option<String>,
}

#[cfg(feature = "ssr")]
impl Parts {
    /// The times: two days, which count as a whole, or a range that ends now.
    fn times(
        &mut self,
        fields: &ExploreFields,
    ) -> Result<(Option<DateText>, Option<DateText>), FieldError> {
        let from = day(fields, "from")?;
        let before = match day(fields, "to")? {
            Some(DateText::Day(to)) => Some(DateText::Day(to.saturating_add(DAY))),
            other => other,
        };
        if from.is_none() && before.is_none() {
            let range = Some(fields.get("range")).filter(|range| !range.is_empty());
            let range = range.unwrap_or(USUAL_RANGE);
            if RANGES.iter().all(|(known, _)| *known != range) {
                return Err(weir_model::validate::invalid_choice("range", &range));
            }
            self.after = (range != ALL).then(|| range.to_owned());
        }
        let bounds = [("from", ">=", from), ("to", "<", before)];
        for (field, sign, date) in bounds {
            if let Some(date) = date {
                let condition = format!("timestamp {sign} {}", text(&date.to_string()));
                self.conditions.push((field, condition));
            }
        }
        Ok((from, before))
    }

    /// The person and the group.
    fn actors(&mut self, fields: &ExploreFields) -> Result<(), FieldError> {
        let person = fields.get("person");
        if person.parse::<PersonId>().is_ok() {
            self.person = Some(person.to_owned());
        } else if !person.is_empty() {
            self.conditions.push(("person", format!("distinct_id = {}", text(person))));
        }
        match (fields.get("group_type"), fields.get("group")) {
            ("", "") => {}
            ("", _) => return Err(required("group_type")),
            (_, "") => return Err(required("group")),
            (group_type, key) => {
                let condition =
                    format!("properties.$groups.{} = {}", quoted('`', group_type), text(key));
                self.conditions.push(("group", condition));
            }
        }
        Ok(())
    }

    fn filters(&mut self, fields: &ExploreFields) -> Result<(), FieldError> {
        for names in FILTERS {
            let [property, operator, value] = names.map(|name| fields.get(name));
            if property.is_empty() {
                if !value.is_empty() {
                    return Err(required(names[0]));
                }
                continue;
            }
            let operator = if operator.is_empty() { OPERATORS[0].0 } else { operator };
            let mut filter = json!({ "key": property, "type": "event", "operator": operator });
            if LISTS.contains(&operator) {
                let values: Vec<&str> = value.split(',').map(str::trim).collect();
                filter["value"] = json!(values);
            } else if !WITHOUT_VALUE.contains(&operator) {
                filter["value"] = json!(value);
            }
            self.properties.push(filter);
            self.filters.push(names);
        }
        Ok(())
    }
}

/// The date of a field.
#[cfg(feature = "ssr")]
fn day(fields: &ExploreFields, name: &str) -> Result<Option<DateText>, FieldError> {
    match fields.get(name) {
        "" => Ok(None),
        value => match DateText::parse(value) {
            Some(date @ (DateText::Day(_) | DateText::Local(_) | DateText::Instant(_))) => {
                Ok(Some(date))
            }
            Some(DateText::All | DateText::Relative(_)) | None => {
                let detail = "Enter a date, such as 2026-08-21.";
                Err(FieldError::new(name, "invalid_input", detail))
            }
        },
    }
}

/// The expression of the order. That of a column that is not there any more is the usual one.
#[cfg(feature = "ssr")]
fn order(fields: &ExploreFields, columns: &[String]) -> String {
    let expression = |word: &str| {
        let (name, direction) = match word.strip_prefix('-') {
            Some(name) => (name, "DESC"),
            None => (word, "ASC"),
        };
        match name {
            name if ORDERED.contains(&name) => Some(format!("{name} {direction}")),
            name if columns.iter().any(|column| column == name) => {
                Some(format!("{} {direction}", property(name)))
            }
            _ => None,
        }
    };
    expression(fields.get("order")).or_else(|| expression(USUAL_ORDER)).unwrap_or_default()
}

#[cfg(feature = "ssr")]
fn required(field: &str) -> FieldError {
    FieldError::new(field, "required", "This field is required.")
}

/// A property of events in SQL.
#[cfg(feature = "ssr")]
fn property(name: &str) -> String {
    format!("properties.{}", quoted('`', name))
}

/// A text in SQL.
#[cfg(feature = "ssr")]
fn text(text: &str) -> String {
    quoted('\'', text)
}

#[cfg(feature = "ssr")]
fn quoted(mark: char, text: &str) -> String {
    let mut quoted = String::from(mark);
    for c in text.chars() {
        if c == mark || c == '\\' {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push(mark);
    quoted
}

/// The fault of a question at the field that the part is from.
#[cfg(feature = "ssr")]
fn located(
    fault: FieldError,
    conditions: &[&'static str],
    filters: &[[&'static str; 3]],
) -> FieldError {
    let attr = fault.attr.as_deref().unwrap_or_default();
    let (part, rest) = attr.split_once("__").unwrap_or((attr, ""));
    let (number, member) = rest.split_once("__").unwrap_or((rest, ""));
    let number: Option<usize> = number.parse().ok();
    let field = match part {
        "event" => Some("event"),
        "personId" => Some("person"),
        "after" => Some("range"),
        "select" => Some("columns"),
        "orderBy" => Some("order"),
        "where" => number.and_then(|number| conditions.get(number)).copied(),
        "properties" => number.and_then(|number| filters.get(number)).map(|names| {
            let [property, operator, value] = *names;
            match member.split("__").next() {
                Some("operator") => operator,
                Some("value") => value,
                _ => property,
            }
        }),
        _ => None,
    };
    FieldError { attr: field.map(str::to_owned).or(fault.attr), ..fault }
}

#[cfg(all(test, feature = "ssr"))]
mod tests;
