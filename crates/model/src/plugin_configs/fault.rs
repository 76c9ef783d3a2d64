//! What went wrong with a config, as the API shows it (PLG-18).

use serde::{Deserialize, Serialize};

use crate::json::JsonText;
use crate::time::Timestamp;

/// What went wrong with a config, in one of two forms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ConfigError {
    /// What alone.
    Text(String),
    /// All that is known of it.
    Whole(ConfigFault),
}

impl ConfigError {
    /// What went wrong, for people.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::Text(message) => message,
            Self::Whole(fault) => &fault.message,
        }
    }

    /// The same as a text.
    #[must_use]
    pub fn text(self) -> Self {
        match self {
            Self::Text(message) => Self::Text(message),
            Self::Whole(fault) => Self::Text(fault.message),
        }
    }
}

/// All that is known of what went wrong with a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfigFault {
    /// What, for people.
    pub message: String,
    /// When.
    pub time: Timestamp,
    /// The event that it came of; the text of its beginning where it is long.
    pub event: Option<JsonText>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ConfigError, ConfigFault};
    use crate::json::JsonText;
    use crate::time::Timestamp;

    #[test]
    fn an_error_is_a_text_or_tells_all() {
        let event = JsonText::read(r#"{"n":12345678901234567890123}"#.to_owned());
        let fault = ConfigFault { message: "no tea".to_owned(), time: Timestamp::EPOCH, event };
        let whole = ConfigError::Whole(fault);
        assert_eq!(whole.message(), "no tea");
        let shown = serde_json::to_string(&whole).unwrap();
        assert!(shown.contains(r#""event":{"n":12345678901234567890123}"#), "{shown}");
        assert_eq!(serde_json::to_value(whole.text()).unwrap(), json!("no tea"));
    }
}
