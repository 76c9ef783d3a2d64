//! Log lines of runs as the API shows them (EXP-26).

use serde::{Deserialize, Serialize};

use crate::ids::{BatchExportId, RunId};
use crate::time::Timestamp;

/// Lines that a page has when it is not said how many,
pub const LOG_PAGE: usize = 50;
/// and the most that it may have.
pub const LOG_PAGE_MAX: usize = 500;

/// A line of what a run did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LogLine {
    /// The export.
    pub log_source_id: BatchExportId,
    /// The run.
    pub instance_id: RunId,
    /// When.
    pub timestamp: Timestamp,
    /// How grave.
    pub level: LogLevel,
    /// What, for people.
    pub message: String,
}

/// How grave a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum LogLevel {
    /// For those who look closely.
    Debug,
    /// What happened.
    Info,
    /// Something is not as it should be.
    Warning,
    /// Something failed.
    Error,
}

impl LogLevel {
    /// All of them, the least grave first.
    pub const ALL: [Self; 4] = [Self::Debug, Self::Info, Self::Warning, Self::Error];

    /// The word on the wire.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        }
    }

    /// The level of this word, in upper or lower case.
    #[must_use]
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
