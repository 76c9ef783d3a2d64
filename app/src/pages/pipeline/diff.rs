//! Compares two JSON texts line by line: equal, removed and added lines.

use serde_json::Value;

/// Limit of lines per text for a comparison. Longer texts are shown without one.
const MOST: usize = 600;

/// A line of the comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    /// The line in the first text, if it has one here.
    pub(super) left: Option<String>,
    /// The line in the second text, if it has one here.
    pub(super) right: Option<String>,
    /// Whether both texts have the same line.
    pub(super) same: bool,
}

/// Compares two JSON texts. The order of object members does not matter.
pub(super) fn compare(before: &str, after: &str) -> Vec<Pair> {
    let (left, right) = (lines(before), lines(after));
    if left.len() > MOST || right.len() > MOST {
        return beside(&left, &right, false);
    }
    let common = common(&left, &right);
    let (mut pairs, mut i, mut j) = (Vec::new(), 0, 0);
    for (same_left, same_right) in common {
        pairs.extend(beside(&left[i..same_left], &right[j..same_right], false));
        pairs.extend(beside(&left[same_left..=same_left], &right[same_right..=same_right], true));
        (i, j) = (same_left + 1, same_right + 1);
    }
    pairs.extend(beside(&left[i..], &right[j..], false));
    pairs
}

/// The lines of a formatted JSON text. `serde_json` sorts the keys of objects.
fn lines(text: &str) -> Vec<String> {
    let read = crate::json::read::<Value>(text);
    let pretty = read.and_then(|value| serde_json::to_string_pretty(&value));
    pretty.unwrap_or_else(|_| text.to_owned()).lines().map(str::to_owned).collect()
}

fn beside(left: &[String], right: &[String], same: bool) -> Vec<Pair> {
    let pair =
        |at: usize| Pair { left: left.get(at).cloned(), right: right.get(at).cloned(), same };
    (0..left.len().max(right.len())).map(pair).collect()
}

/// Index pairs of a longest common subsequence of lines.
fn common(left: &[String], right: &[String]) -> Vec<(usize, usize)> {
    // Length of the longest common subsequence of the suffixes at each pair of indexes.
    let width = right.len() + 1;
    let mut lengths = vec![0_u32; (left.len() + 1) * width];
    for i in (0..left.len()).rev() {
        for j in (0..right.len()).rev() {
            lengths[i * width + j] = if left[i] == right[j] {
                lengths[(i + 1) * width + j + 1] + 1
            } else {
                lengths[(i + 1) * width + j].max(lengths[i * width + j + 1])
            };
        }
    }
    let (mut found, mut i, mut j) = (Vec::new(), 0, 0);
    while i < left.len() && j < right.len() {
        if left[i] == right[j] {
            found.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if lengths[(i + 1) * width + j] >= lengths[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::compare;

    #[test]
    fn changes_are_marked() {
        let pairs = compare(r#"{"b":1,"a":"x"}"#, r#"{"a":"x","b":2,"c":3}"#);
        let shown: Vec<(Option<&str>, Option<&str>, bool)> = pairs
            .iter()
            .map(|pair| (pair.left.as_deref(), pair.right.as_deref(), pair.same))
            .collect();
        assert_eq!(
            shown,
            [
                (Some("{"), Some("{"), true),
                (Some("  \"a\": \"x\","), Some("  \"a\": \"x\","), true),
                (Some("  \"b\": 1"), Some("  \"b\": 2,"), false),
                (None, Some("  \"c\": 3"), false),
                (Some("}"), Some("}"), true),
            ]
        );
    }

    #[test]
    fn equal_events_have_no_marks() {
        assert!(compare("{\"a\":[1,2]}", "{ \"a\": [1, 2] }").iter().all(|pair| pair.same));
        assert_eq!(compare("no json", "{}").len(), 1);
    }
}
