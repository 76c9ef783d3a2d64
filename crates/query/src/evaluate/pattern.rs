//! `LIKE`: `%` stands for any text, `_` for any character, a backslash takes
//! their meaning away.

use super::Budget;

/// Whether a pattern fits a text; none: it would take too long to say.
pub(super) fn fits(text: &str, pattern: &str, ignores_case: bool, budget: &Budget) -> Option<bool> {
    if ignores_case {
        return fits(&text.to_lowercase(), &pattern.to_lowercase(), false, budget);
    }
    let pieces = pieces(pattern);
    let longest = pieces.iter().map(Piece::wildcard_length).max().unwrap_or(0);
    budget.charge(longest.saturating_mul(text.len()));
    if budget.is_used_up() {
        return None;
    }
    let Some((first, rest)) = pieces.split_first() else { return Some(text.is_empty()) };
    let Some(after) = first.strip(text) else { return Some(false) };
    let Some((last, middle)) = rest.split_last() else { return Some(after.is_empty()) };
    // The first place that fits leaves the most for what follows.
    let Some(mut left) = last.strip_end(after) else { return Some(false) };
    for piece in middle {
        match piece.find(left) {
            Some(after) => left = after,
            None => return Some(false),
        }
    }
    Some(true)
}

/// What stands between two `%`.
enum Piece {
    Text(String),
    /// With `_`, as none.
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
            // At the end it stands for itself.
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

    /// What follows the piece at the beginning of a text.
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

    /// What precedes the piece at the end of a text.
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

    /// What follows the piece where it is found first.
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
