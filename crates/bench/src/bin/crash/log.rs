//! Reading what the service logs.

use anyhow::Result;
use serde::Deserialize;
use weir_bench::weir::Weir;

/// The fields of a line that checks use.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    pub(crate) level: String,
    #[serde(default)]
    pub(crate) target: String,
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) error: String,
    #[serde(default)]
    pub(crate) torn_bytes: u64,
    #[serde(default)]
    pub(crate) damaged: u64,
}

impl Entry {
    /// Whether it is an error that no kill explains. The engine logs errors when it is killed,
    /// and operations that are retried are checked at the end.
    pub(crate) fn is_fault(&self) -> bool {
        let repeats = self.message.ends_with("trying again");
        self.level == "ERROR" && !repeats && !self.target.starts_with("surrealdb")
    }

    /// The place and the text of a message.
    pub(crate) fn note(&self) -> String {
        let what = if self.message.is_empty() { &self.error } else { &self.message };
        format!("{}: {what}", self.target)
    }
}

/// The new lines of a log, read in parts.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    read: u64,
}

impl Reader {
    /// Where the next call of [`lines`](Self::lines) begins.
    pub(crate) fn position(&self) -> u64 {
        self.read
    }

    /// The lines since the last call, and their fields.
    pub(crate) fn lines(&mut self, weir: &Weir) -> Result<Vec<(String, Entry)>> {
        let bytes = weir.log_from(self.read)?;
        self.read += bytes.len() as u64;
        let text = String::from_utf8_lossy(&bytes);
        // The last line may be truncated by the kill.
        let entries = text.lines().filter_map(|line| {
            let entry = serde_json::from_str(line).ok()?;
            Some((line.to_owned(), entry))
        });
        Ok(entries.collect())
    }
}
