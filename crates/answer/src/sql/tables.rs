//! Persons, groups, and the rows of a subquery.

use std::ops::ControlFlow;

use weir_json::{Members, push_string};
use weir_query::{Field, QueryInput, Value, WorkLimit};

use super::sort::Tie;
use super::source::{GroupRow, PersonRow};
use super::stage::{Rows, Sink, Stage, Worker};
use super::value::{self, borrowed};
use crate::error::Result;

/// Reads the persons.
pub(super) fn persons<'a>(stage: &Stage<'_, 'a>) -> Result<Sink<'a>> {
    let mut feeder = Feeder::new(stage);
    let mut failed = Ok(());
    stage.context.source.each_person(&mut |person: PersonRow<'_>| {
        let mut ids = String::from("[");
        for (at, id) in person.distinct_ids.iter().enumerate() {
            if at > 0 {
                ids.push(',');
            }
            push_string(&mut ids, id);
        }
        ids.push(']');
        let columns = [
            Value::Uuid(person.id),
            Value::Timestamp(person.created_at),
            Value::Json(person.properties.into()),
            Value::Boolean(person.is_identified),
            Value::Json(ids.into()),
        ];
        failed = feeder.add(&columns, || Tie::Values(vec![Value::Uuid(person.id)]));
        if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    failed?;
    Ok(feeder.sink)
}

/// Reads the groups.
pub(super) fn groups<'a>(stage: &Stage<'_, 'a>) -> Result<Sink<'a>> {
    let mut feeder = Feeder::new(stage);
    let mut failed = Ok(());
    stage.context.source.each_group(&mut |group: GroupRow<'_>| {
        let columns = [
            Value::Integer(group.index.into()),
            Value::Text(group.key.into()),
            Value::Json(group.properties.into()),
            Value::Timestamp(group.created_at),
        ];
        let tie = || {
            let key = Value::Text(group.key.to_owned().into());
            Tie::Values(vec![Value::Integer(group.index.into()), key])
        };
        failed = feeder.add(&columns, tie);
        if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    failed?;
    Ok(feeder.sink)
}

/// Reads the rows of a subquery, which have an order.
pub(super) fn rows<'a>(stage: &Stage<'_, 'a>, rows: &Rows<'_>) -> Result<Sink<'a>> {
    let mut feeder = Feeder::new(stage);
    for (number, row) in (0..).zip(&rows.rows) {
        feeder.add(row, || Tie::Number(number))?;
    }
    Ok(feeder.sink)
}

/// Adds rows of columns.
pub(super) struct Feeder<'s, 'q, 'a> {
    worker: Worker<'s, 'q>,
    pub(super) sink: Sink<'a>,
    key: Vec<u8>,
}

impl<'s, 'q, 'a: 's> Feeder<'s, 'q, 'a> {
    pub(super) fn new(stage: &'s Stage<'q, 'a>) -> Self {
        Self { worker: stage.worker(), sink: stage.sink(), key: Vec::new() }
    }
}

impl Feeder<'_, '_, '_> {
    /// Adds a row. `tie` decides between it and rows with equal values of ORDER BY.
    pub(super) fn add(&mut self, columns: &[Value<'_>], tie: impl FnOnce() -> Tie) -> Result<()> {
        let row = TableInput { columns, worker: &self.worker, work: WorkLimit::default() };
        self.worker.stage.add_row(&mut self.sink, &mut self.key, &row, tie())?;
        let TableInput { work, .. } = row;
        self.worker.worked(&work)
    }
}

/// A row of columns, as expressions see it.
struct TableInput<'r, 's, 'q> {
    columns: &'r [Value<'r>],
    worker: &'r Worker<'s, 'q>,
    work: WorkLimit,
}

impl QueryInput for TableInput<'_, '_, '_> {
    fn field(&self, _field: Field) -> Value<'_> {
        Value::Null
    }

    fn property(&self, _field: Field, _path: &[String]) -> Value<'_> {
        Value::Null
    }

    fn work_limit(&self) -> &WorkLimit {
        &self.work
    }

    fn column(&self, at: usize) -> Value<'_> {
        self.columns.get(at).map_or(Value::Null, borrowed)
    }

    fn column_property(&self, at: usize, path: &[String]) -> Value<'_> {
        match self.columns.get(at) {
            Some(Value::Json(json) | Value::Text(json)) => {
                Members::of(json).at(path).map_or(Value::Null, value::of_json)
            }
            _ => Value::Null,
        }
    }

    super::worker_methods!();
}
