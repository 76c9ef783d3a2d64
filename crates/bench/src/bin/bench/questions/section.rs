//! The section of the report.

use std::fmt::Write as _;

use weir_bench::questions::Engine;
use weir_bench::stats::median;

use super::live::{STEADY, Sending};
use super::{Questions, RUNS, Row, Timing};
use crate::table::{Table, grouped, megabytes, short, yes_or_no};

/// The events that the aims are about.
const AIMED: u64 = 10_000_000;
/// The most times that DuckDB's time may be taken.
const RATIO: f64 = 1.5;
/// The most memory in MB.
const MEMORY: f64 = 512.0;
/// The most milliseconds until an event counts.
const COUNTED: f64 = 2_000.0;
/// The least share of the events that are stored beside questions.
const STORED: f64 = 0.8;

impl Timing {
    fn median(&self) -> f64 {
        median(&self.warm)
    }

    fn least(&self) -> f64 {
        self.warm.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn cells(&self) -> [String; 5] {
        [
            short(self.first),
            short(self.least()),
            short(self.median()),
            short(self.cpu),
            format!("{:.0}", megabytes(self.memory)),
        ]
    }
}

impl Row {
    /// The median of Weir, divided by that of another engine.
    fn ratio(&self, engine: Engine) -> Option<f64> {
        let (_, peer) = self.peers.iter().find(|(found, _)| *found == engine)?;
        Some(self.weir.median() / peer.median().max(1e-9))
    }
}

impl Questions {
    fn memory(&self) -> f64 {
        megabytes(self.rows.iter().map(|row| row.weir.memory).max().unwrap_or(0))
    }

    /// The share of the events that are stored beside questions.
    fn stored(&self) -> f64 {
        self.asking.beside.stored / self.asking.alone.stored.max(1e-9)
    }

    /// The word for the first time of a question.
    fn first(&self) -> &'static str {
        if self.is_cold { "cold" } else { "first" }
    }
}

/// The whole section.
pub(crate) fn section(figures: &Questions) -> String {
    head(figures) + &aims(figures) + &engines(figures) + &live(figures)
}

fn head(figures: &Questions) -> String {
    let machine = &figures.machine;
    let mut text = format!(
        "## Questions\n\n\
         {events} events of {persons} persons in 30 days, imported ({imported} events/s, stored and readable) and sealed: {segments:.0} MB in Parquet files.\n\
         {cores} processors ({processor}), {memory} MB of memory, Linux {kernel}, {fs}.\n",
        events = grouped(figures.events as f64),
        persons = grouped(figures.persons as f64),
        imported = grouped(figures.imported),
        segments = megabytes(figures.segments),
        cores = machine.cores,
        processor = machine.processor,
        memory = machine.memory,
        kernel = machine.kernel,
        fs = machine.file_system,
    );
    text += if figures.is_cold {
        "*Cold*: the file cache was dropped before. "
    } else {
        "*First*: the first time of each question; the file cache could not be dropped. "
    };
    let _ = writeln!(
        text,
        "The other times are of the {RUNS} runs after it, with the files in the cache. Milliseconds; processor time of one of these runs; memory is the highest resident one, of other engines with that of Python."
    );
    if figures.events < AIMED {
        let _ = writeln!(text, "The aims are for {} events.", grouped(AIMED as f64));
    }
    for engine in &figures.absent {
        let _ = writeln!(text, "{} is not installed, and was not measured.", engine.name());
    }
    text.push('\n');
    text
}

fn aims(figures: &Questions) -> String {
    let mut table = Table::new("", &["aim", "wanted", "reached", "kept"]);
    let mut most = |name: &str, wanted: f64, unit: &str, reached: f64| {
        table.row(&[
            name.to_owned(),
            format!("≤ {wanted} {unit}").trim_end().to_owned(),
            format!("{} {unit}", short(reached)).trim_end().to_owned(),
            yes_or_no(reached <= wanted),
        ]);
    };
    for row in &figures.rows {
        most(&format!("{}, median", row.kind.name()), row.kind.aim(), "ms", row.weir.median());
    }
    for row in &figures.rows {
        if let Some(ratio) = row.ratio(Engine::DuckDb) {
            most(&format!("{}, to DuckDB", row.kind.name()), RATIO, "", ratio);
        }
    }
    most("memory, highest", MEMORY, "MB", figures.memory());
    let counted = figures.fresh.counted.percentile(1.0);
    most("until an event counts, highest", COUNTED, "ms", counted);
    let stored = figures.stored();
    table.row(&[
        "events stored beside questions, to those without".to_owned(),
        format!("≥ {STORED}"),
        format!("{stored:.2}"),
        yes_or_no(stored >= STORED),
    ]);
    table.end()
}

/// Weir beside the other engines, which gave the same numbers.
fn engines(figures: &Questions) -> String {
    let first = figures.first();
    let columns = [
        "question",
        "numbers",
        "engine",
        first,
        "warm, min",
        "median",
        "CPU",
        "memory, MB",
        "Weir's median to it",
    ];
    let mut table = Table::new("All engines gave the same numbers:\n\n", &columns);
    for row in &figures.rows {
        let mut add = |engine: &str, timing: &Timing, ratio: Option<f64>| {
            let ratio = ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"));
            let mut cells =
                vec![row.kind.name().to_owned(), grouped(row.cells as f64), engine.to_owned()];
            cells.extend(timing.cells());
            cells.push(ratio);
            table.row(&cells);
        };
        add("Weir", &row.weir, None);
        for (engine, timing) in &row.peers {
            add(engine.name(), timing, row.ratio(*engine));
        }
    }
    let mut text = table.end();
    let _ = writeln!(
        text,
        "The first question after a start, unique persons by day ({first}): {} ms.\n",
        short(figures.started)
    );
    text
}

fn live(figures: &Questions) -> String {
    let fresh = &figures.fresh;
    let mut text = format!(
        "While {} events/s arrived ({} were acknowledged), {} single events counted after {} ms (p50), {} ms (p95), {} ms at most.\n\n",
        grouped(STEADY),
        grouped(fresh.rate),
        fresh.counted.count(),
        short(fresh.counted.percentile(0.5)),
        short(fresh.counted.percentile(0.95)),
        short(fresh.counted.percentile(1.0)),
    );
    let mut table = Table::new(
        "Batches of 100 events of 5,000 distinct ids as fast as they are acknowledged, alternately without questions and with one question after the other:\n\n",
        &["", "acknowledged/s", "stored and readable/s"],
    );
    let asking = &figures.asking;
    for (name, Sending { acknowledged, stored }) in
        [("no questions", &asking.alone), ("questions", &asking.beside)]
    {
        table.row(&[name.to_owned(), grouped(*acknowledged), grouped(*stored)]);
    }
    text += &table.end();
    let _ = writeln!(
        text,
        "Of the questions beside them, {} were answered, and {} refused for the load.\n",
        asking.answered, asking.busy
    );
    text
}
