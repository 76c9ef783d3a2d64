//! The plan of an import, for checking and for sending.
//!
//! What belongs here: the files with their formats, and the check. What does not: the
//! target ([`crate::sending`]).

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use weir_model::Timestamp;

use crate::arguments::{Arguments, Target};
use crate::cursor::{Job, JobFile};
use crate::error::ImportError;
use crate::event::Rules;
use crate::format::Format;
use crate::progress::Progress;
use crate::report::Report;
use crate::source::Input;
use crate::stop::Stop;
use crate::summary::{Outcome, Summary, SummaryFile};
use crate::walk::{self, Walk};

/// The files of an import and their formats.
pub(crate) struct Plan {
    pub(crate) inputs: Vec<(Input, Format)>,
    rules: Rules,
    pub(crate) stop: Stop,
}

impl Plan {
    /// Opens the files and detects their formats.
    pub(crate) fn new(
        arguments: &Arguments,
        now: Timestamp,
        stop: Stop,
    ) -> Result<Self, ImportError> {
        let mut inputs = Vec::new();
        for path in &arguments.files {
            let input = Input::open(path)?;
            let format = match arguments.format {
                Some(format) => format,
                None => walk::find_format(&input)?,
            };
            inputs.push((input, format));
        }
        let rules = Rules { now, undated_as_now: arguments.undated_as_now };
        Ok(Self { inputs, rules, stop })
    }

    /// A walk through the files. Bytes read from disk are added to `read`.
    pub(crate) fn walk(&self, read: Arc<AtomicU64>) -> Walk {
        Walk::new(&self.inputs, self.rules, read, self.stop.clone())
    }

    /// Checks every line.
    pub(crate) async fn check(&self) -> Result<Report, ImportError> {
        let read = Arc::new(AtomicU64::new(0));
        let total = self.inputs.iter().map(|(input, _)| input.identity.size).sum();
        let shown = Progress::of_check(total, read.clone()).show();
        let mut walk = self.walk(read);
        let report = tokio::task::spawn_blocking(move || {
            while walk.next()?.is_some() {}
            Ok(walk.into_report())
        })
        .await?;
        shown.end().await;
        report
    }

    /// The summary of an import that ended after the check.
    pub(crate) fn checked(&self, report: Report, target: Option<&Target>) -> Summary {
        let outcome = if self.stop.is_requested() {
            Outcome::Interrupted
        } else if report.skipped > 0 {
            Outcome::Defects
        } else {
            Outcome::Checked
        };
        Summary {
            outcome,
            to: target.map(Target::shown),
            files: self.files(),
            report,
            accepted: 0,
            accepted_before: 0,
            links: 0,
            refused: 0,
            refused_at: Vec::new(),
            requests: 0,
            took: Duration::ZERO,
            cursor: None,
        }
    }

    /// The identity of this import, for continuing it.
    pub(crate) fn job(&self, target: &Target) -> Job {
        let files = self.inputs.iter().map(|(input, format)| JobFile {
            path: input.name.to_string(),
            identity: input.identity.clone(),
            format: *format,
        });
        Job {
            to: target.shown(),
            project_key_sha256: Job::hash_of_key(&target.key),
            files: files.collect(),
            undated_as_now: self.rules.undated_as_now,
        }
    }

    /// The files for the summary.
    pub(crate) fn files(&self) -> Vec<SummaryFile> {
        let files = self.inputs.iter();
        files
            .map(|(input, format)| SummaryFile { path: input.name.to_string(), format: *format })
            .collect()
    }
}
