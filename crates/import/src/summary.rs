//! The summary of an import, for users and for scripts.

use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::defect::Effect;
use crate::format::Format;
use crate::progress::{duration, grouped, per_second};
use crate::report::{Finding, LineRef, Report};

/// How an import ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Only checked: every line can be imported.
    Checked,
    /// Some lines cannot be imported; nothing was sent.
    Defects,
    /// Every event is acknowledged.
    Complete,
    /// A signal ended it. Running the same command continues it.
    Interrupted,
    /// It could not continue. Running the same command continues it once the cause is
    /// removed.
    Stopped(String),
}

/// A file and its format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SummaryFile {
    /// The file, as named on the command line.
    pub path: String,
    /// Set by the user, or detected from the content.
    pub format: Format,
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// How it ended.
    pub outcome: Outcome,
    /// The address of the host; `None` for a dry run.
    pub to: Option<String>,
    /// The files, in order.
    pub files: Vec<SummaryFile>,
    /// The findings in all lines, or in the lines that were reached.
    pub report: Report,
    /// Acknowledged lines, including earlier runs.
    pub accepted: u64,
    /// Acknowledged lines of earlier runs.
    pub accepted_before: u64,
    /// Acknowledged events that were added to merge two ids of a person.
    pub links: u64,
    /// Lines that are too large for the host, including earlier runs.
    pub refused: u64,
    /// The positions of those that this run has met.
    pub refused_at: Vec<LineRef>,
    /// Requests of this run.
    pub requests: u64,
    /// Duration of this run, from its first request.
    pub took: Duration,
    /// The cursor file, if it still exists.
    pub cursor: Option<PathBuf>,
}

impl Summary {
    /// Why the import did not fully succeed; `None` if it did.
    pub fn failure(&self) -> Option<String> {
        match &self.outcome {
            Outcome::Checked | Outcome::Complete => None,
            Outcome::Defects if self.to.is_none() => {
                Some(format!("{} cannot be imported", lines(self.report.skipped)))
            }
            Outcome::Defects => Some(format!(
                "{} cannot be imported, so nothing was sent; mend the files, or pass `--skip-invalid` to \
                 skip these lines",
                lines(self.report.skipped)
            )),
            Outcome::Interrupted => {
                Some("interrupted; the same call continues from here".to_owned())
            }
            Outcome::Stopped(reason) => {
                Some(format!("{reason}; the same call continues from here"))
            }
        }
    }

    /// The summary as one JSON object.
    pub fn to_json(&self) -> Value {
        let finding = |finding: &Finding| {
            json!({
                "code": finding.kind.code(),
                "effect": finding.kind.effect().code(),
                "count": finding.count,
                "first": finding.first,
                "sentence": finding.kind.sentence(),
                "fix": finding.kind.fix(),
            })
        };
        let (outcome, reason) = match &self.outcome {
            Outcome::Checked => ("checked", None),
            Outcome::Defects => ("defects", None),
            Outcome::Complete => ("complete", None),
            Outcome::Interrupted => ("interrupted", None),
            Outcome::Stopped(reason) => ("stopped", Some(reason)),
        };
        json!({
            "outcome": outcome,
            "reason": reason,
            "to": self.to,
            "files": self.files,
            "lines": self.report.lines,
            "events": self.report.events,
            "skipped": self.report.skipped,
            "left_out": self.report.omitted,
            "accepted": self.accepted,
            "accepted_before": self.accepted_before,
            "links": self.links,
            "refused_as_too_large": { "count": self.refused, "first": self.refused_at },
            "requests": self.requests,
            "seconds": self.took.as_secs_f64(),
            "cursor": self.cursor,
            "defects": self.report.findings.iter().map(finding).collect::<Vec<_>>(),
        })
    }

    fn write_defects(&self, out: &mut String) -> fmt::Result {
        for Finding { kind, count, first } in &self.report.findings {
            let effect = kind.effect().word();
            writeln!(out, "\n{kind}: {}, {effect}", lines(*count))?;
            writeln!(out, "  {} {}", kind.sentence(), kind.fix())?;
            write_lines(out, first, *count)?;
        }
        if self.refused > 0 {
            writeln!(out, "\nrefused by the host: {}, skipped", lines(self.refused))?;
            writeln!(out, "  The event is larger than the host takes. Shorten long values.")?;
            write_lines(out, &self.refused_at, self.refused)?;
        }
        Ok(())
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        for SummaryFile { path, format } in &self.files {
            writeln!(out, "{path}: read as {}", format.word())?;
        }
        let report = &self.report;
        write!(out, "{}: {} to import", lines(report.lines), events(report.events))?;
        for (count, effect) in
            [(report.skipped, Effect::Skipped), (report.omitted, Effect::Omitted)]
        {
            if count > 0 {
                write!(out, ", {} {}", grouped(count), effect.word())?;
            }
        }
        writeln!(out)?;
        self.write_defects(out)?;
        let Some(to) = self.to.as_ref().filter(|_| self.outcome != Outcome::Defects) else {
            return Ok(());
        };
        let now = self.accepted - self.accepted_before;
        write!(out, "\nacknowledged by {to}: {}", events(self.accepted))?;
        if self.accepted_before > 0 {
            write!(out, ", {} of them in earlier runs", grouped(self.accepted_before))?;
        }
        let rate = per_second(now, self.took);
        writeln!(out, " ({} at {rate:.0}/s)", duration(self.took.as_secs_f64()))?;
        if self.links > 0 {
            writeln!(out, "added to join two ids of a person: {}", events(self.links))?;
        }
        if let Some(cursor) = &self.cursor {
            writeln!(out, "how far it has come is noted in {}", cursor.display())?;
        }
        Ok(())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.write(&mut out)?;
        f.write_str(out.trim_end())
    }
}

/// `file:line` of the first positions, and the number of further ones.
fn write_lines(out: &mut String, places: &[LineRef], count: u64) -> fmt::Result {
    for LineRef { file, line, detail } in places {
        write!(out, "  {file}:{line}")?;
        if let Some(detail) = detail {
            write!(out, "  {detail}")?;
        }
        writeln!(out)?;
    }
    let more = count.saturating_sub(places.len() as u64);
    if more > 0 {
        writeln!(out, "  and {} more", grouped(more))?;
    }
    Ok(())
}

fn lines(count: u64) -> String {
    format!("{} line{}", grouped(count), if count == 1 { "" } else { "s" })
}

fn events(count: u64) -> String {
    format!("{} event{}", grouped(count), if count == 1 { "" } else { "s" })
}
