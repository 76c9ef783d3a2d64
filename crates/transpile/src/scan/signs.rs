//! Operators, dots, and slashes with several meanings.

use super::{Before, Grammar, Scan};
use crate::error::Fault;

impl Scan<'_> {
    pub(super) fn slash(&mut self) -> Result<(), Fault> {
        match self.before {
            // The slash of a closing tag.
            Before::Operator
                if self.grammar == Grammar::Jsx && self.text[..self.at].ends_with('<') =>
            {
                self.divide()
            }
            Before::Operator | Before::Keyword | Before::Head => self.or_text(|scan| {
                scan.end_statement();
                scan.regex()?;
                scan.operand();
                Ok(())
            }),
            _ if self.grammar == Grammar::Jsx => self.divide(),
            // On a new line, a statement may have ended.
            Before::Operand if !self.new_line => self.divide(),
            _ => Err(Fault::new(
                "it is not clear whether this slash divides or begins a regular expression: \
                     put parentheses around the regular expression, or around what is divided",
                self.at,
            )),
        }
    }

    fn divide(&mut self) -> Result<(), Fault> {
        self.operator(1)?;
        self.at += 1;
        self.follow(Before::Operator);
        Ok(())
    }

    pub(super) fn punctuation(&mut self, byte: u8) -> Result<(), Fault> {
        let pair = (byte, self.peek(1));
        match pair {
            // HTML comments, which only scripts have.
            (b'<', b'!') | (b'-', b'-') if self.is_html_comment() => {
                return Err(Fault::new("comments of HTML are not supported", self.at));
            }
            (b'+', b'+') | (b'-', b'-') => {
                let side = match self.before {
                    Before::Operator | Before::Keyword => Before::Operator,
                    Before::Operand if !self.new_line => Before::Operand,
                    _ => Before::Sided,
                };
                self.operator(2)?;
                self.at += 2;
                self.follow(side);
            }
            (b'!', next) if next != b'=' => {
                let side = match self.before {
                    Before::Operator | Before::Keyword => Before::Operator,
                    _ => Before::Sided,
                };
                self.operator(1)?;
                self.at += 1;
                self.follow(side);
            }
            (b'=', b'>') => {
                self.operator(1)?;
                self.at += 2;
                self.follow(Before::Operator);
            }
            (b'>', next) => {
                self.operator(1)?;
                self.at += 1;
                self.follow(if next == b'=' { Before::Operator } else { Before::Angle });
            }
            (b'.', b'0'..=b'9') => {
                self.number();
                self.operand();
            }
            (b'.', _) => {
                self.operator(1)?;
                self.at += 1;
                self.follow(Before::Operator);
                self.after_dot = true;
            }
            // Type arguments contain commas, so they count like statements.
            (b'<', _) => {
                self.may_end = false;
                self.count(true, 1)?;
                self.at += 1;
                self.follow(Before::Operator);
            }
            _ => {
                self.operator(1)?;
                self.at += 1;
                self.follow(Before::Operator);
            }
        }
        Ok(())
    }

    fn is_html_comment(&self) -> bool {
        let rest = &self.text[self.at..];
        self.grammar == Grammar::Script
            && (rest.starts_with("<!--") || self.new_line && rest.starts_with("-->"))
    }
}
