//! Events: which of them satisfy WHERE, and the values of expressions for each.
//!
//! What belongs here: reading columns when expressions need them, and only of the rows that
//! are left. What does not: what is made of the rows (`stage`).

use std::ops::Range;
use std::sync::Arc;

use uuid::Uuid;
use weir_json::Members;
use weir_query::{Expression, Field, QueryInput, Select, Value, WorkLimit};
use weir_questions::evaluate::{PropertyValue, SESSION_ID};
use weir_questions::query::{FilterGroup, Scope};
use weir_segments::{Bits, ColumnName, NONE};

use super::Context;
use super::entities::{Entities, Properties};
use super::plan::{Coded, Conditions, Needed, intersected};
use super::sort::{Sorted, Tie, Top};
use super::stage::{Sink, Stage, Worker};
use super::value::{self, Owned};
use crate::batch::{Batch, Needs, TextColumn};
use crate::error::Result;
use crate::plan::{Plan, group_property};
use crate::property::PropertyColumn;
use crate::scan::scan;

/// Rows whose texts are in memory at the same time.
const CHUNK: usize = 4_096;
/// The newest events are looked for in the last three hours, then in four times as many, and
/// so on.
const FIRST_WINDOW: i64 = 3 * 3_600_000_000;
const WINDOWS: u32 = 8;

/// What is read of events.
struct Reading<'q, 'a> {
    plan: Plan,
    /// Conditions about one column with few values, which are evaluated once for each.
    tests: Vec<(Coded, &'q Expression)>,
    /// All other conditions.
    rest: Vec<&'q Expression>,
    for_rest: Needed,
    /// For groups, or for the order of rows.
    for_keys: Needed,
    /// For the columns of rows.
    for_items: Needed,
    entities: Entities<'a>,
}

/// What a thread has.
struct State<'s, 'q, 'a> {
    worker: Worker<'s, 'q>,
    sink: Sink<'a>,
    key: Vec<u8>,
}

/// Reads the events of a SELECT.
pub(super) fn feed<'a>(
    context: Context<'_, 'a>,
    select: &Select,
    stage: &Stage<'_, 'a>,
) -> Result<Sink<'a>> {
    let clock = context.clock();
    let conditions = Conditions::of(select, &clock);
    let filters = context.filters.filter(|_| select.takes_filters);
    let times = match filters {
        Some(filters) => intersected(&conditions.times, &filters.times),
        None => conditions.times.clone(),
    };
    let all = Scope::default();
    let scope = filters.map_or(&all, |filters| &filters.scope);
    let mut plan = Plan::new(scope, context.asked, vec![times.clone()])?;
    match &conditions.names {
        None => plan.keeps_all = true,
        Some(names) => {
            for name in names {
                plan.add(Some(name), &FilterGroup::default(), context.asked, "query")?;
            }
        }
    }
    let has_no_rows = times.is_empty() || conditions.names.is_some_and(|names| names.is_empty());
    if has_no_rows || stage.most == 0 {
        return Ok(stage.sink());
    }
    let (mut tests, mut rest) = (Vec::new(), Vec::new());
    let mut for_rest = Needed::default();
    for condition in conditions.rest {
        let mut needed = Needed::default();
        needed.add(condition, &mut plan);
        match needed.coded() {
            Some(coded) => tests.push((coded, condition)),
            None => {
                rest.push(condition);
                for_rest.add(condition, &mut plan);
            }
        }
    }
    let (mut for_keys, mut for_items) = (Needed::default(), Needed::default());
    if stage.is_grouped() {
        let arguments =
            stage.aggregates.iter().flat_map(|c| c.arguments.iter().chain(&c.condition));
        let keys = stage.groups.iter().chain(arguments);
        keys.for_each(|key| for_keys.add(key, &mut plan));
    } else {
        stage.order.iter().for_each(|key| for_keys.add(key, &mut plan));
        stage.items.iter().for_each(|item| for_items.add(item, &mut plan));
    }
    let entities = Entities::new(context.run, &[&for_rest, &for_keys, &for_items]);
    let mut reading = Reading { plan, tests, rest, for_rest, for_keys, for_items, entities };
    if !stage.is_newest_first() {
        return read(context, stage, &reading);
    }
    let mut all = stage.sink();
    for window in windows(&times, context.asked.now.micros()) {
        reading.plan.spans = vec![window];
        all.merge(read(context, stage, &reading)?)?;
        if matches!(&all, Sink::Top(top) if top.len() >= stage.most) {
            break;
        }
    }
    Ok(all)
}

/// Parts of a range, newest first.
fn windows(times: &Range<i64>, now: i64) -> Vec<Range<i64>> {
    let mut windows = Vec::new();
    let (mut end, mut length) = (times.end, FIRST_WINDOW);
    for _ in 0..WINDOWS {
        let start = now.saturating_sub(length);
        if start <= times.start {
            break;
        }
        if start < end {
            windows.push(start..end);
            end = start;
        }
        length = length.saturating_mul(4);
    }
    windows.push(times.start..end);
    windows
}

fn read<'a>(
    context: Context<'_, 'a>,
    stage: &Stage<'_, 'a>,
    reading: &Reading<'_, 'a>,
) -> Result<Sink<'a>> {
    let make = || State { worker: stage.worker(), sink: stage.sink(), key: Vec::new() };
    let states = scan(context.source, context.run, &reading.plan, make, |state, batch| {
        see(state, batch, reading)
    })?;
    Sink::merged(stage, states.into_iter().map(|state| state.sink).collect())
}

fn see<'a>(
    state: &mut State<'_, '_, 'a>,
    batch: &mut Batch<'_>,
    reading: &Reading<'_, 'a>,
) -> Result<()> {
    for (coded, condition) in &reading.tests {
        test(&mut state.worker, batch, reading, *coded, condition)?;
    }
    if !reading.rest.is_empty() {
        let mut passed = Bits::default();
        passed.reset(batch.rows());
        each_row(&mut state.worker, batch, reading, &reading.for_rest, |row, input| {
            let is_true = |c: &&Expression| c.evaluate(input).boolean() == Some(true);
            if reading.rest.iter().all(is_true) {
                passed.set(row);
            }
            Ok(())
        })?;
        batch.retain(&passed);
    }
    let stage = state.worker.stage;
    match &mut state.sink {
        Sink::Groups(groups) => {
            let key = &mut state.key;
            each_row(&mut state.worker, batch, reading, &reading.for_keys, |_, input| {
                stage.add_to_group(groups, key, input)
            })
        }
        Sink::Top(top) => {
            let mut found: Top<'_, usize> = stage.top(|_| 0);
            each_row(&mut state.worker, batch, reading, &reading.for_keys, |row, input| {
                let keys = stage.order.iter().map(|key| key.evaluate(input).into_owned());
                let keys: Vec<Owned> = keys.collect();
                let tie = input.tie();
                match top.is_behind(&keys, &tie) {
                    true => Ok(()),
                    false => found.push(Sorted { keys, tie, row }),
                }
            })?;
            // The columns of the rows that are left.
            let (mut rows, _memory) = found.into_rows();
            rows.sort_unstable_by_key(|row| row.row);
            let mut left = Bits::default();
            left.reset(batch.rows());
            rows.iter().for_each(|row| left.set(row.row));
            batch.retain(&left);
            let mut rows = rows.into_iter();
            each_row(&mut state.worker, batch, reading, &reading.for_items, |_, input| {
                let Some(Sorted { keys, tie, .. }) = rows.next() else { return Ok(()) };
                let items = stage.items.iter().map(|item| item.evaluate(input).into_owned());
                top.push(Sorted { keys, tie, row: items.collect() })
            })
        }
    }
}

/// Keeps the rows that satisfy a condition about one column, which is evaluated once for each
/// of its values.
fn test(
    worker: &mut Worker<'_, '_>,
    batch: &mut Batch<'_>,
    reading: &Reading<'_, '_>,
    coded: Coded,
    condition: &Expression,
) -> Result<()> {
    let (slots, names) = match coded {
        Coded::Name => (Vec::new(), true),
        Coded::Slot(slot) => (vec![slot], false),
    };
    batch.prepare(Needs { properties: &slots, names, ..Needs::default() })?;
    let columns = Columns::default();
    let mut passed = Bits::default();
    passed.reset(batch.rows());
    // By code; the last one is that of rows without a value.
    let mut known: Vec<Option<bool>> = Vec::new();
    for row in batch.kept().ones() {
        let code = match coded {
            Coded::Name => batch.name(row).map(|(code, _)| code as usize),
            Coded::Slot(slot) => match batch.property(slot) {
                Some(PropertyColumn::Codes { codes, values }) => {
                    let code = codes.get(row).copied().unwrap_or(NONE) as usize;
                    Some(code.min(values.len()))
                }
                _ => None,
            },
        };
        let before = code.and_then(|code| known.get(code).copied().flatten());
        let is_true = match before {
            Some(is_true) => is_true,
            None => {
                let work = WorkLimit::default();
                let input =
                    EventInput { worker, batch, reading, columns: &columns, place: 0, row, work };
                let is_true = condition.evaluate(&input).boolean() == Some(true);
                let EventInput { work, .. } = input;
                worker.worked(&work)?;
                if let Some(code) = code {
                    if known.len() <= code {
                        known.resize(code + 1, None);
                    }
                    known[code] = Some(is_true);
                }
                is_true
            }
        };
        if is_true {
            passed.set(row);
        }
    }
    batch.retain(&passed);
    Ok(())
}

/// Calls `see` with each kept row, whose columns have been read.
fn each_row(
    worker: &mut Worker<'_, '_>,
    batch: &mut Batch<'_>,
    reading: &Reading<'_, '_>,
    needed: &Needed,
    mut see: impl FnMut(usize, &EventInput<'_, '_, '_, '_, '_>) -> Result<()>,
) -> Result<()> {
    if batch.kept().is_empty() {
        return Ok(());
    }
    batch.prepare(Needs {
        properties: &needed.slots,
        persons: needed.has_persons(),
        names: needed.names,
        arrivals: !worker.stage.is_grouped(),
    })?;
    let rows = batch.kept().ones().filter_map(|row| u32::try_from(row).ok());
    let rows: Vec<u32> = rows.collect();
    for chunk in rows.chunks(CHUNK) {
        worker.check()?;
        let columns = Columns::read(worker, batch, reading, needed, chunk)?;
        for (place, row) in chunk.iter().enumerate() {
            let (row, work) = (*row as usize, WorkLimit::default());
            let input = EventInput { worker, batch, reading, columns: &columns, place, row, work };
            see(row, &input)?;
            let EventInput { work, .. } = input;
            worker.worked(&work)?;
        }
    }
    Ok(())
}

/// What is read of some rows, beside the columns of their batch, in the order of the rows.
#[derive(Default)]
struct Columns<'x> {
    uuids: Option<TextColumn<'x>>,
    distinct_ids: Option<TextColumn<'x>>,
    element_chains: Option<TextColumn<'x>>,
    properties: Option<TextColumn<'x>>,
    received: Vec<i64>,
    person_ids: Vec<Uuid>,
    of_persons: Vec<Properties>,
    /// By the number of the group type.
    of_groups: Vec<Vec<Properties>>,
}

impl<'x> Columns<'x> {
    fn read(
        worker: &Worker<'_, '_>,
        batch: &mut Batch<'x>,
        reading: &Reading<'_, '_>,
        needed: &Needed,
        rows: &[u32],
    ) -> Result<Self> {
        let mut columns = Self::default();
        let mut texts = |is_needed: bool, column: ColumnName| match is_needed {
            true => batch.texts(&column, rows).map(Some),
            false => Ok(None),
        };
        columns.uuids = texts(needed.uuid, ColumnName::Uuid)?;
        columns.distinct_ids = texts(needed.distinct_id, ColumnName::DistinctId)?;
        columns.element_chains = texts(needed.elements_chain, ColumnName::ElementsChain)?;
        columns.properties = texts(needed.properties, ColumnName::Properties)?;
        if needed.received_at {
            columns.received = batch.received(rows)?;
        }
        let source = worker.stage.context.source;
        if needed.has_persons() {
            let persons: Vec<u32> = rows.iter().map(|row| batch.person(*row as usize)).collect();
            if needed.person_id {
                source.person_ids(&persons, &mut columns.person_ids);
            }
            if needed.of_person.is_some() {
                columns.of_persons = reading.entities.persons(source, &persons)?;
            }
        }
        for (index, wanted) in (0..).zip(&needed.of_groups) {
            let mut found = Vec::new();
            if wanted.is_some() {
                let slot = slot(&reading.plan, &group_property(index));
                let key = |row: &u32| {
                    let column = batch.property(slot?)?;
                    crate::texts::name(column.value(*row as usize))
                };
                let keys: Vec<Option<String>> = rows.iter().map(key).collect();
                found = reading.entities.groups(source, index, &keys)?;
            }
            columns.of_groups.push(found);
        }
        Ok(columns)
    }
}

fn slot(plan: &Plan, property: &str) -> Option<usize> {
    plan.properties.iter().position(|name| name == property)
}

/// An event, as expressions see it.
struct EventInput<'b, 'x, 's, 'q, 'a> {
    worker: &'b Worker<'s, 'q>,
    batch: &'b Batch<'x>,
    reading: &'b Reading<'q, 'a>,
    columns: &'b Columns<'x>,
    /// Its place among the rows of the columns.
    place: usize,
    row: usize,
    work: WorkLimit,
}

impl EventInput<'_, '_, '_, '_, '_> {
    fn time(&self) -> i64 {
        self.batch.times().get(self.row).copied().unwrap_or_default()
    }

    /// Newest first. Events of the same time and arrival number are in different partitions.
    fn tie(&self) -> Tie {
        let arrival = i64::try_from(self.batch.arrival(self.row)).unwrap_or(i64::MAX);
        Tie::Event(-self.time(), -arrival, self.batch.part() as u64)
    }

    fn of_slot(&self, property: &str) -> PropertyValue<'_> {
        let column = slot(&self.reading.plan, property).and_then(|slot| self.batch.property(slot));
        column.map_or(PropertyValue::Missing, |column| column.value(self.row))
    }

    fn text<'t>(&'t self, column: &'t Option<TextColumn<'_>>) -> &'t str {
        column.as_ref().map_or("", |column| column.at(self.place))
    }

    /// The properties of its person or group.
    fn record(&self, field: Field) -> Option<&Arc<str>> {
        match field {
            Field::GroupProperties(index) => self.columns.of_groups.get(usize::from(index))?,
            _ => &self.columns.of_persons,
        }
        .get(self.place)?
        .as_ref()
    }
}

impl QueryInput for EventInput<'_, '_, '_, '_, '_> {
    fn field(&self, field: Field) -> Value<'_> {
        match field {
            Field::TeamId => Value::Integer(self.worker.stage.context.source.project()),
            Field::Timestamp => Value::Timestamp(self.time()),
            Field::Event => {
                let name = self.batch.name(self.row).map(|(_, name)| name).unwrap_or_default();
                Value::Text(String::from_utf8_lossy(name))
            }
            Field::DistinctId => Value::Text(self.text(&self.columns.distinct_ids).into()),
            Field::Uuid => {
                let uuid = Uuid::try_parse(self.text(&self.columns.uuids));
                uuid.map_or(Value::Null, Value::Uuid)
            }
            Field::CreatedAt => {
                let received = self.columns.received.get(self.place);
                received.map_or(Value::Null, |micros| Value::Timestamp(*micros))
            }
            Field::ElementsChain => Value::Text(self.text(&self.columns.element_chains).into()),
            Field::PersonId => {
                let id = self.columns.person_ids.get(self.place);
                id.map_or(Value::Null, |id| Value::Uuid(*id))
            }
            Field::Properties => Value::Json(self.text(&self.columns.properties).into()),
            Field::SessionId => {
                let id = self.of_slot(SESSION_ID).text().filter(|id| !id.is_empty());
                id.map_or(Value::Null, Value::Text)
            }
            Field::PersonProperties | Field::GroupProperties(_) => self
                .record(field)
                .map_or(Value::Null, |properties| Value::Json((&**properties).into())),
        }
    }

    fn property(&self, field: Field, path: &[String]) -> Value<'_> {
        if field != Field::Properties {
            let json = self.record(field).and_then(|record| Members::of(record).at(path));
            return json.map_or(Value::Null, value::of_json);
        }
        let Some((name, rest)) = path.split_first() else { return Value::Null };
        match (self.of_slot(name), rest.is_empty()) {
            (found, true) => value::of_property(found),
            (PropertyValue::Json(json), false) => {
                Members::of(json).at(rest).map_or(Value::Null, value::of_json)
            }
            _ => Value::Null,
        }
    }

    fn work_limit(&self) -> &WorkLimit {
        &self.work
    }

    super::worker_methods!();
}
