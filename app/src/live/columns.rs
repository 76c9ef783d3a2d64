//! The columns of the list of events that the user can choose. The choice is in the
//! query of the URL.

use crate::ui::columns::{OptionalColumn, shown};
use crate::ui::table::Column;

/// Name in the query of the URL, label, and whether it is shown without a choice. The name
/// of the event is always shown. Links of users contain the names, so they stay: `person` is
/// the distinct id, and `place` the URL or screen.
pub(crate) const COLUMNS: [OptionalColumn; 7] = [
    ("outcome", "Outcome", true),
    ("person", "Distinct id", true),
    ("place", "URL or screen", true),
    ("library", "Library", true),
    ("size", "Size", false),
    ("time", "Event time", false),
    ("received", "Received", true),
];

/// The chosen columns, in the order of [`COLUMNS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Columns([bool; COLUMNS.len()]);

impl Default for Columns {
    fn default() -> Self {
        Self::named(&[])
    }
}

impl Columns {
    /// The columns with these names. Without a known name: the default ones.
    pub(crate) fn named(names: &[String]) -> Self {
        Self(shown(&COLUMNS, names))
    }

    /// The names of the chosen columns. Empty if these are the default columns.
    pub(crate) fn in_query(self) -> Vec<&'static str> {
        if self == Self::default() { Vec::new() } else { self.names().collect() }
    }

    /// The names of the chosen columns.
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        COLUMNS
            .into_iter()
            .zip(self.0)
            .filter(|(_, is_chosen)| *is_chosen)
            .map(|((name, ..), _)| name)
    }

    /// Whether the column is chosen.
    pub(crate) fn has(self, name: &str) -> bool {
        self.names().any(|one| one == name)
    }

    /// The headings of the list.
    pub(super) fn headings(self) -> Vec<Column> {
        let mut headings = vec![Column::text("Event")];
        for ((name, label, _), is_chosen) in COLUMNS.into_iter().zip(self.0) {
            if is_chosen {
                let is_number = name == "size";
                headings.push(if is_number { Column::number(label) } else { Column::text(label) });
            }
        }
        headings
    }
}

#[cfg(test)]
mod tests {
    use super::Columns;

    #[test]
    fn the_choice_is_in_the_query_unless_it_is_the_default() {
        let named = |names: &[&str]| {
            Columns::named(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        assert!(named(&[]).in_query().is_empty());
        assert!(named(&["nonsense"]).in_query().is_empty());
        assert_eq!(named(&["time", "size"]).in_query(), ["size", "time"]);
        assert!(named(&["size"]).has("size") && !named(&["size"]).has("outcome"));
        assert_eq!(named(&["size"]).headings().len(), 2);
    }
}
