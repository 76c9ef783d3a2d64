//! Writing queries: in normal form, and as expressions of the schema, where texts are
//! replaced by names of values.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::lexer::{is_word, is_word_start};
use super::tree::{Arithmetic, Expression, Literal, Query};

/// How names and texts are written.
pub(super) trait Style {
    /// Writes a field, a property, or what an expression of a select refers to by its place.
    fn field(&mut self, out: &mut String, expression: &Expression);

    fn text(&mut self, out: &mut String, text: &str);

    /// Whether the expression needs no parentheses beside operators of a precedence below
    /// `least`.
    fn is_bare(&self, expression: &Expression, _least: u8) -> bool {
        level(expression) == PIECE
    }

    /// Writes the alias of an expression, if it has one.
    fn alias(&mut self, _out: &mut String, _expression: &Expression) -> bool {
        false
    }

    /// Writes a subquery.
    fn set(&mut self, _out: &mut String, _at: usize) {}
}

/// The precedence of operators, from low to high.
const AND: u8 = 2;
pub(super) const NOT: u8 = 3;
const COMPARISON: u8 = 4;
const SUM: u8 = 5;
const PRODUCT: u8 = 6;
const SIGN: u8 = 7;
/// Names, constants and calls.
pub(super) const PIECE: u8 = 8;

/// The precedence of an expression.
pub(super) fn level(expression: &Expression) -> u8 {
    match expression {
        Expression::Or(_) => 1,
        Expression::And(_) => AND,
        Expression::Not(_) => NOT,
        Expression::Compare(..)
        | Expression::In { .. }
        | Expression::InSet { .. }
        | Expression::Like { .. }
        | Expression::Between { .. }
        | Expression::IsNull { .. } => COMPARISON,
        Expression::Arithmetic(arithmetic, ..) => of_arithmetic(*arithmetic),
        Expression::Shift { .. } => SUM,
        Expression::Negative(_) => SIGN,
        Expression::Field(_)
        | Expression::Property(..)
        | Expression::Literal(_)
        | Expression::Call(..)
        | Expression::Column(_)
        | Expression::ColumnProperty(..)
        | Expression::Key(_)
        | Expression::Aggregate(_) => PIECE,
    }
}

fn of_arithmetic(arithmetic: Arithmetic) -> u8 {
    match arithmetic {
        Arithmetic::Add | Arithmetic::Subtract => SUM,
        Arithmetic::Multiply | Arithmetic::Divide | Arithmetic::Remainder => PRODUCT,
    }
}

/// The normal form of a query.
pub(super) struct Normal;

impl Style for Normal {
    fn field(&mut self, out: &mut String, expression: &Expression) {
        match expression {
            Expression::Property(field, path) => {
                out.push_str(field.name());
                for part in path {
                    out.push('.');
                    push_name(out, part, is_keyword);
                }
            }
            Expression::Field(field) => out.push_str(field.name()),
            _ => {}
        }
    }

    fn text(&mut self, out: &mut String, text: &str) {
        push_quoted(out, '\'', text);
    }
}

/// Expressions of the schema: fields with their table, texts by name.
#[derive(Default)]
pub(super) struct Bound {
    pub(super) values: Map<String, Value>,
}

impl Style for Bound {
    fn field(&mut self, out: &mut String, expression: &Expression) {
        match expression {
            Expression::Property(field, path) => {
                let _ = write!(out, "JSONExtractString(events.{}", field.name());
                for part in path {
                    out.push_str(", ");
                    self.text(out, part);
                }
                out.push(')');
            }
            Expression::Field(field) => {
                let _ = write!(out, "events.{}", field.name());
            }
            _ => {}
        }
    }

    fn text(&mut self, out: &mut String, text: &str) {
        let name = format!("hogql_val_{}", self.values.len());
        let _ = write!(out, "%({name})s");
        self.values.insert(name, Value::from(text));
    }
}

impl Query {
    /// The query in normal form: equivalent texts have the same one.
    pub fn normal_form(&self) -> String {
        let mut out = String::from("SELECT ");
        for (at, column) in self.columns.iter().enumerate() {
            if at > 0 {
                out.push_str(", ");
            }
            let text = column.expression.normal_form();
            out.push_str(&text);
            if text != column.alias {
                out.push_str(" AS ");
                push_name(&mut out, &column.alias, is_keyword);
            }
        }
        out.push_str(" FROM events");
        if let Some(filter) = &self.filter {
            out.push_str(" WHERE ");
            write(&mut out, filter, &mut Normal);
        }
        out
    }
}

impl Expression {
    /// The expression in normal form.
    pub fn normal_form(&self) -> String {
        let mut out = String::new();
        write(&mut out, self, &mut Normal);
        out
    }
}

/// A part of a larger expression, in parentheses where operators of a precedence below `least`
/// would take it apart.
pub(super) fn part(out: &mut String, expression: &Expression, style: &mut dyn Style, least: u8) {
    if style.alias(out, expression) {
        return;
    }
    if style.is_bare(expression, least) {
        return write(out, expression, style);
    }
    out.push('(');
    write(out, expression, style);
    out.push(')');
}

/// Items with a text between them; `least`: see [`part`].
fn list(out: &mut String, items: &[Expression], between: &str, style: &mut dyn Style, least: u8) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push_str(between);
        }
        match least {
            0 => write(out, item, style),
            least => part(out, item, style, least),
        }
    }
}

// Writing to a string cannot fail.
pub(super) fn write(out: &mut String, expression: &Expression, style: &mut dyn Style) {
    if style.alias(out, expression) {
        return;
    }
    let not = |is_negated: bool| if is_negated { "NOT " } else { "" };
    match expression {
        Expression::Field(_)
        | Expression::Property(..)
        | Expression::Column(_)
        | Expression::ColumnProperty(..)
        | Expression::Key(_)
        | Expression::Aggregate(_) => style.field(out, expression),
        Expression::Literal(literal) => write_literal(out, literal, style),
        Expression::Call(function, arguments) => {
            let _ = write!(out, "{}(", function.name());
            list(out, arguments, ", ", style, 0);
            out.push(')');
        }
        Expression::And(items) => list(out, items, " AND ", style, NOT),
        Expression::Or(items) => list(out, items, " OR ", style, AND),
        Expression::Not(inner) => {
            out.push_str("NOT ");
            part(out, inner, style, COMPARISON);
        }
        Expression::Compare(comparison, left, right) => {
            part(out, left, style, SUM);
            let _ = write!(out, " {} ", comparison.sign());
            part(out, right, style, SUM);
        }
        Expression::In { value, among, is_negated } => {
            part(out, value, style, SUM);
            let _ = write!(out, " {}IN (", not(*is_negated));
            list(out, among, ", ", style, 0);
            out.push(')');
        }
        Expression::InSet { value, set, is_negated } => {
            part(out, value, style, SUM);
            let _ = write!(out, " {}IN (", not(*is_negated));
            style.set(out, *set);
            out.push(')');
        }
        Expression::Like { value, pattern, ignores_case, is_negated } => {
            part(out, value, style, SUM);
            let word = if *ignores_case { "ILIKE" } else { "LIKE" };
            let _ = write!(out, " {}{word} ", not(*is_negated));
            part(out, pattern, style, SUM);
        }
        Expression::Between { value, low, high, is_negated } => {
            part(out, value, style, SUM);
            let _ = write!(out, " {}BETWEEN ", not(*is_negated));
            part(out, low, style, SUM);
            out.push_str(" AND ");
            part(out, high, style, SUM);
        }
        Expression::IsNull { value, is_negated } => {
            part(out, value, style, SUM);
            let _ = write!(out, " IS {}NULL", not(*is_negated));
        }
        Expression::Arithmetic(arithmetic, left, right) => {
            let level = of_arithmetic(*arithmetic);
            part(out, left, style, level);
            let _ = write!(out, " {} ", arithmetic.sign());
            part(out, right, style, level + 1);
        }
        Expression::Negative(inner) => {
            out.push('-');
            part(out, inner, style, PIECE);
        }
        Expression::Shift { time, count, unit } => {
            part(out, time, style, SUM);
            let sign = if *count < 0 { '-' } else { '+' };
            let unit = unit.name().to_ascii_uppercase();
            let _ = write!(out, " {sign} INTERVAL {} {unit}", count.unsigned_abs());
        }
    }
}

fn write_literal(out: &mut String, literal: &Literal, style: &mut dyn Style) {
    match literal {
        Literal::Null => out.push_str("NULL"),
        Literal::Boolean(true) => out.push_str("true"),
        Literal::Boolean(false) => out.push_str("false"),
        Literal::Integer(number) => {
            let _ = write!(out, "{number}");
        }
        // With a point, so that it stays a floating-point number.
        Literal::Float(number) => {
            let _ = write!(out, "{number:?}");
        }
        Literal::Text(text) => style.text(out, text),
        Literal::RegularExpression(expression) => style.text(out, expression.text()),
    }
}

/// Keywords of the language, which can be names only in quotes.
pub(super) const KEYWORDS: [&str; 34] = [
    "and", "or", "not", "in", "like", "ilike", "between", "is", "null", "true", "false", "select",
    "from", "where", "as", "distinct", "join", "inner", "left", "right", "cross", "array", "union",
    "with", "group", "having", "order", "limit", "offset", "prewhere", "sample", "case", "on",
    "settings",
];

pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(word))
}

/// A name, in quotes unless it is a plain word.
pub(super) fn push_name(out: &mut String, name: &str, is_keyword: fn(&str) -> bool) {
    let is_plain =
        name.starts_with(is_word_start) && name.chars().all(is_word) && !is_keyword(name);
    if is_plain {
        out.push_str(name);
    } else {
        push_quoted(out, '`', name);
    }
}

pub(super) fn push_quoted(out: &mut String, mark: char, text: &str) {
    out.push(mark);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == mark => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out.push(mark);
}
