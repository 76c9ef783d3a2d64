//! The log of a config as the API returns it (PLG-18).

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{PluginConfigId, PluginId, ProjectId};
use crate::time::Timestamp;

/// A log line that a plugin wrote, or the service about a plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PluginLogEntry {
    /// Unique id of the line.
    pub id: Uuid,
    /// The project.
    pub team_id: ProjectId,
    /// The plugin.
    pub plugin_id: PluginId,
    /// The config.
    pub plugin_config_id: PluginConfigId,
    /// Time of the line.
    pub timestamp: Timestamp,
    /// Origin of the line: `SYSTEM`, `PLUGIN` or `CONSOLE`.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub source: LogSource,
    /// `DEBUG`, `LOG`, `INFO`, `WARN` or `ERROR`.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub kind: LogLevel,
    /// The text.
    pub message: String,
    /// The process of the service that wrote it.
    pub instance_id: Uuid,
}

macro_rules! words {
    ($(#[$of:meta])* $name:ident, $($(#[$doc:meta])* $variant:ident => $text:literal),+ $(,)?) => {
        $(#[$of])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "UPPERCASE")]
        pub enum $name {
            $($(#[$doc])* $variant),+
        }

        impl $name {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word on the wire.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The value of this word.
            pub fn of(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.text() == text)
            }
        }
    };
}

words! {
    /// Origin of a line.
    LogSource,
    /// The service.
    System => "SYSTEM",
    /// The service, about what the plugin did.
    Plugin => "PLUGIN",
    /// The plugin, through its console.
    Console => "CONSOLE",
}

words! {
    /// Severity of a line.
    LogLevel,
    /// Details for finding faults.
    Debug => "DEBUG",
    /// Written without a severity.
    Log => "LOG",
    /// Normal progress.
    Info => "INFO",
    /// An unexpected state without failure.
    Warn => "WARN",
    /// Something failed.
    Error => "ERROR",
}

#[cfg(test)]
mod tests {
    use super::{LogLevel, LogSource};

    #[test]
    fn words_read_back() {
        for level in LogLevel::ALL {
            assert_eq!(serde_json::to_value(level).unwrap(), level.text());
            assert_eq!(LogLevel::of(level.text()), Some(*level));
        }
        for source in LogSource::ALL {
            assert_eq!(serde_json::to_value(source).unwrap(), source.text());
            assert_eq!(LogSource::of(source.text()), Some(*source));
        }
        assert_eq!(LogLevel::of("FATAL"), None);
    }
}
