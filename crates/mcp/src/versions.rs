//! Versions of the protocol, and the first request, which agrees on one of them.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::reply::{Empty, Fault};

/// The versions that are spoken, the newest first. They differ in nothing that is used here.
pub const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// Whether a version is spoken.
pub fn is_supported(version: &str) -> bool {
    VERSIONS.contains(&version)
}

/// The result of `initialize`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Initialized {
    protocol_version: &'static str,
    capabilities: Capabilities,
    server_info: ServerInfo,
    instructions: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Capabilities {
    tools: Empty,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct ServerInfo {
    name: &'static str,
    title: &'static str,
    version: &'static str,
}

impl Initialized {
    /// Agrees on a version: that of the client, or else the newest one. `instructions` says
    /// to the model what the tools are for.
    ///
    /// # Errors
    /// The client names no version.
    pub fn answer(params: &Map<String, Value>, instructions: &'static str) -> Result<Self, Fault> {
        let Some(wanted) = params.get("protocolVersion").and_then(Value::as_str) else {
            return Err(Fault::invalid_params("`protocolVersion` must be a text."));
        };
        let [newest, ..] = VERSIONS;
        let agreed = VERSIONS.into_iter().find(|version| *version == wanted);
        Ok(Self {
            protocol_version: agreed.unwrap_or(newest),
            capabilities: Capabilities { tools: Empty {} },
            server_info: ServerInfo {
                name: "weir",
                title: "Weir",
                version: env!("CARGO_PKG_VERSION"),
            },
            instructions,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_version_is_agreed_on() {
        for (wanted, agreed) in [
            (json!("2025-06-18"), Some("2025-06-18")),
            (json!("2025-03-26"), Some("2025-03-26")),
            (json!("2024-11-05"), Some("2025-11-25")),
            (json!("2099-01-01"), Some("2025-11-25")),
            (json!(7), None),
            (json!(null), None),
        ] {
            let params = Map::from_iter([("protocolVersion".to_owned(), wanted)]);
            let found = Initialized::answer(&params, "Ask.").ok();
            assert_eq!(found.map(|found| found.protocol_version), agreed, "{params:?}");
        }
        assert!(Initialized::answer(&Map::new(), "Ask.").is_err());
        assert!(is_supported("2025-11-25") && !is_supported("2025-11-26"));
    }
}
