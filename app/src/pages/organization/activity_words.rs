//! Words for the activity log: labels, and recorded values.

use weir_model::Timestamp;
use weir_model::activity::{AuditAction, HASH, Subject};
use weir_model::exports::{ExportModel, Interval, Status};
use weir_model::limits::LimitAction;
use weir_model::organizations::Level;
use weir_model::plugin_configs::{OnFailure, SECRET};
use weir_model::plugins::PluginsAccess;

use crate::pages::exports::words;
use crate::ui::bytes;
use crate::ui::number::{counted, grouped};

/// Label of a kind of object.
pub(crate) fn kind(subject: Subject) -> &'static str {
    match subject {
        Subject::Organization => "Organization",
        Subject::Member => "Member",
        Subject::Invite => "Invite",
        Subject::Domain => "Domain",
        Subject::ScimGroup => "Group of the identity provider",
        Subject::Role => "Role",
        Subject::Person => "Person",
        Subject::Project => "Project",
        Subject::Plugin => "Plugin",
        Subject::PluginConfig => "Plugin in a project",
        Subject::BatchExport => "Export",
        Subject::Insight => "Insight",
        Subject::Dashboard => "Dashboard",
        Subject::Annotation => "Annotation",
        Subject::Alert => "Alert",
        Subject::Subscription => "Subscription",
        Subject::PersonalApiKey => "API key",
        Subject::User => "Account",
        Subject::SignInProvider => "Sign-in provider",
    }
}

/// Label of an audit action.
pub(crate) fn action(action: AuditAction) -> &'static str {
    match action {
        AuditAction::Created => "Created",
        AuditAction::Updated => "Changed",
        AuditAction::Deleted => "Deleted",
        AuditAction::Rotated => "Replaced a secret",
        AuditAction::Verified => "Verified",
        AuditAction::Accepted => "Accepted",
        AuditAction::Triggered => "Started by hand",
        AuditAction::Installed => "Installed",
        AuditAction::Uninstalled => "Uninstalled",
        AuditAction::Enabled => "Enabled",
        AuditAction::Disabled => "Disabled",
        AuditAction::ConfigUpdated => "Changed settings",
        AuditAction::OrderChanged => "Moved",
        AuditAction::JobTriggered => "Started a job",
        AuditAction::AttachmentCreated => "Attached a file",
        AuditAction::AttachmentUpdated => "Replaced a file",
        AuditAction::AttachmentDeleted => "Removed a file",
        AuditAction::SignInRefused => "Refused a sign-in",
    }
}

/// A recorded value as pages show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shown {
    Words(String),
    /// A time (RFC 3339).
    Time(String),
    /// An object without a name: the address of its page, and what it is.
    Page(String, &'static str),
}

/// The ends of the names of fields with times.
const TIMES: [&str; 3] = ["_at", "_until", "_since"];
/// Characters of a hash that are shown.
const HASH_SHOWN: usize = 8;

/// The value of a field. `export` is the address of the changed export, if one was changed.
pub(super) fn shown(field: &str, value: String, export: &str) -> Shown {
    if TIMES.iter().any(|end| field.ends_with(end)) && Timestamp::parse(&value).is_some() {
        return Shown::Time(value);
    }
    if !value.is_empty() && !export.is_empty() {
        match field {
            "run" | "retried_run" => return Shown::Page(export.to_owned(), "a run"),
            "backfill" => return Shown::Page(format!("{export}/backfill"), "a backfill"),
            _ => {}
        }
    }
    Shown::Words(in_words(field, &value).unwrap_or(value))
}

/// The words for the value of a field. `None`: the value is its own word.
fn in_words(field: &str, value: &str) -> Option<String> {
    if value == SECRET {
        return Some("a secret".to_owned());
    }
    if let Some(hash) = value.strip_prefix(HASH) {
        let start = hash.get(..HASH_SHOWN).unwrap_or(hash);
        return Some(format!("a long value (SHA-256 {start})"));
    }
    let number = value.parse::<i64>().ok();
    let word = match field {
        "level" => Level::try_from(number?).ok()?.text(),
        "plugins_access_level" => access(PluginsAccess::try_from(number?).ok()?),
        "interval" => words::interval(Interval::of(value)?),
        "model" => words::model(ExportModel::of(value)?),
        "run_status" | "backfill_status" => words::status(Status::of(value)?).1,
        "on_failure" => on_failure(OnFailure::of(value)?),
        "offset_day" | "week_start_day" => {
            words::DAYS.get(usize::try_from(number?).ok()?).copied()?
        }
        "offset_hour" => return Some(format!("{:02}:00", number?)),
        "event_retention_days" if value.is_empty() => "for ever",
        "event_retention_days" => {
            return Some(counted(u64::try_from(number?).ok()?, "day", "days"));
        }
        _ => return limit(field, value),
    };
    Some(word.to_owned())
}

/// A limit of an organization: its number and what happens beyond it.
fn limit(field: &str, value: &str) -> Option<String> {
    let (most, action) = value.split_once(' ').filter(|_| field.ends_with("_limit"))?;
    let most = most.parse::<u64>().ok()?;
    let most = if field.starts_with("disk") { bytes::text(most) } else { grouped(most) };
    let beyond = match LimitAction::of(action)? {
        LimitAction::Warn => "warn the owners",
        LimitAction::Drop => "drop events",
        LimitAction::Reject => "refuse more",
    };
    Some(format!("{most}, then {beyond}"))
}

fn access(access: PluginsAccess) -> &'static str {
    match access {
        PluginsAccess::None => "nothing",
        PluginsAccess::Config => "configure plugins",
        PluginsAccess::Install => "install plugins",
        PluginsAccess::Root => "offer plugins to all organizations",
    }
}

fn on_failure(policy: OnFailure) -> &'static str {
    match policy {
        OnFailure::StoreUnchanged => "store the event unchanged",
        OnFailure::HoldThenDrop => "wait, then drop the event",
    }
}

#[cfg(test)]
mod tests {
    use super::{SECRET, Shown, shown};

    const EXPORT: &str = "/organizations/o/exports/e";

    #[test]
    fn known_values_are_in_words() {
        for (field, value, expected) in [
            ("level", "8", "Administrator"),
            ("level", "2", "2"),
            ("order", "8", "8"),
            ("name", "", ""),
            ("interval", "every 5 minutes", "Every 5 minutes"),
            ("offset_day", "1", "Monday"),
            ("offset_day", "9", "9"),
            ("offset_hour", "7", "07:00"),
            ("event_retention_days", "1", "1 day"),
            ("event_retention_days", "", "for ever"),
            ("run_status", "FailedRetryable", "Failed after all attempts"),
            ("on_failure", "hold_then_drop", "wait, then drop the event"),
            ("plugins_access_level", "6", "install plugins"),
            ("events_per_month_limit", "1000 reject", "1,000, then refuse more"),
            ("disk_bytes_limit", "1073741824 warn", "1.0 GiB, then warn the owners"),
            ("members_limit", "default", "default"),
            ("config__token", SECRET, "a secret"),
            ("hogql_query", "sha256:0123456789abcdef", "a long value (SHA-256 01234567)"),
        ] {
            let expected = Shown::Words(expected.to_owned());
            assert_eq!(shown(field, value.to_owned(), ""), expected, "{field} {value}");
        }
    }

    #[test]
    fn times_and_objects_are_no_texts() {
        let at = "2026-08-21T14:05:09.123456Z".to_owned();
        assert_eq!(shown("end_at", at.clone(), ""), Shown::Time(at.clone()));
        assert_eq!(shown("name", at.clone(), ""), Shown::Words(at));
        let words = Shown::Words("soon".to_owned());
        assert_eq!(shown("sign_in_link_until", "soon".to_owned(), ""), words);
        let page = Shown::Page(EXPORT.to_owned(), "a run");
        assert_eq!(shown("run", "0191".to_owned(), EXPORT), page);
        let page = Shown::Page(format!("{EXPORT}/backfill"), "a backfill");
        assert_eq!(shown("backfill", "0191".to_owned(), EXPORT), page);
        assert_eq!(shown("run", "0191".to_owned(), ""), Shown::Words("0191".to_owned()));
    }
}
