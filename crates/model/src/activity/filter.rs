//! The filter of the activity log page, as it is in the query of the page.

use serde::{Deserialize, Serialize};

use super::{ActivityQuery, AuditAction, Subject};
use crate::time::Timestamp;

/// The actor value for the service.
pub const BY_SERVICE: &str = "service";
/// Seconds of a day.
const DAY: i64 = 24 * 60 * 60;

/// A filter as texts. Each may be empty. An invalid value counts as empty, as with other
/// lists.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ActivityFilter {
    /// Id of a user, or [`BY_SERVICE`].
    pub actor: String,
    /// The kind of object: the word on the wire.
    pub kind: String,
    /// An action: the word on the wire.
    pub action: String,
    /// Id of an object.
    pub item: String,
    /// First day, such as `2026-08-21`, in UTC.
    pub from: String,
    /// Last day.
    pub to: String,
    /// Id of an audit entry.
    pub entry: String,
}

impl ActivityFilter {
    /// The filter as a query of the log.
    pub fn query(&self) -> ActivityQuery {
        let known = |word: &str, words: &[&str]| words.contains(&word).then(|| word.to_owned());
        ActivityQuery {
            scope: known(&self.kind, Subject::WORDS),
            item_id: (!self.item.is_empty()).then(|| self.item.clone()),
            user: self.actor.parse().ok(),
            by_service: self.actor == BY_SERVICE,
            activity: known(&self.action, AuditAction::WORDS),
            since: day(&self.from),
            until: day(&self.to).map(|begin| begin.plus_seconds(DAY)),
            id: self.entry.parse().ok(),
        }
    }
}

/// The start of a day.
fn day(text: &str) -> Option<Timestamp> {
    Timestamp::parse_lenient(&format!("{}T00:00", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::{ActivityFilter, BY_SERVICE};
    use crate::time::Timestamp;

    #[test]
    fn texts_become_a_query() {
        let query = ActivityFilter {
            actor: BY_SERVICE.to_owned(),
            kind: "Team".to_owned(),
            action: "updated".to_owned(),
            from: "2026-08-21".to_owned(),
            to: "2026-08-21".to_owned(),
            ..ActivityFilter::default()
        }
        .query();
        assert!(query.by_service && query.user.is_none());
        assert_eq!(
            (query.scope.as_deref(), query.activity.as_deref()),
            (Some("Team"), Some("updated"))
        );
        assert_eq!(query.since, Timestamp::parse("2026-08-21T00:00:00Z"));
        assert_eq!(query.until, Timestamp::parse("2026-08-22T00:00:00Z"));
    }

    #[test]
    fn nonsense_asks_for_everything() {
        let text = || "nonsense".to_owned();
        let filter = ActivityFilter {
            actor: text(),
            kind: text(),
            action: text(),
            item: String::new(),
            from: text(),
            to: text(),
            entry: text(),
        };
        assert!(filter.query().is_all());
        assert!(ActivityFilter::default().query().is_all());
    }
}
