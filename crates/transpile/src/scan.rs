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
const AGAIN_MAX: usize = 16 << 20;

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
    while scan.token()? {}
    Ok(())
}

struct Scan<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    grammar: Grammar,
    levels: Vec<Level>,
    /// The sum of all levels.
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
    again: usize,
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
            again: 0,
        };
        if text.trim_start_matches('\u{feff}').starts_with("#!") {
            scan.skip_line();
        }
        scan
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Reads a token. False at the end.
    fn token(&mut self) -> Result<bool, Fault> {
        self.space()?;
        let Some(byte) = self.bytes.get(self.at).copied() else { return Ok(false) };
        match byte {
            b'"' | b'\'' => self.or_text(|scan| {
                scan.string(byte)?;
                scan.operand();
                Ok(())
            })?,
            b'`' => self.or_text(|scan| {
                scan.operator(1)?;
                scan.at += 1;
                scan.template()
            })?,
            b'0'..=b'9' => {
                self.number();
                self.operand();
            }
            b'/' => self.slash()?,
            b'(' | b'[' | b'{' => self.open(byte)?,
            b')' | b']' | b'}' => self.close(byte)?,
            b';' => {
                self.at += 1;
                self.follow(Before::Operator);
                self.may_end = true;
            }
            b',' => {
                self.at += 1;
                self.follow(Before::Operator);
                self.reset(false);
            }
            _ if is_word(byte) || byte == b'\\' => self.name()?,
            _ => self.punctuation(byte)?,
        }
        Ok(true)
    }

    /// Scans a token that begins with a quote or a slash. In the text of JSX these are
    /// ordinary characters.
    fn or_text(&mut self, read: impl FnOnce(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        let start = self.at;
        match read(self) {
            Err(fault) if self.grammar == Grammar::Jsx => {
                // A token without an end is scanned again from its second byte, within a
                // limit.
                self.again += self.at.saturating_sub(start);
                if self.again > AGAIN_MAX {
                    return Err(fault);
                }
                self.at = start + 1;
                self.follow(Before::Operator);
                self.count(false, 1)
            }
            read => read,
        }
    }

    fn operand(&mut self) {
        self.end_statement();
        self.follow(Before::Operand);
    }

    fn operator(&mut self, count: usize) -> Result<(), Fault> {
        // An operator continues the previous operand.
        if self.before != Before::Operator {
            self.may_end = false;
        }
        self.end_statement();
        self.count(false, count)
    }

    fn follow(&mut self, before: Before) {
        self.before = before;
        self.new_line = false;
        self.word = None;
        self.after_dot = false;
    }
}
