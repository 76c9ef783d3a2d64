//! The keys of visitors without cookies (ING-65): a visitor has the same key for one day, and
//! the key cannot be computed afterwards.
//!
//! What belongs here: the secret of a day, and when it is forgotten. It is in memory alone,
//! so no disk, log or backup has it; after a restart visitors get other keys. What does not:
//! what the keys are used for (`weir_capture`).

use std::net::IpAddr;

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;
use weir_model::{ProjectId, Timestamp};
use zeroize::Zeroizing;

const DAY_MICROS: i64 = 24 * 60 * 60 * 1_000_000;

/// The secret of the present day, made when it is first needed.
#[derive(Default)]
pub struct CookielessKeys(Mutex<Option<Secret>>);

struct Secret {
    /// Days since 1970, UTC.
    day: i64,
    bytes: Zeroizing<[u8; 32]>,
}

impl Secret {
    fn new(day: i64) -> Self {
        let mut bytes = Zeroizing::new([0_u8; 32]);
        let (first, second) = bytes.split_at_mut(16);
        // Each has 122 random bits.
        first.copy_from_slice(Uuid::new_v4().as_bytes());
        second.copy_from_slice(Uuid::new_v4().as_bytes());
        Self { day, bytes }
    }

    /// Whether it is the secret for a request of this day. A request from just before
    /// midnight may be processed after one of the next day.
    fn is_for(&self, day: i64) -> bool {
        self.day == day || self.day == day + 1
    }
}

impl CookielessKeys {
    /// The key of a visitor of a project, by the address and the user agent.
    pub(super) fn key(
        &self,
        project: ProjectId,
        address: IpAddr,
        user_agent: &[u8],
        now: Timestamp,
    ) -> Uuid {
        let address = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        let secret = self.secret(day(now));
        // Only the last part can have any length.
        let parts = [&secret[..], &project.0.to_be_bytes(), &address.octets(), user_agent];
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(part);
        }
        let hash: [u8; 32] = hash.finalize().into();
        // Half of a hash cannot be continued to that of a longer user agent.
        hash.first_chunk().copied().map(Uuid::from_bytes).unwrap_or_default()
    }

    fn secret(&self, day: i64) -> Zeroizing<[u8; 32]> {
        let mut held = self.0.lock();
        let secret = held.take().filter(|secret| secret.is_for(day));
        let secret = secret.unwrap_or_else(|| Secret::new(day));
        let bytes = secret.bytes.clone();
        *held = Some(secret);
        bytes
    }

    /// Forgets the secret if its day has ended.
    pub fn forget(&self, now: Timestamp) {
        let mut held = self.0.lock();
        *held = held.take().filter(|secret| secret.is_for(day(now)));
    }
}

fn day(now: Timestamp) -> i64 {
    now.micros().div_euclid(DAY_MICROS)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use uuid::Uuid;
    use weir_model::{ProjectId, Timestamp};

    use super::CookielessKeys;

    const NOON: &str = "2026-06-01T12:00:00Z";

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn key(keys: &CookielessKeys, time: &str) -> Uuid {
        keys.key(ProjectId(1), "192.0.2.7".parse().unwrap(), b"Firefox", at(time))
    }

    #[test]
    fn a_visitor_has_one_key_until_the_end_of_the_day() {
        let keys = CookielessKeys::default();
        let first = key(&keys, "2026-06-01T00:00:00Z");
        assert_eq!(key(&keys, "2026-06-01T23:59:59.999999Z"), first);
        let next = key(&keys, "2026-06-02T00:00:00Z");
        assert_ne!(next, first);
        // A late request of the day before does not bring its secret back.
        assert_eq!(key(&keys, "2026-06-01T23:59:59Z"), next);
        assert_eq!(key(&keys, "2026-06-02T00:00:01Z"), next);
    }

    #[test]
    fn keys_differ_by_project_address_and_user_agent() {
        let keys = CookielessKeys::default();
        let of = |project, address: &str, user_agent: &str| {
            let address: IpAddr = address.parse().unwrap();
            keys.key(ProjectId(project), address, user_agent.as_bytes(), at(NOON))
        };
        let one = of(1, "192.0.2.7", "Firefox");
        assert_eq!(of(1, "::ffff:192.0.2.7", "Firefox"), one);
        for other in [
            of(2, "192.0.2.7", "Firefox"),
            of(1, "192.0.2.8", "Firefox"),
            of(1, "192.0.2.7", "Chrome"),
            of(1, "192.0.2.7", ""),
        ] {
            assert_ne!(other, one);
        }
        assert_ne!(key(&CookielessKeys::default(), NOON), one);
    }

    #[test]
    fn the_secret_is_forgotten_after_its_day() {
        let keys = CookielessKeys::default();
        let first = key(&keys, NOON);
        keys.forget(at("2026-06-01T23:59:59Z"));
        assert_eq!(key(&keys, NOON), first);
        keys.forget(at("2026-06-02T00:00:00Z"));
        assert!(keys.0.lock().is_none());
        assert_ne!(key(&keys, NOON), first);
        // The clock was set back by days.
        keys.forget(at("2026-05-20T12:00:00Z"));
        assert!(keys.0.lock().is_none());
    }
}
