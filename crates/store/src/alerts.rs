//! Alerts of projects.
//!
//! What belongs here: statements about the tables below. What does not: when an alert is
//! checked, and what fires (`weir-service`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `alert` | `[project, alert]` | the record, with its last checks |
//! | `alert_due` | `[time, project, alert]` | nothing: when an alert is checked next |
//! | `alert_webhook` | `[time, uuid]` | a request to a webhook that waits ([`WebhookRow`]) |
//!
//! The record of the project counts its alerts. Alerts of a deleted project or insight leave
//! their `alert_due` until it is due.

mod webhooks;

use surrealdb::types::{SurrealValue, Variables};
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::alerts::{
    ALERTS_MAX, AlertState, CalculationInterval, ConditionKind, ThresholdKind,
};
use weir_model::{AlertId, InsightId, OrganizationId, ProjectId, Timestamp, UserId};

use crate::bind::bind;
use crate::db::Statement;
use crate::mail::{self, MailRow, write_mails};
use crate::numbered::{self, Created, NumberedKey};
use crate::update::{Row, update_text};
use crate::{Error, Result, Store, ids, lists};

pub use webhooks::{WebhookRow, due_webhooks, forget_webhook, retry_webhook};

/// An alert as stored.
#[derive(Debug, Clone, PartialEq, SurrealValue)]
pub struct AlertRow {
    /// Its number.
    #[surreal(rename = "number")]
    pub id: AlertId,
    /// The project that it belongs to.
    pub project: ProjectId,
    /// The insight whose number is checked.
    pub insight: InsightId,
    /// A new value after every change, so that a check of an older state is detected.
    pub revision: Uuid,
    /// Name.
    pub name: String,
    /// Which number is compared.
    pub condition: ConditionKind,
    /// How a difference is written.
    pub threshold: ThresholdKind,
    /// A number below it fires.
    pub lower: Option<f64>,
    /// A number above it fires.
    pub upper: Option<f64>,
    /// The number of the series or formula, from 0.
    pub series: i64,
    /// Whether the current interval is checked.
    pub is_ongoing: bool,
    /// How often it is checked.
    pub interval: CalculationInterval,
    /// Whether it is not checked on weekends.
    pub skips_weekend: bool,
    /// The users who get its mails, as far as they are members.
    pub subscribers: Vec<UserId>,
    /// The address of the webhook.
    pub webhook: Option<String>,
    /// Whether it is checked.
    pub enabled: bool,
    /// Until when it is not checked. The check after that time clears it.
    pub snoozed_until: Option<Timestamp>,
    /// Whether the number was beyond a bound at the last check that succeeded.
    pub is_firing: bool,
    /// Number of checks in a row that failed.
    pub failures: i64,
    /// Why the last check failed.
    pub error: Option<String>,
    /// Why the last request to the webhook failed.
    pub webhook_error: Option<String>,
    /// The number of the last check that had one.
    pub value: Option<f64>,
    /// When it was last checked.
    pub checked_at: Option<Timestamp>,
    /// When it last began to fire.
    pub notified_at: Option<Timestamp>,
    /// When it is checked next.
    pub due_at: Option<Timestamp>,
    /// The last checks, the newest first.
    pub checks: Vec<CheckRow>,
    /// The user who created it.
    pub created_by: UserId,
    /// When it was created.
    pub created_at: Timestamp,
}

impl AlertRow {
    /// A new alert that is checked each day, without bounds and without recipients.
    #[must_use]
    pub fn new(
        (project, id): (ProjectId, AlertId),
        insight: InsightId,
        revision: Uuid,
        created_by: UserId,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            project,
            insight,
            revision,
            name: String::new(),
            condition: ConditionKind::AbsoluteValue,
            threshold: ThresholdKind::Absolute,
            lower: None,
            upper: None,
            series: 0,
            is_ongoing: false,
            interval: CalculationInterval::Daily,
            skips_weekend: false,
            subscribers: Vec::new(),
            webhook: None,
            enabled: true,
            snoozed_until: None,
            is_firing: false,
            failures: 0,
            error: None,
            webhook_error: None,
            value: None,
            checked_at: None,
            notified_at: None,
            due_at: None,
            checks: Vec::new(),
            created_by,
            created_at: now,
        }
    }
}

/// A check as stored.
#[derive(Debug, Clone, PartialEq, SurrealValue)]
pub struct CheckRow {
    /// When it was made.
    pub at: Timestamp,
    /// The number that was compared.
    pub value: Option<f64>,
    /// The result.
    pub state: AlertState,
    /// Whether it led to notifications.
    pub is_notified: bool,
    /// Why it failed.
    pub error: Option<String>,
}

/// What is stored with a check: mails, and a request to the webhook.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Notifications {
    /// The mails to its subscribers.
    pub mails: Vec<MailRow>,
    /// The request to its webhook.
    pub webhook: Option<WebhookRow>,
}

/// The key of an alert.
pub fn key(project: ProjectId, alert: AlertId) -> NumberedKey {
    NumberedKey { project, number: alert.0 }
}

/// Keeps `alert_due` of an alert that changes from `$present` to `$row`, and adds mails and a
/// request to the webhook. If the transaction runs again after it was stored, they may be sent
/// already, so it adds none.
macro_rules! write_dependents {
    () => {
        concat!(
            "IF $present.due_at != NONE {
                 DELETE type::record('alert_due', [$present.due_at, $row.project, $row.number])
                     RETURN NONE;
             };
             IF $row.due_at != NONE {
                 UPSERT type::record('alert_due', [$row.due_at, $row.project, $row.number])
                     CONTENT {} RETURN NONE;
             };
             IF $present.revision != $row.revision {
                 IF $webhook != NONE {
                     UPSERT type::record('alert_webhook', [$webhook.due_at, $webhook.uuid])
                         CONTENT $webhook RETURN NONE;
                 };",
            write_mails!(),
            "};"
        )
    };
}

impl Row for AlertRow {
    type Id = NumberedKey;
    type With = Notifications;
    const TABLE: &'static str = "alert";
    const UPDATE: &'static str = "alerts update";
    const TEXT: &'static str = update_text!(write_dependents!());

    fn touch(&mut self, now: Timestamp) {
        self.revision = ids::time_ordered(now);
    }

    fn bind(&self, with: Notifications, vars: &mut Variables) -> Result<()> {
        vars.insert("mails", mail::stored(&with.mails)?);
        vars.insert("webhook", with.webhook);
        Ok(())
    }
}

const NEXT_NUMBER: Statement =
    Statement::write("alerts next number", "RETURN sequence::nextval('alert_number');");

/// A number that no alert has.
///
/// # Errors
/// Any failure of the store.
pub async fn next_number(store: &Store) -> Result<AlertId> {
    numbered::next(store, NEXT_NUMBER).await.map(AlertId)
}

/// All alerts of a project in the order of their numbers.
///
/// # Errors
/// Any failure of the store.
pub async fn all(store: &Store, project: ProjectId) -> Result<Vec<AlertRow>> {
    numbered::briefs(store, project, "alerts of a project", AlertRow::TABLE).await
}

/// An alert of a project.
///
/// # Errors
/// Any failure of the store.
pub async fn find(store: &Store, project: ProjectId, id: AlertId) -> Result<Option<AlertRow>> {
    let found = numbered::rows(store, project, AlertRow::TABLE, &[id.0]).await?;
    Ok(found.into_iter().next())
}

/// An alert that is due for a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlertDue {
    /// Since when.
    pub at: Timestamp,
    /// Its project.
    pub project: ProjectId,
    /// The alert.
    pub alert: AlertId,
}

const DUE: Statement = Statement::read(
    "alerts due",
    "SELECT VALUE record::id(id) FROM alert_due:[0]..=[$now, ..] LIMIT $most;",
);

/// At most `most` of the alerts that are due for a check, longest due first, of all
/// projects.
///
/// # Errors
/// Any failure of the store.
pub async fn due(store: &Store, now: Timestamp, most: u32) -> Result<Vec<AlertDue>> {
    let vars = bind! { now: now.micros(), most: i64::from(most) };
    let keys: Vec<Vec<i64>> = lists::ids(store, DUE, vars, |key: Vec<i64>| key).await?;
    keys.into_iter().map(|key| due_of(&key)).collect()
}

fn due_of(key: &[i64]) -> Result<AlertDue> {
    let &[at, project, alert] = key else {
        let detail = "not a time, a project and an alert".to_owned();
        return Err(Error::Shape { statement: DUE.name, detail });
    };
    Ok(AlertDue {
        at: Timestamp::from_micros(at),
        project: ProjectId(project),
        alert: AlertId(alert),
    })
}

const FORGET_DUE: Statement = Statement::delete(
    "alerts forget due",
    "DELETE type::record('alert_due', [$at, $project, $alert]) RETURN NONE;",
);

/// Removes the time of a check of an alert that does not exist any more, or that is due at
/// another time.
///
/// # Errors
/// Any failure of the store.
pub async fn forget_due(store: &Store, due: AlertDue) -> Result<()> {
    let AlertDue { at, project, alert } = due;
    let vars = bind! { at: at.micros(), project: project.0, alert: alert.0 };
    store.db.run(FORGET_DUE, vars).await.map(drop)
}

/// The word that refuses a creation: the insight is deleted.
pub const NO_INSIGHT: &str = "insight";

// The deletion of an insight writes the record of the project too, so that none of its alerts
// is left.
const CREATE: Statement = Statement::write(
    "alerts create",
    numbered::create_text!(
        "alert",
        "alerts",
        "LET $of_insight = (SELECT VALUE number FROM ONLY
             type::record('insight', [$row.project, $row.insight]));
         IF $of_insight = NONE { THROW 'insight' };
         IF $row.due_at != NONE {
             UPSERT type::record('alert_due', [$row.due_at, $row.project, $row.number])
                 CONTENT {} RETURN NONE;
         };"
    ),
);

/// Adds an alert to this organization's project. Refused with [`NO_INSIGHT`] if its insight
/// is deleted.
///
/// # Errors
/// Any failure of the store.
pub async fn create(
    store: &Store,
    organization: OrganizationId,
    row: &AlertRow,
    activities: &[Entry],
) -> Result<Created> {
    numbered::create(store, CREATE, organization, row, ALERTS_MAX, bind! {}, activities).await
}

const DELETE: Statement = Statement::delete(
    "alerts delete",
    numbered::delete_text!(
        "alert",
        "alerts",
        "IF $row.due_at != NONE {
             DELETE type::record('alert_due', [$row.due_at, $project, $record_number])
                 RETURN NONE;
         };"
    ),
);

/// Deletes an alert. Does nothing when it is already deleted.
///
/// # Errors
/// Any failure of the store.
pub async fn delete(
    store: &Store,
    project: ProjectId,
    alert: AlertId,
    activities: &[Entry],
) -> Result<()> {
    numbered::delete(store, DELETE, key(project, alert), bind! {}, activities).await
}

/// Removes the alerts of the insight `$record_number`, which is deleted. Used by that transaction.
macro_rules! remove_alerts {
    () => {
        "LET $alerts = (SELECT VALUE number FROM alert:[$project]..=[$project, ..]
                        WHERE insight = $record_number);
         FOR $alert IN $alerts {
             DELETE type::record('alert', [$project, $alert]) RETURN NONE;
         };
         IF $alerts != [] {
             UPDATE type::record('project', $project)
                 SET alerts = (alerts ?? 0) - array::len($alerts) RETURN NONE;
         };"
    };
}
pub(crate) use remove_alerts;

/// Removes all alerts of a deleted project.
///
/// # Errors
/// When the store cannot be written; a further call continues.
pub(crate) async fn purge(store: &Store, project: ProjectId) -> Result<()> {
    numbered::purge(store, project, &[AlertRow::TABLE]).await
}

#[cfg(test)]
mod tests;
