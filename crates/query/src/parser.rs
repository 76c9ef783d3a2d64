//! Expressions: from tokens to the tree, by recursive descent.
//!
//! From lowest to highest precedence: `OR`, `AND`, `NOT`, comparisons, `+ - ||`, `* / %`,
//! the sign of a number, names and calls.
//!
//! What belongs here: the grammar of expressions, in exports and questions. What does not:
//! the clauses around them and what names mean (`export`, `select`). Where the two differ,
//! `select` is asked.

use super::error::{Position, QueryError};
use super::functions::Function;
use super::lexer::{Token, TokenKind, tokens};
use super::select::Selecting;
use super::tree::{Arithmetic, Comparison, Expression, Literal};
use super::write::is_keyword;

/// Maximum depth of expressions while parsing.
const DEPTH: usize = 80;
/// Maximum depth of the tree. It is low enough that the normal form, which has a
/// parenthesis for each level, can be parsed again.
pub(crate) const HEIGHT: usize = 32;
/// Maximum number of expressions.
pub(crate) const NODES: usize = 2000;
/// Maximum number of columns.
pub(crate) const COLUMNS: usize = 256;
/// Maximum characters of the name of a column.
pub(crate) const ALIAS: usize = 128;
/// Maximum names in the path of a property.
pub(crate) const PATH: usize = 16;
/// Maximum characters of the query that a fault repeats.
const SHOWN: usize = 64;

pub(crate) const NO_SUBQUERIES: &str = "Subqueries are not supported";

pub(crate) type Parsed<T> = Result<T, QueryError>;

pub(crate) struct Parser<'a> {
    text: &'a str,
    pub(crate) tokens: Vec<Token>,
    pub(crate) at: usize,
    /// The alias of the table in the query of an export.
    pub(crate) table: Option<String>,
    /// The state of a question; `None`: the text is the query of an export.
    pub(crate) select: Option<Selecting<'a>>,
    depth: usize,
    pub(crate) nodes: usize,
}

impl<'a> Parser<'a> {
    /// A parser of a text, which must not have more characters than `most`.
    pub(crate) fn new(text: &'a str, most: usize) -> Parsed<Self> {
        if text.chars().count() > most {
            let position = Position { line: 1, column: 1 };
            let detail = format!("The query has more than {most} characters");
            return Err(QueryError { detail, position });
        }
        let tokens = tokens(text)?;
        Ok(Self { text, tokens, at: 0, table: None, select: None, depth: 0, nodes: 0 })
    }

    /// `AS name`, or only a name.
    pub(crate) fn alias(&mut self) -> Parsed<Option<String>> {
        let is_named = self.take_word("as");
        let name = match &self.token().kind {
            TokenKind::Word(word) if !self.is_reserved(word) => word.clone(),
            TokenKind::Quoted(word) if !word.is_empty() => word.clone(),
            _ if is_named => return Err(self.here("Expected a name after AS")),
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(name))
    }

    /// Whether a word can be a name only in quotes.
    fn is_reserved(&self, word: &str) -> bool {
        match &self.select {
            Some(_) => super::select::is_keyword(word),
            None => is_keyword(word),
        }
    }

    /// A complete expression.
    pub(crate) fn whole(&mut self) -> Parsed<Expression> {
        let start = self.start();
        let expression = self.expression()?;
        if expression.height() > HEIGHT {
            return Err(self.fault(start, "The expression is nested too deep"));
        }
        Ok(expression)
    }

    pub(crate) fn expression(&mut self) -> Parsed<Expression> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(self.here("The expression is nested too deep"));
        }
        let start = self.start();
        let first = self.conjunction()?;
        let found = self.alternatives(start, first)?;
        self.depth -= 1;
        Ok(found)
    }

    /// What follows the first part of an `OR`.
    pub(crate) fn alternatives(&mut self, start: usize, first: Expression) -> Parsed<Expression> {
        let mut items = vec![first];
        while self.at_word("or") {
            if let [first] = items.as_slice() {
                self.check_condition(start, first)?;
            }
            self.at += 1;
            let start = self.start();
            let item = self.conjunction()?;
            self.check_condition(start, &item)?;
            items.push(item);
        }
        Ok(joined(items, Expression::Or))
    }

    fn conjunction(&mut self) -> Parsed<Expression> {
        let start = self.start();
        let mut items = vec![self.negation()?];
        while self.at_word("and") {
            if let [first] = items.as_slice() {
                self.check_condition(start, first)?;
            }
            self.at += 1;
            items.push(self.condition()?);
        }
        Ok(joined(items, Expression::And))
    }

    /// A part of an `AND`.
    pub(crate) fn condition(&mut self) -> Parsed<Expression> {
        let start = self.start();
        let item = self.negation()?;
        self.check_condition(start, &item)?;
        Ok(item)
    }

    fn negation(&mut self) -> Parsed<Expression> {
        let mut is_negated = false;
        while self.take_word("not") {
            is_negated = !is_negated;
        }
        let start = self.start();
        let inner = self.comparison()?;
        if !is_negated {
            return Ok(inner);
        }
        self.check_condition(start, &inner)?;
        Ok(Expression::Not(Box::new(inner)))
    }

    fn comparison(&mut self) -> Parsed<Expression> {
        let mut left = self.sum()?;
        loop {
            let sign_at = self.start();
            let comparison = match self.token().kind {
                TokenKind::Sign("=" | "==") => Comparison::Equal,
                TokenKind::Sign("!=" | "<>") => Comparison::NotEqual,
                TokenKind::Sign("<") => Comparison::Less,
                TokenKind::Sign("<=") => Comparison::LessOrEqual,
                TokenKind::Sign(">") => Comparison::Greater,
                TokenKind::Sign(">=") => Comparison::GreaterOrEqual,
                _ => match self.predicate(left)? {
                    (found, true) => {
                        left = found;
                        continue;
                    }
                    (same, false) => return Ok(same),
                },
            };
            self.at += 1;
            self.node()?;
            let right = self.sum()?;
            self.check_comparison(sign_at, &left, &right)?;
            left = Expression::Compare(comparison, Box::new(left), Box::new(right));
        }
    }

    /// `IS NULL`, `IN`, `LIKE` and `BETWEEN` after a value; `false`: there is none of
    /// them, and the value is unchanged.
    fn predicate(&mut self, value: Expression) -> Parsed<(Expression, bool)> {
        if self.take_word("is") {
            self.node()?;
            let is_negated = self.take_word("not");
            if !self.take_word("null") {
                return Err(self.unexpected("NULL"));
            }
            return Ok((Expression::IsNull { value: Box::new(value), is_negated }, true));
        }
        let start = self.start();
        let is_negated = self.at_word("not");
        let word_at = self.at + usize::from(is_negated);
        let word = match self.tokens.get(word_at).map(|token| &token.kind) {
            Some(TokenKind::Word(word)) => word.to_ascii_lowercase(),
            _ => String::new(),
        };
        if !matches!(word.as_str(), "in" | "like" | "ilike" | "between") {
            return Ok((value, false));
        }
        self.at = word_at + 1;
        self.node()?;
        let value = Box::new(value);
        let found = match word.as_str() {
            "in" => match self.set()? {
                Some(set) => {
                    self.check_set(start, &value, set)?;
                    Expression::InSet { value, set, is_negated }
                }
                None => {
                    let among = self.among()?;
                    for item in &among {
                        self.check_comparison(start, &value, item)?;
                    }
                    Expression::In { value, among, is_negated }
                }
            },
            "between" => {
                let low = Box::new(self.sum()?);
                if !self.take_word("and") {
                    return Err(self.unexpected("AND"));
                }
                let high = Box::new(self.sum()?);
                self.check_comparison(start, &value, &low)?;
                self.check_comparison(start, &value, &high)?;
                Expression::Between { value, low, high, is_negated }
            }
            _ => {
                let pattern = Box::new(self.sum()?);
                let ignores_case = word == "ilike";
                Expression::Like { value, pattern, ignores_case, is_negated }
            }
        };
        Ok((found, true))
    }

    fn among(&mut self) -> Parsed<Vec<Expression>> {
        let close = if self.take_sign("(") {
            ")"
        } else if self.take_sign("[") {
            "]"
        } else {
            return Err(self.unexpected("a list in parentheses"));
        };
        match self.select {
            Some(_) => self.constants(close),
            None => Ok(expressions(self.arguments(close)?)),
        }
    }

    fn sum(&mut self) -> Parsed<Expression> {
        let mut left = self.product()?;
        loop {
            let sign_at = self.start();
            let arithmetic = match self.token().kind {
                TokenKind::Sign("+") => Some(Arithmetic::Add),
                TokenKind::Sign("-") => Some(Arithmetic::Subtract),
                TokenKind::Sign("||") => None,
                _ => return Ok(left),
            };
            self.at += 1;
            self.node()?;
            if let Some((count, unit)) = self.interval(arithmetic)? {
                self.check_time(sign_at, &left)?;
                left = Expression::Shift { time: Box::new(left), count, unit };
                continue;
            }
            let right = self.product()?;
            left = match arithmetic {
                Some(arithmetic) => {
                    self.check_arithmetic(sign_at, arithmetic, &left, &right)?;
                    Expression::Arithmetic(arithmetic, Box::new(left), Box::new(right))
                }
                None => self.concatenation(left, right),
            };
        }
    }

    fn product(&mut self) -> Parsed<Expression> {
        let mut left = self.signed()?;
        loop {
            let sign_at = self.start();
            let arithmetic = match self.token().kind {
                TokenKind::Sign("*") => Arithmetic::Multiply,
                TokenKind::Sign("/") => Arithmetic::Divide,
                TokenKind::Sign("%") => Arithmetic::Remainder,
                _ => return Ok(left),
            };
            self.at += 1;
            self.node()?;
            let right = self.signed()?;
            self.check_arithmetic(sign_at, arithmetic, &left, &right)?;
            left = Expression::Arithmetic(arithmetic, Box::new(left), Box::new(right));
        }
    }

    fn signed(&mut self) -> Parsed<Expression> {
        let start = self.start();
        let mut is_negative = false;
        while self.at_sign("-") || self.at_sign("+") {
            is_negative ^= self.at_sign("-");
            self.at += 1;
        }
        let inner_start = self.start();
        let mut inner = self.piece()?;
        while self.select.is_some() && self.take_sign("::") {
            self.node()?;
            inner = self.cast_to_type(inner_start, inner)?;
        }
        if !is_negative {
            return Ok(inner);
        }
        self.check_number(start, &inner)?;
        Ok(match inner {
            Expression::Literal(Literal::Integer(number)) => {
                Expression::Literal(Literal::Integer(-number))
            }
            Expression::Literal(Literal::Float(number)) => {
                Expression::Literal(Literal::Float(-number))
            }
            other => Expression::Negative(Box::new(other)),
        })
    }

    fn piece(&mut self) -> Parsed<Expression> {
        self.node()?;
        let start = self.start();
        let literal = match self.token().kind.clone() {
            TokenKind::Integer(number) => Literal::Integer(number),
            TokenKind::Float(number) => Literal::Float(number),
            TokenKind::Text(text) => Literal::Text(text),
            TokenKind::Sign("(") => {
                self.at += 1;
                self.no_subquery()?;
                let inner = self.expression()?;
                self.expect_sign(")")?;
                return Ok(inner);
            }
            TokenKind::Sign("{") if self.select.is_some() => return self.placeholder(),
            TokenKind::Quoted(name) => return self.name(start, name),
            TokenKind::Word(word) => match word.to_ascii_lowercase().as_str() {
                "null" => Literal::Null,
                "true" => Literal::Boolean(true),
                "false" => Literal::Boolean(false),
                "select" => return Err(self.here(NO_SUBQUERIES)),
                "case" if self.select.is_some() => return self.case(),
                "cast" if self.select.is_some() && self.is_call_after(1) => return self.cast(),
                "case" => return Err(self.here("CASE is not supported; use `if` or `multiIf`")),
                lower if self.is_reserved(lower) && !self.is_call_after(1) => {
                    return Err(self.unexpected("an expression"));
                }
                _ if self.is_call_after(1) => return self.call(&word),
                _ => return self.name(start, word),
            },
            TokenKind::Sign(_) | TokenKind::End => return Err(self.unexpected("an expression")),
        };
        self.at += 1;
        Ok(Expression::Literal(literal))
    }

    /// No subquery may begin here.
    pub(crate) fn no_subquery(&self) -> Parsed<()> {
        let is_there = self.at_word("select") || self.at_word("with");
        match (is_there, &self.select) {
            (false, _) => Ok(()),
            (true, None) => Err(self.here(NO_SUBQUERIES)),
            (true, Some(_)) => Err(self.here("A subquery can only follow FROM or IN")),
        }
    }

    fn is_call_after(&self, words: usize) -> bool {
        let next = self.tokens.get(self.at + words);
        matches!(next.map(|token| &token.kind), Some(TokenKind::Sign("(")))
    }

    fn call(&mut self, name: &str) -> Parsed<Expression> {
        let start = self.start();
        if let Some(aggregate) = self.aggregate(name)? {
            return Ok(aggregate);
        }
        let can_call = |function: &Function| self.select.is_some() || function.is_for_exports();
        let Some(function) = Function::of(name).filter(can_call) else {
            return Err(self.fault(start, format!("Unknown function `{}`", shown(name))));
        };
        self.at += 2;
        let arguments = match self.select.is_some() && self.take_sign(")") {
            true => Vec::new(),
            false => self.arguments(")")?,
        };
        let (least, most) = function.arguments();
        if arguments.len() < least || arguments.len() > most {
            let expected = match least == most {
                true => least.to_string(),
                false => format!("{least} to {most}"),
            };
            let (name, found) = (function.name(), arguments.len());
            let detail = format!("`{name}` takes {expected} arguments, not {found}");
            return Err(self.fault(start, detail));
        }
        if function == Function::MultiIf && arguments.len() % 2 == 0 {
            let detail = "`multiIf` takes a value behind each condition, and one more at the end";
            return Err(self.fault(start, detail));
        }
        let arguments = match self.select {
            Some(_) => self.checked_arguments(function, arguments)?,
            None => expressions(arguments),
        };
        Ok(Expression::Call(function, arguments))
    }

    /// At least one argument, up to the closing sign, each with its first byte.
    pub(crate) fn arguments(&mut self, close: &'static str) -> Parsed<Vec<(usize, Expression)>> {
        self.no_subquery()?;
        let mut arguments = Vec::new();
        loop {
            let start = self.start();
            arguments.push((start, self.expression()?));
            if !self.take_sign(",") {
                break;
            }
        }
        self.expect_sign(close)?;
        Ok(arguments)
    }

    /// A field or a property: `event`, `properties.$browser`,
    /// `events.properties['a b']`, `person.properties.email`.
    fn name(&mut self, start: usize, first: String) -> Parsed<Expression> {
        self.at += 1;
        let mut parts = vec![first];
        loop {
            if self.take_sign(".") {
                match self.token().kind.clone() {
                    TokenKind::Word(word) | TokenKind::Quoted(word) => parts.push(word),
                    _ => return Err(self.unexpected("a name after `.`")),
                }
                self.at += 1;
            } else if self.take_sign("[") {
                let TokenKind::Text(word) = self.token().kind.clone() else {
                    return Err(self.unexpected("a text in single quotation marks"));
                };
                parts.push(word);
                self.at += 1;
                if !self.take_sign("]") {
                    return Err(self.unexpected("`]`"));
                }
            } else {
                break;
            }
        }
        match self.select {
            Some(_) => self.resolve(start, parts),
            None => self.field(start, parts),
        }
    }

    /// Counts an expression.
    pub(crate) fn node(&mut self) -> Parsed<()> {
        self.nodes += 1;
        if self.nodes > NODES {
            return Err(self.here("The query has too many expressions"));
        }
        Ok(())
    }

    pub(crate) fn token(&self) -> &Token {
        const END: &Token = &Token { kind: TokenKind::End, start: 0, end: 0 };
        self.tokens.get(self.at).or(self.tokens.last()).unwrap_or(END)
    }

    pub(crate) fn start(&self) -> usize {
        self.token().start
    }

    pub(crate) fn at_word(&self, word: &str) -> bool {
        matches!(&self.token().kind, TokenKind::Word(found) if found.eq_ignore_ascii_case(word))
    }

    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn at_sign(&self, sign: &str) -> bool {
        matches!(self.token().kind, TokenKind::Sign(found) if found == sign)
    }

    pub(crate) fn take_sign(&mut self, sign: &str) -> bool {
        let found = self.at_sign(sign);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn expect_sign(&mut self, sign: &str) -> Parsed<()> {
        if self.take_sign(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    pub(crate) fn fault(&self, at: usize, detail: impl Into<String>) -> QueryError {
        QueryError { detail: detail.into(), position: Position::of(self.text, at) }
    }

    pub(crate) fn here(&self, detail: impl Into<String>) -> QueryError {
        self.fault(self.start(), detail)
    }

    pub(crate) fn unexpected(&self, expected: &str) -> QueryError {
        let token = self.token();
        let found = match token.kind {
            TokenKind::End => "the end of the query".to_owned(),
            _ => {
                let text = self.text.get(token.start..token.end).unwrap_or_default();
                format!("`{}`", shown(text))
            }
        };
        self.here(format!("Expected {expected}, found {found}"))
    }
}

/// As much of a name as a fault repeats, on one line.
pub(crate) fn shown(name: &str) -> String {
    let mut shown: String =
        name.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if name.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// The expressions without their first bytes.
fn expressions(arguments: Vec<(usize, Expression)>) -> Vec<Expression> {
    arguments.into_iter().map(|(_, expression)| expression).collect()
}

/// One item as it is, several joined.
pub(crate) fn joined(
    mut items: Vec<Expression>,
    join: fn(Vec<Expression>) -> Expression,
) -> Expression {
    match items.pop() {
        Some(only) if items.is_empty() => only,
        Some(last) => {
            items.push(last);
            join(items)
        }
        // There is always at least one.
        None => Expression::Literal(Literal::Null),
    }
}
