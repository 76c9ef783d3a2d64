//! The settings `limit_…`: limits of organizations for which the operator has chosen no
//! others.
//!
//! What belongs here: their texts, such as `1000000 reject`. What does not: what a limit
//! means (`weir_model::limits`).

use std::fmt;
use std::str::FromStr;

use weir_model::limits::{Limit, LimitAction, LimitName};

use super::ByteSize;

/// Declares the type of each setting.
macro_rules! limits {
    ($($(#[$doc:meta])+ $kind:ident = $name:ident;)+) => {$(
        $(#[$doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $kind(pub Option<Limit>);

        impl FromStr for $kind {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                read(LimitName::$name, text).map(Self)
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.map_or(Ok(()), |limit| write(LimitName::$name, limit, f))
            }
        }
    )+};
}

limits! {
    /// The limit of events in a calendar month; `None`: none.
    EventsPerMonthLimit = EventsPerMonth;
    /// The limit of events in a second; `None`: none.
    EventsPerSecondLimit = EventsPerSecond;
    /// The limit of bytes of stored events; `None`: none.
    DiskLimit = DiskBytes;
    /// The limit of members; `None`: none.
    MembersLimit = Members;
    /// The limit of batch exports; `None`: none.
    ExportsLimit = Exports;
}

fn read(name: LimitName, text: &str) -> Result<Option<Limit>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = || {
        let words: Vec<&str> = name.actions().iter().map(|action| action.word()).collect();
        format!(
            "expected a number from 1 to {} and one of the words {}, such as `1000 reject`",
            name.largest(),
            words.join(", ")
        )
    };
    let (number, word) = text.split_once(' ').ok_or_else(wrong)?;
    let most = match name {
        LimitName::DiskBytes => number.parse::<ByteSize>().ok().map(|size| size.0),
        _ => number.parse().ok(),
    };
    let is_possible = |most: &u64| i64::try_from(*most).is_ok_and(|most| most <= name.largest());
    let most = most.filter(|most| *most > 0 && is_possible(most)).ok_or_else(wrong)?;
    let action = LimitAction::of(word.trim()).filter(|action| name.actions().contains(action));
    Ok(Some(Limit { most, action: action.ok_or_else(wrong)? }))
}

fn write(name: LimitName, limit: Limit, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match name {
        LimitName::DiskBytes => write!(f, "{} {}", ByteSize(limit.most), limit.action.word()),
        _ => write!(f, "{limit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{DiskLimit, EventsPerMonthLimit, EventsPerSecondLimit, MembersLimit};

    #[test]
    fn what_is_written_can_be_read_again() {
        for text in ["", "1000000 reject", "5 drop", "7 warn"] {
            assert_eq!(text.parse::<EventsPerMonthLimit>().unwrap().to_string(), text);
        }
        for (text, written) in [("20GiB drop", "20GiB drop"), ("1024 warn", "1KiB warn")] {
            assert_eq!(text.parse::<DiskLimit>().unwrap().to_string(), written);
        }
    }

    #[test]
    fn a_number_and_an_action_are_needed() {
        for bad in ["7", "reject", "0 reject", "-1 warn", "7 stop", "7GiB warn", "7 warn drop"] {
            let error = bad.parse::<EventsPerMonthLimit>().unwrap_err();
            assert!(error.contains("warn, drop, reject"), "{bad}: {error}");
        }
        assert!("7 drop".parse::<MembersLimit>().unwrap_err().contains("words warn, reject"));
        assert!("10000001 warn".parse::<EventsPerSecondLimit>().is_err());
        assert!("99999999999GiB drop".parse::<DiskLimit>().is_err());
    }
}
