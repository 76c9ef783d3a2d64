//! From an answer to what a mail shows of it (API-70). Nothing here reads a clock or the store.

use serde::de::DeserializeOwned;
use weir_model::reports::{
    COLUMNS_MAX, Chart, ChartKind, ChartSeries, Finite, LABEL_MAX, POINTS_MAX, ROWS_MAX, Report,
    ReportTable, SERIES_MAX,
};
use weir_questions::Query;
use weir_questions::query::{Display, FunnelVisualization, TrendsQuery};
use weir_questions::results::{
    BREAKDOWN_NULL, BREAKDOWN_OTHER, BreakdownValue, CompareLabel, FunnelStepResult,
    FunnelTrendResult, LifecycleResult, PathResult, RetentionResult, StickinessResult,
    TimeToConvertResult, TrendsResult, WebOverviewItem,
};
use weir_questions::time::Interval;
use weir_schedule::local_text;
use weir_store::insights::InsightRow;

use crate::questions::Answered;

/// The name of an insight without one.
const UNNAMED: &str = "Insight without a name";
/// Above this, not every whole number is a `f64`.
const EXACT: f64 = 9_007_199_254_740_992.0;
const PERCENT: f64 = 100.0;

/// The name of an insight.
pub(super) fn name(row: &InsightRow) -> String {
    let name = row.name.as_deref().or(row.derived_name.as_deref());
    short(name.filter(|name| !name.is_empty()).unwrap_or(UNNAMED))
}

/// Whether mails show answers to a question. Lists of events and persons and SQL can show single
/// persons, whose data would stay in mails.
pub(super) fn is_shown(query: &Query) -> bool {
    !matches!(
        query,
        Query::WebTable(_)
            | Query::WebTrends(_)
            | Query::Events(_)
            | Query::HogQL(_)
            | Query::Actors(_)
    )
}

/// The report with an answer. `empty` has the name and the path of the insight.
pub(super) fn of(
    query: &Query,
    answered: &Answered,
    empty: Report,
) -> Result<Report, serde_json::Error> {
    let mut report = match query {
        Query::Trends(query) => of_trends(query, &read::<Vec<TrendsResult>>(answered)?),
        Query::Funnels(query) => match query.filter.visualization {
            FunnelVisualization::Steps if query.breakdown.is_some() => {
                of_steps(&read::<Vec<Vec<FunnelStepResult>>>(answered)?)
            }
            FunnelVisualization::Steps => of_steps(&[read(answered)?]),
            FunnelVisualization::TimeToConvert => of_times(&read(answered)?),
            FunnelVisualization::Trends => of_rates(read(answered)?),
        },
        Query::Retention(query) => {
            let has_time = matches!(query.filter.period, Interval::Minute | Interval::Hour);
            let zone = answered.answer.timezone.as_str();
            let label = |one: &RetentionResult| {
                let text = local_text(zone, one.date, has_time);
                text.unwrap_or_else(|| one.date.minute_text())
            };
            of_retention(&read::<Vec<RetentionResult>>(answered)?, label)
        }
        Query::Stickiness(_) => of_stickiness(read(answered)?),
        Query::Lifecycle(_) => of_lifecycle(read(answered)?),
        Query::Paths(_) => of_paths(&read::<Vec<PathResult>>(answered)?),
        Query::WebOverview(_) => of_overview(&read::<Vec<WebOverviewItem>>(answered)?),
        // They are not asked: see `is_shown`.
        Query::WebTable(_)
        | Query::WebTrends(_)
        | Query::Events(_)
        | Query::HogQL(_)
        | Query::Actors(_) => Report::default(),
    };
    if answered.answer.has_more == Some(true) {
        report.notes.push("There is more than the insight shows.".to_owned());
    }
    report.range = range(answered);
    Ok(Report { name: empty.name, path: empty.path, ..report })
}

fn read<T: DeserializeOwned>(answered: &Answered) -> Result<T, serde_json::Error> {
    serde_json::from_str(answered.answer.results.get())
}

/// `2026-08-14 to 2026-08-21, Europe/Berlin`
fn range(answered: &Answered) -> String {
    let zone = &answered.answer.timezone;
    let text = answered.answer.resolved_date_range.as_ref().and_then(|range| {
        let from = local_text(zone, range.date_from, false)?;
        let to = local_text(zone, range.date_to, false)?;
        let days = if from == to { from } else { format!("{from} to {to}") };
        Some(format!("{days}, {zone}"))
    });
    text.unwrap_or_default()
}

fn of_trends(query: &TrendsQuery, found: &[TrendsResult]) -> Report {
    let label = |one: &TrendsResult| compared(&one.label, one.compare_label);
    if query.filter.display.is_total() {
        let value = |one: &TrendsResult| one.aggregated_value.unwrap_or_default().value();
        if let (Display::Number, [only]) = (query.filter.display, found) {
            return Report { number: Some(amount(value(only))), ..Report::default() };
        }
        let numbers: Vec<(String, f64)> =
            found.iter().map(|one| (label(one), value(one))).collect();
        return of_numbers("Series", "Number", &numbers);
    }
    let kind = match query.filter.display {
        Display::Bar | Display::StackedBar | Display::UnstackedBar => ChartKind::Bars,
        _ => ChartKind::Lines,
    };
    let series = found.iter().map(|one| {
        let data = one.data.iter().map(|amount| amount.value()).collect();
        (label(one), data)
    });
    // The texts of the range itself, also if another one is compared with it.
    let now = found.iter().find(|one| one.compare_label != Some(CompareLabel::Previous));
    let labels = now.map(|one| one.labels.as_slice()).unwrap_or_default();
    over_time(kind, labels, series.collect())
}

/// One number for each name: a bar, and a row of the table.
fn of_numbers(name: &str, number: &str, numbers: &[(String, f64)]) -> Report {
    let rows = numbers.iter().map(|(label, value)| vec![label.clone(), amount(*value)]).collect();
    let mut report = table(vec![name.to_owned(), number.to_owned()], rows);
    let shown = numbers.get(..SERIES_MAX.min(numbers.len())).unwrap_or_default();
    if !shown.is_empty() {
        let values = shown.iter().map(|(_, value)| Finite::new(*value)).collect();
        report.chart = Some(Chart {
            kind: ChartKind::Bars,
            labels: shown.iter().map(|(label, _)| label.clone()).collect(),
            series: vec![ChartSeries { label: number.to_owned(), values }],
        });
        note_hidden(&mut report.notes, "The chart", "bars", shown.len(), numbers.len());
    }
    report
}

/// Numbers for each interval: a chart of all, and a table of the last ones.
fn over_time(kind: ChartKind, labels: &[String], series: Vec<(String, Vec<f64>)>) -> Report {
    let last = |count: usize| labels.len().saturating_sub(count);
    let columns_from = last(COLUMNS_MAX - 1);
    let mut columns = vec!["Series".to_owned()];
    columns.extend(labels.iter().skip(columns_from).cloned());
    let row = |(label, data): &(String, Vec<f64>)| {
        let numbers = data.iter().skip(columns_from).take(columns.len() - 1);
        std::iter::once(label.clone()).chain(numbers.map(|number| amount(*number))).collect()
    };
    let rows: Vec<Vec<String>> = series.iter().map(row).collect();
    let (count, points_from) = (series.len(), last(POINTS_MAX));
    let mut report = table(columns, rows);
    if columns_from > 0 {
        let shown = labels.len() - columns_from;
        report.notes.push(format!("The table has the last {shown} of {} intervals.", labels.len()));
    }
    if labels.is_empty() || series.is_empty() {
        return report;
    }
    if points_from > 0 {
        let all = labels.len();
        report.notes.push(format!("The chart has the last {POINTS_MAX} of {all} intervals."));
    }
    note_hidden(&mut report.notes, "The chart", "series", count.min(SERIES_MAX), count);
    let drawn = series.into_iter().take(SERIES_MAX).map(|(label, data)| ChartSeries {
        label,
        values: data.into_iter().skip(points_from).map(Finite::new).collect(),
    });
    report.chart = Some(Chart {
        kind,
        labels: labels.iter().skip(points_from).cloned().collect(),
        series: drawn.collect(),
    });
    report
}

fn of_steps(funnels: &[Vec<FunnelStepResult>]) -> Report {
    let has_values = funnels.len() > 1;
    let columns = ["Step", "Persons", "Of the first step"].map(str::to_owned);
    let step_name = |step: &FunnelStepResult| {
        let name = step.custom_name.as_ref().unwrap_or(&step.name);
        short(&format!("{}. {name}", step.order + 1))
    };
    let rows = funnels.iter().flat_map(|steps| {
        let first = steps.first().map_or(0, |step| step.count);
        steps.iter().map(move |step| {
            let value = step.breakdown_value.as_ref().map(value_label);
            let value = value.filter(|_| has_values);
            let name = step_name(step);
            let name = value.map_or_else(|| name.clone(), |value| format!("{value}: {name}"));
            vec![name, amount(step.count as f64), share(step.count, first)]
        })
    });
    let mut report = table(columns.into(), rows.collect());
    let count = funnels.len();
    let drawn = funnels.iter().take(SERIES_MAX).map(|steps| ChartSeries {
        label: steps
            .first()
            .and_then(|step| step.breakdown_value.as_ref())
            .map_or_else(|| "Persons".to_owned(), value_label),
        values: steps.iter().map(|step| Finite::new(step.count as f64)).collect(),
    });
    let labels: Option<Vec<String>> =
        funnels.first().map(|steps| steps.iter().map(step_name).collect());
    report.chart =
        labels.map(|labels| Chart { kind: ChartKind::Bars, labels, series: drawn.collect() });
    note_hidden(&mut report.notes, "The chart", "values", count.min(SERIES_MAX), count);
    report
}

fn of_times(found: &TimeToConvertResult) -> Report {
    let numbers: Vec<(String, f64)> = found
        .bins
        .iter()
        .map(|(seconds, persons)| (format!("from {seconds} s"), *persons as f64))
        .collect();
    let mut report = of_numbers("Time to convert", "Persons", &numbers);
    if let Some(average) = found.average_conversion_time {
        report.notes.push(format!("On average: {} seconds.", amount(average.value())));
    }
    report
}

fn of_rates(found: Vec<FunnelTrendResult>) -> Report {
    let labels = found.first().map(|one| one.labels.clone()).unwrap_or_default();
    let series = found.into_iter().map(|one| {
        let label = one
            .breakdown_value
            .as_ref()
            .map_or_else(|| "Conversion in percent".to_owned(), value_label);
        (label, one.data.iter().map(|rate| rate.value()).collect())
    });
    over_time(ChartKind::Lines, &labels, series.collect())
}

fn of_retention(found: &[RetentionResult], label: impl Fn(&RetentionResult) -> String) -> Report {
    let longest = found.iter().max_by_key(|one| one.values.len());
    let periods = longest.map(|one| one.values.as_slice()).unwrap_or_default();
    let mut columns = vec!["Cohort".to_owned(), "Persons".to_owned()];
    let shown = COLUMNS_MAX - columns.len();
    columns.extend(periods.iter().skip(1).take(shown).map(|value| value.label.clone()));
    let row = |one: &RetentionResult| {
        let first = one.values.first().map_or(0, |value| value.count);
        let name = match &one.breakdown_value {
            Some(value) => format!("{}, {}", value_label(value), label(one)),
            None => label(one),
        };
        let later = one.values.iter().skip(1).take(shown);
        let later = later.map(|value| share(value.count, first));
        [name, amount(first as f64)].into_iter().chain(later).collect()
    };
    let mut report = table(columns, found.iter().map(row).collect());
    if periods.len() > shown + 1 {
        report.notes.push(format!("The table has the first {} periods.", shown + 1));
    }
    report
}

fn of_stickiness(found: Vec<StickinessResult>) -> Report {
    let longest = found.iter().max_by_key(|one| one.labels.len());
    let labels = longest.map(|one| one.labels.clone()).unwrap_or_default();
    let (count, intervals) = (found.len(), labels.len());
    let shown = found.iter().take(COLUMNS_MAX - 1);
    let mut columns = vec!["Active in".to_owned()];
    columns.extend(shown.clone().map(|one| compared(&one.label, one.compare_label)));
    let row = |(at, label): (usize, &String)| {
        let number = |one: &StickinessResult| {
            one.data.get(at).map_or_else(String::new, |persons| amount(*persons as f64))
        };
        std::iter::once(label.clone()).chain(shown.clone().map(number)).collect()
    };
    let mut report = table(columns, labels.iter().enumerate().map(row).collect());
    let drawn = found.iter().take(SERIES_MAX).map(|one| ChartSeries {
        label: compared(&one.label, one.compare_label),
        values: one.data.iter().take(POINTS_MAX).map(|one| Finite::new(*one as f64)).collect(),
    });
    let series: Vec<ChartSeries> = drawn.collect();
    if !labels.is_empty() {
        let notes = &mut report.notes;
        note_hidden(notes, "The table", "series", count.min(COLUMNS_MAX - 1), count);
        note_hidden(notes, "The chart", "series", series.len(), count);
        let bars = intervals.min(POINTS_MAX);
        note_hidden(notes, "The chart", "numbers of intervals", bars, intervals);
        let labels = labels.into_iter().take(POINTS_MAX).collect();
        report.chart = Some(Chart { kind: ChartKind::Bars, labels, series });
    }
    report
}

fn of_lifecycle(found: Vec<LifecycleResult>) -> Report {
    let labels = found.first().map(|one| one.labels.clone()).unwrap_or_default();
    let series = found.into_iter().map(|one| {
        let data = one.data.iter().map(|amount| amount.value()).collect();
        (short(&one.status), data)
    });
    over_time(ChartKind::Bars, &labels, series.collect())
}

fn of_paths(found: &[PathResult]) -> Report {
    let step = |key: &str| match key.split_once('_') {
        Some((number, name)) => short(&format!("{number}. {name}")),
        None => short(key),
    };
    let row =
        |edge: &PathResult| vec![step(&edge.source), step(&edge.target), amount(edge.value as f64)];
    let columns = ["From", "To", "Times"].map(str::to_owned);
    table(columns.into(), found.iter().map(row).collect())
}

fn of_overview(found: &[WebOverviewItem]) -> Report {
    let number = |number: Option<f64>| number.map(amount).unwrap_or_default();
    let row = |item: &WebOverviewItem| {
        let (now, before) = (item.value, item.previous);
        let numbers = [now, before].map(|one| number(one.map(|amount| amount.value())));
        std::iter::once(item.key.clone()).chain(numbers).collect()
    };
    let columns = ["Number", "Range", "Period before"].map(str::to_owned);
    table(columns.into(), found.iter().map(row).collect())
}

/// A report with the first rows of a table.
fn table(columns: Vec<String>, mut rows: Vec<Vec<String>>) -> Report {
    let all = rows.len();
    rows.truncate(ROWS_MAX);
    let mut notes = Vec::new();
    if rows.is_empty() {
        notes.push("There are no numbers in this range.".to_owned());
        return Report { notes, ..Report::default() };
    }
    note_hidden(&mut notes, "The table", "rows", rows.len(), all);
    for row in &mut rows {
        row.resize(columns.len(), String::new());
    }
    Report { table: Some(ReportTable { columns, rows }), notes, ..Report::default() }
}

/// Notes how much is omitted, if anything is.
fn note_hidden(notes: &mut Vec<String>, what: &str, of: &str, shown: usize, all: usize) {
    if all > shown {
        notes.push(format!("{what} has the first {shown} of {all} {of}."));
    }
}

fn compared(label: &str, of: Option<CompareLabel>) -> String {
    match of {
        Some(CompareLabel::Previous) => short(&format!("{}, period before", readable(label))),
        Some(CompareLabel::Current) | None => short(&readable(label)),
    }
}

fn value_label(value: &BreakdownValue) -> String {
    short(&readable(&value.label()))
}

/// A label with words instead of the marks of breakdowns.
fn readable(label: &str) -> String {
    if label.is_empty() {
        return "Empty text".to_owned();
    }
    label.replace(BREAKDOWN_OTHER, "All other values").replace(BREAKDOWN_NULL, "Without a value")
}

fn short(text: &str) -> String {
    let text = text.trim();
    if text.chars().count() <= LABEL_MAX {
        return text.to_owned();
    }
    let cut: String = text.chars().take(LABEL_MAX - 1).collect();
    format!("{cut}…")
}

/// `12.5 %`
fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    format!("{:.1} %", part as f64 * PERCENT / whole as f64)
}

/// `312`, `-1,204.5`, `0.333`: at most three digits behind the decimal point.
fn amount(number: f64) -> String {
    let size = number.abs();
    if size > EXACT {
        return format!("{number:e}");
    }
    let text = format!("{size:.3}");
    let (whole, behind) = text.split_once('.').unwrap_or((text.as_str(), ""));
    let behind = behind.trim_end_matches('0');
    let sign = if number < 0.0 && (whole, behind) != ("0", "") { "-" } else { "" };
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let point = if behind.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{behind}")
}

#[cfg(test)]
mod tests;
