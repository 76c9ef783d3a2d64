//! Where files of exports are: the template of a prefix and what is made of it
//! (batch-exports 1.4).
//!
//! What belongs here: names as text. What does not: numbers and kinds of files, what
//! is in them, whether a storage likes the name (`weir-export`).

use std::fmt::{self, Write as _};

use chrono::{DateTime, Timelike as _, Utc};

use crate::time::Timestamp;

/// What stands for the start of a run that begins with the first event.
const FROM_THE_BEGINNING: &str = "START";
/// What names the bounds of an interval, always with the zone.
const BOUND: &str = "%Y-%m-%dT%H:%M:%S+00:00";
/// The same when the bound is no whole second.
const FINE_BOUND: &str = "%Y-%m-%dT%H:%M:%S%.6f+00:00";

/// What stands behind the bounds when they are of event times.
const BY_TIME: &str = "_backfill";

/// A prefix with variables in braces, such as `{table}/{year}/{month}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(Variable),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variable {
    /// A part of the end of the interval, as chrono formats it.
    Time(&'static str),
    Table,
    Start,
    End,
}

impl Variable {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "year" => Self::Time("%Y"),
            "month" => Self::Time("%m"),
            "day" => Self::Time("%d"),
            "hour" => Self::Time("%H"),
            "minute" => Self::Time("%M"),
            "second" => Self::Time("%S"),
            // Both names have been in documents.
            "table" | "table_name" => Self::Table,
            "data_interval_start" => Self::Start,
            "data_interval_end" => Self::End,
            _ => return None,
        })
    }
}

/// What names are made of.
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'a> {
    /// The first instant; none: from the beginning.
    pub start: Option<Timestamp>,
    /// The instant after the last one.
    pub end: Timestamp,
    /// Whether they bound event times, as in a backfill.
    pub by_time: bool,
    /// The exported table.
    pub table: &'a str,
}

/// Why a prefix cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidPrefix(&'static str);

impl fmt::Display for InvalidPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidPrefix {}

impl Template {
    /// Reads a template. Doubled braces are braces.
    ///
    /// # Errors
    /// [`InvalidPrefix`]: a variable that nobody knows, a brace without its other.
    pub fn parse(text: &str) -> Result<Self, InvalidPrefix> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, brace) = rest.split_at(at);
            plain.push_str(before);
            if let Some(behind) = brace.strip_prefix("{{").or_else(|| brace.strip_prefix("}}")) {
                plain.push_str(&brace[..1]);
                rest = behind;
                continue;
            }
            let inner = brace.strip_prefix('{').and_then(|inner| inner.split_once('}'));
            let Some((name, behind)) = inner else {
                return Err(InvalidPrefix(
                    "A brace stands alone; write {{ or }} for a brace itself.",
                ));
            };
            let Some(variable) = Variable::of(name) else {
                return Err(InvalidPrefix(
                    "It has a variable that is not known. Known are year, month, day, hour, \
                     minute, second, table, data_interval_start and data_interval_end.",
                ));
            };
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
            pieces.push(Piece::Variable(variable));
            rest = behind;
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        Ok(Self { pieces })
    }

    /// The directory: no slash first, last or doubled.
    ///
    /// # Errors
    /// [`InvalidPrefix`] when a part of it is `.` or `..`, or holds control
    /// characters.
    pub fn directory(&self, bounds: &Bounds<'_>) -> Result<String, InvalidPrefix> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::Variable(Variable::Time(format)) => {
                    // Writing to a text does not fail.
                    let _ = write!(text, "{}", bounds.end.to_chrono().format(format));
                }
                Piece::Variable(Variable::Table) => text.push_str(bounds.table),
                Piece::Variable(Variable::Start) => text.push_str(&start(bounds)),
                Piece::Variable(Variable::End) => text.push_str(&bound(bounds.end)),
            }
        }
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
        if parts.iter().any(|part| matches!(*part, "." | "..")) || text.contains(char::is_control) {
            return Err(InvalidPrefix(
                "Its parts are names: no `.`, no `..`, no control characters.",
            ));
        }
        Ok(parts.join("/"))
    }

    /// The name of a run's files, but for their number and what they are: below the
    /// directory, and made of the bounds alone.
    ///
    /// # Errors
    /// [`Template::directory`].
    pub fn stem(&self, bounds: &Bounds<'_>) -> Result<String, InvalidPrefix> {
        // A regular run with the same bounds has other events.
        let of_backfill = if bounds.by_time { BY_TIME } else { "" };
        let name = format!("{}-{}{of_backfill}", start(bounds), bound(bounds.end));
        Ok(join(&self.directory(bounds)?, &name))
    }
}

fn start(bounds: &Bounds<'_>) -> String {
    bounds.start.map_or_else(|| FROM_THE_BEGINNING.to_owned(), bound)
}

fn bound(time: Timestamp) -> String {
    let time: DateTime<Utc> = time.to_chrono();
    time.format(if time.nanosecond() == 0 { BOUND } else { FINE_BOUND }).to_string()
}

/// A name in a directory; that may be empty.
#[must_use]
pub fn join(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    }
}
