//! Pieces of expressions that only questions have: `CASE`, casts, intervals, sets, and
//! arguments that must be constant.

use crate::functions::Function;
use crate::lexer::TokenKind;
use crate::parser::{Parsed, Parser, shown};
use crate::regular_expression::RegularExpression;
use crate::tree::{Arithmetic, Comparison, Expression, Literal, TimeUnit};

/// The types that a value can be cast to, with their functions.
const TYPES: [(&str, Function); 16] = [
    ("string", Function::ToString),
    ("text", Function::ToString),
    ("varchar", Function::ToString),
    ("int", Function::ToInt),
    ("int64", Function::ToInt),
    ("integer", Function::ToInt),
    ("bigint", Function::ToInt),
    ("float", Function::ToFloat),
    ("float64", Function::ToFloat),
    ("double", Function::ToFloat),
    ("bool", Function::ToBool),
    ("boolean", Function::ToBool),
    ("datetime", Function::ToDateTime),
    ("datetime64", Function::ToDateTime),
    ("timestamp", Function::ToDateTime),
    ("date", Function::ToDate),
];

impl Parser<'_> {
    /// `CASE WHEN a THEN b … ELSE c END`, or `CASE x WHEN a …`: the same as `multiIf`.
    pub(crate) fn case(&mut self) -> Parsed<Expression> {
        let start = self.start();
        self.at += 1;
        let compared = match self.at_word("when") {
            true => None,
            false => Some(self.expression()?),
        };
        let mut arguments = Vec::new();
        while self.take_word("when") {
            let condition_at = self.start();
            let mut condition = self.expression()?;
            match &compared {
                None => self.check_condition(condition_at, &condition)?,
                Some(compared) => {
                    self.check_comparison(condition_at, compared, &condition)?;
                    if !arguments.is_empty() {
                        self.charge(compared)?;
                    }
                    self.node()?;
                    let compared = Box::new(compared.clone());
                    let equal = Comparison::Equal;
                    condition = Expression::Compare(equal, compared, Box::new(condition));
                }
            }
            if !self.take_word("then") {
                return Err(self.unexpected("THEN"));
            }
            arguments.push(condition);
            arguments.push(self.expression()?);
        }
        if arguments.is_empty() {
            return Err(self.unexpected("WHEN"));
        }
        arguments.push(match self.take_word("else") {
            true => self.expression()?,
            false => {
                self.node()?;
                Expression::Literal(Literal::Null)
            }
        });
        if !self.take_word("end") {
            return Err(self.unexpected("END"));
        }
        if arguments.len() > Function::MultiIf.arguments().1 {
            return Err(self.fault(start, "CASE has too many branches"));
        }
        Ok(Expression::Call(Function::MultiIf, arguments))
    }

    /// `CAST(x AS type)`.
    pub(crate) fn cast(&mut self) -> Parsed<Expression> {
        self.at += 2;
        let start = self.start();
        let inner = self.expression()?;
        if !self.take_word("as") {
            return Err(self.unexpected("AS"));
        }
        let cast = self.cast_to_type(start, inner)?;
        self.expect_sign(")")?;
        Ok(cast)
    }

    /// A value cast to the type that follows.
    pub(crate) fn cast_to_type(&mut self, start: usize, inner: Expression) -> Parsed<Expression> {
        let name = match &self.token().kind {
            TokenKind::Word(name) | TokenKind::Quoted(name) => name.clone(),
            _ => return Err(self.unexpected("a type")),
        };
        let found = TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name));
        let Some((_, function)) = found else {
            return Err(self.here(format!("Unknown type `{}`", shown(&name))));
        };
        self.at += 1;
        let arguments = self.checked_arguments(*function, vec![(start, inner)])?;
        Ok(Expression::Call(*function, arguments))
    }

    /// `INTERVAL 7 DAY` after `+` or `-`.
    pub(crate) fn interval(
        &mut self,
        arithmetic: Option<Arithmetic>,
    ) -> Parsed<Option<(i64, TimeUnit)>> {
        if self.select.is_none() || !self.at_word("interval") {
            return Ok(None);
        }
        let is_negative = match arithmetic {
            Some(Arithmetic::Add) => false,
            Some(Arithmetic::Subtract) => true,
            _ => return Err(self.here("INTERVAL can only follow `+` or `-`")),
        };
        self.at += 1;
        let TokenKind::Integer(count) = self.token().kind else {
            return Err(self.unexpected("a whole number"));
        };
        self.at += 1;
        let unit = match &self.token().kind {
            TokenKind::Word(name) => TimeUnit::of(name),
            _ => None,
        };
        let Some(unit) = unit else { return Err(self.unexpected("a unit such as DAY")) };
        self.at += 1;
        Ok(Some((if is_negative { -count } else { count }, unit)))
    }

    /// `(SELECT …)` after IN: the index of the set in the list, which has each set once.
    pub(crate) fn set(&mut self) -> Parsed<Option<usize>> {
        let next = self.tokens.get(self.at + 1).map(|token| &token.kind);
        let is_select = matches!(
            next, Some(TokenKind::Word(word)) if ["select", "with"].iter().any(|first| word.eq_ignore_ascii_case(first))
        );
        if self.select.is_none() || !self.at_sign("(") || !is_select {
            return Ok(None);
        }
        self.at += 1;
        let start = self.start();
        let select = self.subquery()?;
        if select.items.len() != 1 {
            return Err(self.fault(start, "A subquery after IN has one column"));
        }
        self.expect_sign(")")?;
        let Some(scope) = self.scope_mut() else { return Ok(None) };
        let found = scope.sets.iter().position(|set| *set == select);
        Ok(Some(found.unwrap_or_else(|| {
            scope.sets.push(select);
            scope.sets.len() - 1
        })))
    }

    /// The list after IN. Its constants are counted apart from other expressions.
    pub(crate) fn constants(&mut self, close: &'static str) -> Parsed<Vec<Expression>> {
        self.no_subquery()?;
        let mut items = Vec::new();
        loop {
            match self.constant(close) {
                Some(literal) => {
                    self.count_constants(1)?;
                    items.push(Expression::Literal(literal));
                }
                None => items.push(self.expression()?),
            }
            if !self.take_sign(",") {
                break;
            }
        }
        self.expect_sign(close)?;
        Ok(items)
    }

    /// A constant that is a whole item of a list.
    fn constant(&mut self, close: &str) -> Option<Literal> {
        let is_negative = self.at_sign("-");
        let at = self.at + usize::from(is_negative);
        let literal = match (&self.tokens.get(at)?.kind, is_negative) {
            (TokenKind::Integer(number), false) => Literal::Integer(*number),
            (TokenKind::Integer(number), true) => Literal::Integer(-number),
            (TokenKind::Float(number), false) => Literal::Float(*number),
            (TokenKind::Float(number), true) => Literal::Float(-number),
            (TokenKind::Text(text), false) => Literal::Text(text.clone()),
            (TokenKind::Word(word), false) if word.eq_ignore_ascii_case("null") => Literal::Null,
            (TokenKind::Word(word), false) if word.eq_ignore_ascii_case("true") => {
                Literal::Boolean(true)
            }
            (TokenKind::Word(word), false) if word.eq_ignore_ascii_case("false") => {
                Literal::Boolean(false)
            }
            _ => return None,
        };
        let is_end = |kind: &TokenKind| matches!(kind, TokenKind::Sign(sign) if *sign == "," || *sign == close);
        if !is_end(&self.tokens.get(at + 1)?.kind) {
            return None;
        }
        self.at = at + 1;
        Some(literal)
    }

    /// Two texts after each other. More of them are one call in a question.
    pub(crate) fn concatenation(&self, left: Expression, right: Expression) -> Expression {
        let most = Function::Concat.arguments().1;
        match left {
            Expression::Call(Function::Concat, mut items)
                if self.select.is_some() && items.len() < most =>
            {
                items.push(right);
                Expression::Call(Function::Concat, items)
            }
            left => Expression::Call(Function::Concat, vec![left, right]),
        }
    }

    /// The arguments of a function: constant ones become what they mean, and types are
    /// checked.
    pub(crate) fn checked_arguments(
        &mut self,
        function: Function,
        arguments: Vec<(usize, Expression)>,
    ) -> Parsed<Vec<Expression>> {
        self.check_call(function, &arguments)?;
        let mut checked = Vec::with_capacity(arguments.len());
        for (place, (start, argument)) in arguments.into_iter().enumerate() {
            let argument = match (function, place) {
                (Function::Match | Function::Extract, 1) => {
                    self.regular_expression(start, argument)?
                }
                (Function::DateDiff, 0) => self.unit(start, &argument)?,
                _ => argument,
            };
            checked.push(argument);
        }
        Ok(checked)
    }

    fn regular_expression(&mut self, start: usize, argument: Expression) -> Parsed<Expression> {
        let Expression::Literal(Literal::Text(text)) = argument else {
            return Err(self.fault(start, "A regular expression is a text in single quotes"));
        };
        self.count_regular_expressions(1)?;
        match RegularExpression::new(&text) {
            Ok(found) => Ok(Expression::Literal(Literal::RegularExpression(found))),
            Err(detail) => Err(self.fault(start, detail)),
        }
    }

    fn unit(&self, start: usize, argument: &Expression) -> Parsed<Expression> {
        let unit = match argument {
            Expression::Literal(Literal::Text(text)) => TimeUnit::of(text),
            _ => None,
        };
        match unit {
            Some(unit) => Ok(Expression::Literal(Literal::Text(unit.name().to_owned()))),
            None => Err(self.fault(start, "Expected a unit such as 'day'")),
        }
    }
}
