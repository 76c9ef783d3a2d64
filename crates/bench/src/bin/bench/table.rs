//! Markdown tables, and formatting of numbers.

use std::fmt::Write as _;

/// A table under construction.
pub(crate) struct Table(String);

impl Table {
    pub(crate) fn new(text_before: &str, columns: &[&str]) -> Self {
        let mut table = Self(text_before.to_owned());
        table.row(&columns.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        let _ = writeln!(table.0, "|{}", "---|".repeat(columns.len()));
        table
    }

    pub(crate) fn row(&mut self, cells: &[String]) {
        let _ = writeln!(self.0, "| {} |", cells.join(" | "));
    }

    pub(crate) fn end(mut self) -> String {
        self.0.push('\n');
        self.0
    }
}

/// Whether an aim is reached.
pub(crate) fn yes_or_no(is_reached: bool) -> String {
    if is_reached { "yes" } else { "**no**" }.to_owned()
}

/// Bytes as megabytes.
pub(crate) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Two or three significant digits.
pub(crate) fn short(value: f64) -> String {
    if value >= 100.0 {
        grouped(value)
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// An integer with thousands separators.
pub(crate) fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
