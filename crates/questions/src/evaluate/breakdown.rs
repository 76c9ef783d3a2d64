//! Which values of a breakdown have a result of their own (QRY-30).

use std::cmp::Ordering;

use super::property::PropertyValue;
use crate::query::Breakdown;

/// Most characters of a value of a breakdown. Longer texts are the same if these are.
pub const BREAKDOWN_TEXT_MAX: usize = 400;

/// The text of a value for a breakdown without ranges of numbers. `None`: there is no value,
/// or it is an empty text.
pub fn breakdown_text(breakdown: &Breakdown, value: PropertyValue<'_>) -> Option<String> {
    let text = value.text()?;
    let text = match breakdown.normalize_url {
        true => match text.trim_end_matches(['/', '?', '#']) {
            "" => "/",
            trimmed => trimmed,
        },
        false => &*text,
    };
    let end = text.char_indices().nth(BREAKDOWN_TEXT_MAX).map_or(text.len(), |(at, _)| at);
    text.get(..end).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The place of values among those of a series: the first ones have results of their own, in
/// this order. By the total of the series, then by their texts. Values that an event does not
/// have come after all that it has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BreakdownRank<'a> {
    /// The total of the series in the range of the question.
    pub total: f64,
    /// The value of each property. `None`: there is none.
    pub values: &'a [Option<&'a str>],
}

impl Eq for BreakdownRank<'_> {}

impl PartialOrd for BreakdownRank<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BreakdownRank<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let lacks = |rank: &Self| rank.values.iter().any(Option::is_none);
        lacks(self)
            .cmp(&lacks(other))
            .then_with(|| other.total.total_cmp(&self.total))
            .then_with(|| self.values.cmp(other.values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::PropertyOwner;

    fn text(normalize_url: bool, value: PropertyValue<'_>) -> Option<String> {
        let breakdown = Breakdown {
            owner: PropertyOwner::Event,
            property: "a".to_owned(),
            normalize_url,
            bins: None,
        };
        breakdown_text(&breakdown, value)
    }

    #[test]
    fn values_of_breakdowns_are_short_texts() {
        for (normalize_url, value, expected) in [
            (false, PropertyValue::Text("Chrome"), Some("Chrome")),
            (false, PropertyValue::Text(""), None),
            (false, PropertyValue::Missing, None),
            (false, PropertyValue::Double(5.0), Some("5")),
            (false, PropertyValue::Text("/a/"), Some("/a/")),
            (true, PropertyValue::Text("/a/?#"), Some("/a")),
            (true, PropertyValue::Text("/"), Some("/")),
            (true, PropertyValue::Text(""), Some("/")),
            (true, PropertyValue::Missing, None),
        ] {
            assert_eq!(text(normalize_url, value).as_deref(), expected, "{value:?}");
        }
        let long = "ä".repeat(500);
        let found = text(false, PropertyValue::Text(&long)).unwrap();
        assert_eq!(found.chars().count(), BREAKDOWN_TEXT_MAX);
    }

    #[test]
    fn values_are_ranked_by_their_total() {
        let ranks = [
            (7.0, &[Some("b"), Some("z")][..]),
            (5.0, &[Some("a"), Some("a")]),
            (5.0, &[Some("a"), Some("b")]),
            (-1.0, &[Some("a"), Some("c")]),
            // Of a value that is not there.
            (9.0, &[None, Some("a")]),
            (9.0, &[Some("a"), None]),
            (8.0, &[None, None]),
        ];
        let ranks = ranks.map(|(total, values)| BreakdownRank { total, values });
        assert!(ranks.is_sorted(), "{ranks:?}");
        let mut reversed = ranks;
        reversed.reverse();
        reversed.sort();
        assert_eq!(reversed, ranks);
    }
}
