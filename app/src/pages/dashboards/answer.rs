//! The answer of a tile: its chart, and its table.

use std::borrow::Cow;

use leptos::prelude::*;

use crate::pages::insights::trends::{decimals, line, summary};
use crate::server_fns::dashboards::tiles::{TileAnswer, TileChart, TileColumn, TileValue};
use crate::ui::chart::{NamedLines, Series};
use crate::ui::number::{amount, counted, percent};
use crate::ui::table::{Align, Column, Table, TableRow, cell, truncated};
use crate::ui::time::Time;

/// The answer of the tile with this number and name.
pub(super) fn answer(id: i64, name: &str, found: TileAnswer) -> AnyView {
    let TileAnswer { chart, columns, rows, hidden_rows, notes, timezone, computed_at } = found;
    if rows.is_empty() {
        return view! { <p>"Nothing matches the question."</p> }.into_any();
    }
    let chart = chart.map(|chart| drawn(id, chart, &timezone));
    let hidden = (hidden_rows > 0).then(|| {
        format!("{} not shown.", counted(hidden_rows, "further row is", "further rows are"))
    });
    let notes = notes.into_iter().chain(hidden);
    let notes = notes.map(|note| view! { <p class="hint">{note}</p> }).collect_view();
    let columns = columns.into_iter().map(column).collect();
    let rows = rows.into_iter().map(row).collect();
    view! {
        {chart}
        <Table caption=format!("Numbers of {name}") columns=columns rows=rows can_scroll=true />
        {notes}
        <p class="hint">"Computed at " <Time iso=computed_at /></p>
    }
    .into_any()
}

fn drawn(id: i64, chart: TileChart, zone: &str) -> AnyView {
    let TileChart { title, intervals, series, unit } = chart;
    let decimals = decimals(&series);
    let summary = summary(&intervals, zone);
    let lines = series.into_iter().enumerate().flat_map(|(number, one)| {
        let before = one.before.map(|before| {
            line(format!("{}, period before", one.label), number, true, &before, decimals)
        });
        let now = line(one.label, number, false, &one.numbers, decimals);
        std::iter::once(now).chain(before)
    });
    let mut lines: Vec<Series> = lines.collect();
    // The period before can have more intervals.
    lines.iter_mut().for_each(|line| line.cut(intervals.len()));
    let id = format!("tile-{id}-chart");
    view! {
        <NamedLines id=id title=title summary=summary names=intervals series=lines unit=unit decimals=decimals />
    }
    .into_any()
}

fn column(column: TileColumn) -> Column {
    let TileColumn { label, has_numbers } = column;
    let align = if has_numbers { Align::End } else { Align::Start };
    Column { label: Cow::Owned(label), align, sort: None }
}

fn row(values: Vec<TileValue>) -> TableRow {
    let value = |value: TileValue| match value {
        TileValue::Text(text) => truncated(text),
        TileValue::Number(number) => cell(amount(number)),
        TileValue::Percent(number) => cell(format!("{}%", amount(number))),
        TileValue::Share { part, whole } => cell(percent(part, whole)),
        TileValue::Missing => cell("-"),
    };
    TableRow::new(values.into_iter().map(value).collect())
}
