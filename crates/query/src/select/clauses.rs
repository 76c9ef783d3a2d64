//! The clauses of a question.

use super::aggregates::has_aggregate;
use super::names::Scope;
use super::tables::Table;
use super::tree::{Item, Order, Select, Source};
use super::write::default_name;
use super::{HEIGHT, KEYS, LIMIT_DEFAULT, LIMIT_MAX, OFFSET_MAX, SUBQUERY_DEPTH};
use crate::lexer::TokenKind;
use crate::parser::{ALIAS, COLUMNS, Parsed, Parser, joined, shown};
use crate::tree::{Expression, Literal};

/// What is not supported, by the word that it begins with.
const UNSUPPORTED: [(&str, &str); 16] = [
    ("union", "UNION is not supported"),
    ("except", "EXCEPT is not supported"),
    ("intersect", "INTERSECT is not supported"),
    ("window", "Window functions are not supported"),
    ("over", "Window functions are not supported"),
    ("qualify", "QUALIFY is not supported"),
    ("prewhere", "PREWHERE is not supported; use WHERE"),
    ("sample", "SAMPLE is not supported"),
    ("final", "FINAL is not supported"),
    ("settings", "SETTINGS are not supported"),
    ("format", "FORMAT is not supported"),
    ("into", "INTO is not supported"),
    ("with", "WITH is not supported"),
    ("nulls", "NULLS FIRST and NULLS LAST are not supported: null is last"),
    ("by", "LIMIT BY is not supported"),
    ("ties", "WITH TIES is not supported"),
];

/// What begins a join, behind a table.
const JOINS: [&str; 17] = [
    "join", "inner", "left", "right", "full", "outer", "cross", "array", "any", "asof", "semi",
    "anti", "global", "natural", "using", "on", "lateral",
];

const NO_JOINS: &str =
    "Joins are not supported: `person.properties` and `group_0.properties` are fields of events";

/// The first bytes of the expressions that are about groups, for faults.
struct Starts {
    items: Vec<usize>,
    having: usize,
    order: Vec<usize>,
}

impl Parser<'_> {
    /// The whole text.
    pub(super) fn question(mut self) -> Parsed<Select> {
        let mut select = self.select()?;
        self.take_sign(";");
        if !matches!(self.token().kind, TokenKind::End) {
            return Err(self.unexpected("the end of the query"));
        }
        select.limit.get_or_insert(LIMIT_DEFAULT);
        Ok(select)
    }

    /// A SELECT inside of another one.
    pub(super) fn subquery(&mut self) -> Parsed<Select> {
        self.count_subqueries(1)?;
        self.nest(1);
        if self.select.as_ref().is_some_and(|select| select.nesting > SUBQUERY_DEPTH) {
            return Err(self.here("The subqueries are nested too deep"));
        }
        let select = self.select()?;
        self.nest(-1);
        Ok(select)
    }

    fn nest(&mut self, by: isize) {
        if let Some(select) = &mut self.select {
            select.nesting = select.nesting.saturating_add_signed(by);
        }
    }

    fn select(&mut self) -> Parsed<Select> {
        let start = self.start();
        if self.at_word("with") {
            return Err(self.here("WITH is not supported; use a subquery after FROM"));
        }
        if !self.take_word("select") {
            return Err(self.here("The query must begin with SELECT"));
        }
        let is_distinct = self.take_word("distinct");
        if is_distinct && self.at_word("on") {
            return Err(self.here("DISTINCT ON is not supported"));
        }
        let (items_at, from_at) = (self.at, self.find_from());
        let (mut source, mut alias) = (Source::Table(Table::Events), None);
        if let Some(from_at) = from_at {
            self.at = from_at + 1;
            source = self.source()?;
            alias = self.alias()?;
            if self.at_sign(",") || JOINS.into_iter().any(|word| self.at_word(word)) {
                return Err(self.here(NO_JOINS));
            }
        }
        let behind_from = self.at;
        self.at = items_at;
        if let Some(select) = &mut self.select {
            select.scopes.push(Scope::new(source, alias));
        }
        let (items, item_starts) = self.items()?;
        match (from_at, &self.token().kind) {
            (Some(from_at), _) if self.at == from_at => self.at = behind_from,
            (None, TokenKind::End) => {
                return Err(self.here("The query must read FROM a table"));
            }
            _ => return Err(self.unexpected("FROM")),
        }
        let select = self.clauses(is_distinct, items, item_starts)?;
        if select.height() > HEIGHT {
            return Err(self.fault(start, "The query is nested too deep"));
        }
        Ok(select)
    }

    /// The token with FROM of the SELECT that has just begun. Names have a meaning only with
    /// the table, so it is read before them.
    fn find_from(&self) -> Option<usize> {
        let mut depth = 0_usize;
        let mut is_behind_point = false;
        for (at, token) in self.tokens.iter().enumerate().skip(self.at) {
            match &token.kind {
                TokenKind::Sign("(" | "[" | "{") => depth += 1,
                TokenKind::Sign(")" | "]" | "}") => depth = depth.checked_sub(1)?,
                TokenKind::Word(word)
                    if depth == 0 && !is_behind_point && word.eq_ignore_ascii_case("from") =>
                {
                    return Some(at);
                }
                _ => {}
            }
            is_behind_point = matches!(token.kind, TokenKind::Sign("."));
        }
        None
    }

    fn source(&mut self) -> Parsed<Source> {
        if self.take_sign("(") {
            if !self.at_word("select") && !self.at_word("with") {
                return Err(self.unexpected("SELECT"));
            }
            let inner = self.subquery()?;
            self.expect_sign(")")?;
            return Ok(Source::Select(Box::new(inner)));
        }
        let start = self.start();
        let mut name = match &self.token().kind {
            TokenKind::Word(name) if !super::is_keyword(name) => name.clone(),
            TokenKind::Quoted(name) => name.clone(),
            _ => return Err(self.unexpected("a table")),
        };
        self.at += 1;
        while self.take_sign(".") {
            let (TokenKind::Word(part) | TokenKind::Quoted(part)) = &self.token().kind else {
                return Err(self.unexpected("a name after `.`"));
            };
            name = format!("{name}.{part}");
            self.at += 1;
        }
        match Table::of(&name) {
            Some(table) if !self.at_sign("(") => Ok(Source::Table(table)),
            _ => {
                let tables = Table::ALL.map(Table::name).join(", ");
                let detail = format!("Unknown table `{}`; the tables are {tables}", shown(&name));
                Err(self.fault(start, detail))
            }
        }
    }

    /// The columns of the result, each with its first byte.
    fn items(&mut self) -> Parsed<(Vec<Item>, Vec<usize>)> {
        let (mut items, mut starts) = (Vec::new(), Vec::new());
        loop {
            let start = self.start();
            let new = match self.take_sign("*") {
                true => self.all_columns(start)?,
                false => vec![self.item()?],
            };
            for item in new {
                if item.name.chars().count() > ALIAS {
                    let detail =
                        format!("Give the column a name of at most {ALIAS} characters with AS");
                    return Err(self.fault(start, detail));
                }
                if items.iter().any(|other: &Item| other.name == item.name) {
                    let detail = format!("Two columns are named `{}`", shown(&item.name));
                    return Err(self.fault(start, detail));
                }
                items.push(item);
                starts.push(start);
            }
            if items.len() > COLUMNS {
                return Err(self.fault(start, format!("There are more than {COLUMNS} columns")));
            }
            if !self.take_sign(",") {
                return Ok((items, starts));
            }
        }
    }

    fn all_columns(&mut self, start: usize) -> Parsed<Vec<Item>> {
        let Some(scope) = self.scope_mut() else { return Ok(Vec::new()) };
        let columns = scope.all();
        scope.mentions.extend(columns.iter().map(|(column, _)| (start, column.clone())));
        for (column, _) in &columns {
            self.charge(column)?;
        }
        Ok(columns.into_iter().map(|(expression, name)| Item { expression, name }).collect())
    }

    pub(super) fn item(&mut self) -> Parsed<Item> {
        let expression = self.whole()?;
        let name = match (self.alias()?, self.scope()) {
            (Some(alias), _) => alias,
            (None, Some(scope)) => default_name(&expression, scope),
            (None, None) => String::new(),
        };
        Ok(Item { expression, name })
    }

    /// What follows FROM.
    fn clauses(
        &mut self,
        is_distinct: bool,
        items: Vec<Item>,
        item_starts: Vec<usize>,
    ) -> Parsed<Select> {
        let (filter, takes_filters) = match self.take_word("where") {
            true => self.filter()?,
            false => (None, false),
        };
        if let Some(scope) = self.scope_mut() {
            let named =
                items.iter().filter(|item| default_name(&item.expression, scope) != item.name);
            scope.aliases =
                named.map(|item| (item.name.clone(), item.expression.clone())).collect();
        }
        let groups = match self.take_word("group") {
            true => self.groups(&items)?,
            false => Vec::new(),
        };
        let having_at = self.start();
        let having = match self.take_word("having") {
            true => {
                let start = self.start();
                let having = self.whole()?;
                self.check_condition(start, &having)?;
                Some(having)
            }
            false => None,
        };
        let (order, order_starts) = match self.take_word("order") {
            true => self.order(&items)?,
            false => (Vec::new(), Vec::new()),
        };
        if is_distinct
            && let Some(at) = (order.iter())
                .position(|order| items.iter().all(|item| item.expression != order.expression))
        {
            let start = order_starts.get(at).copied().unwrap_or_default();
            let detail = "With DISTINCT, ORDER BY can only name columns of the result";
            return Err(self.fault(start, detail));
        }
        let (limit, offset) = self.limits()?;
        if let Some((_, message)) = UNSUPPORTED.into_iter().find(|(word, _)| self.at_word(word)) {
            return Err(self.here(message));
        }
        let Some(scope) = self.select.as_mut().and_then(|select| select.scopes.pop()) else {
            return Err(self.unexpected("a query"));
        };
        let mut select = Select {
            items,
            is_distinct,
            source: scope.source,
            filter,
            takes_filters,
            groups,
            aggregates: scope.aggregates,
            sets: scope.sets,
            having,
            order,
            limit,
            offset,
        };
        let starts = Starts { items: item_starts, having: having_at, order: order_starts };
        if !select.is_grouped() && select.having.is_some() {
            return Err(self.fault(having_at, "HAVING needs GROUP BY or an aggregate"));
        }
        if let Some((clause, column)) = select.group() {
            let from = starts.of(clause);
            let at = scope.mentions.iter().find(|(at, named)| *at >= from && *named == column);
            let name = super::write::name(&column, &select);
            let detail = format!("`{}` must be in GROUP BY or in an aggregate", shown(&name));
            return Err(self.fault(at.map_or(from, |(at, _)| *at), detail));
        }
        Ok(select)
    }

    /// The condition of WHERE, and whether `{filters}` is a part of it.
    fn filter(&mut self) -> Parsed<(Option<Expression>, bool)> {
        let start = self.start();
        self.set_no_aggregates(Some("WHERE"));
        let mut takes_filters = false;
        let mut items = Vec::new();
        loop {
            match self.take_filters() {
                true => takes_filters = true,
                false => items.push(self.condition()?),
            }
            if !self.take_word("and") {
                break;
            }
        }
        if items.is_empty() {
            if self.at_word("or") {
                return Err(self.here(ONLY_WITH_AND));
            }
            self.set_no_aggregates(None);
            return Ok((None, takes_filters));
        }
        let filter = joined(items, Expression::And);
        if takes_filters && self.at_word("or") {
            return Err(self.here(ONLY_WITH_AND));
        }
        let filter = self.alternatives(start, filter)?;
        if filter.height() > crate::parser::HEIGHT {
            return Err(self.fault(start, "The expression is nested too deep"));
        }
        self.set_no_aggregates(None);
        Ok((Some(filter), takes_filters))
    }

    fn groups(&mut self, items: &[Item]) -> Parsed<Vec<Expression>> {
        self.expect_by()?;
        let mut groups = Vec::new();
        for number in 1.. {
            let start = self.start();
            self.set_no_aggregates(Some("GROUP BY"));
            let expression = self.key(items)?;
            self.set_no_aggregates(None);
            if has_aggregate(&expression) {
                return Err(self.fault(start, "An aggregate cannot be in GROUP BY"));
            }
            if number > KEYS {
                let detail = format!("GROUP BY has more than {KEYS} expressions");
                return Err(self.fault(start, detail));
            }
            if !groups.contains(&expression) {
                groups.push(expression);
            }
            if !self.take_sign(",") {
                break;
            }
        }
        Ok(groups)
    }

    fn order(&mut self, items: &[Item]) -> Parsed<(Vec<Order>, Vec<usize>)> {
        self.expect_by()?;
        let (mut order, mut starts) = (Vec::new(), Vec::new());
        loop {
            let start = self.start();
            let expression = self.key(items)?;
            let is_descending = self.take_word("desc");
            if !is_descending {
                self.take_word("asc");
            }
            if order.len() >= KEYS {
                let detail = format!("ORDER BY has more than {KEYS} expressions");
                return Err(self.fault(start, detail));
            }
            order.push(Order { expression, is_descending });
            starts.push(start);
            if !self.take_sign(",") {
                return Ok((order, starts));
            }
        }
    }

    fn expect_by(&mut self) -> Parsed<()> {
        if self.take_word("by") { Ok(()) } else { Err(self.unexpected("BY")) }
    }

    /// An expression, or the number of a column of the result.
    fn key(&mut self, items: &[Item]) -> Parsed<Expression> {
        let (start, first) = (self.start(), self.at);
        let expression = self.whole()?;
        let Expression::Literal(Literal::Integer(number)) = expression else {
            return Ok(expression);
        };
        let tokens = self.tokens.get(first..self.at).unwrap_or_default();
        let is_name = |kind: &TokenKind| matches!(kind, TokenKind::Word(_) | TokenKind::Quoted(_));
        let is_sent = tokens.iter().any(|token| matches!(token.kind, TokenKind::Sign("{")));
        if !is_sent && tokens.iter().any(|token| is_name(&token.kind)) {
            // It is the alias of a number.
            return Ok(expression);
        }
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let Some(item) = at.and_then(|at| items.get(at)) else {
            return Err(self.fault(start, format!("There is no column {number}")));
        };
        self.charge(&item.expression)?;
        Ok(item.expression.clone())
    }

    /// LIMIT and OFFSET.
    fn limits(&mut self) -> Parsed<(Option<u32>, u32)> {
        let mut limit = None;
        if self.take_word("limit") {
            limit = Some(self.count("LIMIT", LIMIT_MAX)?);
            if self.at_sign(",") {
                return Err(self.here("Write LIMIT n OFFSET m"));
            }
        }
        let offset = match self.take_word("offset") {
            true => self.count("OFFSET", OFFSET_MAX)?,
            false => 0,
        };
        Ok((limit, offset))
    }

    fn count(&mut self, clause: &str, most: u32) -> Parsed<u32> {
        let start = self.start();
        let number = match self.token().kind {
            TokenKind::Integer(number) => {
                self.at += 1;
                number
            }
            TokenKind::Sign("{") => match self.placeholder()? {
                Expression::Literal(Literal::Integer(number)) => number,
                _ => return Err(self.fault(start, "Expected a whole number")),
            },
            _ => return Err(self.unexpected("a whole number")),
        };
        match u32::try_from(number).ok().filter(|number| *number <= most) {
            Some(number) => Ok(number),
            None => Err(self.fault(start, format!("{clause} is from 0 to {most}"))),
        }
    }
}

const ONLY_WITH_AND: &str = "`{filters}` can only be a condition of WHERE, joined with AND";

/// A clause that is about groups, and the place in it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Clause {
    Item(usize),
    Having,
    Order(usize),
}

impl Starts {
    fn of(&self, clause: Clause) -> usize {
        match clause {
            Clause::Item(at) => self.items.get(at).copied().unwrap_or_default(),
            Clause::Having => self.having,
            Clause::Order(at) => self.order.get(at).copied().unwrap_or_default(),
        }
    }
}
