//! The traffic of a project, counted by the minute, for pages.
//!
//! What belongs here: which counts belong to a range, comparing it with the range
//! before, who may see counts of the instance; writing the counts. What does not:
//! counting (`weir-ingest`, and the server for requests).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use weir_model::traffic::{Counts, UnknownKey};
use weir_model::{ProjectId, Timestamp};
use weir_store::events::TimeSteps;
use weir_store::traffic::{self as rows, INSTANCE, NameCounts, Unit};
use weir_store::{events, imports, projects, users, warnings};

use crate::ctx::ProjectCtx;
use crate::policy::{self, Action};
use crate::{Core, Result};

const DAY_SECONDS: i64 = 24 * 60 * 60;
/// The maximum number of steps of a freely chosen window.
const STEPS: i64 = 168;
/// After this time, events are not counted by their own time.
const WITHIN: Duration = Duration::from_secs(1);

/// How far back a range goes from now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// An hour, by minute.
    Hour,
    /// Six hours, by five minutes.
    SixHours,
    /// A day, by quarter of an hour.
    Day,
    /// Seven days, by hour.
    Week,
    /// 30 days, by six hours.
    Month,
}

impl Range {
    /// All ranges, the shortest first.
    pub const ALL: [Self; 5] = [Self::Hour, Self::SixHours, Self::Day, Self::Week, Self::Month];

    /// The name of the range in a URL.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::SixHours => "6h",
            Self::Day => "24h",
            Self::Week => "7d",
            Self::Month => "30d",
        }
    }

    /// The range of this name.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|range| range.text() == text)
    }

    /// The unit of the stored counts, how many units a step has, and how many steps
    /// there are.
    const fn shape(self) -> (Unit, i64, i64) {
        match self {
            Self::Hour => (Unit::Minute, 1, 60),
            Self::SixHours => (Unit::Minute, 5, 72),
            Self::Day => (Unit::Minute, 15, 96),
            Self::Week => (Unit::Hour, 1, 168),
            Self::Month => (Unit::Hour, 6, 120),
        }
    }
}

/// The window of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// A range that ends now.
    Last(Range),
    /// From a time to before another, as far as counts are kept.
    Between(Timestamp, Timestamp),
}

impl From<Range> for Window {
    fn from(range: Range) -> Self {
        Self::Last(range)
    }
}

impl Window {
    fn steps(self, now: Timestamp) -> Steps {
        match self {
            Self::Last(range) => {
                let (unit, width, count) = range.shape();
                let end = (unit.at(now).div_euclid(width) + 1) * width;
                Steps { unit, width, count, begin: end - width * count }
            }
            Self::Between(from, to) => {
                let by_minute = is_kept(Unit::Minute, Unit::Minute.at(from), now);
                let unit = if by_minute { Unit::Minute } else { Unit::Hour };
                let widths = if by_minute { [1, 5, 15] } else { [1, 6, 24] };
                let latest = unit.at(now);
                let first = unit.at(from).clamp(latest - kept(unit), latest);
                let before = Timestamp::from_micros(to.micros().saturating_sub(1));
                let last = unit.at(before).clamp(first, latest);
                let fits = |width: &i64| (last - first) / width < STEPS;
                let width = widths.into_iter().find(fits).unwrap_or(widths[2]);
                let (first, last) = (first.div_euclid(width), last.div_euclid(width));
                Steps { unit, width, count: last - first + 1, begin: first * width }
            }
        }
    }
}

/// The steps of a window: a unit, how many units a step has, how many steps, and the
/// first unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Steps {
    unit: Unit,
    width: i64,
    count: i64,
    begin: i64,
}

impl Steps {
    const fn end(self) -> i64 {
        self.begin + self.width * self.count
    }
}

/// How many units are kept.
const fn kept(unit: Unit) -> i64 {
    match unit {
        Unit::Minute => rows::MINUTES,
        Unit::Hour => rows::HOURS,
    }
}

/// Whether counts since this unit are kept.
fn is_kept(unit: Unit, from: i64, now: Timestamp) -> bool {
    from >= unit.at(now) - kept(unit)
}

/// The traffic of a project in a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The counts of each step with the time at which it begins, oldest first.
    pub steps: Vec<(Timestamp, Counts)>,
    /// Length of a step, in seconds.
    pub step_seconds: i64,
    /// The sum of all steps.
    pub total: Counts,
    /// The sum of an equally long window before this one; `None`: not requested, or not
    /// kept.
    pub before: Option<Counts>,
    /// The maximum number of bytes in each step that waited to be applied, for the
    /// whole instance.
    pub waiting: Vec<u64>,
}

/// Counts of the instance that belong to no project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownSenders {
    /// The number of refused requests without a known project, by code.
    pub refused: BTreeMap<String, u64>,
    /// Keys that no project has.
    pub keys: Vec<UnknownKey>,
}

/// The service for counts of traffic.
#[derive(Clone)]
pub struct Traffic {
    core: Arc<Core>,
}

impl Traffic {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The traffic of a project in a window.
    ///
    /// # Errors
    /// [`crate::Error::MissingScope`], or when the store cannot be read.
    pub async fn report(
        &self,
        project: &ProjectCtx,
        window: impl Into<Window>,
        compare: bool,
    ) -> Result<Report> {
        policy::check(&project.org, Action::ReadProject)?;
        let now = project.org.ctx.now;
        let window: Window = window.into();
        let shape = window.steps(now);
        let Steps { unit, width, count, begin } = shape;
        let of_project = self.between(project.project, unit, begin, shape.end()).await?;
        let of_instance = self.between(INSTANCE, unit, begin, shape.end()).await?;
        let mut steps = Vec::new();
        let (mut total, mut waiting) = (Counts::default(), Vec::new());
        for from in (0..count).map(|step| begin + step * width) {
            let counts = sum(&of_project, from, from + width);
            total.add(&counts);
            waiting.push(sum(&of_instance, from, from + width).waiting);
            let at = Timestamp::from_micros(from.saturating_mul(unit.seconds() * 1_000_000));
            steps.push((at, counts));
        }
        let before = if compare { self.before(project.project, shape, now).await? } else { None };
        Ok(Report { steps, step_seconds: unit.seconds() * width, total, before, waiting })
    }

    /// The approximate number of stored events in each step of a window, by the time of the
    /// events; `None`: there are too many to count in time.
    ///
    /// # Errors
    /// [`crate::Error::MissingScope`], or when the store cannot be read.
    pub async fn by_event_time(
        &self,
        project: &ProjectCtx,
        window: impl Into<Window>,
    ) -> Result<Option<Vec<u64>>> {
        policy::check(&project.org, Action::ReadProject)?;
        let window: Window = window.into();
        let Steps { unit, width, count, begin } = window.steps(project.org.ctx.now);
        let micros = unit.seconds() * 1_000_000;
        let steps = TimeSteps {
            start: begin.saturating_mul(micros),
            length: width * micros,
            count: usize::try_from(count).unwrap_or(0),
        };
        Ok(events::by_step(&self.core.store, project.project, steps, WITHIN).await?)
    }

    /// When the latest event of a project arrived.
    pub async fn last_event(&self, project: &ProjectCtx) -> Result<Option<Timestamp>> {
        let page = events::arrivals(&self.core.store, project.project, None, 1).await?;
        Ok(page.events.first().map(|event| Timestamp::from_micros(event.received_at)))
    }

    /// Refused requests without a project, and unknown keys; `None`: the caller is not
    /// staff. They can contain the addresses of senders to other projects.
    pub async fn unknown_senders(
        &self,
        project: &ProjectCtx,
        window: impl Into<Window>,
    ) -> Result<Option<UnknownSenders>> {
        let window: Window = window.into();
        let shape = window.steps(project.org.ctx.now);
        let store = &self.core.store;
        let caller = users::get(store, project.org.ctx.user()).await?;
        if !caller.is_some_and(|user| user.is_staff) {
            return Ok(None);
        }
        let counts = self.between(INSTANCE, shape.unit, shape.begin, shape.end()).await?;
        let refused = sum(&counts, i64::MIN, i64::MAX).reasons;
        let keys = rows::unknown_keys(store).await?;
        let keys = rows::unite(keys, &store.traffic().unknown_keys());
        Ok(Some(UnknownSenders { refused, keys }))
    }

    /// Writes the counts since the last write: background work of the instance. Only
    /// one task may call it.
    ///
    /// # Errors
    /// When the store cannot be written; the next call continues.
    pub async fn write(&self) -> Result<()> {
        let store = &self.core.store;
        let mut pending = store.traffic().take();
        let written = async {
            rows::write(store, &pending.minutes).await?;
            pending.minutes.clear();
            rows::write_names(store, &pending.names).await?;
            pending.names.clear();
            imports::write(store, &pending.sources).await?;
            pending.sources.clear();
            rows::write_unknown(store, &pending.unknown).await?;
            pending.unknown.clear();
            rows::write_refused(store).await?;
            Ok::<(), crate::Error>(())
        }
        .await;
        store.traffic().put_back(pending);
        written
    }

    /// Removes counts that are older than their retention: background work of the
    /// instance.
    ///
    /// # Errors
    /// When the store cannot be read or written; the next call continues.
    pub async fn forget(&self) -> Result<()> {
        let (store, now) = (&self.core.store, self.core.clock.now());
        let today = now.micros().div_euclid(DAY_SECONDS * 1_000_000);
        rows::forget(store, INSTANCE, now).await?;
        for (_, project) in projects::all_tokens(store).await? {
            rows::forget(store, project.id, now).await?;
            warnings::forget(store, project.id, now).await?;
            imports::forget(store, project.id, today).await?;
        }
        Ok(())
    }

    /// Counts of a project, written or not, from one unit to before another.
    pub(crate) async fn between(
        &self,
        project: ProjectId,
        unit: Unit,
        from: i64,
        to: i64,
    ) -> Result<BTreeMap<i64, Counts>> {
        let store = &self.core.store;
        let mut counts = rows::between(store, project, unit, from, to).await?;
        for (minute, more) in store.traffic().minutes(project) {
            let at = minute.div_euclid(unit.seconds() / 60);
            if (from..to).contains(&at) {
                counts.entry(at).or_default().add(&more);
            }
        }
        Ok(counts)
    }

    /// Events of a project by name since the day (UTC) of a time, written or not.
    pub(crate) async fn names_since(
        &self,
        project: ProjectId,
        from: Timestamp,
    ) -> Result<NameCounts> {
        let store = &self.core.store;
        let mut counts = rows::names_since(store, project, from).await?;
        let unwritten = store.traffic().names_since(project, from);
        for (name, events) in unwritten.names {
            *counts.names.entry(name).or_default() += events;
        }
        counts.others += unwritten.others;
        Ok(counts)
    }

    /// The sum of an equally long window before this one, where it is kept.
    async fn before(
        &self,
        project: ProjectId,
        shape: Steps,
        now: Timestamp,
    ) -> Result<Option<Counts>> {
        let Steps { unit, begin, .. } = shape;
        let length = shape.end() - begin;
        let found = if is_kept(unit, begin - length, now) {
            self.between(project, unit, begin - length, begin).await?
        } else if unit == Unit::Minute && length % 60 == 0 {
            // The minutes of the day before are gone, but its hours are kept.
            let end = begin.div_euclid(60);
            self.between(project, Unit::Hour, end - length / 60, end).await?
        } else {
            return Ok(None);
        };
        Ok(Some(sum(&found, i64::MIN, i64::MAX)))
    }
}

/// The sum of the counts from one unit to before another.
pub(crate) fn sum(counts: &BTreeMap<i64, Counts>, from: i64, to: i64) -> Counts {
    counts.range(from..to).fold(Counts::default(), |mut sum, (_, more)| {
        sum.add(more);
        sum
    })
}

#[cfg(test)]
mod tests {
    use weir_model::live::{Outcome, RowCursor, RowFilter};
    use weir_model::traffic::RefusedRequest;

    use super::*;
    use crate::Services;
    use crate::test_support::{self, ada};

    async fn setting() -> (Services, ProjectCtx) {
        let services = test_support::set_up().await;
        let ctx = ada(&services).await;
        let found = services.projects.enter(&ctx, "1").await.unwrap();
        (services, found)
    }

    #[tokio::test]
    async fn a_report_has_what_is_written_and_what_is_not() {
        let (services, project) = setting().await;
        let counters = services.organizations.store().traffic();
        let now = project.org.ctx.now;
        counters.answered(project.project, now, 10, 4);
        services.traffic.write().await.unwrap();
        assert!(counters.take().is_empty());
        counters.answered(project.project, now, 30, 4);
        counters.refused(Some(project.project), now.plus_seconds(-2 * 3600), 5, "not_accepted");
        for (range, rejected) in [(Range::Hour, 0), (Range::Day, 1), (Range::Month, 1)] {
            let report = services.traffic.report(&project, range, true).await.unwrap();
            let total = &report.total;
            assert_eq!((total.requests, total.rejected), (2, rejected), "{range:?}");
            assert_eq!(report.steps.len(), report.waiting.len());
            assert_eq!(report.steps.last().unwrap().1.requests, 2, "{range:?}");
            assert_eq!(report.before.is_none(), range == Range::Month);
            let by_event_time = services.traffic.by_event_time(&project, range).await.unwrap();
            assert_eq!(by_event_time, Some(vec![0; report.steps.len()]));
        }
        services.traffic.forget().await.unwrap();
    }

    #[test]
    fn windows_are_by_minute_where_minutes_are_kept() {
        let now = Timestamp::parse("2026-06-30T12:34:56Z").unwrap();
        let steps = |from: &str, to: &str| {
            let time = |text: &str| Timestamp::parse(text).unwrap();
            let found = Window::Between(time(from), time(to)).steps(now);
            let at = found.begin * found.unit.seconds() * 1_000_000;
            (found.unit, found.width, found.count, Timestamp::from_micros(at).to_string())
        };
        for (from, to, unit, width, count, begin) in [
            (
                "2026-06-30T12:00:00Z",
                "2026-06-30T12:10:00Z",
                Unit::Minute,
                1,
                10,
                "2026-06-30T12:00:00Z",
            ),
            (
                "2026-06-30T12:03:20Z",
                "2026-06-30T12:03:30Z",
                Unit::Minute,
                1,
                1,
                "2026-06-30T12:03:00Z",
            ),
            (
                "2026-06-30T06:00:00Z",
                "2026-06-30T12:00:00Z",
                Unit::Minute,
                5,
                72,
                "2026-06-30T06:00:00Z",
            ),
            // The window ends now.
            (
                "2026-06-30T12:00:00Z",
                "2030-01-01T00:00:00Z",
                Unit::Minute,
                1,
                35,
                "2026-06-30T12:00:00Z",
            ),
            (
                "2026-06-20T06:30:00Z",
                "2026-06-20T09:00:00Z",
                Unit::Hour,
                1,
                3,
                "2026-06-20T06:00:00Z",
            ),
            (
                "2026-06-05T00:00:00Z",
                "2026-06-25T00:00:00Z",
                Unit::Hour,
                6,
                80,
                "2026-06-05T00:00:00Z",
            ),
            // Older counts are not kept.
            (
                "2020-01-01T00:00:00Z",
                "2020-01-02T00:00:00Z",
                Unit::Hour,
                1,
                1,
                "2026-05-31T12:00:00Z",
            ),
        ] {
            assert_eq!(steps(from, to), (unit, width, count, begin.to_owned()), "{from} {to}");
        }
    }

    #[tokio::test]
    async fn a_window_has_what_is_in_it_and_nothing_else() {
        let (services, project) = setting().await;
        let counters = services.organizations.store().traffic();
        let now = project.org.ctx.now;
        for hours in [1, 2, 3] {
            counters.answered(project.project, now.plus_seconds(-3600 * hours), 10, 4);
        }
        let window = Window::Between(now.plus_seconds(-9000), now.plus_seconds(-5400));
        let report = services.traffic.report(&project, window, true).await.unwrap();
        assert_eq!((report.total.requests, report.step_seconds), (1, 60));
        assert_eq!(report.before.unwrap().requests, 1);
    }

    #[tokio::test]
    async fn refused_requests_are_rows_of_their_own_project() {
        let (services, project) = setting().await;
        let refusals = services.organizations.store().traffic().refusals();
        let request = |key: &str| RefusedRequest {
            key: key.to_owned(),
            at: project.org.ctx.now,
            code: "payload_too_large".to_owned(),
            detail: None,
            route: "/batch/".to_owned(),
            library: Some("web/1.0".to_owned()),
            bytes: 30,
            project_key: None,
        };
        refusals.note(project.project, request("refused-1"));
        refusals.note(ProjectId(project.project.0 + 1), request("refused-2"));
        let rows = async || {
            let (all, newest) = (RowFilter::default(), RowCursor::NEWEST);
            services.events.rows(&project, &all, newest, 10).await.unwrap().rows
        };
        let found = rows().await;
        let [row] = &found[..] else { panic!("{found:?}") };
        assert_eq!((row.key.as_str(), row.outcome), ("refused-1", Outcome::Rejected));
        assert_eq!((row.place.as_deref(), row.size), (Some("/batch/"), 30));
        services.traffic.write().await.unwrap();
        assert_eq!(rows().await, found);
        let one = services.events.row(&project, "refused-1").await.unwrap();
        assert_eq!(one.as_ref(), Some(row));
        assert_eq!(services.events.row(&project, "refused-2").await.unwrap(), None);
    }

    #[tokio::test]
    async fn senders_without_a_project_are_for_who_runs_the_instance() {
        let (services, project) = setting().await;
        let counters = services.organizations.store().traffic();
        counters.refused(None, project.org.ctx.now, 5, "invalid_api_key");
        let found = services.traffic.unknown_senders(&project, Range::Hour).await.unwrap().unwrap();
        assert_eq!(found.refused.get("invalid_api_key"), Some(&1));
        let grace = test_support::outsider(&services, "grace").await;
        let level = weir_model::organizations::Level::Administrator;
        test_support::join(&services, project.org.organization, &grace, level).await;
        let theirs = services.projects.enter(&grace, "1").await.unwrap();
        assert_eq!(services.traffic.unknown_senders(&theirs, Range::Hour).await.unwrap(), None);
    }
}
