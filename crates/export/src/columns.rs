//! The columns of an export, and the rows made of events and persons (EXP-12, EXP-14).
//!
//! What belongs here: sources of columns. What does not: the columns of each destination
//! (its own module; `persons`), the query language (`weir-query`).

use std::sync::Arc;

use weir_model::ProjectId;
use weir_query::{Expression, Field, Query, QueryInput as _, Value, WorkLimitReached};

use crate::destination::Altered;
use crate::event_input::EventInput;
use crate::rows::{Cell, Column, EventWithPerson, Kind, PersonRecord};

/// Upper bound of bytes in a row. Without a query, no event has this many.
const ROW_BYTES: usize = 8 << 20;

/// The row of an event.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltRow {
    /// One cell for each column. It has the kind of the column or is null.
    pub cells: Vec<Cell>,
    /// The first value that was omitted because the row was too large.
    pub altered: Option<Altered>,
}

/// The source of a column's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// The event's id.
    Uuid,
    /// Name of the event.
    Event,
    /// The distinct id of the event.
    DistinctId,
    /// Number of the project.
    TeamId,
    /// Time of the event.
    Timestamp,
    /// When the event was accepted.
    InsertedAt,
    /// Properties of the event.
    Properties,
    /// `properties.$set`, or null.
    Set,
    /// `properties.$set_once`, or null.
    SetOnce,
    /// `properties.$ip`, or null.
    Ip,
    /// The chain of elements as text, or an empty text.
    ElementsChain,
    /// The person's id, or null.
    PersonId,
    /// The person's properties, or null.
    PersonProperties,
    /// An empty text, for receivers that expect the column.
    Empty,
    /// When the row was exported.
    Now,
    /// The version of a person's record. This source and the following ones exist for
    /// persons only.
    PersonVersion,
    /// When a person was first seen.
    PersonCreatedAt,
    /// When the newest event of the person in this run was accepted.
    PersonSeenAt,
    /// Whether the person was deleted. It is always false.
    PersonIsDeleted,
    /// A column of the query, by number.
    Query(usize),
}

/// The columns of an export, and the condition on its events.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    /// The columns that the destination receives.
    pub columns: Vec<Column>,
    /// Where each column's value comes from, in the same order.
    sources: Vec<Source>,
    /// The query that [`Source::Query`] refers to.
    query: Option<Arc<Query>>,
}

impl Columns {
    /// The columns of a destination.
    pub fn of(columns: &[(&str, Kind, Source)]) -> Self {
        let named = |(name, kind, _): &(&str, Kind, Source)| Column {
            name: (*name).to_owned(),
            kind: *kind,
        };
        Self {
            columns: columns.iter().map(named).collect(),
            sources: columns.iter().map(|(_, _, source)| source.clone()).collect(),
            query: None,
        }
    }

    /// The columns of a query.
    pub fn of_query(query: Arc<Query>) -> Self {
        let named = |column: &weir_query::Column| Column {
            name: column.alias.clone(),
            kind: of_query(column.kind()),
        };
        Self {
            columns: query.columns.iter().map(named).collect(),
            sources: (0..query.columns.len()).map(Source::Query).collect(),
            query: Some(query),
        }
    }

    /// The row of an event, or `None` if the export does not include the event. `now` is
    /// in microseconds since 1970. The properties are parsed once, and only if needed.
    pub fn row_if_included(
        &self,
        project: ProjectId,
        now: i64,
        event_with_person: &EventWithPerson,
    ) -> Result<Option<BuiltRow>, WorkLimitReached> {
        let input = EventInput::new(project, event_with_person);
        let is_included = self.query.as_ref().map_or(Ok(true), |query| query.matches(&input))?;
        Ok(is_included.then(|| self.build_row(now, &input, event_with_person)))
    }

    /// The row of a distinct id and its person. Columns for events only are null.
    pub fn row_of_person(&self, project: ProjectId, record: PersonRecord<'_>) -> Vec<Cell> {
        let PersonRecord { distinct_id, person, version, seen_at } = record;
        let value = |source: &Source| match source {
            Source::TeamId => Value::Integer(project.0),
            Source::DistinctId => Value::Text(distinct_id.into()),
            Source::PersonId => Value::Uuid(person.id.0),
            Source::PersonProperties => Value::Json(person.properties.as_str().into()),
            Source::PersonVersion => Value::Integer(version),
            Source::PersonCreatedAt => Value::Timestamp(person.created_at.micros()),
            Source::PersonSeenAt => Value::Timestamp(seen_at),
            Source::PersonIsDeleted => Value::Boolean(false),
            _ => Value::Null,
        };
        let made = |(column, source): (&Column, &Source)| fit(value(source), column.kind);
        self.columns.iter().zip(&self.sources).map(made).collect()
    }

    /// The index of the column that has this field of the event unchanged.
    pub fn position_of(&self, field: Field) -> Option<usize> {
        self.sources.iter().position(|source| self.field_of(source) == Some(field))
    }

    /// Whether the rows or the condition use the person of an event.
    pub fn needs_person(&self) -> bool {
        let fields = [Field::PersonId, Field::PersonProperties];
        self.sources
            .iter()
            .any(|source| matches!(source, Source::PersonId | Source::PersonProperties))
            || self
                .query
                .as_ref()
                .is_some_and(|query| fields.iter().any(|field| query.mentions(*field)))
    }

    fn field_of(&self, source: &Source) -> Option<Field> {
        Some(match source {
            Source::Uuid => Field::Uuid,
            Source::Event => Field::Event,
            Source::DistinctId => Field::DistinctId,
            Source::TeamId => Field::TeamId,
            Source::Timestamp => Field::Timestamp,
            Source::InsertedAt => Field::CreatedAt,
            Source::Properties => Field::Properties,
            Source::PersonId => Field::PersonId,
            Source::PersonProperties => Field::PersonProperties,
            Source::ElementsChain => Field::ElementsChain,
            Source::Set
            | Source::SetOnce
            | Source::Ip
            | Source::Empty
            | Source::Now
            | Source::PersonVersion
            | Source::PersonCreatedAt
            | Source::PersonSeenAt
            | Source::PersonIsDeleted => return None,
            Source::Query(number) => match self.query.as_ref()?.columns.get(*number)?.expression {
                Expression::Field(field) => field,
                _ => return None,
            },
        })
    }

    fn build_row(
        &self,
        now: i64,
        input: &EventInput<'_>,
        event_with_person: &EventWithPerson,
    ) -> BuiltRow {
        let (mut cells, mut altered) = (Vec::with_capacity(self.columns.len()), None);
        let mut bytes = 0;
        for (column, source) in self.columns.iter().zip(&self.sources) {
            let mut cell = fit(self.value(source, now, input, event_with_person), column.kind);
            let what = if bytes + cell.size() > ROW_BYTES {
                cell = Cell::Null;
                Some("it would make the row larger than 8 MiB and was omitted")
            } else if cell == Cell::Null && input.work_limit().is_used_up() {
                Some("it takes too long to be computed and was omitted")
            } else {
                None
            };
            bytes += cell.size();
            cells.push(cell);
            if altered.is_none() {
                let (uuid, column) = (Some(event_with_person.event.uuid), &column.name);
                altered = what.map(|what| Altered { uuid, column: column.clone(), what });
            }
        }
        BuiltRow { cells, altered }
    }

    fn value<'a>(
        &'a self,
        source: &Source,
        now: i64,
        input: &'a EventInput<'_>,
        event_with_person: &'a EventWithPerson,
    ) -> Value<'a> {
        // A property that is null counts as absent.
        let json = |name: &str| {
            let json = input.property_json(name).filter(|json| *json != "null");
            json.map_or(Value::Null, |json| Value::Json(json.into()))
        };
        match source {
            Source::Uuid => input.field(Field::Uuid),
            Source::Event => input.field(Field::Event),
            Source::DistinctId => input.field(Field::DistinctId),
            Source::TeamId => input.field(Field::TeamId),
            Source::Timestamp => input.field(Field::Timestamp),
            Source::InsertedAt => input.field(Field::CreatedAt),
            Source::Properties => input.field(Field::Properties),
            Source::PersonId => input.field(Field::PersonId),
            Source::PersonProperties => input.field(Field::PersonProperties),
            Source::Set => json("$set"),
            Source::SetOnce => json("$set_once"),
            Source::Ip => match input.property_json("$ip").map(Value::of_json) {
                Some(Value::Text(ip)) if !ip.is_empty() => Value::Text(ip),
                _ => Value::Null,
            },
            Source::ElementsChain => {
                Value::Text(event_with_person.event.elements_chain.as_str().into())
            }
            Source::Empty => Value::Text("".into()),
            Source::Now => Value::Timestamp(now),
            Source::PersonVersion
            | Source::PersonCreatedAt
            | Source::PersonSeenAt
            | Source::PersonIsDeleted => Value::Null,
            Source::Query(number) => {
                let column = self.query.as_ref().and_then(|query| query.columns.get(*number));
                column.map_or(Value::Null, |column| column.expression.evaluate(input))
            }
        }
    }
}

fn of_query(kind: weir_query::Kind) -> Kind {
    match kind {
        weir_query::Kind::Text => Kind::Text,
        weir_query::Kind::Json => Kind::Json,
        weir_query::Kind::Integer => Kind::Integer,
        weir_query::Kind::Float => Kind::Float,
        weir_query::Kind::Boolean => Kind::Boolean,
        weir_query::Kind::Timestamp => Kind::Timestamp,
        weir_query::Kind::Uuid => Kind::Uuid,
    }
}

/// A value as a cell of this kind. Null if the value does not have the kind.
fn fit(value: Value<'_>, kind: Kind) -> Cell {
    if value.is_null() {
        return Cell::Null;
    }
    let cell = match kind {
        Kind::Text => value.into_text().map(|text| Cell::Text(text.into_owned())),
        Kind::Json => value.into_json().map(|json| Cell::Json(json.into_owned())),
        Kind::Integer => value.integer().map(Cell::Integer),
        Kind::Float => value.float().map(Cell::Float),
        Kind::Boolean => value.boolean().map(Cell::Boolean),
        Kind::Timestamp => value.timestamp().map(Cell::Timestamp),
        Kind::Uuid => value.uuid().map(Cell::Uuid),
    };
    cell.unwrap_or(Cell::Null)
}

#[cfg(test)]
mod tests;
