//! Results in rows: lists of events, and SQL.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Rows of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventsResult {
    /// The columns as the question named them.
    pub columns: Vec<String>,
    /// Their types.
    pub types: Vec<String>,
    /// A value for each column.
    pub results: Vec<Vec<Value>>,
    /// Whether more rows follow.
    #[serde(rename = "hasMore")]
    pub has_more: bool,
    /// Most rows.
    pub limit: u32,
    /// Rows that were skipped.
    pub offset: u32,
    /// The question as SQL.
    pub hogql: String,
}

/// Rows of a query in SQL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HogQLResult {
    /// The query as it was sent.
    pub query: String,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// Their names and types.
    pub types: Vec<(String, String)>,
    /// A value for each column.
    pub results: Vec<Vec<Value>>,
    /// Whether more rows follow.
    #[serde(rename = "hasMore")]
    pub has_more: bool,
    /// Most rows.
    pub limit: u32,
    /// Rows that were skipped.
    pub offset: u32,
    /// The query as it was run.
    pub hogql: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_have_the_published_members() {
        let events = json!({ "columns": ["event"], "types": ["String"], "results": [["a"], [null]],
            "hasMore": true, "limit": 2, "offset": 0, "hogql": "SELECT event FROM events" });
        let read: EventsResult = serde_json::from_value(events.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), events);
        let sql = json!({ "query": "select 1", "columns": ["1"], "types": [["1", "UInt8"]],
            "results": [[1]], "hasMore": false, "limit": 100, "offset": 0, "hogql": "SELECT 1" });
        let read: HogQLResult = serde_json::from_value(sql.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), sql);
    }
}
