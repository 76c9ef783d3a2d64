//! The type of a column, independent of events.
//!
//! What belongs here: types of expressions. What does not: types of what a select reads and
//! counts (`select::types`), which is behind [`Kinds`].

use crate::fields::Field;
use crate::functions::Function;
use crate::tree::{Arithmetic, Column, Expression, Literal};
use crate::value::Kind;

/// Columns with these names are JSON even if they are a property (EXP-18).
const JSON_COLUMNS: [&str; 4] = ["properties", "set", "set_once", "person_properties"];

impl Column {
    /// Its type.
    pub fn kind(&self) -> Kind {
        let is_property = matches!(self.expression, Expression::Property(..));
        if is_property && JSON_COLUMNS.contains(&self.alias.as_str()) {
            return Kind::Json;
        }
        self.expression.kind()
    }
}

impl Expression {
    /// The type of a column with this value. A property can have any type and is text;
    /// functions have more specific types.
    pub fn kind(&self) -> Kind {
        known(self, &NoKinds).unwrap_or(Kind::Text)
    }
}

/// The types of what expressions of a select refer to by its place. `None`: it is always null.
pub(crate) trait Kinds {
    fn column(&self, at: usize) -> Option<Kind>;
    fn key(&self, at: usize) -> Option<Kind>;
    fn aggregate(&self, at: usize) -> Option<Kind>;
}

/// Expressions of exports refer to nothing by its place.
struct NoKinds;

impl Kinds for NoKinds {
    fn column(&self, _at: usize) -> Option<Kind> {
        None
    }

    fn key(&self, _at: usize) -> Option<Kind> {
        None
    }

    fn aggregate(&self, _at: usize) -> Option<Kind> {
        None
    }
}

/// `None`: the expression is always null.
pub(crate) fn known(expression: &Expression, kinds: &dyn Kinds) -> Option<Kind> {
    Some(match expression {
        Expression::Field(field) => of_field(*field),
        Expression::Property(..) | Expression::ColumnProperty(..) => Kind::Text,
        Expression::Literal(literal) => match literal {
            Literal::Null => return None,
            Literal::Boolean(_) => Kind::Boolean,
            Literal::Integer(_) => Kind::Integer,
            Literal::Float(_) => Kind::Float,
            Literal::Text(_) | Literal::RegularExpression(_) => Kind::Text,
        },
        Expression::Call(function, arguments) => return of_call(*function, arguments, kinds),
        Expression::And(_)
        | Expression::Or(_)
        | Expression::Not(_)
        | Expression::Compare(..)
        | Expression::In { .. }
        | Expression::InSet { .. }
        | Expression::Like { .. }
        | Expression::Between { .. }
        | Expression::IsNull { .. } => Kind::Boolean,
        Expression::Arithmetic(arithmetic, left, right) => {
            of_arithmetic(*arithmetic, known(left, kinds), known(right, kinds))
        }
        Expression::Negative(inner) => {
            of_arithmetic(Arithmetic::Multiply, known(inner, kinds), None)
        }
        Expression::Shift { .. } => Kind::Timestamp,
        Expression::Column(at) => return kinds.column(*at),
        Expression::Key(at) => return kinds.key(*at),
        Expression::Aggregate(at) => return kinds.aggregate(*at),
    })
}

fn of_field(field: Field) -> Kind {
    match field {
        Field::TeamId => Kind::Integer,
        Field::Timestamp | Field::CreatedAt => Kind::Timestamp,
        Field::Event | Field::DistinctId | Field::ElementsChain | Field::SessionId => Kind::Text,
        Field::Uuid | Field::PersonId => Kind::Uuid,
        Field::Properties | Field::PersonProperties | Field::GroupProperties(_) => Kind::Json,
    }
}

fn of_arithmetic(arithmetic: Arithmetic, left: Option<Kind>, right: Option<Kind>) -> Kind {
    let is_whole = |kind| matches!(kind, None | Some(Kind::Integer | Kind::Boolean));
    match (arithmetic, left, right) {
        (Arithmetic::Subtract, Some(Kind::Timestamp), Some(Kind::Timestamp)) => Kind::Float,
        (Arithmetic::Add | Arithmetic::Subtract, Some(Kind::Timestamp), _)
        | (Arithmetic::Add, _, Some(Kind::Timestamp)) => Kind::Timestamp,
        (Arithmetic::Divide, ..) => Kind::Float,
        (_, left, right) if is_whole(left) && is_whole(right) => Kind::Integer,
        _ => Kind::Float,
    }
}

fn of_call(function: Function, arguments: &[Expression], kinds: &dyn Kinds) -> Option<Kind> {
    Some(match function {
        Function::Lower
        | Function::Upper
        | Function::Trim
        | Function::Concat
        | Function::Substring
        | Function::ReplaceAll
        | Function::ToString
        | Function::JsonExtractString
        | Function::Extract
        | Function::Domain
        | Function::Path => Kind::Text,
        Function::Length
        | Function::ToInt
        | Function::ToUnixTimestamp
        | Function::JsonExtractInt
        | Function::ToYear
        | Function::ToMonth
        | Function::ToDayOfWeek
        | Function::ToHour
        | Function::DateDiff => Kind::Integer,
        Function::StartsWith
        | Function::EndsWith
        | Function::IsNull
        | Function::IsNotNull
        | Function::Empty
        | Function::NotEmpty
        | Function::ToBool
        | Function::JsonExtractBool
        | Function::JsonHas
        | Function::Match => Kind::Boolean,
        Function::ToFloat | Function::JsonExtractFloat => Kind::Float,
        Function::ToDateTime
        | Function::ToDate
        | Function::ToStartOfHour
        | Function::ToStartOfDay
        | Function::ToStartOfMonth
        | Function::ToStartOfMinute
        | Function::ToStartOfWeek
        | Function::Now
        | Function::Today => Kind::Timestamp,
        Function::JsonExtractRaw => Kind::Json,
        Function::Round | Function::Floor | Function::Ceil | Function::Abs => {
            of_arithmetic(Arithmetic::Multiply, known(arguments.first()?, kinds), None)
        }
        Function::Coalesce | Function::IfNull | Function::Least | Function::Greatest => {
            return common(arguments.iter(), kinds);
        }
        Function::NullIf => return known(arguments.first()?, kinds),
        Function::If => return common(arguments.iter().skip(1), kinds),
        // Conditions and values alternate; the last value has no condition.
        Function::MultiIf => {
            let values = arguments.iter().skip(1).step_by(2);
            return common(values.chain(arguments.last()), kinds);
        }
    })
}

/// The common type of these expressions.
fn common<'a>(
    expressions: impl Iterator<Item = &'a Expression>,
    kinds: &dyn Kinds,
) -> Option<Kind> {
    expressions.filter_map(|item| known(item, kinds)).reduce(|left, right| match (left, right) {
        (left, right) if left == right => left,
        (Kind::Integer | Kind::Boolean, Kind::Integer | Kind::Boolean) => Kind::Integer,
        (
            Kind::Integer | Kind::Boolean | Kind::Float,
            Kind::Integer | Kind::Boolean | Kind::Float,
        ) => Kind::Float,
        _ => Kind::Text,
    })
}
