//! The uuid of an event, which identifies it in its project (ING-61).
//!
//! What belongs here: uuids that are computed from the content of a line, so that a
//! repeated import stores nothing twice. What does not: uuids that a line contains
//! (`event`).
//!
//! Project and host do not influence the uuid: replacing a key must not duplicate the
//! history. The same event has the same uuid in two projects, which is allowed.

use uuid::{Builder, Uuid};

/// It must never change: a repeated import finds its events again by these uuids.
const NAMESPACE: Uuid = Uuid::from_u128(0x7c1e_52c4_90bb_4d0a_8d0f_3a6b_e1d4_2f95);

/// The same uuid for the same parts.
pub(crate) fn of(parts: &[&str]) -> Uuid {
    let mut name = String::new();
    for part in parts {
        // The length makes the boundaries of the parts unambiguous.
        name.push_str(&part.len().to_string());
        name.push(':');
        name.push_str(part);
    }
    Uuid::new_v5(&NAMESPACE, name.as_bytes())
}

/// The uuid of a session: its time part is the start in milliseconds since 1970, as
/// sessions require (ING-54); the rest is computed from its owner.
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
        // A fixed value that must not change.
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
