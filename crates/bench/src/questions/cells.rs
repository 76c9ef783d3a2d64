//! The numbers of an answer, in a form in which those of several engines can be compared.

use std::collections::BTreeMap;

/// The numbers of an answer by their places, without those that are 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cells(BTreeMap<String, String>);

impl Cells {
    /// Adds a number.
    pub(super) fn add(&mut self, place: String, number: String) {
        if number != "0" {
            self.0.insert(place, number);
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Where the numbers differ from those of another engine first.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let places = self.0.keys().chain(other.0.keys());
        let first = places.filter(|place| self.0.get(*place) != other.0.get(*place)).min()?;
        let text = |cells: &Self| cells.0.get(first).map_or("0", String::as_str).to_owned();
        Some(format!("{first}: {} instead of {}", text(other), text(self)))
    }
}

#[cfg(test)]
mod tests {
    use super::Cells;

    fn cells(numbers: &[(&str, &str)]) -> Cells {
        let mut cells = Cells::default();
        for (place, number) in numbers {
            cells.add((*place).to_owned(), (*number).to_owned());
        }
        cells
    }

    #[test]
    fn the_first_difference_is_named() {
        let ours = cells(&[("1", "5"), ("2", "0"), ("3", "7")]);
        assert_eq!(ours.count(), 2);
        assert_eq!(ours.difference(&cells(&[("3", "7"), ("1", "5")])), None);
        let found = ours.difference(&cells(&[("1", "5"), ("2", "4"), ("3", "8")]));
        assert_eq!(found.as_deref(), Some("2: 4 instead of 0"));
        let found = ours.difference(&cells(&[("1", "5")]));
        assert_eq!(found.as_deref(), Some("3: 0 instead of 7"));
    }
}
