//! The calendar and the clock of a question, as expressions ask them.

use std::cell::Cell;

use weir_query::TimeUnit;
use weir_questions::time::{Calendar, DateUnit};

const SECOND: i64 = 1_000_000;
/// The first instant of the year 1: expressions have no earlier time.
const FIRST: i64 = -62_135_596_800 * SECOND;
const UNITS: usize = TimeUnit::ALL.len();

/// The calendar of the project and the time of the question. Each thread has its own, which
/// remembers the last unit of each length: most rows are in the unit of the row before.
#[derive(Debug, Clone)]
pub(super) struct Clock<'q> {
    calendar: &'q Calendar,
    pub(super) now: i64,
    units: [Cell<(i64, i64)>; UNITS],
}

impl<'q> Clock<'q> {
    pub(super) fn new(calendar: &'q Calendar, now: i64) -> Self {
        Self { calendar, now, units: std::array::from_fn(|_| Cell::new((0, 0))) }
    }

    pub(super) fn local(&self, micros: i64) -> Option<i64> {
        self.calendar.clock(micros)
    }

    pub(super) fn instant(&self, local: i64) -> Option<i64> {
        self.calendar.at_clock(local)
    }

    pub(super) fn start_of(&self, unit: TimeUnit, micros: i64) -> Option<i64> {
        let Some(date_unit) = date_unit(unit) else {
            return Some(micros - micros.rem_euclid(SECOND));
        };
        let cell = TimeUnit::ALL.iter().position(|other| *other == unit);
        let cell = cell.and_then(|at| self.units.get(at))?;
        let (start, end) = cell.get();
        if (start..end).contains(&micros) {
            return Some(start);
        }
        let found = self.calendar.unit(date_unit, micros)?;
        cell.set((found.start, found.end));
        Some(found.start)
    }

    pub(super) fn shifted(&self, micros: i64, count: i64, unit: TimeUnit) -> Option<i64> {
        let moved = match date_unit(unit) {
            Some(unit) => self.calendar.moved_by(micros, count, unit)?,
            None => micros.checked_add(count.checked_mul(SECOND)?)?,
        };
        (moved >= FIRST && self.calendar.clock(moved).is_some()).then_some(moved)
    }
}

/// `None`: a second.
fn date_unit(unit: TimeUnit) -> Option<DateUnit> {
    Some(match unit {
        TimeUnit::Second => return None,
        TimeUnit::Minute => DateUnit::Minute,
        TimeUnit::Hour => DateUnit::Hour,
        TimeUnit::Day => DateUnit::Day,
        TimeUnit::Week => DateUnit::Week,
        TimeUnit::Month => DateUnit::Month,
        TimeUnit::Quarter => DateUnit::Quarter,
        TimeUnit::Year => DateUnit::Year,
    })
}
