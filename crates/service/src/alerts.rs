//! Alerts on saved insights (API-67, API-68).
//!
//! What belongs here: who may change alerts, and which rules there are. What does not: the
//! answers to questions (`questions`), and sending mails and requests (the server).

mod checks;
mod counts;
mod evaluate;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;
use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::alerts::{
    ALERTS_MAX, Alert, AlertBounds, AlertCheck, AlertCondition, AlertConfig, AlertConfigKind,
    AlertInput, AlertInsight, AlertPatch, AlertState, AlertThreshold, ConditionKind, NAME_MAX,
    SERIES_INDEX_MAX, SUBSCRIBERS_MAX, ThresholdConfiguration, WEBHOOK_MAX,
};
use weir_model::errors::FieldError;
use weir_model::exports::addresses::Address;
use weir_model::pagination::{Page, Paged};
use weir_model::{AlertId, InsightId, Patch, ProjectId, Timestamp, UserId, validate};
use weir_questions::Query;
use weir_questions::query::{Display, TrendsFormula, TrendsQuery};
use weir_store::alerts::{self as rows, AlertRow, CheckRow, NO_INSIGHT};
use weir_store::ids;
use weir_store::insights::{self as insight_rows, InsightRow};
use weir_store::numbered::Created;
use weir_store::update::lock;

use self::evaluate::{check_bounds, check_question};
use crate::activity::{self, About, Changes};
use crate::ctx::ProjectCtx;
use crate::error::{Error, NOT_FOUND};
use crate::outcome_counts::OutcomeCounts;
use crate::policy::{self, Action};
use crate::questions::Questions;
use crate::unchecked::Unchecked;
use crate::update::{not_created, stored, update};
use crate::{Core, Result, members};

pub use counts::CheckOutcome;
pub use webhooks::DueWebhook;

/// An alert that fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiringAlert {
    /// Its name.
    pub name: String,
    /// The insight whose number is beyond a bound.
    pub insight: InsightId,
}

/// The service for alerts.
#[derive(Clone)]
pub struct Alerts {
    core: Arc<Core>,
    questions: Questions,
    checks: Arc<OutcomeCounts<CheckOutcome>>,
}

impl Alerts {
    pub(crate) fn new(core: Arc<Core>, questions: Questions) -> Self {
        Self { core, questions, checks: Arc::default() }
    }

    /// How many checks ended in each way since the last call.
    pub fn take_checks(&self) -> HashMap<CheckOutcome, u64> {
        self.checks.take()
    }

    /// The alerts of the project, or of one of its insights, in the order of their creation.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn list(
        &self,
        project: &ProjectCtx,
        insight: Option<InsightId>,
        page: Page,
    ) -> Result<Paged<Alert>> {
        policy::check(&project.org, Action::ReadAlerts)?;
        let mut found = rows::all(&self.core.store, project.project).await?;
        found.retain(|row| insight.is_none_or(|insight| row.insight == insight));
        let Paged { count, results } = page.of(found);
        Ok(Paged { count, results: self.shown(project, results).await? })
    }

    /// The alerts of the project that fire, in the order of their creation, without those of
    /// hidden insights.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn firing(&self, project: &ProjectCtx) -> Result<Vec<FiringAlert>> {
        policy::check(&project.org, Action::ReadAlerts)?;
        let store = &self.core.store;
        let mut found = rows::all(store, project.project).await?;
        found.retain(|row| state(row) == AlertState::Firing);
        let ids: BTreeSet<InsightId> = found.iter().map(|row| row.insight).collect();
        let ids: Vec<InsightId> = ids.into_iter().collect();
        let insights = insight_rows::rows(store, project.project, &ids).await?.into_iter();
        let shown: BTreeSet<InsightId> =
            insights.filter(|row| !row.deleted).map(|row| row.id).collect();
        found.retain(|row| shown.contains(&row.insight));
        let firing = |row: AlertRow| FiringAlert { name: row.name, insight: row.insight };
        Ok(found.into_iter().map(firing).collect())
    }

    /// One alert.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn get(&self, project: &ProjectCtx, alert: &str) -> Result<Alert> {
        policy::check(&project.org, Action::ReadAlerts)?;
        let row = self.find(project, alert).await?;
        self.show(project, row).await
    }

    /// Adds an alert. It is checked immediately.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Invalid`], also for an insight that is missing or has
    /// no number to check, for users who are no members, and for too many alerts.
    pub async fn create(
        &self,
        project: &ProjectCtx,
        input: impl Into<Unchecked<'_, AlertInput>>,
    ) -> Result<Alert> {
        policy::check_sending(&project.org, Action::WriteAlerts)?;
        let AlertInput { insight, name, threshold, rest } = input.into().read()?;
        let query = self.question(project.project, insight).await?;
        let (store, ctx) = (&self.core.store, &project.org.ctx);
        let id = (project.project, rows::next_number(store).await?);
        let new = AlertRow {
            name: validate::text("name", &name, NAME_MAX)?,
            threshold: threshold.kind,
            lower: threshold.bounds.lower,
            upper: threshold.bounds.upper,
            ..AlertRow::new(id, insight, ids::time_ordered(ctx.now), ctx.user(), ctx.now)
        };
        let mut row = new.clone();
        apply(&rest, &mut row, ctx.now)?;
        check_question(&row, &query)?;
        self.check_targets(project, None, &row).await?;
        row.due_at = due(&row, ctx.now);
        let changes = Changes::none()
            .field("name", &None, &Some(&row.name))
            .field("insight", &None, &Some(row.insight))
            .field("threshold", &None, &Some(threshold_of(&row)))
            .and(changes(&new, &row));
        let entry = entry(project, &row, AuditAction::Created, changes);
        match rows::create(store, project.org.organization, &row, &[entry]).await? {
            Created::Yes => self.show(project, row).await,
            Created::Refused(reason) if reason == NO_INSIGHT => Err(no_insight(insight).into()),
            refused => Err(not_created(refused, ALERTS_MAX, "alerts")),
        }
    }

    /// Changes an alert. After a change of its rule it is checked immediately, as if it had
    /// not fired.
    ///
    /// # Errors
    /// As [`create`](Self::create); [`Error::NotFound`].
    pub async fn update(
        &self,
        project: &ProjectCtx,
        alert: &str,
        patch: impl Into<Unchecked<'_, AlertPatch>>,
    ) -> Result<Alert> {
        policy::check_sending(&project.org, Action::WriteAlerts)?;
        let before = self.find(project, alert).await?;
        let patch = patch.into().read()?;
        let now = project.org.ctx.now;
        let mut after = before.clone();
        apply(&patch, &mut after, now)?;
        if rule(&before) != rule(&after) {
            check_question(&after, &self.question(project.project, before.insight).await?)?;
        }
        self.check_targets(project, Some(&before), &after).await?;
        let change = |row: &mut AlertRow| {
            let before = row.clone();
            apply(&patch, row, now)?;
            reschedule(&before, row, now);
            Ok::<_, Error>(())
        };
        let entries = |before: &AlertRow, after: &AlertRow| {
            vec![entry(project, after, AuditAction::Updated, changes(before, after))]
        };
        let key = rows::key(project.project, before.id);
        let row = stored(update(&self.core, key, now, (), change, entries).await?)?;
        self.show(project, row).await
    }

    /// Deletes an alert for ever.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn delete(&self, project: &ProjectCtx, alert: &str) -> Result<()> {
        policy::check(&project.org, Action::WriteAlerts)?;
        let id = self.find(project, alert).await?.id;
        let store = &self.core.store;
        let _permit = lock::<AlertRow>(store, &rows::key(project.project, id)).await;
        let row = self.find(project, alert).await?;
        let changes = Changes::none().field("name", &Some(&row.name), &None);
        let entry = entry(project, &row, AuditAction::Deleted, changes);
        Ok(rows::delete(store, project.project, id, &[entry]).await?)
    }

    /// The question of an insight that is not hidden.
    async fn question(&self, project: ProjectId, insight: InsightId) -> Result<TrendsQuery> {
        let found = insight_rows::rows(&self.core.store, project, &[insight]).await?;
        let row = found.into_iter().find(|row| !row.deleted);
        Ok(trends(&row.ok_or_else(|| no_insight(insight))?)?)
    }

    /// Refuses subscribers who are no members, and an address that must not be requested, as
    /// far as they are new.
    async fn check_targets(
        &self,
        project: &ProjectCtx,
        before: Option<&AlertRow>,
        row: &AlertRow,
    ) -> Result<()> {
        if before.is_none_or(|before| before.subscribers != row.subscribers) {
            let ids: BTreeSet<UserId> = row.subscribers.iter().copied().collect();
            let known = members::users_by_id(&self.core, project.org.organization, ids).await?;
            if let Some((at, id)) =
                row.subscribers.iter().enumerate().find(|(_, id)| !known.contains_key(*id))
            {
                let detail = format!("Object with id={id} does not exist.");
                let attr = format!("subscribed_users__{at}");
                return Err(FieldError::new(&attr, "does_not_exist", detail).into());
            }
        }
        match &row.webhook {
            Some(url) if before.is_none_or(|before| before.webhook != row.webhook) => {
                self.check_webhook(url)
            }
            _ => Ok(()),
        }
    }

    fn check_webhook(&self, url: &str) -> Result<()> {
        let hosts = &self.core.hosts;
        let detail = if !(url.starts_with("https://") || url.starts_with("http://")) {
            "Enter an address that begins with https:// or http://.".to_owned()
        } else if hosts.refuses(url) {
            "This address is on a network that this server does not connect to. The operator can \
             allow it with egress_allow."
                .to_owned()
        } else if let Some(fault) = hosts.fault(&Address::Url(url.to_owned())) {
            fault
        } else {
            return Ok(());
        };
        Err(FieldError::new("webhook_url", "invalid_input", detail).into())
    }

    async fn find(&self, project: &ProjectCtx, alert: &str) -> Result<AlertRow> {
        let missing = || Error::NotFound(NOT_FOUND);
        let id = AlertId::in_path(alert).ok_or_else(missing)?;
        rows::find(&self.core.store, project.project, id).await?.ok_or_else(missing)
    }

    async fn show(&self, project: &ProjectCtx, row: AlertRow) -> Result<Alert> {
        let shown = self.shown(project, vec![row]).await?.pop();
        // Its insight was deleted at the same time, and the alert with it.
        shown.ok_or(Error::NotFound(NOT_FOUND))
    }

    async fn shown(&self, project: &ProjectCtx, found: Vec<AlertRow>) -> Result<Vec<Alert>> {
        let store = &self.core.store;
        let users = found.iter().flat_map(|row| row.subscribers.iter().chain([&row.created_by]));
        let users = users.copied().collect();
        let users = members::users_by_id(&self.core, project.org.organization, users).await?;
        let ids: BTreeSet<InsightId> = found.iter().map(|row| row.insight).collect();
        let ids: Vec<InsightId> = ids.into_iter().collect();
        let insights = insight_rows::rows(store, project.project, &ids).await?.into_iter();
        let insight = |row: InsightRow| AlertInsight {
            id: row.id,
            short_id: row.short_id,
            name: row.name,
            derived_name: row.derived_name,
        };
        let insights: BTreeMap<InsightId, AlertInsight> =
            insights.map(|row| (row.id, insight(row))).collect();
        let show = |row: AlertRow| {
            let insight = insights.get(&row.insight)?.clone();
            Some(Alert {
                id: row.id,
                insight,
                state: state(&row),
                threshold: AlertThreshold { configuration: threshold_of(&row) },
                condition: AlertCondition { kind: row.condition },
                config: config_of(&row),
                subscribed_users: row
                    .subscribers
                    .iter()
                    .filter_map(|id| users.get(id).cloned())
                    .collect(),
                created_by: users.get(&row.created_by).cloned(),
                name: row.name,
                webhook_url: row.webhook,
                calculation_interval: row.interval,
                skip_weekend: row.skips_weekend,
                enabled: row.enabled,
                snoozed_until: row.snoozed_until,
                last_checked_at: row.checked_at,
                last_notified_at: row.notified_at,
                next_check_at: row.due_at,
                last_value: row.value,
                last_error: row.error,
                webhook_error: row.webhook_error,
                checks: row.checks.into_iter().map(check).collect(),
                created_at: row.created_at,
            })
        };
        Ok(found.into_iter().filter_map(show).collect())
    }
}

fn no_insight(insight: InsightId) -> FieldError {
    let detail = format!("Object with id={insight} does not exist.");
    FieldError::new("insight", "does_not_exist", detail)
}

fn check(row: CheckRow) -> AlertCheck {
    AlertCheck {
        created_at: row.at,
        calculated_value: row.value,
        state: row.state,
        targets_notified: row.is_notified,
        error: row.error,
    }
}

/// The names of the series or formulas of a question, in the order of their numbers. Empty:
/// alerts cannot check it.
#[must_use]
pub fn series(query: &Value) -> Vec<String> {
    let Ok(Query::Trends(query)) = Query::read(query) else { return Vec::new() };
    if query.filter.display == Display::Cumulative {
        return Vec::new();
    }
    if query.filter.formulas.is_empty() {
        return query.series.iter().map(|series| series.label().to_owned()).collect();
    }
    let name = |formula: &TrendsFormula| match &formula.custom_name {
        Some(name) => name.clone(),
        None => formula.formula.text().to_owned(),
    };
    query.filter.formulas.iter().map(name).collect()
}

/// The question of an insight whose numbers can be checked.
fn trends(row: &InsightRow) -> Result<TrendsQuery, FieldError> {
    let query = serde_json::from_str::<Value>(&row.query).unwrap_or_default();
    match Query::read(&query) {
        Ok(Query::Trends(query)) => Ok(query),
        Ok(_) | Err(_) => {
            let detail = "Alerts are about insights with trends.";
            Err(FieldError::new("insight", "invalid_input", detail))
        }
    }
}

fn state(row: &AlertRow) -> AlertState {
    match row {
        AlertRow { snoozed_until: Some(_), .. } => AlertState::Snoozed,
        AlertRow { failures: 1.., .. } => AlertState::Errored,
        AlertRow { is_firing: true, .. } => AlertState::Firing,
        _ => AlertState::NotFiring,
    }
}

fn threshold_of(row: &AlertRow) -> ThresholdConfiguration {
    let bounds = AlertBounds { lower: row.lower, upper: row.upper };
    ThresholdConfiguration { kind: row.threshold, bounds }
}

fn config_of(row: &AlertRow) -> AlertConfig {
    AlertConfig {
        kind: AlertConfigKind::Trends,
        series_index: row.series,
        check_ongoing_interval: row.is_ongoing,
    }
}

/// What decides whether a number fires.
fn rule(row: &AlertRow) -> (ThresholdConfiguration, AlertConfig, ConditionKind) {
    (threshold_of(row), config_of(row), row.condition)
}

fn apply(patch: &AlertPatch, row: &mut AlertRow, now: Timestamp) -> Result<()> {
    let patch = patch.clone();
    if let Some(name) = patch.name.required("name")? {
        row.name = validate::text("name", &name, NAME_MAX)?;
    }
    if let Some(ThresholdConfiguration { kind, bounds }) = patch.threshold {
        row.threshold = kind;
        (row.lower, row.upper) = (bounds.lower, bounds.upper);
    }
    row.condition = patch.condition.unwrap_or(row.condition);
    if let Some(AlertConfig { kind: _, series_index, check_ongoing_interval }) = patch.config {
        validate::within("config__series_index", series_index, 0, SERIES_INDEX_MAX)?;
        (row.series, row.is_ongoing) = (series_index, check_ongoing_interval);
    }
    check_bounds(row)?;
    row.interval = patch.calculation_interval.unwrap_or(row.interval);
    row.skips_weekend = patch.skip_weekend.required("skip_weekend")?.unwrap_or(row.skips_weekend);
    row.enabled = patch.enabled.required("enabled")?.unwrap_or(row.enabled);
    row.subscribers = subscribers(patch.subscribed_users, std::mem::take(&mut row.subscribers))?;
    let webhook =
        patch.webhook_url.try_map(|url| validate::optional_text("webhook_url", &url, WEBHOOK_MAX));
    row.webhook = webhook?.over(row.webhook.take()).filter(|url| !url.is_empty());
    // An answer can be sent back after the time.
    if let Patch::Set(until) = patch.snoozed_until
        && row.snoozed_until != Some(until)
        && until <= now
    {
        let detail = "Enter a time in the future.";
        return Err(FieldError::new("snoozed_until", "invalid_input", detail).into());
    }
    row.snoozed_until = patch.snoozed_until.over(row.snoozed_until);
    Ok(())
}

/// The subscribers, without repetitions.
fn subscribers(patch: Patch<Vec<UserId>>, present: Vec<UserId>) -> Result<Vec<UserId>, FieldError> {
    let mut all = patch.apply(present, Vec::new());
    validate::list_length("subscribed_users", all.len(), SUBSCRIBERS_MAX)?;
    let mut seen = BTreeSet::new();
    all.retain(|id| seen.insert(*id));
    Ok(all)
}

/// When an alert is checked after a change.
fn due(row: &AlertRow, now: Timestamp) -> Option<Timestamp> {
    row.enabled.then(|| row.snoozed_until.unwrap_or(now))
}

/// Forgets the results of an earlier rule, and sets the time of the next check.
fn reschedule(before: &AlertRow, row: &mut AlertRow, now: Timestamp) {
    let times = |row: &AlertRow| (row.interval, row.skips_weekend, row.enabled, row.snoozed_until);
    if rule(before) == rule(row) && times(before) == times(row) {
        return;
    }
    if rule(before) != rule(row)
        || before.enabled != row.enabled
        || before.snoozed_until != row.snoozed_until
    {
        (row.is_firing, row.failures, row.error) = (false, 0, None);
    }
    row.due_at = due(row, now);
}

fn changes(before: &AlertRow, after: &AlertRow) -> Changes {
    let mut changes = Changes::none()
        .field("name", &before.name, &after.name)
        .field("threshold", &threshold_of(before), &threshold_of(after))
        .field("condition", &before.condition, &after.condition)
        .field("config", &config_of(before), &config_of(after))
        .field("calculation_interval", &before.interval, &after.interval)
        .field("skip_weekend", &before.skips_weekend, &after.skips_weekend)
        .field("subscribed_users", &before.subscribers, &after.subscribers)
        .field("enabled", &before.enabled, &after.enabled)
        .field("snoozed_until", &before.snoozed_until, &after.snoozed_until);
    // Addresses of webhooks often have a token.
    if before.webhook != after.webhook {
        changes = changes.secret("webhook_url");
    }
    changes
}

fn entry(project: &ProjectCtx, row: &AlertRow, action: AuditAction, changes: Changes) -> Entry {
    let about = About {
        subject: Subject::Alert,
        id: row.id.to_string(),
        name: Some(&row.name),
        project: Some(row.project),
    };
    activity::entry(&project.org.ctx, project.org.organization, about, action, changes)
}

#[cfg(test)]
mod tests;
