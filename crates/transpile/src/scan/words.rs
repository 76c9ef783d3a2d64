//! Names and keywords: their meaning for the next token.

use super::literals::{is_line_end, is_space, is_word};
use super::{Before, Scan};
use crate::error::Fault;

/// Words before an operand or a statement.
const KEYWORDS: &[&str] = &[
    "case",
    "class",
    "default",
    "delete",
    "do",
    "else",
    "extends",
    "in",
    "instanceof",
    "new",
    "return",
    "throw",
    "typeof",
    "void",
];

/// Words that are names in some positions.
const EITHER: &[&str] = &[
    "abstract",
    "as",
    "asserts",
    "async",
    "await",
    "break",
    "continue",
    "debugger",
    "infer",
    "is",
    "keyof",
    "of",
    "readonly",
    "satisfies",
    "unique",
    "yield",
];

/// Words of statements that continue after the word.
const STATEMENTS: &[&str] = &["do", "else", "for", "if", "while", "with"];

/// Words that continue the previous expression, even on a new line.
const CONTINUES: &[&str] =
    &["as", "else", "extends", "implements", "in", "instanceof", "is", "of", "satisfies", "while"];

impl Scan<'_> {
    pub(super) fn scan_name(&mut self) -> Result<(), Fault> {
        let start = self.at;
        let mut escaped = false;
        while let Some(next) = self.text[self.at..].chars().next() {
            if next == '\\' {
                escaped = true;
                self.at += 1;
                // The braces of \u{…} are part of the name.
                if self.peek(0) == b'u' && self.peek(1) == b'{' {
                    let end = self.text[self.at..].find('}');
                    self.at += end.map_or(0, |end| end + 1);
                }
            } else if u8::try_from(next).is_ok_and(|byte| byte.is_ascii() && !is_word(byte))
                || is_space(next)
                || is_line_end(next)
            {
                break;
            } else {
                self.at += next.len_utf8();
            }
        }
        let word = &self.text[start..self.at];
        let is = |words: &[&str]| !self.after_dot && words.contains(&word);
        let (keyword, statement) = (is(KEYWORDS), is(STATEMENTS));
        // After `break`, the statement may end at the end of the line.
        let label = self.word.is_some_and(|word| word == "break" || word == "continue");
        let either = is(EITHER) || escaped || label;
        let continues = CONTINUES.contains(&word);
        if continues {
            self.may_end = false;
        } else if self.new_line
            && matches!(self.before, Before::Operand | Before::Brace)
            && !self.after_dot
        {
            self.may_end = true;
        }
        // Two words on one line: the first one modifies the second.
        let pair = self.word.is_some() && !self.may_end;
        self.end_statement();
        if statement {
            self.count_chain(true, 1)?;
        } else if keyword || either || pair {
            self.count_chain(false, 1)?;
        }
        let after_for = self.word == Some("for");
        let after_dot = self.after_dot;
        self.set_before(if keyword {
            Before::Keyword
        } else if either {
            Before::Either
        } else {
            Before::Operand
        });
        self.word = match word {
            _ if after_dot => None,
            "await" if after_for => Some("for"),
            other => Some(other),
        };
        Ok(())
    }
}
