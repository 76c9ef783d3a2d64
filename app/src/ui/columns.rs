//! Columns of a table that the user can choose. The choice is in the query of the address.

/// A column that can be chosen: its name in the address, its label, and whether it is shown
/// without a choice.
pub(crate) type OptionalColumn = (&'static str, &'static str, bool);

/// Whether each column is shown: if `asked` has a known name, the columns that it names, else
/// those that are shown without a choice.
pub(crate) fn shown<const N: usize>(all: &[OptionalColumn; N], asked: &[String]) -> [bool; N] {
    let named = all.map(|(name, ..)| asked.iter().any(|one| one == name));
    if named.contains(&true) { named } else { all.map(|(.., is_usual)| is_usual) }
}

#[cfg(test)]
mod tests {
    use super::{OptionalColumn, shown};

    #[test]
    fn columns_are_those_of_the_address_or_the_usual_ones() {
        const ALL: [OptionalColumn; 3] = [("a", "A", true), ("b", "B", false), ("c", "C", true)];
        let shown = |asked: &[&str]| {
            shown(&ALL, &asked.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(shown(&[]), [true, false, true]);
        assert_eq!(shown(&["nonsense"]), [true, false, true]);
        assert_eq!(shown(&["c", "b"]), [false, true, true]);
    }
}
