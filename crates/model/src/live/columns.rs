//! Columns of the events page that show a property: their names in an address.

/// The name of the value in an address. It is repeated.
pub const PROPERTY_COLUMN: &str = "properties";
/// The maximum number of such columns.
pub const PROPERTY_COLUMNS: usize = 5;
/// Longest name of a property, in bytes. Longer ones are ignored.
const NAME: usize = 400;

/// The properties that the values of an address choose: each once, in their order, at most
/// [`PROPERTY_COLUMNS`].
pub fn property_columns(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut chosen: Vec<String> = Vec::new();
    for name in names {
        if chosen.len() < PROPERTY_COLUMNS
            && !name.is_empty()
            && name.len() <= NAME
            && !chosen.contains(&name)
        {
            chosen.push(name);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::{NAME, property_columns};

    #[test]
    fn five_different_names_are_chosen() {
        let chosen = |names: &[&str]| property_columns(names.iter().map(|&name| name.to_owned()));
        assert_eq!(chosen(&["plan", "", "plan", "size"]), ["plan", "size"]);
        assert_eq!(chosen(&["a", "b", "c", "d", "e", "f"]), ["a", "b", "c", "d", "e"]);
        assert_eq!(chosen(&[&"a".repeat(NAME + 1), "b"]), ["b"]);
    }
}
