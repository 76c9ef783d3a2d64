//! Open brackets, and the length of the chains in each.

use super::{Before, CHAIN_MAX, Grammar, NESTING_MAX, Scan};
use crate::error::Fault;

/// The closing character of an expression in a template. The text has `}` there; after it,
/// the template continues.
pub(super) const TEMPLATE_EXPRESSION: u8 = b'`';

/// An open bracket.
pub(super) struct Level {
    /// The closing character: `)`, `]`, `}` or [`TEMPLATE_EXPRESSION`].
    closer: u8,
    /// Whether it is the head of `if`, `for`, `while` or `with`.
    head: bool,
    /// Chain of statements: reset at the end of a statement.
    statements: usize,
    /// Chain of operators: also reset by commas.
    operators: usize,
}

impl Level {
    /// A bracket with this closing character.
    pub(super) fn new(closer: u8, head: bool) -> Self {
        Self { closer, head, statements: 0, operators: 0 }
    }
}

impl Scan<'_> {
    pub(super) fn open_bracket(&mut self, byte: u8) -> Result<(), Fault> {
        self.at += 1;
        // After `}`, a bracket may continue the previous expression.
        self.may_end &= self.before != Before::Brace;
        self.end_statement();
        let head = byte == b'('
            && self.word.is_some_and(|word| ["if", "for", "while", "with"].contains(&word));
        self.count_chain(false, 1)?;
        let closer = match byte {
            b'(' => b')',
            b'[' => b']',
            _ => b'}',
        };
        self.push_level(Level::new(closer, head))
    }

    pub(super) fn push_level(&mut self, level: Level) -> Result<(), Fault> {
        if self.levels.len() > NESTING_MAX {
            return Err(Fault::new(
                format!("brackets are nested more than {NESTING_MAX} deep"),
                self.at,
            ));
        }
        self.levels.push(level);
        self.set_before(Before::Operator);
        Ok(())
    }

    pub(super) fn close_bracket(&mut self, byte: u8) -> Result<(), Fault> {
        let at = self.at;
        self.at += 1;
        let closes = |level: &Level| {
            level.closer == byte || level.closer == TEMPLATE_EXPRESSION && byte == b'}'
        };
        if self.grammar == Grammar::Jsx {
            // Brackets in the text of JSX need not match.
            if !self.levels.iter().any(closes) {
                return Ok(());
            }
            while let Some(level) = self.levels.pop_if(|level| !closes(level)) {
                self.chained -= level.statements + level.operators;
            }
        } else if !self.levels.last().is_some_and(closes) {
            return Err(Fault::new(format!("`{}` closes nothing", char::from(byte)), at));
        }
        let Some(level) = self.levels.pop() else { return Ok(()) };
        self.chained -= level.statements + level.operators;
        self.may_end = false;
        if level.closer == TEMPLATE_EXPRESSION {
            return self.skip_template();
        }
        self.set_before(match byte {
            b'}' => Before::Brace,
            _ if level.head => Before::Head,
            _ => Before::Operand,
        });
        // The next token decides.
        self.may_end = byte == b'}';
        Ok(())
    }

    pub(super) fn end_statement(&mut self) {
        if self.may_end {
            self.may_end = false;
            self.reset_chains(true);
        }
    }

    /// Resets the chains of the innermost bracket.
    pub(super) fn reset_chains(&mut self, statements: bool) {
        if let Some(level) = self.levels.last_mut() {
            self.chained -= level.operators;
            level.operators = 0;
            if statements {
                self.chained -= level.statements;
                level.statements = 0;
            }
        }
    }

    pub(super) fn count_chain(&mut self, statement: bool, count: usize) -> Result<(), Fault> {
        if let Some(level) = self.levels.last_mut() {
            *(if statement { &mut level.statements } else { &mut level.operators }) += count;
        }
        self.chained += count;
        if self.chained > CHAIN_MAX {
            return Err(Fault::new(
                format!("more than {CHAIN_MAX} operators or branches are chained"),
                self.at,
            ));
        }
        Ok(())
    }
}
