//! Filters (RFC 7644, 3.4.2.2): reading one, and whether a resource matches it.
//!
//! A filter comes from outside: its length, its depth and the number of its comparisons are
//! bounded, and reading and matching take time in proportion to them.

use std::cmp::Ordering;

use chrono::{DateTime, FixedOffset};
use serde_json::Value;

use crate::fault::{Fault, FaultKind};
use crate::member;

/// Most bytes of a filter.
pub const FILTER_MAX: usize = 2048;
/// Most brackets and parentheses within one another.
const DEPTH_MAX: usize = 8;
/// Most comparisons.
const COMPARISONS_MAX: usize = 32;

/// Attributes whose values are compared with regard to case.
const EXACT: [&str; 2] = ["id", "externalid"];
/// Attributes whose values are times, as parts of `meta`.
const TIMES: [&str; 2] = ["created", "lastmodified"];

/// A filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter(Expression);

#[derive(Debug, Clone, PartialEq)]
enum Expression {
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Not(Box<Expression>),
    Present(Attribute),
    Compare(Attribute, Operator, Value),
    /// One value of the attribute matches.
    Any(Attribute, Box<Expression>),
}

/// A name and the name of a part, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Attribute {
    name: String,
    part: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Contains,
    Begins,
    Ends,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Operator {
    fn of(word: &str) -> Option<Self> {
        Some(match word.to_ascii_lowercase().as_str() {
            "eq" => Self::Equal,
            "ne" => Self::NotEqual,
            "co" => Self::Contains,
            "sw" => Self::Begins,
            "ew" => Self::Ends,
            "gt" => Self::Greater,
            "ge" => Self::GreaterOrEqual,
            "lt" => Self::Less,
            "le" => Self::LessOrEqual,
            _ => return None,
        })
    }

    /// Whether it looks for a piece of a text.
    const fn is_about_text(self) -> bool {
        matches!(self, Self::Contains | Self::Begins | Self::Ends)
    }
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// `invalidFilter`.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        if text.len() > FILTER_MAX {
            return Err(fault(format!("The filter is longer than {FILTER_MAX} bytes.")));
        }
        let mut parser = Parser { text, at: 0, depth: 0, comparisons: 0 };
        let expression = parser.or()?;
        parser.skip_blanks();
        if parser.rest().is_empty() { Ok(Self(expression)) } else { Err(parser.unexpected()) }
    }

    /// Whether a resource, or a value of a list, matches.
    pub fn matches(&self, resource: &Value) -> bool {
        self.0.matches(resource)
    }

    /// The text that one attribute, or one of its values, must have, if the filter asks for
    /// it, alone or with more. It finds the few resources that can match, which are then
    /// compared with the filter.
    pub fn must_equal(&self, name: &str) -> Option<&str> {
        self.0.must_equal(name)
    }

    /// The part and its text, if the filter compares one part with one text.
    pub(crate) fn only_part(&self) -> Option<(&str, &str)> {
        match &self.0 {
            Expression::Compare(attribute, Operator::Equal, Value::String(text))
                if attribute.part.is_none() =>
            {
                Some((&attribute.name, text))
            }
            _ => None,
        }
    }

    /// Whether the filter reads an attribute.
    pub fn reads(&self, name: &str) -> bool {
        self.0.reads(name)
    }
}

impl Expression {
    fn matches(&self, resource: &Value) -> bool {
        match self {
            Self::And(all) => all.iter().all(|one| one.matches(resource)),
            Self::Or(any) => any.iter().any(|one| one.matches(resource)),
            Self::Not(one) => !one.matches(resource),
            Self::Present(attribute) => {
                attribute.values(resource).into_iter().any(|value| !is_empty(value))
            }
            Self::Compare(attribute, operator, with) => {
                let values = attribute.values(resource);
                let is = |operator, value: &Value| attribute.compares(value, operator, with);
                match operator {
                    Operator::NotEqual => {
                        !values.into_iter().any(|value| is(Operator::Equal, value))
                    }
                    operator => values.into_iter().any(|value| is(*operator, value)),
                }
            }
            Self::Any(attribute, expression) => {
                let found = member(resource, &attribute.name);
                each(found).into_iter().any(|value| expression.matches(value))
            }
        }
    }

    fn must_equal(&self, name: &str) -> Option<&str> {
        match self {
            Self::And(all) => all.iter().find_map(|one| one.must_equal(name)),
            Self::Compare(attribute, Operator::Equal, Value::String(text))
                if attribute.is_value_of(name) =>
            {
                Some(text)
            }
            Self::Any(attribute, one) if attribute.is_value_of(name) => one.must_equal("value"),
            _ => None,
        }
    }

    fn reads(&self, name: &str) -> bool {
        match self {
            Self::And(all) | Self::Or(all) => all.iter().any(|one| one.reads(name)),
            Self::Not(one) => one.reads(name),
            Self::Present(attribute) | Self::Compare(attribute, ..) | Self::Any(attribute, _) => {
                attribute.name.eq_ignore_ascii_case(name)
            }
        }
    }
}

impl Attribute {
    /// The values of the attribute. That of an object is its part `value`.
    fn values<'a>(&self, resource: &'a Value) -> Vec<&'a Value> {
        let part = self.part.as_deref();
        let value = |value: &'a Value| match part {
            Some(part) => member(value, part),
            None if value.is_object() => member(value, "value").or(Some(value)),
            None => Some(value),
        };
        let found = each(member(resource, &self.name)).into_iter().filter_map(value);
        found.flat_map(|value| each(Some(value))).collect()
    }

    /// Whether it means the values of the attribute with this name.
    fn is_value_of(&self, name: &str) -> bool {
        let is_value = self.part.as_deref().is_none_or(|part| part == "value");
        is_value && self.name.eq_ignore_ascii_case(name)
    }

    fn is_exact(&self) -> bool {
        self.part.is_none() && EXACT.contains(&self.name.as_str())
    }

    fn is_time(&self) -> bool {
        TIMES.contains(&self.part.as_deref().unwrap_or(&self.name))
    }

    fn compares(&self, value: &Value, operator: Operator, with: &Value) -> bool {
        match (value, with) {
            (Value::String(value), Value::String(with)) => {
                if self.is_time() && !operator.is_about_text() {
                    let times = time(value).zip(time(with));
                    times.is_some_and(|(value, with)| of_order(value.cmp(&with), operator))
                } else if self.is_exact() {
                    of_texts(value, operator, with)
                } else {
                    of_texts(&value.to_lowercase(), operator, &with.to_lowercase())
                }
            }
            (Value::Number(value), Value::Number(with)) => {
                let order = value.as_f64().and_then(|value| value.partial_cmp(&with.as_f64()?));
                order.is_some_and(|order| of_order(order, operator))
            }
            (value, with) => operator == Operator::Equal && value == with,
        }
    }
}

/// A time as XML Schema writes it (RFC 7643, 2.3.5). Without a zone it is in UTC.
fn time(text: &str) -> Option<DateTime<FixedOffset>> {
    let read = |text: &str| DateTime::parse_from_rfc3339(text).ok();
    read(text).or_else(|| read(&format!("{text}Z")))
}

/// The values of a list, or the one value.
fn each(value: Option<&Value>) -> Vec<&Value> {
    match value {
        Some(Value::Array(values)) => values.iter().collect(),
        Some(value) => vec![value],
        None => Vec::new(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn of_texts(value: &str, operator: Operator, with: &str) -> bool {
    match operator {
        Operator::Contains => value.contains(with),
        Operator::Begins => value.starts_with(with),
        Operator::Ends => value.ends_with(with),
        operator => of_order(value.cmp(with), operator),
    }
}

fn of_order(order: Ordering, operator: Operator) -> bool {
    match operator {
        Operator::Equal => order.is_eq(),
        Operator::Greater => order.is_gt(),
        Operator::GreaterOrEqual => order.is_ge(),
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::NotEqual | Operator::Contains | Operator::Begins | Operator::Ends => false,
    }
}

fn fault(detail: impl Into<String>) -> Fault {
    Fault::new(FaultKind::InvalidFilter, detail)
}

/// Reads a text from its beginning, by recursive descent.
struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    comparisons: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn unexpected(&self) -> Fault {
        let at = self.text.get(..self.at).map_or(0, |before| before.chars().count()) + 1;
        fault(format!("The filter cannot be read from its character {at}."))
    }

    /// Takes a sign that comes next.
    fn takes(&mut self, sign: char) -> bool {
        self.skip_blanks();
        let is_next = self.rest().starts_with(sign);
        if is_next {
            self.at += sign.len_utf8();
        }
        is_next
    }

    fn expect(&mut self, sign: char) -> Result<(), Fault> {
        if self.takes(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// The word that comes next, which is not taken.
    fn word(&mut self) -> &'a str {
        self.skip_blanks();
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_-$.:".contains(c);
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is_next = self.word().eq_ignore_ascii_case(word);
        if is_next {
            self.at += word.len();
        }
        is_next
    }

    fn or(&mut self) -> Result<Expression, Fault> {
        let mut any = vec![self.and()?];
        while self.takes_word("or") {
            any.push(self.and()?);
        }
        Ok(one_or(any, Expression::Or))
    }

    fn and(&mut self) -> Result<Expression, Fault> {
        let mut all = vec![self.term()?];
        while self.takes_word("and") {
            all.push(self.term()?);
        }
        Ok(one_or(all, Expression::And))
    }

    fn term(&mut self) -> Result<Expression, Fault> {
        if self.takes('(') {
            return self.within(')');
        }
        if self.word().eq_ignore_ascii_case("not") {
            self.takes_word("not");
            self.expect('(')?;
            return Ok(Expression::Not(Box::new(self.within(')')?)));
        }
        self.comparison()
    }

    /// An expression up to the sign that closes it.
    fn within(&mut self, end: char) -> Result<Expression, Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(fault(format!("The filter is nested more than {DEPTH_MAX} times.")));
        }
        let expression = self.or()?;
        self.expect(end)?;
        self.depth -= 1;
        Ok(expression)
    }

    fn comparison(&mut self) -> Result<Expression, Fault> {
        self.comparisons += 1;
        if self.comparisons > COMPARISONS_MAX {
            return Err(fault(format!("The filter has more than {COMPARISONS_MAX} comparisons.")));
        }
        let attribute = self.attribute()?;
        if !self.rest().starts_with('[') {
            return self.test(attribute);
        }
        self.at += 1;
        let mut one = self.within(']')?;
        // Entra compares a part of the value that it looks for:
        // `emails[type eq "work"].value eq "x"`.
        if self.rest().starts_with('.') {
            self.at += 1;
            let part = self.attribute()?;
            if part.part.is_some() {
                return Err(self.unexpected());
            }
            one = Expression::And(vec![one, self.test(part)?]);
        }
        Ok(Expression::Any(attribute, Box::new(one)))
    }

    /// The name of an attribute, which is taken.
    fn attribute(&mut self) -> Result<Attribute, Fault> {
        let word = self.word();
        let attribute = attribute(word).ok_or_else(|| self.unexpected())?;
        self.at += word.len();
        Ok(attribute)
    }

    /// What is asked of an attribute.
    fn test(&mut self, attribute: Attribute) -> Result<Expression, Fault> {
        if self.takes_word("pr") {
            return Ok(Expression::Present(attribute));
        }
        let word = self.word();
        let operator = Operator::of(word).ok_or_else(|| self.unexpected())?;
        self.at += word.len();
        let value = self.value()?;
        let is_text = value.is_string();
        let is_ordered = is_text || value.is_number();
        let fits = match operator {
            Operator::Equal | Operator::NotEqual => true,
            Operator::Contains | Operator::Begins | Operator::Ends => is_text,
            Operator::Greater
            | Operator::GreaterOrEqual
            | Operator::Less
            | Operator::LessOrEqual => is_ordered,
        };
        if !fits {
            return Err(fault("The filter compares a value that has no such order."));
        }
        // Null is the same as no value (RFC 7643, 2.5).
        if value.is_null() {
            let present = Expression::Present(attribute);
            return Ok(match operator {
                Operator::NotEqual => present,
                _ => Expression::Not(Box::new(present)),
            });
        }
        let has_time = || value.as_str().is_some_and(|text| time(text).is_some());
        if attribute.is_time() && !operator.is_about_text() && !has_time() {
            return Err(fault("The filter compares a time with a text that is no time."));
        }
        Ok(Expression::Compare(attribute, operator, value))
    }

    /// A JSON value that is no object and no list.
    fn value(&mut self) -> Result<Value, Fault> {
        self.skip_blanks();
        let rest = self.rest();
        let length = if rest.starts_with('"') {
            text_length(rest).ok_or_else(|| self.unexpected())?
        } else {
            self.word().len()
        };
        let text = rest.get(..length).unwrap_or_default();
        let value = serde_json::from_str(text)
            .or_else(|_| serde_json::from_str(&text.to_ascii_lowercase()))
            .map_err(|_| self.unexpected())?;
        self.at += length;
        Ok(value)
    }
}

/// The bytes of the JSON text at the beginning, with its quotation marks.
pub(crate) fn text_length(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The one expression, or all of them together.
fn one_or(mut all: Vec<Expression>, together: fn(Vec<Expression>) -> Expression) -> Expression {
    match (all.len(), all.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            all.extend(last);
            together(all)
        }
    }
}

/// Reads a name such as `name.givenName`, with or without its schema.
fn attribute(word: &str) -> Option<Attribute> {
    let name = word.rsplit_once(':').map_or(word, |(_, name)| name);
    let (name, part) = match name.split_once('.') {
        Some((name, part)) => (name, Some(part)),
        None => (name, None),
    };
    let is_name = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '$')
            && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-$".contains(&c))
    };
    (is_name(name) && part.is_none_or(is_name)).then(|| Attribute {
        name: name.to_ascii_lowercase(),
        part: part.map(str::to_ascii_lowercase),
    })
}
