//! Subscriptions: the answers of an insight or a dashboard by mail, at intervals (API-69).

use serde::{Deserialize, Serialize};

use crate::activity::words;
use crate::ids::{DashboardId, InsightId, SubscriptionId};
use crate::patch::Patch;
use crate::time::Timestamp;
use crate::users::User;

/// Longest title, in characters.
pub const TITLE_MAX: usize = 100;
/// Longest list of addresses, in characters.
pub const TARGET_MAX: usize = 6_000;
/// Most subscriptions of a project.
pub const SUBSCRIPTIONS_MAX: usize = 200;
/// Most members who get the mails of a subscription.
pub const RECIPIENTS_MAX: usize = 20;
/// Most days, weeks or months between two mails.
pub const INTERVAL_MAX: i64 = 100;
/// Most mails after which a subscription can end.
pub const COUNT_MAX: i64 = 10_000;
/// Which of the days of a month can be chosen: the first four, and the last one.
pub const PLACES: [i64; 5] = [1, 2, 3, 4, -1];

words! {
    /// Where the answers go to.
    TargetType {
        /// Addresses of members.
        Email => "email",
    }
}

words! {
    /// The unit of the interval between two mails.
    Frequency {
        /// Days.
        Daily => "daily",
        /// Weeks.
        Weekly => "weekly",
        /// Months.
        Monthly => "monthly",
    }
}

words! {
    /// A day of the week.
    Weekday {
        /// Monday.
        Monday => "monday",
        /// Tuesday.
        Tuesday => "tuesday",
        /// Wednesday.
        Wednesday => "wednesday",
        /// Thursday.
        Thursday => "thursday",
        /// Friday.
        Friday => "friday",
        /// Saturday.
        Saturday => "saturday",
        /// Sunday.
        Sunday => "sunday",
    }
}

/// What a subscription is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriptionSubject {
    /// An insight.
    Insight(InsightId),
    /// The insights of a dashboard.
    Dashboard(DashboardId),
}

impl SubscriptionSubject {
    /// The number of the insight.
    pub fn insight(self) -> Option<InsightId> {
        match self {
            Self::Insight(insight) => Some(insight),
            Self::Dashboard(_) => None,
        }
    }

    /// The number of the dashboard.
    pub fn dashboard(self) -> Option<DashboardId> {
        match self {
            Self::Insight(_) => None,
            Self::Dashboard(dashboard) => Some(dashboard),
        }
    }
}

/// A subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Subscription {
    /// Number of the subscription.
    pub id: SubscriptionId,
    /// The dashboard whose answers are sent. Null: it is about an insight.
    pub dashboard: Option<DashboardId>,
    /// The insight whose answer is sent. Null: it is about a dashboard.
    pub insight: Option<InsightId>,
    /// Title. Null: the name of the insight or the dashboard is the subject of the mails.
    pub title: Option<String>,
    /// Always `email`.
    pub target_type: TargetType,
    /// The addresses of the members who get the mails, with commas. Former members are omitted.
    pub target_value: String,
    /// The unit of the interval.
    pub frequency: Frequency,
    /// How many of these units are between two mails.
    pub interval: i64,
    /// The days of the week on which a mail is sent. Null: the day of `start_date`.
    pub byweekday: Option<Vec<Weekday>>,
    /// Which of these days of a month it is: from 1, or -1 for the last one.
    pub bysetpos: Option<i64>,
    /// After how many times no mail is sent any more.
    pub count: Option<i64>,
    /// The first time, and the time of the day of all others in the time zone of the project.
    pub start_date: Timestamp,
    /// From when on no mail is sent.
    pub until_date: Option<Timestamp>,
    /// Whether it is hidden. Then nothing is sent.
    pub deleted: bool,
    /// When mails are sent, as a text.
    pub summary: String,
    /// When mails are sent next. Null: never.
    pub next_delivery_date: Option<Timestamp>,
    /// When mails were sent last.
    pub last_delivery_date: Option<Timestamp>,
    /// Why the last time had no mail, or a mail without some of the answers.
    pub last_error: Option<String>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// The user who created it; null if that user is no member any more.
    pub created_by: Option<User>,
}

/// A new subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionInput {
    /// What it is about.
    pub about: SubscriptionSubject,
    /// Addresses of members, with commas.
    pub target_value: String,
    /// The unit of the interval.
    pub frequency: Frequency,
    /// The first time.
    pub start_date: Timestamp,
    /// All other fields.
    pub rest: SubscriptionPatch,
}

/// A change of a subscription. What it is about stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubscriptionPatch {
    /// Title. Null means none.
    pub title: Patch<String>,
    /// Addresses of members, with commas. `None` keeps them.
    pub target_value: Option<String>,
    /// The unit of the interval. `None` keeps it.
    pub frequency: Option<Frequency>,
    /// How many units are between two mails. `None` keeps it.
    pub interval: Option<i64>,
    /// The days of the week. Null means the day of the first time.
    pub byweekday: Patch<Vec<Weekday>>,
    /// Which of these days of a month it is. Null means none.
    pub bysetpos: Patch<i64>,
    /// After how many times it ends. Null means never.
    pub count: Patch<i64>,
    /// The first time. `None` keeps it.
    pub start_date: Option<Timestamp>,
    /// From when on no mail is sent. Null means never.
    pub until_date: Patch<Timestamp>,
    /// Whether it is hidden. It cannot be null.
    pub deleted: Patch<bool>,
}
