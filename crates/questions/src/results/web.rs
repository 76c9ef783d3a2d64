//! Results about a site.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Amount;
use crate::evaluate::WebTotals;
use crate::query::{WebColumn, WebDirection, WebMetric, WebOrder, WebTableQuery};

/// A number of a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebOverviewItem {
    /// What it is the number of, such as `visitors`.
    pub key: String,
    /// `unit`, `duration_s` or `percentage`.
    pub kind: String,
    /// Whether a larger number is worse.
    #[serde(rename = "isIncreaseBad")]
    pub is_increase_bad: Option<bool>,
    /// The number. `None`: there is no session.
    pub value: Option<Amount>,
    /// The number of the range that this one is compared with.
    pub previous: Option<Amount>,
    /// The change from that in percent. `None`: there is none, or it was 0.
    #[serde(rename = "changeFromPreviousPct")]
    pub change: Option<i64>,
}

impl WebOverviewItem {
    /// Keys, in the order of results.
    pub const KEYS: [&'static str; 5] =
        ["visitors", "views", "sessions", "session duration", "bounce rate"];

    /// All numbers of a site.
    pub fn all(current: &WebTotals, previous: Option<&WebTotals>) -> Vec<Self> {
        let count = |of: fn(&WebTotals) -> u64| {
            (Some(of(current) as f64), previous.map(|totals| of(totals) as f64))
        };
        let average = |of: fn(&WebTotals) -> Option<f64>| (of(current), previous.and_then(of));
        let numbers = [
            ("unit", count(|totals| totals.visitors)),
            ("unit", count(|totals| totals.views)),
            ("unit", count(|totals| totals.sessions)),
            ("duration_s", average(WebTotals::average_duration)),
            ("percentage", average(|totals| Some(totals.bounce_rate()? * 100.0))),
        ];
        let item = |(key, (kind, (value, previous))): (&str, (&str, NumberPair))| Self {
            key: key.to_owned(),
            kind: kind.to_owned(),
            is_increase_bad: (kind == "percentage").then_some(true),
            value: value.map(Amount::new),
            previous: previous.map(Amount::new),
            change: change(value, previous),
        };
        Self::KEYS.into_iter().zip(numbers).map(item).collect()
    }
}

/// A number, and that of the range before.
type NumberPair = (Option<f64>, Option<f64>);

/// The change from one number to another in percent, to the nearest even number.
fn change(value: Option<f64>, previous: Option<f64>) -> Option<i64> {
    let (value, previous) = (value?, previous.filter(|number| *number != 0.0)?);
    Some((100.0 * (value - previous) / previous).round_ties_even() as i64)
}

/// The numbers of an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebTrendsItem {
    /// Its beginning, as `2026-08-21` or `2026-08-21 14:00:00`.
    pub bucket: String,
    /// The numbers by their words. An average without a session is missing.
    pub metrics: BTreeMap<String, Amount>,
}

impl WebTrendsItem {
    /// Of an interval that begins so.
    pub fn new(bucket: &str, metrics: &[WebMetric], totals: &WebTotals) -> Self {
        let number = |metric: &WebMetric| {
            let number = match metric {
                WebMetric::UniqueUsers => Amount::from(totals.visitors),
                WebMetric::PageViews => Amount::from(totals.views),
                WebMetric::Sessions => Amount::from(totals.sessions),
                WebMetric::Bounces => Amount::from(totals.bounces),
                WebMetric::SessionDuration => Amount::new(totals.average_duration()?),
            };
            Some((metric.word().to_owned(), number))
        };
        Self { bucket: bucket.to_owned(), metrics: metrics.iter().filter_map(number).collect() }
    }
}

/// The rows of a table about a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebTableResult {
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
}

/// A value with its numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct WebRow {
    /// The value. `None`: there is none.
    pub value: Option<String>,
    /// Its numbers.
    pub current: WebTotals,
    /// Its numbers in the range that this one is compared with.
    pub previous: Option<WebTotals>,
}

impl WebRow {
    /// The numbers that a count has in both ranges.
    fn counts(&self, of: fn(&WebTotals) -> u64) -> (u64, Option<u64>) {
        (of(&self.current), self.previous.as_ref().map(of))
    }

    fn has_visitors(&self) -> bool {
        let (visitors, before) = self.counts(visitors);
        visitors > 0 || before > Some(0)
    }
}

fn visitors(totals: &WebTotals) -> u64 {
    totals.visitors
}

fn views(totals: &WebTotals) -> u64 {
    totals.views
}

impl WebTableResult {
    /// The table of a question with the rows of all values, in any order. Values without a
    /// visitor have no row.
    pub fn new(query: &WebTableQuery, rows: Vec<WebRow>) -> Self {
        const BY_DEFAULT: WebOrder =
            WebOrder { column: WebColumn::Visitors, direction: WebDirection::Descending };
        let order = query.order.unwrap_or(BY_DEFAULT);
        let shows = |row: &WebRow| {
            row.has_visitors() && (row.value.is_some() || query.breakdown.shows_missing())
        };
        let mut rows: Vec<WebRow> = rows.into_iter().filter(shows).collect();
        rows.sort_by(|a, b| compare(order, a, b));
        let sum = |of: fn(&WebTotals) -> u64| rows.iter().map(|row| of(&row.current)).sum::<u64>();
        let total = match order.column {
            WebColumn::Views => sum(views),
            WebColumn::Visitors | WebColumn::BounceRate => sum(visitors),
        };
        let share = |row: &WebRow| match order.column {
            WebColumn::Visitors => row.current.visitors as f64 / total as f64,
            WebColumn::Views => row.current.views as f64 / total as f64,
            WebColumn::BounceRate => row.current.bounce_rate().unwrap_or_default(),
        };
        let written = |row: &WebRow| {
            let mut cells =
                vec![json!(row.value), json!(row.counts(visitors)), json!(row.counts(views))];
            if query.has_bounces {
                let rate = |totals: &WebTotals| totals.bounce_rate().map(Amount::new);
                cells.push(json!((rate(&row.current), row.previous.as_ref().and_then(rate))));
            }
            cells.push(json!(Amount::new(share(row))));
            cells
        };
        let (skipped, most) = (query.offset as usize, query.limit as usize);
        let has_more = rows.len() > skipped.saturating_add(most);
        let results = rows.iter().skip(skipped).take(most).map(written).collect();
        let count = "Tuple(UInt64, Nullable(UInt64))";
        let rate = "Tuple(Nullable(Float64), Nullable(Float64))";
        let bounces = query.has_bounces.then_some(("bounce_rate", rate));
        let columns =
            [("breakdown_value", "Nullable(String)"), ("visitors", count), ("views", count)]
                .into_iter()
                .chain(bounces)
                .chain([("ui_fill_fraction", "Float64")]);
        let types: Vec<(String, String)> = columns
            .map(|(name, kind)| (format!("context.columns.{name}"), kind.to_owned()))
            .collect();
        Self {
            columns: types.iter().map(|(name, _)| name.clone()).collect(),
            types,
            results,
            has_more,
            limit: query.limit,
            offset: query.offset,
        }
    }
}

/// The order of two rows: by the column of the question, then by visitors, views and the
/// value. What has no rate or no value comes last.
fn compare(order: WebOrder, a: &WebRow, b: &WebRow) -> Ordering {
    let directed = |found: Ordering| match order.direction {
        WebDirection::Ascending => found,
        WebDirection::Descending => found.reverse(),
    };
    let by_column = match order.column {
        WebColumn::Visitors => directed(a.counts(visitors).cmp(&b.counts(visitors))),
        WebColumn::Views => directed(a.counts(views).cmp(&b.counts(views))),
        WebColumn::BounceRate => match (a.current.bounce_rate(), b.current.bounce_rate()) {
            (Some(a), Some(b)) => directed(a.total_cmp(&b)),
            (a, b) => a.is_none().cmp(&b.is_none()),
        },
    };
    let rest = |row: &WebRow| (Reverse(row.counts(visitors)), Reverse(row.counts(views)));
    by_column
        .then_with(|| rest(a).cmp(&rest(b)))
        .then_with(|| (a.value.is_none(), &a.value).cmp(&(b.value.is_none(), &b.value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Query;

    fn totals(visitors: u64, views: u64, sessions: u64, bounces: u64) -> WebTotals {
        WebTotals { visitors, views, sessions, bounces, duration: 1_500_000 }
    }

    fn table(more: &Value) -> WebTableQuery {
        let mut query = json!({ "kind": "WebStatsTableQuery", "breakdownBy": "Page" });
        query.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        match Query::read(&query) {
            Ok(Query::WebTable(query)) => query,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_overview_has_the_published_members() {
        let found = WebOverviewItem::all(&totals(3, 8, 4, 1), Some(&totals(2, 0, 3, 3)));
        let value = serde_json::to_value(&found).unwrap();
        assert_eq!(
            value,
            json!([
                { "key": "visitors", "kind": "unit", "isIncreaseBad": null, "value": 3,
                    "previous": 2, "changeFromPreviousPct": 50 },
                { "key": "views", "kind": "unit", "isIncreaseBad": null, "value": 8,
                    "previous": 0, "changeFromPreviousPct": null },
                { "key": "sessions", "kind": "unit", "isIncreaseBad": null, "value": 4,
                    "previous": 3, "changeFromPreviousPct": 33 },
                { "key": "session duration", "kind": "duration_s", "isIncreaseBad": null,
                    "value": 0.375, "previous": 0.5, "changeFromPreviousPct": -25 },
                { "key": "bounce rate", "kind": "percentage", "isIncreaseBad": true, "value": 25,
                    "previous": 100, "changeFromPreviousPct": -75 },
            ])
        );
        assert_eq!(serde_json::from_value::<Vec<WebOverviewItem>>(value).unwrap(), found);
        let alone = WebOverviewItem::all(&WebTotals::default(), None);
        assert_eq!((alone[0].value, alone[0].previous), (Some(Amount::new(0.0)), None));
        assert_eq!((alone[4].value, alone[4].change), (None, None));
    }

    #[test]
    fn changes_are_rounded_to_even_numbers() {
        assert_eq!(change(Some(201.0), Some(200.0)), Some(0));
        assert_eq!(change(Some(203.0), Some(200.0)), Some(2));
        assert_eq!(change(Some(1.0), Some(0.0)), None);
        assert_eq!(change(None, Some(1.0)), None);
    }

    #[test]
    fn intervals_have_the_published_members() {
        let metrics = [WebMetric::UniqueUsers, WebMetric::SessionDuration];
        let found = WebTrendsItem::new("2026-08-21", &metrics, &totals(2, 5, 3, 0));
        let expected = json!({ "bucket": "2026-08-21",
            "metrics": { "UniqueUsers": 2, "SessionDuration": 0.5 } });
        assert_eq!(serde_json::to_value(&found).unwrap(), expected);
        let empty = WebTrendsItem::new("2026-08-22", &metrics, &WebTotals::default());
        assert_eq!(empty.metrics.len(), 1);
    }

    fn row(value: Option<&str>, current: WebTotals, previous: Option<WebTotals>) -> WebRow {
        WebRow { value: value.map(str::to_owned), current, previous }
    }

    #[test]
    fn tables_have_the_published_rows() {
        let rows = vec![
            row(Some("/b"), totals(1, 4, 1, 1), None),
            row(None, totals(9, 9, 9, 0), None),
            row(Some("/a"), totals(1, 4, 0, 0), None),
            row(Some("/c"), totals(3, 2, 4, 1), None),
            row(Some("/d"), totals(0, 0, 1, 1), None),
        ];
        let found =
            WebTableResult::new(&table(&json!({ "includeBounceRate": true })), rows.clone());
        let names = ["breakdown_value", "visitors", "views", "bounce_rate", "ui_fill_fraction"];
        assert_eq!(found.columns, names.map(|name| format!("context.columns.{name}")));
        let expected = [
            json!(["/c", [3, null], [2, null], [0.25, null], 0.6]),
            json!(["/a", [1, null], [4, null], [null, null], 0.2]),
            json!(["/b", [1, null], [4, null], [1, null], 0.2]),
        ];
        assert_eq!(json!(found.results), json!(expected));
        assert!(!found.has_more);
        let some = table(&json!({ "orderBy": ["Views", "ASC"], "limit": 1, "offset": 1 }));
        let found = WebTableResult::new(&some, rows.clone());
        assert_eq!(json!(found.results), json!([["/a", [1, null], [4, null], 0.4]]));
        assert!(found.has_more);
        let by_rate =
            table(&json!({ "includeBounceRate": true, "orderBy": ["BounceRate", "DESC"] }));
        let found = WebTableResult::new(&by_rate, rows);
        let values: Vec<&Value> = found.results.iter().map(|cells| &cells[0]).collect();
        assert_eq!(values, ["/b", "/c", "/a"]);
    }

    #[test]
    fn rows_of_campaigns_include_what_has_none() {
        let query = table(&json!({ "breakdownBy": "InitialUTMSource" }));
        let rows = vec![
            row(None, totals(2, 3, 2, 0), Some(WebTotals::default())),
            row(Some("news"), WebTotals::default(), Some(totals(5, 5, 5, 0))),
        ];
        let found = WebTableResult::new(&query, rows);
        let expected = json!([[null, [2, 0], [3, 0], 1], ["news", [0, 5], [0, 5], 0]]);
        assert_eq!(json!(found.results), expected);
        let nothing = WebTableResult::new(&query, Vec::new());
        assert_eq!((nothing.results.len(), nothing.has_more), (0, false));
    }
}
