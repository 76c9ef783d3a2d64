//! Lists that are scanned from a cursor on, because no index covers their search:
//! persons and groups.
//!
//! What belongs here: how much one step scans. What does not: which steps make a page
//! (`server`).

use std::time::{Duration, Instant};

use weir_model::errors::FieldError;
use weir_store::Look;

use crate::Error;

/// How long one step scans.
pub const LOOK_WITHIN: Duration = Duration::from_secs(10);
/// How many records one step scans, in addition to those that the offset skips.
const LOOK: u64 = 20_000;

/// One step through such a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step<T, At> {
    /// The results, in a stable order.
    pub found: Vec<T>,
    /// The cursor of the next step, and how many results it still has to skip; `None`:
    /// this was the last step.
    pub next: Option<(At, u64)>,
}

/// The limits of a step that skips this many results.
pub(crate) fn look(offset: u64, within: Duration) -> Look {
    let records = usize::try_from(offset.saturating_add(LOOK)).unwrap_or(usize::MAX);
    Look { records, until: Instant::now().checked_add(within) }
}

/// The error when the results at an offset cannot be found in time. `hint` continues the
/// sentence that says what to do.
pub(crate) fn too_deep_or(hint: &str) -> Error {
    let detail = format!(
        "This page takes too long to find. Leave out `offset` and follow the link in `next` of \
         each page{hint}."
    );
    Error::Invalid(FieldError::new("offset", "invalid_input", detail))
}

/// The error when the results of a list without time bounds cannot be found in time.
pub fn too_deep() -> Error {
    too_deep_or("")
}
