//! Regular expressions of a query: they are constant, so they are compiled when the query is
//! parsed, and a fault has a position.

use regex::{Regex, RegexBuilder};

/// Maximum characters.
const LENGTH_MAX: usize = 1000;
/// Bytes of the compiled form, in steps: the first one that suffices says how much work a byte
/// of a text may be. A number of repetitions makes a short expression large.
const SIZES: [usize; 4] = [1 << 12, 1 << 14, 1 << 16, 1 << 18];
/// Bytes of the compiled form that are one unit of work for each byte of a text.
const SIZE_OF_WORK: usize = 64;
/// Maximum bytes that matching may cache.
const CACHE_MAX: usize = 1 << 18;
/// Maximum depth of groups.
const DEPTH_MAX: u32 = 50;

/// A regular expression. Matching takes at most the time of the size of the text by the size
/// of the expression (QRY-50). A full stop matches a line break too, as in ClickHouse.
#[derive(Debug, Clone)]
pub struct RegularExpression {
    text: String,
    compiled: Regex,
    /// The work for each byte of a text.
    weight: usize,
}

impl RegularExpression {
    /// Compiles it.
    ///
    /// # Errors
    /// What is wrong with it, as one sentence.
    pub(super) fn new(text: &str) -> Result<Self, &'static str> {
        if text.chars().count() > LENGTH_MAX {
            return Err("The regular expression has more than 1000 characters");
        }
        for size in SIZES {
            let built = RegexBuilder::new(text)
                .size_limit(size)
                .dfa_size_limit(CACHE_MAX)
                .nest_limit(DEPTH_MAX)
                .dot_matches_new_line(true)
                .build();
            match built {
                Ok(compiled) => {
                    let weight = size / SIZE_OF_WORK;
                    return Ok(Self { text: text.to_owned(), compiled, weight });
                }
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(_) => return Err("The regular expression is invalid or nested too deep"),
            }
        }
        Err("The regular expression is too large")
    }

    /// The work of matching a text, at most.
    pub(super) fn work(&self, text: &str) -> usize {
        text.len().saturating_mul(self.weight)
    }

    /// As it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it matches a part of the text.
    pub(super) fn matches(&self, text: &str) -> bool {
        self.compiled.is_match(text)
    }

    /// The range of the first group, or of all that matches if there is no group; `None`: it
    /// does not match.
    pub(super) fn first(&self, text: &str) -> Option<std::ops::Range<usize>> {
        let found = self.compiled.captures(text)?;
        let at = usize::from(self.compiled.captures_len() > 1);
        Some(found.get(at).map_or(0..0, |part| part.range()))
    }
}

impl PartialEq for RegularExpression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}
