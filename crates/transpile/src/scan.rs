//! Reads a text as a row of tokens, to know how deep a parser would go into it. Not
//! what the tokens mean.
//!
//! Depth is counted from above: it may seem deeper than it is, never much flatter. What
//! would hide code from this reading, it refuses: a slash that could begin a regular
//! expression or divide, and strings without an end. JSX is an exception, see
//! [`depth`](crate::depth).

use crate::error::Fault;

/// Brackets within brackets.
pub const NESTING_MAX: usize = 200;

/// What is chained without brackets, such as operators of one expression or branches of
/// one `if`; of all brackets that are open together.
pub const CHAIN_MAX: usize = 2000;

/// How a text is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grammar {
    /// JavaScript or TypeScript.
    Script,
    /// With JSX.
    Jsx,
}

/// What the token before means for the one that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// An operand follows.
    Operator,
    /// An operand has ended.
    Operand,
    /// A word that an operand follows, such as `return`.
    Keyword,
    /// A word that may be a name as well, such as `await`.
    Either,
    /// The head of `if`, `for`, `while` or `with`.
    Head,
    /// A closing brace: of a block or of an object.
    Brace,
    /// `>`: compares, or closes type arguments.
    Angle,
    /// `++`, `--` or `!` that may belong to either side.
    Sided,
}

/// An open bracket.
struct Level {
    closer: u8,
    /// Whether it is the head of `if`, `for`, `while` or `with`.
    head: bool,
    /// Chained by statements: reset where a statement ends.
    statements: usize,
    /// Chained by operators: reset by commas as well.
    operators: usize,
}

impl Level {
    fn new(closer: u8, head: bool) -> Self {
        Self { closer, head, statements: 0, operators: 0 }
    }
}

/// Words that an operand or a statement follows.
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

/// Words that are names in some places.
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

/// Words that begin what stays open behind them.
const STATEMENTS: &[&str] = &["do", "else", "for", "if", "while", "with"];

/// Words that go on with what stood before them, also on a new line.
const CONTINUES: &[&str] =
    &["as", "else", "extends", "implements", "in", "instanceof", "is", "of", "satisfies", "while"];

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
    /// Of all levels together.
    chained: usize,
    before: Before,
    /// Whether a line ended since the token before.
    new_line: bool,
    /// Whether a statement may have ended: decided by what follows.
    may_end: bool,
    /// The word before, if it was one.
    word: Option<&'t str>,
    /// Whether a dot stood before the word, so that it is a name.
    after_dot: bool,
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

    /// Reads what begins with a quote or a slash. In the text of JSX these are signs like
    /// others.
    fn or_text(&mut self, read: impl FnOnce(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        let start = self.at;
        match read(self) {
            Err(_) if self.grammar == Grammar::Jsx => {
                self.at = start + 1;
                self.follow(Before::Operator);
                self.count(false, 1)
            }
            read => read,
        }
    }

    /// Skips space and comments.
    fn space(&mut self) -> Result<(), Fault> {
        loop {
            let rest = &self.text[self.at..];
            let Some(next) = rest.chars().next() else { return Ok(()) };
            if is_line_end(next) {
                self.new_line = true;
                self.at += next.len_utf8();
            } else if is_space(next) {
                self.at += next.len_utf8();
            } else if rest.starts_with("//") {
                self.skip_line();
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let end = comment.find("*/").map(|end| end + 4);
                let end = end.ok_or_else(|| Fault::new("the comment has no end", self.at))?;
                self.new_line |= rest[..end].contains(is_line_end);
                self.at += end;
            } else {
                return Ok(());
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.find(is_line_end).unwrap_or(rest.len());
    }

    fn string(&mut self, quote: u8) -> Result<(), Fault> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.bytes.get(self.at) {
                Some(b'\\') => {
                    // An escaped line end may be two bytes.
                    self.at += if self.peek(1) == b'\r' && self.peek(2) == b'\n' { 3 } else { 2 };
                }
                Some(byte) if *byte == quote => {
                    self.at += 1;
                    return Ok(());
                }
                None | Some(b'\n' | b'\r') => {
                    return Err(Fault::new("the string has no end", start));
                }
                Some(_) => self.at += 1,
            }
        }
    }

    /// Reads a template up to its end or to the next expression in it.
    fn template(&mut self) -> Result<(), Fault> {
        let start = self.at;
        loop {
            match self.bytes.get(self.at) {
                None => return Err(Fault::new("the template has no end", start)),
                Some(b'\\') => self.at += 2,
                Some(b'`') => {
                    self.at += 1;
                    self.operand();
                    return Ok(());
                }
                Some(b'$') if self.peek(1) == b'{' => {
                    self.at += 2;
                    // A closer of its own: behind it, the template goes on.
                    self.push(Level::new(b'`', false))?;
                    return Ok(());
                }
                Some(_) => self.at += 1,
            }
        }
    }

    fn number(&mut self) {
        while is_word(self.peek(0)) {
            self.at += 1;
        }
        // One dot at most: those behind it ask for a property.
        if self.peek(0) == b'.' {
            self.at += 1;
            while is_word(self.peek(0)) {
                self.at += 1;
            }
        }
    }

    fn name(&mut self) -> Result<(), Fault> {
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
        // Behind `break`, a line may end where an operand would go on.
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
        // Two words on one line: the first one says something about the second.
        let pair = self.word.is_some() && !self.may_end;
        self.end_statement();
        if statement {
            self.count(true, 1)?;
        } else if keyword || either || pair {
            self.count(false, 1)?;
        }
        let after_for = self.word == Some("for");
        let after_dot = self.after_dot;
        self.follow(if keyword {
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

    fn slash(&mut self) -> Result<(), Fault> {
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

    fn regex(&mut self) -> Result<(), Fault> {
        let start = self.at;
        self.at += 1;
        let mut class = false;
        loop {
            let Some(next) = self.text[self.at..].chars().next() else {
                return Err(Fault::new("the regular expression has no end", start));
            };
            match next {
                _ if is_line_end(next) => {
                    return Err(Fault::new("the regular expression has no end", start));
                }
                '\\' => {
                    self.at += 1;
                    match self.text[self.at..].chars().next() {
                        Some(escaped) if !is_line_end(escaped) => self.at += escaped.len_utf8(),
                        _ => {}
                    }
                    continue;
                }
                '[' => class = true,
                ']' => class = false,
                '/' if !class => {
                    self.at += 1;
                    while is_word(self.peek(0)) {
                        self.at += 1;
                    }
                    return Ok(());
                }
                _ => {}
            }
            self.at += next.len_utf8();
        }
    }

    fn open(&mut self, byte: u8) -> Result<(), Fault> {
        self.at += 1;
        // Behind `}`, a bracket may go on with what the brace ended.
        self.may_end &= self.before != Before::Brace;
        self.end_statement();
        let head = byte == b'('
            && self.word.is_some_and(|word| ["if", "for", "while", "with"].contains(&word));
        self.count(false, 1)?;
        let closer = match byte {
            b'(' => b')',
            b'[' => b']',
            _ => b'}',
        };
        self.push(Level::new(closer, head))
    }

    fn push(&mut self, level: Level) -> Result<(), Fault> {
        if self.levels.len() > NESTING_MAX {
            return Err(Fault::new(
                format!("brackets are nested more than {NESTING_MAX} deep"),
                self.at,
            ));
        }
        self.levels.push(level);
        self.follow(Before::Operator);
        Ok(())
    }

    fn close(&mut self, byte: u8) -> Result<(), Fault> {
        let at = self.at;
        self.at += 1;
        let closes = |level: &Level| level.closer == byte || level.closer == b'`' && byte == b'}';
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
        if level.closer == b'`' {
            return self.template();
        }
        self.follow(match byte {
            b'}' => Before::Brace,
            _ if level.head => Before::Head,
            _ => Before::Operand,
        });
        // What follows decides.
        self.may_end = byte == b'}';
        Ok(())
    }

    fn punctuation(&mut self, byte: u8) -> Result<(), Fault> {
        let pair = (byte, self.peek(1));
        match pair {
            // Comments of HTML, which only scripts have.
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
            // Type arguments hold commas, so they count like statements.
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

    fn operand(&mut self) {
        self.end_statement();
        self.follow(Before::Operand);
    }

    fn operator(&mut self, count: usize) -> Result<(), Fault> {
        // An operator goes on with what stood before it.
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

    fn end_statement(&mut self) {
        if self.may_end {
            self.may_end = false;
            self.reset(true);
        }
    }

    /// Begins anew in the innermost bracket.
    fn reset(&mut self, statements: bool) {
        if let Some(level) = self.levels.last_mut() {
            self.chained -= level.operators;
            level.operators = 0;
            if statements {
                self.chained -= level.statements;
                level.statements = 0;
            }
        }
    }

    fn count(&mut self, statement: bool, count: usize) -> Result<(), Fault> {
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

/// Bytes of names; those outside of ASCII all are, for our purpose.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#' | 0x80..)
}

/// Space within a line; also signs that are none in the language, which then fails on
/// them.
fn is_space(character: char) -> bool {
    !is_line_end(character) && character.is_whitespace()
        || matches!(character, '\u{180e}' | '\u{200b}' | '\u{feff}')
}

fn is_line_end(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}
