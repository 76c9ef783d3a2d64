//! How long and how often failed work is retried.

use std::time::Duration;

use weir_model::Timestamp;

/// The first pause. Pauses double
const FIRST: Duration = Duration::from_secs(1);
/// up to this one.
const LONGEST: Duration = Duration::from_secs(60);
/// Attempts if the failure may pass.
const MAX_ATTEMPTS: u32 = 10;
/// Attempts if the script or the destination reports a permanent failure.
const MAX_ATTEMPTS_PERMANENT: u32 = 3;
/// Seconds after which nothing is retried.
const PATIENCE: i64 = 3_600;

/// The pause after this many failed attempts.
pub(super) fn pause(tries: u32) -> Duration {
    let doubled = 1_u32.checked_shl(tries.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST.checked_mul(doubled).map_or(LONGEST, |pause| pause.min(LONGEST))
}

/// Whether to stop retrying.
pub(super) fn is_enough(tries: u32, since: Timestamp, now: Timestamp, is_permanent: bool) -> bool {
    let max_attempts = if is_permanent { MAX_ATTEMPTS_PERMANENT } else { MAX_ATTEMPTS };
    tries >= max_attempts || now >= since.plus_seconds(PATIENCE)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_model::Timestamp;

    use super::{is_enough, pause};

    #[test]
    fn pauses_grow_to_a_minute() {
        let pauses = [1, 2, 3, 7, 10, 40].map(|tries| pause(tries).as_secs());
        assert_eq!(pauses, [1, 2, 4, 60, 60, 60]);
        assert_eq!(pause(0), Duration::from_secs(1));
    }

    #[test]
    fn what_will_not_pass_is_tried_less() {
        let since = Timestamp::from_micros(0);
        let enough = |tries, seconds, is_permanent| {
            is_enough(tries, since, since.plus_seconds(seconds), is_permanent)
        };
        assert!(!enough(9, 0, false) && enough(10, 0, false));
        assert!(!enough(2, 0, true) && enough(3, 0, true));
        assert!(enough(1, 3_600, false));
    }
}
