//! A field of a partial update: left out, cleared with `null`, or set.

use serde::{Deserialize, Deserializer};

/// What a PATCH says about one field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Patch<T> {
    /// The key was not in the body.
    #[default]
    Keep,
    /// The key was there with `null`.
    Clear,
    /// The key was there with a value.
    Set(T),
}

impl<T> Patch<T> {
    /// The new value, given the present one and what `null` stands for.
    pub fn apply(self, present: T, cleared: T) -> T {
        match self {
            Self::Keep => present,
            Self::Clear => cleared,
            Self::Set(value) => value,
        }
    }

    /// The new value of a field that may be null, given the present one.
    pub fn over(self, present: Option<T>) -> Option<T> {
        match self {
            Self::Keep => present,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }

    /// The same with the value changed or checked.
    ///
    /// # Errors
    /// What `change` says of the value.
    pub fn try_map<U, E>(self, change: impl FnOnce(T) -> Result<U, E>) -> Result<Patch<U>, E> {
        Ok(match self {
            Self::Keep => Patch::Keep,
            Self::Clear => Patch::Clear,
            Self::Set(value) => Patch::Set(change(value)?),
        })
    }

    /// Whether the key was in the body.
    pub fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Clear, Self::Set))
    }
}
