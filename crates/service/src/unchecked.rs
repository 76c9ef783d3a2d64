//! Input of a call that the service reads after it has checked the permission and found
//! the record. A caller without the permission learns nothing about the values, and the
//! permission is checked in one place: the service.

use std::fmt;

use weir_model::errors::FieldError;

/// Input that is not validated yet. A value that is validated already converts into it.
pub struct Unchecked<'a, T>(Box<dyn FnOnce() -> Result<T, FieldError> + Send + 'a>);

impl<'a, T> Unchecked<'a, T> {
    /// Input that `read` validates.
    pub fn new(read: impl FnOnce() -> Result<T, FieldError> + Send + 'a) -> Self {
        Self(Box::new(read))
    }

    /// Validates the input.
    ///
    /// # Errors
    /// The fault of the first invalid field.
    pub(crate) fn read(self) -> Result<T, FieldError> {
        (self.0)()
    }
}

impl<'a, T: Send + 'a> From<T> for Unchecked<'a, T> {
    fn from(input: T) -> Self {
        Self::new(|| Ok(input))
    }
}

impl<T> fmt::Debug for Unchecked<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unchecked")
    }
}
