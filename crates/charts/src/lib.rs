//! Charts of answers as PNG images, for programs that show mails and draw no SVG (ADR 31).
//!
//! What belongs here: the layout of a chart, its pixels, and their file. What does not: which
//! numbers a chart has (`weir-service`), and the mail around it (`weir-mail`).
//!
//! Invariant: an image follows from the chart alone, and has at most [`WIDTH`] times
//! [`HEIGHT_MAX`] pixels, however many numbers and however long texts the chart has.

mod canvas;
mod chart;
mod file;
mod font;
mod scale;

use weir_model::reports::Chart;

pub use chart::{HEIGHT_MAX, WIDTH};

/// The chart as a PNG image. It takes some milliseconds of a thread.
#[must_use]
pub fn png(chart: &Chart) -> Vec<u8> {
    file::png(&chart::draw(chart))
}

#[cfg(test)]
mod tests;
