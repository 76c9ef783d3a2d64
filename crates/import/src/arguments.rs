//! The command line of `weir import`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use reqwest::Url;

use crate::cursor;
use crate::error::ImportError;
use crate::format::Format;
use crate::host;

/// Arguments of `weir import`: files, target and options.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Import")]
pub struct Arguments {
    /// Files with one event per line, plain or gzip; imported in this order
    #[arg(required = true, value_name = "FILE", help_heading = None)]
    pub files: Vec<PathBuf>,
    /// Key of the project that gets the events
    #[arg(
        long,
        env = "WEIR_PROJECT_KEY",
        hide_env_values = true,
        value_name = "KEY",
        required_unless_present = "dry_run"
    )]
    pub project_key: Option<String>,
    /// Address of the host, such as https://weir.example.org
    #[arg(long, value_name = "URL", required_unless_present = "dry_run")]
    pub to: Option<String>,
    /// Format of all files [default: found from their content]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Check all lines and send nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Import the valid lines of files that have others too
    #[arg(long)]
    pub skip_invalid: bool,
    /// Import events without a time, with the time of the import
    #[arg(long)]
    pub undated_as_now: bool,
    /// Events per second, at most [default: as fast as the host takes them]
    #[arg(long, value_name = "EVENTS_PER_SECOND")]
    pub rate: Option<NonZeroU32>,
    /// Where to note how far it has come [default: the first file's name with .weir-cursor]
    #[arg(long, value_name = "FILE")]
    pub cursor: Option<PathBuf>,
    /// Print the summary as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The target of an import.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) address: Url,
    pub(crate) key: String,
}

impl Target {
    /// The address in the form for display.
    pub(crate) fn shown(&self) -> String {
        self.address.to_string()
    }
}

impl Arguments {
    /// The target of this command line.
    pub(crate) fn target(&self) -> Result<Target, ImportError> {
        let address = host::address(self.to.as_deref().unwrap_or_default())?;
        let key = self.project_key.as_deref().unwrap_or_default().trim();
        if key.is_empty() {
            return Err(ImportError::Key("it is empty"));
        }
        if key.starts_with("phx_") {
            return Err(ImportError::Key(
                "it begins with `phx_` as personal keys do; take the key of the project",
            ));
        }
        Ok(Target { address, key: key.to_owned() })
    }

    /// The path of the cursor file: next to the first file by default.
    pub(crate) fn cursor_path(&self) -> PathBuf {
        let beside = || self.files.first().map(|first| cursor::default_path(first));
        self.cursor.clone().or_else(beside).unwrap_or_default()
    }
}
