//! Filters of properties, over the rows of a batch (QRY-26).

use weir_model::errors::FieldError;
use weir_questions::evaluate::{Matcher, PropertyValue};
use weir_questions::query::{Filter, FilterGroup, Logic, PropertyOwner};
use weir_segments::Bits;

use crate::Asked;
use crate::error::Result;
use crate::property::{PropertyColumn, Value};

/// A test of rows.
#[derive(Debug, Clone)]
pub(crate) enum Test {
    /// The value of a property, by its number in the plan.
    Matches { slot: usize, matcher: Box<Matcher> },
    /// All of them.
    All(Vec<Test>),
    /// At least one of them.
    Any(Vec<Test>),
}

impl Test {
    /// The test of a group of filters. `slot` numbers the properties, and `path` is the field
    /// that faults name.
    pub(crate) fn new(
        group: &FilterGroup,
        asked: &Asked<'_>,
        path: &str,
        slot: &mut dyn FnMut(&str) -> usize,
    ) -> Result<Self> {
        let mut tests = Vec::new();
        for filter in &group.filters {
            tests.push(match filter {
                Filter::Group(group) => Self::new(group, asked, path, slot)?,
                Filter::Property(filter) => {
                    if filter.owner != PropertyOwner::Event {
                        return Err(unsupported_owner(path).into());
                    }
                    let matcher =
                        Matcher::new(filter, asked.calendar, asked.now).map_err(|fault| {
                            FieldError::new(path, "invalid_input", fault.to_string())
                        })?;
                    Self::Matches { slot: slot(&filter.key), matcher: Box::new(matcher) }
                }
            });
        }
        Ok(match group.logic {
            // A group without filters is always satisfied.
            Logic::Or if !tests.is_empty() => Self::Any(tests),
            _ => Self::All(tests),
        })
    }

    /// Clears the rows that do not pass. `column` has the values of a property.
    pub(crate) fn apply<'a>(
        &self,
        column: &impl Fn(usize) -> Option<&'a PropertyColumn>,
        size: usize,
        rows: &mut Bits,
    ) {
        match self {
            Self::All(tests) => {
                for test in tests {
                    if rows.is_empty() {
                        return;
                    }
                    test.apply(column, size, rows);
                }
            }
            Self::Any(tests) => {
                let mut passed = Bits::default();
                passed.reset(size);
                for test in tests {
                    let mut left = rows.clone();
                    left.subtract(&passed);
                    test.apply(column, size, &mut left);
                    passed.unite(&left);
                }
                *rows = passed;
            }
            Self::Matches { slot, matcher } => {
                let mut passed = Bits::default();
                passed.reset(size);
                match column(*slot) {
                    Some(column) => matching(matcher, column, rows, &mut passed),
                    None if matcher.matches(PropertyValue::Missing) => passed = rows.clone(),
                    None => {}
                }
                *rows = passed;
            }
        }
    }
}

fn matching(matcher: &Matcher, column: &PropertyColumn, rows: &Bits, passed: &mut Bits) {
    let is_missing_ok = matcher.matches(PropertyValue::Missing);
    match column {
        PropertyColumn::Codes { codes, values } => {
            // Each value is compared once, when it is needed.
            let mut known: Vec<Option<bool>> = vec![None; values.len()];
            for row in rows.ones() {
                let code = codes.get(row).map_or(usize::MAX, |code| *code as usize);
                let passes = match (known.get_mut(code), values.get(code).map(Value::as_property)) {
                    (Some(known), Some(value)) => {
                        *known.get_or_insert_with(|| matcher.matches(value))
                    }
                    _ => is_missing_ok,
                };
                if passes {
                    passed.set(row);
                }
            }
        }
        PropertyColumn::Numbers { .. } => {
            for row in rows.ones().filter(|row| matcher.matches(column.value(*row))) {
                passed.set(row);
            }
        }
    }
}

/// The fault of a property that is not of an event.
pub(crate) fn unsupported_owner(path: &str) -> FieldError {
    let detail = "Weir does not support properties of persons and groups here.";
    FieldError::new(path, "invalid_input", detail)
}
