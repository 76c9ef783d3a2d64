//! When mails are sent, as a text.

use weir_model::subscriptions::{Frequency, Weekday};
use weir_store::subscriptions::SubscriptionRow;

/// `sent every 2 weeks on Monday and Friday`
pub(super) fn summary(row: &SubscriptionRow) -> String {
    let unit = match row.frequency {
        Frequency::Daily => "day",
        Frequency::Weekly => "week",
        Frequency::Monthly => "month",
    };
    let every = match row.interval {
        1 => format!("sent every {unit}"),
        interval => format!("sent every {interval} {unit}s"),
    };
    if row.weekdays.is_empty() {
        return every;
    }
    let names: Vec<&str> = row.weekdays.iter().map(|day| name(*day)).collect();
    let place = match row.place {
        Some(1) => "the first ",
        Some(2) => "the second ",
        Some(3) => "the third ",
        Some(4) => "the fourth ",
        Some(_) => "the last ",
        None => "",
    };
    let between = if row.place.is_some() { " or " } else { " and " };
    let days = match names.as_slice() {
        [before @ .., last] if !before.is_empty() => {
            format!("{}{between}{last}", before.join(", "))
        }
        _ => names.concat(),
    };
    format!("{every} on {place}{days}")
}

const fn name(day: Weekday) -> &'static str {
    match day {
        Weekday::Monday => "Monday",
        Weekday::Tuesday => "Tuesday",
        Weekday::Wednesday => "Wednesday",
        Weekday::Thursday => "Thursday",
        Weekday::Friday => "Friday",
        Weekday::Saturday => "Saturday",
        Weekday::Sunday => "Sunday",
    }
}
