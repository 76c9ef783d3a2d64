//! What a query means.

use super::fields::Field;
use super::functions::Function;

/// A query: the columns of the export, and which events it has.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// The condition that events must meet; none: all.
    pub filter: Option<Expression>,
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its value.
    pub expression: Expression,
    /// Its name at the destination: the one that was given, or the text of the
    /// expression.
    pub alias: String,
}

/// An expression over an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// A field.
    Field(Field),
    /// A property, by its path within a field that has properties.
    Property(Field, Vec<String>),
    /// A value.
    Literal(Literal),
    /// A function.
    Call(Function, Vec<Expression>),
    /// All of these.
    And(Vec<Expression>),
    /// One of these.
    Or(Vec<Expression>),
    /// Not this.
    Not(Box<Expression>),
    /// Two values compared.
    Compare(Comparison, Box<Expression>, Box<Expression>),
    /// A value among others.
    In {
        /// The value.
        value: Box<Expression>,
        /// The others.
        among: Vec<Expression>,
        /// Whether it must not be among them.
        is_negated: bool,
    },
    /// A text that a pattern fits, with `%` for any text and `_` for any
    /// character.
    Like {
        /// The text.
        value: Box<Expression>,
        /// The pattern.
        pattern: Box<Expression>,
        /// Whether upper and lower case are the same.
        ignores_case: bool,
        /// Whether it must not fit.
        is_negated: bool,
    },
    /// A value between two others, both included.
    Between {
        /// The value.
        value: Box<Expression>,
        /// The least.
        least: Box<Expression>,
        /// The most.
        most: Box<Expression>,
        /// Whether it must not be between them.
        is_negated: bool,
    },
    /// Whether a value is null.
    IsNull {
        /// The value.
        value: Box<Expression>,
        /// Whether it must not be null.
        is_negated: bool,
    },
    /// Two numbers worked out.
    Arithmetic(Arithmetic, Box<Expression>, Box<Expression>),
    /// The opposite of a number.
    Negative(Box<Expression>),
}

/// A value in the text of a query.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// No value.
    Null,
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Float(f64),
    /// A text.
    Text(String),
}

/// How two values are compared.
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
    /// Its sign.
    #[must_use]
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

/// What is worked out of two numbers.
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
    /// Its sign.
    #[must_use]
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
