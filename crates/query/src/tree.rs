//! The tree of a query.

use super::fields::Field;
use super::functions::Function;

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
