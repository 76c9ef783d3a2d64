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
        let any = |items: &[Self]| items.iter().any(|item| item.mentions(field));
        match self {
            Self::Field(other) | Self::Property(other, _) => *other == field,
            Self::Literal(_) => false,
            Self::Call(_, items) | Self::And(items) | Self::Or(items) => any(items),
            Self::Not(inner) | Self::Negative(inner) => inner.mentions(field),
            Self::Compare(_, left, right) | Self::Arithmetic(_, left, right) => {
                left.mentions(field) || right.mentions(field)
            }
            Self::In { value, among, .. } => value.mentions(field) || any(among),
            Self::Like { value, pattern, .. } => value.mentions(field) || pattern.mentions(field),
            Self::Between { value, low, high, .. } => {
                [value, low, high].into_iter().any(|item| item.mentions(field))
            }
            Self::IsNull { value, .. } => value.mentions(field),
        }
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
