//! Operators, dots, and slashes with several meanings.

use super::{Before, Grammar, Scan};
use crate::error::Fault;

impl Scan<'_> {
    pub(super) fn scan_slash(&mut self) -> Result<(), Fault> {
        match self.before {
            // The slash of a closing tag.
            Before::Operator
                if self.grammar == Grammar::Jsx && self.text[..self.at].ends_with('<') =>
            {
                self.scan_division()
            }
            Before::Operator | Before::Keyword | Before::Head => self.or_jsx_text(|scan| {
                scan.end_statement();
                scan.skip_regex()?;
                scan.finish_operand();
                Ok(())
            }),
            _ if self.grammar == Grammar::Jsx => self.scan_division(),
            // On a new line, a statement may have ended.
            Before::Operand if !self.new_line => self.scan_division(),
            _ => Err(Fault::new(
                "it is not clear whether this slash divides or begins a regular expression: \
                     put parentheses around the regular expression, or around what is divided",
                self.at,
            )),
        }
    }

    fn scan_division(&mut self) -> Result<(), Fault> {
        self.begin_operators(1)?;
        self.at += 1;
        self.set_before(Before::Operator);
        Ok(())
    }

    pub(super) fn scan_punctuation(&mut self, byte: u8) -> Result<(), Fault> {
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
                self.begin_operators(2)?;
                self.at += 2;
                self.set_before(side);
            }
            (b'!', next) if next != b'=' => {
                let side = match self.before {
                    Before::Operator | Before::Keyword => Before::Operator,
                    _ => Before::Sided,
                };
                self.begin_operators(1)?;
                self.at += 1;
                self.set_before(side);
            }
            (b'=', b'>') => {
                self.begin_operators(1)?;
                self.at += 2;
                self.set_before(Before::Operator);
            }
            (b'>', next) => {
                self.begin_operators(1)?;
                self.at += 1;
                self.set_before(if next == b'=' { Before::Operator } else { Before::Angle });
            }
            (b'.', b'0'..=b'9') => {
                self.skip_number();
                self.finish_operand();
            }
            (b'.', _) => {
                self.begin_operators(1)?;
                self.at += 1;
                self.set_before(Before::Operator);
                self.after_dot = true;
            }
            // Type arguments contain commas, so they count like statements.
            (b'<', _) => {
                self.may_end = false;
                self.count_chain(true, 1)?;
                self.at += 1;
                self.set_before(Before::Operator);
            }
            _ => {
                self.begin_operators(1)?;
                self.at += 1;
                self.set_before(Before::Operator);
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
