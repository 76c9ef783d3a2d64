//! How a project is doing, for its home page: events of today and of 30 days, also by name,
//! and the persons who are active.
//!
//! What belongs here: what a day is, and how much one page reads. What does not: the counts
//! themselves (`traffic`), and what fails (`exports`, `plugin_configs`).

use std::collections::HashSet;
use std::sync::Arc;

use weir_model::exports::Interval;
use weir_model::{PersonId, ProjectId, Timestamp};
use weir_schedule::{Cadence, UTC};
use weir_store::events::{self, StoredEvent};
use weir_store::traffic::{NameCounts, Unit};
use weir_store::{persons, projects};

use crate::ctx::ProjectCtx;
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};
use crate::traffic::{Traffic, sum};
use crate::{Core, Result};

/// Days of the longer period. Counts of hours are kept that long.
const DAYS: usize = 30;
/// The maximum number of events that are read to count persons, newest first. The store ends
/// earlier where events are large.
const NEWEST: usize = 5_000;
/// The maximum number of names.
const NAMES: usize = 10;
/// A person with an event that was received within this time is active.
const ACTIVE_SECONDS: i64 = 5 * 60;
/// The maximum number of active distinct ids whose persons are found.
const ACTIVE: usize = 500;

/// Stored and dropped events of a period.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Period {
    /// The number of stored events in each step.
    pub steps: Vec<u64>,
    /// Stored events.
    pub accepted: u64,
    /// Dropped events.
    pub dropped: u64,
}

/// The numbers of events of the most frequent names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventsByName {
    /// The most frequent names with the number of their events.
    pub names: Vec<(String, u64)>,
    /// The number of events of all other names.
    pub others: u64,
}

/// Persons with an event that was received in the last five minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ActivePersons {
    /// Their number.
    pub count: u64,
    /// Whether there may be more.
    pub is_least: bool,
}

/// How a project is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Today in the zone of the project, by hour up to now.
    pub today: Period,
    /// The number of hours of this day.
    pub hours: usize,
    /// The last 30 days with today, by day.
    pub month: Period,
    /// Events by name, of the days in UTC that the last 30 days are part of.
    pub by_name: EventsByName,
    /// Persons who are active now.
    pub active: ActivePersons,
}

/// The service for the home page of a project.
#[derive(Clone)]
pub struct Overview {
    core: Arc<Core>,
    traffic: Traffic,
}

impl Overview {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { traffic: Traffic::new(Arc::clone(&core)), core }
    }

    /// How a project is doing. Reads counts of hours and a bounded number of events.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`], or when the store cannot be read.
    pub async fn summary(&self, project: &ProjectCtx) -> Result<Summary> {
        policy::check(&project.org, Action::ReadProject)?;
        let (store, id, now) = (&self.core.store, project.project, project.org.ctx.now);
        let row = projects::find(store, id).await?.ok_or(Error::NotFound(NOT_FOUND))?;
        let days = midnights(&row.brief.timezone, now);
        let (today, month) = self.periods(id, &days, now).await?;
        let [.., begin, end] = days[..] else { return Err(Error::NotFound(NOT_FOUND)) };
        Ok(Summary {
            today,
            hours: usize::try_from(hour(end) - hour(begin)).unwrap_or(0),
            month,
            by_name: self.by_name(id, &days).await?,
            active: self.active(project).await?,
        })
    }

    /// The persons of the events of the last minutes. Reads a bounded number of events.
    ///
    /// # Errors
    /// [`Error::MissingScope`], or when the store cannot be read.
    pub async fn active(&self, project: &ProjectCtx) -> Result<ActivePersons> {
        policy::check(&project.org, Action::ReadProject)?;
        let (store, id, now) = (&self.core.store, project.project, project.org.ctx.now);
        let page = events::arrivals(store, id, None, NEWEST).await?;
        let more = page.more;
        let newest = page.events.into_iter().map(Newest::from).collect::<Vec<Newest>>();
        let since = now.plus_seconds(-ACTIVE_SECONDS).micros();
        let reaches_back = newest.last().is_none_or(|oldest| oldest.received_at < since);
        let ids = active_ids(id, newest, since);
        let requested: Vec<PersonId> = ids.iter().copied().take(ACTIVE).collect();
        let merged = persons::resolve_merged(store, id, requested.iter().copied()).await?;
        let people: HashSet<PersonId> =
            requested.iter().map(|id| merged.get(id).copied().unwrap_or(*id)).collect();
        Ok(ActivePersons {
            count: people.len() as u64,
            is_least: ids.len() > requested.len() || more && !reaches_back,
        })
    }

    /// Today, and all of these days.
    async fn periods(
        &self,
        project: ProjectId,
        days: &[Timestamp],
        now: Timestamp,
    ) -> Result<(Period, Period)> {
        let [first, .., begin, _] = *days else { return Ok(Default::default()) };
        let mut hours =
            self.traffic.between(project, Unit::Hour, hour(first), hour(now) + 1).await?;
        // In some zones days begin within an hour. What was before midnight belongs to
        // yesterday.
        if begin.micros() % (Unit::Hour.seconds() * 1_000_000) != 0 {
            let (minute, end) = (Unit::Minute.at(begin), (hour(begin) + 1) * 60);
            let minutes = self.traffic.between(project, Unit::Minute, minute, end).await?;
            let (whole, late) =
                (sum(&hours, hour(begin), hour(begin) + 1), sum(&minutes, minute, end));
            let yesterday = hours.entry(hour(begin) - 1).or_default();
            yesterday.accepted += whole.accepted.saturating_sub(late.accepted);
            yesterday.dropped += whole.dropped.saturating_sub(late.dropped);
            hours.insert(hour(begin), late);
        }
        let period = |steps: Vec<(i64, i64)>| {
            let mut period = Period::default();
            for (from, to) in steps {
                let counts = sum(&hours, from, to);
                period.steps.push(counts.accepted);
                period.accepted += counts.accepted;
                period.dropped += counts.dropped;
            }
            period
        };
        let by_hour = (hour(begin)..=hour(now)).map(|at| (at, at + 1)).collect();
        let by_day = days.windows(2).filter_map(|day| match day {
            [from, to] => Some((hour(*from), hour(*to))),
            _ => None,
        });
        Ok((period(by_hour), period(by_day.collect())))
    }

    /// Events by name since the first of these days.
    async fn by_name(&self, project: ProjectId, days: &[Timestamp]) -> Result<EventsByName> {
        let Some(first) = days.first() else { return Ok(EventsByName::default()) };
        Ok(most_frequent(self.traffic.names_since(project, *first).await?))
    }
}

/// What the page needs of one of the newest events. The events themselves can be large.
struct Newest {
    distinct_id: String,
    received_at: i64,
}

impl From<StoredEvent> for Newest {
    fn from(event: StoredEvent) -> Self {
        let StoredEvent { distinct_id, received_at, .. } = event;
        Self { distinct_id, received_at }
    }
}

/// The ids of the persons with an event that was received at this time or later.
fn active_ids(project: ProjectId, newest: Vec<Newest>, since: i64) -> HashSet<PersonId> {
    let recent = newest.into_iter().filter(|event| event.received_at >= since);
    recent.map(|event| persons::first_id(project, &event.distinct_id)).collect()
}

fn hour(time: Timestamp) -> i64 {
    Unit::Hour.at(time)
}

/// The begins of the last days in a zone with today, oldest first, and of tomorrow.
fn midnights(zone: &str, now: Timestamp) -> Vec<Timestamp> {
    let daily = |zone: &str| Cadence::of(Interval::Day, zone, None, None);
    let Some(days) = daily(zone).or_else(|| daily(UTC)) else { return Vec::new() };
    let tomorrow = days.boundary_after(now);
    let mut begins: Vec<Timestamp> =
        std::iter::successors(Some(tomorrow), |end| Some(days.start_of(*end)))
            .take(DAYS + 1)
            .collect();
    begins.reverse();
    begins
}

fn most_frequent(counts: NameCounts) -> EventsByName {
    let mut names: Vec<(String, u64)> = counts.names.into_iter().collect();
    names.sort_by(|(one, few), (other, many)| many.cmp(few).then_with(|| one.cmp(other)));
    let rest = names.split_off(names.len().min(NAMES));
    let rest: u64 = rest.into_iter().map(|(_, events)| events).sum();
    EventsByName { names, others: counts.others + rest }
}

#[cfg(test)]
mod tests {
    use weir_store::traffic::Applied;

    use super::*;
    use crate::test_support::{self, ada};

    #[tokio::test]
    async fn a_summary_counts_today_and_the_days_before() {
        let services = test_support::set_up().await;
        let project = services.projects.enter(&ada(&services).await, "1").await.unwrap();
        let counters = services.organizations.store().traffic();
        let now = project.org.ctx.now;
        let minute = |time: Timestamp| Unit::Minute.at(time);
        for (seconds_ago, events) in [(0, 3), (86_400, 4), (40 * 86_400, 50)] {
            let at = now.plus_seconds(-seconds_ago);
            let names = vec![(at.micros() / 86_400_000_000, "a".to_owned(), events)];
            let accepted = vec![(minute(at), events)];
            let applied = Applied { accepted, names, reasons: Vec::new() };
            counters.applied(project.project, &applied);
        }
        let dropped = (minute(now), "missing_distinct_id".to_owned(), 2, true);
        counters
            .applied(project.project, &Applied { reasons: vec![dropped], ..Applied::default() });
        let found = services.overview.summary(&project).await.unwrap();
        assert_eq!((found.today.accepted, found.today.dropped), (3, 2));
        assert_eq!(found.today.steps.last(), Some(&3));
        assert_eq!((found.month.accepted, found.hours), (7, 24));
        assert_eq!(found.month.steps.len(), DAYS);
        assert_eq!(found.month.steps[DAYS - 2..], [4, 3]);
        assert_eq!(found.by_name.names, [("a".to_owned(), 7)]);
        services.traffic.write().await.unwrap();
        let found = services.overview.summary(&project).await.unwrap();
        assert_eq!(found.by_name.names, [("a".to_owned(), 7)]);
        assert_eq!(found.active, ActivePersons::default());
    }

    #[test]
    fn days_begin_at_midnight_of_the_zone() {
        let now = Timestamp::parse("2026-06-30T20:00:00Z").unwrap();
        for (zone, today, tomorrow) in [
            ("UTC", "2026-06-30T00:00:00Z", "2026-07-01T00:00:00Z"),
            ("Asia/Kolkata", "2026-06-30T18:30:00Z", "2026-07-01T18:30:00Z"),
            ("Mars/Phobos", "2026-06-30T00:00:00Z", "2026-07-01T00:00:00Z"),
        ] {
            let days = midnights(zone, now);
            let last: Vec<String> = days[DAYS - 1..].iter().map(Timestamp::to_string).collect();
            assert_eq!((days.len(), last), (DAYS + 1, vec![today.to_owned(), tomorrow.to_owned()]));
        }
    }

    #[test]
    fn persons_are_active_by_the_time_of_receipt() {
        let project = ProjectId(1);
        let newest = |(id, at): (&str, i64)| Newest { distinct_id: id.to_owned(), received_at: at };
        let events = [("ada", 9), ("ada", 8), ("eve", 6)].map(newest);
        let active = active_ids(project, events.into(), 7);
        assert_eq!(active, HashSet::from([persons::first_id(project, "ada")]));
    }

    #[test]
    fn further_names_are_counted_together() {
        let mut counts = NameCounts { others: 4, ..NameCounts::default() };
        for number in 0..NAMES as u64 + 2 {
            counts.count(&format!("name {number:02}"), number / 2 + 1);
        }
        let found = most_frequent(counts);
        assert_eq!((found.names.len(), found.others), (NAMES, 4 + 1 + 1));
        assert_eq!(found.names[0], ("name 10".to_owned(), 6));
    }
}
