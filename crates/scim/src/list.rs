//! A list of values while a request changes it.
//!
//! A request may have a thousand operations, and a group thousands of members. So the
//! values are found by their keys, and the values that filters read are counted.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::fault::{Fault, FaultKind};
use crate::filter::Filter;
use crate::{MEMBERS_MAX, member};

/// The part of a value that says whether it is the main one.
pub(crate) const PRIMARY: &str = "primary";
/// Most values that the filters of a request read.
const READS_MAX: usize = 50 * MEMBERS_MAX;

/// The number of values that the filters of a request may still read.
#[derive(Debug)]
pub(crate) struct ReadLimit(usize);

impl ReadLimit {
    pub(crate) const fn new() -> Self {
        Self(READS_MAX)
    }

    fn take(&mut self, count: usize) -> Result<(), Fault> {
        let left = self.0.checked_sub(count).ok_or_else(|| {
            Fault::new(FaultKind::TooMany, "The filters of the request read too many values.")
        })?;
        self.0 = left;
        Ok(())
    }
}

/// A list of values.
#[derive(Debug, Default)]
pub(crate) struct List {
    /// The values in their order; `None`: removed.
    values: Vec<Option<Value>>,
    /// Where the values with a key are.
    places: HashMap<String, BTreeSet<usize>>,
    count: usize,
}

impl List {
    /// The values of a list; another value counts as an empty one.
    pub(crate) fn of(value: Value) -> Self {
        let mut list = Self::default();
        if let Value::Array(values) = value {
            for value in values {
                list.push(value);
            }
        }
        list
    }

    pub(crate) fn into_value(self) -> Value {
        Value::Array(self.values.into_iter().flatten().collect())
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds a value, unless there is one with its key. Returns its place.
    ///
    /// # Errors
    /// `tooMany`.
    pub(crate) fn add(&mut self, value: &Value) -> Result<Option<usize>, Fault> {
        if self.places.contains_key(&key(value)) {
            return Ok(None);
        }
        if self.count >= MEMBERS_MAX {
            let detail = format!("A list may have at most {MEMBERS_MAX} values.");
            return Err(Fault::new(FaultKind::TooMany, detail));
        }
        let at = self.values.len();
        self.push(value.clone());
        Ok(Some(at))
    }

    /// Where a value with the key of this one is.
    pub(crate) fn place_of(&self, value: &Value) -> Option<usize> {
        self.places.get(&key(value)).and_then(|places| places.first().copied())
    }

    /// Adds a value, also one whose key is there.
    pub(crate) fn push(&mut self, value: Value) {
        self.places.entry(key(&value)).or_default().insert(self.values.len());
        self.values.push(Some(value));
        self.count += 1;
    }

    /// Removes the values with the key of this one.
    pub(crate) fn remove_like(&mut self, value: &Value) {
        for at in self.places.remove(&key(value)).unwrap_or_default() {
            self.count -= usize::from(self.values[at].take().is_some());
        }
    }

    /// Where the values are that a filter finds; without a filter, all.
    ///
    /// # Errors
    /// `tooMany`.
    pub(crate) fn find(
        &self,
        filter: Option<&Filter>,
        limit: &mut ReadLimit,
    ) -> Result<Vec<usize>, Fault> {
        let matches = |at: &usize| {
            let value = self.values.get(*at).and_then(Option::as_ref);
            value.is_some_and(|value| filter.is_none_or(|filter| filter.matches(value)))
        };
        if let Some(text) = filter.and_then(|filter| filter.must_equal("value")) {
            let places = self.places.get(&text.to_lowercase());
            limit.take(places.map_or(0, BTreeSet::len))?;
            return Ok(places.into_iter().flatten().copied().filter(matches).collect());
        }
        limit.take(self.values.len())?;
        Ok((0..self.values.len()).filter(matches).collect())
    }

    /// Changes the value at a place that was found.
    pub(crate) fn change(&mut self, at: usize, change: impl FnOnce(&mut Value)) {
        let Some(mut value) = self.values.get_mut(at).and_then(Option::take) else { return };
        self.leave(&key(&value), at);
        change(&mut value);
        self.places.entry(key(&value)).or_default().insert(at);
        self.values[at] = Some(value);
    }

    /// Makes the value at a place the main one: no other one is `primary` then (RFC 7644,
    /// 3.5.2).
    ///
    /// # Errors
    /// `tooMany`.
    pub(crate) fn make_main(&mut self, main: usize, limit: &mut ReadLimit) -> Result<(), Fault> {
        limit.take(self.values.len())?;
        for at in 0..self.values.len() {
            self.change(at, |value| {
                let Value::Object(parts) = value else { return };
                parts.retain(|name, _| !name.eq_ignore_ascii_case(PRIMARY));
                if at == main {
                    parts.insert(PRIMARY.to_owned(), Value::Bool(true));
                }
            });
        }
        Ok(())
    }

    /// Removes the value at a place that was found.
    pub(crate) fn remove(&mut self, at: usize) {
        let Some(value) = self.values.get_mut(at).and_then(Option::take) else { return };
        self.leave(&key(&value), at);
        self.count -= 1;
    }

    fn leave(&mut self, key: &str, at: usize) {
        if let Some(places) = self.places.get_mut(key) {
            places.remove(&at);
            if places.is_empty() {
                self.places.remove(key);
            }
        }
    }
}

/// What distinguishes the values of a list: their part `value`.
fn key(value: &Value) -> String {
    match member(value, "value").unwrap_or(value) {
        Value::String(text) => text.to_lowercase(),
        other => other.to_string(),
    }
}
