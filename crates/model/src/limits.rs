//! Limits of an organization: events, disk space, members, exports (API-56).
//!
//! What belongs here: which limits there are, what happens beyond them, how the operator
//! chooses between a limit of an organization and the one in the settings, and the months
//! that events are counted in. What does not: counting and enforcing (`weir-service`).

use std::fmt;
use std::str::FromStr;

use chrono::{Datelike as _, NaiveDate};
use serde::{Deserialize, Serialize};

use crate::errors::FieldError;
use crate::ids::OrganizationId;
use crate::outcomes::DropReason;
use crate::patch::Patch;
use crate::time::Timestamp;
use crate::validate;

/// The largest number of a limit. Every number up to it is exact in JavaScript too.
pub const LIMIT_MAX: i64 = 1_000_000_000_000_000;
/// The largest number of events in a second.
pub const RATE_MAX: i64 = 10_000_000;
/// Seconds of events in a second that an organization may send in a burst.
pub const BURST_SECONDS: u64 = 10;
/// The shares of a limit, in percent, at which owners get a mail.
pub const WARNED_AT: [u64; 2] = [100, 80];

/// The word for the limit in the settings of the instance.
pub const DEFAULT_WORD: &str = "default";
/// The word for no limit.
pub const NONE_WORD: &str = "none";

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitName {
    /// Accepted events in a calendar month, in UTC.
    EventsPerMonth,
    /// Accepted events in a second.
    EventsPerSecond,
    /// Bytes of stored events.
    DiskBytes,
    /// Members.
    Members,
    /// Batch exports.
    Exports,
}

impl LimitName {
    /// All limits, in display order.
    pub const ALL: [Self; 5] = [
        Self::EventsPerMonth,
        Self::EventsPerSecond,
        Self::DiskBytes,
        Self::Members,
        Self::Exports,
    ];
    /// The limits that capture enforces.
    pub const OF_EVENTS: [Self; 3] = [Self::EventsPerMonth, Self::EventsPerSecond, Self::DiskBytes];

    /// The name in the API, in the store and in metrics.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::EventsPerMonth => "events_per_month",
            Self::EventsPerSecond => "events_per_second",
            Self::DiskBytes => "disk_bytes",
            Self::Members => "members",
            Self::Exports => "exports",
        }
    }

    /// The limit with this name.
    #[must_use]
    pub fn of(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.code() == code)
    }

    /// The words in pages and mails.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::EventsPerMonth => "Events per month",
            Self::EventsPerSecond => "Events per second",
            Self::DiskBytes => "Disk space",
            Self::Members => "Members",
            Self::Exports => "Exports",
        }
    }

    /// What can happen beyond the limit. A member or an export is never taken away, so it
    /// cannot be dropped.
    #[must_use]
    pub const fn actions(self) -> &'static [LimitAction] {
        match self {
            Self::EventsPerMonth | Self::EventsPerSecond | Self::DiskBytes => {
                &[LimitAction::Warn, LimitAction::Drop, LimitAction::Reject]
            }
            Self::Members | Self::Exports => &[LimitAction::Warn, LimitAction::Reject],
        }
    }

    /// The largest number of this limit.
    #[must_use]
    pub const fn largest(self) -> i64 {
        match self {
            Self::EventsPerSecond => RATE_MAX,
            _ => LIMIT_MAX,
        }
    }

    /// The reason of events that are dropped because of this limit; `None`: no event is.
    #[must_use]
    pub const fn drop_reason(self) -> Option<DropReason> {
        match self {
            Self::EventsPerMonth => Some(DropReason::OverMonthlyLimit),
            Self::EventsPerSecond => Some(DropReason::OverRateLimit),
            Self::DiskBytes => Some(DropReason::OverDiskLimit),
            Self::Members | Self::Exports => None,
        }
    }
}

/// What happens beyond a limit. Later ones are stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum LimitAction {
    /// Owners get a mail, and nothing else happens.
    Warn,
    /// Events are answered as usual, dropped, and shown as dropped.
    Drop,
    /// Requests with events are answered with 429; members and exports are not added.
    Reject,
}

impl LimitAction {
    /// All actions.
    pub const ALL: [Self; 3] = [Self::Warn, Self::Drop, Self::Reject];

    /// The word in the API, in the settings and in metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Warn => "warn",
            Self::Drop => "drop",
            Self::Reject => "reject",
        }
    }

    /// The action of this word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.word() == word)
    }
}

/// A limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The number that may be reached, at least 1.
    pub most: u64,
    /// What happens beyond it.
    pub action: LimitAction,
}

impl Limit {
    /// How much of the limit is used, in percent. Above 100 if it is exceeded.
    #[must_use]
    pub fn percent(self, used: u64) -> u64 {
        let share = u128::from(used).saturating_mul(100) / u128::from(self.most.max(1));
        u64::try_from(share).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.most, self.action.word())
    }
}

/// What the operator has chosen for one limit of an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LimitChoice {
    /// The limit in the settings of the instance, if there is one.
    #[default]
    Default,
    /// No limit, whatever the settings say.
    Unlimited,
    /// This limit.
    Limited(Limit),
}

impl fmt::Display for LimitChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str(DEFAULT_WORD),
            Self::Unlimited => f.write_str(NONE_WORD),
            Self::Limited(limit) => limit.fmt(f),
        }
    }
}

impl FromStr for LimitChoice {
    type Err = String;

    /// Reads the form that `Display` writes.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a limit");
        match text {
            DEFAULT_WORD => return Ok(Self::Default),
            NONE_WORD => return Ok(Self::Unlimited),
            _ => {}
        }
        let (most, word) = text.split_once(' ').ok_or_else(wrong)?;
        let most = most.parse().map_err(|_| wrong())?;
        let action = LimitAction::of(word).ok_or_else(wrong)?;
        Ok(Self::Limited(Limit { most, action }))
    }
}

/// A value for each limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerLimit<T> {
    /// For [`LimitName::EventsPerMonth`].
    pub events_per_month: T,
    /// For [`LimitName::EventsPerSecond`].
    pub events_per_second: T,
    /// For [`LimitName::DiskBytes`].
    pub disk_bytes: T,
    /// For [`LimitName::Members`].
    pub members: T,
    /// For [`LimitName::Exports`].
    pub exports: T,
}

impl<T> PerLimit<T> {
    /// The value for a limit.
    pub const fn get(&self, name: LimitName) -> &T {
        match name {
            LimitName::EventsPerMonth => &self.events_per_month,
            LimitName::EventsPerSecond => &self.events_per_second,
            LimitName::DiskBytes => &self.disk_bytes,
            LimitName::Members => &self.members,
            LimitName::Exports => &self.exports,
        }
    }

    /// The value for a limit, to change it.
    pub fn get_mut(&mut self, name: LimitName) -> &mut T {
        match name {
            LimitName::EventsPerMonth => &mut self.events_per_month,
            LimitName::EventsPerSecond => &mut self.events_per_second,
            LimitName::DiskBytes => &mut self.disk_bytes,
            LimitName::Members => &mut self.members,
            LimitName::Exports => &mut self.exports,
        }
    }
}

/// What the operator has chosen for an organization.
pub type LimitChoices = PerLimit<LimitChoice>;
/// The limits that apply; `None`: no limit. Those in the settings, or those of an
/// organization.
pub type LimitSet = PerLimit<Option<Limit>>;

impl LimitChoices {
    /// The limits that apply to the organization, with these in the settings.
    #[must_use]
    pub fn over(&self, defaults: &LimitSet) -> LimitSet {
        let mut limits = *defaults;
        for name in LimitName::ALL {
            match self.get(name) {
                LimitChoice::Default => {}
                LimitChoice::Unlimited => *limits.get_mut(name) = None,
                LimitChoice::Limited(limit) => *limits.get_mut(name) = Some(*limit),
            }
        }
        limits
    }
}

impl LimitSet {
    /// The number of members or exports beyond which no more are added; `None`: no number
    /// refuses them.
    #[must_use]
    pub fn refused_from(&self, name: LimitName) -> Option<u64> {
        let limit = self.get(name).filter(|limit| limit.action == LimitAction::Reject);
        limit.map(|limit| limit.most)
    }
}

/// A change of one limit, as the operator sends it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LimitPatch {
    /// The number; null: the limit in the settings.
    pub limit: Patch<i64>,
    /// `default`, `none`, or the word of an action.
    pub action: Option<String>,
}

/// Changes of the limits of an organization.
pub type LimitsPatch = PerLimit<LimitPatch>;

impl LimitsPatch {
    /// Checks the values and applies them.
    ///
    /// # Errors
    /// The fault of the first field that has one: `<name>_limit` or `<name>_action`.
    pub fn apply(self, choices: &mut LimitChoices) -> Result<(), FieldError> {
        for name in LimitName::ALL {
            let choice = choices.get_mut(name);
            *choice = self.get(name).over(name, *choice)?;
        }
        Ok(())
    }
}

impl LimitPatch {
    /// The choice after the change.
    fn over(&self, name: LimitName, present: LimitChoice) -> Result<LimitChoice, FieldError> {
        let (number, action) = (number_field(name), action_field(name));
        let before = match present {
            LimitChoice::Limited(limit) => Some(limit),
            LimitChoice::Default | LimitChoice::Unlimited => None,
        };
        let chosen = match (self.action.as_deref(), &self.limit) {
            (None, Patch::Keep) => return Ok(present),
            (None, Patch::Clear) | (Some(DEFAULT_WORD), _) => return Ok(LimitChoice::Default),
            (Some(NONE_WORD), _) => return Ok(LimitChoice::Unlimited),
            (Some(word), _) => LimitAction::of(word)
                .filter(|action| name.actions().contains(action))
                .ok_or_else(|| validate::invalid_choice(&action, &word))?,
            // A number alone keeps what happens beyond it.
            (None, Patch::Set(_)) => {
                let kept = before.map(|limit| limit.action);
                kept.ok_or_else(|| required(&action))?
            }
        };
        let most = match self.limit {
            Patch::Set(most) => {
                validate::within(&number, most, 1, name.largest())?;
                u64::try_from(most).unwrap_or(1)
            }
            Patch::Keep => before.ok_or_else(|| required(&number))?.most,
            Patch::Clear => return Err(required(&number)),
        };
        Ok(LimitChoice::Limited(Limit { most, action: chosen }))
    }
}

fn required(attr: &str) -> FieldError {
    FieldError::new(attr, "required", "This field is required.")
}

/// The field with the number of a limit, in the API and in forms.
#[must_use]
pub fn number_field(name: LimitName) -> String {
    format!("{}_limit", name.code())
}

/// The field with what happens beyond a limit, in the API and in forms.
#[must_use]
pub fn action_field(name: LimitName) -> String {
    format!("{}_action", name.code())
}

/// A calendar month in UTC: the number of months since the year 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month(pub i64);

impl Month {
    /// The month of a time.
    #[must_use]
    pub fn of(time: Timestamp) -> Self {
        let time = time.to_chrono();
        Self(i64::from(time.year()) * 12 + i64::from(time.month0()))
    }

    /// The first moment of the month.
    #[must_use]
    pub fn begins(self) -> Timestamp {
        let year = i32::try_from(self.0.div_euclid(12)).ok();
        let month = u32::try_from(self.0.rem_euclid(12) + 1).ok();
        let day = year.zip(month).and_then(|(year, month)| NaiveDate::from_ymd_opt(year, month, 1));
        let midnight = day.and_then(|day| day.and_hms_opt(0, 0, 0));
        midnight.map_or(Timestamp::EPOCH, |time| Timestamp::from(time.and_utc()))
    }

    /// The month after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// One limit of an organization, and how much of it is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LimitState {
    /// The number that may be reached; null: no limit.
    pub limit: Option<u64>,
    /// What happens beyond it: `warn`, `drop` (events only) or `reject`; null: no limit.
    pub action: Option<LimitAction>,
    /// Whether the settings of the instance decide, and nothing was chosen for this
    /// organization.
    pub is_default: bool,
    /// How much is used. Events per month: accepted events since the month began. Events
    /// per second: the average of the last full minute, rounded up. Disk space: bytes.
    pub usage: u64,
    /// When the disk space was measured; null: not yet. Always null for the other limits,
    /// whose use is the present one.
    pub measured_at: Option<Timestamp>,
}

/// The limits of an organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OrganizationLimits {
    /// The organization.
    pub organization_id: OrganizationId,
    /// When the next month begins, in UTC, and events are counted from 0.
    pub resets_at: Timestamp,
    /// Events in a calendar month.
    pub events_per_month: LimitState,
    /// Events in a second.
    pub events_per_second: LimitState,
    /// Bytes of stored events.
    pub disk_bytes: LimitState,
    /// Members.
    pub members: LimitState,
    /// Batch exports.
    pub exports: LimitState,
}

impl OrganizationLimits {
    /// The state of a limit.
    #[must_use]
    pub const fn get(&self, name: LimitName) -> &LimitState {
        match name {
            LimitName::EventsPerMonth => &self.events_per_month,
            LimitName::EventsPerSecond => &self.events_per_second,
            LimitName::DiskBytes => &self.disk_bytes,
            LimitName::Members => &self.members,
            LimitName::Exports => &self.exports,
        }
    }
}

/// An organization of the instance, for its staff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct InstanceOrganization {
    /// Unique id of the organization.
    pub id: OrganizationId,
    /// Name of the organization.
    pub name: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// Accepted events since the month began, in UTC.
    pub events_this_month: u64,
    /// Bytes of stored events when they were last measured; null: not yet.
    pub disk_bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const REJECT: Limit = Limit { most: 1_000, action: LimitAction::Reject };

    fn patch(limit: Patch<i64>, action: Option<&str>) -> LimitPatch {
        LimitPatch { limit, action: action.map(str::to_owned) }
    }

    #[test]
    fn every_limit_has_a_name_of_its_own_and_reasons_where_events_are_dropped() {
        for name in LimitName::ALL {
            assert_eq!(LimitName::of(name.code()), Some(name));
            let drops = name.actions().contains(&LimitAction::Drop);
            assert_eq!(name.drop_reason().is_some(), drops, "{name:?}");
            assert_eq!(LimitName::OF_EVENTS.contains(&name), drops, "{name:?}");
        }
        for action in LimitAction::ALL {
            assert_eq!(LimitAction::of(action.word()), Some(action));
        }
        assert!(LimitAction::Reject > LimitAction::Drop && LimitAction::Drop > LimitAction::Warn);
    }

    #[test]
    fn what_is_written_can_be_read_again() {
        for choice in [LimitChoice::Default, LimitChoice::Unlimited, LimitChoice::Limited(REJECT)] {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        assert_eq!(LimitChoice::Limited(REJECT).to_string(), "1000 reject");
        for bad in ["", "1000", "1000 stop", "-1 warn", "x drop", "1 warn "] {
            assert!(bad.parse::<LimitChoice>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_choice_replaces_the_limit_in_the_settings() {
        let defaults =
            LimitSet { members: Some(REJECT), exports: Some(REJECT), ..LimitSet::default() };
        let warn = Limit { most: 5, action: LimitAction::Warn };
        let choices = LimitChoices {
            members: LimitChoice::Unlimited,
            disk_bytes: LimitChoice::Limited(warn),
            ..LimitChoices::default()
        };
        let limits = choices.over(&defaults);
        assert_eq!(
            (limits.members, limits.exports, limits.disk_bytes),
            (None, Some(REJECT), Some(warn))
        );
        assert_eq!(limits.refused_from(LimitName::Exports), Some(1_000));
        assert_eq!(limits.refused_from(LimitName::DiskBytes), None);
        assert_eq!(limits.refused_from(LimitName::Members), None);
    }

    #[test]
    fn a_patch_changes_what_it_names() {
        let name = LimitName::EventsPerMonth;
        let limited = LimitChoice::Limited(REJECT);
        for (patch, before, expected) in [
            (patch(Patch::Keep, None), limited, limited),
            (patch(Patch::Clear, None), limited, LimitChoice::Default),
            (patch(Patch::Keep, Some("default")), limited, LimitChoice::Default),
            (patch(Patch::Set(5), Some("none")), limited, LimitChoice::Unlimited),
            (patch(Patch::Set(1_000), Some("reject")), LimitChoice::Default, limited),
            (
                patch(Patch::Set(7), None),
                limited,
                LimitChoice::Limited(Limit { most: 7, ..REJECT }),
            ),
            (
                patch(Patch::Keep, Some("drop")),
                limited,
                LimitChoice::Limited(Limit { action: LimitAction::Drop, ..REJECT }),
            ),
        ] {
            assert_eq!(patch.over(name, before), Ok(expected), "{patch:?}");
        }
    }

    #[test]
    fn faults_are_at_their_field() {
        for (name, patch, attr, code) in [
            (
                LimitName::Members,
                patch(Patch::Set(5), Some("drop")),
                "members_action",
                "invalid_choice",
            ),
            (LimitName::Members, patch(Patch::Set(5), None), "members_action", "required"),
            (LimitName::Members, patch(Patch::Keep, Some("warn")), "members_limit", "required"),
            (LimitName::Members, patch(Patch::Clear, Some("warn")), "members_limit", "required"),
            (LimitName::Members, patch(Patch::Set(0), Some("warn")), "members_limit", "min_value"),
            (
                LimitName::EventsPerSecond,
                patch(Patch::Set(RATE_MAX + 1), Some("warn")),
                "events_per_second_limit",
                "max_value",
            ),
        ] {
            let fault = patch.over(name, LimitChoice::Default).unwrap_err();
            assert_eq!((fault.attr.as_deref(), fault.code.as_str()), (Some(attr), code));
        }
        let mut choices =
            LimitChoices { members: LimitChoice::Limited(REJECT), ..Default::default() };
        let wrong = LimitsPatch { exports: patch(Patch::Set(5), None), ..Default::default() };
        assert!(wrong.apply(&mut choices).is_err());
    }

    #[test]
    fn months_are_those_of_utc() {
        let month = |text: &str| Month::of(Timestamp::parse(text).unwrap());
        let december = month("2026-12-31T23:59:59.999999Z");
        assert_eq!(december.next(), month("2027-01-01T00:00:00Z"));
        assert_eq!(december.begins().to_string(), "2026-12-01T00:00:00Z");
        assert_eq!(december.next().begins().to_string(), "2027-01-01T00:00:00Z");
        assert_eq!(month("2027-01-01T00:30:00+01:00"), december);
    }

    #[test]
    fn shares_are_rounded_down() {
        assert_eq!((REJECT.percent(0), REJECT.percent(799), REJECT.percent(800)), (0, 79, 80));
        assert!(REJECT.percent(u64::MAX) > 100);
        assert_eq!(Limit { most: 1, ..REJECT }.percent(1), 100);
    }
}
