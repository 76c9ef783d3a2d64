//! Log lines of runs.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `batch_export_log` | `[export, microseconds, run, number]` | a line |
//!
//! A run has at most [`LINES`] lines.

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::exports::{LogLevel, LogLine};
use weir_model::{BatchExportId, RunId, Timestamp};

use super::newest_first::TimeWindows;
use crate::bind::bind;
use crate::db::Statement;
use crate::error::is_done;
use crate::{Error, Result, Store};

/// The largest number of lines of a run. The last one says that further lines are
/// missing.
pub const LINES: u32 = 200;
/// Longest message, in bytes.
const MESSAGE: usize = 2_000;

/// A query for a page of lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Logs {
    /// No lines before this time.
    pub after: Option<Timestamp>,
    /// No lines after this time.
    pub before: Option<Timestamp>,
    /// Lines of these levels; empty: all levels.
    pub levels: Vec<LogLevel>,
    /// Lines that contain this text, ignoring case.
    pub search: Option<String>,
    /// The number of lines to skip.
    pub offset: usize,
    /// The largest number of lines to return.
    pub limit: usize,
}

#[derive(Debug, Clone, SurrealValue)]
struct StoredLine {
    run: Uuid,
    at: i64,
    level: String,
    message: String,
}

const ADD: Statement = Statement::write(
    "exports add log line",
    "BEGIN;
     LET $lines = (SELECT VALUE lines ?? 0
                   FROM ONLY type::record('batch_export_run', [$export, $line.run]));
     IF $lines = NONE { THROW 'gone' };
     LET $key = [$export, $line.at, $line.run, $number];
     LET $is_there = (SELECT VALUE run
                      FROM ONLY type::record('batch_export_log', $key)) != NONE;
     IF $lines < $most AND !$is_there {
         UPDATE type::record('batch_export_run', [$export, $line.run])
             SET lines = $lines + 1 RETURN NONE;
         IF $lines = $most - 1 {
             UPSERT type::record('batch_export_log', $key) CONTENT $last RETURN NONE;
         } ELSE {
             UPSERT type::record('batch_export_log', $key) CONTENT $line RETURN NONE;
         };
     };
     COMMIT;",
);

/// Adds a line to a run. `number` distinguishes lines of the same time. Does nothing when
/// the run has the largest number of lines or is deleted.
pub async fn add(store: &Store, line: &LogLine, number: u32) -> Result<()> {
    let mut message = line.message.clone();
    message.truncate(message.floor_char_boundary(MESSAGE));
    let stored = StoredLine {
        run: line.instance_id.0,
        at: line.timestamp.micros(),
        level: line.level.text().to_owned(),
        message,
    };
    let last = StoredLine {
        level: LogLevel::Warning.text().to_owned(),
        message: "The run has more lines than are kept. The rest is omitted.".to_owned(),
        ..stored.clone()
    };
    let vars = bind! {
        export: line.log_source_id.0,
        line: stored,
        last: last,
        number: i64::from(number),
        most: i64::from(LINES),
    };
    is_done(super::locked(store, line.log_source_id, ADD, vars).await).map(drop)
}

const RANGE: Statement = Statement::read(
    "exports log lines",
    "SELECT * FROM batch_export_log:[$export, $low]..=[$export, $high, ..];",
);

/// Lines of an export or of one of its runs, newest first.
pub async fn page(
    store: &Store,
    export: BatchExportId,
    run: Option<RunId>,
    wanted: Logs,
) -> Result<Vec<LogLine>> {
    let search = wanted.search.as_ref().map(|text| text.to_lowercase());
    let fits = |line: &LogLine| {
        run.is_none_or(|run| run == line.instance_id)
            && wanted.after.is_none_or(|after| line.timestamp >= after)
            && wanted.before.is_none_or(|before| line.timestamp <= before)
            && (wanted.levels.is_empty() || wanted.levels.contains(&line.level))
            && search.as_ref().is_none_or(|text| line.message.to_lowercase().contains(text))
    };
    // A run has no lines from before it was created.
    let created = run.and_then(super::runs::created);
    let mut windows = TimeWindows::between(wanted.after.max(created), wanted.before);
    let (mut lines, mut passed) = (Vec::new(), 0);
    while lines.len() < wanted.limit {
        let Some((low, high)) = windows.next() else { break };
        let vars = bind! { export: export.0, low: low * 1_000, high: high * 1_000 + 999 };
        let rows = store.db.run(RANGE, vars).await?.rows::<StoredLine>(0)?;
        windows.had(rows.len());
        for row in rows.into_iter().rev() {
            let line = shown(export, row)?;
            if lines.len() == wanted.limit || !fits(&line) {
                continue;
            }
            if passed < wanted.offset {
                passed += 1;
            } else {
                lines.push(line);
            }
        }
    }
    Ok(lines)
}

fn shown(export: BatchExportId, row: StoredLine) -> Result<LogLine> {
    let level = LogLevel::of(&row.level).ok_or_else(|| Error::Shape {
        statement: RANGE.name,
        detail: format!("unknown level `{}`", row.level),
    })?;
    Ok(LogLine {
        log_source_id: export,
        instance_id: RunId(row.run),
        timestamp: Timestamp::from_micros(row.at),
        level,
        message: row.message,
    })
}
