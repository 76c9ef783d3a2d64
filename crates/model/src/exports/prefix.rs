//! Keys of exported files: the template of a prefix and the names made from it (EXP-33,
//! EXP-34).
//!
//! What belongs here: names as text. What does not: numbers and formats of files, their
//! content, and which names a storage accepts (`weir-export`).

use std::fmt::{self, Write as _};

use chrono::{DateTime, Timelike as _, Utc};

use crate::time::Timestamp;

/// Text for the start of a run that begins with the first event.
const FROM_THE_BEGINNING: &str = "START";
/// Format of the bounds of an interval, always with the zone.
const BOUND: &str = "%Y-%m-%dT%H:%M:%S+00:00";
/// Format of a bound that is not a whole second.
const FINE_BOUND: &str = "%Y-%m-%dT%H:%M:%S%.6f+00:00";

/// Suffix after bounds of event time.
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
            // Documents have used both names.
            "table" | "table_name" => Self::Table,
            "data_interval_start" => Self::Start,
            "data_interval_end" => Self::End,
            _ => return None,
        })
    }
}

/// The values that names are made from.
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'a> {
    /// Start of the range (inclusive); `None`: from the beginning.
    pub start: Option<Timestamp>,
    /// End of the range (exclusive).
    pub end: Timestamp,
    /// Whether the bounds are of event time, as in a backfill.
    pub by_time: bool,
    /// The exported table.
    pub table: &'a str,
}

/// Why a prefix is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidPrefix(&'static str);

impl fmt::Display for InvalidPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidPrefix {}

impl Template {
    /// Parses a template. Doubled braces are literal braces.
    ///
    /// # Errors
    /// [`InvalidPrefix`]: an unknown variable, or an unbalanced brace.
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

    /// Whether files of both can be in the same directory, or in one inside the other.
    /// Case is ignored, because some file systems ignore it.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (own, other) = (self.parts(), other.parts());
        own.iter().zip(&other).all(|(own, other)| may_be_equal(own, other))
    }

    /// The parts of the path in lower case, with a placeholder for each variable.
    fn parts(&self) -> Vec<String> {
        let text: String = self
            .pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(plain) => plain.to_lowercase(),
                // No variable contains a slash.
                Piece::Variable(_) => ANYTHING.to_string(),
            })
            .collect();
        let parts = text.split('/').filter(|part| !matches!(*part, "" | "."));
        parts.map(str::to_owned).collect()
    }

    /// The directory: without leading, trailing or doubled slashes.
    ///
    /// # Errors
    /// [`InvalidPrefix`] if a part of it is `.` or `..`, or contains control characters.
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

    /// The file name of a run without number and extension, made only of the bounds. It
    /// is in the directory.
    ///
    /// # Errors
    /// [`Template::directory`].
    pub fn stem(&self, bounds: &Bounds<'_>) -> Result<String, InvalidPrefix> {
        // A regular run with the same bounds contains other events.
        let of_backfill = if bounds.by_time { BY_TIME } else { "" };
        let name = format!("{}-{}{of_backfill}", start(bounds), bound(bounds.end));
        Ok(join(&self.directory(bounds)?, &name))
    }
}

/// Placeholder for a variable in a part of a path: names have no control characters.
const ANYTHING: char = '\u{0}';

/// Whether two parts of paths can be the same name, judged by the text around their
/// variables.
fn may_be_equal(one: &str, other: &str) -> bool {
    let around = |part: &'_ str| {
        let begin = part.split(ANYTHING).next().unwrap_or_default().to_owned();
        let end = part.rsplit(ANYTHING).next().unwrap_or_default().to_owned();
        part.contains(ANYTHING).then_some((begin, end))
    };
    match (around(one), around(other)) {
        (None, None) => one == other,
        (Some((begin, end)), None) => other.starts_with(&begin) && other.ends_with(&end),
        (None, Some((begin, end))) => one.starts_with(&begin) && one.ends_with(&end),
        (Some((begin, end)), Some((other_begin, other_end))) => {
            (begin.starts_with(&other_begin) || other_begin.starts_with(&begin))
                && (end.ends_with(&other_end) || other_end.ends_with(&end))
        }
    }
}

fn start(bounds: &Bounds<'_>) -> String {
    bounds.start.map_or_else(|| FROM_THE_BEGINNING.to_owned(), bound)
}

fn bound(time: Timestamp) -> String {
    let time: DateTime<Utc> = time.to_chrono();
    time.format(if time.nanosecond() == 0 { BOUND } else { FINE_BOUND }).to_string()
}

/// The path of a name in a directory, which may be empty.
pub fn join(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_share_a_directory_overlap() {
        let overlap = |one: &str, other: &str| {
            let (one, other) = (Template::parse(one).unwrap(), Template::parse(other).unwrap());
            assert_eq!(one.overlaps(&other), other.overlaps(&one));
            one.overlaps(&other)
        };
        for (one, other) in [
            ("a", "a"),
            ("a/b", "a/b/"),
            ("a//b", "a/b"),
            ("Events/Daily", "events/daily"),
            ("ÄRGER", "ärger"),
            ("a", "a/b/c"),
            ("", "a"),
            ("{year}", "2026"),
            ("{year}/a", "{table}/a/b"),
            ("a/{year}-{month}", "a/2026-11/b"),
            ("date={year}", "date=2026/x"),
            ("a/{table}_x", "a/events_{year}"),
        ] {
            assert!(overlap(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("a", "b"),
            ("a", "ab"),
            ("a/b", "a/c"),
            ("a/{year}/b", "c/{year}/b"),
            ("a/{year}/b", "a/{year}/c"),
            ("one-{year}", "two-{year}"),
            ("{year}-one", "{year}-two"),
            ("one-{year}", "o"),
        ] {
            assert!(!overlap(one, other), "{one} {other}");
        }
    }
}
