//! Reading JSON.

use serde::de::DeserializeOwned;

/// Reads a value from JSON. The answers of server functions are read from bytes. Reading texts
/// the same way spares the browser a second parser for each type.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_slice(text.as_bytes())
}
