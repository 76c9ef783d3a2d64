//! Errors of a config as the API returns them (PLG-18).

use serde::{Deserialize, Serialize};

use crate::json::JsonText;
use crate::time::Timestamp;

/// An error of a config, in one of two forms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ConfigError {
    /// Only the message.
    Text(String),
    /// All details.
    Whole(ConfigFault),
}

impl ConfigError {
    /// The message for users.
    pub fn message(&self) -> &str {
        match self {
            Self::Text(message) => message,
            Self::Whole(fault) => &fault.message,
        }
    }

    /// Converts the error to its message.
    #[must_use]
    pub fn text(self) -> Self {
        match self {
            Self::Text(message) => Self::Text(message),
            Self::Whole(fault) => Self::Text(fault.message),
        }
    }
}

/// All details of an error of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfigFault {
    /// The message for users.
    pub message: String,
    /// Time of the error.
    pub time: Timestamp,
    /// The event that caused it; if it is long, the beginning of its text.
    pub event: Option<JsonText>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ConfigError, ConfigFault};
    use crate::json::JsonText;
    use crate::time::Timestamp;

    #[test]
    fn an_error_is_a_text_or_an_object() {
        let event = JsonText::read(r#"{"n":12345678901234567890123}"#.to_owned());
        let fault = ConfigFault { message: "no tea".to_owned(), time: Timestamp::EPOCH, event };
        let whole = ConfigError::Whole(fault);
        assert_eq!(whole.message(), "no tea");
        let shown = serde_json::to_string(&whole).unwrap();
        assert!(shown.contains(r#""event":{"n":12345678901234567890123}"#), "{shown}");
        assert_eq!(serde_json::to_value(whole.text()).unwrap(), json!("no tea"));
    }
}
