//! What a SELECT makes of rows: groups, or the first ones in an order.
//!
//! What belongs here: GROUP BY, HAVING, DISTINCT, ORDER BY, LIMIT and OFFSET, and sets of IN.
//! What does not: which rows there are.

use std::collections::HashSet;

use weir_query::{
    AggregateCall, Expression, Field, MAX_WORK, QueryInput, Select, Value, WorkLimit,
};

use super::Context;
use super::clock::Clock;
use super::group::{Group, Groups, key_of};
use super::plan::Constants;
use super::sort::{Sorted, Tie, Top};
use super::value::{Owned, borrowed, push_key, row_bytes};
use crate::error::{AnswerError, Result};
use crate::run::{Cancel, Reservation, Run};

/// Rows after which a cancelled question ends.
const CHECKED: u32 = 4_096;
/// Work after which it ends: some milliseconds.
const CHECKED_WORK: usize = 1 << 20;
/// Most values of a set.
const SET_MAX: usize = 100_000;
/// Bytes of a value of a set beside its own.
const SET_ENTRY: usize = 48;

/// Rows of a result, with their memory.
#[derive(Debug)]
pub(super) struct Rows<'a> {
    pub(super) rows: Vec<Vec<Owned>>,
    _memory: Reservation<'a>,
}

/// The values of a subquery after IN.
#[derive(Debug)]
pub(super) struct Set<'a> {
    keys: HashSet<Box<[u8]>>,
    has_times: bool,
    has_uuids: bool,
    has_numbers: bool,
    _memory: Reservation<'a>,
}

impl<'a> Set<'a> {
    pub(super) fn new(rows: &Rows<'_>, run: &Run<'a>) -> Result<Self> {
        let mut set = Self {
            keys: HashSet::new(),
            has_times: false,
            has_uuids: false,
            has_numbers: false,
            _memory: run.memory.reservation(),
        };
        let (mut key, mut held) = (Vec::new(), 0);
        for value in rows.rows.iter().filter_map(|row| row.first()) {
            match value {
                Value::Null => continue,
                Value::Timestamp(_) => set.has_times = true,
                Value::Uuid(_) => set.has_uuids = true,
                Value::Integer(_) | Value::Float(_) => set.has_numbers = true,
                _ => {}
            }
            key.clear();
            push_key(&mut key, value);
            if !set.keys.contains(&key[..]) {
                if set.keys.len() == SET_MAX {
                    let what = "values of a subquery after IN".to_owned();
                    return Err(AnswerError::TooLarge { what, limit: SET_MAX });
                }
                set._memory.hold_more(&mut held, key.len() + SET_ENTRY)?;
                set.keys.insert(key.as_slice().into());
            }
        }
        Ok(set)
    }

    /// Whether it has a value, which is not null. A value of another type is also looked up as
    /// one of the types in the set.
    fn has(&self, value: &Value<'_>, clock: &Clock<'_>) -> bool {
        let has = |value: &Value<'_>| {
            let mut key = Vec::new();
            push_key(&mut key, value);
            self.keys.contains(&key[..])
        };
        if has(value) {
            return true;
        }
        let has_time = |value: &Value<'_>| {
            let instant = value.instant(&Constants::new(clock));
            instant.is_some_and(|micros| has(&Value::Timestamp(micros)))
        };
        match value {
            Value::Uuid(uuid) => has(&Value::Text(uuid.to_string().into())),
            Value::Date(_) => self.has_times && has_time(value),
            Value::Text(_) | Value::Json(_) => {
                (self.has_uuids && value.uuid().is_some_and(|uuid| has(&Value::Uuid(uuid))))
                    || (self.has_times && has_time(value))
                    || (self.has_numbers
                        && value.float().is_some_and(|number| has(&Value::Float(number))))
            }
            _ => false,
        }
    }
}

/// What each thread of a question has: the clock, and what ends it early.
pub(super) struct Worker<'s, 'q> {
    pub(super) stage: &'s Stage<'q, 's>,
    pub(super) clock: Clock<'q>,
    cancel: &'s Cancel,
    rows: u32,
    work: usize,
}

impl Worker<'_, '_> {
    pub(super) fn set_has(&self, set: usize, value: &Value<'_>) -> Option<bool> {
        Some(self.stage.sets.get(set)?.has(value, &self.clock))
    }

    pub(super) fn check(&self) -> Result<()> {
        self.cancel.check()
    }

    /// Notes that the expressions of a row were evaluated.
    pub(super) fn worked(&mut self, limit: &WorkLimit) -> Result<()> {
        if limit.is_used_up() {
            let what = "steps of work for one row".to_owned();
            return Err(AnswerError::TooLarge { what, limit: MAX_WORK });
        }
        self.rows += 1;
        self.work += limit.charged();
        if self.rows >= CHECKED || self.work >= CHECKED_WORK {
            (self.rows, self.work) = (0, 0);
            self.cancel.check()?;
        }
        Ok(())
    }
}

/// A SELECT, in the form in which it is computed.
pub(super) struct Stage<'q, 'a> {
    pub(super) context: Context<'q, 'a>,
    pub(super) sets: Vec<Set<'a>>,
    pub(super) filter: Option<&'q Expression>,
    is_grouped: bool,
    /// For rows.
    pub(super) groups: Vec<Expression>,
    pub(super) aggregates: &'q [AggregateCall],
    /// For groups, if there are any, else for rows.
    pub(super) items: Vec<Expression>,
    having: Option<&'q Expression>,
    pub(super) order: Vec<Expression>,
    descending: Vec<bool>,
    /// Whether groups with equal items are one row.
    is_distinct: bool,
    offset: usize,
    /// Most rows, with those that are skipped and one that says that there are more.
    pub(super) most: usize,
}

/// What a thread has made of its rows.
#[derive(Debug)]
pub(super) enum Sink<'a> {
    Groups(Groups<'a>),
    Top(Top<'a, Vec<Owned>>),
}

impl<'a> Sink<'a> {
    pub(super) fn merge(&mut self, other: Self) -> Result<()> {
        match (self, other) {
            (Self::Groups(groups), Self::Groups(other)) => groups.merge(other),
            (Self::Top(top), Self::Top(other)) => top.merge(other),
            _ => Ok(()),
        }
    }

    /// What all threads have made.
    pub(super) fn merged(stage: &Stage<'_, 'a>, sinks: Vec<Self>) -> Result<Self> {
        let mut sinks = sinks.into_iter();
        let mut all = match sinks.next() {
            Some(first) => first,
            None => stage.sink(),
        };
        sinks.try_for_each(|sink| all.merge(sink))?;
        Ok(all)
    }
}

impl<'q, 'a> Stage<'q, 'a> {
    pub(super) fn new(context: Context<'q, 'a>, select: &'q Select, sets: Vec<Set<'a>>) -> Self {
        let limit = select.limit.map_or(usize::MAX, |limit| limit as usize + 1);
        let offset = select.offset as usize;
        let mut stage = Self {
            context,
            sets,
            filter: select.filter.as_ref(),
            is_grouped: select.is_grouped(),
            groups: select.groups.clone(),
            aggregates: &select.aggregates,
            items: select.items.iter().map(|item| item.expression.clone()).collect(),
            having: select.having.as_ref(),
            order: select.order.iter().map(|order| order.expression.clone()).collect(),
            descending: select.order.iter().map(|order| order.is_descending).collect(),
            is_distinct: select.is_distinct,
            offset,
            most: limit.saturating_add(offset),
        };
        if select.is_distinct && !stage.is_grouped {
            // Different rows are the groups of all items.
            let key = |expression: &Expression| {
                let at = stage.items.iter().position(|item| item == expression);
                at.map_or_else(|| expression.clone(), Expression::Key)
            };
            let (items, order) =
                (stage.items.iter().map(key).collect(), stage.order.iter().map(key).collect());
            stage.groups = std::mem::replace(&mut stage.items, items);
            stage.order = order;
            (stage.is_grouped, stage.is_distinct) = (true, false);
        }
        stage
    }

    pub(super) fn is_grouped(&self) -> bool {
        self.is_grouped
    }

    /// Whether rows are sorted by time first, newest first, so that older events do not
    /// matter if there are enough others.
    pub(super) fn is_newest_first(&self) -> bool {
        let is_time = |key: &Expression| matches!(key, Expression::Field(Field::Timestamp));
        !self.is_grouped
            && self.most < usize::MAX
            && self.order.first().is_none_or(|key| is_time(key) && self.descending[0])
    }

    pub(super) fn sink(&self) -> Sink<'a> {
        match self.is_grouped {
            true => Sink::Groups(Groups::new(self.context.run)),
            false => Sink::Top(self.top(|row| row_bytes(row))),
        }
    }

    pub(super) fn top<T>(&self, size: fn(&T) -> usize) -> Top<'a, T> {
        Top::new(self.context.run, self.most, self.descending.clone(), size)
    }

    pub(super) fn worker<'s>(&'s self) -> Worker<'s, 'q>
    where
        'a: 's,
    {
        let clock = self.context.clock();
        Worker { stage: self, clock, cancel: self.context.run.cancel, rows: 0, work: 0 }
    }

    /// Adds a row that satisfies the condition of WHERE to its group.
    pub(super) fn add_to_group(
        &self,
        groups: &mut Groups<'_>,
        key: &mut Vec<u8>,
        row: &dyn QueryInput,
    ) -> Result<()> {
        let keys: Vec<Value<'_>> = self.groups.iter().map(|group| group.evaluate(row)).collect();
        key_of(key, &keys);
        groups.add(key, keys, self.aggregates, |states| {
            let mut more = 0;
            for (call, state) in self.aggregates.iter().zip(states) {
                let counts = call
                    .condition
                    .as_ref()
                    .is_none_or(|condition| condition.evaluate(row).boolean() == Some(true));
                if counts {
                    let mut arguments = call.arguments.iter().map(|item| item.evaluate(row));
                    more += state.add(arguments.next(), arguments.next())?;
                }
            }
            Ok(more)
        })
    }

    /// Adds a row of a table, if it satisfies the condition of WHERE.
    pub(super) fn add_row(
        &self,
        sink: &mut Sink<'_>,
        key: &mut Vec<u8>,
        row: &dyn QueryInput,
        tie: Tie,
    ) -> Result<()> {
        let is_kept = self.filter.is_none_or(|filter| filter.evaluate(row).boolean() == Some(true));
        if !is_kept {
            return Ok(());
        }
        match sink {
            Sink::Groups(groups) => self.add_to_group(groups, key, row),
            Sink::Top(top) => {
                let keys: Vec<Owned> =
                    self.order.iter().map(|key| key.evaluate(row).into_owned()).collect();
                if top.is_behind(&keys, &tie) {
                    return Ok(());
                }
                let items = self.items.iter().map(|item| item.evaluate(row).into_owned());
                top.push(Sorted { keys, tie, row: items.collect() })
            }
        }
    }

    /// The rows of the result.
    pub(super) fn finish(&self, sink: Sink<'a>) -> Result<Rows<'a>> {
        let top = match sink {
            Sink::Top(top) => top,
            Sink::Groups(mut groups) => {
                if self.groups.is_empty() {
                    groups.add_if_empty(self.aggregates)?;
                }
                self.rows_of_groups(groups)?
            }
        };
        let (rows, memory) = top.into_rows();
        let rows = rows.into_iter().skip(self.offset).map(|row| row.row).collect();
        Ok(Rows { rows, _memory: memory })
    }

    fn rows_of_groups(&self, groups: Groups<'a>) -> Result<Top<'a, Vec<Owned>>> {
        let mut top = self.top(|row: &Vec<Owned>| row_bytes(row));
        let mut worker = self.worker();
        let mut seen: HashSet<Box<[u8]>> = HashSet::new();
        let mut memory = self.context.run.memory.reservation();
        let (mut key, mut held) = (Vec::new(), 0);
        let (groups, _memory) = groups.into_groups();
        for Group { keys, states } in groups {
            let aggregates = states.into_iter().map(super::aggregate::State::value).collect();
            let row = GroupInput { keys, aggregates, worker: &worker, work: WorkLimit::default() };
            let is_kept =
                self.having.is_none_or(|having| having.evaluate(&row).boolean() == Some(true));
            let mut new = None;
            if is_kept {
                let owned = |item: &Expression| item.evaluate(&row).into_owned();
                let items: Vec<Owned> = self.items.iter().map(owned).collect();
                let keys: Vec<Owned> = self.order.iter().map(owned).collect();
                new = Some((keys, items));
            }
            let GroupInput { keys: group, work, .. } = row;
            worker.worked(&work)?;
            let Some((keys, items)) = new else { continue };
            let mut tie = Tie::Values(group);
            if self.is_distinct {
                key_of(&mut key, &items);
                if seen.contains(&key[..]) {
                    continue;
                }
                memory.hold_more(&mut held, key.len() + SET_ENTRY)?;
                seen.insert(key.as_slice().into());
                tie = Tie::Values(items.clone());
            }
            if !top.is_behind(&keys, &tie) {
                top.push(Sorted { keys, tie, row: items })?;
            }
        }
        Ok(top)
    }
}

/// A group, as expressions see it.
struct GroupInput<'w, 's, 'q> {
    keys: Vec<Owned>,
    aggregates: Vec<Owned>,
    worker: &'w Worker<'s, 'q>,
    work: WorkLimit,
}

impl QueryInput for GroupInput<'_, '_, '_> {
    fn field(&self, _field: Field) -> Value<'_> {
        Value::Null
    }

    fn property(&self, _field: Field, _path: &[String]) -> Value<'_> {
        Value::Null
    }

    fn work_limit(&self) -> &WorkLimit {
        &self.work
    }

    fn key(&self, at: usize) -> Value<'_> {
        self.keys.get(at).map_or(Value::Null, borrowed)
    }

    fn aggregate(&self, at: usize) -> Value<'_> {
        self.aggregates.get(at).map_or(Value::Null, borrowed)
    }

    super::worker_methods!();
}
