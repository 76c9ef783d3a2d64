//! Removing the events that their projects do not keep any longer.
//!
//! What belongs here: when that is safe, and for which projects. What does not: removing
//! (`weir_store::events`), and what exports and plugins have not read yet (theirs).

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use weir_model::{ProjectId, Timestamp};
use weir_plugins::Plugins;
use weir_service::Clock;
use weir_store::events::{self, Dropped, Old};
use weir_store::{Result, Store, exports, projects};

/// Microseconds of a day.
const DAY_MICROS: i64 = 86_400_000_000;
/// Microseconds by which the two clocks may differ between two passes.
const TOLERANCE: i64 = 60_000_000;

/// What the last pass found.
pub(super) struct Retention {
    clock: SteadyClock,
    /// How many old segments stay because of unread events, where there are some.
    unread: HashMap<ProjectId, usize>,
}

impl Retention {
    /// `trusted_after`: how long the time of day must have been steady before it is trusted.
    pub(super) fn new(trusted_after: Duration) -> Self {
        Self { clock: SteadyClock::new(trusted_after), unread: HashMap::new() }
    }

    /// Removes old events of all projects, unless the clock was set since the last call. The
    /// first calls only read the clock.
    ///
    /// # Errors
    /// The first error. It is logged with its project, and the other projects are done.
    pub(super) async fn apply(
        &mut self,
        clock: &Clock,
        store: &Store,
        plugins: &Plugins,
    ) -> Result<()> {
        let now = clock.now();
        match self.clock.compare(now, clock.uptime()) {
            Comparison::Waiting => return Ok(()),
            Comparison::Set { seconds } => {
                tracing::warn!(seconds, "the clock was set; no old events are removed for a while");
                return Ok(());
            }
            Comparison::Steady => {}
        }
        let projects = projects::with_retention(store).await?;
        self.remove(store, projects, now, |project| old(store, plugins, project, now)).await
    }

    async fn remove<F: Future<Output = Result<Option<Old>>>>(
        &mut self,
        store: &Store,
        projects: Vec<ProjectId>,
        now: Timestamp,
        old: impl Fn(ProjectId) -> F,
    ) -> Result<()> {
        self.unread.retain(|project, _| projects.contains(project));
        let mut first = Ok(());
        for project in projects {
            if let Err(error) = self.remove_of(store, project, now, old(project)).await {
                tracing::warn!(%project, %error, "old events of a project were not removed");
                first = first.and(Err(error));
            }
        }
        first
    }

    async fn remove_of(
        &mut self,
        store: &Store,
        project: ProjectId,
        now: Timestamp,
        old: impl Future<Output = Result<Option<Old>>>,
    ) -> Result<()> {
        let Dropped { segments, events, unread } =
            events::drop_older(store, project, now, old).await?;
        if segments > 0 {
            tracing::info!(%project, segments, events, "old events were removed");
        }
        let known = match unread {
            0 => self.unread.remove(&project),
            _ => self.unread.insert(project, unread),
        };
        if unread > 0 && known != Some(unread) {
            tracing::info!(
                %project, segments = unread,
                "old events stay until exports and plugins have read them"
            );
        }
        Ok(())
    }
}

/// The events that a project does not keep, and those of them that exports and plugins will
/// still read. Work for other projects may have taken long, and an administrator may have
/// decided to keep events longer meanwhile.
async fn old(
    store: &Store,
    plugins: &Plugins,
    project: ProjectId,
    now: Timestamp,
) -> Result<Option<Old>> {
    let row = projects::find(store, project).await?;
    let Some(days) = row.and_then(|row| row.event_retention_days) else { return Ok(None) };
    let age = days.saturating_mul(DAY_MICROS);
    let before = Timestamp::from_micros(now.micros().saturating_sub(age));
    let mut unread = exports::unread(store, project).await?;
    unread.extend(plugins.undelivered(project).await?);
    Ok(Some(Old { before, unread }))
}

/// Calls in a row that must find the time of day steady before it is trusted. One call alone
/// may have waited for long.
const STEADY: u32 = 3;

/// Compares the time of day with a clock that cannot be set. A wrong time of day would make
/// all events old.
struct SteadyClock {
    /// How long both clocks must have advanced alike before the time of day is trusted.
    trusted_after: Duration,
    last: Option<(Timestamp, Duration)>,
    /// Calls since both clocks differed.
    steady: u32,
    /// The uptime at which they began to advance alike.
    since: Duration,
}

#[derive(Debug, PartialEq, Eq)]
enum Comparison {
    /// The clocks have not been compared for long enough, or not often enough.
    Waiting,
    /// Both clocks have advanced by the same time.
    Steady,
    /// The time of day was set forward by this time, or back if it is negative.
    Set { seconds: i64 },
}

impl SteadyClock {
    fn new(trusted_after: Duration) -> Self {
        Self { trusted_after, last: None, steady: 0, since: Duration::ZERO }
    }

    /// Compares how both clocks have advanced since the last call.
    fn compare(&mut self, now: Timestamp, uptime: Duration) -> Comparison {
        let Some((last, last_uptime)) = self.last.replace((now, uptime)) else {
            self.since = uptime;
            return Comparison::Waiting;
        };
        let passed = i64::try_from(uptime.saturating_sub(last_uptime).as_micros());
        let shown = now.micros().saturating_sub(last.micros());
        let set = shown.saturating_sub(passed.unwrap_or(i64::MAX));
        if set.saturating_abs() > TOLERANCE {
            (self.steady, self.since) = (0, uptime);
            return Comparison::Set { seconds: set / 1_000_000 };
        }
        self.steady = self.steady.saturating_add(1);
        let is_long = uptime.saturating_sub(self.since) >= self.trusted_after;
        match self.steady {
            STEADY.. if is_long => Comparison::Steady,
            _ => Comparison::Waiting,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use weir_store::{Error, Location, Settings};

    use super::*;

    #[test]
    fn a_clock_that_was_set_is_noticed_once() {
        let mut clock = SteadyClock::new(Duration::from_secs(1_800));
        // Seconds of the time of day and of the uptime.
        let mut compare = |now: i64, uptime| {
            let now = Timestamp::from_micros(1_787_000_000_000_000).plus_seconds(now);
            clock.compare(now, Duration::from_secs(uptime))
        };
        assert_eq!(compare(0, 5), Comparison::Waiting);
        assert_eq!(compare(600, 605), Comparison::Waiting);
        assert_eq!(compare(1_200, 1_205), Comparison::Waiting);
        assert_eq!(compare(1_800, 1_805), Comparison::Steady);
        // A pass that took long, with a clock that was adjusted a little.
        assert_eq!(compare(9_800, 9_745), Comparison::Steady);
        let years = 20 * 365 * 86_400;
        assert_eq!(compare(years, 10_345), Comparison::Set { seconds: years - 10_400 });
        assert_eq!(compare(years + 600, 10_945), Comparison::Waiting);
        assert_eq!(compare(11_600, 11_545), Comparison::Set { seconds: 10_400 - years });
        assert_eq!(compare(12_200, 12_145), Comparison::Waiting);
        assert_eq!(compare(12_861, 12_745), Comparison::Set { seconds: 61 });
        for number in 1..=2 {
            let later: i64 = number * 600;
            let uptime = 12_745 + later.unsigned_abs();
            assert_eq!(compare(12_861 + later, uptime), Comparison::Waiting);
        }
        assert_eq!(compare(14_661, 14_545), Comparison::Steady);
    }

    #[test]
    fn a_clock_is_trusted_after_enough_time_and_enough_calls() {
        const NOW: i64 = 1_787_000_000;
        let compare = |clock: &mut SteadyClock, now: i64, uptime: i64| {
            let now = Timestamp::from_micros(now * 1_000_000);
            clock.compare(now, Duration::from_secs(uptime.unsigned_abs()))
        };
        // Calls every second. The time service sets the clock 50 seconds after the start.
        let mut clock = SteadyClock::new(Duration::from_secs(1_800));
        for uptime in 0..50 {
            assert_eq!(compare(&mut clock, uptime, uptime), Comparison::Waiting, "{uptime}");
        }
        assert_eq!(compare(&mut clock, NOW + 50, 50), Comparison::Set { seconds: NOW });
        for uptime in 51..1_850 {
            assert_eq!(compare(&mut clock, NOW + uptime, uptime), Comparison::Waiting, "{uptime}");
        }
        assert_eq!(compare(&mut clock, NOW + 1_850, 1_850), Comparison::Steady);
        // Calls every hour.
        let mut clock = SteadyClock::new(Duration::from_secs(1_800));
        for uptime in [5, 3_605, 7_205] {
            assert_eq!(compare(&mut clock, NOW + uptime, uptime), Comparison::Waiting, "{uptime}");
        }
        assert_eq!(compare(&mut clock, NOW + 10_805, 10_805), Comparison::Steady);
        // A short time is for tests.
        let mut clock = SteadyClock::new(Duration::from_secs(1));
        for uptime in 0..3 {
            assert_eq!(compare(&mut clock, NOW + uptime, uptime), Comparison::Waiting, "{uptime}");
        }
        assert_eq!(compare(&mut clock, NOW + 3, 3), Comparison::Steady);
    }

    #[tokio::test]
    async fn a_project_that_fails_does_not_stop_the_others() {
        let directory = tempfile::tempdir().unwrap();
        let location = Location::Directory(directory.path().to_owned());
        let store = Store::open(&location, Settings::default()).await.unwrap();
        let asked = Mutex::new(Vec::new());
        let old = async |project: ProjectId| {
            asked.lock().unwrap().push(project);
            let fails = project.0 % 2 == 0;
            let detail = project.to_string();
            if fails { Err(Error::Shape { statement: "test", detail }) } else { Ok(None) }
        };
        let projects: Vec<ProjectId> = (1..=5).map(ProjectId).collect();
        let now = Timestamp::from_micros(1_787_000_000_000_000);
        let mut retention = Retention::new(Duration::ZERO);
        let removed = retention.remove(&store, projects.clone(), now, old).await;
        let Err(Error::Shape { detail, .. }) = removed else { panic!("{removed:?}") };
        assert_eq!(detail, "2", "the first error");
        assert_eq!(asked.into_inner().unwrap(), projects);
    }
}
