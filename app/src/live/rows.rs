//! Adds new rows to a list, and checks whether a refill leaves a gap.

use std::sync::Arc;

use super::row::Row;
use crate::server_fns::events::EventsPage;

/// Whether the latest rows reach back to the newest row known before, or are all rows.
pub(super) fn meets(newest: Option<&str>, page: &EventsPage) -> bool {
    let has_known = |newest| page.rows.iter().any(|row| row.key == newest);
    page.older.is_none() || newest.is_some_and(has_known)
}

/// Inserts a row, newest first, below rows of the same time. Times sort as texts because
/// they have the same format, except for the zone at the end.
pub(super) fn insert(rows: &mut Vec<Arc<Row>>, row: Arc<Row>) {
    fn time(row: &Row) -> &str {
        row.received_at.trim_end_matches('Z')
    }
    let at = rows.partition_point(|other| time(other) >= time(&row));
    rows.insert(at, row);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{EventsPage, Row, meets};

    #[test]
    fn a_gap_is_filled_where_a_known_row_is_met() {
        let row = |key: &str| {
            let row = json!({"key": key, "received_at": "", "outcome": "accepted",
                             "reasons": [], "size": 0});
            serde_json::from_value::<Row>(row).unwrap()
        };
        let rows = vec![row("c"), row("b")];
        let part =
            EventsPage { rows, older: Some(String::new()), is_early: false, frequent: Vec::new() };
        assert!(meets(Some("b"), &part));
        assert!(!meets(Some("a"), &part));
        // Without a known row, only a complete list has no gap.
        assert!(!meets(None, &part));
        let all = EventsPage { older: None, ..part };
        assert!(meets(Some("a"), &all));
        assert!(meets(None, &all));
    }
}
