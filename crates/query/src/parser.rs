//! From tokens to the tree, by recursive descent.
//!
//! From lowest to highest precedence: `OR`, `AND`, `NOT`, comparisons, `+ - ||`, `* / %`,
//! the sign of a number, names and calls.

use weir_model::exports::QUERY_MAX;

use super::error::{Position, QueryError};
use super::fields::Field;
use super::functions::Function;
use super::lexer::{Token, TokenKind, tokens};
use super::tree::{Arithmetic, Column, Comparison, Expression, Literal, Query};
use super::write::is_keyword;

/// Maximum depth of expressions while parsing.
const DEPTH: usize = 80;
/// Maximum depth of the tree. It is low enough that the normal form, which has a
/// parenthesis for each level, can be parsed again.
const HEIGHT: usize = 32;
/// Maximum number of expressions.
const NODES: usize = 2000;
/// Maximum number of columns.
const COLUMNS: usize = 256;
/// Maximum characters of the name of a column.
const ALIAS: usize = 128;
/// Maximum names in the path of a property.
const PATH: usize = 16;

const NO_SUBQUERIES: &str = "Subqueries are not supported";
const NO_JOINS: &str = "Joins are not supported: an export reads from `events` alone";

type Parsed<T> = Result<T, QueryError>;

/// Parses a query.
///
/// # Errors
/// The first fault with its position.
pub fn parse(text: &str) -> Result<Query, QueryError> {
    if text.chars().count() > QUERY_MAX {
        let position = Position { line: 1, column: 1 };
        let detail = format!("The query has more than {QUERY_MAX} characters");
        return Err(QueryError { detail, position });
    }
    let tokens = tokens(text)?;
    let table = table_alias(&tokens);
    Parser { text, tokens, at: 0, table, depth: 0, nodes: 0 }.query()
}

/// The alias of the table. It is used before it is defined.
fn table_alias(tokens: &[Token]) -> Option<String> {
    let is_word = |token: &Token, word: &str| matches!(&token.kind, TokenKind::Word(found) if found.eq_ignore_ascii_case(word));
    let from = tokens.iter().position(|token| is_word(token, "from"))?;
    let mut after = tokens.get(from + 2..)?.iter();
    let mut next = after.next()?;
    if is_word(next, "as") {
        next = after.next()?;
    }
    match &next.kind {
        TokenKind::Word(word) if !is_keyword(word) => Some(word.clone()),
        TokenKind::Quoted(word) => Some(word.clone()),
        _ => None,
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    table: Option<String>,
    depth: usize,
    nodes: usize,
}

impl Parser<'_> {
    fn query(mut self) -> Parsed<Query> {
        if self.at_word("with") {
            return Err(self.here("CTEs are not supported"));
        }
        if !self.take_word("select") {
            return Err(self.here("The query must begin with SELECT"));
        }
        if self.at_word("distinct") {
            return Err(
                self.here("DISTINCT is not supported: an export has one row for each event")
            );
        }
        let columns = self.columns()?;
        self.table()?;
        let filter = if self.take_word("where") { Some(self.whole()?) } else { None };
        self.end()?;
        Ok(Query { columns, filter })
    }

    fn columns(&mut self) -> Parsed<Vec<Column>> {
        let mut columns: Vec<Column> = Vec::new();
        loop {
            let start = self.start();
            if self.at_sign("*") {
                return Err(self.here("Name the columns: `*` is not supported"));
            }
            let expression = self.whole()?;
            let alias = match self.alias()? {
                Some(alias) => alias,
                None => expression.normal_form(),
            };
            if alias.chars().count() > ALIAS {
                let detail =
                    format!("Give the column a name of at most {ALIAS} characters with AS");
                return Err(self.fault(start, detail));
            }
            if columns.iter().any(|column| column.alias == alias) {
                return Err(self.fault(start, format!("Two columns are named `{alias}`")));
            }
            columns.push(Column { expression, alias });
            if columns.len() > COLUMNS {
                return Err(self.fault(start, format!("There are more than {COLUMNS} columns")));
            }
            if !self.take_sign(",") {
                return Ok(columns);
            }
        }
    }

    /// `AS name`, or only a name.
    fn alias(&mut self) -> Parsed<Option<String>> {
        let is_named = self.take_word("as");
        let name = match &self.token().kind {
            TokenKind::Word(word) if !is_keyword(word) => word.clone(),
            TokenKind::Quoted(word) if !word.is_empty() => word.clone(),
            _ if is_named => return Err(self.here("Expected a name after AS")),
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(name))
    }

    fn table(&mut self) -> Parsed<()> {
        if !self.take_word("from") {
            return Err(match self.token().kind {
                TokenKind::End => self.here("The query must read FROM events"),
                _ => self.unexpected("FROM events"),
            });
        }
        if self.at_sign("(") {
            return Err(self.here(NO_SUBQUERIES));
        }
        let is_events = match &self.token().kind {
            TokenKind::Word(word) | TokenKind::Quoted(word) => word == "events",
            _ => return Err(self.unexpected("events")),
        };
        if !is_events {
            return Err(self.here("Only the table `events` can be exported"));
        }
        self.at += 1;
        if self.at_sign(".") {
            return Err(self.here("Only the table `events` can be exported"));
        }
        self.alias()?;
        const JOINS: [&str; 7] = ["join", "inner", "left", "right", "cross", "array", "on"];
        if self.at_sign(",") || JOINS.into_iter().any(|word| self.at_word(word)) {
            return Err(self.here(NO_JOINS));
        }
        Ok(())
    }

    /// Only a semicolon may follow.
    fn end(&mut self) -> Parsed<()> {
        const UNSUPPORTED: [(&str, &str); 9] = [
            ("group", "GROUP BY is not supported: an export has one row for each event"),
            ("having", "HAVING is not supported: an export has one row for each event"),
            ("order", "ORDER BY is not supported: events are exported as they arrived"),
            ("limit", "LIMIT is not supported: an export has all events of its interval"),
            ("offset", "OFFSET is not supported: an export has all events of its interval"),
            ("prewhere", "PREWHERE is not supported; use WHERE"),
            ("sample", "SAMPLE is not supported"),
            ("settings", "SETTINGS are not supported"),
            ("union", "UNION is not supported"),
        ];
        if let Some((_, message)) = UNSUPPORTED.into_iter().find(|(word, _)| self.at_word(word)) {
            return Err(self.here(message));
        }
        self.take_sign(";");
        match self.token().kind {
            TokenKind::End => Ok(()),
            _ => Err(self.unexpected("the end of the query")),
        }
    }

    /// A complete expression.
    fn whole(&mut self) -> Parsed<Expression> {
        let start = self.start();
        let expression = self.expression()?;
        if height(&expression) > HEIGHT {
            return Err(self.fault(start, "The expression is nested too deep"));
        }
        Ok(expression)
    }

    fn expression(&mut self) -> Parsed<Expression> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(self.here("The expression is nested too deep"));
        }
        let first = self.conjunction()?;
        let mut items = vec![first];
        while self.take_word("or") {
            items.push(self.conjunction()?);
        }
        self.depth -= 1;
        Ok(joined(items, Expression::Or))
    }

    fn conjunction(&mut self) -> Parsed<Expression> {
        let mut items = vec![self.negation()?];
        while self.take_word("and") {
            items.push(self.negation()?);
        }
        Ok(joined(items, Expression::And))
    }

    fn negation(&mut self) -> Parsed<Expression> {
        let mut is_negated = false;
        while self.take_word("not") {
            is_negated = !is_negated;
        }
        let inner = self.comparison()?;
        Ok(if is_negated { Expression::Not(Box::new(inner)) } else { inner })
    }

    fn comparison(&mut self) -> Parsed<Expression> {
        let mut left = self.sum()?;
        loop {
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
            "in" => Expression::In { value, among: self.among()?, is_negated },
            "between" => {
                let low = Box::new(self.sum()?);
                if !self.take_word("and") {
                    return Err(self.unexpected("AND"));
                }
                let high = Box::new(self.sum()?);
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
        self.arguments(close)
    }

    fn sum(&mut self) -> Parsed<Expression> {
        let mut left = self.product()?;
        loop {
            let arithmetic = match self.token().kind {
                TokenKind::Sign("+") => Some(Arithmetic::Add),
                TokenKind::Sign("-") => Some(Arithmetic::Subtract),
                TokenKind::Sign("||") => None,
                _ => return Ok(left),
            };
            self.at += 1;
            self.node()?;
            let right = self.product()?;
            left = match (arithmetic, left) {
                (Some(arithmetic), left) => {
                    Expression::Arithmetic(arithmetic, Box::new(left), Box::new(right))
                }
                (None, left) => Expression::Call(Function::Concat, vec![left, right]),
            };
        }
    }

    fn product(&mut self) -> Parsed<Expression> {
        let mut left = self.signed()?;
        loop {
            let arithmetic = match self.token().kind {
                TokenKind::Sign("*") => Arithmetic::Multiply,
                TokenKind::Sign("/") => Arithmetic::Divide,
                TokenKind::Sign("%") => Arithmetic::Remainder,
                _ => return Ok(left),
            };
            self.at += 1;
            self.node()?;
            let right = self.signed()?;
            left = Expression::Arithmetic(arithmetic, Box::new(left), Box::new(right));
        }
    }

    fn signed(&mut self) -> Parsed<Expression> {
        let mut is_negative = false;
        while self.at_sign("-") || self.at_sign("+") {
            is_negative ^= self.at_sign("-");
            self.at += 1;
        }
        let inner = self.piece()?;
        if !is_negative {
            return Ok(inner);
        }
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
                if self.at_word("select") || self.at_word("with") {
                    return Err(self.here(NO_SUBQUERIES));
                }
                let inner = self.expression()?;
                return if self.take_sign(")") { Ok(inner) } else { Err(self.unexpected("`)`")) };
            }
            TokenKind::Quoted(name) => return self.name(start, name),
            TokenKind::Word(word) => match word.to_ascii_lowercase().as_str() {
                "null" => Literal::Null,
                "true" => Literal::Boolean(true),
                "false" => Literal::Boolean(false),
                "select" => return Err(self.here(NO_SUBQUERIES)),
                "case" => return Err(self.here("CASE is not supported; use `if` or `multiIf`")),
                lower if is_keyword(lower) && !self.is_call_after(1) => {
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

    fn is_call_after(&self, words: usize) -> bool {
        let next = self.tokens.get(self.at + words);
        matches!(next.map(|token| &token.kind), Some(TokenKind::Sign("(")))
    }

    fn call(&mut self, name: &str) -> Parsed<Expression> {
        let start = self.start();
        let Some(function) = Function::of(name) else {
            return Err(self.fault(start, format!("Unknown function `{name}`")));
        };
        self.at += 2;
        let arguments = self.arguments(")")?;
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
        Ok(Expression::Call(function, arguments))
    }

    /// At least one argument, up to the closing sign.
    fn arguments(&mut self, close: &'static str) -> Parsed<Vec<Expression>> {
        if self.at_word("select") || self.at_word("with") {
            return Err(self.here(NO_SUBQUERIES));
        }
        let mut arguments = vec![self.expression()?];
        while self.take_sign(",") {
            arguments.push(self.expression()?);
        }
        if !self.take_sign(close) {
            return Err(self.unexpected(&format!("`{close}`")));
        }
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
        self.resolve(start, parts)
    }

    fn resolve(&self, start: usize, mut parts: Vec<String>) -> Parsed<Expression> {
        let written = parts.join(".");
        let unknown = || self.fault(start, format!("Unknown field `{written}`"));
        let is_table = |part: &str| part == "events" || self.table.as_deref() == Some(part);
        if parts.len() > 1 && parts.first().is_some_and(|part| is_table(part)) {
            parts.remove(0);
        }
        if parts.len() > 1 && parts.first().is_some_and(|part| part == "person") {
            parts.remove(0);
            let of_person = match parts.first().map(String::as_str) {
                Some("properties") => Field::PersonProperties,
                Some("id") => Field::PersonId,
                _ => return Err(unknown()),
            };
            if let Some(first) = parts.first_mut() {
                *first = of_person.name().to_owned();
            }
        }
        let field = parts.first().and_then(|name| Field::of(name)).ok_or_else(unknown)?;
        let path: Vec<String> = parts.into_iter().skip(1).collect();
        if path.is_empty() {
            return Ok(Expression::Field(field));
        }
        if !field.has_properties() || path.len() > PATH || path.iter().any(String::is_empty) {
            return Err(unknown());
        }
        Ok(Expression::Property(field, path))
    }

    /// Counts an expression.
    fn node(&mut self) -> Parsed<()> {
        self.nodes += 1;
        if self.nodes > NODES {
            return Err(self.here("The query has too many expressions"));
        }
        Ok(())
    }

    fn token(&self) -> &Token {
        const END: &Token = &Token { kind: TokenKind::End, start: 0, end: 0 };
        self.tokens.get(self.at).or(self.tokens.last()).unwrap_or(END)
    }

    fn start(&self) -> usize {
        self.token().start
    }

    fn at_word(&self, word: &str) -> bool {
        matches!(&self.token().kind, TokenKind::Word(found) if found.eq_ignore_ascii_case(word))
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        self.at += usize::from(found);
        found
    }

    fn at_sign(&self, sign: &str) -> bool {
        matches!(self.token().kind, TokenKind::Sign(found) if found == sign)
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let found = self.at_sign(sign);
        self.at += usize::from(found);
        found
    }

    fn fault(&self, at: usize, detail: impl Into<String>) -> QueryError {
        QueryError { detail: detail.into(), position: Position::of(self.text, at) }
    }

    fn here(&self, detail: impl Into<String>) -> QueryError {
        self.fault(self.start(), detail)
    }

    fn unexpected(&self, expected: &str) -> QueryError {
        let token = self.token();
        let found = match token.kind {
            TokenKind::End => "the end of the query".to_owned(),
            _ => format!("`{}`", self.text.get(token.start..token.end).unwrap_or_default()),
        };
        self.here(format!("Expected {expected}, found {found}"))
    }
}

/// One item as it is, several joined.
fn joined(mut items: Vec<Expression>, join: fn(Vec<Expression>) -> Expression) -> Expression {
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

/// The depth of an expression.
fn height(expression: &Expression) -> usize {
    let highest = |items: &[Expression]| items.iter().map(height).max().unwrap_or(0);
    1 + match expression {
        Expression::Field(_) | Expression::Property(..) | Expression::Literal(_) => 0,
        Expression::Call(_, items) | Expression::And(items) | Expression::Or(items) => {
            highest(items)
        }
        Expression::Not(inner) | Expression::Negative(inner) => height(inner),
        Expression::IsNull { value, .. } => height(value),
        Expression::Compare(_, left, right) | Expression::Arithmetic(_, left, right) => {
            height(left).max(height(right))
        }
        Expression::In { value, among, .. } => height(value).max(highest(among)),
        Expression::Like { value, pattern, .. } => height(value).max(height(pattern)),
        Expression::Between { value, low, high, .. } => {
            height(value).max(height(low)).max(height(high))
        }
    }
}
