//! The questions, and what their answers say.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Cells, Days, FREQUENT, RARE, ROWS, STEPS, VALUES, VIEW, WEEKS, WINDOW};

/// A question that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Page views by day.
    Trend,
    /// The same, by the value of a property that each event has.
    Frequent,
    /// The same, by the value of a property that few events have.
    Rare,
    /// Persons with page views by day.
    Persons,
    /// A funnel of three steps.
    Funnel,
    /// Retention of eight weeks.
    Retention,
    /// The newest events with all that they have.
    Page,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Trend,
        Self::Frequent,
        Self::Rare,
        Self::Persons,
        Self::Funnel,
        Self::Retention,
        Self::Page,
    ];

    /// Its name in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trend => "trend by day",
            Self::Frequent => "trend by day, by `$browser`",
            Self::Rare => "trend by day, by `coupon`",
            Self::Persons => "unique persons by day",
            Self::Funnel => "funnel of three steps",
            Self::Retention => "retention, 8 × 8 weeks",
            Self::Page => "page of 100 events",
        }
    }

    /// The most milliseconds that ten million events may take.
    pub const fn aim(self) -> f64 {
        match self {
            Self::Trend => 300.0,
            Self::Frequent => 600.0,
            Self::Rare => 2_000.0,
            Self::Persons => 500.0,
            Self::Funnel | Self::Retention => 1_500.0,
            Self::Page => 150.0,
        }
    }

    /// The question about these days.
    pub fn question(self, days: Days) -> Value {
        let [first, last, after] = days.dates();
        let range = json!({ "date_from": first, "date_to": last });
        let node = |event: &str| json!({ "kind": "EventsNode", "event": event });
        let trend = |math: &str, breakdown: Option<&str>| {
            let mut trend = json!({
                "kind": "TrendsQuery", "interval": "day", "dateRange": range,
                "series": [{ "kind": "EventsNode", "event": VIEW, "math": math }],
            });
            if let Some(property) = breakdown {
                trend["breakdownFilter"] = json!({
                    "breakdown": property, "breakdown_type": "event", "breakdown_limit": VALUES,
                });
            }
            trend
        };
        match self {
            Self::Trend => trend("total", None),
            Self::Frequent => trend("total", Some(FREQUENT)),
            Self::Rare => trend("total", Some(RARE)),
            Self::Persons => trend("dau", None),
            Self::Funnel => json!({
                "kind": "FunnelsQuery", "series": STEPS.map(node), "dateRange": range,
                "funnelsFilter": {
                    "funnelOrderType": "ordered", "funnelWindowInterval": WINDOW,
                    "funnelWindowIntervalUnit": "day",
                },
            }),
            Self::Retention => {
                let entity = json!({ "id": VIEW, "type": "events" });
                json!({
                    // Without a beginning, it has as many whole weeks.
                    "kind": "RetentionQuery", "dateRange": { "date_to": last },
                    "retentionFilter": {
                        "retentionType": "retention_recurring", "period": "Week",
                        "totalIntervals": WEEKS,
                        "targetEntity": entity, "returningEntity": entity,
                    },
                })
            }
            Self::Page => json!({
                "kind": "EventsQuery", "select": ["*"], "after": first, "before": after,
                "limit": ROWS,
            }),
        }
    }

    /// The numbers of an answer of Weir.
    ///
    /// # Errors
    /// If the answer has another form.
    pub fn cells(self, answer: &Value) -> Result<Cells> {
        let mut cells = Cells::default();
        for (at, result) in list(&answer["results"])?.iter().enumerate() {
            match self {
                Self::Trend | Self::Persons => {
                    ensure!(at == 0, "a trend has more than one result");
                    for (day, number) in list(&result["data"])?.iter().enumerate() {
                        cells.add(day.to_string(), number.to_string());
                    }
                }
                Self::Frequent | Self::Rare => {
                    let value = text(&result["breakdown_value"])?;
                    for (day, number) in list(&result["data"])?.iter().enumerate() {
                        cells.add(format!("{value}/{day}"), number.to_string());
                    }
                }
                Self::Funnel => cells.add(at.to_string(), result["count"].to_string()),
                Self::Retention => {
                    for (later, value) in list(&result["values"])?.iter().enumerate() {
                        cells.add(format!("{at}/{later}"), value["count"].to_string());
                    }
                }
                Self::Page => cells.add(at.to_string(), text(&result[0]["uuid"])?.to_owned()),
            }
        }
        Ok(cells)
    }

    /// The numbers of the rows that another engine has to its SQL.
    ///
    /// # Errors
    /// If the rows have another form.
    pub fn cells_of_rows(self, rows: &[Vec<String>]) -> Result<Cells> {
        let mut cells = Cells::default();
        for (at, row) in rows.iter().enumerate() {
            match self {
                Self::Trend | Self::Frequent | Self::Rare | Self::Persons | Self::Retention => {
                    let (number, place) = row.split_last().context("a row has no columns")?;
                    cells.add(place.join("/"), number.clone());
                }
                Self::Funnel => {
                    for (step, number) in row.iter().enumerate() {
                        cells.add(step.to_string(), number.clone());
                    }
                }
                Self::Page => {
                    cells.add(at.to_string(), row.first().context("a row has no uuid")?.clone());
                }
            }
        }
        Ok(cells)
    }
}

fn list(value: &Value) -> Result<&Vec<Value>> {
    value.as_array().with_context(|| format!("an answer has no list: {value}"))
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().with_context(|| format!("an answer has no text: {value}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use weir_questions::Query;

    use super::Kind;
    use crate::questions::Days;
    use crate::questions::tests::NOW;

    #[test]
    fn the_questions_are_ones_that_weir_reads() {
        for kind in Kind::ALL {
            let question = kind.question(Days::before(NOW));
            let read = Query::read(&question);
            assert!(read.is_ok(), "{question}: {read:?}");
        }
    }

    #[test]
    fn an_answer_and_rows_have_the_same_numbers() {
        let by_value = json!({ "results": [
            { "breakdown_value": "a", "data": [4, 0, 1] },
            { "breakdown_value": "b", "data": [0, 2, 0] },
        ] });
        let weeks = json!({ "results": [
            { "values": [{ "count": 3 }, { "count": 0 }, { "count": 1 }] },
            { "values": [{ "count": 2 }, { "count": 2 }] },
        ] });
        let events = json!({ "results": [[{ "uuid": "x", "event": "e" }], [{ "uuid": "y" }]] });
        for (kind, answer, rows) in [
            (Kind::Trend, json!({ "results": [{ "data": [3, 0, 2] }] }), vec!["2 2", "0 3"]),
            (Kind::Persons, json!({ "results": [{ "data": [3] }] }), vec!["0 3"]),
            (Kind::Frequent, by_value.clone(), vec!["b 1 2", "a 0 4", "a 2 1"]),
            (Kind::Rare, by_value, vec!["a 0 4", "a 2 1", "b 1 2"]),
            (Kind::Funnel, json!({ "results": [{ "count": 5 }, { "count": 0 }] }), vec!["5 0"]),
            (Kind::Retention, weeks, vec!["1 0 2", "1 1 2", "0 0 3", "0 2 1"]),
            (Kind::Page, events, vec!["x e", "y"]),
        ] {
            let row = |row: &str| row.split(' ').map(str::to_owned).collect::<Vec<_>>();
            let rows: Vec<_> = rows.into_iter().map(row).collect();
            let ours = kind.cells(&answer).unwrap();
            let theirs = kind.cells_of_rows(&rows).unwrap();
            assert_eq!(ours.difference(&theirs), None, "{kind:?}");
            assert!(ours.count() > 0, "{kind:?}");
        }
        assert!(Kind::Trend.cells(&json!({ "results": null })).is_err());
        assert!(Kind::Page.cells(&json!({ "results": [[{}]] })).is_err());
    }
}
