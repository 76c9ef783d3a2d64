//! A field of a partial update: missing, cleared with `null`, or set.

use serde::{Deserialize, Deserializer};

use crate::errors::FieldError;

/// The change of one field in a PATCH.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Patch<T> {
    /// The key is not in the body: the field keeps its value.
    #[default]
    Keep,
    /// The key has the value `null`.
    Clear,
    /// The key has a value.
    Set(T),
}

impl<T> Patch<T> {
    /// The new value, from the current one and the meaning of `null`.
    pub fn apply(self, present: T, cleared: T) -> T {
        match self {
            Self::Keep => present,
            Self::Clear => cleared,
            Self::Set(value) => value,
        }
    }

    /// The new value of a nullable field, from the current one.
    pub fn over(self, present: Option<T>) -> Option<T> {
        match self {
            Self::Keep => present,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }

    /// Converts or validates the value.
    ///
    /// # Errors
    /// The error of `change`.
    pub fn try_map<U, E>(self, change: impl FnOnce(T) -> Result<U, E>) -> Result<Patch<U>, E> {
        Ok(match self {
            Self::Keep => Patch::Keep,
            Self::Clear => Patch::Clear,
            Self::Set(value) => Patch::Set(change(value)?),
        })
    }

    /// The new value of a field that cannot be null, if there is one.
    ///
    /// # Errors
    /// `null` at `attr`.
    pub fn required(self, attr: &str) -> Result<Option<T>, FieldError> {
        match self {
            Self::Keep => Ok(None),
            Self::Set(value) => Ok(Some(value)),
            Self::Clear => Err(FieldError::new(attr, "null", "This field may not be null.")),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Clear, Self::Set))
    }
}
