//! Input that is validated late: the service first checks the permission and finds the
//! record, then it validates the input. So a caller without the permission learns nothing
//! about the values, and handlers need no check of the permission before they pass input.

use std::fmt;

use weir_model::errors::FieldError;

/// Input whose values are not validated yet. Valid input converts into it with `From`, for
/// callers that have no raw input.
pub struct Unchecked<'a, T>(Box<dyn FnOnce() -> Result<T, FieldError> + Send + 'a>);

impl<'a, T> Unchecked<'a, T> {
    /// Input that `read` will validate and return.
    pub fn new(read: impl FnOnce() -> Result<T, FieldError> + Send + 'a) -> Self {
        Self(Box::new(read))
    }

    /// Validates the input and returns it.
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
