//! Adds year, month, day, weekday, hour and minute of an event.

use chrono::{Datelike, FixedOffset, Timelike};
use weir_json::quoted;

use crate::config::{Config, ConfigError};
use crate::entry::{Code, Direction, Entry, Item, Native, Step, StepDependencies};
use crate::event::{Flow, StepEvent};

pub(crate) const ENTRY: Entry = Entry {
    id: "timestamp-parts",
    name: "Timestamp parts",
    description: "Adds year, month, day, weekday, hour and minute of each event.",
    icon: Some("plus"),
    direction: Direction::In,
    items: &[
        Item::text("offset", "Offset from UTC", "As in +02:00 or -05:30.").or("+00:00").required(),
        Item::text("prefix", "Prefix", "The beginning of the names of the properties."),
    ],
    code: Code::Native(Native(make)),
};

const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

fn make(config: &Config<'_>, _: &StepDependencies) -> Result<Box<dyn Step>, ConfigError> {
    let offset = offset_of(&config.needed("offset")?)
        .ok_or_else(|| ConfigError::new("offset", "This must be an offset as in +02:00."))?;
    Ok(Box::new(TimestampParts { offset, prefix: config.text("prefix")?.unwrap_or_default() }))
}

/// `+02:00`; also `+0200`, `Z` and `UTC`.
fn offset_of(text: &str) -> Option<FixedOffset> {
    if text == "Z" || text.eq_ignore_ascii_case("utc") {
        return FixedOffset::east_opt(0);
    }
    let is_east = match text.get(..1)? {
        "+" => true,
        "-" => false,
        _ => return None,
    };
    let digits = text.get(1..)?;
    let (hours, minutes) = digits.split_once(':').or_else(|| digits.split_at_checked(2))?;
    let two = |part: &str, limit: i32| {
        (part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| part.parse::<i32>().ok())
            .flatten()
            .filter(|number| *number < limit)
    };
    let seconds = two(hours, 15)? * 3600 + two(minutes, 60)? * 60;
    FixedOffset::east_opt(if is_east { seconds } else { -seconds })
}

struct TimestampParts {
    offset: FixedOffset,
    prefix: String,
}

impl Step for TimestampParts {
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow {
        let utc = event.timestamp().to_chrono();
        // Times outside of the calendar have no parts.
        let Some(local) = utc.naive_utc().checked_add_offset(self.offset) else {
            return Flow::Keep;
        };
        let day = local.weekday().num_days_from_monday() as usize;
        let day = DAYS.get(day).copied().unwrap_or_default();
        let properties = event.properties_mut();
        for (name, json) in [
            ("year", local.year().to_string()),
            ("month", local.month().to_string()),
            ("day", local.day().to_string()),
            ("day_of_the_week", quoted(day)),
            ("hour", local.hour().to_string()),
            ("minute", local.minute().to_string()),
        ] {
            properties.set_raw(&format!("{}{name}", self.prefix), json);
        }
        Flow::Keep
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use weir_model::time::Timestamp;

    use crate::event::StepEvent;
    use crate::testing::{after, fault, step};

    #[test]
    fn parts_are_added() {
        let sent = r#"{"n":12345678901234567890,"year":"ü"}"#;
        assert_eq!(
            after("timestamp-parts", &json!({}), sent).unwrap(),
            r#"{"n":12345678901234567890,"year":2026,"month":3,"day":1,"day_of_the_week":"Sunday","hour":23,"minute":30}"#
        );
        let config = json!({"offset": "+05:45", "prefix": "local_"});
        assert_eq!(
            after("timestamp-parts", &config, "{}").unwrap(),
            r#"{"local_year":2026,"local_month":3,"local_day":2,"local_day_of_the_week":"Monday","local_hour":5,"local_minute":15}"#
        );
    }

    #[test]
    fn times_at_the_ends_of_the_calendar_do_no_harm() {
        for (offset, micros) in [("-14:00", i64::MIN), ("+14:00", i64::MAX), ("-14:00", 0)] {
            let step = step("timestamp-parts", &json!({"offset": offset})).unwrap();
            let when = Timestamp::from_micros(micros);
            let mut event = StepEvent::new("e", "d", None, when, "{}").unwrap();
            let _ = step.apply(&mut event);
            assert!(event.properties().has("year"));
        }
    }

    #[test]
    fn offsets() {
        for offset in ["+00:00", "-0530", "Z", "utc", "+14:00"] {
            step("timestamp-parts", &json!({"offset": offset})).map(drop).unwrap();
        }
        for offset in
            ["", "2", "+2", "+15:00", "+02:60", "02:00", "+ü2:00", "Europe/Berlin", "+-1:00"]
        {
            assert_eq!(
                fault("timestamp-parts", &json!({"offset": offset})).0,
                "offset",
                "{offset}"
            );
        }
    }
}
