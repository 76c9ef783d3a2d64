//! The chart and the table of an answer, for each kind of question. Those of a site are in
//! `site`.

use serde_json::Value;
use weir_questions::query::TrendsQuery;
use weir_questions::results::{
    CompareLabel, FunnelStepResult, FunnelTrendResult, LifecycleResult, PathResult,
    RetentionResult, StickinessResult, TimeToConvertResult, TrendsResult,
};

use super::tiles::{TileAnswer, TileChart, TileColumn, TileValue};
use crate::days;
use crate::questions::lifecycle::{DORMANT_NOTE, status_label};
use crate::questions::trends::MATHS;
use crate::server_fns::insights::answers::trends::{intervals, series};
use crate::server_fns::insights::answers::{NumbersView, SeriesView, value_label};
use crate::ui::chart::NUMBERED;

/// The most rows of a tile.
const ROWS_MAX: usize = 10;
/// The most columns of a tile.
const COLUMNS_MAX: usize = 9;
/// The most intervals of the chart of a tile.
const INTERVALS_MAX: usize = 100;
/// The most characters of a text in a tile.
const TEXT_MAX: usize = 200;

/// A table without a chart. The asked question adds zone and time.
pub(super) fn table(columns: Vec<TileColumn>, mut rows: Vec<Vec<TileValue>>) -> TileAnswer {
    let hidden_rows = rows.len().saturating_sub(ROWS_MAX) as u64;
    rows.truncate(ROWS_MAX);
    TileAnswer {
        chart: None,
        columns,
        rows,
        hidden_rows,
        notes: Vec::new(),
        timezone: String::new(),
        computed_at: String::new(),
    }
}

/// The table with a chart, unless there are too many intervals.
fn with_chart(tile: TileAnswer, chart: TileChart) -> TileAnswer {
    let mut tile = tile;
    if chart.intervals.len() > INTERVALS_MAX {
        let note = format!("A tile draws at most {INTERVALS_MAX} intervals.");
        tile.notes.push(note);
    } else if !chart.intervals.is_empty() {
        tile.chart = Some(chart);
    }
    tile
}

pub(super) fn texts(label: &str) -> TileColumn {
    TileColumn { label: label.to_owned(), has_numbers: false }
}

pub(super) fn numbers(label: &str) -> TileColumn {
    TileColumn { label: label.to_owned(), has_numbers: true }
}

pub(super) fn text(text: &str) -> TileValue {
    TileValue::Text(text.chars().take(TEXT_MAX).collect())
}

fn count(count: u64) -> TileValue {
    TileValue::Number(count as f64)
}

fn share(part: u64, whole: u64) -> TileValue {
    TileValue::Share { part, whole }
}

pub(super) fn of_trends(
    query: &TrendsQuery,
    found: &[TrendsResult],
    wholes: &[TrendsResult],
) -> TileAnswer {
    let compares = query.compare.is_some();
    let mut series = series(query, found, wholes);
    let cell = |number: Option<f64>| number.map_or(TileValue::Missing, TileValue::Number);
    let row = |one: &SeriesView| {
        let mut row = vec![text(&one.label), cell(one.numbers.whole)];
        if compares {
            row.push(cell(one.before.as_ref().and_then(|before| before.whole)));
        }
        row
    };
    let rows = series.iter().map(row).collect();
    let mut columns = vec![texts("Series"), numbers("Whole range")];
    if compares {
        columns.push(numbers("Period before"));
    }
    let tile = table(columns, rows);
    if query.filter.display.is_total() {
        return tile;
    }
    // With the period before, each series has two lines.
    series.truncate(if compares { NUMBERED / 2 } else { NUMBERED });
    let title = format!("Per {}", query.interval.word());
    let (intervals, unit) = (intervals(found), unit(query).to_owned());
    with_chart(tile, TileChart { title, intervals, series, unit })
}

/// The unit of the numbers of trends, if all series have the same.
fn unit(query: &TrendsQuery) -> &'static str {
    let unit = |word: &str| MATHS.iter().find(|math| math.word == word).map(|math| math.unit);
    let mut units = query.series.iter().map(|series| unit(series.math.word()));
    let first = units.next().flatten();
    let is_one = query.filter.formulas.is_empty() && units.all(|other| other == first);
    first.filter(|_| is_one).unwrap_or("numbers")
}

pub(super) fn of_steps(funnels: &[Vec<FunnelStepResult>], has_values: bool) -> TileAnswer {
    let mut columns = vec![texts("Step"), numbers("Persons"), numbers("Of the first step")];
    if has_values {
        columns.insert(1, texts("Value"));
    }
    let rows = funnels.iter().flat_map(|steps| {
        let first = steps.first().map_or(0, |step| step.count);
        steps.iter().map(move |step| {
            let name = step.custom_name.as_ref().unwrap_or(&step.name);
            let name = format!("{}. {name}", step.order + 1);
            let mut row = vec![text(&name), count(step.count), share(step.count, first)];
            if has_values {
                row.insert(1, text(&value_label(step.breakdown_value.as_ref())));
            }
            row
        })
    });
    table(columns, rows.collect())
}

pub(super) fn of_times(found: &TimeToConvertResult) -> TileAnswer {
    let row =
        |(seconds, persons): &(i64, u64)| vec![TileValue::Number(*seconds as f64), count(*persons)];
    let columns = vec![numbers("From seconds"), numbers("Persons")];
    let mut tile = table(columns, found.bins.iter().map(row).collect());
    if let Some(average) = found.average_conversion_time {
        tile.notes.push(format!("On average: {} seconds.", average.value()));
    }
    tile
}

/// `is_open`: the last interval is not over. Its persons have had less time than the others, so
/// it is omitted.
pub(super) fn of_rates(
    interval: &str,
    mut found: Vec<FunnelTrendResult>,
    is_open: bool,
) -> TileAnswer {
    if is_open {
        for one in &mut found {
            one.data.pop();
            one.labels.pop();
        }
    }
    let label = |one: &FunnelTrendResult| match &one.breakdown_value {
        None => "Conversion".to_owned(),
        value => value_label(value.as_ref()),
    };
    let row = |one: &FunnelTrendResult| {
        let last =
            one.data.last().map_or(TileValue::Missing, |rate| TileValue::Percent(rate.value()));
        vec![text(&label(one)), last]
    };
    let rows = found.iter().map(row).collect();
    let mut tile = table(vec![texts("Series"), numbers("Last interval")], rows);
    if is_open {
        tile.notes.push(format!("The current {interval} is not over, so it is omitted."));
    }
    tile.notes.push("Intervals in which no person begins have 0%.".to_owned());
    let intervals = found.first().map(|one| days::intervals(&one.labels)).unwrap_or_default();
    let series = found.iter().take(NUMBERED).map(|one| SeriesView {
        label: label(one),
        value: None,
        numbers: NumbersView {
            data: one.data.iter().map(|rate| rate.value()).collect(),
            whole: None,
        },
        before: None,
    });
    let title = format!("Conversion per {interval}");
    let (series, unit) = (series.collect(), "percent".to_owned());
    with_chart(tile, TileChart { title, intervals, series, unit })
}

/// `labels`: the text of the period of each result.
pub(super) fn of_retention(labels: &[String], found: &[RetentionResult]) -> TileAnswer {
    let has_values = found.iter().any(|one| one.breakdown_value.is_some());
    let mut columns = vec![texts("Cohort"), numbers("Persons")];
    if has_values {
        columns.insert(1, texts("Value"));
    }
    let longest = found.iter().max_by_key(|one| one.values.len());
    let periods = longest.map(|one| one.values.as_slice()).unwrap_or_default();
    let shown = COLUMNS_MAX - columns.len();
    columns.extend(periods.iter().skip(1).take(shown).map(|value| numbers(&value.label)));
    let is_cut = periods.len() > shown + 1;
    let width = columns.len();
    let row = |(one, label): (&RetentionResult, &String)| {
        let first = one.values.first().map_or(0, |value| value.count);
        let mut row = vec![text(label)];
        if has_values {
            row.push(text(&value_label(one.breakdown_value.as_ref())));
        }
        row.push(count(first));
        let later = one.values.iter().skip(1).map(|value| share(value.count, first));
        row.extend(later.take(shown));
        row.resize(width, TileValue::Missing);
        row
    };
    let mut tile = table(columns, found.iter().zip(labels).map(row).collect());
    if is_cut {
        tile.notes.push(format!("A tile shows the first {} periods.", shown + 1));
    }
    tile
}

pub(super) fn of_paths(found: Vec<PathResult>) -> TileAnswer {
    let step = |key: &str| match key.split_once('_') {
        Some((number, name)) => text(&format!("{number}. {name}")),
        None => text(key),
    };
    let row = |edge: &PathResult| vec![step(&edge.source), step(&edge.target), count(edge.value)];
    let columns = vec![texts("From"), texts("To"), numbers("Times")];
    table(columns, found.iter().map(row).collect())
}

pub(super) fn of_stickiness(found: Vec<StickinessResult>) -> TileAnswer {
    let is_before = |one: &StickinessResult| one.compare_label == Some(CompareLabel::Previous);
    let shown: Vec<&StickinessResult> = found.iter().take(COLUMNS_MAX - 1).collect();
    let mut columns = vec![texts("Active in")];
    columns.extend(shown.iter().map(|one| match is_before(one) {
        true => numbers(&format!("{}, period before", one.label)),
        false => numbers(&one.label),
    }));
    let longest = shown.iter().max_by_key(|one| one.labels.len());
    let labels = longest.map(|one| one.labels.as_slice()).unwrap_or_default();
    let row = |(at, label): (usize, &String)| -> Vec<TileValue> {
        let value = |one: &&StickinessResult| {
            one.data.get(at).map_or(TileValue::Missing, |persons| count(*persons))
        };
        std::iter::once(text(label)).chain(shown.iter().map(value)).collect()
    };
    table(columns, labels.iter().enumerate().map(row).collect())
}

pub(super) fn of_lifecycle(interval: &str, found: Vec<LifecycleResult>) -> TileAnswer {
    let row = |one: &LifecycleResult| {
        vec![text(status_label(&one.status)), TileValue::Number(one.count.value())]
    };
    let columns = vec![texts("Status"), numbers("Sum of the intervals")];
    let mut tile = table(columns, found.iter().map(row).collect());
    tile.notes.push(DORMANT_NOTE.to_owned());
    let intervals = found.first().map(|one| days::intervals(&one.labels)).unwrap_or_default();
    let series = found.iter().map(|one| SeriesView {
        label: status_label(&one.status).to_owned(),
        value: None,
        numbers: NumbersView {
            data: one.data.iter().map(|amount| amount.value().abs()).collect(),
            whole: None,
        },
        before: None,
    });
    let (series, unit) = (series.collect(), "persons".to_owned());
    let title = format!("Persons per {interval}");
    with_chart(tile, TileChart { title, intervals, series, unit })
}

pub(super) fn of_rows(columns: Vec<String>, found: Vec<Vec<Value>>) -> TileAnswer {
    let is_cut = columns.len() > COLUMNS_MAX;
    let value = |value: &Value| match value {
        Value::Null => TileValue::Missing,
        Value::Number(number) => number.as_f64().map_or(TileValue::Missing, TileValue::Number),
        Value::String(it) => text(it),
        other => text(&other.to_string()),
    };
    let row =
        |row: Vec<Value>| -> Vec<TileValue> { row.iter().take(COLUMNS_MAX).map(value).collect() };
    let has_numbers = |at: usize| {
        let mut values = found.iter().filter_map(|row| row.get(at));
        values.all(|value| value.is_number() || value.is_null())
    };
    let column = |(at, label): (usize, String)| TileColumn { label, has_numbers: has_numbers(at) };
    let columns = columns.into_iter().take(COLUMNS_MAX).enumerate().map(column).collect();
    let mut tile = table(columns, found.into_iter().map(row).collect());
    if is_cut {
        tile.notes.push(format!("A tile shows the first {COLUMNS_MAX} columns."));
    }
    tile
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::json;
    use weir_questions::Query;
    use weir_questions::results::BREAKDOWN_NULL;

    use super::*;

    fn read<T: DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    fn trends(more: &Value) -> TrendsQuery {
        let mut query = json!({"kind": "TrendsQuery", "series": [{"event": "paid"}]});
        for (name, value) in more.as_object().unwrap() {
            query[name] = value.clone();
        }
        match Query::read(&query).unwrap() {
            Query::Trends(query) => query,
            other => panic!("{other:?}"),
        }
    }

    fn result(label: &str, data: &[u64], compare: &str) -> TrendsResult {
        let labels: Vec<String> = (0..data.len()).map(|at| format!("day {at}")).collect();
        read(json!({
            "action": null, "order": 0, "label": label, "count": data.iter().sum::<u64>(),
            "data": data, "labels": labels, "days": labels, "compare": true,
            "compare_label": compare, "breakdown_value": label,
        }))
    }

    #[test]
    fn trends_have_a_chart_and_the_numbers_of_the_range() {
        let query = trends(&json!({"compareFilter": {"compare": true}}));
        let found = vec![
            result(BREAKDOWN_NULL, &[1, 2], "current"),
            result(BREAKDOWN_NULL, &[4, 0], "previous"),
        ];
        let tile = of_trends(&query, &found, &[]);
        let row = vec![text("Without a value"), TileValue::Number(3.0), TileValue::Number(4.0)];
        assert_eq!((tile.rows, tile.columns.len()), (vec![row], 3));
        let chart = tile.chart.unwrap();
        assert_eq!((chart.title.as_str(), chart.intervals.len()), ("Per day", 2));
        assert_eq!(chart.series[0].before.as_ref().unwrap().data, [4.0, 0.0]);
    }

    #[test]
    fn the_number_of_a_range_is_known_or_missing() {
        let unique = trends(&json!({"series": [{"event": "paid", "math": "dau"}]}));
        let found = vec![result("paid", &[1, 1], "current")];
        let tile = of_trends(&unique, &found, &[]);
        assert_eq!(tile.rows[0][1], TileValue::Missing);
        let mut whole = found[0].clone();
        whole.aggregated_value = Some(1_u64.into());
        let tile = of_trends(&unique, &found, &[whole]);
        assert_eq!(tile.rows[0][1], TileValue::Number(1.0));
    }

    #[test]
    fn long_answers_are_cut_and_say_so() {
        let rows = (0..12).map(|at| vec![json!(at), json!("x")]).collect();
        let tile = of_rows(vec!["n".to_owned(), "text".to_owned()], rows);
        assert_eq!((tile.rows.len(), tile.hidden_rows), (ROWS_MAX, 2));
        assert!(tile.columns[0].has_numbers && !tile.columns[1].has_numbers);
        let many = of_trends(&trends(&json!({})), &[result("a", &[1; 101], "current")], &[]);
        assert_eq!(many.chart, None);
        assert_eq!(many.notes, ["A tile draws at most 100 intervals."]);
    }

    #[test]
    fn steps_have_their_part_of_the_first_one() {
        let step = |order: usize, count: u64| {
            json!({
                "action_id": "a", "name": "a", "custom_name": null, "order": order,
                "count": count, "type": "events", "people": [],
                "average_conversion_time": null, "median_conversion_time": null,
            })
        };
        let tile = of_steps(&[read(json!([step(0, 8), step(1, 3)]))], false);
        let second = vec![text("2. a"), TileValue::Number(3.0), share(3, 8)];
        assert_eq!(tile.rows[1], second);
    }

    #[test]
    fn rates_leave_out_an_interval_that_is_not_over() {
        let days = ["2026-08-20", "2026-08-21"];
        let found: Vec<FunnelTrendResult> = read(json!([
            {"count": 2, "data": [50, 10], "days": days, "labels": days},
        ]));
        let last = |is_open: bool| {
            let tile = of_rates("day", found.clone(), is_open);
            (tile.rows[0][1].clone(), tile.chart.unwrap().intervals.len())
        };
        assert_eq!(last(false), (TileValue::Percent(10.0), 2));
        assert_eq!(last(true), (TileValue::Percent(50.0), 1));
    }

    #[test]
    fn series_of_one_unit_have_its_name() {
        let unit = |more: Value| unit(&trends(&more));
        assert_eq!(unit(json!({})), "events");
        let series = |maths: [&str; 2]| {
            let series = maths.map(|math| json!({"event": "paid", "math": math}));
            json!({"series": series})
        };
        assert_eq!(unit(series(["dau", "dau"])), "persons");
        assert_eq!(unit(series(["dau", "total"])), "numbers");
        assert_eq!(unit(json!({"trendsFilter": {"formula": "A / 2"}})), "numbers");
    }

    #[test]
    fn periods_that_have_not_come_have_no_number() {
        let value = |count: u64, at: usize| json!({"count": count, "label": format!("Day {at}")});
        let period = |values: Value, day: &str| json!({"values": values, "label": "Day 0", "date": format!("{day}T00:00:00Z")});
        let found = json!([
            period(json!([value(4, 0), value(1, 1)]), "2026-08-20"),
            period(json!([value(2, 0)]), "2026-08-21"),
        ]);
        let found: Vec<RetentionResult> = read(found);
        let labels = ["20 Aug 2026", "21 Aug 2026"].map(str::to_owned);
        let tile = of_retention(&labels, &found);
        assert_eq!(tile.columns[2].label, "Day 1");
        assert_eq!(tile.rows[0][2], share(1, 4));
        assert_eq!(tile.rows[1], [text("21 Aug 2026"), count(2), TileValue::Missing]);
    }
}
