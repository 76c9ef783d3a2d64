//! Lists of events (QRY-52).
//!
//! What belongs here: an `EventsQuery` as a SELECT. What does not: running it.

use std::ops::Range;

use serde_json::{Map, Value as Json};
use uuid::Uuid;
use weir_model::Timestamp;
use weir_model::errors::FieldError;
use weir_query::{
    Comparison, Expression, Field, FragmentError, Fragments, Literal, SelectedFragments,
    parse_fragments,
};
use weir_questions::query::{EventsQuery, Scope};
use weir_questions::results::EventsResult;
use weir_questions::time::DateText;

use super::plan::ALWAYS;
use super::{Context, Filters, RowSource, add_condition, result, sql_fault, times_of, value};
use crate::Asked;
use crate::error::Result;
use crate::run::Run;

/// The column with all of an event.
const ALL: &str = "*";
/// What it has.
const ALL_FIELDS: [Field; 8] = [
    Field::Uuid,
    Field::Event,
    Field::Properties,
    Field::Timestamp,
    Field::TeamId,
    Field::DistinctId,
    Field::ElementsChain,
    Field::CreatedAt,
];

/// The times of the events that a list of events needs.
///
/// # Errors
/// [`AnswerError::Field`](crate::AnswerError::Field): the question cannot be used.
pub fn events_times(asked: &Asked<'_>, query: &EventsQuery) -> Result<Vec<Range<i64>>> {
    let list = List::new(asked, query)?;
    Ok(times_of(asked, &list.selected.select, &list.filters))
}

/// Answers a question for events.
///
/// # Errors
/// See [`AnswerError`](crate::AnswerError). A fault of an expression names its field, line and
/// column.
pub fn events(
    source: &dyn RowSource,
    run: &Run<'_>,
    asked: &Asked<'_>,
    query: &EventsQuery,
) -> Result<EventsResult> {
    let list = List::new(asked, query)?;
    let select = &list.selected.select;
    let context = Context { source, run, asked, filters: Some(&list.filters) };
    let found = result(context, select)?;
    let kinds = select.kinds();
    let types = list.columns.iter().map(|column| match column {
        Column::All => "Tuple".to_owned(),
        Column::Text(at) => {
            let place = list.selected.places.get(*at);
            let kind = place.and_then(|place| kinds.get(*place));
            kind.map_or("String", |kind| value::type_name(*kind)).to_owned()
        }
    });
    Ok(EventsResult {
        columns: query.select.clone(),
        types: types.collect(),
        results: found.rows.iter().map(|row| list.row(row)).collect(),
        has_more: found.has_more,
        limit: query.limit,
        offset: query.offset,
        hogql: select.normal_form(),
    })
}

/// A column of the question.
#[derive(Debug, Clone, Copy)]
enum Column {
    /// All of the event; its fields are the first columns of the SELECT.
    All,
    /// The place of its text.
    Text(usize),
}

/// A question for events as a SELECT.
struct List {
    selected: SelectedFragments,
    columns: Vec<Column>,
    filters: Filters,
}

impl List {
    fn new(asked: &Asked<'_>, query: &EventsQuery) -> Result<Self> {
        let has_all = query.select.iter().any(|text| text.trim() == ALL);
        let mut texts: Vec<String> = match has_all {
            true => ALL_FIELDS.iter().map(|field| field.name().to_owned()).collect(),
            false => Vec::new(),
        };
        let before = texts.len();
        let mut columns = Vec::new();
        // The column of the question for each text.
        let mut places = vec![0; before];
        for (place, text) in query.select.iter().enumerate() {
            if text.trim() == ALL {
                columns.push(Column::All);
                continue;
            }
            columns.push(Column::Text(texts.len()));
            places.push(place);
            texts.push(text.clone());
        }
        let parsed = parse_fragments(&Fragments {
            select: &texts,
            conditions: &query.conditions,
            order: &query.order,
            limit: query.limit,
            offset: query.offset,
        });
        let mut selected = parsed.map_err(|fault| match fault {
            FragmentError::Select(at, fault) => {
                let at = places.get(at).copied().unwrap_or_default();
                sql_fault(&format!("select__{at}"), &fault)
            }
            FragmentError::Condition(at, fault) => sql_fault(&format!("where__{at}"), &fault),
            FragmentError::Order(at, fault) => sql_fault(&format!("orderBy__{at}"), &fault),
        })?;
        let select = &mut selected.select;
        let compare = |field, comparison, text: String| {
            let (field, text) =
                (Expression::Field(field), Expression::Literal(Literal::Text(text)));
            Expression::Compare(comparison, Box::new(field), Box::new(text))
        };
        if let Some(event) = &query.event {
            add_condition(select, compare(Field::Event, Comparison::Equal, event.clone()));
        }
        if let Some(person) = &query.person {
            let id = Uuid::try_parse(person).map_err(|_| {
                FieldError::new("personId", "invalid_input", "Must be a valid UUID.")
            })?;
            add_condition(select, compare(Field::PersonId, Comparison::Equal, id.to_string()));
        }
        for (date, name, comparison) in [
            (query.before, "before", Comparison::Less),
            (query.after, "after", Comparison::Greater),
        ] {
            let Some(date) = date.filter(|date| *date != DateText::All) else { continue };
            let span = asked.calendar.span_of(date, asked.now).ok_or_else(|| {
                FieldError::new(name, "invalid_input", "The date is outside of the calendar.")
            })?;
            let time = Timestamp::from_micros(span.start).to_string();
            add_condition(select, compare(Field::Timestamp, comparison, time));
        }
        let scope = Scope {
            properties: query.properties.clone(),
            filter_test_accounts: query.filter_test_accounts,
            ..Scope::default()
        };
        // Filters have no form in SQL yet.
        select.takes_filters = scope != Scope::default();
        Ok(Self { selected, columns, filters: Filters { scope, times: ALWAYS } })
    }

    /// A row in the columns of the question.
    fn row(&self, row: &[Json]) -> Vec<Json> {
        let of_text = |text: usize| {
            let place = self.selected.places.get(text);
            place.and_then(|place| row.get(*place)).cloned().unwrap_or(Json::Null)
        };
        let all = || {
            let mut event = Map::new();
            for (text, field) in ALL_FIELDS.iter().enumerate() {
                let value = match (field, of_text(text)) {
                    (Field::Properties, Json::String(json)) => {
                        serde_json::from_str(&json).unwrap_or(Json::Null)
                    }
                    (_, value) => value,
                };
                event.insert(field.name().to_owned(), value);
            }
            Json::Object(event)
        };
        let columns = self.columns.iter().map(|column| match column {
            Column::All => all(),
            Column::Text(text) => of_text(*text),
        });
        columns.collect()
    }
}
