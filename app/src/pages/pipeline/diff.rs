//! Two JSON texts line by line: what is the same, what went, what came.

use serde_json::Value;

/// Lines of a text that are compared; longer ones stand beside each other as they are.
const MOST: usize = 600;

/// A line of the comparison: the left side, the right side, and whether they are the
/// same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    /// The line before.
    pub(super) left: Option<String>,
    /// The line after.
    pub(super) right: Option<String>,
    /// Whether both are the same.
    pub(super) same: bool,
}

/// Compares two JSON texts, whatever the order of their members.
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

/// The lines of a JSON text. Objects of `serde_json` are in the order of their keys.
fn lines(text: &str) -> Vec<String> {
    let read = serde_json::from_str::<Value>(text);
    let pretty = read.and_then(|value| serde_json::to_string_pretty(&value));
    pretty.unwrap_or_else(|_| text.to_owned()).lines().map(str::to_owned).collect()
}

fn beside(left: &[String], right: &[String], same: bool) -> Vec<Pair> {
    let pair =
        |at: usize| Pair { left: left.get(at).cloned(), right: right.get(at).cloned(), same };
    (0..left.len().max(right.len())).map(pair).collect()
}

/// Places of a longest common sequence of lines.
fn common(left: &[String], right: &[String]) -> Vec<(usize, usize)> {
    // What is common to the ends that begin at each pair of places.
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
    fn what_changed_is_marked() {
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
    fn the_same_is_the_same() {
        assert!(compare("{\"a\":[1,2]}", "{ \"a\": [1, 2] }").iter().all(|pair| pair.same));
        assert_eq!(compare("no json", "{}").len(), 1);
    }
}
