//! Regular expressions of a query: they are constant, so they are compiled when the query is
//! parsed, and a fault has a position.

use regex::{Regex, RegexBuilder};

/// Maximum characters.
const LENGTH_MAX: usize = 1000;
/// Maximum bytes of the compiled form. A number of repetitions makes a short text large.
const SIZE_MAX: usize = 1 << 20;
/// Maximum bytes that matching may cache.
const CACHE_MAX: usize = 1 << 20;
/// Maximum depth of groups.
const DEPTH_MAX: u32 = 50;

/// A regular expression. Matching takes linear time: there is no backtracking. A full stop
/// matches a line break too, as in ClickHouse.
#[derive(Debug, Clone)]
pub struct RegularExpression {
    text: String,
    compiled: Regex,
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
        let compiled = RegexBuilder::new(text)
            .size_limit(SIZE_MAX)
            .dfa_size_limit(CACHE_MAX)
            .nest_limit(DEPTH_MAX)
            .dot_matches_new_line(true)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => "The regular expression is too large",
                _ => "The regular expression is invalid or nested too deep",
            })?;
        Ok(Self { text: text.to_owned(), compiled })
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
