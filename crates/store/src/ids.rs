//! New ids in order of time: the order of ids is the order of creation, in the store and
//! in lists.

use uuid::{NoContext, Uuid};
use weir_model::Timestamp;

/// A new UUID (version 7) whose time part is `now`.
pub fn time_ordered(now: Timestamp) -> Uuid {
    let micros = u64::try_from(now.micros()).unwrap_or(0);
    let nanos = u32::try_from(micros % 1_000_000 * 1_000).unwrap_or(0);
    Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, micros / 1_000_000, nanos))
}

/// The lowest id of a millisecond since 1970. All ids of earlier times are lower.
pub fn first_of(millis: i64) -> Uuid {
    Uuid::from_u128(u128::try_from(millis).unwrap_or(0) << 80)
}
