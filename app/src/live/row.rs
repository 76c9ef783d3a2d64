//! One row of the list of events, in the form that pages use.

use serde::{Deserialize, Serialize};
use weir_model::live::{Outcome, OutcomeLabel, SAMPLE_LIMIT, may_be_cut};
use weir_model::outcomes::Meaning;

use crate::ui::bytes;

/// A row of the list. It is read from the JSON of a `weir_model::live::LiveRow`, but times
/// are texts: code for calendars would make the browser build much larger. The payload is
/// read when the row is opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// Unique within the project.
    pub(crate) key: String,
    /// When the server received it.
    pub(crate) received_at: String,
    /// Outcome of the event or request.
    pub(crate) outcome: Outcome,
    /// Codes of the reasons.
    pub(crate) reasons: Vec<String>,
    /// Detail of a reason, such as the transformation that dropped the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// Event name.
    pub(crate) event: Option<String>,
    /// Distinct id of the event.
    pub(crate) distinct_id: Option<String>,
    /// Event time.
    pub(crate) timestamp: Option<String>,
    /// URL or screen; of a refused request, the path.
    #[serde(rename = "place")]
    pub(crate) url_or_screen: Option<String>,
    /// Client library that sent it.
    pub(crate) library: Option<String>,
    /// Size of the payload or of its kept part, in bytes.
    pub(crate) size: u64,
    /// Person id.
    pub(crate) person: Option<String>,
    /// The values of the chosen properties as texts, in the order of the choice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) properties: Vec<Option<String>>,
}

const _: () = assert!(SAMPLE_LIMIT == 4 << 10, "a caption says 4 KiB");

/// Caption for the sample of an event that was not stored.
pub(crate) fn sample_caption(sample_bytes: usize) -> &'static str {
    if may_be_cut(sample_bytes) {
        "The first 4 KiB of the payload as received"
    } else {
        "Payload as received"
    }
}

#[cfg(feature = "ssr")]
impl From<weir_model::live::LiveRow> for Row {
    fn from(row: weir_model::live::LiveRow) -> Self {
        Self {
            key: row.key,
            received_at: row.received_at.to_string(),
            outcome: row.outcome,
            reasons: row.reasons,
            detail: row.detail,
            event: row.event,
            distinct_id: row.distinct_id,
            timestamp: row.timestamp.map(|time| time.to_string()),
            url_or_screen: row.place,
            library: row.library,
            size: row.size,
            person: row.person,
            properties: Vec::new(),
        }
    }
}

impl Row {
    /// Whether it was stored, changed or not.
    pub(crate) fn is_stored(&self) -> bool {
        self.outcome == Outcome::Accepted
    }

    /// Whether it was dropped although its request was answered with 200.
    pub(crate) fn is_dropped(&self) -> bool {
        self.outcome == Outcome::Dropped
    }

    /// Whether it is a refused request.
    pub(crate) fn is_rejected(&self) -> bool {
        self.outcome == Outcome::Rejected
    }

    /// Whether the payload can be truncated, so that its size is unknown.
    pub(crate) fn may_be_cut(&self) -> bool {
        // The size of a dropped event is that of its sample.
        self.is_dropped() && may_be_cut(usize::try_from(self.size).unwrap_or(usize::MAX))
    }

    /// The size in words. `at_least` comes before a size that can be larger.
    pub(crate) fn size_text(&self, at_least: &str) -> String {
        let mark = if self.may_be_cut() { at_least } else { "" };
        format!("{mark}{}", bytes::plain(self.size))
    }

    /// The outcome in the words of the app.
    pub(crate) fn outcome_label(&self) -> OutcomeLabel {
        OutcomeLabel::of(self.outcome, !self.reasons.is_empty())
    }

    /// The reasons in words. Unknown codes of a newer version are omitted.
    pub(crate) fn meanings(&self) -> Vec<Meaning> {
        self.reasons.iter().filter_map(|code| Meaning::of(code)).collect()
    }

    /// The event name, or a text that says that there is none.
    pub(crate) fn name(&self) -> String {
        let none = if self.is_rejected() { "Rejected request" } else { "No name" };
        self.event.clone().filter(|name| !name.is_empty()).unwrap_or_else(|| none.to_owned())
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use weir_model::Timestamp;
    use weir_model::live::{LiveRow, Outcome, SAMPLE_LIMIT};

    use super::Row;

    fn sent() -> LiveRow {
        LiveRow {
            key: "drop-1-2".to_owned(),
            received_at: Timestamp::from_micros(1_722_513_600_123_456),
            outcome: Outcome::Dropped,
            reasons: vec!["dropped_by_transformation".to_owned()],
            detail: Some("dropped by Bot filter (config 12)".to_owned()),
            event: Some("a".to_owned()),
            distinct_id: None,
            timestamp: None,
            place: None,
            library: Some("web".to_owned()),
            size: 7,
            payload: "{}".to_owned(),
            project_key: Some("phc_abcd...".to_owned()),
            person: None,
            effects: Vec::new(),
        }
    }

    #[test]
    fn the_stream_and_the_first_page_have_equal_rows() {
        let text = serde_json::to_string(&sent()).unwrap();
        let streamed: Row = serde_json::from_str(&text).unwrap();
        assert_eq!(streamed, Row::from(sent()));
        assert_eq!(streamed.meanings().len(), 1);
    }

    #[test]
    fn a_sample_that_may_be_cut_has_no_exact_size() {
        let row = Row::from(sent());
        assert_eq!(row.size_text("at least "), "7 B");
        let dropped = Row { size: SAMPLE_LIMIT as u64, ..row };
        assert_eq!(dropped.size_text("at least "), "at least 4.0 KiB");
        let stored = Row { outcome: Outcome::Accepted, ..dropped };
        assert_eq!(stored.size_text("at least "), "4.0 KiB");
    }
}
