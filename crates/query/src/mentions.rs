//! The fields that a query uses.

use super::fields::Field;
use super::tree::{Expression, Query};

impl Query {
    /// Whether a column or the condition uses this field or a property of it.
    pub fn mentions(&self, field: Field) -> bool {
        self.columns.iter().any(|column| column.expression.mentions(field))
            || self.filter.as_ref().is_some_and(|filter| filter.mentions(field))
    }
}

impl Expression {
    /// Whether the expression uses this field or a property of it.
    pub fn mentions(&self, field: Field) -> bool {
        let is_it =
            matches!(self, Self::Field(other) | Self::Property(other, _) if *other == field);
        is_it || self.children().into_iter().any(|item| item.mentions(field))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Field, parse};

    #[test]
    fn fields_are_found_wherever_they_stand() {
        for (text, expected) in [
            ("SELECT event FROM events", false),
            ("SELECT person_id FROM events", true),
            ("SELECT upper(toString(person_id)) AS x FROM events", true),
            ("SELECT event FROM events WHERE NOT (event = 'a' OR person_id IS NULL)", true),
            ("SELECT event FROM events WHERE event IN ('a', 'b')", false),
        ] {
            assert_eq!(parse(text).unwrap().mentions(Field::PersonId), expected, "{text}");
        }
        let query = parse("SELECT person.properties.plan FROM events").unwrap();
        assert!(query.mentions(Field::PersonProperties));
    }
}
