//! Names of exported files (EXP-33).
//!
//! ```text
//! <prefix>/<start>-<end>[-<n>].jsonl.gz
//! <prefix>/<start>-<end>_manifest.json
//! <prefix>/<start>-<end>_backfill[-<n>].jsonl.gz
//! ```
//!
//! What belongs here: numbers and kinds of files. What does not: the prefix and the
//! bounds (`weir_model::exports::prefix`), the content of the files (`encode`), which
//! names a storage allows.
//!
//! Invariant: a name depends only on the bounds of the run and the number of the file, so
//! that a retry replaces the files of an earlier attempt.

use weir_model::exports::prefix::{Bounds, InvalidPrefix, Template};

use crate::destination::{Failure, Job};
use crate::encode::FileKind;

impl<'a> From<&'a Job> for Bounds<'a> {
    fn from(job: &'a Job) -> Self {
        Self { start: job.start, end: job.end, by_time: job.by_time, table: job.model.text() }
    }
}

impl From<InvalidPrefix> for Failure {
    fn from(why: InvalidPrefix) -> Self {
        Self::permanent("InvalidPrefix", format!("The prefix cannot be used. {why}"))
    }
}

/// The names of a run's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    /// The name up to the number.
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
        Ok(Self { stem: prefix.stem(bounds)?, extension: kind.extension(), is_split })
    }

    /// Whether there may be more than one file.
    pub(crate) fn is_split(&self) -> bool {
        self.is_split
    }

    /// The name of a file. `number` counts from 0.
    pub(crate) fn file(&self, number: usize) -> String {
        match self.is_split {
            true => format!("{}-{number}.{}", self.stem, self.extension),
            false => format!("{}.{}", self.stem, self.extension),
        }
    }

    /// The name of the manifest, which is written when all files are complete.
    pub(crate) fn manifest(&self) -> String {
        format!("{}_manifest.json", self.stem)
    }
}

#[cfg(test)]
mod tests {
    use weir_model::Timestamp;

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
            let failure = Failure::from(Template::parse(prefix).unwrap_err());
            assert_eq!(("InvalidPrefix", false), (failure.class, failure.is_retryable), "{prefix}");
            assert!(!failure.message.contains("yaer"), "{failure}");
        }
        for prefix in ["..", "a/../b", "./a", "a/.", "a\u{7}b"] {
            let failure = Template::parse(prefix).unwrap().directory(&bounds());
            let failure = Failure::from(failure.unwrap_err());
            assert_eq!(failure.class, "InvalidPrefix", "{prefix}");
        }
    }
}
