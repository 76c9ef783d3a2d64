//! The uuid of an event, which is its identity in the project it goes to (ING-61).
//!
//! What belongs here: uuids that follow from the content of a line, so that a
//! repeated import stores nothing twice.
//! What does not: uuids that a line brings itself.
//!
//! Project and host are no part of it: a key that was replaced in between must
//! not double the history. The same event in two projects has one uuid, which
//! each of them keeps for itself.

use uuid::{Builder, Uuid};

/// Must never change: a repeated import finds its events again by it.
const NAMESPACE: Uuid = Uuid::from_u128(0x7c1e_52c4_90bb_4d0a_8d0f_3a6b_e1d4_2f95);

/// The same uuid for the same parts.
pub(crate) fn of(parts: &[&str]) -> Uuid {
    let mut name = String::new();
    for part in parts {
        // The length keeps the parts from running into each other.
        name.push_str(&part.len().to_string());
        name.push(':');
        name.push_str(part);
    }
    Uuid::new_v5(&NAMESPACE, name.as_bytes())
}

/// A session's uuid: its time part is the start in milliseconds since 1970, as
/// sessions must have (ING-54); the rest follows from whose it is.
pub(crate) fn session(start: u64, whose: &str) -> Uuid {
    let [b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, ..] = *of(&["session", whose]).as_bytes();
    let rest = [b0, b1, b2, b3, b4, b5, b6, b7, b8, b9];
    Builder::from_unix_timestamp_millis(start, &rest).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::{of, session};

    #[test]
    fn equal_parts_make_equal_uuids() {
        assert_eq!(of(&["a", "b"]), of(&["a", "b"]));
        assert_ne!(of(&["a", "b"]), of(&["ab"]));
        assert_ne!(of(&["a", "1:b"]), of(&["a1:", "b"]));
        // Fixed for ever.
        assert_eq!(of(&["mixpanel", "x"]).to_string(), "6407c77b-3479-5252-9760-9f160e3a1fb8");
    }

    #[test]
    fn a_session_carries_its_start() {
        let uuid = session(1_780_308_000_123, "device");
        assert_eq!(uuid.get_version_num(), 7);
        assert_eq!(uuid.as_u128() >> 80, 1_780_308_000_123);
        assert_ne!(uuid, session(1_780_308_000_123, "other"));
    }
}
