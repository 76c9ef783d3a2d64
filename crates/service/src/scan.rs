//! Lists that are scanned from a cursor on, because no index covers their search:
//! persons and groups.
//!
//! What belongs here: how much one step scans. What does not: which steps make a page
//! (`server`).

use std::time::{Duration, Instant};

use weir_model::errors::FieldError;
use weir_store::ScanLimits;

use crate::Error;

/// How long one step scans.
pub const SCAN_TIME: Duration = Duration::from_secs(10);
/// How many records one step scans, in addition to those that the offset skips.
const RECORDS_PER_STEP: u64 = 20_000;

/// One step through such a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanStep<T, At> {
    /// The results, in a stable order.
    pub found: Vec<T>,
    /// The cursor of the next step, and how many results it still has to skip; `None`:
    /// this was the last step.
    pub next: Option<(At, u64)>,
}

/// The limits of a step that skips this many results.
pub(crate) fn scan_limits(offset: u64, within: Duration) -> ScanLimits {
    let records = usize::try_from(offset.saturating_add(RECORDS_PER_STEP)).unwrap_or(usize::MAX);
    ScanLimits { records, until: Instant::now().checked_add(within) }
}

/// The error when the results at an offset cannot be found in time. `hint` continues the
/// sentence that says what to do.
pub(crate) fn offset_too_large_with_hint(hint: &str) -> Error {
    let detail = format!(
        "This page takes too long to find. Omit `offset` and follow the link in `next` of \
         each page{hint}."
    );
    Error::Invalid(FieldError::new("offset", "invalid_input", detail))
}

/// The error when the results of a list without time bounds cannot be found in time.
pub fn offset_too_large() -> Error {
    offset_too_large_with_hint("")
}
