//! Values of breakdowns in results.

use serde::{Deserialize, Serialize};

use crate::query::BreakdownFilter;

/// The value of the result for all values without one of their own.
pub const BREAKDOWN_OTHER: &str = "$$_posthog_breakdown_other_$$";
/// The value of events that do not have the property.
pub const BREAKDOWN_NULL: &str = "$$_posthog_breakdown_null_$$";

/// The value of a result: a text for one property in the older form, else a list with a text
/// for each property.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum BreakdownValue {
    /// The value of one property.
    One(String),
    /// The values of all properties.
    Many(Vec<String>),
}

impl BreakdownValue {
    /// The value from those of the properties. `None`: the event does not have the property.
    pub fn new(breakdown: &BreakdownFilter, values: &[Option<String>]) -> Self {
        let text = |value: &Option<String>| match value {
            Some(text) => text.clone(),
            None => BREAKDOWN_NULL.to_owned(),
        };
        match values {
            [only] if breakdown.is_single => Self::One(text(only)),
            all => Self::Many(all.iter().map(text).collect()),
        }
    }

    /// The value of all other values.
    pub fn other(breakdown: &BreakdownFilter) -> Self {
        let other = BREAKDOWN_OTHER.to_owned();
        match breakdown.is_single {
            true => Self::One(other),
            false => Self::Many(vec![other; breakdown.breakdowns.len()]),
        }
    }

    /// Whether it is the value of all other values.
    pub fn is_other(&self) -> bool {
        match self {
            Self::One(value) => value == BREAKDOWN_OTHER,
            Self::Many(values) => values.iter().all(|value| value == BREAKDOWN_OTHER),
        }
    }

    /// The text of the value: `Chrome`, or `Chrome::Linux` for two properties.
    pub fn label(&self) -> String {
        match self {
            Self::One(value) => value.clone(),
            Self::Many(values) => values.join("::"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{Breakdown, PropertyOwner};

    fn filter(is_single: bool, count: usize) -> BreakdownFilter {
        let breakdown = Breakdown {
            owner: PropertyOwner::Event,
            property: "$os".to_owned(),
            normalize_url: false,
            bins: None,
        };
        let breakdowns = vec![breakdown; count];
        BreakdownFilter { breakdowns, is_single, limit: 25, hides_other: false }
    }

    #[test]
    fn values_have_the_form_of_their_question() {
        let linux = Some("Linux".to_owned());
        for (filter, values, json, label) in [
            (filter(true, 1), vec![linux.clone()], "\"Linux\"", "Linux"),
            (filter(false, 1), vec![linux.clone()], "[\"Linux\"]", "Linux"),
            (
                filter(false, 2),
                vec![linux, None],
                "[\"Linux\",\"$$_posthog_breakdown_null_$$\"]",
                "Linux::$$_posthog_breakdown_null_$$",
            ),
        ] {
            let value = BreakdownValue::new(&filter, &values);
            assert_eq!(serde_json::to_string(&value).unwrap(), json);
            assert_eq!(serde_json::from_str::<BreakdownValue>(json).unwrap(), value);
            assert_eq!(value.label(), label);
            assert!(!value.is_other());
            assert!(BreakdownValue::other(&filter).is_other());
        }
        // Funnels have lists, but not for groups.
        let mut group = filter(true, 1);
        group.breakdowns[0].owner = PropertyOwner::Group(0);
        for (filter, is_single) in
            [(filter(true, 1), false), (filter(false, 2), false), (group, true)]
        {
            assert_eq!(filter.of_funnels().is_single, is_single);
        }
    }
}
