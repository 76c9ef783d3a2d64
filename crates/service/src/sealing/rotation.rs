//! Changing to another master key, while no server runs.
//!
//! Every sealed text names its key, so an interrupted rotation continues where it
//! stopped.

use weir_store::Store;
use weir_store::sealing as rows;

use super::cipher::Cipher;
use super::{KeyError, MasterKey, SealedField, SealedLocation};
use crate::error::Error;

/// How many texts one transaction seals again.
const STEP: usize = 200;

/// Why the key was not changed, or not for every secret.
#[derive(Debug, thiserror::Error)]
pub enum RotationError {
    /// The given key is not the one in use.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A rotation to a third key was interrupted.
    #[error("an earlier change to the key {0} was cut short; end that one first, with that key")]
    Elsewhere(String),
    /// A text could not be opened or sealed.
    #[error(
        "a secret could not be re-encrypted; the others are kept. Fix this and start the rotation again"
    )]
    Secret(#[source] Error),
    /// The store failed.
    #[error("the store failed; start again to continue")]
    Store(#[from] weir_store::Error),
}

/// Refuses a present key that is not the one in use, before a new key is made.
pub async fn check_present(
    store: &Store,
    present: Option<&MasterKey>,
    location: String,
) -> Result<(), RotationError> {
    let Some(in_use) = rows::in_use(store).await? else { return Ok(()) };
    let expected = in_use.key;
    let present = present.map(MasterKey::id);
    match present {
        Some(present) if present == expected => Ok(()),
        Some(found) => Err(KeyError::Wrong { expected, found, location }.into()),
        None => Err(KeyError::Missing { expected, location }.into()),
    }
}

/// Seals every secret again with the key `to`. `from` is the present key, if there is
/// one, and `location` says where it was looked for. Returns how many secrets this call
/// sealed again.
///
/// # Errors
/// [`RotationError`]; another call with the same keys continues.
pub async fn rotate(
    store: &Store,
    from: Option<MasterKey>,
    location: String,
    to: MasterKey,
) -> Result<u64, RotationError> {
    // No secret was ever sealed.
    let Some(in_use) = rows::in_use(store).await? else { return Ok(0) };
    let next = to.id();
    if in_use.key == next {
        return Ok(0);
    }
    if let Some(other) = in_use.next.filter(|other| *other != next) {
        return Err(RotationError::Elsewhere(other));
    }
    check_present(store, from.as_ref(), location.clone()).await?;
    let Some(from) = from else {
        return Err(KeyError::Missing { expected: in_use.key, location }.into());
    };
    rows::begin_rotation(store, &next).await?;
    let (from, to) = (Cipher::new(from), Cipher::new(to));
    let mut count = 0;
    for field in SealedField::ALL {
        count += rotate_field(store, *field, &from, &to).await?;
    }
    rows::end_rotation(store, &next).await?;
    Ok(count)
}

async fn rotate_field(
    store: &Store,
    field: SealedField,
    from: &Cipher,
    to: &Cipher,
) -> Result<u64, RotationError> {
    let mut count = 0;
    loop {
        let found = rows::with_other_keys(store, field, to.prefix(), STEP).await?;
        if found.is_empty() {
            return Ok(count);
        }
        count += found.len() as u64;
        let restarted = |row: rows::SealedRow| {
            let location = SealedLocation::new(field, &row.record, row.organization);
            let plain = from.open(&location, &row.sealed)?;
            let sealed = to.seal(&location, plain.bytes())?;
            Ok((row, sealed))
        };
        let replaced: Result<Vec<_>, Error> = found.into_iter().map(restarted).collect();
        rows::replace(store, field, replaced.map_err(RotationError::Secret)?).await?;
    }
}
