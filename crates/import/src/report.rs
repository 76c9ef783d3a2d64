//! The findings in the lines of an import: numbers and positions.
//!
//! What belongs here: counting, and the first positions of each kind. What does not:
//! printing a report ([`crate::summary`]).

use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::defect::{Defect, DefectKind, Effect};

/// Positions that are stored per kind.
const FIRST: usize = 10;

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LineRef {
    /// The file, as named on the command line.
    #[serde(serialize_with = "as_text")]
    pub file: Arc<str>,
    /// The line number, from 1. Blank lines count.
    pub line: u64,
    /// Details in addition to the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

fn as_text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// Number and first positions of a defect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The kind of defect.
    pub kind: DefectKind,
    /// Lines with the defect, each counted once.
    pub count: u64,
    /// The first ten lines.
    pub first: Vec<LineRef>,
}

/// The findings of all files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Lines that are not blank.
    pub lines: u64,
    /// Lines with events to send.
    pub events: u64,
    /// Lines that cannot be imported.
    pub skipped: u64,
    /// Lines that need not be imported.
    pub omitted: u64,
    /// The defects that occurred, in the order of [`DefectKind::ALL`].
    pub findings: Vec<Finding>,
}

impl Report {
    /// Counts a line and its defects. For a line that is not sent, only the defects that
    /// prevent sending are counted.
    pub(crate) fn add(&mut self, file: &Arc<str>, line: u64, is_sent: bool, defects: Vec<Defect>) {
        self.lines += 1;
        let gravest = defects.iter().map(|defect| defect.kind.effect()).max();
        let effect = if is_sent { Effect::Imported } else { gravest.unwrap_or(Effect::Skipped) };
        *match effect {
            Effect::Imported => &mut self.events,
            Effect::Omitted => &mut self.omitted,
            Effect::Skipped => &mut self.skipped,
        } += 1;
        let mut noted: Vec<DefectKind> = Vec::new();
        for Defect { kind, detail } in defects {
            if kind.effect() == effect && !noted.contains(&kind) {
                noted.push(kind);
                self.note(kind, LineRef { file: file.clone(), line, detail });
            }
        }
    }

    fn note(&mut self, kind: DefectKind, place: LineRef) {
        match self.findings.binary_search_by_key(&kind, |finding| finding.kind) {
            Ok(at) => {
                if let Some(finding) = self.findings.get_mut(at) {
                    finding.count += 1;
                    if finding.first.len() < FIRST {
                        finding.first.push(place);
                    }
                }
            }
            Err(at) => {
                self.findings.insert(at, Finding { kind, count: 1, first: vec![place] });
            }
        }
    }
}
