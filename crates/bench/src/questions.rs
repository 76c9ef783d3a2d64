//! Questions about a month of events: the events, the questions, and the same questions as
//! SQL for other engines.
//!
//! What belongs here: everything of that measurement that needs no server, so that it has unit
//! tests. What does not: asking (`bin/bench/questions.rs`).

mod cells;
mod history;
mod kind;
mod sql;

pub use cells::Cells;
pub use history::History;
pub use kind::Kind;
pub use sql::{Engine, sql};

use crate::clock::{self, TIME};

/// The microseconds of a day and of a week.
const DAY: i64 = 86_400_000_000;
const WEEK: i64 = 7 * DAY;
/// Days with events.
const DAYS: i64 = 30;
/// Weeks of retention.
const WEEKS: i64 = 8;
/// Rows of a page of events.
const ROWS: usize = 100;
/// Values of a breakdown that have a result of their own.
const VALUES: usize = 25;
/// Days from the first step of a funnel to the last one.
const WINDOW: i64 = 14;

/// The properties that breakdowns divide by: one that each event has, and a rare one.
const FREQUENT: &str = "$browser";
const RARE: &str = "coupon";
/// The events that are counted, and the steps of the funnel after them.
const VIEW: &str = "$pageview";
const STEPS: [&str; 3] = [VIEW, "product viewed", "order completed"];

/// The script that reads the names of the files of a project's tables: events and persons.
pub const READ_TABLE: &str = include_str!("questions/read_table.py");

/// The whole days of UTC that events and questions are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Days {
    /// The first one, as days since 1970.
    first: i64,
}

impl Days {
    /// The last ones before the current day.
    pub fn before(now: i64) -> Self {
        Self { first: now.div_euclid(DAY) - DAYS }
    }

    /// The first instant in microseconds.
    pub fn begin(self) -> i64 {
        self.first * DAY
    }

    /// The first instant after them.
    pub fn end(self) -> i64 {
        self.begin() + DAYS * DAY
    }

    /// The first instant of the weeks of retention, of which the last one contains the last
    /// day. Weeks begin on Sunday.
    fn first_week(self) -> i64 {
        let last = self.first + DAYS - 1;
        // 1970 began on a Thursday.
        let sunday = last - (last + 4).rem_euclid(7);
        sunday * DAY - (WEEKS - 1) * WEEK
    }

    /// The first and the last day, and the one after them, as `2026-08-21`.
    fn dates(self) -> [String; 3] {
        [self.begin(), self.end() - DAY, self.end()].map(|day| time_text(day)[..10].to_owned())
    }
}

/// A time as `2026-01-02T03:04:05.123456Z`.
fn time_text(micros: i64) -> String {
    let mut text = [0; TIME];
    clock::write_time(micros, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{DAY, Days};

    /// 2026-11-30, a Monday.
    pub(super) const NOW: i64 = 1_796_042_000_000_000;

    #[test]
    fn the_days_are_whole_ones_before_the_current_one() {
        let days = Days::before(NOW);
        assert_eq!(days.dates(), ["2026-10-31", "2026-11-29", "2026-11-30"]);
        assert_eq!(days.end() - days.begin(), 30 * DAY);
        assert_eq!(days, Days::before(NOW - NOW % DAY));
    }

    #[test]
    fn the_last_week_contains_the_last_day() {
        // The last day is a Sunday, and then each other day of the week.
        for after in 0..7 {
            let days = Days::before(NOW + after * DAY);
            assert_eq!(super::time_text(days.first_week()), "2026-10-11T00:00:00.000000Z");
        }
        let days = Days::before(NOW - DAY);
        assert_eq!(super::time_text(days.first_week()), "2026-10-04T00:00:00.000000Z");
    }
}
