//! Lists that are looked through from a place on, for what they are searched by is in no
//! index: persons and groups.
//!
//! What belongs here: how far one step through such a list goes. What does not: which
//! steps make a page (`server`).

use std::time::{Duration, Instant};

use weir_model::errors::FieldError;
use weir_store::Look;

use crate::Error;

/// How long one step looks.
pub const LOOK_WITHIN: Duration = Duration::from_secs(10);
/// Records that one step looks at beside those that it passes over.
const LOOK: u64 = 20_000;

/// One step through such a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step<T, At> {
    /// What was found, in a stable order.
    pub found: Vec<T>,
    /// Where the next step begins, and how many results it has to pass over still;
    /// `None`: this was the last one.
    pub next: Option<(At, u64)>,
}

/// How far a step goes that passes over so many results.
pub(crate) fn look(offset: u64, within: Duration) -> Look {
    let records = usize::try_from(offset.saturating_add(LOOK)).unwrap_or(usize::MAX);
    Look { records, until: Instant::now().checked_add(within) }
}

/// What is answered when the results at an offset cannot be found in time.
#[must_use]
pub fn too_deep() -> Error {
    Error::Invalid(FieldError::new(
        "offset",
        "invalid_input",
        "This page takes too long to find. Leave out `offset` and follow the link in `next` of \
         each page.",
    ))
}
