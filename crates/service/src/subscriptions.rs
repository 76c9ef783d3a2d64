//! Subscriptions of insights and dashboards by mail (API-69, API-70).
//!
//! What belongs here: who may change subscriptions, and which rules there are. What does not:
//! sending mails that are due (`deliveries`), their numbers (`report`), the answers to questions
//! (`questions`), and the texts of mails (`weir-mail`).

mod counts;
mod deliveries;
mod report;
mod words;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::errors::FieldError;
use weir_model::pagination::{Page, Paged};
use weir_model::subscriptions::{
    COUNT_MAX, Frequency, INTERVAL_MAX, PLACES, RECIPIENTS_MAX, SUBSCRIPTIONS_MAX, Subscription,
    SubscriptionInput, SubscriptionPatch, SubscriptionSubject, TARGET_MAX, TITLE_MAX, TargetType,
};
use weir_model::{SubscriptionId, Timestamp, UserId, validate};
use weir_schedule::Recurrence;
use weir_store::ids;
use weir_store::numbered::Created;
use weir_store::subscriptions::{self as rows, NO_SUBJECT, SubscriptionRow};
use weir_store::update::lock;
use weir_store::{dashboards, insights, members as member_rows, projects, users};

use crate::activity::{self, About, Changes};
use crate::ctx::ProjectCtx;
use crate::error::{Error, NOT_FOUND};
use crate::identity::emails;
use crate::outcome_counts::OutcomeCounts;
use crate::policy::{self, Action};
use crate::questions::Questions;
use crate::unchecked::Unchecked;
use crate::update::{not_created, stored, update};
use crate::{Core, Result, members};

pub use counts::DeliveryOutcome;

/// The service for subscriptions.
#[derive(Clone)]
pub struct Subscriptions {
    core: Arc<Core>,
    questions: Questions,
    deliveries: Arc<OutcomeCounts<DeliveryOutcome>>,
}

impl Subscriptions {
    pub(crate) fn new(core: Arc<Core>, questions: Questions) -> Self {
        Self { core, questions, deliveries: Arc::default() }
    }

    /// How many subscriptions that were due ended in each way since the last call.
    pub fn take_deliveries(&self) -> HashMap<DeliveryOutcome, u64> {
        self.deliveries.take()
    }

    /// The subscriptions of the project that are not hidden, or those about one insight or
    /// dashboard, in the order of their creation.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn list(
        &self,
        project: &ProjectCtx,
        about: Option<SubscriptionSubject>,
        page: Page,
    ) -> Result<Paged<Subscription>> {
        policy::check(&project.org, Action::ReadSubscriptions)?;
        let mut found = rows::all(&self.core.store, project.project).await?;
        found.retain(|row| {
            !row.deleted
                && about.is_none_or(|about| {
                    (row.insight, row.dashboard) == (about.insight(), about.dashboard())
                })
        });
        let Paged { count, results } = page.of(found);
        Ok(Paged { count, results: self.shown(project, results).await? })
    }

    /// One subscription, also a hidden one.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn get(&self, project: &ProjectCtx, subscription: &str) -> Result<Subscription> {
        policy::check(&project.org, Action::ReadSubscriptions)?;
        let row = self.find(project, subscription).await?;
        self.show(project, row).await
    }

    /// Adds a subscription.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Invalid`], also for an insight or a dashboard that is
    /// missing, for addresses of users who are no members, and for too many subscriptions.
    pub async fn create(
        &self,
        project: &ProjectCtx,
        input: impl Into<Unchecked<'_, SubscriptionInput>>,
    ) -> Result<Subscription> {
        policy::check_sending(&project.org, Action::WriteSubscriptions)?;
        let SubscriptionInput { about, target_value, frequency, start_date, rest } =
            input.into().read()?;
        self.require(project, about).await?;
        let (store, ctx) = (&self.core.store, &project.org.ctx);
        let new = SubscriptionRow {
            id: rows::next_number(store).await?,
            project: project.project,
            insight: about.insight(),
            dashboard: about.dashboard(),
            revision: ids::time_ordered(ctx.now),
            title: None,
            recipients: self.recipients(project, &target_value).await?,
            frequency,
            interval: 1,
            weekdays: Vec::new(),
            place: None,
            most: None,
            start_at: start_date,
            until_at: None,
            deleted: false,
            deliveries: 0,
            delivered_at: None,
            tested_at: None,
            error: None,
            due_at: None,
            created_by: ctx.user(),
            created_at: ctx.now,
        };
        let mut row = new.clone();
        apply(&rest, None, &mut row)?;
        let timezone = self.timezone(project).await?;
        row.due_at = due(&row, &timezone, just_before(ctx.now))?;
        let changes = Changes::none()
            .field("insight", &None, &row.insight)
            .field("dashboard", &None, &row.dashboard)
            .field("target_value", &None, &Some(&row.recipients))
            .field("frequency", &None, &Some(row.frequency))
            .field("start_date", &None, &Some(row.start_at))
            .and(changes(&new, &row));
        let entry = entry(project, &row, AuditAction::Created, changes);
        match rows::create(store, project.org.organization, &row, &[entry]).await? {
            Created::Yes => self.show(project, row).await,
            Created::Refused(reason) if reason == NO_SUBJECT => Err(no_subject(about).into()),
            refused => Err(not_created(refused, SUBSCRIPTIONS_MAX, "subscriptions")),
        }
    }

    /// Changes a subscription. After a change of its times, the next one is computed again.
    ///
    /// # Errors
    /// As [`create`](Self::create); [`Error::NotFound`].
    pub async fn update(
        &self,
        project: &ProjectCtx,
        subscription: &str,
        patch: impl Into<Unchecked<'_, SubscriptionPatch>>,
    ) -> Result<Subscription> {
        policy::check_sending(&project.org, Action::WriteSubscriptions)?;
        let id = self.find(project, subscription).await?.id;
        let patch = patch.into().read()?;
        let recipients = match &patch.target_value {
            Some(addresses) => Some(self.recipients(project, addresses).await?),
            None => None,
        };
        self.change(project, id, |row| apply(&patch, recipients.as_deref(), row)).await
    }

    /// Removes the caller from the recipients.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn unsubscribe(
        &self,
        project: &ProjectCtx,
        subscription: &str,
    ) -> Result<Subscription> {
        policy::check(&project.org, Action::WriteSubscriptions)?;
        let id = self.find(project, subscription).await?.id;
        let user = project.org.ctx.user();
        let leave = |row: &mut SubscriptionRow| {
            row.recipients.retain(|recipient| *recipient != user);
            Ok(())
        };
        self.change(project, id, leave).await
    }

    /// Deletes a subscription for ever.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn delete(&self, project: &ProjectCtx, subscription: &str) -> Result<()> {
        policy::check(&project.org, Action::WriteSubscriptions)?;
        let id = self.find(project, subscription).await?.id;
        let store = &self.core.store;
        let _permit = lock::<SubscriptionRow>(store, &rows::key(project.project, id)).await;
        let row = self.find(project, subscription).await?;
        let changes = Changes::none().field("title", &row.title, &None);
        let entry = entry(project, &row, AuditAction::Deleted, changes);
        Ok(rows::delete(store, project.project, id, &[entry]).await?)
    }

    /// Changes a subscription, and records what differs.
    async fn change(
        &self,
        project: &ProjectCtx,
        id: SubscriptionId,
        change: impl Fn(&mut SubscriptionRow) -> Result<()>,
    ) -> Result<Subscription> {
        let now = project.org.ctx.now;
        let timezone = self.timezone(project).await?;
        let change = |row: &mut SubscriptionRow| {
            let before = row.clone();
            change(row)?;
            if times(&before) != times(row) {
                row.due_at = due(row, &timezone, just_before(now))?;
            }
            Ok::<_, Error>(())
        };
        let entries = |before: &SubscriptionRow, after: &SubscriptionRow| {
            vec![entry(project, after, AuditAction::Updated, changes(before, after))]
        };
        let key = rows::key(project.project, id);
        let row = stored(update(&self.core, key, now, (), change, entries).await?)?;
        self.show(project, row).await
    }

    /// The time zone of the project.
    async fn timezone(&self, project: &ProjectCtx) -> Result<String> {
        let found = projects::find(&self.core.store, project.project).await?;
        Ok(found.ok_or(Error::NotFound(NOT_FOUND))?.brief.timezone)
    }

    /// Refuses an insight or a dashboard that is missing or hidden.
    async fn require(&self, project: &ProjectCtx, about: SubscriptionSubject) -> Result<()> {
        let (store, project) = (&self.core.store, project.project);
        let is_shown = match about {
            SubscriptionSubject::Insight(id) => {
                insights::rows(store, project, &[id]).await?.iter().any(|row| !row.deleted)
            }
            SubscriptionSubject::Dashboard(id) => {
                dashboards::rows(store, project, &[id]).await?.iter().any(|row| !row.deleted)
            }
        };
        if is_shown { Ok(()) } else { Err(no_subject(about).into()) }
    }

    /// The members with these addresses, without repetitions.
    async fn recipients(&self, project: &ProjectCtx, addresses: &str) -> Result<Vec<UserId>> {
        const NAME: &str = "target_value";
        let addresses = validate::text(NAME, addresses, TARGET_MAX)?;
        let addresses = addresses.split(',').map(str::trim).filter(|one| !one.is_empty());
        let addresses: Vec<&str> = addresses.collect();
        if addresses.is_empty() {
            return Err(FieldError::new(NAME, "blank", "This field may not be blank.").into());
        }
        if addresses.len() > RECIPIENTS_MAX {
            let detail = format!("Ensure this field has no more than {RECIPIENTS_MAX} addresses.");
            return Err(FieldError::new(NAME, "max_length", detail).into());
        }
        let (store, organization) = (&self.core.store, project.org.organization);
        let mut found: Vec<UserId> = Vec::new();
        for address in addresses {
            let user = users::by_email(store, &emails::normalise(address)).await?;
            let user = user.filter(|user| user.is_active).map(|user| user.id);
            let member = match user {
                Some(id) => member_rows::rows(store, organization, &[id]).await?.pop(),
                None => None,
            };
            // The same for a user of another organization: it would reveal that there is one.
            let Some(member) = member else {
                let detail = format!("{address} is not the address of a member.");
                return Err(FieldError::new(NAME, "does_not_exist", detail).into());
            };
            if !found.contains(&member.user.id) {
                found.push(member.user.id);
            }
        }
        Ok(found)
    }

    async fn find(&self, project: &ProjectCtx, subscription: &str) -> Result<SubscriptionRow> {
        let missing = || Error::NotFound(NOT_FOUND);
        let id = SubscriptionId::in_path(subscription).ok_or_else(missing)?;
        rows::find(&self.core.store, project.project, id).await?.ok_or_else(missing)
    }

    async fn show(&self, project: &ProjectCtx, row: SubscriptionRow) -> Result<Subscription> {
        let shown = self.shown(project, vec![row]).await?.pop();
        shown.ok_or_else(|| Error::Internal("a subscription is not shown".to_owned()))
    }

    async fn shown(
        &self,
        project: &ProjectCtx,
        found: Vec<SubscriptionRow>,
    ) -> Result<Vec<Subscription>> {
        let ids = found.iter().flat_map(|row| row.recipients.iter().chain([&row.created_by]));
        let ids: BTreeSet<UserId> = ids.copied().collect();
        let users = members::users_by_id(&self.core, project.org.organization, ids).await?;
        let show = |row: SubscriptionRow| {
            let recipients = row.recipients.iter().filter_map(|id| users.get(id));
            let addresses: Vec<&str> = recipients.map(|user| user.email.as_str()).collect();
            Subscription {
                target_value: addresses.join(","),
                summary: words::summary(&row),
                created_by: users.get(&row.created_by).cloned(),
                id: row.id,
                dashboard: row.dashboard,
                insight: row.insight,
                title: row.title,
                target_type: TargetType::Email,
                frequency: row.frequency,
                interval: row.interval,
                byweekday: (!row.weekdays.is_empty()).then_some(row.weekdays),
                bysetpos: row.place,
                count: row.most,
                start_date: row.start_at,
                until_date: row.until_at,
                deleted: row.deleted,
                next_delivery_date: row.due_at,
                last_delivery_date: row.delivered_at,
                last_error: row.error,
                created_at: row.created_at,
            }
        };
        Ok(found.into_iter().map(show).collect())
    }
}

fn no_subject(about: SubscriptionSubject) -> FieldError {
    let (attr, id) = match about {
        SubscriptionSubject::Insight(id) => ("insight", id.0),
        SubscriptionSubject::Dashboard(id) => ("dashboard", id.0),
    };
    let detail = format!("Object with id={id} does not exist.");
    FieldError::new(attr, "does_not_exist", detail)
}

/// A time that is due now counts too.
fn just_before(now: Timestamp) -> Timestamp {
    Timestamp::from_micros(now.micros().saturating_sub(1))
}

/// The first time after this one at which mails are sent. `None`: there is no such time.
fn due(row: &SubscriptionRow, timezone: &str, after: Timestamp) -> Result<Option<Timestamp>> {
    if row.deleted || row.most.is_some_and(|most| row.deliveries >= most) {
        return Ok(None);
    }
    let (frequency, interval) = (row.frequency, row.interval);
    let recurrence =
        Recurrence::of(frequency, interval, &row.weekdays, row.place, row.start_at, timezone);
    let no_zone = || Error::Internal(format!("the zone {timezone} is not in the table"));
    let next = recurrence.ok_or_else(no_zone)?.after(after);
    Ok(next.filter(|next| row.until_at.is_none_or(|until| *next < until)))
}

/// What decides when mails are sent.
fn times(row: &SubscriptionRow) -> impl PartialEq + use<> {
    let of_calendar = (row.frequency, row.interval, row.weekdays.clone(), row.place);
    (of_calendar, row.start_at, row.until_at, row.most, row.deleted)
}

fn apply(
    patch: &SubscriptionPatch,
    recipients: Option<&[UserId]>,
    row: &mut SubscriptionRow,
) -> Result<()> {
    let patch = patch.clone();
    let title = patch.title.try_map(|title| validate::optional_text("title", &title, TITLE_MAX))?;
    row.title = title.over(row.title.take()).filter(|title| !title.is_empty());
    if let Some(recipients) = recipients {
        row.recipients = recipients.to_vec();
    }
    row.frequency = patch.frequency.unwrap_or(row.frequency);
    row.interval = patch.interval.unwrap_or(row.interval);
    validate::within("interval", row.interval, 1, INTERVAL_MAX)?;
    row.weekdays = patch.byweekday.apply(std::mem::take(&mut row.weekdays), Vec::new());
    row.weekdays.sort_by_key(|day| *day as u8);
    row.weekdays.dedup();
    row.place = patch.bysetpos.over(row.place);
    row.most = patch.count.over(row.most);
    if let Some(most) = row.most {
        validate::within("count", most, 1, COUNT_MAX)?;
    }
    row.start_at = patch.start_date.unwrap_or(row.start_at);
    row.until_at = patch.until_date.over(row.until_at);
    row.deleted = patch.deleted.required("deleted")?.unwrap_or(row.deleted);
    Ok(check_times(row)?)
}

/// Refuses days that no time can have.
fn check_times(row: &SubscriptionRow) -> Result<(), FieldError> {
    let invalid = |attr: &str, detail: &str| Err(FieldError::new(attr, "invalid_input", detail));
    match (row.frequency, row.weekdays.is_empty(), row.place) {
        (Frequency::Daily, false, _) => {
            invalid("byweekday", "Days of the week are for weekly and monthly subscriptions.")
        }
        (Frequency::Daily | Frequency::Weekly, _, Some(_)) => {
            invalid("bysetpos", "Only a monthly subscription has one of several days.")
        }
        (Frequency::Monthly, true, Some(_)) => {
            invalid("byweekday", "Enter the days of the week, of which bysetpos is one.")
        }
        (Frequency::Monthly, false, None) => {
            invalid("bysetpos", "Enter which of these days of the month is meant.")
        }
        (_, _, Some(place)) if !PLACES.contains(&place) => {
            Err(validate::invalid_choice("bysetpos", &place))
        }
        _ if row.until_at.is_some_and(|until| until <= row.start_at) => {
            invalid("until_date", "The end must be after the first time.")
        }
        _ => Ok(()),
    }
}

fn changes(before: &SubscriptionRow, after: &SubscriptionRow) -> Changes {
    Changes::none()
        .field("title", &before.title, &after.title)
        .field("target_value", &before.recipients, &after.recipients)
        .field("frequency", &before.frequency, &after.frequency)
        .field("interval", &before.interval, &after.interval)
        .field("byweekday", &before.weekdays, &after.weekdays)
        .field("bysetpos", &before.place, &after.place)
        .field("count", &before.most, &after.most)
        .field("start_date", &before.start_at, &after.start_at)
        .field("until_date", &before.until_at, &after.until_at)
        .field("deleted", &before.deleted, &after.deleted)
}

fn entry(
    project: &ProjectCtx,
    row: &SubscriptionRow,
    action: AuditAction,
    changes: Changes,
) -> Entry {
    let about = About {
        subject: Subject::Subscription,
        id: row.id.to_string(),
        name: row.title.as_deref(),
        project: Some(row.project),
    };
    activity::entry(&project.org.ctx, project.org.organization, about, action, changes)
}

#[cfg(test)]
mod tests;
