//! The query of an export: `SELECT … FROM events WHERE …` (EXP-15).
//!
//! What belongs here: the clauses of such a query, and the names in it. What does not:
//! expressions (`parser`).

use weir_model::exports::QUERY_MAX;

use super::error::QueryError;
use super::fields::Field;
use super::lexer::{Token, TokenKind};
use super::parser::{ALIAS, COLUMNS, NO_SUBQUERIES, PATH, Parsed, Parser};
use super::tree::{Column, Expression, Query};
use super::write::is_keyword;

const NO_JOINS: &str = "Joins are not supported: an export reads from `events` alone";

/// Parses a query.
///
/// # Errors
/// The first fault with its position.
pub fn parse(text: &str) -> Result<Query, QueryError> {
    let mut parser = Parser::new(text, QUERY_MAX)?;
    parser.table = table_alias(&parser.tokens);
    parser.query()
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

    /// The field or property of this name.
    pub(super) fn field(&self, start: usize, mut parts: Vec<String>) -> Parsed<Expression> {
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
}
