//! Which names of events and properties a list has (API-48).
//!
//! What belongs here: comparing a name with a filter. What does not: reading the names, and
//! the properties of events (`super`).

use std::collections::HashSet;

use weir_model::definitions::{EventDefinition, PropertyDefinition, PropertyKind, PropertyOwner};

/// What the names begin with that client libraries choose.
const OF_LIBRARIES: char = '$';
/// What the names of properties begin with that have the value of a feature flag.
const FEATURE_FLAG: &str = "$feature/";

/// Which event names are listed. The default has all of them.
#[derive(Debug, Clone, Default)]
pub struct EventFilter<'a> {
    /// Only names that contain this, in any case.
    pub search: &'a str,
    /// Only these names. Empty: all of them.
    pub names: HashSet<&'a str>,
    /// Only names that begin with `$`, or only others.
    pub is_of_library: Option<bool>,
}

/// Which property names are listed. The default has all of them.
#[derive(Debug, Clone, Default)]
pub struct PropertyFilter<'a> {
    /// Only properties of this kind of object.
    pub owner: Option<PropertyOwner>,
    /// Only names that contain this, in any case.
    pub search: &'a str,
    /// Only these names. Empty: all of them.
    pub names: HashSet<&'a str>,
    /// No names of these.
    pub excluded: HashSet<String>,
    /// Only properties whose first value was a number, or only others.
    pub is_numerical: Option<bool>,
    /// Only properties with the value of a feature flag, or only others.
    pub is_feature_flag: Option<bool>,
    /// Event names: each property of events says whether their newest events have it.
    pub seen_in: Vec<String>,
    /// Whether properties of events are skipped that the newest events of `seen_in` do not
    /// have.
    pub is_seen_only: bool,
}

impl EventFilter<'_> {
    pub(super) fn retain(&self, all: &mut Vec<EventDefinition>) {
        let search = self.search.to_lowercase();
        all.retain(|seen| {
            let name = seen.name.as_str();
            is_among(&self.names, name)
                && fits(self.is_of_library, name.starts_with(OF_LIBRARIES))
                && contains(name, &search)
        });
    }
}

impl PropertyFilter<'_> {
    /// Compares all but the events that have a property.
    pub(super) fn retain(&self, all: &mut Vec<PropertyDefinition>) {
        let search = self.search.to_lowercase();
        all.retain(|seen| {
            let name = seen.name.as_str();
            self.owner.is_none_or(|owner| owner == seen.owner)
                && is_among(&self.names, name)
                && !self.excluded.contains(name)
                && fits(self.is_numerical, seen.kind == PropertyKind::Number)
                && fits(self.is_feature_flag, name.starts_with(FEATURE_FLAG))
                && contains(name, &search)
        });
    }
}

fn is_among(names: &HashSet<&str>, name: &str) -> bool {
    names.is_empty() || names.contains(name)
}

fn fits(wanted: Option<bool>, found: bool) -> bool {
    wanted.is_none_or(|wanted| wanted == found)
}

/// Whether a name contains a search text, which is in lower case: it is converted once and not
/// for each name, because it can be long.
fn contains(name: &str, search: &str) -> bool {
    search.is_empty() || name.to_lowercase().contains(search)
}

#[cfg(test)]
mod tests {
    use weir_model::Timestamp;

    use super::*;

    fn events(filter: &EventFilter<'_>) -> Vec<String> {
        let at = Timestamp::EPOCH;
        let seen =
            |name: &str| EventDefinition { name: name.to_owned(), first_at: at, last_at: at };
        let mut all = vec![seen("$pageview"), seen("Tea Brewed"), seen("tea drunk")];
        filter.retain(&mut all);
        all.into_iter().map(|seen| seen.name).collect()
    }

    fn properties(filter: &PropertyFilter<'_>) -> Vec<String> {
        let seen = |owner, name: &str, kind| PropertyDefinition {
            owner,
            name: name.to_owned(),
            kind,
            first_at: Timestamp::EPOCH,
        };
        let mut all = vec![
            seen(PropertyOwner::Event, "$feature/tea", PropertyKind::Boolean),
            seen(PropertyOwner::Event, "price", PropertyKind::Number),
            seen(PropertyOwner::Event, "size", PropertyKind::Text),
            seen(PropertyOwner::Person, "age", PropertyKind::Number),
        ];
        filter.retain(&mut all);
        all.into_iter().map(|seen| seen.name).collect()
    }

    #[test]
    fn a_search_has_no_case() {
        assert!(contains("Tea Brewed", "brew") && contains("ÄPFEL", "äpfel"));
        assert!(contains("tea", "") && !contains("tea", "teapot"));
    }

    #[test]
    fn events_are_filtered_by_name() {
        let all = EventFilter::default;
        assert_eq!(events(&all()).len(), 3);
        assert_eq!(events(&EventFilter { search: "TEA", ..all() }), ["Tea Brewed", "tea drunk"]);
        assert_eq!(events(&EventFilter { is_of_library: Some(true), ..all() }), ["$pageview"]);
        assert_eq!(
            events(&EventFilter { is_of_library: Some(false), ..all() }),
            ["Tea Brewed", "tea drunk"]
        );
        let names = HashSet::from(["tea drunk", "tea brewed"]);
        assert_eq!(events(&EventFilter { names, ..all() }), ["tea drunk"]);
    }

    #[test]
    fn properties_are_filtered_by_owner_name_and_kind() {
        let all = PropertyFilter::default;
        assert_eq!(properties(&all()).len(), 4);
        let filter = PropertyFilter { owner: Some(PropertyOwner::Person), ..all() };
        assert_eq!(properties(&filter), ["age"]);
        let filter = PropertyFilter { is_numerical: Some(true), ..all() };
        assert_eq!(properties(&filter), ["price", "age"]);
        let filter = PropertyFilter { is_numerical: Some(false), ..all() };
        assert_eq!(properties(&filter), ["$feature/tea", "size"]);
        let filter = PropertyFilter { is_feature_flag: Some(true), ..all() };
        assert_eq!(properties(&filter), ["$feature/tea"]);
        let excluded = HashSet::from(["price".to_owned()]);
        let filter = PropertyFilter { search: "I", excluded, ..all() };
        assert_eq!(properties(&filter), ["size"]);
        let filter = PropertyFilter { names: HashSet::from(["age", "size"]), ..all() };
        assert_eq!(properties(&filter), ["size", "age"]);
    }
}
