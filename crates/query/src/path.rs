//! Finding a nested value of JSON text by its path.

use std::borrow::Cow;

use serde_json::value::RawValue;
use weir_json::Members;

/// A step from a value to a nested one.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step<'a> {
    /// A member of an object.
    Name(Cow<'a, str>),
    /// An element of a list: from 1, or from -1 for the last one.
    Index(i64),
}

/// The JSON text at the end of the steps.
pub(super) fn find<'a>(json: &'a str, steps: &[Step<'_>]) -> Option<&'a str> {
    steps.iter().try_fold(json, |json, step| match step {
        Step::Name(name) => Members::of(json).get(name),
        Step::Index(index) => element(json, *index),
    })
}

fn element(json: &str, index: i64) -> Option<&str> {
    let elements: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    let at = match usize::try_from(index) {
        Ok(from_start) => from_start.checked_sub(1)?,
        Err(_) => elements.len().checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?,
    };
    elements.get(at).map(|element| element.get())
}
