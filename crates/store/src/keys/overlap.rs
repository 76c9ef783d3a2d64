//! Replacing the value of a key, and the time for which the previous value stays valid.
//!
//! `api_key_previous` leads from the hash of a replaced value to the key. The time of its
//! expiry is in the record of the key. A key has at most one previous value.

use weir_model::activity::Entry;
use weir_model::{KeyId, Timestamp, UserId};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::error::is_done;
use crate::{Result, Store};

// A retry after a lost answer finds the new hash in place and changes nothing more.
const ROLL: Statement = Statement::write(
    "keys roll",
    concat!(
        "BEGIN;
     LET $old_hash = (SELECT VALUE hash FROM ONLY type::record('user_key', [$user, $key]));
     IF $old_hash = NONE { THROW 'missing' };
     IF $old_hash != $hash {
         LET $row = (SELECT * OMIT id FROM ONLY type::record('api_key', $old_hash));
         IF $row.previous_hash != NONE {
             DELETE type::record('api_key_previous', $row.previous_hash) RETURN NONE;
         };
         IF $until != NONE {
             UPSERT type::record('api_key_previous', $old_hash)
                 CONTENT { hash: $hash } RETURN NONE;
         };
         LET $kept_hash = IF $until != NONE { $old_hash } ELSE { NONE };
         LET $kept_mask = IF $until != NONE { $row.mask } ELSE { NONE };
         UPSERT type::record('api_key', $hash) CONTENT object::extend($row, {
             hash: $hash, mask: $mask, last_rolled_at: $now,
             previous_hash: $kept_hash, previous_mask: $kept_mask, previous_until: $until
         }) RETURN NONE;
         DELETE type::record('api_key', $old_hash) RETURN NONE;
         UPDATE type::record('user_key', [$user, $key]) SET hash = $hash RETURN NONE;",
        write_activities!(),
        "};
     COMMIT;"
    ),
);

/// A new value of a key.
#[derive(Debug, Clone, Copy)]
pub struct NewValue<'a> {
    /// SHA-256 of the value, as hexadecimal digits.
    pub hash: &'a str,
    /// First and last characters of the value.
    pub mask: &'a str,
    /// When the previous value stops working; `None`: immediately.
    pub until: Option<Timestamp>,
}

/// Replaces the value of a key. A value that was replaced earlier stops working
/// immediately. `false` when the user has no such key.
///
/// # Errors
/// Any failure of the store.
pub async fn roll(
    store: &Store,
    user: UserId,
    key: &KeyId,
    value: NewValue<'_>,
    now: Timestamp,
    activities: &[Entry],
) -> Result<bool> {
    let vars = bind! {
        user: user.0,
        key: key.0.as_str(),
        hash: value.hash,
        mask: value.mask,
        until: value.until.map(Timestamp::micros),
        now: now.micros(),
    };
    is_done(activity::change(store, ROLL, vars, activities).await)
}

const END: Statement = Statement::delete(
    "keys end previous",
    concat!(
        "BEGIN;
     LET $hash = (SELECT VALUE hash FROM ONLY type::record('user_key', [$user, $key]));
     IF $hash = NONE { THROW 'missing' };
     LET $older = (SELECT VALUE previous_hash FROM ONLY type::record('api_key', $hash));
     IF $older != NONE {
         DELETE type::record('api_key_previous', $older) RETURN NONE;
         UPDATE type::record('api_key', $hash)
             SET previous_hash = NONE, previous_mask = NONE, previous_until = NONE
             RETURN NONE;",
        write_activities!(),
        "};
     COMMIT;"
    ),
);

/// Ends the previous value of a key immediately. `false` when the user has no such key.
///
/// # Errors
/// Any failure of the store.
pub async fn end_previous(
    store: &Store,
    user: UserId,
    key: &KeyId,
    activities: &[Entry],
) -> Result<bool> {
    let vars = bind! { user: user.0, key: key.0.as_str() };
    is_done(activity::change(store, END, vars, activities).await)
}
