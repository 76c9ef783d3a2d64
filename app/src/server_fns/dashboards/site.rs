//! The tables of answers about a site, with the texts of its page.

use serde_json::Value;
use weir_questions::query::{WebMetric, WebTableQuery, WebTrendsQuery};
use weir_questions::results::{Amount, WebOverviewItem, WebTrendsItem};

use super::results::{numbers, table, text, texts};
use super::tiles::{TileAnswer, TileValue};
use crate::days;
use crate::questions::INTERVALS;
use crate::server_fns::web;
use crate::ui::number::seconds;

/// One decimal place, as on the page of the site.
fn percent(percent: f64) -> TileValue {
    TileValue::Percent((percent * 10.0).round() / 10.0)
}

/// The numbers of a site, each with that of the period before, if they are compared.
pub(super) fn of_overview(compares: bool, found: &[WebOverviewItem]) -> TileAnswer {
    let row = |item: &WebOverviewItem| {
        let at = WebOverviewItem::KEYS.iter().position(|key| *key == item.key);
        let label = at.and_then(|at| web::NUMBERS.get(at)).copied().unwrap_or(&item.key);
        let number = |number: Option<Amount>| match number.map(Amount::value) {
            None => TileValue::Missing,
            Some(number) => match item.kind.as_str() {
                "duration_s" => TileValue::Text(seconds(number)),
                "percentage" => percent(number),
                _ => TileValue::Number(number),
            },
        };
        let mut row = vec![text(label), number(item.value)];
        if compares {
            row.push(number(item.previous));
        }
        row
    };
    let mut columns = vec![texts("Number"), numbers("Whole range")];
    if compares {
        columns.push(numbers("Period before"));
    }
    table(columns, found.iter().map(row).collect())
}

/// The numbers of a site over time.
pub(super) fn of_visits(query: &WebTrendsQuery, found: &[WebTrendsItem]) -> TileAnswer {
    let interval = query.interval.word();
    let label = INTERVALS.iter().find(|(word, _)| *word == interval).map(|(_, label)| *label);
    let mut columns = vec![texts(label.unwrap_or(interval))];
    columns.extend(query.metrics.iter().map(|metric| numbers(label_of(*metric))));
    let row = |item: &WebTrendsItem| {
        let number = |metric: &WebMetric| match (item.metrics.get(metric.word()), metric) {
            (None, _) => TileValue::Missing,
            (Some(length), WebMetric::SessionDuration) => TileValue::Text(seconds(length.value())),
            (Some(number), _) => TileValue::Number(number.value()),
        };
        std::iter::once(text(&days::interval(&item.bucket)))
            .chain(query.metrics.iter().map(number))
            .collect()
    };
    table(columns, found.iter().map(row).collect())
}

fn label_of(metric: WebMetric) -> &'static str {
    let [visitors, views, sessions, length, _] = web::NUMBERS;
    match metric {
        WebMetric::UniqueUsers => visitors,
        WebMetric::PageViews => views,
        WebMetric::Sessions => sessions,
        WebMetric::SessionDuration => length,
        WebMetric::Bounces => "Bounces",
    }
}

/// The table of a site: the value of each row, its numbers, and its bounces in percent.
pub(super) fn of_site(query: &WebTableQuery, found: &[Vec<Value>]) -> TileAnswer {
    let breakdown = query.breakdown.word();
    let table_of = web::tables().find(|table| table.breakdown == breakdown);
    let label = table_of.map_or("Value", |table| table.label);
    let [visitors, views, _, _, bounces] = web::NUMBERS;
    let mut columns = vec![texts(label), numbers(visitors), numbers(views)];
    if query.has_bounces {
        columns.push(numbers(bounces));
    }
    let row = |cells: &Vec<Value>| {
        // A number stands beside that of the period before, which the tile does not show.
        let number = |at: usize| cells.get(at).and_then(|pair| pair[0].as_f64());
        let count = |at: usize| number(at).map_or(TileValue::Missing, TileValue::Number);
        let value = cells.first().and_then(Value::as_str);
        let mut row = vec![value.map_or(TileValue::Missing, text), count(1), count(2)];
        if query.has_bounces {
            row.push(number(3).map_or(TileValue::Missing, |rate| percent(rate * 100.0)));
        }
        row
    };
    table(columns, found.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::json;
    use weir_questions::Query;

    use super::*;

    fn read<T: DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    fn labels(tile: &TileAnswer) -> Vec<&str> {
        tile.columns.iter().map(|column| column.label.as_str()).collect()
    }

    #[test]
    fn numbers_of_a_site_have_the_texts_of_its_page() {
        let found = json!([
            {"key": "views", "kind": "unit", "isIncreaseBad": null, "value": 7, "previous": 2,
                "changeFromPreviousPct": 250},
            {"key": "session duration", "kind": "duration_s", "isIncreaseBad": null,
                "value": 125, "previous": null, "changeFromPreviousPct": null},
            {"key": "bounce rate", "kind": "percentage", "isIncreaseBad": true, "value": 33.33,
                "previous": 50, "changeFromPreviousPct": -34},
        ]);
        let found: Vec<WebOverviewItem> = read(found);
        let tile = of_overview(true, &found);
        assert_eq!(labels(&tile), ["Number", "Whole range", "Period before"]);
        let number = TileValue::Number;
        assert_eq!(tile.rows[0], [text("Views"), number(7.0), number(2.0)]);
        assert_eq!(tile.rows[1], [text("Session duration"), text("2 min 5 s"), TileValue::Missing]);
        let share = TileValue::Percent;
        assert_eq!(tile.rows[2], [text("Bounce rate"), share(33.3), share(50.0)]);
        assert_eq!(of_overview(false, &found).columns.len(), 2);
    }

    #[test]
    fn numbers_of_a_site_over_time_have_labels() {
        let query = json!({"kind": "WebTrendsQuery", "interval": "hour",
            "metrics": ["UniqueUsers", "SessionDuration"]});
        let Query::WebTrends(query) = Query::read(&query).unwrap() else { panic!("{query}") };
        let bucket = "2026-08-21 14:00:00";
        let found = json!([{"bucket": bucket, "metrics": {"UniqueUsers": 3}}]);
        let tile = of_visits(&query, &read::<Vec<WebTrendsItem>>(found));
        assert_eq!(labels(&tile), ["Hour", "Visitors", "Session duration"]);
        assert_eq!(tile.rows, [[text("21 Aug 14:00"), TileValue::Number(3.0), TileValue::Missing]]);
    }

    #[test]
    fn a_site_has_plain_columns_and_bounces_in_percent() {
        let of = |breakdown: &str, has_bounces: bool, found: Value| {
            let query = json!({"kind": "WebStatsTableQuery", "breakdownBy": breakdown,
                "includeBounceRate": has_bounces});
            let Query::WebTable(query) = Query::read(&query).unwrap() else { panic!("{query}") };
            let tile = of_site(&query, &read::<Vec<Vec<Value>>>(found));
            let labels: Vec<String> = tile.columns.into_iter().map(|one| one.label).collect();
            (labels, tile.rows)
        };
        let found = json!([
            ["/a", [6, 2], [9, null], [0.3333, 0.5], 0.75],
            [null, [2, 0], [2, null], [null, null], 0.25],
        ]);
        let (labels, rows) = of("InitialPage", true, found);
        assert_eq!(labels, ["Entry page", "Visitors", "Views", "Bounce rate"]);
        let number = TileValue::Number;
        let first = vec![text("/a"), number(6.0), number(9.0), TileValue::Percent(33.3)];
        let second = vec![TileValue::Missing, number(2.0), number(2.0), TileValue::Missing];
        assert_eq!(rows, [first, second]);
        let (labels, rows) = of("InitialUTMTerm", false, json!([["tea", [1, null], [1, null], 1]]));
        assert_eq!(labels, ["Value", "Visitors", "Views"]);
        assert_eq!(rows, [[text("tea"), number(1.0), number(1.0)]]);
    }
}
