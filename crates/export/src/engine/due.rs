//! Which interval of an export is due (EXP-21, EXP-22). Nothing here reads a clock or the
//! store.
//!
//! What belongs here: the decision. What does not: creating the runs (`schedule`),
//! boundaries of intervals (`weir-schedule`).

use weir_model::Timestamp;
use weir_schedule::Cadence;
use weir_store::exports::schedule::Schedule;
use weir_store::exports::{BackfilledPause, ExportBrief};

/// The state of an export that its schedule depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) cadence: Cadence,
    pub(super) paused: bool,
    /// Intervals that ended before this time get a run, even if they had to wait for it.
    pub(super) last_paused_at: Option<Timestamp>,
    /// Intervals that ended in this pause come with a backfill, even if the schedule
    /// reaches them after the pause.
    pub(super) backfilled: Option<BackfilledPause>,
    pub(super) created_at: Timestamp,
    pub(super) start_at: Option<Timestamp>,
    pub(super) end_at: Option<Timestamp>,
    /// Seconds after a boundary at which the run begins.
    pub(super) jitter: i64,
}

/// The next step of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing yet.
    Nothing,
    /// The schedule begins here. The first run is at the end of this interval.
    Begin(Timestamp),
    /// The interval of the export has changed. The new one counts from here on.
    Change(Timestamp),
    /// Intervals up to here get no run.
    Skip(Timestamp),
    /// Intervals up to here get no run because of a pause. A backfill may export them.
    Pause(Timestamp),
    /// This interval gets a run.
    Run { start: Timestamp, end: Timestamp },
}

impl Plan {
    /// `spread` is the number of seconds over which runs of different exports are
    /// distributed. `now` is not earlier than the time at which the export was read.
    pub(super) fn of(export: &ExportBrief, spread: i64, now: Timestamp) -> Option<Self> {
        // The random part of the id, so that exports differ.
        let number = i64::try_from(export.id.0.as_u128() & 0xFFFF).unwrap_or(0);
        Some(Self {
            cadence: cadence(export)?,
            paused: export.paused,
            last_paused_at: export.last_paused_at,
            // The clock was set back since: no backfill has the events that arrive now.
            backfilled: export.backfilled.0.filter(|pause| pause.until <= now),
            created_at: export.created_at,
            start_at: export.start_at,
            end_at: export.end_at,
            jitter: if spread > 0 { number % (spread + 1) } else { 0 },
        })
    }

    /// The next step of the schedule, at its present state.
    ///
    /// The schedule only moves forward. If the clock is set back, the schedule waits
    /// until it has reached the same time again, so no interval comes twice. If the clock
    /// is set ahead, the intervals in between become due one after another, so none is
    /// skipped.
    pub(super) fn due(&self, schedule: Option<&Schedule>, now: Timestamp) -> Due {
        let Some(schedule) = schedule else {
            return Due::Begin(self.cadence.boundary_before(self.created_at.min(now)));
        };
        if schedule.cadence != self.cadence.name() {
            return Due::Change(schedule.last_end.max(self.cadence.boundary_before(now)));
        }
        let end = self.cadence.boundary_after(schedule.last_end);
        if now < end.plus_seconds(self.jitter) {
            return Due::Nothing;
        }
        let last = self.cadence.boundary_before(now);
        let in_pause = |pause: &BackfilledPause| end > pause.since && end <= pause.until;
        if let Some(pause) = self.backfilled.filter(in_pause) {
            return Due::Pause(last.min(self.cadence.boundary_before(pause.until)).max(end));
        }
        let is_paused = self.paused && self.last_paused_at.is_none_or(|since| end > since);
        if is_paused {
            return Due::Pause(last.max(end));
        }
        if self.end_at.is_some_and(|until| end > until) {
            return Due::Skip(last.max(end));
        }
        if let Some(from) = self.start_at.filter(|from| end < *from) {
            let before = self.cadence.boundary_before(Timestamp::from_micros(from.micros() - 1));
            return Due::Skip(last.min(before).max(end));
        }
        Due::Run { start: self.cadence.start_of(end), end }
    }
}

/// The cadence of an export. `None` if the stored values are not valid.
pub(super) fn cadence(export: &ExportBrief) -> Option<Cadence> {
    let zone = export.timezone.as_deref();
    Cadence::stored(&export.interval, zone, export.offset_day, export.offset_hour)
}

#[cfg(test)]
mod tests {
    use weir_model::exports::Interval;
    use weir_schedule::UTC;

    use super::*;

    fn time(text: &str) -> Timestamp {
        Timestamp::parse_lenient(&format!("2026-08-{text}")).unwrap()
    }

    fn plan(interval: Interval) -> Plan {
        Plan {
            cadence: Cadence::of(interval, UTC, None, None).unwrap(),
            paused: false,
            last_paused_at: None,
            backfilled: None,
            created_at: time("21T14:20"),
            start_at: None,
            end_at: None,
            jitter: 0,
        }
    }

    /// A pause that began in the interval from 15:00 on.
    fn backfilled(since: &str, until: &str) -> BackfilledPause {
        let (since, until) = (time(since), time(until));
        BackfilledPause { backfill: None, earlier: None, since, until }
    }

    /// All steps that are due until `now`: `start..end` for runs and `-end` for skips.
    fn all(plan: &Plan, schedule: &mut Schedule, now: &str) -> Vec<String> {
        let short = |time: Timestamp| time.to_string()[8..16].to_owned();
        let mut found = Vec::new();
        loop {
            match plan.due(Some(schedule), time(now)) {
                Due::Nothing => return found,
                Due::Begin(end) | Due::Change(end) => schedule.last_end = end,
                Due::Skip(end) | Due::Pause(end) => {
                    found.push(format!("-{}", short(end)));
                    schedule.last_end = end;
                }
                Due::Run { start, end } => {
                    found.push(format!("{}..{}", short(start), short(end)));
                    schedule.last_end = end;
                }
            }
            schedule.cadence = plan.cadence.name();
        }
    }

    fn begun(plan: &Plan) -> Schedule {
        let Due::Begin(last_end) = plan.due(None, time("21T14:20:01")) else { panic!() };
        Schedule::new(last_end, 0, plan.cadence.name())
    }

    #[test]
    fn the_first_run_is_at_the_end_of_the_current_interval() {
        for (interval, first) in [
            (Interval::FiveMinutes, "21T14:20..21T14:25"),
            (Interval::QuarterHour, "21T14:15..21T14:30"),
            (Interval::Hour, "21T14:00..21T15:00"),
            (Interval::Day, "21T00:00..22T00:00"),
            (Interval::Week, "16T00:00..23T00:00"),
        ] {
            let plan = plan(interval);
            let mut schedule = begun(&plan);
            assert_eq!(all(&plan, &mut schedule, "21T14:24:59"), Vec::<String>::new());
            let (_, end) = first.split_once("..").unwrap();
            assert_eq!(all(&plan, &mut schedule, end), [first], "{interval}");
        }
    }

    #[test]
    fn missed_intervals_come_in_order() {
        let plan = plan(Interval::Hour);
        let mut schedule = begun(&plan);
        let expected = ["21T14:00..21T15:00", "21T15:00..21T16:00", "21T16:00..21T17:00"];
        assert_eq!(all(&plan, &mut schedule, "21T17:40"), expected);
    }

    #[test]
    fn a_clock_that_jumps_neither_skips_nor_doubles() {
        let plan = plan(Interval::Hour);
        let mut schedule = begun(&plan);
        assert_eq!(all(&plan, &mut schedule, "21T16:00").len(), 2);
        assert_eq!(all(&plan, &mut schedule, "21T12:00"), Vec::<String>::new());
        assert_eq!(all(&plan, &mut schedule, "21T16:59"), Vec::<String>::new());
        assert_eq!(all(&plan, &mut schedule, "21T17:00"), ["21T16:00..21T17:00"]);
    }

    #[test]
    fn what_is_paused_or_outside_the_window_is_passed_over() {
        let paused = Plan { paused: true, ..plan(Interval::Hour) };
        let mut schedule = begun(&paused);
        assert_eq!(all(&paused, &mut schedule, "21T18:30"), ["-21T18:00"]);
        let going = Plan { paused: false, ..paused };
        assert_eq!(all(&going, &mut schedule, "21T19:30"), ["21T18:00..21T19:00"]);

        let window = Plan {
            start_at: Some(time("21T16:00")),
            end_at: Some(time("21T18:00")),
            ..plan(Interval::Hour)
        };
        let mut schedule = begun(&window);
        assert_eq!(
            all(&window, &mut schedule, "21T20:30"),
            [
                "-21T15:00",
                "21T15:00..21T16:00",
                "21T16:00..21T17:00",
                "21T17:00..21T18:00",
                "-21T20:00"
            ]
        );
    }

    #[test]
    fn what_ended_before_a_pause_has_its_run() {
        let since = Some(time("21T16:00"));
        let paused = Plan { paused: true, last_paused_at: since, ..plan(Interval::Hour) };
        let mut schedule = begun(&paused);
        let expected = ["21T14:00..21T15:00", "21T15:00..21T16:00", "-21T18:00"];
        assert_eq!(all(&paused, &mut schedule, "21T18:30"), expected);
    }

    #[test]
    fn what_a_backfill_makes_up_for_has_no_run() {
        // Unpaused between a boundary and the time at which its run begins.
        let pause = backfilled("21T15:30", "21T18:00:02");
        let unpaused = Plan { backfilled: Some(pause), jitter: 4, ..plan(Interval::Hour) };
        let mut schedule = begun(&unpaused);
        let expected = ["21T14:00..21T15:00", "-21T18:00", "21T18:00..21T19:00"];
        assert_eq!(all(&unpaused, &mut schedule, "21T19:00:04"), expected);

        // Another pause has begun in the meantime, so later intervals get no run.
        let since = Some(time("21T19:30"));
        let again = Plan { paused: true, last_paused_at: since, ..unpaused };
        let mut schedule = begun(&again);
        let expected = ["21T14:00..21T15:00", "-21T18:00", "21T18:00..21T19:00", "-21T21:00"];
        assert_eq!(all(&again, &mut schedule, "21T21:00:04"), expected);

        // A pause that ends at the end of an interval contains that interval.
        let pause = backfilled("21T15:00", "21T16:00");
        let unpaused = Plan { backfilled: Some(pause), ..plan(Interval::Hour) };
        let mut schedule = begun(&unpaused);
        let expected = ["21T14:00..21T15:00", "-21T16:00", "21T16:00..21T17:00"];
        assert_eq!(all(&unpaused, &mut schedule, "21T17:00"), expected);
    }

    #[test]
    fn another_interval_begins_at_its_next_boundary() {
        let hour = plan(Interval::Hour);
        let mut schedule = begun(&hour);
        assert_eq!(all(&hour, &mut schedule, "21T16:10").len(), 2);
        let day = Plan { cadence: plan(Interval::Day).cadence, ..hour.clone() };
        assert_eq!(all(&day, &mut schedule, "21T23:59"), Vec::<String>::new());
        assert_eq!(all(&day, &mut schedule, "22T00:00"), ["21T00:00..22T00:00"]);
        assert_eq!(all(&hour, &mut schedule, "22T09:10"), Vec::<String>::new());
        assert_eq!(all(&hour, &mut schedule, "22T10:00"), ["22T09:00..22T10:00"]);
    }

    #[test]
    fn jitter_moves_the_run_and_not_the_interval() {
        let plan = Plan { jitter: 4, ..plan(Interval::Hour) };
        let mut schedule = begun(&plan);
        assert_eq!(all(&plan, &mut schedule, "21T15:00:03"), Vec::<String>::new());
        assert_eq!(all(&plan, &mut schedule, "21T15:00:04"), ["21T14:00..21T15:00"]);
    }
}
