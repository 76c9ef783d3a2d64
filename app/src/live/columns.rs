//! The columns of the list of events that the user can choose. The choice is in the
//! address.

use crate::ui::table::Column;

/// Name in the address, label, and whether it is shown without a choice. The name of the
/// event is always shown.
pub(crate) const COLUMNS: [(&str, &str, bool); 7] = [
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

impl Columns {
    /// The columns with these names. Without a known name: the usual ones.
    pub(crate) fn named(names: &[String]) -> Self {
        let chosen = COLUMNS.map(|(name, _, _)| names.iter().any(|one| one == name));
        if chosen.contains(&true) { Self(chosen) } else { Self::usual() }
    }

    fn usual() -> Self {
        Self(COLUMNS.map(|(_, _, is_usual)| is_usual))
    }

    /// The names of the chosen columns. None if these are the usual ones.
    pub(crate) fn in_address(self) -> Vec<&'static str> {
        if self == Self::usual() { Vec::new() } else { self.names().collect() }
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
    fn the_choice_is_in_the_address_unless_it_is_the_usual_one() {
        let named = |names: &[&str]| {
            Columns::named(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        assert!(named(&[]).in_address().is_empty());
        assert!(named(&["nonsense"]).in_address().is_empty());
        assert_eq!(named(&["time", "size"]).in_address(), ["size", "time"]);
        assert!(named(&["size"]).has("size") && !named(&["size"]).has("outcome"));
        assert_eq!(named(&["size"]).headings().len(), 2);
    }
}
