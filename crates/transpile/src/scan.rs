//! Scans a text as a sequence of tokens, to find how deep a parser would recurse. The
//! meaning of tokens is not analysed.
//!
//! The result is an upper bound: a text may appear deeper than it is, and never much
//! shallower. Text that would hide code from the scan is refused: ambiguous slashes, and
//! strings without an end. JSX is an exception, see [`depth`](crate::depth).

mod levels;
mod literals;
mod signs;
mod words;

use crate::error::Fault;
use levels::Level;
use literals::is_word;

/// Maximum depth of brackets.
pub const NESTING_MAX: usize = 200;

/// Maximum length of chains without brackets, such as operators of one expression or
/// branches of one `if`, summed over all open brackets.
pub const CHAIN_MAX: usize = 2000;

/// Maximum bytes of JSX that are scanned twice because a quote or a slash in its text has
/// no end.
const TWICE_MAX: usize = 16 << 20;

/// The grammar of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grammar {
    /// JavaScript or TypeScript.
    Script,
    Jsx,
}

/// The meaning of the previous token for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// An operand follows.
    Operator,
    /// An operand has ended.
    Operand,
    /// A word before an operand, such as `return`.
    Keyword,
    /// A word that can also be a name, such as `await`.
    Either,
    /// The head of `if`, `for`, `while` or `with`.
    Head,
    /// A closing brace: of a block or of an object.
    Brace,
    /// `>`: a comparison, or the end of type arguments.
    Angle,
    /// `++`, `--` or `!` that may belong to either side.
    Sided,
}

/// Checks that a text is within [`NESTING_MAX`] and [`CHAIN_MAX`].
pub(crate) fn check(text: &str, grammar: Grammar) -> Result<(), Fault> {
    let mut scan = Scan::new(text, grammar);
    while scan.scan_token()? {}
    Ok(())
}

struct Scan<'t> {
    text: &'t str,
    bytes: &'t [u8],
    /// The position, in bytes. Methods that scan or skip move it.
    at: usize,
    grammar: Grammar,
    levels: Vec<Level>,
    /// The length of the chains of all levels together.
    chained: usize,
    before: Before,
    /// Whether a line ended since the previous token.
    new_line: bool,
    /// Whether a statement may have ended; the next token decides.
    may_end: bool,
    /// The previous token, if it was a word.
    word: Option<&'t str>,
    /// Whether there is a dot before the word, so that it is a name.
    after_dot: bool,
    /// Bytes that were scanned twice.
    scanned_twice: usize,
}

impl<'t> Scan<'t> {
    fn new(text: &'t str, grammar: Grammar) -> Self {
        let mut scan = Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            grammar,
            levels: vec![Level::new(0, false)],
            chained: 0,
            before: Before::Operator,
            new_line: true,
            may_end: false,
            word: None,
            after_dot: false,
            scanned_twice: 0,
        };
        if text.trim_start_matches('\u{feff}').starts_with("#!") {
            scan.skip_line();
        }
        scan
    }

    /// The byte after `ahead` others; 0 after the end of the text.
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Scans one token. False at the end of the text.
    fn scan_token(&mut self) -> Result<bool, Fault> {
        self.skip_space()?;
        let Some(byte) = self.bytes.get(self.at).copied() else { return Ok(false) };
        match byte {
            b'"' | b'\'' => self.or_jsx_text(|scan| {
                scan.skip_string(byte)?;
                scan.finish_operand();
                Ok(())
            })?,
            b'`' => self.or_jsx_text(|scan| {
                scan.begin_operators(1)?;
                scan.at += 1;
                scan.skip_template()
            })?,
            b'0'..=b'9' => {
                self.skip_number();
                self.finish_operand();
            }
            b'/' => self.scan_slash()?,
            b'(' | b'[' | b'{' => self.open_bracket(byte)?,
            b')' | b']' | b'}' => self.close_bracket(byte)?,
            b';' => {
                self.at += 1;
                self.set_before(Before::Operator);
                self.may_end = true;
            }
            b',' => {
                self.at += 1;
                self.set_before(Before::Operator);
                self.reset_chains(false);
            }
            _ if is_word(byte) || byte == b'\\' => self.scan_name()?,
            _ => self.scan_punctuation(byte)?,
        }
        Ok(true)
    }

    /// Scans a token that begins with a quote or a slash. In the text of JSX these are
    /// ordinary characters.
    fn or_jsx_text(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let start = self.at;
        match read(self) {
            Err(fault) if self.grammar == Grammar::Jsx => {
                // A token without an end is scanned again from its second byte, within a
                // limit.
                self.scanned_twice += self.at.saturating_sub(start);
                if self.scanned_twice > TWICE_MAX {
                    return Err(fault);
                }
                self.at = start + 1;
                self.set_before(Before::Operator);
                self.count_chain(false, 1)
            }
            read => read,
        }
    }

    /// Notes the end of an operand, such as a text or a number.
    fn finish_operand(&mut self) {
        self.end_statement();
        self.set_before(Before::Operand);
    }

    /// Counts operators before they are scanned.
    fn begin_operators(&mut self, count: usize) -> Result<(), Fault> {
        // An operator continues the previous operand.
        if self.before != Before::Operator {
            self.may_end = false;
        }
        self.end_statement();
        self.count_chain(false, count)
    }

    /// Notes what the next token follows.
    fn set_before(&mut self, before: Before) {
        self.before = before;
        self.new_line = false;
        self.word = None;
        self.after_dot = false;
    }
}
