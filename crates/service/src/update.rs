//! Changing the fields of a resource.
//!
//! What belongs here: from a change of a row to the write and its audit entries; what is said
//! when a record is not created. What does not: permissions and checks of values, which are
//! in the module of the resource; the lock and the comparison (`weir_store::update`).

use weir_model::Timestamp;
use weir_model::activity::Entry;
use weir_model::errors::FieldError;
use weir_store::numbered::Created;
use weir_store::update::{self, Change, Row, Updated};

use crate::error::{Error, NOT_FOUND};
use crate::{Core, Result};

/// Changes the row with this id and records what differs. `change` gets the stored row; it
/// may be called more than once. `entries` makes the audit entries from the row before the
/// change and the row after it; nothing is recorded when the changed fields are private. A
/// change that leaves the row as it was writes nothing. `held` is dropped after the write.
///
/// # Errors
/// The error of `change`; any failure of the store.
pub(crate) async fn update<R: Row>(
    core: &Core,
    id: R::Id,
    now: Timestamp,
    held: impl Send + Sync + 'static,
    change: impl Fn(&mut R) -> Result<()>,
    entries: impl Fn(&R, &R) -> Vec<Entry>,
) -> Result<Updated<R>>
where
    R::With: Default,
{
    let change = |before: &R| {
        let mut after = before.clone();
        change(&mut after)?;
        if after == *before {
            return Ok(None);
        }
        let entries = entries(before, &after);
        after.touch(now);
        Ok(Some((after, entries)))
    };
    update::update(&core.store, id, held, change).await
}

/// The change of a row that `update_with` computes. Without audit entries nothing is
/// written.
pub(crate) fn change<R: Row>(
    before: R,
    mut row: R,
    now: Timestamp,
    entries: Vec<Entry>,
    with: R::With,
) -> Change<R> {
    if entries.is_empty() {
        return Change { row: before, entries, with };
    }
    if row != before {
        row.touch(now);
    }
    Change { row, entries, with }
}

/// The error of a record with a number that was not created.
pub(crate) fn not_created(outcome: Created, most: usize, records: &str) -> Error {
    match outcome {
        Created::Gone => Error::NotFound(NOT_FOUND),
        Created::TooMany => {
            let detail = format!("A project has at most {most} {records}. Delete one first.");
            FieldError::body("invalid_input", detail).into()
        }
        Created::Yes | Created::Refused(_) => {
            Error::Internal(format!("{records}: not created: {outcome:?}"))
        }
    }
}

/// The row after a change, of a resource whose statements refuse nothing.
///
/// # Errors
/// [`Error::NotFound`] when the record is deleted.
pub(crate) fn stored<R>(updated: Updated<R>) -> Result<R> {
    updated.stored().ok_or(Error::NotFound(NOT_FOUND))
}
