//! Answers of insights as mails show them: a chart, a table, or one number.
//!
//! What belongs here: the data, which waits in the outbox with its mail. What does not: making
//! it from an answer (`weir-service`), drawing (`weir-charts`) and layout (`weir-mail`).

use serde::{Deserialize, Serialize};

/// Most series of a chart.
pub const SERIES_MAX: usize = 10;
/// Most points of a series.
pub const POINTS_MAX: usize = 120;
/// Most rows of a table.
pub const ROWS_MAX: usize = 12;
/// Most columns of a table.
pub const COLUMNS_MAX: usize = 8;
/// Most characters of a name or a label.
pub const LABEL_MAX: usize = 100;
/// Most insights of a mail.
pub const REPORTS_MAX: usize = 6;

/// The answer of an insight.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Report {
    /// Name of the insight.
    pub name: String,
    /// The range of the answer. Empty: it has none.
    pub range: String,
    /// The one number of the answer.
    pub number: Option<String>,
    /// The chart.
    pub chart: Option<Chart>,
    /// The numbers.
    pub table: Option<ReportTable>,
    /// What the numbers do not say, or why there is no answer.
    pub notes: Vec<String>,
    /// The page of the insight, as a path.
    pub path: String,
}

/// A table. The first cell of a row says what the others are about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReportTable {
    /// The headings.
    pub columns: Vec<String>,
    /// The cells of each row.
    pub rows: Vec<Vec<String>>,
}

/// How the numbers of a chart are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChartKind {
    /// A line for each series.
    Lines,
    /// Bars, those of one label beside each other.
    Bars,
}

/// A chart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chart {
    /// How it is drawn.
    pub kind: ChartKind,
    /// The texts below the horizontal axis, one for each number of a series.
    pub labels: Vec<String>,
    /// The series.
    pub series: Vec<ChartSeries>,
}

/// A series of a chart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChartSeries {
    /// Name of the series.
    pub label: String,
    /// The numbers. Null: there is none.
    pub values: Vec<Option<Finite>>,
}

/// A number that is finite, so that it equals itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Finite(f64);

impl Eq for Finite {}

impl Finite {
    /// The number. `None`: it is not finite.
    pub fn new(number: f64) -> Option<Self> {
        number.is_finite().then_some(Self(number))
    }

    /// The number.
    pub fn value(self) -> f64 {
        self.0
    }
}

/// What a mail of a subscription contains beside the recipient.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Digest {
    /// Title of the subscription, or name of what it is about.
    pub title: String,
    /// Name of the project.
    pub project: String,
    /// The answers.
    pub reports: Vec<Report>,
    /// The insights of the dashboard that the mail does not show.
    pub hidden: u64,
    /// The insight or the dashboard, as a path.
    pub path: String,
    /// The page with the settings of the subscription, as a path.
    pub settings: String,
}
