//! Checking alerts that are due: work of the instance, without a caller (API-68).
//!
//! What belongs here: when a check counts, and who is notified of what. What does not: which
//! numbers fire (`evaluate`).
//!
//! The state of an alert, the mails and the request to the webhook are written in one
//! transaction, which does nothing if the alert was changed since it was read. So a restart
//! neither loses nor repeats a notification.

use std::collections::{HashMap, VecDeque};
use std::future::ready;

use parking_lot::Mutex;
use weir_model::alerts::{AlertState, CHECKS_MAX};
use weir_model::errors::ErrorKind;
use weir_model::mail::{AlertNews, Mail, MailContent};
use weir_model::{OrganizationId, ProjectId, Timestamp};
use weir_questions::Query;
use weir_questions::results::TrendsResult;
use weir_questions::time::{Calendar, WeekStart};
use weir_store::alerts::{self as rows, AlertDue, AlertRow, CheckRow, Notifications};
use weir_store::insights::{self, InsightRow};
use weir_store::projects::{self, ProjectRow};
use weir_store::update::{Change, Row as _, update_with};

use super::counts::CheckOutcome;
use super::evaluate::{self, Evaluation, check_question};
use super::{Alerts, trends, webhooks};
use crate::error::Error;
use crate::{Result, mail};

/// Alerts that one call orders.
const ORDERED: u32 = 5_000;
/// Alerts that one call checks, or one of each organization if there are more organizations. The
/// next call checks the others.
const ROUND: usize = 50;
/// Seconds until a check is tried again that found the service busy.
const BUSY_SECONDS: i64 = 60;
/// Seconds until a failed check is tried again, before members are notified of it.
const RETRY_SECONDS: i64 = 5 * 60;
/// Members are notified of so many failed checks in a row.
const FAILURES: i64 = 3;

/// The result of a check.
#[derive(Debug, Clone, PartialEq)]
enum Outcome {
    /// The service was busy.
    Busy,
    /// There is nothing to check now: it is a weekend, or the insight is hidden.
    Skipped,
    /// The number was compared.
    Evaluated(Evaluation),
    /// There is no number. The sentence for members says why.
    Failed(String),
}

impl Outcome {
    /// How it is counted. `None`: nothing was checked.
    fn counted(&self) -> Option<CheckOutcome> {
        match self {
            Self::Busy | Self::Skipped => None,
            Self::Evaluated(Evaluation { breach: Some(_), .. }) => Some(CheckOutcome::Firing),
            Self::Evaluated(_) => Some(CheckOutcome::NotFiring),
            Self::Failed(_) => Some(CheckOutcome::Failed),
        }
    }
}

impl Alerts {
    /// Checks alerts that are due, two at a time: together they have two permits for questions
    /// at most. Organizations take turns, so that none waits for all alerts of another one.
    ///
    /// # Errors
    /// When the list cannot be read, or an alert cannot be read or written. It stays due.
    pub async fn check_due(&self) -> Result<()> {
        let store = &self.core.store;
        let mut owners: HashMap<ProjectId, Option<OrganizationId>> = HashMap::new();
        let mut owned = Vec::new();
        for due in rows::due(store, self.core.clock.now(), ORDERED).await? {
            let owner = match owners.get(&due.project) {
                Some(owner) => *owner,
                None => {
                    let project = projects::find(store, due.project).await?;
                    let owner = project.map(|project| project.brief.organization);
                    owners.insert(due.project, owner);
                    owner
                }
            };
            owned.push((owner, due));
        }
        let turns = Mutex::new(in_turn(owned));
        let (one, other) = tokio::join!(self.check_next(&turns), self.check_next(&turns));
        one.and(other)
    }

    /// Checks the next alert until there is none.
    async fn check_next(&self, turns: &Mutex<VecDeque<AlertDue>>) -> Result<()> {
        let mut failure = None;
        loop {
            let next = turns.lock().pop_front();
            let Some(due) = next else { break };
            if let Err(error) = self.check(due).await {
                tracing::warn!(
                    project.id = %due.project, alert.id = %due.alert, %error,
                    "an alert was not checked; trying again"
                );
                let is_of_all = error.kind() == ErrorKind::Unavailable;
                failure = Some(error);
                // Each of the others would ask its question before it fails too.
                if is_of_all {
                    turns.lock().clear();
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    async fn check(&self, due: AlertDue) -> Result<()> {
        let store = &self.core.store;
        let project = projects::find(store, due.project).await?;
        let row = rows::find(store, due.project, due.alert).await?;
        let row = row.filter(|row| row.due_at == Some(due.at));
        let Some((project, before)) = project.zip(row) else {
            return Ok(rows::forget_due(store, due).await?);
        };
        let found = insights::rows(store, due.project, &[before.insight]).await?;
        let insight = found.into_iter().find(|insight| !insight.deleted);
        let timezone = &project.brief.timezone;
        let calendar = Calendar::new(timezone, WeekStart::of_project(project.week_start_day));
        let no_zone = || Error::Internal(format!("the zone {timezone} is not in the table"));
        let calendar = calendar.ok_or_else(no_zone)?;
        let now = self.core.clock.now();
        let is_skipped = before.skips_weekend && calendar.is_weekend(now.micros());
        let outcome = match &insight {
            Some(insight) if !is_skipped => self.outcome(&project, insight, &before).await,
            _ => Outcome::Skipped,
        };
        let next = evaluate::next_check(&before, &calendar, now);
        let (mut after, news) = checked(&before, &outcome, now, next);
        let with = match (&news, &insight) {
            (Some(news), Some(insight)) => {
                self.notifications(&project, insight, &after, news, now).await?
            }
            _ => Notifications::default(),
        };
        // An alert can have neither members who get mails nor a webhook.
        let is_notified = !with.mails.is_empty() || with.webhook.is_some();
        if let (Some(_), Some(check)) = (&news, after.checks.first_mut()) {
            check.is_notified = is_notified;
        }
        after.touch(now);
        let change = |stored: AlertRow| {
            // It was changed since: it is due again.
            let row = if stored.revision == before.revision { after.clone() } else { stored };
            ready(Ok::<_, Error>((Change { row, entries: Vec::new(), with: with.clone() }, ())))
        };
        update_with(store, rows::key(due.project, due.alert), (), change).await?;
        if let Some(outcome) = outcome.counted() {
            self.checks.count(outcome);
        }
        if !with.mails.is_empty() {
            self.core.mailing.wake();
        }
        Ok(())
    }

    async fn outcome(&self, project: &ProjectRow, insight: &InsightRow, row: &AlertRow) -> Outcome {
        let query = trends(insight).and_then(|query| {
            check_question(row, &query)?;
            Ok(evaluate::question(&query))
        });
        let query = match query {
            Ok(query) => Query::Trends(query),
            Err(fault) => return Outcome::Failed(fault.detail),
        };
        let organization = project.brief.organization;
        let answered = self.questions.ask_for_alert(organization, row.project, query).await;
        let failed = |cause: &dyn std::fmt::Display| {
            tracing::error!(
                project.id = %row.project, alert.id = %row.id, error = %cause,
                "the question of an alert failed"
            );
            Outcome::Failed("The question could not be answered.".to_owned())
        };
        match answered {
            Ok(answered) => {
                let results = answered.answer.results.get();
                match serde_json::from_str::<Vec<TrendsResult>>(results) {
                    Ok(results) => Outcome::Evaluated(evaluate::evaluate(row, &results)),
                    Err(error) => failed(&error),
                }
            }
            Err(Error::Invalid(fault)) => Outcome::Failed(fault.detail),
            Err(error) => match error.kind() {
                ErrorKind::Unavailable | ErrorKind::Conflict => Outcome::Busy,
                // The project is deleted, or belongs to another organization since.
                ErrorKind::NotFound => Outcome::Skipped,
                _ => failed(&error),
            },
        }
    }

    /// The mails and the request about news of an alert.
    async fn notifications(
        &self,
        project: &ProjectRow,
        insight: &InsightRow,
        row: &AlertRow,
        news: &AlertNews,
        now: Timestamp,
    ) -> Result<Notifications> {
        let core = &self.core;
        let (id, short_id) = (project.brief.id, &insight.short_id);
        let path = format!("/projects/{id}/insights/{short_id}/alerts?alert={}", row.id);
        let mut mails: Vec<Mail> = Vec::new();
        if core.mailing.is_open() {
            let organization = project.brief.organization;
            let members = weir_store::members::rows(&core.store, organization, &row.subscribers);
            let active = members.await?.into_iter().map(|member| member.user);
            let mail = |user: weir_store::users::UserRow| {
                let content = MailContent::Alert {
                    first_name: user.first_name,
                    alert: row.name.clone(),
                    project: project.brief.name.clone(),
                    news: news.clone(),
                    path: path.clone(),
                };
                mail::to(&user.email, content)
            };
            mails.extend(active.filter(|user| user.is_active).map(mail));
        }
        let webhook = match (news, &row.webhook) {
            (AlertNews::Fires(sentence), Some(_)) => {
                Some(webhooks::request(project, insight, row, sentence, path.clone(), now))
            }
            _ => None,
        };
        Ok(Notifications { mails: core.mailing.rows(now, mails), webhook })
    }
}

/// The alerts that one call checks. An organization has its next one after every other
/// organization had one. Alerts without an organization are those of deleted projects.
fn in_turn(owned: Vec<(Option<OrganizationId>, AlertDue)>) -> VecDeque<AlertDue> {
    let mut turns: HashMap<Option<OrganizationId>, usize> = HashMap::new();
    let mut numbered = Vec::with_capacity(owned.len());
    for (owner, due) in owned {
        let turn = turns.entry(owner).or_default();
        numbered.push((*turn, due));
        *turn += 1;
    }
    // The order within a turn stays: longest due first.
    numbered.sort_by_key(|(turn, _)| *turn);
    numbered.into_iter().map(|(_, due)| due).take(ROUND.max(turns.len())).collect()
}

/// The alert after a check, and what its subscribers are notified of.
fn checked(
    before: &AlertRow,
    outcome: &Outcome,
    now: Timestamp,
    next: Timestamp,
) -> (AlertRow, Option<AlertNews>) {
    let mut row = before.clone();
    // It was not due earlier.
    row.snoozed_until = None;
    row.due_at = Some(next);
    let (check, news) = match outcome {
        Outcome::Skipped => return (row, None),
        Outcome::Busy => {
            row.due_at = Some(now.plus_seconds(BUSY_SECONDS));
            return (row, None);
        }
        Outcome::Evaluated(Evaluation { value, breach }) => {
            row.is_firing = breach.is_some();
            (row.failures, row.error) = (0, None);
            row.value = value.or(row.value);
            let news = breach.clone().filter(|_| !before.is_firing).map(AlertNews::Fires);
            if news.is_some() {
                row.notified_at = Some(now);
            }
            let state = if row.is_firing { AlertState::Firing } else { AlertState::NotFiring };
            let check = CheckRow { at: now, value: *value, state, is_notified: false, error: None };
            (check, news)
        }
        Outcome::Failed(why) => {
            row.failures = before.failures.saturating_add(1);
            row.error = Some(why.clone());
            if row.failures < FAILURES {
                row.due_at = Some(now.plus_seconds(RETRY_SECONDS).min(next));
            }
            let news = (row.failures == FAILURES).then(|| AlertNews::Fails(why.clone()));
            let (state, error) = (AlertState::Errored, row.error.clone());
            (CheckRow { at: now, value: None, state, is_notified: false, error }, news)
        }
    };
    row.checked_at = Some(now);
    row.checks.insert(0, CheckRow { is_notified: news.is_some(), ..check });
    row.checks.truncate(CHECKS_MAX);
    (row, news)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;
    use weir_model::AlertId;

    use super::*;
    use crate::alerts::tests::row;

    fn time(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn number(value: f64, breach: Option<&str>) -> Outcome {
        let breach = breach.map(str::to_owned);
        Outcome::Evaluated(Evaluation { value: Some(value), breach })
    }

    /// The alert after these checks, one each hour, and what its subscribers got.
    fn after(outcomes: &[Outcome]) -> (AlertRow, Vec<AlertNews>) {
        let (mut row, mut all) = (row(), Vec::new());
        for (hour, outcome) in (0_i64..).zip(outcomes) {
            let (after, news) =
                checked(&row, outcome, time(hour * 3_600), time((hour + 1) * 3_600));
            row = after;
            all.extend(news);
        }
        (row, all)
    }

    #[test]
    fn an_alert_notifies_when_it_begins_to_fire() {
        let (fires, quiet) = (number(12.0, Some("above")), number(3.0, None));
        let failed = Outcome::Failed("too long".to_owned());
        let once = vec![AlertNews::Fires("above".to_owned())];
        let (row, news) = after(&[fires.clone(), fires.clone(), failed, fires.clone()]);
        assert_eq!((news, row.is_firing, row.failures), (once, true, 0));
        assert_eq!((row.value, row.notified_at), (Some(12.0), Some(time(0))));
        let notified: Vec<bool> = row.checks.iter().map(|check| check.is_notified).collect();
        assert_eq!(notified, [false, false, false, true]);
        let (row, news) = after(&[fires.clone(), quiet.clone(), fires]);
        assert_eq!((news.len(), row.notified_at), (2, Some(time(7_200))));
        let (row, news) = after(&[quiet]);
        assert_eq!((news, row.is_firing, row.value), (Vec::new(), false, Some(3.0)));
        assert_eq!((row.checked_at, row.due_at), (Some(time(0)), Some(time(3_600))));
    }

    #[test]
    fn failures_are_retried_and_then_reported_once() {
        let failed = Outcome::Failed("too long".to_owned());
        let (row, news) = after(std::slice::from_ref(&failed));
        assert_eq!((news, row.due_at), (Vec::new(), Some(time(300))));
        let (row, news) = after(&vec![failed.clone(); 5]);
        assert_eq!(news, [AlertNews::Fails("too long".to_owned())]);
        assert_eq!((row.failures, row.due_at), (5, Some(time(5 * 3_600))));
        assert_eq!(row.error.as_deref(), Some("too long"));
        let (row, _) = after(&[failed, number(1.0, None)]);
        assert_eq!((row.failures, row.error), (0, None));
    }

    #[test]
    fn organizations_take_turns() {
        let of = |organization: u128, alert: i64| {
            let (project, alert) = (ProjectId(1), AlertId(alert));
            (
                Some(OrganizationId(Uuid::from_u128(organization))),
                AlertDue { at: time(0), project, alert },
            )
        };
        let numbers = |owned| {
            let turns: Vec<i64> = in_turn(owned).into_iter().map(|due| due.alert.0).collect();
            turns
        };
        let owned = vec![of(1, 1), of(1, 2), of(1, 3), of(2, 4), of(2, 5), of(3, 6)];
        assert_eq!(numbers(owned), [1, 4, 6, 2, 5, 3]);
        // The next call has the others, and each organization has a turn in every call.
        assert_eq!(numbers((0..99).map(|alert| of(1, alert)).collect()).len(), ROUND);
        let many = (0_u128..99).zip(0..).map(|(organization, alert)| of(organization, alert));
        assert_eq!(numbers(many.collect()).len(), 99);
    }

    #[test]
    fn a_busy_service_and_a_weekend_are_no_checks() {
        let (row, news) = after(&[Outcome::Busy]);
        assert_eq!((news, row.checked_at, row.due_at), (Vec::new(), None, Some(time(60))));
        let (row, _) = after(&[Outcome::Skipped]);
        assert_eq!((row.checks.len(), row.due_at), (0, Some(time(3_600))));
        let (row, _) = after(&vec![number(1.0, None); CHECKS_MAX + 1]);
        assert_eq!(row.checks.len(), CHECKS_MAX);
    }
}
