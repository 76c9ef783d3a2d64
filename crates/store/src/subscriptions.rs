//! Subscriptions of projects.
//!
//! What belongs here: statements about the tables below. What does not: when mails are sent,
//! and what they contain (`weir-service`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `subscription` | `[project, subscription]` | the record |
//! | `subscription_due` | `[time, project, subscription]` | nothing: when its mails are sent next |
//!
//! The record of the project counts its subscriptions. Subscriptions of a deleted project,
//! insight or dashboard leave their `subscription_due` until it is due.

use surrealdb::types::{SurrealValue, Variables};
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::subscriptions::{Frequency, SUBSCRIPTIONS_MAX, Weekday};
use weir_model::{
    DashboardId, InsightId, OrganizationId, ProjectId, SubscriptionId, Timestamp, UserId,
};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::mail::{self, MailRow, write_mails};
use crate::numbered::{self, Created, NumberedKey};
use crate::update::{Row, update_text};
use crate::{Error, Result, Store, ids, lists};

/// A subscription as stored.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct SubscriptionRow {
    /// Its number.
    #[surreal(rename = "number")]
    pub id: SubscriptionId,
    /// The project that it belongs to.
    pub project: ProjectId,
    /// The insight that it is about.
    pub insight: Option<InsightId>,
    /// The dashboard that it is about.
    pub dashboard: Option<DashboardId>,
    /// A new value after every change, so that mails of an older state are not sent.
    pub revision: Uuid,
    /// Title.
    pub title: Option<String>,
    /// The users who get its mails, as far as they are members.
    pub recipients: Vec<UserId>,
    /// The unit of the interval.
    pub frequency: Frequency,
    /// How many units are between two mails.
    pub interval: i64,
    /// The days of the week. Empty: the day of the first time.
    pub weekdays: Vec<Weekday>,
    /// Which of these days of a month it is.
    pub place: Option<i64>,
    /// After how many times it ends.
    pub most: Option<i64>,
    /// The first time.
    pub start_at: Timestamp,
    /// From when on no mail is sent.
    pub until_at: Option<Timestamp>,
    /// Whether it is hidden.
    pub deleted: bool,
    /// How often mails were sent.
    pub deliveries: i64,
    /// When mails were sent last.
    pub delivered_at: Option<Timestamp>,
    /// When a member last asked for a mail as a test.
    pub tested_at: Option<Timestamp>,
    /// Why the last time had no mail, or a mail without some of the answers.
    pub error: Option<String>,
    /// When mails are sent next.
    pub due_at: Option<Timestamp>,
    /// The user who created it.
    pub created_by: UserId,
    /// When it was created.
    pub created_at: Timestamp,
}

/// The key of a subscription.
pub fn key(project: ProjectId, subscription: SubscriptionId) -> NumberedKey {
    NumberedKey { project, number: subscription.0 }
}

/// Keeps `subscription_due` of a subscription that changes from `$present` to `$row`.
macro_rules! keep_due {
    () => {
        "IF $present.due_at != NONE {
             DELETE type::record('subscription_due', [$present.due_at, $row.project, $row.number])
                 RETURN NONE;
         };
         IF $row.due_at != NONE {
             UPSERT type::record('subscription_due', [$row.due_at, $row.project, $row.number])
                 CONTENT {} RETURN NONE;
         };"
    };
}

impl Row for SubscriptionRow {
    type Id = NumberedKey;
    type With = Vec<MailRow>;
    const TABLE: &'static str = "subscription";
    const UPDATE: &'static str = "subscriptions update";
    const TEXT: &'static str = update_text!(concat!(keep_due!(), write_mails!()));

    fn touch(&mut self, now: Timestamp) {
        self.revision = ids::time_ordered(now);
    }

    fn bind(&self, mails: Vec<MailRow>, vars: &mut Variables) -> Result<()> {
        vars.insert("mails", mail::stored(&mails)?);
        Ok(())
    }
}

const NEXT_NUMBER: Statement = Statement::write(
    "subscriptions next number",
    "RETURN sequence::nextval('subscription_number');",
);

/// A number that no subscription has.
///
/// # Errors
/// Any failure of the store.
pub async fn next_number(store: &Store) -> Result<SubscriptionId> {
    numbered::next(store, NEXT_NUMBER).await.map(SubscriptionId)
}

/// All subscriptions of a project in the order of their numbers, also hidden ones.
///
/// # Errors
/// Any failure of the store.
pub async fn all(store: &Store, project: ProjectId) -> Result<Vec<SubscriptionRow>> {
    numbered::briefs(store, project, "subscriptions of a project", SubscriptionRow::TABLE).await
}

/// A subscription of a project.
///
/// # Errors
/// Any failure of the store.
pub async fn find(
    store: &Store,
    project: ProjectId,
    id: SubscriptionId,
) -> Result<Option<SubscriptionRow>> {
    let found = numbered::rows(store, project, SubscriptionRow::TABLE, &[id.0]).await?;
    Ok(found.into_iter().next())
}

/// A subscription whose mails are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubscriptionDue {
    /// Since when.
    pub at: Timestamp,
    /// Its project.
    pub project: ProjectId,
    /// The subscription.
    pub subscription: SubscriptionId,
}

const DUE: Statement = Statement::read(
    "subscriptions due",
    "SELECT VALUE record::id(id) FROM subscription_due:[0]..=[$now, ..] LIMIT $most;",
);

/// At most `most` of the subscriptions that are due, longest due first, of all projects.
///
/// # Errors
/// Any failure of the store.
pub async fn due(store: &Store, now: Timestamp, most: u32) -> Result<Vec<SubscriptionDue>> {
    let vars = bind! { now: now.micros(), most: i64::from(most) };
    let keys: Vec<Vec<i64>> = lists::ids(store, DUE, vars, |key: Vec<i64>| key).await?;
    keys.into_iter().map(|key| due_of(&key)).collect()
}

fn due_of(key: &[i64]) -> Result<SubscriptionDue> {
    let &[at, project, subscription] = key else {
        let detail = "not a time, a project and a subscription".to_owned();
        return Err(Error::Shape { statement: DUE.name, detail });
    };
    Ok(SubscriptionDue {
        at: Timestamp::from_micros(at),
        project: ProjectId(project),
        subscription: SubscriptionId(subscription),
    })
}

const FORGET_DUE: Statement = Statement::delete(
    "subscriptions forget due",
    "DELETE type::record('subscription_due', [$at, $project, $subscription]) RETURN NONE;",
);

/// Removes the time of a subscription that does not exist any more, or that is due at another
/// time.
///
/// # Errors
/// Any failure of the store.
pub async fn forget_due(store: &Store, due: SubscriptionDue) -> Result<()> {
    let SubscriptionDue { at, project, subscription } = due;
    let vars = bind! { at: at.micros(), project: project.0, subscription: subscription.0 };
    store.db.run(FORGET_DUE, vars).await.map(drop)
}

/// The word that refuses a creation: the insight or the dashboard is deleted.
pub const NO_SUBJECT: &str = "subject";

// The deletion of an insight or a dashboard writes the record of the project too, so that none
// of its subscriptions is left.
const CREATE: Statement = Statement::write(
    "subscriptions create",
    numbered::create_text!(
        "subscription",
        "subscriptions",
        "IF $row.insight != NONE {
             LET $of_insight = (SELECT VALUE number FROM ONLY
                 type::record('insight', [$row.project, $row.insight]));
             IF $of_insight = NONE { THROW 'subject' };
         };
         IF $row.dashboard != NONE {
             LET $of_dashboard = (SELECT VALUE number FROM ONLY
                 type::record('dashboard', [$row.project, $row.dashboard]));
             IF $of_dashboard = NONE { THROW 'subject' };
         };
         IF $row.due_at != NONE {
             UPSERT type::record('subscription_due', [$row.due_at, $row.project, $row.number])
                 CONTENT {} RETURN NONE;
         };"
    ),
);

/// Adds a subscription to this organization's project. Refused with [`NO_SUBJECT`] if what it
/// is about is deleted.
///
/// # Errors
/// Any failure of the store.
pub async fn create(
    store: &Store,
    organization: OrganizationId,
    row: &SubscriptionRow,
    activities: &[Entry],
) -> Result<Created> {
    let most = SUBSCRIPTIONS_MAX;
    numbered::create(store, CREATE, organization, row, most, bind! {}, activities).await
}

const DELETE: Statement = Statement::delete(
    "subscriptions delete",
    concat!(
        "BEGIN;
         LET $row = (SELECT number, due_at
                     FROM ONLY type::record('subscription', [$project, $subscription]));
         IF $row != NONE {
             IF $row.due_at != NONE {
                 DELETE type::record('subscription_due', [$row.due_at, $project, $subscription])
                     RETURN NONE;
             };
             DELETE type::record('subscription', [$project, $subscription]) RETURN NONE;
             UPDATE type::record('project', $project)
                 SET subscriptions = (subscriptions ?? 1) - 1 RETURN NONE;",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Deletes a subscription. Does nothing when it is already deleted.
///
/// # Errors
/// Any failure of the store.
pub async fn delete(
    store: &Store,
    project: ProjectId,
    subscription: SubscriptionId,
    activities: &[Entry],
) -> Result<()> {
    let vars = bind! { project: project.0, subscription: subscription.0 };
    activity::change(store, DELETE, vars, activities).await.map(drop)
}

/// Removes the subscriptions of an insight or a dashboard that is deleted: the argument is the
/// name of the field. Used by that transaction.
macro_rules! remove_subscriptions {
    ($of:literal) => {
        concat!(
            "LET $subscriptions = (SELECT VALUE number FROM subscription:[$project]..=[$project, ..]
                                   WHERE ",
            $of,
            " = $record_number);
             FOR $subscription IN $subscriptions {
                 DELETE type::record('subscription', [$project, $subscription]) RETURN NONE;
             };
             IF $subscriptions != [] {
                 UPDATE type::record('project', $project)
                     SET subscriptions = (subscriptions ?? 0) - array::len($subscriptions)
                     RETURN NONE;
             };"
        )
    };
}
pub(crate) use remove_subscriptions;

/// Removes all subscriptions of a deleted project.
///
/// # Errors
/// When the store cannot be written; a further call continues.
pub(crate) async fn purge(store: &Store, project: ProjectId) -> Result<()> {
    numbered::purge(store, project, &[SubscriptionRow::TABLE]).await
}
