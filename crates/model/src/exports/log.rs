//! Log lines of runs as the API returns them (EXP-26).

use serde::{Deserialize, Serialize};

use crate::ids::{BatchExportId, RunId};
use crate::time::Timestamp;

/// Default number of lines on a page.
pub const LOG_PAGE: usize = 50;
/// Maximum number of lines on a page: that of most lists. A line has at most 2,000 bytes.
pub const LOG_PAGE_MAX: usize = 1_000;

/// A log line of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LogLine {
    /// The export.
    pub log_source_id: BatchExportId,
    /// The run.
    pub instance_id: RunId,
    /// Time of the line.
    pub timestamp: Timestamp,
    /// Severity.
    pub level: LogLevel,
    /// The text of the line.
    pub message: String,
}

/// Severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum LogLevel {
    /// Details for finding faults.
    Debug,
    /// Normal progress.
    Info,
    /// An unexpected state that does not stop the run.
    Warning,
    /// Something failed.
    Error,
}

impl LogLevel {
    /// All values, the least severe first.
    pub const ALL: [Self; 4] = [Self::Debug, Self::Info, Self::Warning, Self::Error];

    /// The word on the wire.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        }
    }

    /// The level of this word, ignoring case.
    pub fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.text().eq_ignore_ascii_case(text))
    }
}

#[cfg(test)]
mod tests {
    use super::LogLevel;

    #[test]
    fn words_read_back() {
        for level in LogLevel::ALL {
            assert_eq!(serde_json::to_value(level).unwrap(), level.text());
            assert_eq!(LogLevel::of(&level.text().to_lowercase()), Some(level));
        }
        assert_eq!(LogLevel::of("FATAL"), None);
    }
}
