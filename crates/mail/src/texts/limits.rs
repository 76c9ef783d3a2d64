//! Limits of organizations in words.

use weir_model::limits::{LimitAction, LimitName};

/// A limit in a subject.
pub(super) const fn limit_words(limit: LimitName) -> &'static str {
    match limit {
        LimitName::EventsPerMonth => "events per month",
        LimitName::EventsPerSecond => "events per second",
        LimitName::DiskBytes => "disk space",
        LimitName::Members => "members",
        LimitName::Exports => "exports",
    }
}

/// What the number of a limit counts.
pub(super) const fn limit_noun(limit: LimitName) -> &'static str {
    match limit {
        LimitName::EventsPerMonth => "events of this calendar month (UTC)",
        LimitName::EventsPerSecond => "events in a second, on average over a minute",
        LimitName::DiskBytes => "for stored events",
        LimitName::Members => "members",
        LimitName::Exports => "exports",
    }
}

/// What happens beyond a limit.
pub(super) const fn beyond(limit: LimitName, action: LimitAction) -> &'static str {
    match (limit, action) {
        (_, LimitAction::Warn) => "Nothing else happens when the limit is exceeded.",
        (LimitName::Members, _) => {
            "When the limit is reached, no further members can join. Present members stay."
        }
        (LimitName::Exports, _) => {
            "When the limit is reached, no further exports can be added. Present exports continue."
        }
        (_, LimitAction::Drop) => {
            "When the limit is reached, further events are dropped. The page Health of each \
             project shows how many."
        }
        (_, LimitAction::Reject) => {
            "When the limit is reached, requests with events are refused with the status 429. \
             Client libraries send some of these events again later, and lose others. The page \
             Health of each project shows the refused requests."
        }
    }
}

/// A number of a limit, with its digits in groups, or as a size.
pub(super) fn amount(limit: LimitName, number: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB")];
    let unit = UNITS.into_iter().find(|(size, _)| number >= *size);
    if let (LimitName::DiskBytes, Some((size, name))) = (limit, unit) {
        let tenths = u128::from(number) * 10 / u128::from(size);
        return format!("{}.{} {name}", tenths / 10, tenths % 10);
    }
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if limit == LimitName::DiskBytes { format!("{text} bytes") } else { text }
}
