//! Names of exported files (batch-exports 1.4).
//!
//! ```text
//! <prefix>/<start>-<end>[-<n>].jsonl.gz
//! <prefix>/<start>-<end>_manifest.json
//! <prefix>/<start>-<end>_backfill[-<n>].jsonl.gz
//! ```
//!
//! What belongs here: the template of a prefix and what is made of it. What does
//! not: what is in the files (`encode`), whether a storage likes the name.
//!
//! Invariant: a name follows from the run's bounds and the part's number, so that
//! a further try replaces what an earlier one left.

use std::fmt::Write as _;

use chrono::{DateTime, Timelike as _, Utc};
use weir_model::Timestamp;

use crate::destination::{Failure, Job};
use crate::encode::FileKind;

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
pub(crate) struct Template {
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
pub(crate) struct Bounds<'a> {
    /// The first instant; none: from the beginning.
    pub(crate) start: Option<Timestamp>,
    /// The instant after the last one.
    pub(crate) end: Timestamp,
    /// Whether they bound event times, as in a backfill.
    pub(crate) by_time: bool,
    /// The exported table.
    pub(crate) table: &'a str,
}

impl<'a> From<&'a Job> for Bounds<'a> {
    fn from(job: &'a Job) -> Self {
        Self { start: job.start, end: job.end, by_time: job.by_time, table: job.model.text() }
    }
}

impl Template {
    /// Reads a template. Doubled braces are braces.
    ///
    /// # Errors
    /// A final failure: a variable that nobody knows, a brace without its other.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
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
                return Err(invalid("A brace stands alone; write {{ or }} for a brace itself."));
            };
            let Some(variable) = Variable::of(name) else {
                return Err(invalid(
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
    /// A final failure when a part of it is `.` or `..`, or holds control
    /// characters.
    pub(crate) fn directory(&self, bounds: &Bounds<'_>) -> Result<String, Failure> {
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
            return Err(invalid("Its parts are names: no `.`, no `..`, no control characters."));
        }
        Ok(parts.join("/"))
    }
}

fn invalid(why: &str) -> Failure {
    Failure::last("InvalidPrefix", format!("The prefix cannot be used. {why}"))
}

fn start(bounds: &Bounds<'_>) -> String {
    bounds.start.map_or_else(|| FROM_THE_BEGINNING.to_owned(), bound)
}

fn bound(time: Timestamp) -> String {
    let time: DateTime<Utc> = time.to_chrono();
    time.format(if time.nanosecond() == 0 { BOUND } else { FINE_BOUND }).to_string()
}

/// The names of a run's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    /// Everything before the number.
    stem: String,
    extension: String,
    is_split: bool,
}

impl Names {
    /// The names of the files of a run.
    ///
    /// # Errors
    /// [`Template::directory`].
    pub(crate) fn new(
        prefix: &Template,
        bounds: &Bounds<'_>,
        kind: FileKind,
        is_split: bool,
    ) -> Result<Self, Failure> {
        // A regular run with the same bounds has other events.
        let of_backfill = if bounds.by_time { BY_TIME } else { "" };
        let name = format!("{}-{}{of_backfill}", start(bounds), bound(bounds.end));
        let stem = join(&prefix.directory(bounds)?, &name);
        Ok(Self { stem, extension: kind.extension(), is_split })
    }

    /// Whether there may be more than one file.
    pub(crate) fn is_split(&self) -> bool {
        self.is_split
    }

    /// The name of a file by its number from 0.
    pub(crate) fn file(&self, number: usize) -> String {
        match self.is_split {
            true => format!("{}-{number}.{}", self.stem, self.extension),
            false => format!("{}.{}", self.stem, self.extension),
        }
    }

    /// The name of the list of the files, which says that all of them are there.
    pub(crate) fn manifest(&self) -> String {
        format!("{}_manifest.json", self.stem)
    }
}

/// A name in a directory; that may be empty.
pub(crate) fn join(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{Codec, Format};

    fn time(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn bounds() -> Bounds<'static> {
        Bounds {
            start: Some(time("2026-08-21T14:05:00Z")),
            end: time("2026-08-21T14:10:09Z"),
            by_time: false,
            table: "events",
        }
    }

    fn names(prefix: &str, format: Format, codec: Option<Codec>, is_split: bool) -> Names {
        let kind = FileKind::new(format, codec).unwrap();
        Names::new(&Template::parse(prefix).unwrap(), &bounds(), kind, is_split).unwrap()
    }

    #[test]
    fn a_key_is_the_prefix_and_the_bounds() {
        let bounds = "2026-08-21T14:05:00+00:00-2026-08-21T14:10:09+00:00";
        let one = |prefix| names(prefix, Format::JsonLines, None, false).file(0);
        assert_eq!(one(""), format!("{bounds}.jsonl"));
        for prefix in ["a/b", "/a/b/", "//a//b"] {
            assert_eq!(one(prefix), format!("a/b/{bounds}.jsonl"), "{prefix}");
        }
        let split = names("p", Format::Parquet, Some(Codec::Zstd), true);
        assert_eq!(split.file(0), format!("p/{bounds}-0.parquet.zst"));
        assert_eq!(split.file(12), format!("p/{bounds}-12.parquet.zst"));
        assert_eq!(split.manifest(), format!("p/{bounds}_manifest.json"));
    }

    #[test]
    fn variables_come_from_the_end_of_the_interval() {
        for (prefix, expected) in [
            ("{table}/{year}/{month}/{day}", "events/2026/08/21"),
            ("{table_name}-{hour}{minute}{second}", "events-141009"),
            ("{data_interval_start}", "2026-08-21T14:05:00+00:00"),
            ("x{data_interval_end}x", "x2026-08-21T14:10:09+00:00x"),
            ("{{year}}={year}/}}{{", "{year}=2026/}{"),
            ("date={year}-{month}-{day}/Ünï", "date=2026-08-21/Ünï"),
        ] {
            let directory = Template::parse(prefix).unwrap().directory(&bounds());
            assert_eq!(directory.as_deref(), Ok(expected), "{prefix}");
        }
    }

    #[test]
    fn bounds_that_are_no_whole_second_and_none_at_all_have_names() {
        let end = time("2026-08-21T14:10:09.000120Z");
        let bounds = Bounds { start: None, end, by_time: false, table: "persons" };
        let kind = FileKind::new(Format::JsonLines, None).unwrap();
        let names = Names::new(&Template::parse("").unwrap(), &bounds, kind, false).unwrap();
        assert_eq!(names.file(0), "START-2026-08-21T14:10:09.000120+00:00.jsonl");
    }

    #[test]
    fn a_backfill_leaves_the_files_of_regular_runs_alone() {
        let backfill = Bounds { by_time: true, ..bounds() };
        let kind = FileKind::new(Format::JsonLines, None).unwrap();
        let stem = "p/2026-08-21T14:05:00+00:00-2026-08-21T14:10:09+00:00_backfill";
        let of = |is_split| {
            Names::new(&Template::parse("p").unwrap(), &backfill, kind, is_split).unwrap()
        };
        assert_eq!(of(false).file(0), format!("{stem}.jsonl"));
        assert_eq!(of(true).file(1), format!("{stem}-1.jsonl"));
        assert_eq!(of(true).manifest(), format!("{stem}_manifest.json"));
    }

    #[test]
    fn what_is_no_template_is_a_final_failure() {
        for prefix in ["{yaer}", "{}", "{ year }", "{year", "year}", "{year}{", "a}b{c", "{{{x}}}"]
        {
            let failure = Template::parse(prefix).unwrap_err();
            assert_eq!(("InvalidPrefix", false), (failure.class, failure.is_retryable), "{prefix}");
            assert!(!failure.message.contains("yaer"), "{failure}");
        }
        for prefix in ["..", "a/../b", "./a", "a/.", "a\u{7}b"] {
            let failure = Template::parse(prefix).unwrap().directory(&bounds()).unwrap_err();
            assert_eq!(failure.class, "InvalidPrefix", "{prefix}");
        }
    }
}
