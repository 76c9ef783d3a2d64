//! The setting `backup_every`.
//!
//! What belongs here: its text, such as `24h`. What does not: when a backup is due
//! (`crate::backup::schedule`).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The units, the largest first, with their seconds.
const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];
/// Longest interval, seconds.
const LONGEST: u64 = 366 * 86_400;

/// The time between two backups, from a second to 366 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupInterval(pub Duration);

impl Default for BackupInterval {
    fn default() -> Self {
        Self(Duration::from_secs(86_400))
    }
}

impl FromStr for BackupInterval {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str =
            "expected a number and a unit, such as 24h, 30m, 90s or 7d, at most 366d";
        let (number, seconds) = UNITS
            .iter()
            .find_map(|(unit, seconds)| Some((text.strip_suffix(*unit)?, *seconds)))
            .ok_or(WRONG)?;
        let number: u64 = number.parse().map_err(|_| WRONG)?;
        let seconds = number.checked_mul(seconds).ok_or(WRONG)?;
        match (1..=LONGEST).contains(&seconds) {
            true => Ok(Self(Duration::from_secs(seconds))),
            false => Err(WRONG),
        }
    }
}

impl fmt::Display for BackupInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.0.as_secs();
        match UNITS.iter().find(|(_, seconds)| all.is_multiple_of(*seconds)) {
            Some((unit, seconds)) => write!(f, "{}{unit}", all / seconds),
            None => write!(f, "{all}s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::BackupInterval;

    #[test]
    fn a_number_and_a_unit_are_needed() {
        for (text, seconds, written) in [
            ("1s", 1, "1s"),
            ("90s", 90, "90s"),
            ("30m", 1_800, "30m"),
            ("24h", 86_400, "1d"),
            ("36h", 129_600, "36h"),
            ("366d", 31_622_400, "366d"),
        ] {
            let interval: BackupInterval = text.parse().unwrap();
            assert_eq!((interval.0.as_secs(), interval.to_string().as_str()), (seconds, written));
        }
        assert_eq!(Ok(BackupInterval::default()), "24h".parse());
        for bad in ["", "h", "24", "0s", "-1h", "1.5h", "24 h", "24H", "367d", "99999999999999999d"]
        {
            assert!(bad.parse::<BackupInterval>().is_err(), "{bad}");
        }
    }
}
