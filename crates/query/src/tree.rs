//! The tree of a query, and the expressions that it shares with `select`.

use super::fields::Field;
use super::functions::Function;
use super::regular_expression::RegularExpression;

/// A query: the columns of the export, and the condition for events.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// The condition that events must satisfy; `None`: all events.
    pub filter: Option<Expression>,
}

/// A column of the result: an expression and its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The expression of its value.
    pub expression: Expression,
    /// Its name at the destination: the alias, or the text of the expression.
    pub alias: String,
}

/// An expression for an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// The value of a field of the event, or of its person.
    Field(Field),
    /// A property, by its path within a field with properties.
    Property(Field, Vec<String>),
    /// A literal value.
    Literal(Literal),
    /// A function call.
    Call(Function, Vec<Expression>),
    /// True if all of these are true.
    And(Vec<Expression>),
    /// True if one of these is true.
    Or(Vec<Expression>),
    /// The negation.
    Not(Box<Expression>),
    /// A comparison of two values.
    Compare(Comparison, Box<Expression>, Box<Expression>),
    /// Membership in a list.
    In {
        /// The value to look for.
        value: Box<Expression>,
        /// The list.
        among: Vec<Expression>,
        /// Whether the test is negated.
        is_negated: bool,
    },
    /// A pattern match, with `%` for any text and `_` for any character.
    Like {
        /// The text.
        value: Box<Expression>,
        /// The expression with `%` and `_`.
        pattern: Box<Expression>,
        /// Whether the match ignores case.
        ignores_case: bool,
        /// Whether the test is negated.
        is_negated: bool,
    },
    /// A value within bounds, both included.
    Between {
        /// The value to compare with the bounds.
        value: Box<Expression>,
        /// The lower bound.
        low: Box<Expression>,
        /// The upper bound.
        high: Box<Expression>,
        /// Whether the test is negated.
        is_negated: bool,
    },
    /// A test for null.
    IsNull {
        /// The expression that may be null.
        value: Box<Expression>,
        /// Whether the test is negated.
        is_negated: bool,
    },
    /// Arithmetic of two numbers.
    Arithmetic(Arithmetic, Box<Expression>, Box<Expression>),
    /// The negative of a number.
    Negative(Box<Expression>),
    /// A time moved by calendar units. This and all that follow are parts of a
    /// [`Select`](crate::Select); the query of an export has none of them.
    Shift {
        /// The time.
        time: Box<Expression>,
        /// The number of units; negative: back.
        count: i64,
        /// The unit.
        unit: TimeUnit,
    },
    /// A column of the table or of the select in FROM, by its place.
    Column(usize),
    /// A property, by its path within a column with JSON.
    ColumnProperty(usize, Vec<String>),
    /// The value of a group, by its place in GROUP BY.
    Key(usize),
    /// The result of an aggregate for a group, by its place in the list of aggregates.
    Aggregate(usize),
    /// Membership in the result of another select, by its place in the list of sets.
    InSet {
        /// The value to look for.
        value: Box<Expression>,
        /// The place of the set.
        set: usize,
        /// Whether the test is negated.
        is_negated: bool,
    },
}

impl Expression {
    /// The expressions that it directly consists of.
    pub fn children(&self) -> Vec<&Self> {
        match self {
            Self::Field(_)
            | Self::Property(..)
            | Self::Literal(_)
            | Self::Column(_)
            | Self::ColumnProperty(..)
            | Self::Key(_)
            | Self::Aggregate(_) => Vec::new(),
            Self::Call(_, items) | Self::And(items) | Self::Or(items) => items.iter().collect(),
            Self::Not(inner) | Self::Negative(inner) => vec![inner],
            Self::Compare(_, left, right) | Self::Arithmetic(_, left, right) => vec![left, right],
            Self::In { value, among, .. } => [&**value].into_iter().chain(among).collect(),
            Self::Like { value, pattern, .. } => vec![value, pattern],
            Self::Between { value, low, high, .. } => vec![value, low, high],
            Self::IsNull { value, .. } | Self::InSet { value, .. } => vec![value],
            Self::Shift { time, .. } => vec![time],
        }
    }

    /// The depth of the expression.
    pub(super) fn height(&self) -> usize {
        1 + self.children().into_iter().map(Self::height).max().unwrap_or(0)
    }

    /// Replaces it, or else the expressions that it consists of.
    pub(super) fn replace(&mut self, find: &dyn Fn(&Self) -> Option<Self>) {
        if let Some(found) = find(self) {
            *self = found;
            return;
        }
        match self {
            Self::Field(_)
            | Self::Property(..)
            | Self::Literal(_)
            | Self::Column(_)
            | Self::ColumnProperty(..)
            | Self::Key(_)
            | Self::Aggregate(_) => {}
            Self::Call(_, items) | Self::And(items) | Self::Or(items) => {
                items.iter_mut().for_each(|item| item.replace(find));
            }
            Self::Not(inner) | Self::Negative(inner) => inner.replace(find),
            Self::Compare(_, left, right) | Self::Arithmetic(_, left, right) => {
                left.replace(find);
                right.replace(find);
            }
            Self::In { value, among, .. } => {
                value.replace(find);
                among.iter_mut().for_each(|item| item.replace(find));
            }
            Self::Like { value, pattern, .. } => {
                value.replace(find);
                pattern.replace(find);
            }
            Self::Between { value, low, high, .. } => {
                value.replace(find);
                low.replace(find);
                high.replace(find);
            }
            Self::IsNull { value, .. } | Self::InSet { value, .. } => value.replace(find),
            Self::Shift { time, .. } => time.replace(find),
        }
    }
}

/// A literal in the text of a query.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// No value.
    Null,
    /// True or false.
    Boolean(bool),
    /// A number without a fraction that fits 64 bits.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// A text in single quotes.
    Text(String),
    /// A regular expression: the second argument of `match` and `extract`.
    RegularExpression(RegularExpression),
}

/// A unit of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// A second.
    Second,
    /// A minute.
    Minute,
    /// An hour.
    Hour,
    /// A day.
    Day,
    /// A week. Whether it begins on Sunday or Monday is a setting of the project.
    Week,
    /// A month.
    Month,
    /// A quarter of a year.
    Quarter,
    /// A year.
    Year,
}

impl TimeUnit {
    /// All units, from short to long.
    pub const ALL: [Self; 8] = [
        Self::Second,
        Self::Minute,
        Self::Hour,
        Self::Day,
        Self::Week,
        Self::Month,
        Self::Quarter,
        Self::Year,
    ];

    /// Its name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Quarter => "quarter",
            Self::Year => "year",
        }
    }

    /// The unit of this name, such as `day` or `days`, in any case.
    pub fn of(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let one = name.strip_suffix('s').unwrap_or(&name);
        Self::ALL.into_iter().find(|unit| unit.name() == one)
    }
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// The sign in the text of a query.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

/// An arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
}

impl Arithmetic {
    /// The sign in the text of a query.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}
