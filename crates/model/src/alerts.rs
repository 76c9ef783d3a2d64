//! Alerts: a number of a saved insight is compared with bounds, at intervals (API-67).

use serde::{Deserialize, Serialize};

use crate::activity::words;
use crate::ids::{AlertId, InsightId, UserId};
use crate::patch::Patch;
use crate::time::Timestamp;
use crate::users::User;

/// Longest name, in characters.
pub const NAME_MAX: usize = 255;
/// Longest address of a webhook, in characters.
pub const WEBHOOK_MAX: usize = 2_000;
/// Most alerts of a project.
pub const ALERTS_MAX: usize = 200;
/// Most members who get the mails of an alert.
pub const SUBSCRIBERS_MAX: usize = 50;
/// Most checks of an alert that are kept.
pub const CHECKS_MAX: usize = 20;
/// Highest number of a series or a formula.
pub const SERIES_INDEX_MAX: i64 = 25;

words! {
    /// Which number is compared with the bounds.
    ConditionKind {
        /// The number of the interval.
        AbsoluteValue => "absolute_value",
        /// How much it is above that of the interval before.
        RelativeIncrease => "relative_increase",
        /// How much it is below that of the interval before.
        RelativeDecrease => "relative_decrease",
    }
}

words! {
    /// How a difference between two intervals is written.
    ThresholdKind {
        /// As a number.
        Absolute => "absolute",
        /// As a share of the number before: 0.2 is 20 %.
        Percentage => "percentage",
    }
}

words! {
    /// How often an alert is checked.
    CalculationInterval {
        /// Every hour.
        Hourly => "hourly",
        /// Every day.
        Daily => "daily",
        /// Every week.
        Weekly => "weekly",
        /// Every month.
        Monthly => "monthly",
    }
}

words! {
    /// The kind of questions that an alert is about.
    AlertConfigKind {
        /// Numbers over time.
        Trends => "TrendsAlertConfig",
    }
}

words! {
    /// The result of the last check, or why none is made.
    AlertState {
        /// The number is within the bounds, or was not checked yet.
        NotFiring => "Not firing",
        /// The number is beyond a bound.
        Firing => "Firing",
        /// The last check failed.
        Errored => "Errored",
        /// It is not checked until a time.
        Snoozed => "Snoozed",
    }
}

/// The bounds of a number. A number that equals a bound is within it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AlertBounds {
    /// A number below it fires.
    pub lower: Option<f64>,
    /// A number above it fires.
    pub upper: Option<f64>,
}

/// The bounds, and how they are written.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ThresholdConfiguration {
    /// How a difference is written. `absolute` for `absolute_value`.
    #[serde(rename = "type")]
    pub kind: ThresholdKind,
    /// At least one bound.
    pub bounds: AlertBounds,
}

/// When an alert fires.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AlertThreshold {
    /// The bounds.
    pub configuration: ThresholdConfiguration,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AlertCondition {
    /// Which number.
    #[serde(rename = "type")]
    pub kind: ConditionKind,
}

/// Which part of the answer is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AlertConfig {
    /// Always `TrendsAlertConfig`.
    #[serde(rename = "type")]
    pub kind: AlertConfigKind,
    /// The number of the series, or of the formula if the insight has formulas, from 0.
    pub series_index: i64,
    /// Whether the current interval is checked, and not the last complete one.
    pub check_ongoing_interval: bool,
}

/// The insight of an alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AlertInsight {
    /// Number of the insight.
    pub id: InsightId,
    /// Random letters that identify it within its project.
    pub short_id: String,
    /// Name; null: `derived_name` is shown.
    pub name: Option<String>,
    /// Name that a client made from the question.
    pub derived_name: Option<String>,
}

/// A check of an alert.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AlertCheck {
    /// Time of the check.
    pub created_at: Timestamp,
    /// The number that was compared. Null: there was none, or several within the bounds.
    pub calculated_value: Option<f64>,
    /// The result.
    pub state: AlertState,
    /// Whether members or the webhook were notified.
    pub targets_notified: bool,
    /// Why it failed.
    pub error: Option<String>,
}

/// An alert.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Alert {
    /// Number of the alert.
    pub id: AlertId,
    /// The insight whose number is checked.
    pub insight: AlertInsight,
    /// Name.
    pub name: String,
    /// The members who get its mails. Former members are omitted.
    pub subscribed_users: Vec<User>,
    /// The address that a request is sent to when the alert begins to fire.
    pub webhook_url: Option<String>,
    /// When it fires.
    pub threshold: AlertThreshold,
    /// What is compared.
    pub condition: AlertCondition,
    /// Which part of the answer is checked.
    pub config: AlertConfig,
    /// How often it is checked.
    pub calculation_interval: CalculationInterval,
    /// Whether it is not checked on Saturdays and Sundays of the project's time zone.
    pub skip_weekend: bool,
    /// Whether it is checked.
    pub enabled: bool,
    /// The result of the last check, or why none is made.
    pub state: AlertState,
    /// Until when it is not checked.
    pub snoozed_until: Option<Timestamp>,
    /// Time of the last check.
    pub last_checked_at: Option<Timestamp>,
    /// When it last began to fire.
    pub last_notified_at: Option<Timestamp>,
    /// Time of the next check. Null: it is disabled.
    pub next_check_at: Option<Timestamp>,
    /// The number of the last check that had one.
    pub last_value: Option<f64>,
    /// Why the last check failed. Null: it did not.
    pub last_error: Option<String>,
    /// Why the last request to the webhook failed. Null: it did not.
    pub webhook_error: Option<String>,
    /// The last checks, the newest first.
    pub checks: Vec<AlertCheck>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// The user who created it; null if that user is no member any more.
    pub created_by: Option<User>,
}

/// A new alert.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertInput {
    /// The insight whose number is checked.
    pub insight: InsightId,
    /// Name.
    pub name: String,
    /// When it fires.
    pub threshold: ThresholdConfiguration,
    /// All other fields.
    pub rest: AlertPatch,
}

/// A change of an alert. Its insight stays.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AlertPatch {
    /// Name. It cannot be null.
    pub name: Patch<String>,
    /// The members who get its mails. Null means none.
    pub subscribed_users: Patch<Vec<UserId>>,
    /// The address of the webhook.
    pub webhook_url: Patch<String>,
    /// When it fires. `None` keeps it.
    pub threshold: Option<ThresholdConfiguration>,
    /// What is compared. `None` keeps it.
    pub condition: Option<ConditionKind>,
    /// Which part of the answer is checked. `None` keeps it.
    pub config: Option<AlertConfig>,
    /// How often it is checked. `None` keeps it.
    pub calculation_interval: Option<CalculationInterval>,
    /// Whether it is not checked on weekends. It cannot be null.
    pub skip_weekend: Patch<bool>,
    /// Whether it is checked. It cannot be null.
    pub enabled: Patch<bool>,
    /// Until when it is not checked. Null ends that.
    pub snoozed_until: Patch<Timestamp>,
}
