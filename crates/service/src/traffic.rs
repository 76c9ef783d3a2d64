//! What reaches a project, counted by the minute: for people to look at.
//!
//! What belongs here: which counts make up a range, comparing it with the one
//! before, who may see what is about the instance; writing what was counted.
//! What does not: counting (`weir-ingest`, and the server for requests).

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_model::traffic::{Counts, UnknownKey};
use weir_model::{ProjectId, Timestamp};
use weir_store::traffic::{self as rows, INSTANCE, Unit};
use weir_store::{events, imports, projects, users};

use crate::ctx::ProjectCtx;
use crate::policy::{self, Action};
use crate::{Core, Result};

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// How far back one looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// An hour, by minutes.
    Hour,
    /// Six hours, by five minutes.
    SixHours,
    /// A day, by quarters of an hour.
    Day,
    /// Seven days, by hours.
    Week,
    /// 30 days, by six hours.
    Month,
}

impl Range {
    /// All of them, the shortest first.
    pub const ALL: [Self; 5] = [Self::Hour, Self::SixHours, Self::Day, Self::Week, Self::Month];

    /// Its name in an address.
    #[must_use]
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
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|range| range.text() == text)
    }

    /// What is counted together, in units that are kept, and how often.
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

/// What reached a project within a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Counts with the time at which each step begins, the oldest first.
    pub steps: Vec<(Timestamp, Counts)>,
    /// Seconds of a step.
    pub step_seconds: i64,
    /// All of them together.
    pub total: Counts,
    /// The same for as long before; `None`: not asked for, or not kept.
    pub before: Option<Counts>,
    /// Bytes that waited to be applied, of the whole instance, at most in each step.
    pub waiting: Vec<u64>,
}

/// What is about the instance and not about a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strangers {
    /// Refused requests of which no project is known, by code.
    pub refused: BTreeMap<String, u64>,
    /// Keys that no project has.
    pub keys: Vec<UnknownKey>,
}

/// Counts of traffic.
#[derive(Clone)]
pub struct Traffic {
    core: Arc<Core>,
}

impl Traffic {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// What reached a project within a range that ends now.
    ///
    /// # Errors
    /// [`crate::Error::MissingScope`], or when the store cannot be read.
    pub async fn report(
        &self,
        project: &ProjectCtx,
        range: Range,
        compare: bool,
    ) -> Result<Report> {
        policy::check(&project.org, Action::ReadProject)?;
        let (unit, width, count) = range.shape();
        let now = unit.at(project.org.ctx.now);
        let end = (now.div_euclid(width) + 1) * width;
        let begin = end - width * count;
        let of_project = self.between(project.project, unit, begin, end).await?;
        let of_instance = self.between(INSTANCE, unit, begin, end).await?;
        let mut steps = Vec::new();
        let (mut total, mut waiting) = (Counts::default(), Vec::new());
        for from in (0..count).map(|step| begin + step * width) {
            let sum = together(&of_project, from, from + width);
            total.add(&sum);
            waiting.push(together(&of_instance, from, from + width).waiting);
            let at = Timestamp::from_micros(from.saturating_mul(unit.seconds() * 1_000_000));
            steps.push((at, sum));
        }
        let before = if compare { self.before(project.project, range, begin).await? } else { None };
        Ok(Report { steps, step_seconds: unit.seconds() * width, total, before, waiting })
    }

    /// When the latest event of a project came.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn last_event(&self, project: &ProjectCtx) -> Result<Option<Timestamp>> {
        let page = events::arrivals(&self.core.store, project.project, None, 1).await?;
        Ok(page.events.first().map(|event| Timestamp::from_micros(event.received_at)))
    }

    /// What was refused and is of no project, and keys that no project has;
    /// `None`: it is not for this person, because others' senders may be in it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn strangers(&self, project: &ProjectCtx, range: Range) -> Result<Option<Strangers>> {
        let store = &self.core.store;
        let caller = users::get(store, project.org.ctx.user()).await?;
        if !caller.is_some_and(|user| user.is_staff) {
            return Ok(None);
        }
        let (unit, width, count) = range.shape();
        let end = unit.at(project.org.ctx.now) + 1;
        let counts = self.between(INSTANCE, unit, end - width * count, end).await?;
        let refused = together(&counts, i64::MIN, i64::MAX).reasons;
        let keys = rows::unknown_keys(store).await?;
        let keys = rows::unite(keys, &store.traffic().unknown_keys());
        Ok(Some(Strangers { refused, keys }))
    }

    /// Writes what was counted since it was written last: background work of the
    /// instance, to be called by one task only.
    ///
    /// # Errors
    /// When the store cannot be written; a further call goes on.
    pub async fn write(&self) -> Result<()> {
        let store = &self.core.store;
        let mut pending = store.traffic().take();
        let written = async {
            rows::write(store, &pending.minutes).await?;
            pending.minutes.clear();
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

    /// Removes what is older than is kept: background work of the instance.
    ///
    /// # Errors
    /// When the store cannot be read or written; a further call goes on.
    pub async fn forget(&self) -> Result<()> {
        let (store, now) = (&self.core.store, self.core.clock.now());
        let today = now.micros().div_euclid(DAY_SECONDS * 1_000_000);
        rows::forget(store, INSTANCE, now).await?;
        for (_, project) in projects::all_tokens(store).await? {
            rows::forget(store, project.id, now).await?;
            imports::forget(store, project.id, today).await?;
        }
        Ok(())
    }

    /// Counts of a project, written or not, from one stretch to before another.
    async fn between(
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

    /// The sum of as long before a range, where that is kept.
    async fn before(&self, project: ProjectId, range: Range, begin: i64) -> Result<Option<Counts>> {
        let (unit, width, count) = range.shape();
        let length = width * count;
        let found = match range {
            Range::Hour | Range::SixHours | Range::Week => {
                self.between(project, unit, begin - length, begin).await?
            }
            // Minutes of the day before are gone, its hours are there.
            Range::Day => {
                let end = begin.div_euclid(60);
                self.between(project, Unit::Hour, end - 24, end).await?
            }
            Range::Month => return Ok(None),
        };
        Ok(Some(together(&found, i64::MIN, i64::MAX)))
    }
}

fn together(counts: &BTreeMap<i64, Counts>, from: i64, to: i64) -> Counts {
    counts.range(from..to).fold(Counts::default(), |mut sum, (_, more)| {
        sum.add(more);
        sum
    })
}

#[cfg(test)]
mod tests {
    use weir_model::live::Outcome;
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
        let board = services.organizations.store().traffic();
        let now = project.org.ctx.now;
        board.answered(project.project, now, 10, 4);
        services.traffic.write().await.unwrap();
        assert!(board.take().is_empty());
        board.answered(project.project, now, 30, 4);
        board.refused(Some(project.project), now.plus_seconds(-2 * 3600), 5, "not_accepted");
        for (range, rejected) in [(Range::Hour, 0), (Range::Day, 1), (Range::Month, 1)] {
            let report = services.traffic.report(&project, range, true).await.unwrap();
            let total = &report.total;
            assert_eq!((total.requests, total.rejected), (2, rejected), "{range:?}");
            assert_eq!(report.steps.len(), report.waiting.len());
            assert_eq!(report.steps.last().unwrap().1.requests, 2, "{range:?}");
            assert_eq!(report.before.is_none(), range == Range::Month);
        }
        services.traffic.forget().await.unwrap();
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
        let rows = services.events.live_rows(&project, 10).await.unwrap();
        let [row] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((row.key.as_str(), row.outcome), ("refused-1", Outcome::Rejected));
        assert_eq!((row.place.as_deref(), row.size), (Some("/batch/"), 30));
        services.traffic.write().await.unwrap();
        assert_eq!(services.events.live_rows(&project, 10).await.unwrap(), rows);
    }

    #[tokio::test]
    async fn senders_without_a_project_are_for_who_runs_the_instance() {
        let (services, project) = setting().await;
        let board = services.organizations.store().traffic();
        board.refused(None, project.org.ctx.now, 5, "invalid_api_key");
        let found = services.traffic.strangers(&project, Range::Hour).await.unwrap().unwrap();
        assert_eq!(found.refused.get("invalid_api_key"), Some(&1));
        let grace = test_support::stranger(&services, "grace").await;
        let level = weir_model::organizations::Level::Administrator;
        test_support::join(&services, project.org.organization, &grace, level).await;
        let theirs = services.projects.enter(&grace, "1").await.unwrap();
        assert_eq!(services.traffic.strangers(&theirs, Range::Hour).await.unwrap(), None);
    }
}
