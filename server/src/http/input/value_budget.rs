//! The memory that the values of a body take.
//!
//! What belongs here: how many values a body may have, and their bytes in the budget
//! until the handler is done. What does not: the bytes of the body itself (`http::body`),
//! and what values are (`input`).

use weir_model::UserId;
use weir_model::json::VALUES;

use crate::app::App;
use crate::http::error::{ApiError, ApiResult};
use crate::limits::{Budget, Exhausted, HeldBytes, Part};

/// The memory that the values of a body may take. It releases its bytes when dropped, so
/// it must live as long as the values.
#[derive(Debug)]
pub struct ValueBudget {
    values: usize,
    known: Option<KnownSender>,
}

/// The bytes of a body whose sender is known.
#[derive(Debug)]
struct KnownSender {
    budget: Budget,
    held: Option<HeldBytes>,
    of_user: Part<UserId>,
    /// The bytes of the body.
    body: usize,
}

impl ValueBudget {
    /// For a body that needs no budget: a form of the app, which has its own limits, or
    /// the example of the API document.
    #[must_use]
    pub const fn uncounted() -> Self {
        Self { values: VALUES, known: None }
    }

    /// For the body of an unknown sender. It has few values, so that as many bodies as
    /// there are permits fit into memory without a budget. With a budget, few of them
    /// would lock out all others.
    #[must_use]
    pub fn of_unknown(app: &App) -> Self {
        Self { values: app.limits.early_values, known: None }
    }

    /// For a body of `body` bytes of this user, of whom all bodies together have a part of the budget.
    ///
    /// # Errors
    /// [`ApiError::Busy`] if the part is used up.
    pub fn of_user(app: &App, user: UserId, body: usize) -> ApiResult<Self> {
        let mut of_user = app.permits.values_of_user.of(user);
        of_user.grow_to(body).map_err(|Exhausted| ApiError::Busy)?;
        let budget = app.permits.management_bytes.clone();
        let known = KnownSender { budget, held: None, of_user, body };
        Ok(Self { values: app.limits.api_values, known: Some(known) })
    }

    /// Most values of the body.
    #[must_use]
    pub const fn values(&self) -> usize {
        self.values
    }

    /// Takes more bytes until the values have `bytes`.
    ///
    /// # Errors
    /// [`ApiError::Busy`] if the budget, or the part of the user, is used up.
    pub fn grow_to(&mut self, bytes: usize) -> ApiResult<()> {
        let Some(known) = &mut self.known else { return Ok(()) };
        known.grow_to(bytes).map_err(|Exhausted| ApiError::Busy)
    }
}

impl KnownSender {
    fn grow_to(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.of_user.grow_to(self.body + bytes)?;
        match &mut self.held {
            Some(held) => held.grow_to(bytes),
            None => {
                self.held = Some(self.budget.hold(bytes)?);
                Ok(())
            }
        }
    }
}
