//! The aggregates: functions of all rows of a group.

use super::{AGGREGATES, types};
use crate::lexer::TokenKind;
use crate::parser::{HEIGHT, Parsed, Parser};
use crate::tree::Expression;

/// An aggregate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aggregate {
    /// The number of rows, or of values that are not null.
    Count,
    /// The number of different values that are not null, exactly. `count(DISTINCT x)` and
    /// `uniqExact(x)` are this too.
    Uniq,
    /// The sum of the numbers.
    Sum,
    /// The average of the numbers.
    Avg,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// A value that is not null.
    Any,
    /// The number below which this part of the numbers lies, from 0 to 1. `median(x)` has 0.5.
    Quantile(f64),
    /// The value of the row whose second value is smallest.
    ArgMin,
    /// The value of the row whose second value is largest.
    ArgMax,
    /// The different values that are not null, as a list.
    GroupUniqArray,
}

/// The place of the arguments of an aggregate.
pub(super) const IN_AGGREGATE: &str = "another aggregate";

/// The level of the median.
const MIDDLE: f64 = 0.5;

impl Aggregate {
    /// All aggregates, with the level of the median.
    pub const ALL: [Self; 11] = [
        Self::Count,
        Self::Uniq,
        Self::Sum,
        Self::Avg,
        Self::Min,
        Self::Max,
        Self::Any,
        Self::Quantile(MIDDLE),
        Self::ArgMin,
        Self::ArgMax,
        Self::GroupUniqArray,
    ];

    /// Its name; names are case-insensitive.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Uniq => "uniq",
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
            Self::Any => "any",
            Self::Quantile(level) if level == MIDDLE => "median",
            Self::Quantile(_) => "quantile",
            Self::ArgMin => "argMin",
            Self::ArgMax => "argMax",
            Self::GroupUniqArray => "groupUniqArray",
        }
    }

    /// Minimum and maximum number of arguments.
    pub const fn arguments(self) -> (usize, usize) {
        match self {
            Self::Count => (0, 1),
            Self::ArgMin | Self::ArgMax => (2, 2),
            _ => (1, 1),
        }
    }

    /// Whether its values are numbers.
    pub const fn is_of_numbers(self) -> bool {
        matches!(self, Self::Sum | Self::Avg | Self::Quantile(_))
    }

    /// The aggregate of this name, and whether it takes a level before its arguments.
    fn of(name: &str) -> Option<(Self, bool)> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("quantile") {
            return Some((Self::Quantile(MIDDLE), true));
        }
        if is("uniqExact") {
            return Some((Self::Uniq, false));
        }
        let found = Self::ALL.into_iter().find(|aggregate| is(aggregate.name()));
        found.map(|aggregate| (aggregate, false))
    }
}

/// An aggregate with its arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregateCall {
    /// The aggregate.
    pub aggregate: Aggregate,
    /// Its arguments, for a row.
    pub arguments: Vec<Expression>,
    /// The condition for rows that count, of `countIf` and the like.
    pub condition: Option<Expression>,
}

/// Whether an aggregate is in an expression.
pub(super) fn has_aggregate(expression: &Expression) -> bool {
    matches!(expression, Expression::Aggregate(_))
        || expression.children().into_iter().any(has_aggregate)
}

impl Parser<'_> {
    /// The call of an aggregate; `None`: there is no aggregate of this name.
    pub(crate) fn aggregate(&mut self, name: &str) -> Parsed<Option<Expression>> {
        let Some(scope) = self.scope() else { return Ok(None) };
        let without_if = name.len().checked_sub(2).and_then(|end| {
            let (base, end) = (name.get(..end)?, name.get(end..)?);
            end.eq_ignore_ascii_case("if").then_some(base)
        });
        let (found, is_if) = match (Aggregate::of(name), without_if.and_then(Aggregate::of)) {
            (Some(found), _) => (found, false),
            (None, Some(found)) => (found, true),
            (None, None) => return Ok(None),
        };
        let (start, place) = (self.start(), scope.no_aggregates);
        if let Some(place) = place {
            return Err(self.fault(start, format!("An aggregate cannot be in {place}")));
        }
        self.set_no_aggregates(Some(IN_AGGREGATE));
        let call = self.aggregate_call(start, found, is_if)?;
        self.set_no_aggregates(None);
        if self.at_word("over") {
            return Err(self.here("Window functions are not supported"));
        }
        self.keep_aggregate(start, call).map(Some)
    }

    pub(super) fn set_no_aggregates(&mut self, place: Option<&'static str>) {
        if let Some(scope) = self.scope_mut() {
            scope.no_aggregates = place;
        }
    }

    fn aggregate_call(
        &mut self,
        start: usize,
        (mut aggregate, takes_level): (Aggregate, bool),
        is_if: bool,
    ) -> Parsed<AggregateCall> {
        self.at += 1;
        if takes_level {
            aggregate = Aggregate::Quantile(self.level()?);
        }
        self.expect_sign("(")?;
        if self.at_word("distinct") {
            if aggregate != Aggregate::Count {
                return Err(self.here("DISTINCT is supported in `count` alone"));
            }
            self.at += 1;
            aggregate = Aggregate::Uniq;
        } else if aggregate == Aggregate::Count && !is_if {
            // Another form of `count()`.
            self.take_sign("*");
        }
        let mut arguments = match self.take_sign(")") {
            true => Vec::new(),
            false => self.arguments(")")?,
        };
        let condition = if is_if { arguments.pop() } else { None };
        let (least, most) = aggregate.arguments();
        let has_condition = condition.is_some() == is_if;
        if !has_condition || arguments.len() < least || arguments.len() > most {
            let (name, more) = (aggregate.name(), usize::from(is_if));
            let (least, most) = (least + more, most + more);
            let expected = match least == most {
                true => least.to_string(),
                false => format!("{least} to {most}"),
            };
            let end = if is_if { "If" } else { "" };
            let detail = format!("`{name}{end}` takes {expected} arguments");
            return Err(self.fault(start, detail));
        }
        for (at, argument) in arguments.iter().chain(&condition) {
            if argument.height() > HEIGHT {
                return Err(self.fault(*at, "The expression is nested too deep"));
            }
        }
        if let Some((at, condition)) = &condition {
            self.check_condition(*at, condition)?;
        }
        if aggregate.is_of_numbers() {
            for (at, argument) in &arguments {
                self.check_number(*at, argument)?;
            }
        }
        Ok(AggregateCall {
            aggregate,
            arguments: arguments.into_iter().map(|(_, argument)| argument).collect(),
            condition: condition.map(|(_, condition)| condition),
        })
    }

    /// `(0.9)` after the name.
    fn level(&mut self) -> Parsed<f64> {
        self.expect_sign("(")?;
        let level = match self.token().kind {
            TokenKind::Float(level) => level,
            TokenKind::Integer(0) => 0.0,
            TokenKind::Integer(1) => 1.0,
            _ => return Err(self.here("`quantile` takes its level first: `quantile(0.9)(x)`")),
        };
        if level > 1.0 {
            return Err(self.here("The level of `quantile` is from 0 to 1"));
        }
        self.at += 1;
        self.expect_sign(")")?;
        Ok(level)
    }

    /// The place of an aggregate in the list, which has each once.
    fn keep_aggregate(&mut self, start: usize, call: AggregateCall) -> Parsed<Expression> {
        let Some(scope) = self.scope() else { return Err(self.unexpected("an expression")) };
        if let Some(at) = scope.aggregates.iter().position(|other| *other == call) {
            return Ok(Expression::Aggregate(at));
        }
        let (at, kind) = (scope.aggregates.len(), types::of_aggregate(&call, scope));
        if at >= AGGREGATES {
            let detail = format!("The query has more than {AGGREGATES} aggregates");
            return Err(self.fault(start, detail));
        }
        if let Some(scope) = self.scope_mut() {
            scope.aggregates.push(call);
            scope.aggregate_kinds.push(kind);
        }
        Ok(Expression::Aggregate(at))
    }
}
