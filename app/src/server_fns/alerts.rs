//! Alerts of an insight.

#![allow(clippy::too_many_arguments, reason = "the fields of a form")]

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::alerts::AlertState;

#[cfg(feature = "ssr")]
use crate::context::{enter_project, go, notice, redirect_with_notice, ui_error};
#[cfg(feature = "ssr")]
use crate::edits::{Edits, TICKED};
use crate::error::UiError;

/// The end of the word of a condition whose bounds are in percent.
pub(crate) const PERCENT: &str = "_percent";

/// The alerts of an insight, and what their form offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AlertsView {
    /// Number of the insight.
    pub(crate) insight: i64,
    /// Its name.
    pub(crate) name: String,
    /// The names of its series or formulas. Empty: it has no number to check.
    pub(crate) series: Vec<String>,
    /// Members who can get mails: id and name.
    pub(crate) members: Vec<(String, String)>,
    /// Whether this instance sends mail.
    pub(crate) sends_mail: bool,
    /// The form of a new alert.
    pub(crate) new: AlertForm,
    pub(crate) alerts: Vec<AlertView>,
}

/// An alert.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AlertView {
    pub(crate) id: i64,
    pub(crate) form: AlertForm,
    pub(crate) state: AlertState,
    /// The number of the last check that had one.
    pub(crate) value: Option<f64>,
    /// Time of the last check. Empty: it was not checked yet.
    pub(crate) checked_at: String,
    /// Time of the next check. Empty: it is off.
    pub(crate) next_check_at: String,
    /// Until when it is not checked. Empty: it is.
    pub(crate) snoozed_until: String,
    /// Why the last check failed. Empty: it did not.
    pub(crate) error: String,
    /// Why the last request to the webhook failed. Empty: it did not.
    pub(crate) webhook_error: String,
    /// The last checks, the newest first. Only the alert that the page shows has them.
    pub(crate) checks: Vec<CheckView>,
}

/// A check of an alert.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CheckView {
    pub(crate) at: String,
    pub(crate) value: Option<f64>,
    pub(crate) state: AlertState,
    pub(crate) is_notified: bool,
    /// Why it failed. Empty: it did not.
    pub(crate) error: String,
}

/// The values of the form of an alert, as its fields show them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AlertForm {
    pub(crate) name: String,
    /// The number of the series.
    pub(crate) series: String,
    /// Which number is compared, such as `value` or `increase_percent`.
    pub(crate) condition: String,
    pub(crate) lower: String,
    pub(crate) upper: String,
    /// `current`, or empty for the last complete interval.
    pub(crate) interval: String,
    /// How often it is checked.
    pub(crate) every: String,
    pub(crate) webhook: String,
    pub(crate) skip_weekend: bool,
    pub(crate) enabled: bool,
    /// The ids of the members who get mails, in order, with commas.
    pub(crate) subscribers: String,
}

/// Lists the alerts of an insight, with the last checks of the one with the number `alert`.
#[server(prefix = "/_fn", endpoint = "list_alerts")]
pub(crate) async fn list_alerts(
    project: i64,
    insight: String,
    #[server(default)] alert: String,
) -> Result<AlertsView, UiError> {
    use weir_model::alerts::{ALERTS_MAX, Alert, AlertCheck, CalculationInterval};
    use weir_model::members::MemberQuery;
    use weir_model::pagination::Page;
    use weir_model::users::User;

    /// The most members that the form offers.
    const MEMBERS: u64 = 100;

    let (services, ctx) = enter_project(project).await?;
    let of = services.insights.get(&ctx, &insight).await.map_err(ui_error)?;
    let page = Page { limit: ALERTS_MAX as u64, offset: 0 };
    let found = services.alerts.list(&ctx, Some(of.id), page).await.map_err(ui_error)?;
    let page = Page { limit: MEMBERS, offset: 0 };
    let offered = services.members.list(&ctx.org, &MemberQuery::default(), page).await;
    let offered = offered.map_err(ui_error)?.results.into_iter().map(|member| member.user);
    let subscribed = found.results.iter().flat_map(|alert| alert.subscribed_users.clone());
    let mut members: Vec<(String, String)> = Vec::new();
    for User { uuid, first_name, last_name, email, .. } in offered.chain(subscribed) {
        let id = uuid.to_string();
        if members.iter().all(|(known, _)| *known != id) {
            members.push((id, super::members::full_name(&first_name, &last_name, &email)));
        }
    }
    let time =
        |time: Option<weir_model::Timestamp>| time.map(|time| time.to_string()).unwrap_or_default();
    let check = |check: AlertCheck| CheckView {
        at: check.created_at.to_string(),
        value: check.calculated_value,
        state: check.state,
        is_notified: check.targets_notified,
        error: check.error.unwrap_or_default(),
    };
    let view = |of: Alert| AlertView {
        id: of.id.0,
        form: AlertForm::of(&of),
        state: of.state,
        value: of.last_value,
        checked_at: time(of.last_checked_at),
        next_check_at: time(of.next_check_at),
        snoozed_until: time(of.snoozed_until),
        error: of.last_error.unwrap_or_default(),
        webhook_error: of.webhook_error.unwrap_or_default(),
        checks: match of.id.to_string() == alert {
            true => of.checks.into_iter().map(check).collect(),
            false => Vec::new(),
        },
    };
    Ok(AlertsView {
        insight: of.id.0,
        name: super::insights::name_of(&of),
        series: weir_service::alerts::series(&of.query),
        members,
        sends_mail: services.mails.is_open(),
        new: AlertForm {
            name: String::new(),
            series: "0".to_owned(),
            condition: "value".to_owned(),
            lower: String::new(),
            upper: String::new(),
            interval: String::new(),
            every: CalculationInterval::Daily.text().to_owned(),
            webhook: String::new(),
            skip_weekend: false,
            enabled: true,
            subscribers: ctx.org.ctx.user().to_string(),
        },
        alerts: found.results.into_iter().map(view).collect(),
    })
}

/// Saves an alert: a new one, or the changed fields of the one with this number.
#[server(prefix = "/_fn", endpoint = "save_alert")]
pub(crate) async fn save_alert(
    project: i64,
    insight: String,
    #[server(default)] alert: String,
    #[server(default)] seen: String,
    name: String,
    #[server(default)] series: String,
    #[server(default)] condition: String,
    #[server(default)] lower: String,
    #[server(default)] upper: String,
    #[server(default)] interval: String,
    #[server(default)] every: String,
    #[server(default)] webhook: String,
    // Browsers do not send unticked boxes.
    #[server(default)] skip_weekend: bool,
    #[server(default)] enabled: bool,
    #[server(default)] subscribers: Vec<String>,
) -> Result<(), UiError> {
    use weir_model::alerts::AlertInput;

    let (services, ctx) = enter_project(project).await?;
    let sent = AlertForm {
        name,
        series,
        condition,
        lower,
        upper,
        interval,
        every,
        webhook,
        skip_weekend,
        enabled,
        subscribers: joined(subscribers),
    };
    let alerts = &services.alerts;
    let saved = if alert.is_empty() {
        let of = services.insights.get(&ctx, &insight).await.map_err(ui_error)?;
        let input = AlertInput {
            insight: of.id,
            name: sent.name.clone(),
            threshold: sent.threshold()?,
            rest: sent.patch()?,
        };
        alerts.create(&ctx, input).await
    } else {
        let stored = alerts.get(&ctx, &alert).await.map_err(ui_error)?;
        let mut edits = Edits::of(&seen);
        let form = sent.over(AlertForm::of(&stored), &mut edits);
        edits.check()?;
        alerts.update(&ctx, &alert, form.patch()?).await
    };
    let saved = saved.map_err(|error| at_field(ui_error(error)))?;
    let path = format!("/projects/{project}/insights/{insight}/alerts?alert={}", saved.id);
    redirect_with_notice(&path, &format!("Saved {}.", saved.name));
    Ok(())
}

/// Stops checking an alert for so many hours. 0: it is checked again.
#[server(prefix = "/_fn", endpoint = "snooze_alert")]
pub(crate) async fn snooze_alert(project: i64, alert: String, hours: u32) -> Result<(), UiError> {
    use weir_model::Patch;
    use weir_model::alerts::AlertPatch;

    let (services, ctx) = enter_project(project).await?;
    let until = ctx.org.ctx.now.plus_seconds(i64::from(hours) * 60 * 60);
    let snoozed_until = if hours == 0 { Patch::Clear } else { Patch::Set(until) };
    let patch = AlertPatch { snoozed_until, ..AlertPatch::default() };
    let saved = services.alerts.update(&ctx, &alert, patch).await.map_err(ui_error)?;
    let what = if hours == 0 { "is checked again" } else { "is snoozed" };
    notice(&format!("{} {what}.", saved.name));
    Ok(())
}

/// Deletes an alert for ever.
#[server(prefix = "/_fn", endpoint = "delete_alert")]
pub(crate) async fn delete_alert(
    project: i64,
    insight: String,
    alert: String,
) -> Result<(), UiError> {
    let (services, ctx) = enter_project(project).await?;
    let name = services.alerts.get(&ctx, &alert).await.map_err(ui_error)?.name;
    services.alerts.delete(&ctx, &alert).await.map_err(ui_error)?;
    notice(&format!("Deleted {name}."));
    go(&format!("/projects/{project}/insights/{insight}/alerts"));
    Ok(())
}

/// Ids in order, with commas.
#[cfg(feature = "ssr")]
fn joined(ids: impl IntoIterator<Item = String>) -> String {
    let mut ids: Vec<String> = ids.into_iter().collect();
    ids.sort();
    ids.join(",")
}

#[cfg(feature = "ssr")]
impl AlertForm {
    fn of(alert: &weir_model::alerts::Alert) -> Self {
        use weir_model::alerts::{AlertThreshold, ConditionKind, ThresholdKind};

        let AlertThreshold { configuration } = alert.threshold;
        let is_share = configuration.kind == ThresholdKind::Percentage;
        let bound = |bound: Option<f64>| match bound {
            // 0.07 is no binary fraction: 100 times of it are not exactly 7.
            Some(share) if is_share => ((share * 1e8).round() / 1e6).to_string(),
            Some(number) => number.to_string(),
            None => String::new(),
        };
        let condition = match alert.condition.kind {
            ConditionKind::AbsoluteValue => "value",
            ConditionKind::RelativeIncrease => "increase",
            ConditionKind::RelativeDecrease => "decrease",
        };
        let is_ongoing = alert.config.check_ongoing_interval;
        Self {
            name: alert.name.clone(),
            series: alert.config.series_index.to_string(),
            condition: format!("{condition}{}", if is_share { PERCENT } else { "" }),
            lower: bound(configuration.bounds.lower),
            upper: bound(configuration.bounds.upper),
            interval: if is_ongoing { "current".to_owned() } else { String::new() },
            every: alert.calculation_interval.text().to_owned(),
            webhook: alert.webhook_url.clone().unwrap_or_default(),
            skip_weekend: alert.skip_weekend,
            enabled: alert.enabled,
            subscribers: joined(alert.subscribed_users.iter().map(|user| user.uuid.to_string())),
        }
    }

    /// The stored form with the fields that the sender has changed.
    fn over(self, stored: Self, edits: &mut Edits) -> Self {
        let mut of = |name: &str, label: &str, sent: String, stored: String| {
            if edits.is_own(name, label, &sent, &stored) { sent } else { stored }
        };
        let word = |ticked: bool| if ticked { TICKED.to_owned() } else { String::new() };
        Self {
            name: of("name", "Name", self.name, stored.name),
            series: of("series", "Series", self.series, stored.series),
            condition: of("condition", "Compare", self.condition, stored.condition),
            lower: of("lower", "Lower bound", self.lower, stored.lower),
            upper: of("upper", "Upper bound", self.upper, stored.upper),
            interval: of("interval", "Interval", self.interval, stored.interval),
            every: of("every", "Check", self.every, stored.every),
            webhook: of("webhook", "Webhook", self.webhook, stored.webhook),
            subscribers: of("subscribers", "Mail to", self.subscribers, stored.subscribers),
            skip_weekend: of(
                "skip_weekend",
                "Skip weekends",
                word(self.skip_weekend),
                word(stored.skip_weekend),
            ) == TICKED,
            enabled: of("enabled", "Check this alert", word(self.enabled), word(stored.enabled))
                == TICKED,
        }
    }

    fn threshold(&self) -> Result<weir_model::alerts::ThresholdConfiguration, UiError> {
        use weir_model::alerts::{AlertBounds, ThresholdConfiguration, ThresholdKind};

        let is_share = self.condition.ends_with(PERCENT);
        let bound = |name: &str, text: &str| {
            let text = text.trim();
            if text.is_empty() {
                return Ok(None);
            }
            let number = text.parse().ok().filter(|number: &f64| number.is_finite());
            let wrong = "Enter a number, such as 10 or 0.5.";
            let number = number.ok_or_else(|| UiError::field(name, "invalid_input", wrong))?;
            Ok::<_, UiError>(Some(if is_share { number / 100.0 } else { number }))
        };
        let bounds = AlertBounds {
            lower: bound("lower", &self.lower)?,
            upper: bound("upper", &self.upper)?,
        };
        let kind = if is_share { ThresholdKind::Percentage } else { ThresholdKind::Absolute };
        Ok(ThresholdConfiguration { kind, bounds })
    }

    /// The change to the values of this form.
    fn patch(&self) -> Result<weir_model::alerts::AlertPatch, UiError> {
        use weir_model::Patch;
        use weir_model::alerts::{
            AlertConfig, AlertConfigKind, AlertPatch, CalculationInterval, ConditionKind,
        };

        let wrong = |name: &str, text: &str| {
            let detail = format!("\"{text}\" is not a valid choice.");
            UiError::field(name, "invalid_choice", &detail)
        };
        let condition = match self.condition.trim_end_matches(PERCENT) {
            "value" => ConditionKind::AbsoluteValue,
            "increase" => ConditionKind::RelativeIncrease,
            "decrease" => ConditionKind::RelativeDecrease,
            other => return Err(wrong("condition", other)),
        };
        let series_index = self.series.parse().map_err(|_| wrong("series", &self.series))?;
        let every = CalculationInterval::of(&self.every);
        let ids = self.subscribers.split(',').filter(|id| !id.is_empty());
        let ids: Result<Vec<weir_model::UserId>, UiError> =
            ids.map(|id| id.parse().map_err(|_| wrong("subscribers", id))).collect();
        Ok(AlertPatch {
            name: Patch::Set(self.name.clone()),
            subscribed_users: Patch::Set(ids?),
            webhook_url: Patch::Set(self.webhook.clone()),
            threshold: Some(self.threshold()?),
            condition: Some(condition),
            config: Some(AlertConfig {
                kind: AlertConfigKind::Trends,
                series_index,
                check_ongoing_interval: self.interval == "current",
            }),
            calculation_interval: Some(every.ok_or_else(|| wrong("every", &self.every))?),
            skip_weekend: Patch::Set(self.skip_weekend),
            enabled: Patch::Set(self.enabled),
            snoozed_until: Patch::Keep,
        })
    }
}

/// Moves a fault to the field of the form.
#[cfg(feature = "ssr")]
fn at_field(error: UiError) -> UiError {
    use weir_model::errors::FieldError;

    let UiError::Field(fault) = error else { return error };
    let attr = fault.attr.map(|attr| {
        let field = match attr.as_str() {
            "threshold__configuration__bounds" => "lower",
            "threshold__configuration__type" | "condition__type" => "condition",
            "config__series_index" => "series",
            "config__check_ongoing_interval" => "interval",
            "webhook_url" => "webhook",
            other if other.starts_with("subscribed_users") => "subscribers",
            other => other,
        };
        field.to_owned()
    });
    UiError::Field(FieldError { attr, ..fault })
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use weir_model::alerts::ThresholdKind;

    use super::*;

    fn form(condition: &str, lower: &str) -> AlertForm {
        AlertForm {
            name: "Payments".to_owned(),
            series: "0".to_owned(),
            condition: condition.to_owned(),
            lower: lower.to_owned(),
            upper: String::new(),
            interval: String::new(),
            every: "daily".to_owned(),
            webhook: String::new(),
            skip_weekend: false,
            enabled: true,
            subscribers: String::new(),
        }
    }

    #[test]
    fn percentages_are_shares() {
        let found = form("decrease_percent", " 7 ").threshold().unwrap();
        assert_eq!((found.kind, found.bounds.lower), (ThresholdKind::Percentage, Some(0.07)));
        assert_eq!(form("decrease", "7").threshold().unwrap().bounds.lower, Some(7.0));
        let at = |form: AlertForm| form.patch().unwrap_err().attr().map(str::to_owned);
        assert_eq!(at(form("decrease", "seven")).as_deref(), Some("lower"));
        assert_eq!(at(form("most", "7")).as_deref(), Some("condition"));
    }

    #[test]
    fn only_changed_fields_are_saved() {
        let prints = [("name", crate::edits::fingerprint("Payments"))];
        let seen = crate::edits::FormFingerprints::write(&prints);
        let stored = AlertForm { name: "Sales".to_owned(), ..form("value", "1") };
        let mut edits = Edits::of(&seen);
        let saved = form("value", "2").over(stored, &mut edits);
        assert_eq!((saved.name.as_str(), saved.lower.as_str()), ("Sales", "2"));
        assert!(edits.check().is_ok());
    }
}
