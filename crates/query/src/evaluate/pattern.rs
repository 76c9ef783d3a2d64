//! `LIKE`: `%` stands for any text, `_` for any character, a backslash escapes them.

use super::WorkLimit;

/// Whether a pattern matches a text; `None` if that exceeds the work limit.
pub(super) fn matches(
    text: &str,
    pattern: &str,
    ignores_case: bool,
    work_limit: &WorkLimit,
) -> Option<bool> {
    if ignores_case {
        return matches(&text.to_lowercase(), &pattern.to_lowercase(), false, work_limit);
    }
    let pieces = pieces(pattern);
    let longest = pieces.iter().map(Piece::wildcard_length).max().unwrap_or(0);
    work_limit.charge(longest.saturating_mul(text.len()));
    if work_limit.is_used_up() {
        return None;
    }
    let Some((first, rest)) = pieces.split_first() else { return Some(text.is_empty()) };
    let Some(after) = first.strip(text) else { return Some(false) };
    let Some((last, middle)) = rest.split_last() else { return Some(after.is_empty()) };
    // The first match leaves the most text for the following pieces.
    let Some(mut left) = last.strip_end(after) else { return Some(false) };
    for piece in middle {
        match piece.find(left) {
            Some(after) => left = after,
            None => return Some(false),
        }
    }
    Some(true)
}

/// The part between two `%`.
enum Piece {
    Text(String),
    /// Characters, with `None` for `_`.
    Wildcards(Vec<Option<char>>),
}

fn pieces(pattern: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut piece: Vec<Option<char>> = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' => pieces.push(Piece::of(std::mem::take(&mut piece))),
            '_' => piece.push(None),
            // At the end, it is literal.
            '\\' => piece.push(Some(chars.next().unwrap_or('\\'))),
            c => piece.push(Some(c)),
        }
    }
    pieces.push(Piece::of(piece));
    pieces
}

impl Piece {
    fn of(chars: Vec<Option<char>>) -> Self {
        match chars.iter().copied().collect::<Option<String>>() {
            Some(text) => Self::Text(text),
            None => Self::Wildcards(chars),
        }
    }

    fn wildcard_length(&self) -> usize {
        match self {
            Self::Text(_) => 0,
            Self::Wildcards(chars) => chars.len(),
        }
    }

    /// The text after the piece, if the text begins with it.
    fn strip<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Self::Text(piece) => text.strip_prefix(piece.as_str()),
            Self::Wildcards(piece) => {
                let mut chars = text.chars();
                let is_there = piece.iter().all(|wanted| stands_for(*wanted, chars.next()));
                is_there.then_some(chars.as_str())
            }
        }
    }

    /// The text before the piece, if the text ends with it.
    fn strip_end<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Self::Text(piece) => text.strip_suffix(piece.as_str()),
            Self::Wildcards(piece) => {
                let mut chars = text.chars();
                let is_there =
                    piece.iter().rev().all(|wanted| stands_for(*wanted, chars.next_back()));
                is_there.then_some(chars.as_str())
            }
        }
    }

    /// The text after the first occurrence of the piece.
    fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Self::Text(piece) => {
                let at = text.find(piece.as_str())?;
                text.get(at + piece.len()..)
            }
            Self::Wildcards(_) => {
                let starts = text.char_indices().map(|(at, _)| at);
                starts.filter_map(|at| text.get(at..)).find_map(|rest| self.strip(rest))
            }
        }
    }
}

fn stands_for(wanted: Option<char>, found: Option<char>) -> bool {
    match (wanted, found) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(wanted), Some(found)) => wanted == found,
    }
}
