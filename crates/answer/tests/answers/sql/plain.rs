//! The plain evaluation of a SELECT.

use std::cmp::Ordering;

use serde_json::Value as Json;
use uuid::Uuid;
use weir_query::{
    Aggregate, AggregateCall, Expression, Field, Kind, QueryInput, Select, Source, Table, TimeUnit,
    Value, WorkLimit, parse_select,
};
use weir_questions::evaluate::{ExactSum, Numeric, PropertyValue, percentile};
use weir_questions::query::HogQLQuery;
use weir_questions::time::DateUnit;

use crate::Case;
use crate::world::{GROUPS, PROJECT, Person};

type Owned = Value<'static>;

/// The rows of the answer, and whether there are more.
pub(super) fn answer(case: &Case, query: &HogQLQuery) -> (Vec<Vec<Json>>, bool) {
    let select = parse_select(&query.query, &query.values).unwrap();
    let mut rows = rows(case, &select);
    let limit = select.limit.unwrap() as usize;
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let kinds = select.kinds();
    let json = |row: Vec<Owned>| {
        row.into_iter().zip(&kinds).map(|(value, kind)| shown(value, *kind)).collect()
    };
    (rows.into_iter().map(json).collect(), has_more)
}

fn shown(value: Owned, kind: Kind) -> Json {
    match (value, kind) {
        (Value::Null, _) => Json::Null,
        (Value::Json(json), Kind::Json) if json.starts_with('[') => {
            serde_json::from_str(&json).unwrap()
        }
        (Value::Timestamp(micros), _) => {
            weir_model::Timestamp::from_micros(micros).to_string().into()
        }
        (Value::Integer(number), Kind::Integer | Kind::Float) => number.into(),
        (Value::Float(number), Kind::Integer | Kind::Float) => {
            match number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0 {
                true => (number as i64).into(),
                false => number.into(),
            }
        }
        (Value::Boolean(flag), Kind::Boolean) => flag.into(),
        (value, _) => value.into_text().unwrap().into_owned().into(),
    }
}

/// What is read, as expressions see it.
#[derive(Default)]
struct Row<'c> {
    case: Option<&'c Case>,
    event: Option<(&'c weir_segments::OwnedEvent, &'c str)>,
    columns: Vec<Owned>,
    keys: Vec<Owned>,
    aggregates: Vec<Owned>,
    sets: &'c [Vec<Owned>],
    work: WorkLimit,
}

impl Row<'_> {
    fn record(&self) -> Option<Person> {
        self.case?.world.records().get(self.event?.1).cloned()
    }

    fn property_of(&self, name: &str) -> Owned {
        let object: Json = serde_json::from_str(&self.event.unwrap().0.properties).unwrap();
        of_json(object.get(name))
    }

    fn group_text(&self, index: u8) -> Option<&'static str> {
        let key = self.property_of(&format!("$group_{index}")).into_text()?;
        let is_it = |group: &&(u8, &str, &str)| group.0 == index && group.1 == key;
        GROUPS.iter().find(is_it).map(|group| group.2)
    }
}

/// The value of a property: numbers by their shortest text.
fn of_json(json: Option<&Json>) -> Owned {
    match json {
        None | Some(Json::Null) => Value::Null,
        Some(Json::String(text)) => Value::Text(text.clone().into()),
        Some(Json::Number(number)) => {
            Value::Json(Numeric::of_json(number).unwrap().to_string().into())
        }
        Some(json) => Value::Json(json.to_string().into()),
    }
}

fn at_path(text: &str, path: &[String]) -> Owned {
    let object: Json = serde_json::from_str(text).unwrap();
    let found = path.iter().try_fold(&object, |json, name| json.get(name));
    of_json(found)
}

impl QueryInput for Row<'_> {
    fn field(&self, field: Field) -> Value<'_> {
        let Some((event, person)) = self.event else { return Value::Null };
        match field {
            Field::TeamId => Value::Integer(PROJECT),
            Field::Timestamp => Value::Timestamp(event.timestamp),
            Field::Event => Value::Text(event.event.as_str().into()),
            Field::DistinctId => Value::Text(event.distinct_id.as_str().into()),
            Field::Uuid => Value::Uuid(event.uuid),
            Field::CreatedAt => Value::Timestamp(event.received_at),
            Field::ElementsChain => Value::Text(event.elements_chain.as_str().into()),
            Field::PersonId => Value::Uuid(crate::world::World::person_id(person)),
            Field::Properties => Value::Json(event.properties.as_str().into()),
            Field::PersonProperties => {
                self.record().map_or(Value::Null, |record| Value::Json(record.properties.into()))
            }
            Field::SessionId => match self.property_of("$session_id").into_text() {
                Some(id) if !id.is_empty() => Value::Text(id.into_owned().into()),
                _ => Value::Null,
            },
            Field::GroupProperties(index) => {
                self.group_text(index).map_or(Value::Null, |text| Value::Json(text.into()))
            }
        }
    }

    fn property(&self, field: Field, path: &[String]) -> Value<'_> {
        match field {
            Field::Properties => at_path(&self.event.unwrap().0.properties, path),
            Field::PersonProperties => {
                self.record().map_or(Value::Null, |record| at_path(&record.properties, path))
            }
            Field::GroupProperties(index) => {
                self.group_text(index).map_or(Value::Null, |text| at_path(text, path))
            }
            _ => Value::Null,
        }
    }

    fn work_limit(&self) -> &WorkLimit {
        &self.work
    }

    fn column(&self, at: usize) -> Value<'_> {
        self.columns[at].clone()
    }

    fn column_property(&self, at: usize, path: &[String]) -> Value<'_> {
        match &self.columns[at] {
            Value::Json(json) => at_path(json, path),
            _ => Value::Null,
        }
    }

    fn key(&self, at: usize) -> Value<'_> {
        self.keys[at].clone()
    }

    fn aggregate(&self, at: usize) -> Value<'_> {
        self.aggregates[at].clone()
    }

    fn set_has(&self, set: usize, value: &Value<'_>) -> Option<bool> {
        Some(self.sets[set].iter().any(|member| same(member, value)))
    }

    fn now(&self) -> Option<i64> {
        Some(self.case?.now.micros())
    }

    fn local(&self, micros: i64) -> Option<i64> {
        self.case?.calendar.clock(micros)
    }

    fn instant(&self, local: i64) -> Option<i64> {
        self.case?.calendar.at_clock(local)
    }

    fn start_of(&self, unit: TimeUnit, micros: i64) -> Option<i64> {
        Some(self.case?.calendar.unit(date_unit(unit), micros)?.start)
    }

    fn shifted(&self, micros: i64, count: i64, unit: TimeUnit) -> Option<i64> {
        self.case?.calendar.moved_by(micros, count, date_unit(unit))
    }
}

fn date_unit(unit: TimeUnit) -> DateUnit {
    match unit {
        TimeUnit::Second => unreachable!(),
        TimeUnit::Minute => DateUnit::Minute,
        TimeUnit::Hour => DateUnit::Hour,
        TimeUnit::Day => DateUnit::Day,
        TimeUnit::Week => DateUnit::Week,
        TimeUnit::Month => DateUnit::Month,
        TimeUnit::Quarter => DateUnit::Quarter,
        TimeUnit::Year => DateUnit::Year,
    }
}

/// Whether two values are one in a group or a set.
fn same(left: &Value<'_>, right: &Value<'_>) -> bool {
    let text = |value: &Value<'_>| match value {
        Value::Float(number) if *number == 0.0 => Some("0".to_owned()),
        value => value.clone().into_text().map(|text| text.into_owned()),
    };
    text(left) == text(right)
}

/// The order of values.
fn order(left: &Owned, right: &Owned) -> Ordering {
    let rank = |value: &Owned| -> (u8, f64, i128, String) {
        let text = value.clone().into_text().unwrap_or_default().into_owned();
        let number = |number: f64, text: String| (0, number, 0, text);
        match value {
            Value::Integer(whole) => number(*whole as f64, text),
            Value::Float(float) => number(*float, text),
            Value::Json(json) => match json.parse::<f64>() {
                Ok(float) => number(float, text),
                Err(_) if json == "false" => (1, 0.0, 0, String::new()),
                Err(_) if json == "true" => (1, 0.0, 1, String::new()),
                Err(_) => (4, 0.0, 0, text),
            },
            Value::Boolean(flag) => (1, 0.0, (*flag).into(), String::new()),
            Value::Timestamp(micros) => (2, 0.0, (*micros).into(), String::new()),
            Value::Date(days) => (2, 0.0, i128::from(*days) * 86_400_000_000, String::new()),
            Value::Uuid(_) => (3, 0.0, 0, text),
            Value::Text(_) => (4, 0.0, 0, text),
            Value::Null => (5, 0.0, 0, String::new()),
        }
    };
    let (left, right) = (rank(left), rank(right));
    left.0
        .cmp(&right.0)
        .then(left.1.total_cmp(&(right.1 + 0.0)))
        .then(left.2.cmp(&right.2))
        .then(left.3.cmp(&right.3))
}

/// The rows of a SELECT behind OFFSET, without LIMIT.
fn rows(case: &Case, select: &Select) -> Vec<Vec<Owned>> {
    let limited = |select: &Select| {
        let mut found = rows(case, select);
        if let Some(limit) = select.limit {
            found.truncate(limit as usize);
        }
        found
    };
    let sets = select.sets.iter().map(|set| {
        let values = limited(set).into_iter().map(|row| row.into_iter().next().unwrap());
        values.filter(|value| !value.is_null()).collect()
    });
    let sets: Vec<Vec<Owned>> = sets.collect();
    let row =
        |columns: Vec<Owned>| Row { case: Some(case), columns, sets: &sets, ..Row::default() };
    // Each row with what decides between equal ones.
    let mut read: Vec<(Vec<Owned>, Row<'_>)> = match &select.source {
        Source::Table(Table::Events) => {
            let of = |(event, person): (_, _)| {
                let event: &weir_segments::OwnedEvent = event;
                let tie = vec![
                    Value::Integer(-event.timestamp),
                    Value::Integer(-i64::try_from(event.arrival).unwrap()),
                ];
                (tie, Row { event: Some((event, person)), ..row(Vec::new()) })
            };
            case.world.counted_events().into_iter().map(of).collect()
        }
        Source::Table(Table::Persons) => {
            let of = |(id, person): (String, Person)| {
                let id: Uuid = crate::world::World::person_id(&id);
                let columns = vec![
                    Value::Uuid(id),
                    Value::Timestamp(person.created_at),
                    Value::Json(person.properties.into()),
                    Value::Boolean(person.is_identified),
                    Value::Json(serde_json::to_string(&person.distinct_ids).unwrap().into()),
                ];
                (vec![Value::Uuid(id)], row(columns))
            };
            case.world.records().into_iter().map(of).collect()
        }
        Source::Table(Table::Groups) => {
            let of = |(index, key, properties): (u8, &'static str, &'static str)| {
                let columns = vec![
                    Value::Integer(index.into()),
                    Value::Text(key.into()),
                    Value::Json(properties.into()),
                    Value::Timestamp(5_000_000),
                ];
                (columns[..2].to_vec(), row(columns))
            };
            GROUPS.into_iter().map(of).collect()
        }
        Source::Table(Table::Sessions) => unreachable!(),
        Source::Select(inner) => {
            let of = |(at, columns)| (vec![Value::Integer(at)], row(columns));
            (0..).zip(limited(inner)).map(of).collect()
        }
    };
    if let Some(filter) = &select.filter {
        read.retain(|(_, row)| filter.evaluate(row).boolean() == Some(true));
    }
    if select.is_grouped() {
        read = groups(select, read, &sets, case);
        if let Some(having) = &select.having {
            read.retain(|(_, row)| having.evaluate(row).boolean() == Some(true));
        }
    }
    let owned = |expression: &Expression, row: &Row<'_>| expression.evaluate(row).into_owned();
    let mut found: Vec<(Vec<Owned>, Vec<Owned>, Vec<Owned>)> = Vec::new();
    for (tie, row) in read {
        let items: Vec<Owned> =
            select.items.iter().map(|item| owned(&item.expression, &row)).collect();
        let keys = select.order.iter().map(|order| owned(&order.expression, &row)).collect();
        if !select.is_distinct {
            found.push((keys, tie, items));
            continue;
        }
        let is_same = |(.., other): &&mut (Vec<Owned>, Vec<Owned>, Vec<Owned>)| {
            other.iter().zip(&items).all(|(a, b)| same(a, b))
        };
        match found.iter_mut().find(is_same) {
            None => found.push((keys, items.clone(), items)),
            Some((known_keys, tie, known)) => {
                known.iter_mut().zip(&items).for_each(|(known, new)| show(known, new));
                tie.clone_from(known);
                known_keys.iter_mut().zip(&keys).for_each(|(known, new): (_, &Owned)| {
                    show(known, new);
                });
            }
        }
    }
    found.sort_by(|left, right| {
        let keys = left.0.iter().zip(&right.0).zip(&select.order);
        let by_key = keys.map(|((left, right), by)| {
            let order = order(left, right);
            match by.is_descending && !left.is_null() && !right.is_null() {
                true => order.reverse(),
                false => order,
            }
        });
        let by_tie = left.1.iter().zip(&right.1).map(|(left, right)| order(left, right));
        by_key.chain(by_tie).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
    found.into_iter().skip(select.offset as usize).map(|(.., items)| items).collect()
}

/// Of two values that are one, texts are shown, then JSON, then numbers.
fn show(known: &mut Owned, new: &Owned) {
    let rank = |value: &Owned| match value {
        Value::Text(_) => 0,
        Value::Json(_) => 1,
        Value::Integer(_) => 2,
        _ => 3,
    };
    if rank(new) < rank(known) {
        known.clone_from(new);
    }
}

fn groups<'c>(
    select: &Select,
    read: Vec<(Vec<Owned>, Row<'c>)>,
    sets: &'c [Vec<Owned>],
    case: &'c Case,
) -> Vec<(Vec<Owned>, Row<'c>)> {
    let mut found: Vec<(Vec<Owned>, Vec<Row<'c>>)> = Vec::new();
    if select.groups.is_empty() {
        found.push((Vec::new(), Vec::new()));
    }
    for (_, row) in read {
        let keys: Vec<Owned> =
            select.groups.iter().map(|group| group.evaluate(&row).into_owned()).collect();
        let is_it = |(known, _): &&mut (Vec<Owned>, Vec<Row<'c>>)| {
            known.iter().zip(&keys).all(|(a, b)| same(a, b))
        };
        match found.iter_mut().find(is_it) {
            Some((known, rows)) => {
                known.iter_mut().zip(&keys).for_each(|(known, new)| show(known, new));
                rows.push(row);
            }
            None => found.push((keys, vec![row])),
        }
    }
    let group = |(keys, rows): (Vec<Owned>, Vec<Row<'c>>)| {
        let aggregates = select.aggregates.iter().map(|call| aggregate(call, &rows)).collect();
        let row = Row { case: Some(case), keys: keys.clone(), aggregates, sets, ..Row::default() };
        (keys, row)
    };
    found.into_iter().map(group).collect()
}

fn aggregate(call: &AggregateCall, rows: &[Row<'_>]) -> Owned {
    let counts = |row: &&Row<'_>| {
        call.condition.as_ref().is_none_or(|c| c.evaluate(*row).boolean() == Some(true))
    };
    let rows: Vec<&Row<'_>> = rows.iter().filter(counts).collect();
    let argument = |at: usize, row: &Row<'_>| call.arguments[at].evaluate(row).into_owned();
    if call.arguments.is_empty() {
        return Value::Integer(i64::try_from(rows.len()).unwrap());
    }
    let values: Vec<Owned> =
        rows.iter().map(|row| argument(0, row)).filter(|value| !value.is_null()).collect();
    let count = |count: usize| Value::Integer(i64::try_from(count).unwrap());
    let mut different: Vec<Owned> = Vec::new();
    for value in &values {
        match different.iter_mut().find(|known| same(known, value)) {
            Some(known) => show(known, value),
            None => different.push(value.clone()),
        }
    }
    different.sort_by(order);
    let numbers: Vec<Numeric> = values.iter().filter_map(number).collect();
    let double = |number: f64| {
        if number.is_finite() { Value::Float(number) } else { Value::Null }
    };
    match call.aggregate {
        Aggregate::Count => count(values.len()),
        Aggregate::Uniq => count(different.len()),
        Aggregate::Sum | Aggregate::Avg if numbers.is_empty() => Value::Null,
        Aggregate::Sum => {
            let whole = numbers.iter().map(|number| match number {
                Numeric::Whole(whole) => Some(*whole),
                Numeric::Double(_) => None,
            });
            let whole: Option<Vec<i128>> = whole.collect();
            let whole = whole.and_then(|whole| {
                i64::try_from(whole.into_iter().fold(0, i128::saturating_add)).ok()
            });
            whole.map_or_else(|| double(total(&numbers)), Value::Integer)
        }
        Aggregate::Avg => double(total(&numbers) / numbers.len() as f64),
        Aggregate::Min | Aggregate::Any => values.into_iter().min_by(order).unwrap_or(Value::Null),
        Aggregate::Max => values.into_iter().max_by(order).unwrap_or(Value::Null),
        Aggregate::Quantile(level) => {
            let mut numbers: Vec<f64> = numbers.iter().map(|number| number.value()).collect();
            percentile(&mut numbers, level).map_or(Value::Null, Value::Float)
        }
        Aggregate::ArgMin | Aggregate::ArgMax => {
            let pairs = rows.iter().map(|row| (argument(1, row), argument(0, row)));
            let mut pairs: Vec<(Owned, Owned)> =
                pairs.filter(|(by, value)| !by.is_null() && !value.is_null()).collect();
            pairs.sort_by(|left, right| {
                let by = order(&left.0, &right.0);
                let by = if call.aggregate == Aggregate::ArgMax { by.reverse() } else { by };
                by.then_with(|| order(&left.1, &right.1))
            });
            pairs.into_iter().next().map_or(Value::Null, |(_, value)| value)
        }
        Aggregate::GroupUniqArray => {
            let items = different.into_iter().map(|value| match value {
                Value::Text(text) => serde_json::to_string(&*text).unwrap(),
                value => value.into_json().unwrap().into_owned(),
            });
            Value::Json(format!("[{}]", items.collect::<Vec<_>>().join(",")).into())
        }
    }
}

fn total(numbers: &[Numeric]) -> f64 {
    let mut sum = ExactSum::default();
    for number in numbers {
        match number {
            Numeric::Whole(whole) if *whole > i128::from(i64::MAX) => {
                sum.add_integer(i64::MAX);
                sum.add_integer(
                    i64::try_from((*whole - i128::from(i64::MAX)).min(i64::MAX.into())).unwrap(),
                );
                if *whole > 2 * i128::from(i64::MAX) {
                    sum.add((*whole - 2 * i128::from(i64::MAX)) as f64);
                }
            }
            Numeric::Whole(whole) => match i64::try_from(*whole) {
                Ok(whole) => sum.add_integer(whole),
                Err(_) => sum.add(*whole as f64),
            },
            Numeric::Double(number) => sum.add(*number),
        }
    }
    sum.value()
}

fn number(value: &Owned) -> Option<Numeric> {
    match value {
        Value::Boolean(flag) => Some(Numeric::Whole((*flag).into())),
        Value::Integer(_) | Value::Float(_) | Value::Json(_) | Value::Text(_) => {
            let text = value.clone().into_text()?;
            PropertyValue::Text(&text).number()
        }
        _ => None,
    }
}
