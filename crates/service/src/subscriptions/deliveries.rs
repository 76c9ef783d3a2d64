//! Sending the mails of subscriptions that are due: work of the instance, without a caller
//! (API-70).
//!
//! What belongs here: when mails count as sent, and who gets them. What does not: the numbers of
//! a mail (`report`).
//!
//! The state of a subscription and its mails are written in one transaction, which does nothing
//! if the subscription was changed since it was read. So a restart neither loses nor repeats a
//! mail. While no mail is sent, subscriptions stay due: times that were missed are one mail.

use std::future::ready;

use weir_model::Timestamp;
use weir_model::errors::{ErrorKind, FieldError};
use weir_model::mail::{Mail, MailContent};
use weir_model::reports::{Digest, REPORTS_MAX, Report};
use weir_questions::Query;
use weir_store::insights::InsightRow;
use weir_store::projects::{self, ProjectRow};
use weir_store::subscriptions::{self as rows, SubscriptionDue, SubscriptionRow};
use weir_store::update::{Change, Row as _, update_with};
use weir_store::users::UserRow;
use weir_store::{dashboards, insights};

use super::{DeliveryOutcome, Subscriptions, due, report};
use crate::ctx::ProjectCtx;
use crate::dashboards::{TileQuestion, questions_of};
use crate::error::{Error, NOT_FOUND};
use crate::insights::stored;
use crate::policy::{self, Action};
use crate::{Result, mail};

/// Subscriptions that one call handles. The next call handles the others.
const ROUND: u32 = 20;
/// Seconds until a subscription is tried again that found the service busy.
const BUSY_SECONDS: i64 = 60;
/// Seconds between two mails that members ask for as a test.
const TEST_SECONDS: i64 = 60;

/// What a mail says instead of an answer of a kind that it does not show.
const NOT_SHOWN: &str = "Mails do not show answers of this kind. Open the insight to see it.";

/// The answers of a subscription.
#[derive(Debug, Clone, PartialEq)]
enum Outcome {
    /// The service was busy.
    Busy,
    /// There is nothing to send. The sentence for members says why.
    Skipped(&'static str),
    /// The answers, and why some are missing.
    Answered(Digest, Option<String>),
}

/// The answer to one question.
enum Answered {
    Busy,
    /// The project is deleted, or belongs to another organization since.
    Gone,
    /// The answer, and why there is none.
    Made(Box<Report>, Option<String>),
}

impl Subscriptions {
    /// Stores the mails of subscriptions that are due, one after another: together they have
    /// one permit for questions at most.
    ///
    /// # Errors
    /// When the list cannot be read, or a subscription cannot be read or written. It stays due.
    pub async fn deliver_due(&self) -> Result<()> {
        let core = &self.core;
        if !core.mailing.is_open() {
            return Ok(());
        }
        let mut failure = None;
        for due in rows::due(&core.store, core.clock.now(), ROUND).await? {
            if let Err(error) = self.deliver(due).await {
                tracing::warn!(
                    project.id = %due.project, subscription.id = %due.subscription, %error,
                    "the mails of a subscription were not stored; trying again"
                );
                let is_of_all = error.kind() == ErrorKind::Unavailable;
                failure = Some(error);
                // Each of the others would ask its questions before it fails too.
                if is_of_all {
                    break;
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    async fn deliver(&self, at: SubscriptionDue) -> Result<()> {
        let store = &self.core.store;
        let project = projects::find(store, at.project).await?;
        let row = rows::find(store, at.project, at.subscription).await?;
        let row = row.filter(|row| row.due_at == Some(at.at));
        let Some((project, before)) = project.zip(row) else {
            return Ok(rows::forget_due(store, at).await?);
        };
        let recipients = self.members(&project, &before).await?;
        let outcome = match recipients.is_empty() {
            true => Outcome::Skipped("No recipient is a member any more."),
            false => self.outcome(&project, &before).await?,
        };
        let now = self.core.clock.now();
        let (mut after, counted) = delivered(&before, &outcome, &project.brief.timezone, now)?;
        let mails = match outcome {
            Outcome::Answered(digest, _) => mails(&recipients, &digest, false),
            Outcome::Busy | Outcome::Skipped(_) => Vec::new(),
        };
        let mails = self.core.mailing.rows(now, mails);
        after.touch(now);
        let change = |stored: SubscriptionRow| {
            // It was changed since: it is due again.
            let row = if stored.revision == before.revision { after.clone() } else { stored };
            ready(Ok::<_, Error>((Change { row, entries: Vec::new(), with: mails.clone() }, ())))
        };
        update_with(store, rows::key(at.project, at.subscription), (), change).await?;
        if let Some(outcome) = counted {
            self.deliveries.count(outcome);
        }
        if !mails.is_empty() {
            self.core.mailing.wake();
        }
        Ok(())
    }

    /// Sends the caller the mail that the recipients would get now.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`]; [`Error::Invalid`] where no mail is sent,
    /// when there is nothing to send, and a short time after another test;
    /// [`Error::Unavailable`] when too many questions are asked.
    pub async fn send_test(&self, project: &ProjectCtx, subscription: &str) -> Result<()> {
        policy::check(&project.org, Action::WriteSubscriptions)?;
        let (core, now) = (&self.core, project.org.ctx.now);
        let before = self.find(project, subscription).await?;
        if !core.mailing.is_open() {
            let detail = "This instance sends no mail: its operator has set up no mail server.";
            return Err(FieldError::body("invalid_input", detail).into());
        }
        check_test(&before, now)?;
        let missing = || Error::NotFound(NOT_FOUND);
        let row = projects::find(&core.store, project.project).await?.ok_or_else(missing)?;
        let digest = match self.outcome(&row, &before).await? {
            Outcome::Answered(digest, _) => digest,
            Outcome::Skipped(why) => return Err(FieldError::body("invalid_input", why).into()),
            Outcome::Busy => return Err(Error::Unavailable("too many questions are asked")),
        };
        let user = weir_store::users::get(&core.store, project.org.ctx.user()).await?;
        let user = user.ok_or_else(missing)?;
        let mails = core.mailing.rows(now, mails(std::slice::from_ref(&user), &digest, true));
        let change = |stored: SubscriptionRow| {
            // Another test may have been sent meanwhile.
            let changed = check_test(&stored, now).map(|()| {
                let mut row = SubscriptionRow { tested_at: Some(now), ..stored };
                row.touch(now);
                (Change { row, entries: Vec::new(), with: mails.clone() }, ())
            });
            ready(changed)
        };
        let key = rows::key(project.project, before.id);
        update_with(&core.store, key, (), change).await?.stored().ok_or_else(missing)?;
        core.mailing.wake();
        Ok(())
    }

    /// The recipients who are members and can sign in.
    async fn members(&self, project: &ProjectRow, row: &SubscriptionRow) -> Result<Vec<UserRow>> {
        let organization = project.brief.organization;
        let store = &self.core.store;
        let found = weir_store::members::rows(store, organization, &row.recipients).await?;
        Ok(found.into_iter().map(|member| member.user).filter(|user| user.is_active).collect())
    }

    async fn outcome(&self, project: &ProjectRow, row: &SubscriptionRow) -> Result<Outcome> {
        let store = &self.core.store;
        let (name, path, mut asked) = match (row.insight, row.dashboard) {
            (Some(insight), _) => {
                let found = insights::rows(store, row.project, &[insight]).await?;
                let Some(insight) = found.into_iter().find(|insight| !insight.deleted) else {
                    return Ok(Outcome::Skipped("The insight is deleted."));
                };
                let query = Query::read(&stored(&insight.query)?);
                let path = insight_path(&insight);
                (report::name(&insight), path, vec![(insight, query)])
            }
            (None, Some(dashboard)) => {
                let found = dashboards::rows(store, row.project, &[dashboard]).await?;
                let Some(found) = found.into_iter().find(|found| !found.deleted) else {
                    return Ok(Outcome::Skipped("The dashboard is deleted."));
                };
                let path = format!("/projects/{}/dashboards/{dashboard}", row.project);
                (found.name.clone(), path, questions_of(&self.core, &found).await?)
            }
            (None, None) => return Ok(Outcome::Skipped("There is nothing to send.")),
        };
        let hidden = asked.len().saturating_sub(REPORTS_MAX) as u64;
        asked.truncate(REPORTS_MAX);
        if asked.is_empty() {
            return Ok(Outcome::Skipped("The dashboard has no insights."));
        }
        let (mut reports, mut error) = (Vec::new(), None);
        for asked in asked {
            match self.answered(project, row, asked).await {
                Answered::Busy => return Ok(Outcome::Busy),
                Answered::Gone => return Ok(Outcome::Skipped("The project is deleted.")),
                Answered::Made(report, fault) => {
                    error = error.or(fault.map(|fault| format!("{}: {fault}", report.name)));
                    reports.push(*report);
                }
            }
        }
        let digest = Digest {
            title: row.title.clone().unwrap_or(name),
            project: project.brief.name.clone(),
            reports,
            hidden,
            settings: format!("{path}/subscriptions?subscription={}", row.id),
            path,
        };
        Ok(Outcome::Answered(digest, error))
    }

    async fn answered(
        &self,
        project: &ProjectRow,
        row: &SubscriptionRow,
        (insight, query): TileQuestion,
    ) -> Answered {
        let empty = Report {
            name: report::name(&insight),
            path: insight_path(&insight),
            ..Report::default()
        };
        let without = |why: String| {
            let report = Report { notes: vec![why.clone()], ..empty.clone() };
            Answered::Made(Box::new(report), Some(why))
        };
        let query = match query {
            Ok(query) => query,
            Err(fault) => return without(fault.detail),
        };
        if !report::is_shown(&query) {
            let report = Report { notes: vec![NOT_SHOWN.to_owned()], ..empty.clone() };
            return Answered::Made(Box::new(report), None);
        }
        let failed = |cause: &dyn std::fmt::Display| {
            tracing::error!(
                project.id = %row.project, subscription.id = %row.id, error = %cause,
                "the question of a subscription failed"
            );
            without("The question could not be answered.".to_owned())
        };
        let organization = project.brief.organization;
        let asked = self.questions.ask_for_subscription(organization, row.project, query.clone());
        match asked.await {
            Ok(answered) => match report::of(&query, &answered, empty.clone()) {
                Ok(report) => Answered::Made(Box::new(report), None),
                Err(error) => failed(&error),
            },
            Err(Error::Invalid(fault)) => without(fault.detail),
            Err(error) => match error.kind() {
                ErrorKind::Unavailable | ErrorKind::Conflict => Answered::Busy,
                ErrorKind::NotFound => Answered::Gone,
                _ => failed(&error),
            },
        }
    }
}

fn insight_path(insight: &InsightRow) -> String {
    format!("/projects/{}/insights/{}", insight.project, insight.short_id)
}

fn mails(recipients: &[UserRow], digest: &Digest, is_test: bool) -> Vec<Mail> {
    let mail = |user: &UserRow| {
        let (first_name, digest) = (user.first_name.clone(), digest.clone());
        mail::to(&user.email, MailContent::Subscription { first_name, is_test, digest })
    };
    recipients.iter().map(mail).collect()
}

/// Refuses a test shortly after another one.
fn check_test(row: &SubscriptionRow, now: Timestamp) -> Result<()> {
    if row.tested_at.is_some_and(|tested| now < tested.plus_seconds(TEST_SECONDS)) {
        let detail = "A test was sent less than a minute ago. Try again later.";
        return Err(FieldError::body("invalid_input", detail).into());
    }
    Ok(())
}

/// The subscription after it was due, and how that is counted. `None`: it is tried again.
fn delivered(
    before: &SubscriptionRow,
    outcome: &Outcome,
    timezone: &str,
    now: Timestamp,
) -> Result<(SubscriptionRow, Option<DeliveryOutcome>)> {
    let mut row = before.clone();
    let counted = match outcome {
        Outcome::Busy => {
            row.due_at = Some(now.plus_seconds(BUSY_SECONDS));
            return Ok((row, None));
        }
        Outcome::Skipped(why) => {
            row.error = Some((*why).to_owned());
            DeliveryOutcome::Skipped
        }
        Outcome::Answered(_, error) => {
            row.error.clone_from(error);
            row.delivered_at = Some(now);
            row.deliveries = row.deliveries.saturating_add(1);
            match error {
                None => DeliveryOutcome::Sent,
                Some(_) => DeliveryOutcome::Incomplete,
            }
        }
    };
    // Times that were missed are over.
    row.due_at = due(&row, timezone, now)?;
    Ok((row, Some(counted)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscriptions::tests::row;

    fn time(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn sent() -> Outcome {
        Outcome::Answered(Digest::default(), None)
    }

    #[test]
    fn missed_times_are_one_mail_and_a_count_ends_them() {
        let before = SubscriptionRow { most: Some(2), ..row() };
        let late = time("2026-08-25T12:00:00Z");
        let (after, counted) = delivered(&before, &sent(), "UTC", late).unwrap();
        assert_eq!(counted, Some(DeliveryOutcome::Sent));
        assert_eq!((after.deliveries, after.delivered_at), (1, Some(late)));
        assert_eq!(after.due_at, Some(time("2026-08-26T08:00:00Z")));
        let (ended, _) = delivered(&after, &sent(), "UTC", time("2026-08-26T08:00:00Z")).unwrap();
        assert_eq!((ended.deliveries, ended.due_at), (2, None));
    }

    #[test]
    fn a_busy_service_is_asked_again_and_a_skipped_time_is_over() {
        let now = time("2026-08-21T08:00:00Z");
        let (busy, counted) = delivered(&row(), &Outcome::Busy, "UTC", now).unwrap();
        assert_eq!((busy.due_at, counted), (Some(now.plus_seconds(BUSY_SECONDS)), None));
        let skipped = Outcome::Skipped("The insight is deleted.");
        let (skipped, counted) = delivered(&row(), &skipped, "UTC", now).unwrap();
        assert_eq!(counted, Some(DeliveryOutcome::Skipped));
        assert_eq!((skipped.deliveries, skipped.delivered_at), (0, None));
        assert_eq!(skipped.error.as_deref(), Some("The insight is deleted."));
        assert_eq!(skipped.due_at, Some(time("2026-08-22T08:00:00Z")));
        let incomplete = Outcome::Answered(Digest::default(), Some("a: too long".to_owned()));
        let (incomplete, counted) = delivered(&skipped, &incomplete, "UTC", now).unwrap();
        assert_eq!(counted, Some(DeliveryOutcome::Incomplete));
        assert_eq!(incomplete.error.as_deref(), Some("a: too long"));
    }

    #[test]
    fn a_test_is_refused_shortly_after_another_one() {
        let now = time("2026-08-21T08:00:00Z");
        let tested =
            |seconds| SubscriptionRow { tested_at: Some(now.plus_seconds(seconds)), ..row() };
        assert!(check_test(&row(), now).is_ok() && check_test(&tested(-60), now).is_ok());
        assert!(matches!(check_test(&tested(-59), now), Err(Error::Invalid(_))));
    }
}
