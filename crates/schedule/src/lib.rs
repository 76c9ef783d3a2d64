//! When an export runs: the boundaries of its intervals (EXP-19, EXP-20), and when a
//! subscription is due (`recurrence`).
//!
//! What belongs here: calendar and time zones. What does not: what is due
//! (`weir-export`), and who may change it (`weir-service`). Nothing here reads a clock or
//! the store.
//!
//! Invariant: between two consecutive boundaries is exactly one interval, also where
//! clocks are set forward or back. Such a day has 23 or 25 hours, and is neither cut nor
//! skipped.

mod recurrence;

use jiff::civil::{Date, Weekday};
use jiff::tz::{self, TimeZone};
use jiff::{Span, Timestamp as Instant, ToSpan};
use weir_model::Timestamp;
use weir_model::exports::{BatchExport, Interval, LAST_DAY, LAST_HOUR};

pub use recurrence::{Recurrence, local_text};

const MICROS: i64 = 1_000_000;
const DAY: i64 = 86_400;

/// Upper bound of runs in a backfill.
const BACKFILL_RUNS_MAX: u64 = 5_000;
/// Intervals with events that are counted one by one when a backfill is planned.
pub const COUNTED: usize = 100;

/// The time zone of exports without one.
pub const UTC: &str = "UTC";

/// A time zone by its IANA name in any case. `None` if there is no such zone.
fn zone(name: &str) -> Option<TimeZone> {
    // The binary contains the whole table: the one of the machine may be older.
    tz::TimeZoneDatabase::bundled().get(name).ok()
}

/// The name of a time zone in the spelling of the IANA table. `None` if there is no such
/// zone.
pub fn zone_name(name: &str) -> Option<String> {
    zone(name)?.iana_name().map(str::to_owned)
}

/// How a backfill is divided into runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackfillPlan {
    /// Begin of its first run.
    pub start: Timestamp,
    /// How many intervals each run covers.
    pub each: u64,
    /// Upper bound of the runs that it takes.
    pub runs: u64,
}

/// When an export runs: how often, and where its days and weeks begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cadence {
    interval: Interval,
    zone: TimeZone,
    /// 0 Sunday, 6 Saturday.
    day: i8,
    hour: i8,
}

impl Cadence {
    /// The cadence of an interval whose days and weeks begin at this hour and on this day
    /// (0 Sunday) of a time zone. A missing value counts as 0. `None` if the time zone,
    /// the day or the hour is not valid.
    pub fn of(
        interval: Interval,
        timezone: &str,
        day: Option<i64>,
        hour: Option<i64>,
    ) -> Option<Self> {
        let day = i8::try_from(day.unwrap_or(0))
            .ok()
            .filter(|day| (0..=LAST_DAY).contains(&i64::from(*day)))?;
        let hour = i8::try_from(hour.unwrap_or(0))
            .ok()
            .filter(|hour| (0..=LAST_HOUR).contains(&i64::from(*hour)))?;
        Some(Self { interval, zone: zone(timezone)?, day, hour })
    }

    /// The cadence of an export as it is stored: the name of its interval, and UTC if it
    /// has no time zone. `None` if the values are not valid.
    pub fn stored(
        interval: &str,
        timezone: Option<&str>,
        day: Option<i64>,
        hour: Option<i64>,
    ) -> Option<Self> {
        Self::of(Interval::of(interval)?, timezone.unwrap_or(UTC), day, hour)
    }

    /// The cadence of an export as the API shows it. `None` if the values are not valid.
    pub fn of_export(export: &BatchExport) -> Option<Self> {
        Self::of(export.interval, &export.timezone, export.offset_day, export.offset_hour)
    }

    /// How often the export runs.
    pub fn interval(&self) -> Interval {
        self.interval
    }

    /// A name for its boundaries: two cadences with the same name have the same
    /// boundaries.
    pub fn name(&self) -> String {
        let name = self.interval.text();
        let zone = self.zone.iana_name().unwrap_or(UTC);
        if !self.is_of_calendar() || (zone, self.day, self.hour) == (UTC, 0, 0) {
            return name.to_owned();
        }
        format!("{name} {} {} {zone}", self.day, self.hour)
    }

    /// The last boundary between intervals that is not after this time.
    pub fn boundary_before(&self, time: Timestamp) -> Timestamp {
        if !self.is_of_calendar() {
            let length = self.interval.seconds() * MICROS;
            return Timestamp::from_micros(time.micros().div_euclid(length) * length);
        }
        let around = self.around(time).into_iter().rev();
        around.flatten().find(|boundary| *boundary <= time).unwrap_or(time)
    }

    /// The first boundary between intervals after this time.
    pub fn boundary_after(&self, time: Timestamp) -> Timestamp {
        if !self.is_of_calendar() {
            return self.boundary_before(time).plus_seconds(self.interval.seconds());
        }
        let around = self.around(time).into_iter();
        let after = around.flatten().find(|boundary| *boundary > time);
        after.unwrap_or_else(|| time.plus_seconds(self.interval.seconds()))
    }

    /// Begin of the interval that ends at this boundary.
    pub fn start_of(&self, end: Timestamp) -> Timestamp {
        self.boundary_before(Timestamp::from_micros(end.micros().saturating_sub(1)))
    }

    /// When the schedule of an export starts the next run, if nothing changes until then.
    /// `None` if it starts no more runs.
    pub fn next_run(export: &BatchExport, now: Timestamp) -> Option<Timestamp> {
        if export.paused {
            return None;
        }
        let cadence = Self::of_export(export)?;
        let mut next = cadence.boundary_after(now);
        if let Some(from) = export.start_at.filter(|from| next < *from) {
            // The first interval that does not end before the start.
            let before = Timestamp::from_micros(from.micros().saturating_sub(1));
            next = cadence.boundary_after(before);
        }
        export.end_at.is_none_or(|until| next <= until).then_some(next)
    }

    /// Begin of the first run of a backfill: the last begin of an interval that is not
    /// after the first event, or the start of the backfill if that is later.
    pub fn backfill_start(&self, start: Option<Timestamp>, first_event: Timestamp) -> Timestamp {
        let Some(start) = start else { return self.boundary_before(first_event) };
        let near = self.between(start, first_event);
        let tried = [near + 1, near, near.saturating_sub(1)];
        let starts = tried.into_iter().map(|empty| self.later(start, empty));
        starts.into_iter().find(|begin| *begin <= first_event).unwrap_or(start)
    }

    /// How many intervals each run of a backfill between two instants covers, if all
    /// intervals have events: one, or as many as keep it within 5,000 runs.
    pub fn intervals_per_run(&self, start: Timestamp, end: Timestamp) -> u64 {
        parts(start, end, self.interval.seconds()).div_ceil(BACKFILL_RUNS_MAX).max(1)
    }

    /// How many runs a backfill between two instants takes. An incomplete last part takes
    /// one too.
    pub fn runs_between(&self, start: Timestamp, end: Timestamp) -> u64 {
        self.runs_of(start, end, self.intervals_per_run(start, end))
    }

    /// The plan of a backfill. `firsts` are the times of the first events of its
    /// intervals with events, for at most [`COUNTED`] intervals. `None` if there is
    /// nothing to export.
    ///
    /// Only intervals with events get a run. Intervals after the counted ones are assumed
    /// to have events.
    pub fn backfill_plan(
        &self,
        start: Option<Timestamp>,
        end: Timestamp,
        firsts: &[Timestamp],
    ) -> Option<BackfillPlan> {
        let (first, last) = (*firsts.first()?, *firsts.last()?);
        let begin = self.backfill_start(start, first);
        if begin >= end {
            return None;
        }
        let counted = firsts.len() as u64;
        if firsts.len() < COUNTED {
            return Some(BackfillPlan { start: begin, each: 1, runs: counted });
        }
        let at = self.interval_end(start, last).min(end);
        let rest = parts(at, end, self.interval.seconds());
        let each = rest.div_ceil(BACKFILL_RUNS_MAX - counted).max(1);
        let runs = counted.min(self.runs_of(begin, at, each)) + self.runs_of(at, end, each);
        Some(BackfillPlan { start: begin, each, runs })
    }

    /// End of the interval of a backfill that contains this time.
    pub fn interval_end(&self, start: Option<Timestamp>, time: Timestamp) -> Timestamp {
        match start {
            None => self.boundary_after(time),
            Some(start) => self.bounds_of(start, 1, time).1,
        }
    }

    /// The bounds of the run that contains this time, in a backfill that begins at
    /// `start`, ends at `end`, and whose runs cover `each` intervals.
    pub fn backfill_run(
        &self,
        start: Timestamp,
        each: u64,
        time: Timestamp,
        end: Timestamp,
    ) -> (Timestamp, Timestamp) {
        let (begin, until) = self.bounds_of(start, each, time);
        (begin, until.min(end))
    }

    fn bounds_of(&self, start: Timestamp, each: u64, time: Timestamp) -> (Timestamp, Timestamp) {
        let each = each.max(1);
        let bound = |runs: u64| self.later(start, runs.saturating_mul(each));
        // Rounded to the nearest number. It may be one off where days have 23 or 25
        // hours.
        let mut runs = self.between(start, time) / each;
        while runs > 0 && bound(runs) > time {
            runs -= 1;
        }
        let mut begin = bound(runs);
        loop {
            runs = runs.saturating_add(1);
            let until = bound(runs);
            // A zone that changed sides of the date line has skipped a day.
            if until > time || runs == u64::MAX {
                return (begin, until);
            }
            begin = until;
        }
    }

    fn runs_of(&self, start: Timestamp, end: Timestamp, each: u64) -> u64 {
        let length = self.interval.seconds().saturating_mul(signed(each));
        let near = parts(start, end, length);
        let ends = |runs: u64| self.later(start, runs.saturating_mul(each)) >= end;
        // Days of 23 and 25 hours: one more or one less.
        let tried = [near.saturating_sub(1), near];
        tried.into_iter().find(|runs| ends(*runs)).unwrap_or(near + 1)
    }

    /// Whether its boundaries follow a calendar. Otherwise they follow the clock.
    fn is_of_calendar(&self) -> bool {
        self.days() > 0
    }

    /// Days between boundaries. 0: less than one day.
    fn days(&self) -> i64 {
        self.interval.seconds() / DAY
    }

    /// Boundaries around a time, in order: at least one that is not after it, and one
    /// that is.
    fn around(&self, time: Timestamp) -> [Option<Timestamp>; 5] {
        let local = instant(time).to_zoned(self.zone.clone()).date();
        // The boundary of tomorrow may be in the past where clocks are set back around
        // midnight.
        let mut last = local.saturating_add(1.day());
        if self.interval == Interval::Week {
            let over = last.weekday().since(Weekday::Sunday) - self.day;
            last = last.saturating_sub(i64::from(over.rem_euclid(7)).days());
        }
        [-3, -2, -1, 0, 1].map(|units| self.boundary_on(last, units * self.days()))
    }

    /// The boundary on the day that is this many days after another. An hour that clocks
    /// skip becomes the hour after it; of an hour that comes twice, it is the first one.
    fn boundary_on(&self, date: Date, days: i64) -> Option<Timestamp> {
        let date = date.checked_add(Span::new().try_days(days).ok()?).ok()?;
        let local = date.at(self.hour, 0, 0, 0).to_zoned(self.zone.clone()).ok()?;
        Some(Timestamp::from_micros(local.timestamp().as_microsecond()))
    }

    /// The instant this many intervals after another one.
    fn later(&self, start: Timestamp, intervals: u64) -> Timestamp {
        let seconds = self.interval.seconds().saturating_mul(signed(intervals));
        if !self.is_of_calendar() {
            return start.plus_seconds(seconds);
        }
        let local = instant(start).to_zoned(self.zone.clone());
        // From one boundary to another, count by boundaries: an hour that is missing on
        // one day does not move the boundaries after it.
        if self.boundary_on(local.date(), 0) == Some(start)
            && let Some(later) = self.boundary_on(local.date(), seconds / DAY)
        {
            return later;
        }
        let days = Span::new().try_days(seconds / DAY).ok();
        let later = days.and_then(|days| local.checked_add(days).ok());
        match later {
            Some(later) => Timestamp::from_micros(later.timestamp().as_microsecond()),
            None => start.plus_seconds(seconds),
        }
    }

    /// Number of intervals between two instants, rounded to the nearest: days may have 23
    /// or 25 hours.
    fn between(&self, start: Timestamp, end: Timestamp) -> u64 {
        let length = self.interval.seconds() * MICROS;
        let micros = end.micros().saturating_sub(start.micros()).max(0);
        let half = if self.is_of_calendar() { length / 2 } else { 0 };
        u64::try_from(micros.saturating_add(half) / length).unwrap_or(0)
    }
}

/// Number of parts of this many seconds between two instants. The last part may be
/// shorter.
fn parts(start: Timestamp, end: Timestamp, seconds: i64) -> u64 {
    let micros = end.micros().saturating_sub(start.micros()).max(0);
    let length = seconds.saturating_mul(MICROS);
    u64::try_from(micros.saturating_add(length - 1) / length).unwrap_or(0)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The instant of a time. Times outside of the calendar become its first or last instant.
fn instant(time: Timestamp) -> Instant {
    let end = if time.micros() < 0 { Instant::MIN } else { Instant::MAX };
    Instant::from_microsecond(time.micros()).unwrap_or(end)
}

#[cfg(test)]
mod tests;
