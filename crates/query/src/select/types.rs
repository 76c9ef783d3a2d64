//! Types: of the columns of a result, and of operations that could never have a value.
//!
//! A property may have a value of any type, so its type is not known before it is read. But
//! a uuid is no number and a time is no condition, whatever the events are. Such an operation
//! would silently be null for all rows, so it is refused with its position (QRY-47).

use super::aggregates::{Aggregate, AggregateCall};
use super::names::Scope;
use super::tree::{Select, Source};
use crate::evaluate::kind::{Kinds, known};
use crate::evaluate::time;
use crate::functions::Function;
use crate::parser::{Parsed, Parser, shown};
use crate::tree::{Arithmetic, Expression, Literal};
use crate::value::Kind;

impl Kinds for Scope {
    fn column(&self, at: usize) -> Option<Kind> {
        self.kinds.get(at).copied().flatten()
    }

    // Expressions refer to groups only when the whole SELECT is parsed.
    fn key(&self, _at: usize) -> Option<Kind> {
        None
    }

    fn aggregate(&self, at: usize) -> Option<Kind> {
        self.aggregate_kinds.get(at).copied().flatten()
    }
}

/// The type of an aggregate.
pub(super) fn of_aggregate(call: &AggregateCall, kinds: &dyn Kinds) -> Option<Kind> {
    let argument = || known(call.arguments.first()?, kinds);
    match call.aggregate {
        Aggregate::Count | Aggregate::Uniq => Some(Kind::Integer),
        Aggregate::Sum => match argument() {
            None | Some(Kind::Integer | Kind::Boolean) => Some(Kind::Integer),
            _ => Some(Kind::Float),
        },
        Aggregate::Avg | Aggregate::Quantile(_) => Some(Kind::Float),
        Aggregate::Min
        | Aggregate::Max
        | Aggregate::Any
        | Aggregate::ArgMin
        | Aggregate::ArgMax => argument(),
        Aggregate::GroupUniqArray => Some(Kind::Json),
    }
}

/// The types of what a SELECT refers to by its place.
struct Referred {
    columns: Vec<Option<Kind>>,
    keys: Vec<Option<Kind>>,
    aggregates: Vec<Option<Kind>>,
}

impl Kinds for Referred {
    fn column(&self, at: usize) -> Option<Kind> {
        self.columns.get(at).copied().flatten()
    }

    fn key(&self, at: usize) -> Option<Kind> {
        self.keys.get(at).copied().flatten()
    }

    fn aggregate(&self, at: usize) -> Option<Kind> {
        self.aggregates.get(at).copied().flatten()
    }
}

impl Select {
    /// The types of the columns of the result.
    pub fn kinds(&self) -> Vec<Kind> {
        self.known_kinds().into_iter().map(|kind| kind.unwrap_or(Kind::Text)).collect()
    }

    /// The types of the columns of the result; `None`: it is always null.
    pub(super) fn known_kinds(&self) -> Vec<Option<Kind>> {
        let columns = match &self.source {
            Source::Table(table) => table.columns().iter().map(|(_, kind)| Some(*kind)).collect(),
            Source::Select(inner) => inner.known_kinds(),
        };
        let mut referred = Referred { columns, keys: Vec::new(), aggregates: Vec::new() };
        referred.keys = self.groups.iter().map(|group| known(group, &referred)).collect();
        referred.aggregates =
            self.aggregates.iter().map(|call| of_aggregate(call, &referred)).collect();
        self.items.iter().map(|item| known(&item.expression, &referred)).collect()
    }
}

/// What a fault calls a type.
fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "a text",
        Kind::Json => "JSON",
        Kind::Integer | Kind::Float => "a number",
        Kind::Boolean => "true or false",
        Kind::Timestamp => "a time",
        Kind::Uuid => "a uuid",
    }
}

impl Parser<'_> {
    /// The type of an expression of a question; `None`: it is always null, or this is no
    /// question, whose types are checked.
    fn kind(&self, expression: &Expression) -> Option<Kind> {
        known(expression, self.scope()?)
    }

    /// A condition must be able to be true.
    pub(crate) fn check_condition(&self, start: usize, condition: &Expression) -> Parsed<()> {
        match self.kind(condition) {
            Some(kind @ (Kind::Timestamp | Kind::Uuid)) => {
                let detail = format!("Expected a condition, found {}", word(kind));
                Err(self.fault(start, detail))
            }
            _ => Ok(()),
        }
    }

    /// A number must be able to be one.
    pub(crate) fn check_number(&self, start: usize, number: &Expression) -> Parsed<()> {
        match self.kind(number) {
            Some(kind @ (Kind::Timestamp | Kind::Uuid)) => {
                Err(self.fault(start, format!("Expected a number, found {}", word(kind))))
            }
            _ => Ok(()),
        }
    }

    /// A time must be able to be one.
    pub(crate) fn check_time(&self, start: usize, time: &Expression) -> Parsed<()> {
        match self.kind(time) {
            Some(kind @ (Kind::Boolean | Kind::Uuid)) => {
                Err(self.fault(start, format!("Expected a time, found {}", word(kind))))
            }
            _ => self.check_text(start, Kind::Timestamp, time),
        }
    }

    /// A constant text must be a time or a uuid where it is compared with one.
    fn check_text(&self, start: usize, kind: Kind, other: &Expression) -> Parsed<()> {
        let Expression::Literal(Literal::Text(text)) = other else { return Ok(()) };
        let is_one = match kind {
            Kind::Timestamp => time::read(text).is_some(),
            Kind::Uuid => uuid::Uuid::try_parse(text.trim()).is_ok(),
            _ => true,
        };
        if is_one || self.select.is_none() {
            return Ok(());
        }
        Err(self.fault(start, format!("`{}` is not {}", shown(text), word(kind))))
    }

    /// Two values must be able to be compared.
    pub(crate) fn check_comparison(
        &self,
        start: usize,
        left: &Expression,
        right: &Expression,
    ) -> Parsed<()> {
        let kinds = (self.kind(left), self.kind(right));
        self.check_kinds(start, kinds)?;
        if let (Some(left_kind), Some(right_kind)) = kinds {
            self.check_text(start, left_kind, right)?;
            self.check_text(start, right_kind, left)?;
        }
        Ok(())
    }

    /// A value must be able to be in a set.
    pub(crate) fn check_set(&self, start: usize, value: &Expression, set: usize) -> Parsed<()> {
        let found = self.scope().and_then(|scope| scope.sets.get(set));
        let column = found.and_then(|set| set.known_kinds().first().copied().flatten());
        self.check_kinds(start, (self.kind(value), column))
    }

    fn check_kinds(&self, start: usize, kinds: (Option<Kind>, Option<Kind>)) -> Parsed<()> {
        let (Some(left), Some(right)) = kinds else { return Ok(()) };
        let can_be = |kind: Kind, other: Kind| match kind {
            Kind::Uuid => matches!(other, Kind::Uuid | Kind::Text),
            Kind::Timestamp => !matches!(other, Kind::Boolean | Kind::Uuid),
            _ => true,
        };
        if can_be(left, right) && can_be(right, left) {
            return Ok(());
        }
        Err(self.fault(start, format!("Cannot compare {} with {}", word(left), word(right))))
    }

    /// Arithmetic must be able to have a value.
    pub(crate) fn check_arithmetic(
        &self,
        start: usize,
        arithmetic: Arithmetic,
        left: &Expression,
        right: &Expression,
    ) -> Parsed<()> {
        let kinds = (self.kind(left), self.kind(right));
        let faulty = match (arithmetic, kinds) {
            (_, (Some(Kind::Uuid), _) | (_, Some(Kind::Uuid))) => Some(Kind::Uuid),
            (Arithmetic::Subtract, (Some(Kind::Timestamp), _)) => None,
            (Arithmetic::Add, (Some(Kind::Timestamp), other))
            | (Arithmetic::Add, (other, Some(Kind::Timestamp))) => {
                other.filter(|other| *other == Kind::Timestamp)
            }
            (_, (Some(Kind::Timestamp), _) | (_, Some(Kind::Timestamp))) => Some(Kind::Timestamp),
            _ => None,
        };
        match faulty {
            None => Ok(()),
            Some(kind) => {
                let sign = arithmetic.sign();
                Err(self.fault(start, format!("`{sign}` cannot be applied to {}", word(kind))))
            }
        }
    }

    /// The arguments of a function must be able to have a result.
    pub(super) fn check_call(
        &self,
        function: Function,
        arguments: &[(usize, Expression)],
    ) -> Parsed<()> {
        for (place, (start, argument)) in arguments.iter().enumerate() {
            let is_last = place + 1 == arguments.len();
            match function {
                Function::ToStartOfMinute
                | Function::ToStartOfHour
                | Function::ToStartOfDay
                | Function::ToStartOfWeek
                | Function::ToStartOfMonth
                | Function::ToYear
                | Function::ToMonth
                | Function::ToDayOfWeek
                | Function::ToHour
                | Function::ToDate
                | Function::ToDateTime
                | Function::ToUnixTimestamp => self.check_time(*start, argument)?,
                Function::DateDiff if place > 0 => self.check_time(*start, argument)?,
                Function::Round | Function::Floor | Function::Ceil | Function::Abs => {
                    self.check_number(*start, argument)?;
                }
                Function::If if place == 0 => self.check_condition(*start, argument)?,
                Function::MultiIf if place % 2 == 0 && !is_last => {
                    self.check_condition(*start, argument)?;
                }
                Function::NullIf | Function::Least | Function::Greatest if place > 0 => {
                    if let Some((_, first)) = arguments.first() {
                        self.check_comparison(*start, first, argument)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
