//! A walk through all files: it returns the events to send, in order, and reports
//! everything else.
//!
//! Checking and sending use the same walk, so that both see the same.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde::{Deserialize, Serialize};
use weir_json::replace_escapes;

use crate::defect::{Defect, DefectKind};
use crate::error::ImportError;
use crate::event::{Event, Link, Rules};
use crate::format::Format;
use crate::recent::Recent;
use crate::report::Report;
use crate::source::{self, Input, Line, Lines};
use crate::stop::Stop;

/// Events among which duplicates are found: 35 to 70 MiB. The host finds duplicates at
/// any distance.
const REMEMBERED_EVENTS: usize = 1 << 20;
/// Pairs of ids that are not sent again.
const REMEMBERED_LINKS: usize = 1 << 16;
/// Lines that are read to detect a format.
const LINES_TO_LOOK_AT: usize = 100;

/// A position between two events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// Index of the file.
    pub(crate) file: usize,
    /// The position in the file.
    pub(crate) within: source::Mark,
}

/// The events for a line.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) event: Event,
    /// Sent before the event.
    pub(crate) link: Option<Link>,
    /// Index of the file.
    pub(crate) file: usize,
    pub(crate) line: u64,
}

/// A walk through the files.
pub(crate) struct Walk {
    ahead: VecDeque<(usize, Input, Format)>,
    at: Option<At>,
    rules: Rules,
    seen: Recent,
    linked: Recent,
    report: Report,
    read: Arc<AtomicU64>,
    stop: Stop,
}

/// The current position of the walk.
struct At {
    file: usize,
    name: Arc<str>,
    format: Format,
    lines: Lines,
}

impl Walk {
    /// Starts at the first line of the first file. Bytes read from disk are added to
    /// `read`.
    pub(crate) fn new(
        inputs: &[(Input, Format)],
        rules: Rules,
        read: Arc<AtomicU64>,
        stop: Stop,
    ) -> Self {
        let ahead = inputs.iter().cloned().enumerate();
        Self {
            ahead: ahead.map(|(file, (input, format))| (file, input, format)).collect(),
            at: None,
            rules,
            seen: Recent::of_size(REMEMBERED_EVENTS),
            linked: Recent::of_size(REMEMBERED_LINKS),
            report: Report::default(),
            read,
            stop,
        }
    }

    /// The next event; `None` at the end, or if a stop was requested.
    pub(crate) fn next(&mut self) -> Result<Option<Found>, ImportError> {
        while !self.stop.is_requested() {
            let at = match &mut self.at {
                Some(at) => at,
                None => {
                    let Some((file, input, format)) = self.ahead.pop_front() else {
                        return Ok(None);
                    };
                    let lines = input.lines(self.read.clone())?;
                    self.at.insert(At { file, name: input.name, format, lines })
                }
            };
            let Some(line) = at.lines.next()? else {
                // The last file stays open, because the position of the last event is
                // still needed.
                if self.ahead.is_empty() {
                    return Ok(None);
                }
                self.at = None;
                continue;
            };
            let (event, defects) = match line {
                Line::Text([]) => continue,
                Line::Text(line) => judge(line, at.format, &self.rules),
                Line::TooLong => (None, vec![DefectKind::LineTooLong.into()]),
                Line::Damaged(detail) => {
                    (None, vec![Defect::with(DefectKind::DamagedGzip, detail)])
                }
            };
            let number = at.lines.number();
            let (event, defects) = match event {
                Some(event) if !self.seen.insert(event.uuid) => {
                    (None, vec![Defect::with(DefectKind::DuplicateUuid, event.uuid)])
                }
                other => (other, defects),
            };
            self.report.add(&at.name, number, event.is_some(), defects);
            if let Some(mut event) = event {
                let link = event.link.take().filter(|link| self.linked.insert(link.uuid()));
                return Ok(Some(Found { event, link, file: at.file, line: number }));
            }
        }
        Ok(None)
    }

    /// Index of the file and number of the last line.
    pub(crate) fn here(&self) -> Option<(usize, u64)> {
        self.at.as_ref().map(|at| (at.file, at.lines.number()))
    }

    /// The position after the last event.
    pub(crate) fn position(&self) -> Option<Position> {
        let at = self.at.as_ref()?;
        Some(Position { file: at.file, within: at.lines.mark() })
    }

    /// Whether it ended because of a stop request.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_requested()
    }

    /// The findings.
    pub(crate) fn into_report(self) -> Report {
        self.report
    }
}

fn judge(line: &[u8], format: Format, rules: &Rules) -> (Option<Event>, Vec<Defect>) {
    let Ok(line) = std::str::from_utf8(line) else {
        return (None, vec![DefectKind::NotUtf8.into()]);
    };
    // As an escape of the same length, so that positions in errors are those of the line.
    let repaired = replace_escapes(line, |escape| escape.needs_repair().then_some("\\ufffd"));
    let (event, mut defects) = match format.draft(repaired.as_deref().unwrap_or(line)) {
        Ok(draft) => draft.finish(rules),
        Err(defect) => (None, vec![defect]),
    };
    if repaired.is_some() {
        defects.push(DefectKind::TextRepaired.into());
    }
    (event, defects)
}

/// Detects the format of a file by its first lines.
pub(crate) fn find_format(input: &Input) -> Result<Format, ImportError> {
    let mut lines = input.lines(Arc::default())?;
    let mut first: Vec<Vec<u8>> = Vec::new();
    while first.len() < LINES_TO_LOOK_AT {
        match lines.next()? {
            Some(Line::Text(line)) if !line.is_empty() => first.push(line.to_vec()),
            Some(Line::Text(_) | Line::TooLong) => {}
            Some(Line::Damaged(_)) | None => break,
        }
    }
    Ok(Format::of(first.iter().map(Vec::as_slice)))
}

#[cfg(test)]
mod tests;
