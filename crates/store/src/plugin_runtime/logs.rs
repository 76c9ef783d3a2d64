//! Log lines of plugins, and of the service about plugins.
//!
//! Numbers of lines are dense, so the newest lines are a narrow range.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::plugin_configs::{LogLevel, LogSource};
use weir_model::{PluginConfigId, Timestamp};

use super::hold_config;
use crate::bind::bind;
use crate::db::Statement;
use crate::{Error, Result, Store};

/// The number of lines that are kept of a config.
pub const LINES: usize = 1_000;
/// Longest message, in bytes.
const MESSAGE: usize = 2_000;

/// Distinguishes the lines of this process from those of others.
static PROCESS: LazyLock<Uuid> = LazyLock::new(Uuid::new_v4);

/// A log line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The config that it is about.
    pub config: PluginConfigId,
    /// When it was written.
    pub at: Timestamp,
    /// The kind of writer.
    pub source: LogSource,
    /// The severity of the line.
    pub level: LogLevel,
    /// The text, for people.
    pub message: String,
}

/// A line that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// Id of the line.
    pub id: Uuid,
    /// The process that wrote it.
    pub process: Uuid,
    /// The line as it was appended.
    pub line: Line,
}

#[derive(Debug, Clone, SurrealValue)]
struct StoredLine {
    number: i64,
    uuid: Uuid,
    process: Uuid,
    at: i64,
    source: String,
    level: String,
    message: String,
}

#[derive(Debug, Clone, SurrealValue)]
struct StoredLog {
    config: i64,
    lines: Vec<StoredLine>,
}

// A retry after a lost answer finds the id of its lines in the head.
const APPEND: Statement = Statement::write(
    "plugin log append",
    concat!(
        "BEGIN;
         FOR $log IN $logs {
             LET $config = $log.config;
             LET $home = (SELECT VALUE project
                          FROM ONLY type::record('plugin_config', $config));
             LET $head = (SELECT * FROM ONLY type::record('plugin_log_head', $config));
             IF $home != NONE AND $head.batch != $batch {
                 IF $head = NONE {",
        hold_config!(),
        "};
                 LET $last = $head.last ?? 0;
                 LET $first = $head.first ?? 1;
                 FOR $line IN $log.lines {
                     LET $number = $last + $line.number;
                     UPSERT type::record('plugin_log', [$config, $number]) CONTENT {
                         number: $number, uuid: $line.uuid, process: $line.process,
                         at: $line.at, source: $line.source, level: $line.level,
                         message: $line.message,
                     } RETURN NONE;
                 };
                 LET $newest = $last + array::len($log.lines);
                 LET $old = $newest - $most;
                 IF $old >= $first {
                     DELETE plugin_log:[$config, $first]..=[$config, $old] RETURN NONE;
                 };
                 UPSERT type::record('plugin_log_head', $config) CONTENT {
                     batch: $batch, first: math::max([$first, $old + 1]), last: $newest,
                 } RETURN NONE;
             };
         };
         COMMIT;"
    ),
);

/// Appends lines of any projects in the given order. The newest thousand of a config are
/// kept. Lines of deleted configs are skipped.
pub async fn append(store: &Store, lines: &[Line]) -> Result<()> {
    let mut by_config: BTreeMap<PluginConfigId, Vec<&Line>> = BTreeMap::new();
    for line in lines {
        by_config.entry(line.config).or_default().push(line);
    }
    if by_config.is_empty() {
        return Ok(());
    }
    let log = |(config, lines): (PluginConfigId, Vec<&Line>)| {
        let omitted = lines.len().saturating_sub(LINES);
        let lines = lines.into_iter().skip(omitted).zip(1..);
        StoredLog { config: config.0, lines: lines.map(|(line, n)| stored(line, n)).collect() }
    };
    let logs: Vec<StoredLog> = by_config.into_iter().map(log).collect();
    let vars =
        bind! { logs: logs, batch: Uuid::new_v4(), most: i64::try_from(LINES).unwrap_or(i64::MAX) };
    store.db.run(APPEND, vars).await.map(drop)
}

fn stored(line: &Line, number: i64) -> StoredLine {
    let mut message = line.message.clone();
    message.truncate(message.floor_char_boundary(MESSAGE));
    StoredLine {
        number,
        uuid: crate::ids::time_ordered(line.at),
        process: *PROCESS,
        at: line.at.micros(),
        source: line.source.text().to_owned(),
        level: line.level.text().to_owned(),
        message,
    }
}

#[derive(Debug, SurrealValue)]
struct Head {
    first: i64,
    last: i64,
}

const HEAD: Statement = Statement::read(
    "plugin log head",
    "SELECT first, last FROM type::record('plugin_log_head', $config);",
);
const RANGE: Statement = Statement::read(
    "plugin log lines",
    "SELECT * FROM plugin_log:[$config, $from]..=[$config, $to];",
);

/// Lines of a config, newest first: `limit` of them after the `offset` newest, and the
/// number of all lines. Does not check the project.
pub async fn page(
    store: &Store,
    config: PluginConfigId,
    offset: usize,
    limit: usize,
) -> Result<(u64, Vec<Logged>)> {
    let found = store.db.run(HEAD, bind! { config: config.0 }).await?.row::<Head>(0)?;
    let Some(Head { first, last }) = found else { return Ok((0, Vec::new())) };
    let count = u64::try_from(last - first + 1).unwrap_or(0);
    let to = last.saturating_sub(i64::try_from(offset).unwrap_or(i64::MAX));
    Ok((count, between(store, config, first, to, limit).await?))
}

async fn between(
    store: &Store,
    config: PluginConfigId,
    first: i64,
    to: i64,
    limit: usize,
) -> Result<Vec<Logged>> {
    let limit = i64::try_from(limit.min(LINES)).unwrap_or(i64::MAX);
    if to < first || limit == 0 {
        return Ok(Vec::new());
    }
    let vars = bind! { config: config.0, from: first.max(to - limit + 1), to: to };
    let rows = store.db.run(RANGE, vars).await?.rows::<StoredLine>(0)?;
    rows.into_iter().rev().map(|row| logged(config, row)).collect()
}

fn logged(config: PluginConfigId, row: StoredLine) -> Result<Logged> {
    let unknown = |word: &str| Error::Shape {
        statement: RANGE.name,
        detail: format!("unknown word `{word}`"),
    };
    let source = LogSource::of(&row.source).ok_or_else(|| unknown(&row.source))?;
    let level = LogLevel::of(&row.level).ok_or_else(|| unknown(&row.level))?;
    let at = Timestamp::from_micros(row.at);
    Ok(Logged {
        id: row.uuid,
        process: row.process,
        line: Line { config, at, source, level, message: row.message },
    })
}
